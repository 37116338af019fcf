// Results in one SQLite file: for the processes of one machine, or of machines with a file system in common.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "plan/store/store_backend.h"

namespace foretoken {

std::unique_ptr<StoreBackend> sqlite_store(const std::filesystem::path& file, const std::string& question);
StoreCounts sqlite_counts(const std::filesystem::path& file);  // of all questions in it

}  // namespace foretoken
