#include "serving/runs/run_folder.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "serving/load/trace.h"

namespace foretoken::run_folder_test {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RunFolder : public testing::Test {
 protected:
  RunFolder() { fs::create_directories(folder_); }
  ~RunFolder() override { fs::remove_all(folder_); }

  // What reading the folder complains about.
  std::string complaint(const std::string& run, const std::string& requests, const std::string& metrics = "") {
    write_file(folder_ / "run.json", run);
    write_file(folder_ / "requests.csv", requests);
    if (!metrics.empty()) write_file(folder_ / "metrics.csv", metrics);
    try {
      read_run_folder(folder_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  }

  fs::path folder_ = fs::path(testing::TempDir()) / "run_folder_test";
};

MeasuredRun whole_run() {
  MeasuredRun run{.name = "evening",
                  .tool = "vllm bench serve",
                  .tool_version = "0.19.0",
                  .engine = "vllm",
                  .engine_version = "0.19.0",
                  .model = "Llama-3.1-8B",
                  .device = "h100_sxm",
                  .started = "2026-11-17T02:30:00Z",
                  .seconds = 12.5,
                  .deployment = Json::object({{"tensor_parallel_size", 2}}),
                  .load = {.request_rate = std::numeric_limits<double>::infinity(),
                           .burstiness = 1,
                           .max_concurrency = 8,
                           .num_prompts = 3,
                           .input_len = 512.5,
                           .dataset = "random"},
                  .notes = {"two \"quoted\" words"}};
  run.summary.ttft = {.mean = 0.06, .percentiles = {{50, 0.05}, {99.9, 0.3}}};
  run.summary.output_throughput = 812.25;
  run.summary.failed = 1;
  run.stages = {{.start_s = 0, .seconds = 6, .load = {.request_rate = 2}}, {.start_s = 6}};
  run.stages[1].summary.e2e.mean = 3.5;
  run.requests = {{.arrival_s = 0.1,
                   .sent_s = 0.101,
                   .input_tokens = 40,
                   .output_tokens = 3,
                   .cached_tokens = 16,
                   .ttft_s = 0.05,
                   .e2e_s = 0.09,
                   .gaps_s = {0.02, 0.0200000001},
                   .session = 4,
                   .prefix_block_tokens = 16,
                   .prefix_blocks = {7, 8}},
                  {.arrival_s = 0.2, .input_tokens = 20, .output_tokens = 1, .ttft_s = 0.04, .e2e_s = 0.04},
                  {.arrival_s = 6.2,
                   .input_tokens = 20,
                   .stage = 1,
                   .status = MeasuredStatus::failed,
                   .error = "503, \"busy\"\nlater",
                   .retries = 2}};
  run.samples = {{.time_s = 0, .running = 1, .kv_usage = 0.25}, {.time_s = 1, .prefix_queries = 40, .prefix_hits = 16}};
  return run;
}

TEST_F(RunFolder, reads_back_as_it_was_written) {
  const MeasuredRun run = whole_run();
  write_run_folder(folder_, run);
  const MeasuredRun read = read_run_folder(folder_ / "run.json");
  EXPECT_EQ(run_json(read).dump(), run_json(run).dump());
  EXPECT_EQ(run_requests_csv(read), run_requests_csv(run));
  EXPECT_EQ(run_metrics_csv(read), run_metrics_csv(run));
  EXPECT_EQ(read.requests[0].gaps_s, run.requests[0].gaps_s);
  EXPECT_EQ(read.requests[0].prefix_block_tokens, 16);
  EXPECT_EQ(read.requests[2].error, run.requests[2].error);
  EXPECT_EQ(read.requests[2].status, MeasuredStatus::failed);
  EXPECT_EQ(read.load.request_rate, run.load.request_rate);
  EXPECT_FALSE(read.requests[1].sent_s.has_value());
  EXPECT_EQ(read.samples[1].prefix_hits, 16);
}

TEST_F(RunFolder, without_a_name_is_called_as_its_folder) {
  MeasuredRun run = whole_run();
  run.name.clear();
  write_run_folder(folder_, run);
  EXPECT_EQ(read_run_folder(folder_).name, "run_folder_test");
  EXPECT_EQ(read_run_folder(folder_ / "").name, "run_folder_test");
}

TEST_F(RunFolder, replaces_the_files_of_the_run_that_it_held) {
  MeasuredRun run = whole_run();
  write_file(folder_ / "metrics.csv.gz", "time_s\n1\n");
  run.samples.clear();
  write_run_folder(folder_, run);
  EXPECT_TRUE(read_run_folder(folder_).samples.empty());
}

TEST_F(RunFolder, has_requests_that_serve_reads_as_a_trace) {
  write_run_folder(folder_, whole_run());
  const auto trace = open_trace(folder_ / "requests.csv");
  ASSERT_TRUE(trace->next_arrival());
  const Request first = trace->next();
  EXPECT_EQ(first.input_tokens, 40);
  EXPECT_EQ(first.session, 4);
  EXPECT_THAT(first.prefix_blocks, ElementsAre(7, 8));
}

TEST_F(RunFolder, that_is_wrong_is_refused_with_file_line_and_field) {
  const std::string run = R"({"format": 1})", header = "arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n";
  EXPECT_EQ(complaint(run, header + "0,1,1,0.1,0.1\n"), "none");
  EXPECT_THAT(complaint(run, header + "0,1,1,0.1,0.1\n1,1,1,0.2,0.1\n"),
              testing::AllOf(HasSubstr("requests.csv:3"), HasSubstr("e2e_s"), HasSubstr("no shorter than ttft_s")));
  EXPECT_THAT(complaint(run, header + "1,1,1,0.1,0.1\n0,1,1,0.1,0.1\n"), HasSubstr("ascending order"));
  EXPECT_THAT(complaint(run, header + "0,-1,1,0.1,0.1\n"), HasSubstr("input_tokens"));
  EXPECT_THAT(complaint(run, "arrival_s,input_tokens,output_tokens,ttft_s,e2e_s,status\n0,1,1,0.1,0.1,complete\n"),
              HasSubstr("did you mean completed?"));
  EXPECT_THAT(complaint(run, "arrival_s,input_tokens,output_tokens,ttft_s,e2e_s,stage\n0,1,1,0.1,0.1,1\n"),
              HasSubstr("stage"));
  EXPECT_THAT(complaint(run, "arrival_s,input_tokens,output_tokens,itl_s\n0,1,1,0.1 x\n"), HasSubstr("itl_s"));
  EXPECT_THAT(complaint(run, "arrival_s,input_tokens,output_tokens\n0,1,1\n"), HasSubstr("ttft_s and e2e_s"));
  EXPECT_THAT(complaint(R"({"format": 2})", header), HasSubstr("later version"));
  EXPECT_THAT(complaint(R"({"format": 1, "devise": "x"})", header), HasSubstr("did you mean device?"));
  EXPECT_THAT(complaint(R"({"format": 1, "load": {"request_rate": "many"}})", header), HasSubstr("load.request_rate"));
  EXPECT_THAT(complaint(R"({"format": 1, "summary": {"ttft_s": {"median": 1}}})", header), HasSubstr("p50"));
  EXPECT_THAT(complaint(R"({"format": 1, "stages": [{"start_s": 5}, {"start_s": 1}]})", header),
              HasSubstr("stages[1].start_s"));
  EXPECT_THAT(complaint(run, header + "0,1,1,0.1,0.1\n", "time_s,kv_usage\n0,40\n"), HasSubstr("kv_usage"));
}

TEST(MeasuredRunSummary, is_what_a_tool_prints_for_its_requests) {
  MeasuredRun run = whole_run();
  const MeasuredSummary summary = summarize(run);
  EXPECT_EQ(summary.completed, 2);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_DOUBLE_EQ(*summary.ttft.mean, 0.045);
  EXPECT_DOUBLE_EQ(summary.ttft.percentiles.at(50), 0.045);
  EXPECT_DOUBLE_EQ(*summary.tpot.mean, 0.02) << "a single token has no gap";
  EXPECT_NEAR(*summary.request_throughput, 2 / (0.24 - 0.101), 1e-9);
  EXPECT_TRUE(summarize(run, 1).is_empty()) << "nothing of that stage completed";
}

}  // namespace foretoken::run_folder_test
