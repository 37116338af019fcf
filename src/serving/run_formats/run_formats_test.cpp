#include "serving/run_formats/run_formats.h"

#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/runs/run_folder.h"
#include "serving/tokenizer/token_counter.h"

namespace foretoken::run_formats_test {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path samples = FORETOKEN_SOURCE_DIR "/tests/fuzz/corpus/run_formats_fuzz";

MeasuredRun read(const char* name) {
  return read_run(samples / name);
}

std::string wrong(std::string_view text) {
  try {
    parse_run(text, "file");
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing is wrong";
}

TEST(RunFormats, vllm_bench_with_and_without_details) {
  const MeasuredRun run = read("vllm_bench.json");
  EXPECT_EQ(run.tool, "vllm bench serve");
  EXPECT_EQ(run.engine, "vllm");
  EXPECT_EQ(run.name, "vllm_bench");
  EXPECT_EQ(run.load.request_rate, 2);
  EXPECT_EQ(run.summary.ttft.mean, 0.0565);
  EXPECT_EQ(run.summary.ttft.percentiles.at(50), 0.0565);
  EXPECT_NEAR(run.summary.e2e.percentiles.at(99), 0.0826, 1e-12);
  ASSERT_EQ(run.requests.size(), 3U);
  EXPECT_EQ(run.requests[0].ttft_s, 0.062);  // in order of arrival
  EXPECT_NEAR(*run.requests[0].e2e_s, 0.0827, 1e-12);
  EXPECT_EQ(run.requests[1].arrival_s, 0.75);
  EXPECT_THAT(run.requests[1].gaps_s, ElementsAre(0.0101, 0.0099));
  EXPECT_EQ(run.requests[2].status, MeasuredStatus::failed);
  EXPECT_EQ(run.requests[2].error, "Connection reset");
  check_run(run, "run");
  EXPECT_THAT(wrong(R"({"mean_ttft_ms": 1, "request_throughput": 1, "completed": 1, "input_lens": [1, 2],
                        "output_lens": [1]})"),
              HasSubstr("output_lens"));
}

TEST(RunFormats, the_last_run_of_sglangs_file) {
  const MeasuredRun run = read("sglang_bench.jsonl");
  EXPECT_EQ(run.tool, "sglang.bench_serving");
  EXPECT_EQ(run.engine_version, "0.5.4");
  EXPECT_EQ(run.summary.completed, 64);
  EXPECT_EQ(run.summary.e2e.mean, 9.8001);
  EXPECT_EQ(run.load.request_rate, std::numeric_limits<double>::infinity());
  EXPECT_EQ(run.deployment.find("tensor_parallel_size")->integer(), 2);
  EXPECT_THAT(run.notes, ElementsAre(HasSubstr("last of 2 runs")));
}

TEST(RunFormats, benchmarks_of_guidellm_are_stages) {
  const MeasuredRun run = read("guidellm.json");
  EXPECT_EQ(run.tool_version, "0.5.0");
  ASSERT_EQ(run.stages.size(), 2U);
  EXPECT_NEAR(run.stages[1].start_s, 39.9, 1e-6);
  ASSERT_EQ(run.requests.size(), 5U);
  EXPECT_NEAR(*run.requests[0].ttft_s, 0.0355, 1e-12);
  EXPECT_NEAR(run.requests[1].arrival_s, 0.4, 1e-6);
  EXPECT_EQ(run.requests[2].status, MeasuredStatus::failed);
  EXPECT_EQ(run.requests[4].stage, 1);
  EXPECT_EQ(run.requests[4].status, MeasuredStatus::cancelled);
}

TEST(RunFormats, aiperf_and_genai_perf) {
  const MeasuredRun run = read("aiperf_records.jsonl");
  ASSERT_EQ(run.requests.size(), 2U);
  EXPECT_NEAR(*run.requests[0].ttft_s, 0.2559, 1e-12);
  EXPECT_EQ(run.requests[0].gaps_s.size(), 8U);
  EXPECT_NEAR(run.requests[1].arrival_s, 1, 1e-6);
  EXPECT_EQ(run.requests[1].error, "the queue is full");
  const MeasuredRun summary = read("genai_perf.json");
  EXPECT_EQ(summary.tool, "genai-perf");
  EXPECT_NEAR(*summary.summary.ttft.mean, 0.095, 1e-12);
  EXPECT_EQ(summary.summary.completed, 100);
  EXPECT_EQ(summary.load.max_concurrency, 10);
  EXPECT_EQ(summary.load.output_len, 199);
}

TEST(RunFormats, inference_perf) {
  const MeasuredRun run = read("inference_perf.json");
  EXPECT_EQ(run.summary.e2e.mean, 0.483);
  EXPECT_EQ(run.summary.e2e.percentiles.at(99.9), 0.4942);
  EXPECT_EQ(run.load.request_rate, 1);
  EXPECT_EQ(run.load.input_len, 200.68);
  const MeasuredRun requests = read("inference_perf_requests.json");
  ASSERT_EQ(requests.requests.size(), 3U);
  EXPECT_NEAR(*requests.requests[0].ttft_s, 0.1, 1e-9);
  EXPECT_EQ(requests.requests[0].output_tokens, 2);
  EXPECT_THAT(requests.requests[1].gaps_s, ElementsAre(DoubleNear(0.03, 1e-9), DoubleNear(0.03, 1e-9)));
  EXPECT_EQ(requests.requests[2].error, "no answer");
}

TEST(RunFormats, llmperf) {
  const MeasuredRun run = read("llmperf_summary.json");
  EXPECT_EQ(run.summary.ttft.mean, 0.2538);
  EXPECT_EQ(run.summary.tpot.percentiles.at(99), 0.0163);
  EXPECT_NEAR(*run.summary.request_throughput, 1.87, 1e-9);
  const MeasuredRun responses = read("llmperf_responses.json");
  EXPECT_TRUE(responses.requests.empty());
  EXPECT_NEAR(*responses.summary.ttft.mean, 0.25, 1e-12);
  EXPECT_EQ(responses.summary.failed, 1);
  EXPECT_FALSE(responses.summary.request_throughput);
}

TEST(RunFormats, a_trace_of_blis_with_its_header) {
  const MeasuredRun run = read("blis_trace.csv");
  EXPECT_EQ(run.model, "Qwen/Qwen3-14B");
  EXPECT_EQ(run.deployment.find("tensor_parallel_size")->integer(), 2);
  ASSERT_EQ(run.requests.size(), 2U);
  EXPECT_EQ(run.requests[0].input_tokens, 514);
  EXPECT_NEAR(*run.requests[0].ttft_s, 0.0518, 1e-9);
  EXPECT_NEAR(*run.requests[0].e2e_s, 0.2098, 1e-9);
  EXPECT_EQ(run.requests[0].session, 0);
  EXPECT_EQ(run.requests[1].error, "refused");
}

TEST(RunFormats, a_summary_of_loadgen) {
  const MeasuredRun run = read("mlperf_summary.txt");
  EXPECT_EQ(run.summary.request_throughput, 74.96);
  EXPECT_EQ(run.load.request_rate, 76.17);
  EXPECT_NEAR(*run.summary.ttft.mean, 0.363332124, 1e-12);
  EXPECT_NEAR(run.summary.tpot.percentiles.at(99), 0.154075958, 1e-12);
  EXPECT_NEAR(run.summary.e2e.percentiles.at(50), 16.917446649, 1e-9);
  EXPECT_THAT(wrong("MLPerf Results Summary\nMean latency (ns) : many\n"), HasSubstr("file:2"));
}

TEST(RunFormats, samples_of_prometheus) {
  const MeasuredRun run = read("prometheus_range.json");
  ASSERT_EQ(run.samples.size(), 2U);
  EXPECT_EQ(run.samples[0].running, 4);
  EXPECT_EQ(run.samples[0].kv_usage, 0.25);
  EXPECT_EQ(run.samples[1].time_s, 15);
  EXPECT_EQ(run.samples[1].running, 5);
  EXPECT_EQ(run.engine, "vllm");
}

TEST(RunFormats, loads_without_times) {
  const MeasuredRun log = read("usage_log.jsonl");
  ASSERT_EQ(log.requests.size(), 2U);
  EXPECT_EQ(log.requests[0].input_tokens, 80);
  EXPECT_EQ(log.requests[1].arrival_s, 1);
  EXPECT_EQ(log.requests[1].cached_tokens, 1024);
  EXPECT_EQ(log.requests[1].e2e_s, 4.1);
  EXPECT_EQ(log.model, "gpt-oss-120b");
  const MeasuredRun conversations = read("sharegpt.json");
  ASSERT_EQ(conversations.requests.size(), 1U);
  EXPECT_EQ(conversations.requests[0].input_tokens, 8);
  EXPECT_THAT(conversations.notes, ElementsAre(HasSubstr("bytes / 4")));
  EXPECT_THROW(check_run(conversations, "run"), InputError);
}

TEST(RunFormats, a_tokenizer_counts_the_tokens_of_conversations) {
  TokenCounter counter = TokenCounter::read(FORETOKEN_SOURCE_DIR "/tests/data/tokenizers/llama3.json");
  const MeasuredRun conversations = read_run(samples / "sharegpt.json", &counter);
  ASSERT_EQ(conversations.requests.size(), 1U);
  const Json file = read_json_file(samples / "sharegpt.json");
  const auto said = JsonView(file, "sharegpt.json").items()[0].at("conversations").items();
  EXPECT_EQ(conversations.requests[0].input_tokens, counter.prompt_tokens(said[0].at("value").string()));
  EXPECT_EQ(conversations.requests[0].output_tokens, counter.answer_tokens(said[1].at("value").string()));
  EXPECT_THAT(conversations.notes, ElementsAre(HasSubstr("of the tokenizer")));
}

TEST(RunFormats, what_vllm_logs_completes_a_run) {
  const MeasuredRun log = read("vllm_start.log");
  EXPECT_EQ(log.engine_version, "0.10.2");
  EXPECT_EQ(log.model, "meta-llama/Llama-3.1-8B-Instruct");
  EXPECT_EQ(log.deployment.find("tensor_parallel_size")->integer(), 2);
  EXPECT_EQ(log.deployment.find("max_model_len")->integer(), 8192);
  EXPECT_EQ(log.deployment.find("num_gpu_blocks_override")->integer(), 63'803);
  EXPECT_TRUE(log.deployment.find("enable_prefix_caching")->boolean());
  MeasuredRun run = read("vllm_bench.json");
  complete_run(run, log);
  complete_run(run, read("prometheus_range.json"));
  EXPECT_EQ(run.tool, "vllm bench serve");
  EXPECT_EQ(run.engine_version, "0.10.2");
  EXPECT_EQ(run.requests.size(), 3U);
  EXPECT_EQ(run.samples.size(), 2U);
  EXPECT_EQ(run.deployment.find("max_model_len")->integer(), 8192);
}

TEST(RunFormats, every_format_has_a_sample_and_only_one_reader) {
  std::set<std::string> tools;
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(samples)) {
    if (entry.path().extension() == ".yaml") continue;  // the header of a table
    const MeasuredRun run = read_run(entry.path());
    EXPECT_FALSE(run.requests.empty() && run.samples.empty() && run.summary.is_empty() &&
                 run.deployment.members().empty())
        << entry.path();
    ++files;
  }
  EXPECT_EQ(files, run_formats().size());
  EXPECT_THAT(wrong("hello"), HasSubstr("vllm bench serve"));
  EXPECT_THAT(wrong("{\"a\": 1}"), HasSubstr("GuideLLM"));
  EXPECT_THAT(wrong("{\"a\": "), HasSubstr("file"));
}

}  // namespace foretoken::run_formats_test
