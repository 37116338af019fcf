#include "report/parts/json_rows_csv.h"

#include <vector>

#include "base/csv.h"

namespace foretoken {
namespace {

bool is_nested(const Json& value) {
  return value.kind() == Json::Kind::array || value.kind() == Json::Kind::object;
}

std::string cell_text(const Json* value) {
  if (value == nullptr || value->kind() == Json::Kind::null) return "";
  return csv_cell(value->kind() == Json::Kind::string ? value->string() : value->dump(0));
}

}  // namespace

std::string json_rows_csv(const Json& rows) {
  if (rows.items().empty()) return "";
  std::vector<std::string> columns;
  for (const auto& [key, value] : rows.items().front().members()) {
    if (!is_nested(value)) columns.push_back(key);
  }
  std::string text;
  for (size_t i = 0; i < columns.size(); ++i) text += (i > 0 ? "," : "") + csv_cell(columns[i]);
  text += "\n";
  for (const Json& row : rows.items()) {
    for (size_t i = 0; i < columns.size(); ++i) text += (i > 0 ? "," : "") + cell_text(row.find(columns[i]));
    text += "\n";
  }
  return text;
}

}  // namespace foretoken
