// The flags that describe load, named as in `vllm bench serve`; each group says what is added to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/flags/thinking_flags.h"
#include "app/cli/grammar/options.h"
#include "serving/load/load_spec.h"
#include "serving/results/metrics.h"
#include "serving/serving_run.h"

namespace foretoken {

struct LoadFlags {
  std::string trace;
  double time_scale = 1;
  int64_t num_prompts = 0;  // 0 = 1000, or the whole trace
  std::string request_rate = "inf";
  ArrivalSettings arrivals;
  std::string rate_shape = "constant";
  int64_t max_concurrency = 0;  // 0 = open loop
  std::string dataset = "random";
  std::string dataset_path;
  int64_t input_len = 1024, output_len = 128;
  std::string input_range, output_range;  // "1..1000"; empty = the length and the ratio
  double range_ratio = 0, lognormal_sigma = 1;
  std::string texts = "natural";
  int64_t prefix_len = 0, num_prefixes = 0;  // 0 = none and 1, or what vLLM takes for prefix_repetition
  SessionSettings sessions;
  ThinkingFlags thinking;
  std::vector<std::string> priority_shares;  // empty = as the trace says, else all alike
  int64_t seed = 0;

  void declare(Options& options);

  // InputError for flags that this load does not use; `options` as given to declare, after parsing.
  void check_use(const Options& options) const;
  // The same for shared prefixes, which `plan serve` may also get from its kind of traffic.
  void check_prefixes(const Options& options) const;
  LoadSpec spec() const;
  LoadMaker load() const;  // InputError for flags that do not go together
  bool conversations() const { return spec().has_conversations(); }
  bool offline() const { return spec().is_offline(); }
  PromptTexts prompt_texts() const;
  int64_t requests() const { return spec().requests(); }
  double rate() const;  // infinite = all at once, or as the trace says
  // What engines have to keep up with, as in "5 requests/s"; empty where requests wait for others to end or come at
  // once.
  std::string open_load() const;

 private:
  LoadFlags with_agent_defaults() const;

  const Options* options_ = nullptr;  // what they were declared in
};

struct GoalFlags {
  std::vector<std::string> goodput;
  std::vector<std::string> percentile_metrics, metric_percentiles;

  void declare(Options& options);
  LatencyGoals goals() const;
  std::vector<double> percentiles() const;
  std::vector<std::string> shown_metrics() const;
};

}  // namespace foretoken
