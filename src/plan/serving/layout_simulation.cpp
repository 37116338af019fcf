#include "plan/serving/layout_simulation.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/weights.h"
#include "serving/engine/engine_setup.h"
#include "serving/engine/engine_tiers.h"

namespace foretoken {
namespace {

LatencyGoals goals_of(const std::vector<LatencySlo>& slos) {
  LatencyGoals goals;
  for (const LatencySlo& slo : slos) {
    if (slo.metric == SloMetric::ttft) goals.ttft_ms = slo.limit_ms;
    if (slo.metric == SloMetric::tpot) goals.tpot_ms = slo.limit_ms;
    if (slo.metric == SloMetric::e2el) goals.e2el_ms = slo.limit_ms;
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
