#include "plan/serving/layout_simulation.h"

#include <algorithm>
#include <utility>

#include "serving/engine/engine_setup.h"
#include "serving/engine/engine_tiers.h"
#include "serving/engine/kv_pools.h"

namespace foretoken {
namespace {

LatencyGoals goals_of(const std::vector<LatencySlo>& slos) {
  LatencyGoals goals;
  for (const LatencySlo& slo : slos) {
    const auto limit = [&](std::optional<double>& goal) { goal = std::min(goal.value_or(slo.limit_ms), slo.limit_ms); };
    if (slo.metric == SloMetric::ttft) limit(goals.ttft_ms);
    if (slo.metric == SloMetric::tpot) limit(goals.tpot_ms);
    if (slo.metric == SloMetric::e2el) limit(goals.e2el_ms);
  }
  return goals;
}

}  // namespace

std::string_view effort_name(Effort effort) {
  switch (effort) {
    case Effort::closed_form:
      return "closed_form";
    case Effort::quick:
      return "quick";
    case Effort::ranged:
      return "ranged";
    case Effort::curve:
      return "curve";
    case Effort::long_curve:
      return "long_curve";
    case Effort::full:
      return "full";
    case Effort::promised:
      return "promised";
  }
  return "";
}

const PlanRun* PlanPoint::at_capacity() const {
  const PlanRun* best = nullptr;
  for (const PlanRun& run : runs) {
    const bool is_faster = best == nullptr || run.rate >= best->rate;
    if (run.attained && run.rate <= capacity.value && is_faster) best = &run;
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

ServingRunRequest LayoutSimulator::run_request(const ServingLayout& layout, const LayoutEngines& engines, double load,
                                               int64_t requests, int64_t part) const {
  ServingRunRequest request;
  const std::string& engine = layout.pool.engine.engine;
  request.config.router =
      traffic_->has_conversations() ? std::string(router_of_conversations) : usual_router(engine, 1);
  request.config.replicas.assign(static_cast<size_t>(layout.pool.replicas), engines.pool->group.config);
  if (layout.pool.host_gib > 0) {
    request.config.kv_tiers =
        server_memory_tier(engines.pool->group, layout.pool.replicas, Bytes(host_cache_bytes(layout.pool)));
  }
  if (layout.decode) {
    request.config.replicas.insert(request.config.replicas.end(), static_cast<size_t>(layout.decode->replicas),
                                   engines.decode->group.config);
    request.config.disaggregation = disaggregation_of(
        {engines.pool->group, layout.pool.replicas}, {engines.decode->group, layout.decode->replicas}, engine, {},
        [this](const Device& device) { return question_->hardware_of(device.name).node; });
  }
  request.load = [this, load, requests, part](uint64_t /*seed*/) {
    return question_->in_flight ? traffic_->part_in_flight(whole_in_flight(load), requests, part)
                                : traffic_->part_at_rate(load, requests, part);
  };
  request.goals = goals_of(question_->slos);
  request.percentiles = slo_percentiles(question_->slos);
  request.step_bounds = false;
  return request;
}

}  // namespace foretoken
