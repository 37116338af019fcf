// Rows of a JSON report as CSV: the same names and numbers, for a spreadsheet.
#pragma once

#include <string>

#include "base/json.h"

namespace foretoken {

// `rows`: an array of objects. Columns are the keys of the first; null and what a row lacks are empty cells, lists and
// objects inside a row are left out.
std::string json_rows_csv(const Json& rows);

}  // namespace foretoken
