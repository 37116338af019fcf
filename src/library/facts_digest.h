// A name for the facts that an answer rests on: results that are kept belong to it.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "library/library.h"

namespace foretoken {

// Of the version of the program, the contents of all files of the library, and those of users' own files; of a user's
// folder, as of a model, its .json files. What is not there counts for nothing.
std::string facts_digest(const Library& library, std::span<const std::filesystem::path> own_files);

}  // namespace foretoken
