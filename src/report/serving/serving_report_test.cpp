#include "report/serving/serving_report.h"

#include <limits>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/simulated_time.h"
#include "report/serving/request_life_report.h"
#include "report/serving/serving_files.h"
#include "report/serving/serving_series.h"

namespace foretoken::serving_report_test {

ServingRun some_run() {
  ServingRun run;
  run.metrics = {.completed = 120,
                 .duration_s = 12.5,
                 .input_tokens = 122880,
                 .output_tokens = 15360,
                 .request_throughput = 9.6,
                 .output_throughput = 1228.8,
                 .total_token_throughput = 11059.2,
                 .peak_output_tokens_per_s = 1500,
                 .peak_concurrent_requests = 20};
  run.metrics.ttft = {.mean_ms = 81.234, .median_ms = 70, .deviation_ms = 5, .percentiles_ms = {95, 120}};
  run.metrics.tpot = run.metrics.itl = run.metrics.e2el = run.metrics.ttft;
  return run;
}

TEST(ServingReport, an_engine_that_drafts_has_vllms_lines_for_it) {
  ServingRun run = some_run();
  const auto text = [&] { return serving_text({.model = "m", .replicas = {{}}, .percentiles = {95, 99}, .run = run}); };
  EXPECT_EQ(text().find("Speculative Decoding"), std::string::npos);
  run.metrics.speculation.add(2, 2);
  run.metrics.speculation.add(2, 0);
  const std::string expected =
      "---------------Speculative Decoding---------------\n"
      "Acceptance rate (%):                     50.00     \n"
      "Acceptance length:                       2.00      \n"
      "Drafts:                                  2         \n"
      "Draft tokens:                            4         \n"
      "Accepted tokens:                         2         \n"
      "Per-position acceptance (%):\n"
      "  Position 0:                            50.00     \n"
      "  Position 1:                            50.00     \n";
  EXPECT_NE(text().find(expected), std::string::npos) << text();
}

TEST(ServingReport, the_table_is_vllms_line_by_line) {
  const ServingRun run = some_run();
  const std::string text = serving_text({.model = "m",
                                         .replicas = {{.device = "d"}},
                                         .request_rate = std::numeric_limits<double>::infinity(),
                                         .max_concurrency = 16,
                                         .percentiles = {95, 99.9},
                                         .percentile_metrics = {"ttft"},
                                         .run = run});
  const std::string expected =
      "============ Serving Benchmark Result ============\n"
      "Successful requests:                     120       \n"
      "Failed requests:                         0         \n"
      "Maximum request concurrency:             16        \n"
      "Benchmark duration (s):                  12.50     \n"
      "Total input tokens:                      122880    \n"
      "Total generated tokens:                  15360     \n"
      "Request throughput (req/s):              9.60      \n"
      "Output token throughput (tok/s):         1228.80   \n"
      "Peak output token throughput (tok/s):    1500.00   \n"
      "Peak concurrent requests:                20.00     \n"
      "Total token throughput (tok/s):          11059.20  \n"
      "---------------Time to First Token----------------\n"
      "Mean TTFT (ms):                          81.23     \n"
      "Median TTFT (ms):                        70.00     \n"
      "P95 TTFT (ms):                           95.00     \n"
      "P99.9 TTFT (ms):                         120.00    \n"
      "==================================================\n";
  EXPECT_EQ(text.substr(0, expected.size()), expected);
}

TEST(ServingReport, embeddings_have_an_end_to_end_latency_and_no_times_between_tokens) {
  ServingRun run = some_run();
  run.metrics.output_tokens = 0;
  const ServingReport report{
      .model = "m", .replicas = {{}}, .percentiles = {95, 99}, .percentile_metrics = {"ttft"}, .run = run};
  const std::string text = serving_text(report);
  EXPECT_NE(text.find("Mean E2EL (ms):"), std::string::npos);
  for (const char* line : {"TPOT", "ITL", "TTFT", "Output token", "utput tokens/s", "generated"})
    EXPECT_EQ(text.find(line), std::string::npos) << line << "\n" << text;
  const Json json = vllm_result_json(report);
  EXPECT_FALSE(JsonView(json, "result").has("mean_tpot_ms"));
  EXPECT_TRUE(JsonView(json, "result").has("mean_e2el_ms"));
}

TEST(ServingReport, saved_results_have_vllms_keys) {
  const ServingRun run = some_run();
  const Json json = vllm_result_json(
      {.model = "m", .replicas = {{.device = "d"}}, .request_rate = 4, .percentiles = {95, 99}, .run = run});
  for (const char* key : {"date",
                          "backend",
                          "label",
                          "model_id",
                          "tokenizer_id",
                          "num_prompts",
                          "request_rate",
                          "burstiness",
                          "max_concurrency",
                          "duration",
                          "completed",
                          "failed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "request_goodput",
                          "output_throughput",
                          "total_token_throughput",
                          "max_output_tokens_per_s",
                          "max_concurrent_requests",
                          "mean_ttft_ms",
                          "median_tpot_ms",
                          "std_itl_ms",
                          "p99_e2el_ms",
                          "p95_ttft_ms"}) {
    EXPECT_NE(json.find(key), nullptr) << key;
  }
}

TEST(ServingReport, latencies_of_no_requests_are_null) {
  ServingRun run = some_run();
  const auto p99 = [&] {
    const Json json = serving_json({.model = "m", .replicas = {{}}, .percentiles = {95, 99}, .run = run});
    return json.find("p99_ttft_ms")->dump(0);
  };
  EXPECT_EQ(p99(), "120");
  run.metrics.completed = 0;
  EXPECT_EQ(p99(), "null");
}

TEST(ServingReport, failed_requests_come_with_their_reasons) {
  ServingRun run = some_run();
  run.metrics.rejected = 3;
  run.metrics.rejected_for[static_cast<size_t>(Rejection::no_output)] = 2;
  run.metrics.rejected_for[static_cast<size_t>(Rejection::beyond_kv_cache)] = 1;
  const std::string text =
      serving_text({.model = "m", .replicas = {{.device = "d"}}, .percentiles = {95, 99}, .run = run});
  EXPECT_NE(text.find("2 with no output tokens, 1 with more tokens than the KV cache holds"), std::string::npos)
      << text;
}

TEST(ServingReport, a_run_that_served_nothing_has_no_table_of_zeros) {
  ServingRun run = some_run();
  run.metrics.completed = 0;
  run.metrics.rejected = 3;
  const std::string text =
      serving_text({.model = "m", .replicas = {{.device = "d"}}, .percentiles = {95, 99}, .run = run});
  EXPECT_NE(text.find("m on d"), std::string::npos) << text;
  EXPECT_EQ(text.find("TTFT"), std::string::npos) << text;
}

TEST(ServingReport, detailed_results_have_vllms_arrays_in_order) {
  Json json = Json::object();
  const std::vector<RequestDetail> details = {
      {.record = {.input_tokens = 10,
                  .output_tokens = 4,
                  .arrival = to_picoseconds(Seconds(1)),
                  .first_token = to_picoseconds(Seconds(1.5)),
                  .last_token = to_picoseconds(Seconds(2))},
       .gaps = {{.gap = to_picoseconds(Seconds(0.125)), .count = 2},
                {.gap = to_picoseconds(Seconds(0.25)), .count = 1}}},
      {.record = {.outcome = RequestOutcome::rejected, .rejection = Rejection::no_output, .input_tokens = 7}}};
  add_request_arrays(json, details);
  EXPECT_EQ(json.dump(0), R"({"input_lens":[10,7],"output_lens":[4,0],"ttfts":[0.5,0],"itls":[[0.125,0.125,0.25],[]],)"
                          R"("start_times":[1,0],"errors":["","no output tokens"]})");
}

TEST(ServingSeries, lines_are_as_dark_as_their_values) {
  ServingRun run;
  EXPECT_EQ(time_series_text(run), "") << "nothing to show";
  run.interval_s = 1;
  for (const double value : {0.0, 1.0, 50.0, 100.0}) run.series.push_back({.running = value});
  EXPECT_NE(time_series_text(run).find("running requests  | .+@| to 100"), std::string::npos) << time_series_text(run);
  EXPECT_TRUE(series_line("a few", std::vector<double>{0.1, 0.25}).ends_with("| to 0.25\n"));
  CsvReader csv = CsvReader::from_text(time_series_csv(run), "series");
  ASSERT_TRUE(csv.next() && csv.next());
  EXPECT_EQ(csv.number(csv.column("running")), 1);
}

TEST(ServingSeries, long_runs_share_columns) {
  ServingRun run;
  run.interval_s = 2;
  run.series.assign(130, {.running = 1});
  const std::string text = time_series_text(run);
  EXPECT_NE(text.find("6 s per column"), std::string::npos) << text;
  EXPECT_NE(text.find("|" + std::string(44, '@') + "|"), std::string::npos) << text;
}

TEST(RequestLifeReport, phases_are_listed_with_what_was_lost) {
  RequestLife life(3);
  const auto step = [&](double begin, double end, int64_t repeats, const RequestStep& own) {
    life.request_stepped(
        own, {.begin = to_picoseconds(Seconds(begin)), .end = to_picoseconds(Seconds(end)), .repeats = repeats});
  };
  step(1, 2, 1, {.request = 3, .new_tokens = 100, .context_tokens = 0, .yields = 1});
  step(2, 3, 5, {.request = 3, .new_tokens = 1, .context_tokens = 100, .decodes = true, .yields = 1});
  step(5, 6, 1, {.request = 3, .new_tokens = 42, .context_tokens = 64, .yields = 1});
  life.request_ended({.id = 3,
                      .preemptions = 1,
                      .input_tokens = 100,
                      .output_tokens = 7,
                      .first_token = to_picoseconds(Seconds(2)),
                      .last_token = to_picoseconds(Seconds(6))});
  const Json json = request_life_json(life, {});
  std::map<std::string, double> ms;
  for (const Json& phase : json.find("phases")->items()) ms[phase.find("phase")->string()] = phase.find("ms")->number();
  EXPECT_EQ(ms, (std::map<std::string, double>{
                    {"queue", 1000}, {"prefill", 1000}, {"decode", 1000}, {"pause", 2000}, {"recompute", 1000}}));
  EXPECT_NE(request_life_text(life, {}).find("1 preemption\n"), std::string::npos);
}

TEST(ServingReport, the_fullest_replica_says_how_full_the_cache_was) {
  const auto peak = [](std::vector<int64_t> most_kv_blocks) {
    ServingRun run;
    run.most_kv_blocks = std::move(most_kv_blocks);
    return ServingReport{.replicas = {{.count = 2, .kv_blocks = 1000}, {.count = 1, .kv_blocks = 100}}, .run = run}
        .peak_kv_use();
  };
  EXPECT_DOUBLE_EQ(peak({100, 300, 20}), 0.3);
  EXPECT_DOUBLE_EQ(peak({100, 300, 90}), 0.9);
}

TEST(ServingFiles, a_line_for_each_request_and_step_reads_back) {
  std::ostringstream requests, steps;
  RequestCsv request_csv(requests, [](std::string_view sentence) { return std::string(sentence); });
  StepCsv step_csv(steps);
  request_csv.request_ended({.id = 7,
                             .input_tokens = 10,
                             .output_tokens = 3,
                             .arrival = to_picoseconds(Seconds(1)),
                             .queued = to_picoseconds(Seconds(1)),
                             .scheduled = to_picoseconds(Seconds(1.25)),
                             .first_token = to_picoseconds(Seconds(1.5)),
                             .last_token = to_picoseconds(Seconds(2.5))});
  request_csv.request_ended({.id = 8, .outcome = RequestOutcome::rejected});
  step_csv.step_ran({.begin = 0, .end = to_picoseconds(Seconds(2)), .repeats = 4, .decode_tokens = 3});
  CsvReader csv = CsvReader::from_text(requests.str(), "requests");
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(csv.number(csv.column("ttft_ms")), 500);
  EXPECT_EQ(csv.number(csv.column("tpot_ms")), 500);
  EXPECT_EQ(csv.number(csv.column("e2el_ms")), 1500);
  ASSERT_TRUE(csv.next());
  EXPECT_EQ(csv.cell(csv.column("outcome")), "rejected");
  EXPECT_FALSE(csv.next());
  CsvReader step = CsvReader::from_text(steps.str(), "steps");
  ASSERT_TRUE(step.next());
  EXPECT_EQ(step.integer(step.column("repeats")), 4);
}

TEST(ServingFiles, requests_of_one_lane_of_a_trace_follow_each_other) {
  RunTrace trace;
  // In order of their ends; all of 100 wait for the first of them, as many others come later.
  const auto at = [](int64_t second) { return to_picoseconds(Seconds(static_cast<double>(second))); };
  for (int64_t id = 0; id < 300; ++id) {
    const int64_t arrival = id < 100 ? 0 : id - 100;
    trace.request_ended({.id = id,
                         .replica = static_cast<int32_t>(id % 2),
                         .output_tokens = 2,
                         .arrival = at(arrival),
                         .scheduled = at(id),
                         .first_token = at(id + 1),
                         .last_token = at(id + 2)});
  }
  std::map<std::pair<int64_t, int64_t>, double> busy_until;
  size_t parts = 0;
  const Json document = trace.document();
  for (const Json& event : document.find("traceEvents")->items()) {
    if (event.find("cat") == nullptr) continue;
    ++parts;
    double& until = busy_until[{event.find("pid")->integer(), event.find("tid")->integer()}];
    EXPECT_GE(event.find("ts")->number(), until);
    until = event.find("ts")->number() + event.find("dur")->number();
  }
  EXPECT_EQ(parts, 900U);
  EXPECT_LT(busy_until.size(), 120U) << "lanes are used again";
}

TEST(ServingFiles, a_trace_shows_steps_requests_and_counters_up_to_its_limit) {
  RunTrace trace(4);
  trace.step_ran({.begin = 0, .end = to_picoseconds(Seconds(1)), .prefill_tokens = 5, .running = 1});
  trace.request_ended(
      {.output_tokens = 2, .first_token = to_picoseconds(Seconds(1)), .last_token = to_picoseconds(Seconds(2))});
  EXPECT_TRUE(trace.is_complete());
  trace.step_ran({.begin = to_picoseconds(Seconds(1)), .end = to_picoseconds(Seconds(2)), .decode_tokens = 1});
  EXPECT_FALSE(trace.is_complete());
  const Json document = trace.document();
  const Json* events = document.find("traceEvents");
  ASSERT_NE(events, nullptr);
  EXPECT_EQ(events->items().size(), 2U + 3 + 3) << "names, a step with two counters, three parts of a request";
}

}  // namespace foretoken::serving_report_test
