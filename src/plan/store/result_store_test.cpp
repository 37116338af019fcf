#include "plan/store/result_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/store/shared_work.h"
#include "plan/store/sqlite_file.h"

namespace foretoken::result_store_test {

using testing::HasSubstr;
namespace fs = std::filesystem;

class ResultStores : public testing::Test {
 protected:
  ResultStores()
      : folder_(fs::path(testing::TempDir()) /
                (std::string("foretoken_store_") + testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
                 std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ResultStores() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  fs::path file() const { return folder_ / "results.sqlite"; }

  // What opening the file is refused with.
  std::string refusal() const {
    try {
      const ResultStore store(file(), "question");
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing";
  }

  fs::path folder_;
};

constexpr auto done = ResultStore::State::done;
constexpr auto mine = ResultStore::State::mine;
constexpr auto held = ResultStore::State::held;

TEST_F(ResultStores, a_result_outlives_the_process_that_worked_it_out) {
  const std::string text = std::string("{\"x\": 0.1}\n") + '\0' + "\xc3\xa9";
  {
    ResultStore store(file(), "question");
    EXPECT_EQ(store.claim("key").state, mine);
    store.finish("key", text);
  }
  ResultStore store(file(), "question");
  const ResultStore::Claim claim = store.claim("key");
  EXPECT_EQ(claim.state, done);
  EXPECT_EQ(claim.result, text);
}

TEST_F(ResultStores, what_one_claims_others_leave_alone_until_it_is_given_back) {
  auto first = std::make_unique<ResultStore>(file(), "question");
  ResultStore second(file(), "question");
  EXPECT_EQ(first->claim("key").state, mine);
  EXPECT_EQ(second.claim("key").state, held);
  EXPECT_EQ(first->claim("key").state, held);
  first.reset();
  EXPECT_EQ(second.claim("key").state, mine);
  EXPECT_EQ(second.counts().begun, 2);
}

TEST_F(ResultStores, a_claim_is_renewed_until_its_work_is_finished) {
  ResultStore store(file(), "question", {.lease_s = 1000, .renewal_s = 0.001});
  EXPECT_EQ(store.claim("key").state, mine);
  SqliteFile looks(file(), SqliteFile::Opening::must_exist, 60);
  const auto until = [&] { return std::get<double>(looks.run("SELECT until FROM results").value().at(0)); };
  const double first = until();
  while (until() == first) std::this_thread::yield();
  EXPECT_GT(until(), first);
  store.finish("key", "result");
  EXPECT_EQ(store.claim("key").state, done);
}

TEST_F(ResultStores, a_claim_whose_time_is_over_is_free) {
  ResultStore asleep(file(), "question", {.lease_s = 0, .renewal_s = 1000}), other(file(), "question");
  EXPECT_EQ(asleep.claim("key").state, mine);
  EXPECT_EQ(other.claim("key").state, mine);
  EXPECT_EQ(asleep.claim("key").state, held);
}

TEST_F(ResultStores, claims_of_a_killed_process_are_free_at_once) {
  const pid_t child = fork();
  if (child == 0) {
    auto* store = new ResultStore(file(), "question");
    const bool claimed = store->claim("finished").state == mine && store->claim("in flight").state == mine;
    store->finish("finished", "result");
    _exit(claimed ? 0 : 1);  // as by kill -9: nothing is given back
  }
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ResultStore store(file(), "question");
  EXPECT_EQ(store.claim("finished").state, done);
  EXPECT_EQ(store.claim("in flight").state, mine);
}

TEST_F(ResultStores, the_first_result_of_a_key_stays) {
  ResultStore slow(file(), "question", {.lease_s = 0, .renewal_s = 1000}), fast(file(), "question");
  EXPECT_EQ(slow.claim("key").state, mine);
  EXPECT_EQ(fast.claim("key").state, mine);
  fast.finish("key", "first");
  slow.finish("key", "second");
  EXPECT_EQ(slow.claim("key").result, "first");
}

TEST_F(ResultStores, questions_in_one_file_do_not_see_each_other) {
  ResultStore one(file(), "one"), other(file(), "other");
  EXPECT_EQ(one.claim("key").state, mine);
  one.finish("key", "of one");
  EXPECT_EQ(other.claim("key").state, mine);
  EXPECT_EQ(one.counts().results, 1);
  EXPECT_EQ(other.counts().results, 0);
  EXPECT_EQ(other.counts().claimed, 1);
  EXPECT_EQ(ResultStore::counts_of(file()).begun, 2);
}

TEST_F(ResultStores, a_file_that_is_no_store_is_refused_and_left_as_it_is) {
  std::ofstream(file()) << "latency_ms,rate\n12.5,1\n" << std::string(4096, 'x');
  const auto size = fs::file_size(file());
  EXPECT_THAT(refusal(), HasSubstr("move it away"));
  EXPECT_EQ(fs::file_size(file()), size);
}

TEST_F(ResultStores, a_damaged_store_is_refused) {
  {
    ResultStore store(file(), "question");
    for (int i = 0; i < 20; ++i) {
      store.claim("key" + std::to_string(i));
      store.finish("key" + std::to_string(i), std::string(2000, 'r'));
    }
  }
  std::fstream(file(), std::ios::in | std::ios::out | std::ios::binary).seekp(100) << std::string(20'000, '\x7f');
  EXPECT_THAT(refusal(), HasSubstr("move it away"));
}

TEST_F(ResultStores, databases_of_others_and_of_newer_versions_are_refused) {
  {
    SqliteFile others(file(), SqliteFile::Opening::create, 1);
    others.run("CREATE TABLE contacts (name TEXT)");
  }
  EXPECT_THAT(refusal(), HasSubstr("another program"));
  fs::remove(file());
  { const ResultStore store(file(), "question"); }
  SqliteFile(file(), SqliteFile::Opening::must_exist, 1).run("PRAGMA user_version = 2");
  EXPECT_THAT(refusal(), HasSubstr("another version of foretoken"));
}

TEST_F(ResultStores, a_folder_that_is_not_there_is_named) {
  folder_ /= "missing";
  EXPECT_THAT(refusal(), HasSubstr("missing"));
  folder_ = folder_.parent_path();
}

TEST_F(ResultStores, processes_and_threads_do_every_piece_of_shared_work_once) {
  std::vector<std::string> keys;
  for (int i = 0; i < 60; ++i) keys.push_back("piece " + std::to_string(i));
  const auto work_here = [&] {
    ResultStore store(file(), "question");
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
  const StoreCounts counts = ResultStore::counts_of(file());
  EXPECT_EQ(counts.results, 60);
  EXPECT_EQ(counts.begun, 60);
  EXPECT_EQ(counts.claimed, 0);
}

TEST_F(ResultStores, work_that_fails_is_left_for_others) {
  const std::vector<std::string> keys = {"good", "bad"};
  const auto fails = [&](unsigned, size_t i) -> std::string {
    if (i == 1) throw std::runtime_error("no result");
    return "result";
  };
  {
    ResultStore store(file(), "question");
    EXPECT_THROW(shared_results(store, keys, 1, fails), std::runtime_error);
  }
  ResultStore store(file(), "question");
  EXPECT_EQ(store.claim("good").state, done);
  EXPECT_EQ(store.claim("bad").state, mine);
}

}  // namespace foretoken::result_store_test
