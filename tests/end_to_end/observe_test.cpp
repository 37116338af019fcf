// observe loads a server: here the program's own endpoint, which knows what it meant.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/http/test_client.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "command_test.h"
#include "library/deployment.h"
#include "server_process.h"
#include "serving/runs/run_folder.h"

namespace foretoken::observe_end_to_end_test {

using testing::HasSubstr;

class Observe : public CommandTest {};

// The mean of a histogram of /metrics, in seconds.
double mean_of(int port, const std::string& name) {
  double sum = 0, count = 0;
  const std::string metrics = ask(port, "GET", "/metrics").body;
  for (const std::string_view line : split(metrics, "\n")) {
    const size_t space = line.rfind(' ');
    if (space == std::string_view::npos) continue;
    const double value = parse_number(line.substr(space + 1)).value_or(0);
    if (line.starts_with(name + "_sum{")) sum += value;
    if (line.starts_with(name + "_count{")) count += value;
  }
  return sum / count;
}

// A machine that is busy with other work wakes both programs late.
bool wakes_on_time() {
  using Clock = std::chrono::steady_clock;
  constexpr auto nap = std::chrono::milliseconds(2), lateness = std::chrono::milliseconds(1);
  int late = 0;
  for (int i = 0; i < 100; ++i) {
    const Clock::time_point start = Clock::now();
    std::this_thread::sleep_for(nap);
    if (Clock::now() - start > nap + lateness) ++late;
  }
  return late <= 5;
}

class ObserveNeedsIdleMachine : public Observe {};
class SlowObserve : public Observe {};  // half a minute of real time

TEST_F(ObserveNeedsIdleMachine, times_agree_with_the_server_within_two_percent) {
  constexpr int tries = 3;
  double ttft = 0, e2el = 0;  // measured over meant
  bool on_time = false;
  for (int i = 0; i < tries && !on_time; ++i) {
    on_time = wakes_on_time();
    ServerProcess server("endpoint --model Llama-3.1-8B --device l4 --max-model-len 8192");
    const Outcome run = run_foretoken(
        fmt::format("observe --url http://127.0.0.1:{} --request-rate 4 --num-prompts 20 --random-input-len 512 "
                    "--random-output-len 24 --json",
                    server.port));
    ASSERT_EQ(run.status, 0) << run.err;
    const Json json = parse_json(run.out, "answer");
    const JsonView answer(json, "answer");
    ttft = 1e-3 * answer.at("mean_ttft_ms").number() / mean_of(server.port, "vllm:time_to_first_token_seconds");
    e2el = 1e-3 * answer.at("mean_e2el_ms").number() / mean_of(server.port, "vllm:e2e_request_latency_seconds");
    on_time = on_time && wakes_on_time();
  }
  if (!on_time) GTEST_SKIP() << "this machine is too busy to keep time";
  EXPECT_NEAR(ttft, 1, 0.02);
  EXPECT_NEAR(e2el, 1, 0.02);
}

// A server whose host, links and kernels were changed on purpose: what its clients measured tells by how much.
TEST_F(SlowObserve, calibration_recovers_constants_that_were_changed) {
  const std::string flags = "--stack vllm-0.11 --no-async-scheduling --max-model-len 8192";
  CalibratedDeployment changed{.engine = "vllm", .stack = "vllm-0.11", .device = "h100_sxm"};
  changed.others = prior_of_constants();
  const std::pair<DeploymentConstant, double> meant[] = {
      {DeploymentConstant::host, std::log((1900.0 + 400) / 1900)},  // of this stack: 1.9 ms for each step
      {DeploymentConstant::level, std::log(1.1)},
      {DeploymentConstant::collectives, std::log(2.0)},
  };
  for (const auto& [constant, value] : meant) at(changed.others.mean, constant) = value;
  write_file(path("changed.json"), deployment_json(changed).dump());

  struct Run {
    int tensor, rate, input;
  };
  std::string runs;
  // The last, a few short requests on many GPUs, tells the host's time from the kernels'.
  for (const Run& run : {Run{1, 2, 200}, Run{1, 8, 3000}, Run{4, 12, 3000}, Run{8, 12, 3000}, Run{8, 2, 200}}) {
    ServerProcess server(fmt::format("endpoint --model Llama-3.1-8B --device h100_sxm {} -tp {} --deployment {}", flags,
                                     run.tensor, path("changed.json")));
    const std::string out = path(fmt::format("tp{}_{}", run.tensor, run.input));
    const Outcome observed = run_foretoken(
        fmt::format("observe --url http://127.0.0.1:{} --request-rate {} --num-prompts {} --random-input-len {} "
                    "--random-output-len 64 --launch-line 'vllm serve Llama-3.1-8B --tensor-parallel-size {}' "
                    "--device h100_sxm --out {}",
                    server.port, run.rate, 5 * run.rate, run.input, run.tensor, out));
    ASSERT_EQ(observed.status, 0) << observed.err;
    runs += " " + out;
  }
  const Outcome calibrated =
      run_foretoken(fmt::format("calibrate{} {} --no-suggest --out {}", runs, flags, path("found.json")));
  ASSERT_EQ(calibrated.status, 0) << calibrated.err;
  if (!wakes_on_time()) GTEST_SKIP() << "this machine is too busy to keep time";
  const ConstantPosterior found = read_deployment(path("found.json")).engines.front().constants;
  for (const auto& [constant, value] : meant) {
    const DeploymentConstantKind& kind = deployment_constant_kinds()[static_cast<size_t>(constant)];
    EXPECT_NEAR(at(found.mean, constant), value, 1.645 * found.sd(constant)) << kind.name;
    EXPECT_LT(found.sd(constant), 0.75 * kind.prior_sd) << kind.name;
  }
}

TEST_F(Observe, writes_a_run_that_is_a_trace) {
  ServerProcess server("endpoint --model Llama-3.1-8B --device l4 --max-model-len 8192 --served-model-name mine");
  const std::string out = path("run");
  const Outcome run = run_foretoken(
      fmt::format("observe --url http://127.0.0.1:{} --request-rate 4 --num-prompts 20 --random-input-len 512 "
                  "--random-output-len 24 --metrics-interval 0.5 --launch-line 'vllm serve Llama-3.1-8B' "
                  "--device l4 --out {} --json",
                  server.port, out));
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  const JsonView answer(json, "answer");
  EXPECT_EQ(answer.at("completed").integer(), 20);
  EXPECT_EQ(answer.at("failed").integer(), 0);
  EXPECT_EQ(answer.at("model_id").string(), "mine");
  EXPECT_EQ(answer.at("total_output_tokens").integer(), 20 * 24);

  const MeasuredRun written = read_run_folder(out);
  EXPECT_EQ(written.requests.size(), 20U);
  EXPECT_EQ(written.requests.front().input_tokens, 512);
  EXPECT_EQ(written.requests.front().gaps_s.size(), 23U);
  EXPECT_GE(written.samples.size(), 8U);
  EXPECT_EQ(written.samples.back().output_tokens, 480);
  EXPECT_EQ(written.engine, "vllm");
  EXPECT_EQ(written.deployment.find("device")->string(), "l4");
  EXPECT_EQ(written.deployment.find("engine")->string(), "vllm");
  // The run is a trace.
  EXPECT_EQ(run_foretoken("serve --model Llama-3.1-8B --device l4 --max-model-len 8192 --no-intervals --trace " + out +
                          "/requests.csv")
                .status,
            0);
  expect_refused(run_foretoken(fmt::format("observe --url http://127.0.0.1:{} --out {}", server.port, out)),
                 "--overwrite");
}

TEST_F(Observe, chats_failures_and_retries_are_counted) {
  ServerProcess server("endpoint --model Llama-3.1-8B --device h100_sxm --time-scale 50 --failure-rate 0.3 --seed 5");
  const std::string line = fmt::format(
      "observe --url http://127.0.0.1:{}/v1 --api chat --max-concurrency 8 --num-prompts 60 "
      "--random-input-len 64 --random-output-len 16 --num-warmups 8 --json",
      server.port);
  const Outcome run = run_foretoken(line);
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  const JsonView answer(json, "answer");
  EXPECT_EQ(answer.at("completed").integer() + answer.at("failed").integer(), 60);
  EXPECT_GT(answer.at("failed").integer(), 5);
  EXPECT_THAT(answer.at("errors").members().front().first, HasSubstr("status 500"));
}

// A request a second would take 20 seconds, and never have two in flight.
TEST_F(Observe, a_limit_on_those_in_flight_without_a_rate_is_reached) {
  ServerProcess server("endpoint --model Llama-3.1-8B --device l4 --max-model-len 8192 --time-scale 20");
  const std::string out = path("run");
  const std::string line = fmt::format(
      "observe --url http://127.0.0.1:{} --max-concurrency 5 --num-prompts 20 --random-input-len 64 "
      "--random-output-len 64 --metrics-interval 0 --json --out {}",
      server.port, out);
  const Outcome run = run_foretoken(line);
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  EXPECT_LT(JsonView(json, "answer").at("duration").number(), 15);
  const MeasuredRun written = read_run_folder(out);
  ASSERT_EQ(written.requests.size(), 20U);
  const double first_end = written.requests.front().sent() + written.requests.front().e2e_s.value();
  EXPECT_LT(written.requests[4].sent(), first_end);
}

TEST_F(Observe, each_address_of_a_host_is_tried) {
  ServerProcess server("endpoint --model Llama-3.1-8B --device l4 --max-model-len 8192");
  const Outcome run = run_foretoken(
      fmt::format("observe --url http://localhost:{} --request-rate inf --num-prompts 2 --random-input-len 16 "
                  "--random-output-len 2 --json",
                  server.port));
  ASSERT_EQ(run.status, 0) << run.err << " where localhost is ::1 too";
}

TEST_F(Observe, a_run_ends_when_it_must) {
  ServerProcess server("endpoint --model Llama-3.1-8B --device l4 --max-model-len 8192");
  const Outcome run = run_foretoken(
      fmt::format("observe --url http://127.0.0.1:{} --request-rate 4 --num-prompts 100 --random-input-len 32 "
                  "--random-output-len 4 --max-seconds 3 --json",
                  server.port));
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  EXPECT_LT(JsonView(json, "answer").at("duration").number(), 15) << "all of them would take 25 seconds";
}

TEST_F(Observe, what_is_no_server_is_refused) {
  expect_refused(run_foretoken("observe --url ftp://example.org"), "https://");
  expect_refused(run_foretoken("observe --url http://127.0.0.1:1"), "--url");
  const Outcome run = run_foretoken("observe --url http://127.0.0.1:1 --model m --num-prompts 2 --request-rate inf");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_THAT(run.out, HasSubstr("No request was answered."));
}

TEST_F(Observe, results_of_other_tools_become_a_run_folder) {
  const std::string samples = FORETOKEN_SOURCE_DIR "/tests/fuzz/corpus/run_formats_fuzz/";
  const std::string out = path("imported");
  const Outcome run = run_foretoken(fmt::format(
      "import run {0}vllm_bench.json,{0}vllm_start.log,{0}prometheus_range.json --device h100_sxm --as-run {1}",
      samples, out));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Successful requests:                     2"));
  const MeasuredRun read = read_run_folder(out);
  EXPECT_EQ(read.requests.size(), 3U);
  EXPECT_EQ(read.samples.size(), 2U);
  EXPECT_EQ(read.engine_version, "0.10.2");
  EXPECT_EQ(read.deployment.find("device")->string(), "h100_sxm");
  expect_refused(run_foretoken(fmt::format("import run {}vllm_bench.json --device h1000", samples)), "h100");
  expect_refused(run_foretoken("import run " + write("other.json", "{\"a\": 1}")), "GuideLLM");
}

// Two thousand streams at once beside the server, on whatever cores there are: every token arrives.
TEST_F(Observe, two_thousand_streams_at_once) {
  ServerProcess server(
      "endpoint --model Llama-3.1-8B --device l4 --max-model-len 4096 --replicas 8 --max-connections 4000");
  const Outcome run = run_foretoken(
      fmt::format("observe --url http://127.0.0.1:{} --request-rate 1000 --num-prompts 2000 --max-connections 2000 "
                  "--random-input-len 16 --random-output-len 64 --json",
                  server.port));
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "answer");
  const JsonView answer(json, "answer");
  EXPECT_EQ(answer.at("completed").integer(), 2000);
  EXPECT_EQ(answer.at("total_output_tokens").integer(), 2000 * 64);
  EXPECT_GT(answer.at("max_concurrent_requests").integer(), 1500);
}

}  // namespace foretoken::observe_end_to_end_test
