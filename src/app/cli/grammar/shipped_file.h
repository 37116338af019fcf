// A file that ships in the library by its name, or one of the reader's.
#pragma once

#include <filesystem>
#include <string>

namespace foretoken {

// The path of `name` where it looks like one (it holds a slash or the ending), else that of the file so named in
// `folder`. InputError with the names there are; `what` says what such a file holds.
std::filesystem::path shipped_file(const std::string& flag, const std::filesystem::path& folder,
                                   const std::string& name, const std::string& what,
                                   const std::string& ending = ".json");

}  // namespace foretoken
