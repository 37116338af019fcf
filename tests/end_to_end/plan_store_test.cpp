// Searches that are killed, go on, and are shared by several processes: the program itself, with a store of results.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "command_test.h"
#include "plan/store/postgres_connection.h"
#include "plan/store/result_store.h"
#include "postgres_server.h"
#include "run.h"

namespace foretoken::plan_store_test {

// About twenty results, of a few hundredths of a second each.
constexpr const char* question =
    "plan serve --model Llama-3.1-8B --hardware h100_sxm:2 --slo ttft:500,tpot:50 --engines vllm,sglang "
    "--quantizations config,fp8 --kv-cache-dtype auto -pp 1 --max-num-seqs 0,64 --max-num-batched-tokens 0 "
    "--dataset-name lognormal --random-input-len 512 --random-output-len 64 --num-prompts 1500 --tier roofline "
    "--most-simulated 24 --finalists 3 --json --threads 1 ";

// A program that runs by itself, its output in a file.
class Process {
 public:
  Process(const std::string& line, std::string output) : output_(std::move(output)) {
    pid_ = fork();
    if (pid_ != 0) return;
    const int file = open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", ("exec " + line).c_str(), nullptr);
    _exit(127);
  }
  ~Process() {
    if (!ended()) kill_now();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool ended() {
    if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
    return pid_ <= 0;
  }
  void kill_now() {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status_, 0);
    pid_ = 0;
  }
  // What it printed, once it has ended well.
  std::string output() {
    if (pid_ > 0) waitpid(pid_, &status_, 0);
    pid_ = 0;
    EXPECT_EQ(status_, 0);
    return read_file(output_, 1U << 28U);
  }

 private:
  std::string output_;
  pid_t pid_ = 0;
  int status_ = -1;
};

class PlanStore : public CommandTest {
 protected:
  std::string store() const { return path("results.sqlite"); }
  std::string line() const { return line_with(store()); }
  static std::string line_with(const std::string& store) {
    return std::string(FORETOKEN_PROGRAM " ") + question + "--store '" + store + "'";
  }

  StoreCounts counts() const { return counts_of(store()); }
  static StoreCounts counts_of(const std::string& store) {
    try {
      return ResultStore::counts_of(store);
    } catch (const InputError&) {
      return {};  // nobody has begun it yet
    }
  }

  static const std::string& answer_without_store() {
    static const std::string answer = run_foretoken(question).out;
    return answer;
  }
};

TEST_F(PlanStore, a_search_that_is_killed_again_and_again_ends_as_if_nothing_had_happened) {
  int kills = 0;
  for (int round = 0; round < 4; ++round) {
    const int64_t before = counts().results;
    Process search(line(), path("killed.json"));
    while (!search.ended() && counts().results < before + 4) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (search.ended()) break;
    search.kill_now();
    ++kills;
  }
  EXPECT_GE(kills, 2) << "the search is too short to be killed";
  EXPECT_EQ(Process(line(), path("finished.json")).output(), answer_without_store());
  const StoreCounts after = counts();
  EXPECT_EQ(after.claimed, 0);
  EXPECT_LE(after.begun, after.results + 2 * kills) << "a result and one of its runs were in flight at each kill";

  EXPECT_EQ(Process(line(), path("again.json")).output(), answer_without_store());
  EXPECT_EQ(counts().begun, after.begun) << "all is there: nothing to compute";
}

TEST_F(PlanStore, several_ranks_share_the_work_and_one_answers) {
  for (const int ranks : {2, 3}) {
    std::filesystem::remove(store());
    std::vector<std::unique_ptr<Process>> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string says =
          "env OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + " OMPI_COMM_WORLD_SIZE=" + std::to_string(ranks) + " ";
      processes.push_back(std::make_unique<Process>(says + line(), path("rank" + std::to_string(rank))));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(processes[static_cast<size_t>(rank)]->output(), rank == 0 ? answer_without_store() : "");
    }
    EXPECT_EQ(counts().begun, counts().results);
    EXPECT_EQ(counts().claimed, 0);
  }
}

