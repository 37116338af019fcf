// The little of SQLite that a store needs, with its failures in our words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace foretoken {

using SqliteValue = std::variant<std::monostate, int64_t, double, std::string>;  // as in a column: null first
using SqliteRow = std::vector<SqliteValue>;

// An open file. Not for several threads at once. Statements are compiled once and kept.
class SqliteFile {
 public:
  enum class Opening : uint8_t { create, must_exist };
  // Waits for others who write for as long as `patience_s`.
  SqliteFile(const std::filesystem::path& path, Opening opening, double patience_s);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  // Runs one statement with its parameters ?1, ?2, ... The first row that comes out, if any.
  std::optional<SqliteRow> run(const std::string& statement, std::initializer_list<SqliteValue> parameters = {});
  std::optional<SqliteRow> run(const std::string& statement, std::span<const SqliteValue> parameters);
  int64_t changed_rows() const;  // by the last statement that changes any
  const std::filesystem::path& path() const { return path_; }

 private:
  struct Open;
  [[noreturn]] void fail(int code) const;
  std::filesystem::path path_;
  std::unique_ptr<Open> open_;
};

}  // namespace foretoken
