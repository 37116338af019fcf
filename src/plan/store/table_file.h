// Rows of a report as a table in an SQLite file, for those who query it.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"

namespace foretoken {

// `rows`: an array of objects. Columns are the keys of the first, with types as in the rows; what a row lacks is null.
// A file of that name is replaced; the same rows make the same bytes.
void write_table_file(const std::filesystem::path& path, const std::string& table, const Json& rows);

}  // namespace foretoken
