#include "plan/store/result_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <postgres_server.h>

#include "base/error.h"
#include "plan/store/postgres_connection.h"
#include "plan/store/shared_work.h"
#include "plan/store/sqlite_file.h"

namespace foretoken::result_store_test {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

std::string test_name() {
  std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

class SqliteStores : public testing::Test {
 protected:
  SqliteStores()
      : folder_(fs::path(testing::TempDir()) / ("foretoken_store_" + test_name() + "_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~SqliteStores() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  fs::path file() const { return folder_ / "results.sqlite"; }

  fs::path folder_;
};

// What opening a store is refused with.
std::string refusal(const std::string& location) {
  try {
    const ResultStore store(location, "question");
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

// The same laws for every kind of store.
enum class Kind : uint8_t { sqlite, postgres };
class ResultStores : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::sqlite) {
      file_ = fs::path(testing::TempDir()) / ("foretoken_store_" + test_name() + std::to_string(getpid()) + ".sqlite");
      location_ = file_.string();
      return;
    }
    if (!PostgresServer::missing().empty()) GTEST_SKIP() << PostgresServer::missing();
    const std::string schema = "t" + std::to_string(std::hash<std::string>()(test_name()));
    PostgresConnection server(PostgresServer::of_this_program().address(), 60);
    server.run("DROP SCHEMA IF EXISTS " + schema + " CASCADE");
    server.run("CREATE SCHEMA " + schema);
    location_ = PostgresServer::of_this_program().address(schema);
  }
  void TearDown() override {
    std::error_code ignored;
    if (!file_.empty()) fs::remove(file_, ignored);
  }

  const std::string& location() const { return location_; }

  // When the only claim ends.
  std::string end_of_claim() const {
    if (GetParam() == Kind::postgres) {
      return PostgresConnection(location_, 60).run("SELECT until FROM foretoken_results").at(0).at(0).value();
    }
    return std::to_string(std::get<double>(
        SqliteFile(file_, SqliteFile::Opening::must_exist, 60).run("SELECT until FROM results")->at(0)));
  }

  // Runs one of the two statements.
  void fill(const std::string& sqlite, const std::string& postgres) const {
    if (GetParam() == Kind::sqlite) {
      SqliteFile(file_, SqliteFile::Opening::must_exist, 60).run(sqlite);
    } else {
      PostgresConnection(location_, 60).run(postgres);
    }
  }

 private:
  fs::path file_;
  std::string location_;
};

// What a claim of one key finds.
enum class State : uint8_t { done, mine, held };
constexpr State done = State::done, mine = State::mine, held = State::held;
struct Claimed {
  State state = held;
  std::string result;
};
Claimed claim(ResultStore& store, const std::string& key) {
  const std::vector<std::string> keys = {key};
  const StoreClaim found = store.claim(keys);
  if (found.mine) return {.state = mine, .result = {}};
  if (found.done.empty()) return {};
  return {.state = done, .result = found.done.front().second};
}

TEST_P(ResultStores, a_result_outlives_the_process_that_worked_it_out) {
  const std::string text = std::string("{\"x\": 0.1}\n") + '\0' + "\xc3\xa9";
  {
    ResultStore store(location(), "question");
    EXPECT_EQ(claim(store, "key").state, mine);
    store.finish("key", text);
  }
  ResultStore store(location(), "question");
  const Claimed found = claim(store, "key");
  EXPECT_EQ(found.state, done);
  EXPECT_EQ(found.result, text);
}

TEST_P(ResultStores, what_one_claims_others_leave_alone_until_it_is_given_back) {
  auto first = std::make_unique<ResultStore>(location(), "question");
  ResultStore second(location(), "question");
  EXPECT_EQ(claim(*first, "key").state, mine);
  EXPECT_EQ(claim(second, "key").state, held);
  EXPECT_EQ(claim(*first, "key").state, held);
  first.reset();
  EXPECT_EQ(claim(second, "key").state, mine);
  EXPECT_EQ(second.counts().begun, 2);
}

TEST_P(ResultStores, a_claim_is_renewed_until_its_work_is_finished) {
  ResultStore store(location(), "question", {.lease_s = 1000, .renewal_s = 0.001});
  EXPECT_EQ(claim(store, "key").state, mine);
  const std::string first = end_of_claim();
  while (end_of_claim() == first) std::this_thread::yield();
  store.finish("key", "result");
  EXPECT_EQ(claim(store, "key").state, done);
}

TEST_P(ResultStores, a_claim_whose_time_is_over_is_free) {
  ResultStore asleep(location(), "question", {.lease_s = 0, .renewal_s = 1000}), other(location(), "question");
  EXPECT_EQ(claim(asleep, "key").state, mine);
  EXPECT_EQ(claim(other, "key").state, mine);
  EXPECT_EQ(claim(asleep, "key").state, held);
}

TEST_P(ResultStores, claims_of_a_killed_process_are_free_at_once) {
  const pid_t child = fork();
  if (child == 0) {
    auto* store = new ResultStore(location(), "question");
    const bool claimed = claim(*store, "finished").state == mine && claim(*store, "in flight").state == mine;
    store->finish("finished", "result");
    _exit(claimed ? 0 : 1);  // as by kill -9: nothing is given back
  }
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ResultStore store(location(), "question");
  EXPECT_EQ(claim(store, "finished").state, done);
  EXPECT_EQ(claim(store, "in flight").state, mine);
}

TEST_P(ResultStores, the_first_result_of_a_key_stays) {
  ResultStore slow(location(), "question", {.lease_s = 0, .renewal_s = 1000}), fast(location(), "question");
  EXPECT_EQ(claim(slow, "key").state, mine);
  EXPECT_EQ(claim(fast, "key").state, mine);
  fast.finish("key", "first");
  slow.finish("key", "second");
  EXPECT_EQ(claim(slow, "key").result, "first");
}

TEST_P(ResultStores, questions_in_one_file_do_not_see_each_other) {
  ResultStore one(location(), "one"), other(location(), "other");
  EXPECT_EQ(claim(one, "key").state, mine);
  one.finish("key", "of one");
  EXPECT_EQ(claim(other, "key").state, mine);
  EXPECT_EQ(one.counts().results, 1);
  EXPECT_EQ(other.counts().results, 0);
  EXPECT_EQ(other.counts().claimed, 1);
  EXPECT_EQ(ResultStore::counts_of(location()).begun, 2);
}

TEST_F(SqliteStores, a_file_that_is_no_store_is_refused_and_left_as_it_is) {
  std::ofstream(file()) << "latency_ms,rate\n12.5,1\n" << std::string(4096, 'x');
  const auto size = fs::file_size(file());
  EXPECT_THAT(refusal(file()), HasSubstr("move it away"));
  EXPECT_EQ(fs::file_size(file()), size);
}

TEST_F(SqliteStores, a_damaged_store_is_refused) {
  {
    ResultStore store(file(), "question");
    for (int i = 0; i < 20; ++i) {
      claim(store, "key" + std::to_string(i));
      store.finish("key" + std::to_string(i), std::string(2000, 'r'));
    }
  }
  std::fstream(file(), std::ios::in | std::ios::out | std::ios::binary).seekp(100) << std::string(20'000, '\x7f');
  EXPECT_THAT(refusal(file()), HasSubstr("move it away"));
}

TEST_F(SqliteStores, databases_of_others_and_of_newer_versions_are_refused) {
  {
    SqliteFile others(file(), SqliteFile::Opening::create, 1);
    others.run("CREATE TABLE contacts (name TEXT)");
  }
  EXPECT_THAT(refusal(file()), HasSubstr("another program"));
  fs::remove(file());
  { const ResultStore store(file(), "question"); }
  SqliteFile(file(), SqliteFile::Opening::must_exist, 1).run("PRAGMA user_version = 2");
  EXPECT_THAT(refusal(file()), HasSubstr("another version of foretoken"));
}

TEST_F(SqliteStores, a_folder_that_is_not_there_is_named) {
  folder_ /= "missing";
  EXPECT_THAT(refusal(file()), HasSubstr("missing"));
  folder_ = folder_.parent_path();
}

TEST_P(ResultStores, processes_and_threads_do_every_piece_of_shared_work_once) {
  std::vector<std::string> keys;
  for (int i = 0; i < 60; ++i) keys.push_back("piece " + std::to_string(i));
  const auto work_here = [&] {
    ResultStore store(location(), "question");
    const std::vector<std::string> results =
        shared_results(store, keys, 2, [&](unsigned, size_t i) { return "result of " + keys[i]; });
    bool right = results.size() == keys.size();
    for (size_t i = 0; right && i < keys.size(); ++i) right = results[i] == "result of " + keys[i];
    return right;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(work_here() ? 0 : 1);
    children.push_back(child);
  }
  EXPECT_TRUE(work_here());
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const StoreCounts counts = ResultStore::counts_of(location());
  EXPECT_EQ(counts.results, 60);
  EXPECT_EQ(counts.begun, 60);
  EXPECT_EQ(counts.claimed, 0);
}

TEST_P(ResultStores, one_that_helps_does_not_wait_for_what_others_hold) {
  ResultStore other(location(), "question");
  const std::vector<std::string> keys = {"a", "b"};
  ASSERT_TRUE(other.claim(std::span(keys).first(1)).mine);
  ResultStore store(location(), "question");
  const auto work = [&](unsigned, size_t i) { return "result of " + keys[i]; };
  const std::vector<std::string> all = shared_results(store, keys, 1, work, [](size_t) { return true; });
  EXPECT_EQ(all, (std::vector<std::string>{"result of a", "result of b"}));
}

TEST_P(ResultStores, work_that_fails_is_left_for_others) {
  const std::vector<std::string> keys = {"good", "bad"};
  const auto fails = [&](unsigned, size_t i) -> std::string {
    if (i == 1) throw std::runtime_error("no result");
    return "result";
  };
  {
    ResultStore store(location(), "question");
    EXPECT_THROW(shared_results(store, keys, 1, fails), std::runtime_error);
  }
  ResultStore store(location(), "question");
  EXPECT_EQ(claim(store, "good").state, done);
  EXPECT_EQ(claim(store, "bad").state, mine);
}

TEST_P(ResultStores, a_look_at_many_keys_tells_what_is_done_and_gives_one_that_is_free) {
  const std::vector<std::string> keys = {"a", "b", "c", "d"};
  ResultStore store(location(), "question"), other(location(), "question");
  EXPECT_EQ(claim(store, "a").state, mine);
  store.finish("a", "result of a");
  EXPECT_EQ(claim(other, "b").state, mine);
  const StoreClaim first = store.claim(keys);
  ASSERT_TRUE(first.mine.has_value());
  EXPECT_EQ(keys[*first.mine], "c");
  EXPECT_EQ(store.claim(keys).mine, 3U);
  const StoreClaim rest = store.claim(keys);
  EXPECT_FALSE(rest.mine.has_value());
  ASSERT_EQ(rest.done.size(), 1U);
  EXPECT_EQ(rest.done.front(), (std::pair<size_t, std::string>(0, "result of a")));
}

TEST_P(ResultStores, keys_and_questions_may_be_long_and_hold_any_bytes) {
  const std::string question = "question \xff\x01'{}\"\\" + std::string(20'000, 'q');
  const std::string key = "key \xff\x01'{}\"\\," + std::string(20'000, 'k');
  ResultStore store(location(), question);
  EXPECT_EQ(claim(store, key).state, mine);
  store.finish(key, "");
  EXPECT_EQ(claim(store, key).state, done);
  EXPECT_EQ(claim(store, key + "k").state, mine);
}

double fastest(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

TEST_P(ResultStores, a_hundred_thousand_results_do_not_slow_it_down) {
  ResultStore full(location(), "full"), empty(location(), "empty");
  EXPECT_EQ(claim(full, "first").state, mine);  // gives the question a row to copy
  full.finish("first", std::string(2000, 'r'));
  fill(
      "INSERT INTO results (question, key, result, begun, owner, until) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
      "SELECT i + 1 FROM n WHERE i < 100000) SELECT question, 'done ' || i, result, 1, '', 0 FROM results, n",
      "INSERT INTO foretoken_results (question, digest, key, result, begun, owner, attempt, until) "
      "SELECT question, sha256(convert_to('done ' || i, 'UTF8')), convert_to('done ' || i, 'UTF8'), result, 1, '', '', "
      "0 FROM foretoken_results, generate_series(1, 100000) AS i");
  EXPECT_EQ(full.counts().results, 100'001);
  // One after the other, and the fastest of each: a machine that does other work slows some of them.
  std::vector<double> seconds_of_full, seconds_of_empty;
  const auto seconds_of = [](ResultStore& store, const std::string& key) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(claim(store, key).state, mine);
    store.finish(key, std::string(2000, 'r'));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (int i = 0; i < 31; ++i) {
    seconds_of_full.push_back(seconds_of(full, "new " + std::to_string(i)));
    seconds_of_empty.push_back(seconds_of(empty, "new " + std::to_string(i)));
  }
  EXPECT_LT(fastest(seconds_of_full), 2 * fastest(seconds_of_empty));
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> keys;
  for (int i = 1; i <= 100'000; ++i) keys.push_back("done " + std::to_string(i));
  const std::vector<std::string> results =
      shared_results(full, keys, 1, [](unsigned, size_t) -> std::string { throw std::runtime_error("all is there"); });
  RecordProperty("claim_and_finish_us_among_100000", std::to_string(1e6 * fastest(seconds_of_full)));
  RecordProperty("claim_and_finish_us_among_few", std::to_string(1e6 * fastest(seconds_of_empty)));
  RecordProperty("read_100000_s",
                 std::to_string(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()));
  EXPECT_EQ(results.size(), keys.size());
  EXPECT_EQ(results.back(), std::string(2000, 'r'));
}

INSTANTIATE_TEST_SUITE_P(Sqlite, ResultStores, testing::Values(Kind::sqlite));
INSTANTIATE_TEST_SUITE_P(NeedsPostgres, ResultStores, testing::Values(Kind::postgres));

class PostgresStoresNeedsPostgres : public testing::Test {
 protected:
  void SetUp() override {
    if (!PostgresServer::missing().empty()) GTEST_SKIP() << PostgresServer::missing();
    PostgresConnection server(PostgresServer::of_this_program().address(), 60);
    server.run("DROP SCHEMA IF EXISTS alone CASCADE");
    server.run("CREATE SCHEMA alone");
    address_ = PostgresServer::of_this_program().address("alone");
  }
  std::string address_;
};

TEST_F(PostgresStoresNeedsPostgres, a_server_that_restarts_in_the_middle_loses_nothing) {
  ResultStore store(address_, "question"), other(address_, "question");
  EXPECT_EQ(claim(store, "before").state, mine);
  store.finish("before", "result");
  EXPECT_EQ(claim(store, "during").state, mine);
  PostgresServer::of_this_program().stop();
  std::thread finishes([&] { store.finish("during", "result"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  PostgresServer::of_this_program().start();
  finishes.join();
  EXPECT_EQ(claim(other, "before").state, done);
  EXPECT_EQ(claim(other, "during").state, done);
  EXPECT_EQ(other.counts().begun, 2);
}

TEST_F(PostgresStoresNeedsPostgres, a_claim_whose_answer_is_lost_is_found_again) {
  const auto lose_connection = [&] {
    PostgresConnection(PostgresServer::of_this_program().address(), 60)
        .run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'foretoken' "
            "AND pid <> pg_backend_pid()");
  };
  ResultStore store(address_, "question");
  for (const char* key : {"a", "b", "c"}) {
    lose_connection();
    EXPECT_EQ(claim(store, key).state, mine);
    lose_connection();
    store.finish(key, key);
  }
  const StoreCounts counts = store.counts();
  EXPECT_EQ(counts.begun, 3);
  EXPECT_EQ(counts.results, 3);
}

TEST_F(PostgresStoresNeedsPostgres, many_workers_at_once_create_the_tables_once) {
  std::vector<std::thread> workers;
  std::atomic<int> claims = 0;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back([&] {
      ResultStore store(address_, "question", {.lease_s = 1000, .renewal_s = 1000});
      const std::vector<std::string> keys = {"a", "b", "c", "d", "e"};
      while (const auto place = store.claim(keys).mine) {
        ++claims;
        store.finish(keys[*place], "result");
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(claims, 5);
  EXPECT_EQ(ResultStore::counts_of(address_).begun, 5);
}

TEST_F(PostgresStoresNeedsPostgres, refusals_say_what_is_wrong_and_hide_the_password) {
  PostgresServer& server = PostgresServer::of_this_program();
  const auto expect_refused = [](const std::string& address, const char* mentions, const char* password) {
    const std::string why = refusal(address);
    EXPECT_THAT(why, HasSubstr(mentions));
    EXPECT_THAT(why, Not(HasSubstr(password)));
  };
  expect_refused(server.address_with("wrong-Secret", "alone"), "password authentication failed", "wrong-Secret");
  expect_refused("postgresql://me:s3cret@127.0.0.1:1/plans", "127.0.0.1", "s3cret");
  expect_refused("postgresql://me:s3cret@host:port/plans", "port", "s3cret");
  expect_refused("postgresql://me:s3%zzcret@host/plans", "%40", "s3%zzcret");
  expect_refused("postgresql:///plans?host=/nowhere&password=s3cret", "/nowhere", "s3cret");
  EXPECT_THAT(refusal(server.address("nowhere")), HasSubstr("schema"));
}

TEST_F(PostgresStoresNeedsPostgres, tables_of_another_version_are_refused) {
  EXPECT_THROW(ResultStore::counts_of(address_), InputError);
  { const ResultStore store(address_, "question"); }
  PostgresConnection(address_, 60).run("UPDATE foretoken_store SET format = 2");
  EXPECT_THAT(refusal(address_), HasSubstr("another version of foretoken"));
}

}  // namespace foretoken::result_store_test
