#include "plan/store/sqlite_file.h"

#include <exception>
#include <map>
#include <stdexcept>

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/error.h"

namespace foretoken {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

int bind(sqlite3_stmt* statement, int place, const SqliteValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return sqlite3_bind_int64(statement, place, *integer);
  if (const auto* number = std::get_if<double>(&value)) return sqlite3_bind_double(statement, place, *number);
  if (const auto* text = std::get_if<std::string>(&value)) {
    return sqlite3_bind_text64(statement, place, text->data(), text->size(), nullptr, SQLITE_UTF8);
  }
  return sqlite3_bind_null(statement, place);
}

SqliteValue column(sqlite3_stmt* statement, int place) {
  switch (sqlite3_column_type(statement, place)) {
    case SQLITE_NULL:
      return {};
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(statement, place)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, place);
    default: {
      const void* bytes = sqlite3_column_blob(statement, place);
      const int size = sqlite3_column_bytes(statement, place);
      return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
    }
  }
}

}  // namespace

struct SqliteFile::Open {
  std::unique_ptr<sqlite3, CloseDatabase> database;
  std::map<std::string, Statement> statements;  // closed before the database
};

SqliteFile::SqliteFile(const std::filesystem::path& path, Opening opening, double patience_s)
    : path_(path), open_(std::make_unique<Open>()) {
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | (opening == Opening::create ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  open_->database.reset(database);
  if (code != SQLITE_OK) fail(code);
  sqlite3_busy_timeout(database, static_cast<int>(patience_s * 1e3));
}

SqliteFile::~SqliteFile() = default;

std::optional<SqliteRow> SqliteFile::run(const std::string& statement, std::initializer_list<SqliteValue> parameters) {
  return run(statement, std::span(parameters.begin(), parameters.size()));
}

std::optional<SqliteRow> SqliteFile::run(const std::string& statement, std::span<const SqliteValue> parameters) {
  Statement& prepared = open_->statements[statement];
  if (!prepared) {
    sqlite3_stmt* made = nullptr;
    const int code = sqlite3_prepare_v2(open_->database.get(), statement.c_str(), -1, &made, nullptr);
    prepared.reset(made);
    if (code != SQLITE_OK) fail(code);
  }
  int place = 0;
  for (const SqliteValue& value : parameters) {
    if (const int code = bind(prepared.get(), ++place, value); code != SQLITE_OK) fail(code);
  }
  std::optional<SqliteRow> first;
  int code = sqlite3_step(prepared.get());
  for (; code == SQLITE_ROW; code = sqlite3_step(prepared.get())) {
    if (first) continue;
    first.emplace();
    for (int i = 0; i < sqlite3_column_count(prepared.get()); ++i) first->push_back(column(prepared.get(), i));
  }
  // Before the statement forgets what went wrong.
  std::exception_ptr failure;
  if (code != SQLITE_DONE) {
    try {
      fail(code);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  sqlite3_reset(prepared.get());
  sqlite3_clear_bindings(prepared.get());
  if (failure) std::rethrow_exception(failure);
  return first;
}

int64_t SqliteFile::changed_rows() const {
  return sqlite3_changes64(open_->database.get());
}

void SqliteFile::fail(int code) const {
  const std::string said = open_->database ? sqlite3_errmsg(open_->database.get()) : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      throw InputError({.source = path_.string(),
                        .value = said,
                        .expected = "a store of results that is whole; move it away to begin a new one"});
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw InputError(
          {.source = path_.string(), .value = said, .expected = "a file that can be created, read and written"});
    case SQLITE_BUSY:
      throw std::runtime_error(fmt::format("{}: others have kept it locked for too long", path_.string()));
    default:
      throw std::runtime_error(fmt::format("{}: {}", path_.string(), said));
  }
}

}  // namespace foretoken
