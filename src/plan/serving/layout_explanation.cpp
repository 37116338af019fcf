#include "plan/serving/layout_explanation.h"

#include <algorithm>
#include <limits>
#include <map>

#include "compose/step_estimate.h"
#include "serving/results/step_mix.h"
#include "serving/results/ttft_ranking.h"
#include "serving/results/typical_steps.h"

namespace foretoken {
namespace {

// When the last step that computed a request's prompt ended, before its first token.
class PromptEnds final : public RunObserver {
 public:
  // Watching every step of every request takes time: only where somebody asks for the ends.
  PromptEnds(const std::function<void()>& check_wanted, bool is_needed)
      : check_wanted_(check_wanted), is_needed_(is_needed) {}
  bool watches(int64_t /*request*/) const override { return is_needed_; }
  void request_stepped(const RequestStep& own, const StepRecord& step) override {
    if (!own.decodes) ends_[own.request] = step.end;
  }
  void step_ran(const StepRecord& /*step*/) override {
    if (check_wanted_) check_wanted_();
  }
  // No later than the first token: a preempted request computes its prompt again.
  Picoseconds end_of(const RequestRecord& record) const {
    const auto found = ends_.find(record.id);
    return found == ends_.end() ? record.first_token : std::min(found->second, record.first_token);
  }

 private:
  const std::function<void()>& check_wanted_;
  bool is_needed_;
  std::map<int64_t, Picoseconds> ends_;
};

double parts_ms(Picoseconds time) {
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

TtftParts ttft_parts(const std::vector<RequestRecord>& requests, const PromptEnds& prompts, double host,
                     bool has_transfer) {
  TtftParts parts;
  const double share = 1 / static_cast<double>(requests.size());
  for (const RequestRecord& one : requests) {
    const Picoseconds end = has_transfer ? prompts.end_of(one) : one.first_token;
    const double computed = parts_ms(end - one.scheduled);
    parts.ttft_ms += share * parts_ms(one.ttft());
    parts.queue_ms += share * parts_ms(one.scheduled - one.arrival);
    parts.host_ms += share * host * computed;
    parts.prefill_ms += share * (1 - host) * computed;
    parts.transfer_ms += share * parts_ms(one.first_token - end);
  }
  return parts;
}

double percentile_of(const ServingQuestion& question) {
  for (const LatencySlo& slo : question.slos) {
    if (slo.metric == SloMetric::ttft) return slo.percentile;
  }
  return TtftParts().percentile;
}

}  // namespace

std::optional<LayoutExplanation> explain_layout(const ServingQuestion& question, const Traffic& traffic,
                                                const ServingFacts& facts, const ServingLayout& layout, double rate,
                                                const std::function<void()>& check_wanted) {
  EngineShelf shelf(question, facts, traffic);
  const LayoutSimulator simulator(question, traffic, shelf);
  const LayoutEngines engines = shelf.engines(layout);
  if (!engines.start()) return std::nullopt;
  const ServingLayout part = simulator.long_part(layout, rate);
  const double own_rate = rate * static_cast<double>(part.devices()) / static_cast<double>(layout.devices());
  ServingRunRequest request =
      simulator.run_request(part, engines, own_rate, simulator.requests_for(Effort::full, own_rate));
  request.config.bound = question.pessimistic ? StepBound::high : StepBound::value;
  const auto first_decode = static_cast<int32_t>(part.pool.replicas);
  StepMix of_pool(0, first_decode), of_decode(first_decode, std::numeric_limits<int32_t>::max());
  TtftRanking ranking;
  PromptEnds prompts(check_wanted, part.decode.has_value());
  request.observers = {&of_pool, &of_decode, &ranking, &prompts};
  const ServingMetrics metrics = run_serving(request).metrics;

  const double percentile = percentile_of(question);
  constexpr double around = 0.5;
  const std::vector<RequestRecord> slow =
      ranking.between(std::max(0.0, percentile - around), std::min(100.0, percentile + around));
  if (slow.empty() || metrics.duration_s <= 0) return std::nullopt;

  LayoutExplanation explanation{.rate = rate, .ttft = {}};
  double busy_devices = 0;
  std::optional<double> flops = 0, bytes = 0;
  double host = 0;
  const auto add_pool = [&](const EnginePool& pool, const ReadyEngine& engine, const StepMix& mix) {
    const auto devices = static_cast<double>(pool.engine.devices());
    busy_devices += devices * mix.busy_seconds();
    const Device& device = question.hardware_of(pool.engine.device).device;
    const std::vector<TypicalStep> steps =
        engine.group.has_operators
            ? typical_steps(engine.group.composed(), mix, Logits::last, engine.group.config.options.lock_step_ranks)
            : std::vector<TypicalStep>();
    if (&pool == &part.pool) host = host_share(steps);
    const auto of_flops =
        reached_seconds(steps, [](const StepEstimate& step) { return std::optional(step.model_flops_utilization); });
    const auto of_bytes =
        reached_seconds(steps, [&](const StepEstimate& step) { return memory_bandwidth_utilization(step, device); });
    flops = flops && of_flops ? std::optional(*flops + devices * *of_flops) : std::nullopt;
    bytes = bytes && of_bytes ? std::optional(*bytes + devices * *of_bytes) : std::nullopt;
  };
  add_pool(part.pool, *engines.pool, of_pool);
  if (part.decode) add_pool(*part.decode, *engines.decode, of_decode);
  const double device_seconds = static_cast<double>(part.devices()) * metrics.duration_s;
  explanation.ttft = ttft_parts(slow, prompts, host, part.decode.has_value());
  explanation.ttft.percentile = percentile;
  explanation.busy_share = busy_devices / device_seconds;
  if (flops) explanation.model_flops_utilization = *flops / device_seconds;
  if (bytes) explanation.memory_bandwidth_utilization = *bytes / device_seconds;
  return explanation;
}

}  // namespace foretoken
