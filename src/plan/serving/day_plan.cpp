#include "plan/serving/day_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/serving/wanted_check.h"
#include "serving/engine/engine_setup.h"
#include "serving/fleet/autoscalers/list.h"
#include "serving/fleet/cold_start.h"
#include "serving/serving_run.h"

namespace foretoken {
namespace {

// Simulated of a day; more would take minutes.
constexpr double most_day_requests = 250'000;
constexpr double fastest_day = 12;
// At the fastest; beyond, nothing is simulated.
constexpr double most_fast_day_requests = 1'000'000;
// Of equal replicas, so many tell what all of them do.
constexpr int64_t few_replicas = 8;
constexpr size_t most_days = 4;

// Best first; one of each device and engine.
std::vector<const PlanPoint*> layouts_of_day(const ServingSearchResult& result) {
  std::vector<const PlanPoint*> chosen;
  std::set<std::string> seen;
  for (const size_t i : result.ranking) {
    const PlanPoint& point = result.points[i];
    const std::string kind = devices_text(point.layout) + " " + point.layout.pool.engine.engine;
    if (chosen.size() < most_days && seen.insert(kind).second) chosen.push_back(&point);
  }
  return chosen;
}

std::string reason_not_to_scale(const ServingLayout& layout) {
  if (layout.decode) return "separate pools are not autoscaled";
  if (layout.pool.host_gib > 0) return "layouts with KV blocks in host memory are not autoscaled";
  return "";
}

// Of equal replicas, those that are simulated.
struct ReplicasOfPart {
  int64_t all = 1, simulated = 1;

  double share() const { return static_cast<double>(simulated) / static_cast<double>(all); }
  // Of as many of the part.
  int64_t of_all(int64_t count) const {
    return std::min<int64_t>(all, std::llround(static_cast<double>(count) / share()));
  }
  // As few of the part as make so many of all, at least.
  int64_t at_least(int64_t count) const {
    const double least = std::ceil(static_cast<double>(count) * share() - 1e-9);
    return std::min(simulated, static_cast<int64_t>(least));
  }
};

class DayPlanner {
 public:
  DayPlanner(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
             const DaySettings& settings, const std::function<void()>& check_wanted)
      : question_(question),
        traffic_(traffic),
        settings_(settings),
        shelf_(question, facts, traffic),
        simulator_(question, traffic, shelf_),
        check_(check_wanted) {}

  // The same for all layouts, so that their days compare.
  void choose_speed(const std::vector<const PlanPoint*>& points) {
    for (const PlanPoint* point : points) {
      speed_ = std::max(speed_, std::clamp(requests_of(point->layout) / most_day_requests, 1.0, fastest_day));
    }
  }
  double speed() const { return speed_; }

  DayOfLayout of(const PlanPoint& point, bool simulates) {
    const ServingLayout& layout = point.layout;
    DayOfLayout day{
        .layout = layout, .fixed = {}, .scaled = std::nullopt, .why_not_scaled = reason_not_to_scale(layout)};
    const double each = point.capacity.value / static_cast<double>(layout.pool.replicas);
    day.fixed = {.least_replicas = layout.pool.replicas,
                 .most_replicas = layout.pool.replicas,
                 .mean_held = static_cast<double>(layout.pool.replicas),
                 .gpu_hours = 24 * static_cast<double>(layout.devices())};
    const bool is_too_long = simulates && requests_of(layout) / speed_ > most_fast_day_requests;
    bool scales = day.why_not_scaled.empty();
    if (is_too_long && scales) {
      scales = false;
      day.why_not_scaled =
          fmt::format("a day of {:.3g} requests is too long to simulate; a quick plan follows the rates instead",
                      settings_.rates.mean() * seconds_of_day);
    }
    if (simulates && scales) day.fixed.good_share = simulated(layout, each, false).good_share;
    if (scales) day.scaled = simulates ? simulated(layout, each, true) : by_rate(layout, each);
    const std::optional<double> usd = question_.usd_per_hour(layout);
    for (DayRun* run : {&day.fixed, day.scaled ? &*day.scaled : nullptr}) {
      if (run != nullptr && usd) run->usd = run->gpu_hours * *usd / static_cast<double>(layout.devices());
    }
    return day;
  }

 private:
  // `replicas` of the layout are cut into parts with few of them; one part is simulated.
  static ReplicasOfPart part_of(const ServingLayout& layout, int64_t replicas) {
    const int64_t parts = layout.decode ? 1 : std::max<int64_t>(1, layout.pool.replicas / few_replicas);
    return {.all = replicas, .simulated = (replicas + parts - 1) / parts};
  }

  // That a simulation of the day would have, as fast as it passes.
  double requests_of(const ServingLayout& layout) const {
    return settings_.rates.mean() * seconds_of_day * part_of(layout, layout.pool.replicas).share();
  }

  // Never less than `least`, never more than 64 bits hold.
  int64_t wanted(double rate, double each, int64_t least) const {
    const double replicas = std::ceil(rate / (each * settings_.utilization) - 1e-9);
    return std::max(least, static_cast<int64_t>(std::min(replicas, 1e15)));
  }

  int64_t most_replicas(const ServingLayout& layout, double each) const {
    const int64_t offered = question_.hardware_of(layout.pool.engine.device).most_devices;
    return std::clamp(wanted(settings_.rates.peak(), each, settings_.least_replicas), layout.pool.replicas,
                      std::max(layout.pool.replicas, offered / layout.pool.engine.devices()));
  }

