#include "serving/results/run_explanation.h"

#include <algorithm>

#include "compose/step_estimate.h"

namespace foretoken {
namespace {

double part_ms(Picoseconds time) {
  return to_seconds(time).value() * 1e3;
}

// Of steps with prompts, the share in which the device waits for the host.
double host_share(const std::vector<TypicalStep>& steps) {
  double all = 0, waits = 0;
  for (const TypicalStep& one : steps) {
    if (one.share.phase == StepPhase::decode) continue;
    double kernels = 0;
    for (const StageEstimate& stage : one.step.stages) {
      for (const TimedOperator& timed : stage.operators) kernels += timed.seconds.value;
    }
    all += one.share.seconds;
    waits += one.share.seconds * std::max(0.0, 1 - kernels / one.step.seconds.value);
  }
  return all > 0 ? waits / all : 0;
}

// What steps of a pool reach of a peak while they run, times the seconds that they run.
template <class Reached>
std::optional<double> reached_seconds(const std::vector<TypicalStep>& steps, const Reached& reached) {
  double sum = 0;
  for (const TypicalStep& one : steps) {
    const std::optional<double> share = reached(one.step);
    if (!share) return std::nullopt;
    sum += *share * one.share.seconds;
  }
  return steps.empty() ? std::nullopt : std::optional(sum);
}

TtftParts ttft_parts(const std::vector<RequestRecord>& requests, const PromptEnds& prompts, double host) {
  TtftParts parts;
  const double share = 1 / static_cast<double>(requests.size());
  for (const RequestRecord& one : requests) {
    const Picoseconds end = prompts.is_needed() ? prompts.end_of(one) : one.first_token;
    const double computed = part_ms(end - one.scheduled);
    parts.ttft_ms += share * part_ms(one.ttft());
    parts.queue_ms += share * part_ms(one.scheduled - one.arrival);
    parts.host_ms += share * host * computed;
    parts.prefill_ms += share * (1 - host) * computed;
    parts.transfer_ms += share * part_ms(one.first_token - end);
  }
  return parts;
}

}  // namespace

bool PromptEnds::watches(int64_t /*request*/) const {
  return is_needed_;
}

void PromptEnds::request_stepped(const RequestStep& own, const StepRecord& step) {
  if (!own.decodes) ends_[own.request] = step.end;
}

void PromptEnds::step_ran(const StepRecord& /*step*/) {
  if (check_wanted_) check_wanted_();
}

Picoseconds PromptEnds::end_of(const RequestRecord& record) const {
  const auto found = ends_.find(record.id);
  return found == ends_.end() ? record.first_token : std::min(found->second, record.first_token);
}

std::optional<RunExplanation> explain_run(const TtftRanking& ranking, const PromptEnds& prompts, double percentile,
                                          std::span<const ExplainedPool> pools, double device_seconds) {
  constexpr double around = 0.5;
  const std::vector<RequestRecord> slow =
      ranking.between(std::max(0.0, percentile - around), std::min(100.0, percentile + around));
  if (slow.empty() || device_seconds <= 0) return std::nullopt;
  double busy_devices = 0;
  std::optional<double> flops = 0, bytes = 0;
  for (const ExplainedPool& pool : pools) {
    busy_devices += pool.devices_each * pool.busy_seconds / pool.stages;
    const auto of_flops = reached_seconds(
        pool.steps, [](const StepEstimate& step) { return std::optional(step.model_flops_utilization); });
    const auto of_bytes = reached_seconds(
        pool.steps, [&](const StepEstimate& step) { return memory_bandwidth_utilization(step, *pool.device); });
    flops = flops && of_flops ? std::optional(*flops + pool.devices_each * *of_flops) : std::nullopt;
    bytes = bytes && of_bytes ? std::optional(*bytes + pool.devices_each * *of_bytes) : std::nullopt;
  }
  RunExplanation explanation{.ttft = ttft_parts(slow, prompts, pools.empty() ? 0 : host_share(pools.front().steps)),
                             .busy_share = busy_devices / device_seconds};
  explanation.ttft.percentile = percentile;
  if (flops) explanation.model_flops_utilization = *flops / device_seconds;
  if (bytes) explanation.memory_bandwidth_utilization = *bytes / device_seconds;
  return explanation;
}

}  // namespace foretoken
