#include "serving/energy/energy_meter.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr Picoseconds second = 1'000'000'000'000;

SustainedGrid::Step grid_step(const StepRecord& step) {
  // Drafts count as decodes, as in sustained_steps.h; each step of a run adds a token to each context.
  const auto sequences = static_cast<double>(step.decode_tokens + step.idle_decodes);
  const double decodes = sequences + static_cast<double>(step.drafted_tokens);
  const double grown = sequences * 0.5 * static_cast<double>(step.repeats - 1);
  return {.prompt_tokens = static_cast<double>(step.prefill_tokens),
          .decodes = decodes,
          .mean_context = decodes > 0 ? (static_cast<double>(step.decode_context_tokens) + grown) / decodes : 0};
}

}  // namespace

StepWatts watts_of_replica(SustainedGrid& grid, int64_t lock_step_ranks) {
  return [&grid, ranks = static_cast<double>(lock_step_ranks)](const SustainedGrid::Step& step) {
    const SustainedGrid::Step of_rank{.prompt_tokens = step.prompt_tokens / ranks,
                                      .decodes = step.decodes / ranks,
                                      .mean_context = step.mean_context};
    return scaled(grid.watts_above_idle(of_rank), ranks);
  };
}

EnergyMeter::EnergyMeter(std::vector<StepWatts> watts_of_replica)
    : watts_of_replica_(std::move(watts_of_replica)), joules_of_replica_(watts_of_replica_.size()) {}

void EnergyMeter::step_ran(const StepRecord& step) {
  const auto replica = static_cast<size_t>(step.replica);
  ensure(replica < watts_of_replica_.size(), "every replica is metered");
  const Estimate joules =
      scaled(watts_of_replica_[replica](grid_step(step)), to_seconds(step.end - step.begin).value());
  const bool prompts = step.prefill_tokens > 0, decodes = step.decode_tokens + step.idle_decodes > 0;
  Estimate& sum = joules_[prompts && decodes ? 2 : prompts ? 0 : 1];
  sum.value += joules.value;
  sum.low += joules.low;
  sum.high += joules.high;
  sum.kind = std::max(sum.kind, joules.kind);
  joules_of_replica_[replica] += joules.value;
  spread(step.begin, step.end, joules.value);
}

void EnergyMeter::spread(Picoseconds begin, Picoseconds end, double joules) {
  const Picoseconds first = begin / second, last = (end - 1) / second;
  if (joules_in_second_.empty()) first_second_ = first;
  if (first < first_second_) {  // replicas are not in step with each other
    joules_in_second_.insert(joules_in_second_.begin(), static_cast<size_t>(first_second_ - first), 0.0);
    first_second_ = first;
  }
  const auto needed = static_cast<size_t>(last - first_second_ + 1);
  if (joules_in_second_.size() < needed) joules_in_second_.resize(needed);
  const double per_picosecond = joules / static_cast<double>(end - begin);
  for (Picoseconds at = first; at <= last; ++at) {
    const Picoseconds within = std::min(end, (at + 1) * second) - std::max(begin, at * second);
    joules_in_second_[static_cast<size_t>(at - first_second_)] += per_picosecond * static_cast<double>(within);
  }
}

double EnergyMeter::peak_watts() const {
  if (joules_in_second_.empty()) return 0;
  return *std::max_element(joules_in_second_.begin(), joules_in_second_.end());
}

}  // namespace foretoken
