#include "plan/store/sqlite_store.h"

#include <chrono>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/store/process_name.h"
#include "plan/store/sqlite_file.h"

namespace foretoken {
namespace {

constexpr int64_t sqlite_store_mark = 0x66746b6e;  // "ftkn", SQLite's application_id
constexpr int64_t sqlite_store_format = 1;         // SQLite's user_version
constexpr double sqlite_patience_s = 60;

// Of leases alone; no result depends on it.
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int64_t integer_of(const std::optional<SqliteRow>& row, size_t column = 0) {
  return row ? std::get<int64_t>(row->at(column)) : 0;
}

void check_sqlite_format(SqliteFile& file) {
  const int64_t mark = integer_of(file.run("PRAGMA application_id"));
  const int64_t format = integer_of(file.run("PRAGMA user_version"));
  if (mark != sqlite_store_mark) {
    throw InputError({.source = file.path().string(),
                      .value = "an SQLite file of another program",
                      .expected = "a store of foretoken's, or a new file"});
  }
  if (format != sqlite_store_format) {
    throw InputError(
        {.source = file.path().string(),
         .value = fmt::format("format {} of stores", format),
         .expected = fmt::format("format {}: the file is of another version of foretoken", sqlite_store_format)});
  }
}

void create_sqlite_tables(SqliteFile& file) {
  // A result is null until its work is finished. Who claimed it, until when, and how often that happened.
  file.run("CREATE TABLE questions (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)");
  file.run(
      "CREATE TABLE results (question INTEGER NOT NULL, key TEXT NOT NULL, result TEXT, begun INTEGER NOT NULL, "
      "owner TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (question, key)) WITHOUT ROWID");
  file.run(fmt::format("PRAGMA application_id = {}", sqlite_store_mark));
  file.run(fmt::format("PRAGMA user_version = {}", sqlite_store_format));
}

void prepare_sqlite_file(SqliteFile& file) {
  file.run("BEGIN IMMEDIATE");
  if (integer_of(file.run("SELECT count(*) FROM sqlite_schema")) == 0) create_sqlite_tables(file);
  file.run("COMMIT");
  check_sqlite_format(file);
  // Not SQLite's write-ahead log: that needs memory which processes share, and a store may lie on a disk that machines
  // share. A kill loses nothing that was written.
  file.run("PRAGMA journal_mode = TRUNCATE");
  file.run("PRAGMA synchronous = NORMAL");
}

StoreCounts counts_in_row(const std::optional<SqliteRow>& row) {
  return {.results = integer_of(row, 0), .claimed = integer_of(row, 1), .begun = integer_of(row, 2)};
}

constexpr const char* sqlite_counts_columns =
    "SELECT count(result), count(*) - count(result), coalesce(sum(begun), 0) FROM results";

class SqliteStore final : public StoreBackend {
 public:
  SqliteStore(const std::filesystem::path& path, const std::string& question)
      : file_(path, SqliteFile::Opening::create, sqlite_patience_s) {
    prepare_sqlite_file(file_);
    file_.run("INSERT OR IGNORE INTO questions (name) VALUES (?1)", {question});
    question_ = integer_of(file_.run("SELECT id FROM questions WHERE name = ?1", {question}));
  }

  StoreClaim claim(std::span<const std::string> keys, const std::string& owner, double lease_s) override {
    StoreClaim found;
    for (size_t i = 0; i < keys.size() && !found.mine; ++i) {
      // Looking needs no lock against other writers; most questions end here.
      const auto row =
          file_.run("SELECT result, owner, until FROM results WHERE question = ?1 AND key = ?2", {question_, keys[i]});
      const auto* result = row ? std::get_if<std::string>(&row->at(0)) : nullptr;
      if (result != nullptr) {
        found.done.emplace_back(i, *result);
      } else if (row ? take_over(keys[i], *row, owner, lease_s) : begin(keys[i], owner, lease_s)) {
        found.mine = i;
      }
    }
    return found;
  }

  void finish(const std::string& key, const std::string& result) override {
    file_.run("UPDATE results SET result = ?3 WHERE question = ?1 AND key = ?2 AND result IS NULL",
              {question_, key, result});
  }

  void renew(std::span<const std::string> keys, const std::string& owner, double lease_s) override {
    const double until = lease_s == 0 ? 0 : seconds_now() + lease_s;
    for (const std::string& key : keys) {
      file_.run("UPDATE results SET until = ?3 WHERE question = ?1 AND key = ?2 AND owner = ?4 AND result IS NULL",
                {question_, key, until, owner});
    }
  }

  StoreCounts counts() override {
    return counts_in_row(file_.run(std::string(sqlite_counts_columns) + " WHERE question = ?1", {question_}));
  }

 private:
  // Each of these is true unless somebody else was faster.
  bool begin(const std::string& key, const std::string& owner, double lease_s) {
    file_.run("INSERT OR IGNORE INTO results (question, key, begun, owner, until) VALUES (?1, ?2, 1, ?3, ?4)",
              {question_, key, owner, seconds_now() + lease_s});
    return file_.changed_rows() > 0;
  }

  bool take_over(const std::string& key, const SqliteRow& row, const std::string& owner, double lease_s) {
    const std::string& other = std::get<std::string>(row.at(1));
    const double until = std::get<double>(row.at(2)), now = seconds_now();
    if (until > now && !process_is_gone(other)) return false;
    file_.run(
        "UPDATE results SET begun = begun + 1, owner = ?3, until = ?4 "
        "WHERE question = ?1 AND key = ?2 AND result IS NULL AND owner = ?5 AND until = ?6",
        {question_, key, owner, now + lease_s, other, until});
    return file_.changed_rows() > 0;
  }

  SqliteFile file_;
  int64_t question_ = 0;
};

}  // namespace

std::unique_ptr<StoreBackend> sqlite_store(const std::filesystem::path& file, const std::string& question) {
  return std::make_unique<SqliteStore>(file, question);
}

StoreCounts sqlite_counts(const std::filesystem::path& path) {
  SqliteFile file(path, SqliteFile::Opening::must_exist, sqlite_patience_s);
  check_sqlite_format(file);
  return counts_in_row(file.run(sqlite_counts_columns));
}

}  // namespace foretoken
