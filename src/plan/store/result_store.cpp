#include "plan/store/result_store.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "plan/store/process_name.h"
#include "plan/store/sqlite_file.h"

namespace foretoken {
namespace {

constexpr int64_t store_mark = 0x66746b6e;  // "ftkn", SQLite's application_id
constexpr int64_t store_format = 1;         // SQLite's user_version
constexpr double patience_s = 60;

// Of leases alone; no result depends on it.
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int64_t integer_of(const std::optional<SqliteRow>& row, size_t column = 0) {
  return row ? std::get<int64_t>(row->at(column)) : 0;
}

void check_format(SqliteFile& file) {
  const int64_t mark = integer_of(file.run("PRAGMA application_id"));
  const int64_t format = integer_of(file.run("PRAGMA user_version"));
  if (mark != store_mark) {
    throw InputError({.source = file.path().string(),
                      .value = "an SQLite file of another program",
                      .expected = "a store of foretoken's, or a new file"});
  }
  if (format != store_format) {
    throw InputError({.source = file.path().string(),
                      .value = fmt::format("format {} of stores", format),
                      .expected = fmt::format("format {}: the file is of another version of foretoken", store_format)});
  }
}

void create_tables(SqliteFile& file) {
  // A result is null until its work is finished. Who claimed it, until when, and how often that happened.
  file.run("CREATE TABLE questions (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)");
  file.run(
      "CREATE TABLE results (question INTEGER NOT NULL, key TEXT NOT NULL, result TEXT, begun INTEGER NOT NULL, "
      "owner TEXT NOT NULL, until REAL NOT NULL, PRIMARY KEY (question, key)) WITHOUT ROWID");
  file.run(fmt::format("PRAGMA application_id = {}", store_mark));
  file.run(fmt::format("PRAGMA user_version = {}", store_format));
}

void prepare_file(SqliteFile& file) {
  file.run("BEGIN IMMEDIATE");
  if (integer_of(file.run("SELECT count(*) FROM sqlite_schema")) == 0) create_tables(file);
  file.run("COMMIT");
  check_format(file);
  // Not SQLite's write-ahead log: that needs memory which processes share, and a store may lie on a disk that machines
  // share. A kill loses nothing that was written.
  file.run("PRAGMA journal_mode = TRUNCATE");
  file.run("PRAGMA synchronous = NORMAL");
}

StoreCounts counts_in(const std::optional<SqliteRow>& row) {
  return {.results = integer_of(row, 0), .claimed = integer_of(row, 1), .begun = integer_of(row, 2)};
}

constexpr const char* counts_columns =
    "SELECT count(result), count(*) - count(result), coalesce(sum(begun), 0) FROM results";

}  // namespace

class ResultStore::Implementation {
 public:
  Implementation(const std::filesystem::path& path, const std::string& question, const ClaimTimes& times)
      : file_(path, SqliteFile::Opening::create, patience_s), owner_(process_name()), times_(times) {
    prepare_file(file_);
    file_.run("INSERT OR IGNORE INTO questions (name) VALUES (?1)", {question});
    question_ = integer_of(file_.run("SELECT id FROM questions WHERE name = ?1", {question}));
    renewal_ = std::jthread([this](const std::stop_token& stop) { renew_until(stop); });
  }

  ~Implementation() {
    renewal_.request_stop();
    renewal_.join();
    try {
      for (const std::string& key : claimed_) keep_until(key, 0);
    } catch (const std::runtime_error&) {
      // Then the claims end by themselves.
    }
  }

  Claim claim(const std::string& key) {
    const std::lock_guard lock(guard_);
    const double now = seconds_now();
    // Looking needs no lock against other writers; most questions end here.
    const auto row =
        file_.run("SELECT result, owner, until FROM results WHERE question = ?1 AND key = ?2", {question_, key});
    if (!row) {
      file_.run("INSERT OR IGNORE INTO results (question, key, begun, owner, until) VALUES (?1, ?2, 1, ?3, ?4)",
                {question_, key, owner_, now + times_.lease_s});
      return taken(key);
    }
    if (const auto* result = std::get_if<std::string>(&row->at(0))) return {.state = State::done, .result = *result};
    const std::string& owner = std::get<std::string>(row->at(1));
    const double until = std::get<double>(row->at(2));
    if (until > now && !process_is_gone(owner)) return {};
    // Only if nobody was faster.
    file_.run(
        "UPDATE results SET begun = begun + 1, owner = ?3, until = ?4 "
        "WHERE question = ?1 AND key = ?2 AND result IS NULL AND owner = ?5 AND until = ?6",
        {question_, key, owner_, now + times_.lease_s, owner, until});
    return taken(key);
  }

  void finish(const std::string& key, const std::string& result) {
    const std::lock_guard lock(guard_);
    file_.run("UPDATE results SET result = ?3 WHERE question = ?1 AND key = ?2 AND result IS NULL",
              {question_, key, result});
    claimed_.erase(key);
  }

  StoreCounts counts() {
    const std::lock_guard lock(guard_);
    return counts_in(file_.run(std::string(counts_columns) + " WHERE question = ?1", {question_}));
  }

 private:
  Claim taken(const std::string& key) {
    if (file_.changed_rows() == 0) return {};
    claimed_.insert(key);
    return {.state = State::mine, .result = {}};
  }

  void keep_until(const std::string& key, double until) {
    file_.run("UPDATE results SET until = ?3 WHERE question = ?1 AND key = ?2 AND owner = ?4 AND result IS NULL",
              {question_, key, until, owner_});
  }

  void renew_until(const std::stop_token& stop) {
    std::unique_lock lock(guard_);
    const auto pause = std::chrono::duration<double>(times_.renewal_s);
    while (!wake_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
      try {
        for (const std::string& key : claimed_) keep_until(key, seconds_now() + times_.lease_s);
      } catch (const std::runtime_error&) {
        // The next renewal may succeed; whoever finishes the work hears of what is wrong.
      }
    }
  }

  SqliteFile file_;
  std::string owner_;
  ClaimTimes times_;
  int64_t question_ = 0;
  std::mutex guard_;               // of all below, and of the file
  std::set<std::string> claimed_;  // and not finished
  std::condition_variable_any wake_;
  std::jthread renewal_;  // last: it uses all of the above
};

ResultStore::ResultStore(const std::filesystem::path& file, const std::string& question, const ClaimTimes& times)
    : implementation_(std::make_unique<Implementation>(file, question, times)) {}

ResultStore::~ResultStore() = default;

ResultStore::Claim ResultStore::claim(const std::string& key) {
  return implementation_->claim(key);
}

void ResultStore::finish(const std::string& key, const std::string& result) {
  implementation_->finish(key, result);
}

StoreCounts ResultStore::counts() {
  return implementation_->counts();
}

StoreCounts ResultStore::counts_of(const std::filesystem::path& path) {
  SqliteFile file(path, SqliteFile::Opening::must_exist, patience_s);
  check_format(file);
  return counts_in(file.run(counts_columns));
}

}  // namespace foretoken
