#include "plan/serving/layout_simulation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "model/weights.h"
#include "plan/serving/capacity_search.h"
#include "serving/energy/energy_account.h"

namespace foretoken {
namespace {

struct EffortSettings {
  int64_t least_requests;
  double service_times;  // that a run lasts
  double tolerance;
};

constexpr EffortSettings settings_of(Effort effort) {
  return effort == Effort::quick ? EffortSettings{.least_requests = 200, .service_times = 4, .tolerance = 0.08}
                                 : EffortSettings{.least_requests = 1000, .service_times = 8, .tolerance = 0.02};
}

// Other stretches of the traffic that capacity is also found for.
constexpr int64_t other_parts = 2;

// Equal engines need not all be simulated: at most 8 of them, and at least 2, until there are requests enough.
ServingLayout part_of(const ServingLayout& layout, Effort effort, double requests_of_replica) {
  constexpr double enough_requests = 12'000;
  ServingLayout part = layout;
  if (!layout.decode) {
    const auto wanted = static_cast<int64_t>(std::clamp(enough_requests / requests_of_replica, 2.0, 8.0));
    part.pool.replicas = std::min<int64_t>(layout.pool.replicas, effort == Effort::quick ? 1 : wanted);
  } else {
    const int64_t equal = std::gcd(layout.pool.replicas, layout.decode->replicas);
    part.pool.replicas /= equal;
    part.decode->replicas /= equal;
  }
  return part;
}

LatencyGoals goals_of(const std::vector<LatencySlo>& slos) {
  LatencyGoals goals;
  for (const LatencySlo& slo : slos) {
    if (slo.metric == SloMetric::ttft) goals.ttft_ms = slo.limit_ms;
    if (slo.metric == SloMetric::tpot) goals.tpot_ms = slo.limit_ms;
    if (slo.metric == SloMetric::e2el) goals.e2el_ms = slo.limit_ms;
  }
  return goals;
}

bool limits_waiting(const LatencySlo& slo) {
  return slo.metric == SloMetric::ttft || slo.metric == SloMetric::e2el;
}

// Without a limit on waiting, a queue that grows for ever would go unseen: in a run of so many seconds nobody may wait
// longer than a twentieth of it.
bool keeps_up(const ServingMetrics& metrics, const std::vector<double>& percentiles, double span_s) {
  constexpr double most_waiting = 0.05;
  const auto place = std::find(percentiles.begin(), percentiles.end(), 99.0);
  ensure(place != percentiles.end(), "the 99th percentile is always asked for");
  const double waited_ms = metrics.queue.percentiles_ms.at(static_cast<size_t>(place - percentiles.begin()));
  return waited_ms / 1e3 <= most_waiting * span_s;
}

// Ends a run that nobody waits for any more.
class WantedCheck final : public RunObserver {
 public:
  explicit WantedCheck(const std::function<void()>& check) : check_(&check) {}
  void step_ran(const StepRecord& /*record*/) override { (*check_)(); }

