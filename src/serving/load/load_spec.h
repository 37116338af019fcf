// The requests of a run: from a file, or made up; how long they are, when they come, and who waits for whom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/load/arrivals.h"
#include "serving/load/lengths.h"
#include "serving/load/prompt_texts.h"
#include "serving/load/sessions.h"
#include "serving/load/thinking.h"
#include "serving/requests/request.h"

namespace foretoken {

// How prompts and outputs are made up.
enum class Dataset : uint8_t { random, lognormal, prefix_repetition, sessions, agents };
std::vector<std::string> dataset_names();
std::optional<Dataset> dataset_from_name(std::string_view name);

// Names as in `vllm bench serve`.
struct LoadSpec {
  std::string trace = {};   // a file of requests with their arrivals; empty = made up
  double time_scale = 1;    // times the trace's arrivals
  int64_t num_prompts = 0;  // 0 = 1000, or the whole trace
  ArrivalSettings arrivals = {};
  int64_t max_concurrency = 0;  // most requests in flight; 0 = no limit
  Dataset dataset = Dataset::random;
  std::string dataset_path = {};  // pairs of lengths are drawn from this file; empty = made up
  int64_t input_len = 1024, output_len = 128;
  double range_ratio = 0, lognormal_sigma = 1;
  std::optional<LengthRange> input_range = {}, output_range = {};  // random: in place of a length and the ratio
  std::optional<LognormalLength> input_law = {}, output_law = {};  // lognormal: in place of a length and sigma
  std::vector<Request> listed = {};                                // in order of arrival; in place of all made up
  int64_t prefix_len = 0, num_prefixes = 0;  // 0 = none and 1, or what vLLM takes for prefix_repetition
  PromptTexts texts = PromptTexts::natural;  // how often drafts are accepted over them
  SessionSettings sessions = {};
  std::optional<ThinkingSettings> thinking = {};
  std::vector<double> priority_shares = {};  // empty = as the trace says, else all alike

  bool has_conversations() const { return dataset == Dataset::sessions || dataset == Dataset::agents; }
  bool is_offline() const;   // all at once, and no limit on those in flight
  int64_t requests() const;  // asked for; 0 = as many as the trace has
};

// InputError for choices that do not go together, and files that cannot be read.
LoadMaker make_load(const LoadSpec& spec);

}  // namespace foretoken
