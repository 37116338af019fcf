#include "serving/load/load_spec.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "serving/load/closed_loop.h"
#include "serving/load/listed_source.h"
#include "serving/load/priorities.h"
#include "serving/load/synthetic.h"
#include "serving/load/trace.h"

namespace foretoken {
namespace {

constexpr int64_t usual_requests = 1000;
// What `vllm bench serve` takes for prefix_repetition where nothing is said.
constexpr int64_t usual_prefix_len = 256, usual_prefixes = 10;

constexpr std::string_view dataset_list[] = {"random", "lognormal", "prefix_repetition", "sessions", "agents"};

std::unique_ptr<LengthSource> make_lengths(const LoadSpec& spec, const std::vector<RequestLengths>& observed,
                                           uint64_t seed) {
  if (!observed.empty()) return observed_lengths(observed, seed);
  if (spec.dataset == Dataset::lognormal) {
    const auto law = [&](int64_t mean) {
      return LognormalLength{.mean = static_cast<double>(mean), .sigma = spec.lognormal_sigma};
    };
    return lognormal_lengths(spec.input_law.value_or(law(spec.input_len)),
                             spec.output_law.value_or(law(spec.output_len)), seed);
  }
  return uniform_lengths(spec.input_range.value_or(range_around(spec.input_len, spec.range_ratio, 1)),
                         spec.output_range.value_or(range_around(spec.output_len, spec.range_ratio, 1)), seed);
}

std::unique_ptr<RequestSource> open_load(const LoadSpec& spec, const std::vector<RequestLengths>& observed,
                                         uint64_t seed) {
  if (!spec.listed.empty()) return std::make_unique<ReplayedRequests>(spec.listed);
  if (!spec.trace.empty()) {
    const int64_t most = spec.num_prompts > 0 ? spec.num_prompts : -1;
    return open_trace(spec.trace, {.time_scale = spec.time_scale, .max_requests = most});
  }
  std::unique_ptr<LengthSource> lengths = make_lengths(spec, observed, seed);
  if (spec.thinking) lengths = with_thinking(std::move(lengths), *spec.thinking, seed);
  if (spec.has_conversations()) {
    SessionSettings sessions = spec.sessions;
    sessions.starts = spec.arrivals;
    sessions.system_tokens = spec.prefix_len;
    return session_load(sessions, std::move(lengths), seed);
  }
  const PrefixSettings prefix{.tokens = spec.prefix_len,
                              .count = spec.num_prefixes,
                              .equally_often = spec.dataset == Dataset::prefix_repetition};
  return synthetic_load(spec.arrivals, std::move(lengths), prefix, seed);
}

}  // namespace

std::vector<std::string> dataset_names() {
  return {std::begin(dataset_list), std::end(dataset_list)};
}

std::optional<Dataset> dataset_from_name(std::string_view name) {
  const auto* const found = std::find(std::begin(dataset_list), std::end(dataset_list), name);
  if (found == std::end(dataset_list)) return std::nullopt;
  return static_cast<Dataset>(found - std::begin(dataset_list));
}

bool LoadSpec::is_offline() const {
  return trace.empty() && listed.empty() && !has_conversations() && max_concurrency == 0 && std::isinf(arrivals.rate);
}

int64_t LoadSpec::requests() const {
  if (!listed.empty()) return static_cast<int64_t>(listed.size());
  return num_prompts > 0 || !trace.empty() ? num_prompts : usual_requests;
}

LoadMaker make_load(const LoadSpec& spec) {
  LoadSpec chosen = spec;
  chosen.arrivals.count = spec.requests();
  const bool repeats = spec.dataset == Dataset::prefix_repetition;
  if (chosen.prefix_len == 0 && repeats) chosen.prefix_len = usual_prefix_len;
  if (chosen.num_prefixes == 0) chosen.num_prefixes = repeats ? usual_prefixes : 1;
  if (spec.trace.empty()) {
    check_arrivals(chosen.arrivals);
  } else if (!std::isinf(spec.arrivals.rate)) {
    throw InputError(
        {.field = "trace",
         .value = printable(spec.trace),
         .expected = "either a trace alone, or lengths from {dataset_path} and arrivals from {request_rate}"});
  }
  const auto observed = spec.dataset_path.empty() ? std::vector<RequestLengths>{} : read_lengths(spec.dataset_path);
  return [chosen, observed](uint64_t seed) {
    std::unique_ptr<RequestSource> load = open_load(chosen, observed, seed);
    if (!chosen.priority_shares.empty()) load = with_priorities(std::move(load), chosen.priority_shares, seed);
    return chosen.max_concurrency > 0 ? closed_loop(std::move(load), chosen.max_concurrency) : std::move(load);
  };
}

}  // namespace foretoken