 private:
  const std::function<void()>* check_;
};

}  // namespace

std::string_view effort_name(Effort effort) {
  return effort == Effort::quick ? "quick" : "full";
}

const PlanRun* PlanPoint::at_capacity() const {
  const PlanRun* best = nullptr;
  for (const PlanRun& run : runs) {
    if (run.attained && run.rate <= capacity.value) best = &run;
  }
  return best;
}

const PlanRun* PlanPoint::at_rate(double rate) const {
  const auto found = std::find_if(runs.begin(), runs.end(), [&](const PlanRun& run) { return run.rate == rate; });
  return found == runs.end() ? nullptr : &*found;
}

LayoutJudgement LayoutSimulator::judge(const ServingLayout& layout) {
  if (check_wanted_) check_wanted_();
  constexpr size_t most_kept = 4096;
  ServingLayout one = layout;
  one.pool.replicas = 1;
  if (one.decode) one.decode->replicas = 1;
  const std::string key = one.key();
  auto found = bounds_.find(key);
  if (found == bounds_.end()) {
    if (bounds_.size() >= most_kept) bounds_.clear();
    found = bounds_.emplace(key, engine_bounds(*question_, *traffic_, shelf_->engines(layout))).first;
  }
  return judge_layout(found->second, layout);
}

// Requests that all limits are about decode for as long as those allow.
int64_t LayoutSimulator::requests_for(Effort effort, double rate) const {
  constexpr double usual_tpot_s = 0.05;
  double tpot_s = usual_tpot_s;
  for (const LatencySlo& slo : question_->slos) {
    if (slo.metric == SloMetric::tpot) tpot_s = slo.limit_ms / 1e3;
  }
  const EffortSettings settings = settings_of(effort);
  const double span_s = settings.service_times * traffic_->lengths().mean_output * tpot_s;
  constexpr int64_t most_requests = 200'000;  // only separate pools of very many engines come near
  return std::clamp(static_cast<int64_t>(std::ceil(std::min(rate * span_s, 1e12))), settings.least_requests,
                    most_requests);
}

ServingRunRequest LayoutSimulator::run_request(const ServingLayout& layout, const LayoutEngines& engines, double rate,
                                               int64_t requests, int64_t first_request) const {
  ServingRunRequest request;
  const std::string& engine = layout.pool.engine.engine;
  request.config.router = usual_router(engine, 1);
  request.config.replicas.assign(static_cast<size_t>(layout.pool.replicas), engines.pool->group.config);
  if (layout.decode) {
    request.config.replicas.insert(request.config.replicas.end(), static_cast<size_t>(layout.decode->replicas),
                                   engines.decode->group.config);
    const auto pool_of = [&](const EnginePool& pool) {
      const std::optional<Node>& node = question_->hardware_of(pool.engine.device).node;
      ensure(node.has_value(), "prompts are computed apart only where a link is known");
      // Other devices are in other nodes.
      const int64_t apart = layout.is_mixed() ? node->device_count + 1 : layout.devices();
      return KvPool{.replicas = pool.replicas,
                    .devices = pool.engine.devices(),
                    .device_bandwidth = transfer_bandwidth_per_device(*node, apart).value_or(pair_bandwidth(*node))};
    };
    Disaggregation between =
        disaggregation_between(pool_of(layout.pool), pool_of(*layout.decode), usual_transfer_latency);
    between.decode_router = "least_outstanding";
    between.kv_bytes_per_token = kv_bytes_per_token(question_->model, layout.pool.engine.kv_dtype).value();
    between.first_token = usual_first_token(engine);
    request.config.disaggregation = std::move(between);
  }
  request.load = [this, rate, requests, first_request](uint64_t /*seed*/) {
    return traffic_->at_rate(rate, requests, first_request);
  };
  request.goals = goals_of(question_->slos);
  request.percentiles = slo_percentiles(question_->slos);
  request.step_bounds = false;
  return request;
}

// All runs of one evaluation.
struct LayoutSimulator::Trial {
  const LayoutSimulator& simulator;
  const ServingLayout& layout;  // what is simulated
  const LayoutEngines& engines;
  Effort effort;
  double share;  // of the rate that what is simulated gets

  StepBound usual_bound() const { return simulator.question_->pessimistic ? StepBound::high : StepBound::value; }

  // `part` of the traffic: 0 is its beginning.
  PlanRun run(double rate, StepBound bound, int64_t part = 0) const {
    const ServingQuestion& question = *simulator.question_;
    const double own_rate = rate * share;
    const int64_t requests = simulator.requests_for(effort, own_rate);
    ServingRunRequest request = simulator.run_request(layout, engines, own_rate, requests, part * requests);
    request.config.bound = bound;
    std::optional<EnergyMeter> meter;
    if (bound == usual_bound() && draw_is_known()) request.observers.push_back(&meter.emplace(replica_watts()));
    WantedCheck wanted(simulator.check_wanted_);
    if (simulator.check_wanted_) request.observers.push_back(&wanted);
    const ServingMetrics metrics = run_serving(request).metrics;
    const auto all = static_cast<double>(metrics.completed + metrics.rejected);
    PlanRun result{.rate = rate,
                   .requests = metrics.completed + metrics.rejected,
                   .attained = true,
                   .achieved_ms = {},
                   .output_tokens_per_s = metrics.output_throughput / share,
                   .tokens_per_s_of_user = metrics.tpot.mean_ms > 0 ? 1e3 / metrics.tpot.mean_ms : 0,
                   .goodput = metrics.goodput.value_or(metrics.request_throughput) / share,
                   .failed_share = static_cast<double>(metrics.rejected) / all,
                   .joules_per_token = {}};
    bool waits = false;
    for (const LatencySlo& slo : question.slos) {
      const double achieved = achieved_ms(slo, metrics, request.percentiles);
      result.achieved_ms.push_back(achieved);
      const bool few_fail = result.failed_share <= 1 - slo.percentile / 100;
      result.attained = result.attained && achieved <= slo.limit_ms && few_fail;
      waits = waits || limits_waiting(slo);
    }
    if (question.joint_percent) {
      const double good = metrics.goodput.value_or(0) * metrics.duration_s;
      result.attained = good >= *question.joint_percent / 100 * all;
    }
    if (!waits) {
      result.attained = result.attained && keeps_up(metrics, request.percentiles, all / own_rate);
    }
    // One that keeps up does so for ever: the end of the run, when requests have stopped coming, says nothing.
    const double lasts_s = result.attained ? all / own_rate : metrics.duration_s;
    result.output_tokens_per_s *= metrics.duration_s / lasts_s;
    result.goodput *= metrics.duration_s / lasts_s;
    if (meter) result.joules_per_token = joules_per_token(*meter, metrics, lasts_s);
    return result;
  }