TEST_F(PlanStore, the_others_finish_what_a_killed_rank_has_begun) {
  Process killed(line() + " --rank 1 --ranks 2", path("killed"));
  while (!killed.ended() && counts().claimed == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Process answers(line() + " --rank 0 --ranks 2", path("answers"));
  if (!killed.ended()) killed.kill_now();
  EXPECT_EQ(answers.output(), answer_without_store());
  EXPECT_LE(counts().begun, counts().results + 1);
}

TEST_F(PlanStore, tasks_of_a_slurm_array_may_run_one_after_the_other) {
  const std::string array = "env SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_ID=";
  EXPECT_EQ(Process(array + "2 " + line(), path("second")).output(), "");
  const int64_t begun = counts().begun;
  EXPECT_EQ(Process(array + "1 " + line(), path("first")).output(), answer_without_store());
  EXPECT_EQ(counts().begun, begun);
}

using PlanStoreNeedsMpi = PlanStore;
TEST_F(PlanStoreNeedsMpi, mpirun_starts_ranks_that_share_the_work) {
  if (std::system("mpirun --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun here (package openmpi-bin)";
  const std::string mpirun =
      "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 2 ";
  EXPECT_EQ(Process(mpirun + line(), path("mpirun.json")).output(), answer_without_store());
  EXPECT_EQ(counts().begun, counts().results);
}

class PlanStoreNeedsPostgres : public PlanStore {
 protected:
  void SetUp() override {
    if (!PostgresServer::missing().empty()) GTEST_SKIP() << PostgresServer::missing();
    PostgresConnection server(PostgresServer::of_this_program().address(), 60);
    server.run("DROP SCHEMA IF EXISTS plans CASCADE");
    server.run("CREATE SCHEMA plans");
    address_ = PostgresServer::of_this_program().address("plans");
  }
  void wait_for_results(int64_t results) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (counts_of(address_).results < results) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "the workers do not work";
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  // A worker that begins while there is no server is refused, as a wrong address is.
  static void wait_for_connections(size_t connections) {
    PostgresConnection server(PostgresServer::of_this_program().address(), 60);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (server.run("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'").size() <= connections) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "the workers do not connect";
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  std::string address_;
};

TEST_F(PlanStoreNeedsPostgres, eight_workers_two_killed_and_a_server_that_restarts_give_the_answer_of_one_process) {
  constexpr int workers = 8;
  std::vector<std::unique_ptr<Process>> processes;
  for (int rank = 0; rank < workers; ++rank) {
    const std::string number = " --ranks 8 --rank " + std::to_string(rank);
    processes.push_back(std::make_unique<Process>(line_with(address_) + number, path("worker" + std::to_string(rank))));
  }
  wait_for_connections(workers);
  wait_for_results(3);
  for (const size_t rank : {5U, 6U}) {
    ASSERT_FALSE(processes[rank]->ended()) << "the search is too short to be killed";
    processes[rank]->kill_now();
  }
  wait_for_results(6);
  ASSERT_FALSE(processes[0]->ended()) << "the search is too short for a restart of the server";
  PostgresServer::of_this_program().stop();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  PostgresServer::of_this_program().start();
  for (const size_t rank : {0U, 1U, 2U, 3U, 4U, 7U}) {
    EXPECT_EQ(processes[rank]->output(), rank == 0 ? answer_without_store() : "");
  }
  const StoreCounts after = counts_of(address_);
  EXPECT_EQ(after.claimed, 0);
  EXPECT_LE(after.begun, after.results + 2) << "what the killed workers had begun, and nothing else, is done again";

  EXPECT_EQ(Process(line_with(address_), path("again.json")).output(), answer_without_store());
  EXPECT_EQ(counts_of(address_).begun, after.begun) << "all is there: nothing to compute";
}

TEST_F(PlanStoreNeedsPostgres, pods_of_a_job_join_the_search) {
  Process second("env JOB_COMPLETION_INDEX=1 " + line_with(address_), path("second"));
  Process first("env JOB_COMPLETION_INDEX=0 " + line_with(address_), path("first"));
  EXPECT_EQ(second.output(), "");
  EXPECT_EQ(first.output(), answer_without_store());
  EXPECT_EQ(counts_of(address_).begun, counts_of(address_).results);
}

TEST_F(PlanStoreNeedsPostgres, passwords_appear_nowhere) {
  const std::string password = "wrong-Secret", address = PostgresServer::of_this_program().address_with(password);
  const std::string asked = std::string(question) + "--store '" + address + "'";
  const Outcome refused = run_foretoken(asked);
  expect_refused(refused, "password authentication failed");
  EXPECT_EQ(refused.err.find(password), std::string::npos) << refused.err;
  const Outcome printed = run_foretoken(asked + " --print-spec");
  EXPECT_EQ(printed.status, 0) << printed.err;
  EXPECT_EQ(printed.out.find(password), std::string::npos) << printed.out;
  const Outcome misplaced = run_foretoken("plan serve '" + address + "'");
  EXPECT_EQ(misplaced.status, 2);
  EXPECT_EQ(misplaced.err.find(password), std::string::npos) << misplaced.err;
  const std::string page = path("page.html");
  run_foretoken(std::string(question) + "--store '" + address_ + "' --html " + page);
  const std::string html = read_file(page, 1U << 28U);
  EXPECT_NE(html.find("tester:***@"), std::string::npos);
  EXPECT_EQ(html.find(PostgresServer::password), std::string::npos);
}

TEST_F(PlanStore, ranks_without_a_store_and_stores_that_are_none_are_refused) {
  const std::string asked = question;
  expect_refused(run_foretoken(asked + "--ranks 2"), "--store");
  expect_refused(run_foretoken(asked + "--rank 1"), "--ranks");
  expect_refused(run_foretoken(asked + "--rank 2 --ranks 2"), "a rank below --ranks 2");
  expect_refused(run_foretoken(asked + "--store " + write("notes.txt", std::string(2000, 'n'))), "move it away");
  expect_refused(run_foretoken(asked + "--store " + path("missing/results.sqlite")), "missing");
}

}  // namespace foretoken::plan_store_test