  DayRun by_rate(const ServingLayout& layout, double each) const {
    const int64_t most = most_replicas(layout, each);
    DayRun run{.least_replicas = most};
    double sum = 0;
    for (const double rate : settings_.rates.requests_per_s) {
      const int64_t replicas = std::min(most, wanted(rate, each, settings_.least_replicas));
      run.least_replicas = std::min(run.least_replicas, replicas);
      run.most_replicas = std::max(run.most_replicas, replicas);
      sum += static_cast<double>(replicas);
    }
    run.mean_held = sum / static_cast<double>(settings_.rates.requests_per_s.size());
    run.gpu_hours = 24 * run.mean_held * static_cast<double>(layout.pool.engine.devices());
    return run;
  }

  Picoseconds cold_start(const ReadyEngine& engine, int64_t devices) const {
    if (settings_.cold_start_s) return to_picoseconds(Seconds(*settings_.cold_start_s));
    const auto link = engine.group.models.kernels.device().host_bandwidth;
    return to_picoseconds(cold_start_time({}, Bytes(engine.group.memory.weights.value), static_cast<int>(devices),
                                          link ? link->value : BytesPerSecond(0)));
  }

  FleetConfig fleet(const ServingLayout& layout, const ReadyEngine& engine, double each,
                    const ReplicasOfPart& part) const {
    const int64_t devices = layout.pool.engine.devices();
    const int64_t least = part.at_least(settings_.least_replicas);
    FleetConfig config{
        .members = {}, .pools = {}, .region_policy = {}, .scaling = {}, .failures = {}, .drains = {}, .admission = {}};
    config.members.assign(static_cast<size_t>(part.simulated),
                          {.devices = devices, .cold_start = cold_start(engine, devices)});
    const int64_t first = wanted(settings_.rates.requests_per_s.front() * part.share(), each, least);
    config.pools = {{.members = part.simulated,
                     .at_start = std::min(first, part.simulated),
                     .capacity = [each](double /*input*/, double /*output*/) { return each; }}};
    config.scaling.kind = settings_.autoscaler;
    config.scaling.least = least;
    config.scaling.utilization = settings_.utilization;
    config.scaling.period_s = seconds_of_day / speed_;
    return config;
  }

  DayRun simulated(const ServingLayout& layout, double each, bool scales) {
    const ReplicasOfPart part = part_of(layout, scales ? most_replicas(layout, each) : layout.pool.replicas);
    ServingLayout few = layout;
    few.pool.replicas = part.simulated;
    const LayoutEngines engines = shelf_.engines(layout);
    ServingRunRequest request = simulator_.run_request(few, engines, settings_.rates.peak(), 1);
    request.load = [this, scale = part.share()](uint64_t /*seed*/) {
      return traffic_.over_day(settings_.rates, scale, speed_);
    };
    if (question_.pessimistic) request.config.bound = StepBound::high;
    if (scales) request.config.fleet = fleet(layout, *engines.pool, each, part);
    WantedCheck check(check_);
    request.observers = {&check};
    const ServingRun run = run_serving(request);
    const double day_s = seconds_of_day / speed_;
    DayRun result{.least_replicas = part.all, .most_replicas = part.all};
    const auto all = static_cast<double>(run.metrics.completed + run.metrics.rejected);
    if (run.metrics.goodput && all > 0) result.good_share = *run.metrics.goodput * run.metrics.duration_s / all;
    if (!scales) return result;
    const FleetTotals& fleet = run.totals.fleet;
    result.most_replicas = 0;
    for (const FleetSize& size : fleet.sizes) {
      // The end of the run, when requests have stopped coming, is no part of a day.
      if (to_seconds(size.from).value() > day_s) continue;
      result.least_replicas = std::min(result.least_replicas, part.of_all(size.serving));
      result.most_replicas = std::max(result.most_replicas, part.of_all(size.serving));
    }
    const double end_s = to_seconds(run.totals.end).value(), lasted_s = std::max(day_s, end_s);
    // Replicas are also paid for after the last request.
    const double held_after = static_cast<double>(fleet.sizes.back().held * layout.pool.engine.devices());
    const double gpu_seconds = fleet.gpu_seconds + held_after * (lasted_s - end_s);
    result.gpu_hours = gpu_seconds / part.share() * seconds_of_day / lasted_s / seconds_per_hour;
    result.mean_held = result.gpu_hours / 24 / static_cast<double>(layout.pool.engine.devices());
    result.starts = std::llround(static_cast<double>(fleet.starts) / part.share());
    return result;
  }

  const ServingQuestion& question_;
  const Traffic& traffic_;
  const DaySettings& settings_;
  EngineShelf shelf_;
  LayoutSimulator simulator_;
  const std::function<void()>& check_;
  double speed_ = 1;
};

}  // namespace

DayPlan plan_day(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
                 const ServingSearchResult& result, const DaySettings& settings,
                 const std::function<void()>& check_wanted) {
  DayPlan plan{.settings = settings, .layouts = {}};
  const std::vector<const PlanPoint*> points = layouts_of_day(result);
  DayPlanner planner(question, traffic, facts, settings, check_wanted);
  if (!result.by_closed_form) planner.choose_speed(points);
  plan.speed = planner.speed();
  for (const PlanPoint* point : points) plan.layouts.push_back(planner.of(*point, !result.by_closed_form));
  const auto cost = [](const DayOfLayout& day) {
    const DayRun& run = day.scaled ? *day.scaled : day.fixed;
    return run.usd.value_or(run.gpu_hours);
  };
  std::stable_sort(plan.layouts.begin(), plan.layouts.end(),
                   [&](const DayOfLayout& a, const DayOfLayout& b) { return cost(a) < cost(b); });
  return plan;
}

}  // namespace foretoken