 private:
  // Prompts first, as replicas are.
  std::vector<std::pair<const ReadyEngine*, int64_t>> pools() const {
    std::vector<std::pair<const ReadyEngine*, int64_t>> all = {{engines.pool, layout.pool.replicas}};
    if (layout.decode) all.emplace_back(engines.decode, layout.decode->replicas);
    return all;
  }
  bool draw_is_known() const {
    return engines.pool->draw() != nullptr && (engines.decode == nullptr || engines.decode->draw() != nullptr);
  }
  std::vector<StepWatts> replica_watts() const {
    std::vector<StepWatts> watts;
    for (const auto& [engine, replicas] : pools()) {
      watts.insert(watts.end(), static_cast<size_t>(replicas),
                   watts_of_replica(*engine->draw(), engine->group.config.options.lock_step_ranks));
    }
    return watts;
  }
  Headline joules_per_token(const EnergyMeter& meter, const ServingMetrics& metrics, double lasts_s) const {
    std::vector<MeteredBoards> boards;
    for (const auto& [engine, replicas] : pools()) {
      boards.push_back(engine->boards);
      boards.back().replicas = replicas;
    }
    const Estimate each =
        energy_account(meter, boards, FacilityRates(), metrics, exactly(lasts_s)).facility_joules_per_output_token;
    return {.value = each.value, .low = each.low, .high = each.high};
  }
};

PlanPoint LayoutSimulator::evaluate(const ServingLayout& layout, Effort effort) {
  PlanPoint point{.layout = layout, .effort = effort, .capacity = {}, .runs = {}};
  const LayoutEngines engines = shelf_->engines(layout);
  const LayoutJudgement judgement = judge_layout(*question_, *traffic_, layout, engines);
  if (judgement.pruned) return point;
  const SchedulerOptions& options = (engines.decode != nullptr ? *engines.decode : *engines.pool).group.config.options;
  point.kv_tokens = options.num_gpu_blocks * options.block_size;

  const double most = judgement.most_requests_per_s;
  const double most_of_replica = most / static_cast<double>(layout.pool.replicas);
  const ServingLayout simulated = part_of(layout, effort, static_cast<double>(requests_for(effort, most_of_replica)));
  const Trial trial{.simulator = *this,
                    .layout = simulated,
                    .engines = engines,
                    .effort = effort,
                    .share = static_cast<double>(simulated.devices()) / static_cast<double>(layout.devices())};
  CapacitySearch search{
      .start = most * 0.7, .lowest = most / 100, .highest = most * 2, .tolerance = settings_of(effort).tolerance};
  const double capacity = highest_rate(search, [&](double rate) {
    point.runs.push_back(trial.run(rate, trial.usual_bound()));
    return point.runs.back().attained;
  });
  point.capacity = {.value = capacity, .low = capacity, .high = capacity};
  if (question_->rate && point.at_rate(*question_->rate) == nullptr) {
    point.runs.push_back(trial.run(*question_->rate, trial.usual_bound()));
  }
  std::sort(point.runs.begin(), point.runs.end(), [](const PlanRun& a, const PlanRun& b) { return a.rate < b.rate; });
  const bool by_slow_end = question_->is_judged_by_slow_end(layout) && !question_->pessimistic;
  if ((effort == Effort::quick && !by_slow_end) || capacity == 0) return point;

  search.tolerance = settings_of(Effort::quick).tolerance / 2;
  const auto capacity_with = [&](StepBound bound, int64_t part, double start) {
    search.start = start;
    return highest_rate(search, [&](double rate) { return trial.run(rate, bound, part).attained; });
  };
  double low = capacity, squares = 0;
  if (!question_->pessimistic) low = std::min(capacity, capacity_with(StepBound::high, 0, capacity * 0.85));
  point.capacity.low = low;
  if (effort == Effort::quick) return point;
  const double high = std::max(capacity, capacity_with(StepBound::low, 0, capacity * 1.15));
  for (int64_t part = 1; part <= other_parts; ++part) {
    squares += std::pow(capacity_with(trial.usual_bound(), part, capacity) - capacity, 2);
  }
  // 90% of the requests that might come, as far as a few draws tell; independent of the step times.
  const double spread = 1.645 * std::sqrt(squares / static_cast<double>(other_parts));
  point.capacity.low = std::max(0.0, capacity - std::hypot(capacity - low, spread));
  point.capacity.high = capacity + std::hypot(high - capacity, spread);
  return point;
}

}  // namespace foretoken
