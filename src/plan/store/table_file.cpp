#include "plan/store/table_file.h"

#include <unistd.h>

#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/store/sqlite_file.h"

namespace foretoken {
namespace {

std::string quoted_name(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

SqliteValue table_value(const Json* value) {
  if (value == nullptr) return {};
  switch (value->kind()) {
    case Json::Kind::null:
      return {};
    case Json::Kind::boolean:
      return int64_t{value->boolean() ? 1 : 0};
    case Json::Kind::integer:
      return value->integer();
    case Json::Kind::number:
      return value->number();
    case Json::Kind::string:
      return value->string();
    case Json::Kind::array:
    case Json::Kind::object:
      break;
  }
  return value->dump(0);
}

}  // namespace

void write_table_file(const std::filesystem::path& path, const std::string& table, const Json& rows) {
  constexpr double patience_s = 10;
  // Written beside it first, under a name of this process, so that nobody reads half a table.
  const std::filesystem::path unfinished = fmt::format("{}.{}.unfinished", path.string(), getpid());
  std::error_code failed;
  std::filesystem::remove(unfinished, failed);
  std::vector<std::string> columns;
  if (!rows.items().empty()) {
    for (const auto& [key, value] : rows.items().front().members()) columns.push_back(key);
  }
  if (columns.empty()) columns.emplace_back("model");
  {
    SqliteFile file(unfinished, SqliteFile::Opening::create, patience_s);
    std::string names, places;
    for (size_t i = 0; i < columns.size(); ++i) {
      names += fmt::format("{}{}", i > 0 ? ", " : "", quoted_name(columns[i]));
      places += fmt::format("{}?{}", i > 0 ? ", " : "", i + 1);
    }
    file.run("BEGIN");
    file.run(fmt::format("CREATE TABLE {} ({})", quoted_name(table), names));
    for (const Json& row : rows.items()) {
      std::vector<SqliteValue> values;
      values.reserve(columns.size());
      for (const std::string& column : columns) values.push_back(table_value(row.find(column)));
      file.run(fmt::format("INSERT INTO {} VALUES ({})", quoted_name(table), places),
               std::span<const SqliteValue>(values));
    }
    file.run("COMMIT");
  }
  std::filesystem::rename(unfinished, path, failed);
  if (!failed) return;
  throw InputError({.source = path.string(), .value = failed.message(), .expected = "a file that can be written"});
}

}  // namespace foretoken
