#include "network/calibration/fit_law.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/statistics.h"
#include "kernel/fit/hierarchical_fit.h"

namespace foretoken {
namespace {

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

// What is common to all systems ports; a system or an operation bends it by its share only.
double strength_of(std::string_view effect) {
  if (effect == "common") return 1e-3;
  if (effect.starts_with("operation")) return 1e-2;
  return effect.find(" operation ") == std::string_view::npos ? 1e-2 : 3e-2;
}

class LawFit {
 public:
  LawFit(const LawKind& kind, const std::vector<TimedCall>& calls, const SystemLibrary& systems)
      : law_(*kind.law), calls_(calls), systems_(systems) {
    result_.law = kind.name;
    std::vector<double> start;
    for (const LawConstant& constant : law_.constants()) {
      result_.constants.emplace_back(constant.name);
      start.push_back(portable_log(constant.start));
    }
    result_.effects["common"] = std::move(start);
  }

  LawCalibration run() {
    const bool has_curve = std::any_of(calls_.begin(), calls_.end(), [&](const TimedCall& timed) {
      return law_.teaches_curve(timed.call, systems_.traits(timed.device));
    });
    if (has_curve) {
      result_.curves = no_curves();
      fit_constants([&](const TimedCall& timed) { return law_.is_floor(timed.call); });
      fit_curves();
    }
    fit_constants([](const TimedCall&) { return true; });
    if (has_curve) fit_curves();
    std::set<std::string> systems;
    for (const TimedCall& timed : calls_) systems.insert(timed.device);
    result_.systems.assign(systems.begin(), systems.end());
    return std::move(result_);
  }

 private:
  std::string curve_name(const TimedCall& timed) const {
    const SystemTraits& system = systems_.traits(timed.device);
    const std::vector<double> constants = law_constants(law_, result_, timed.call.operation, timed.device);
    return std::string(law_.parts(timed.call, system, constants).curve);
  }

  // A curve that adds nothing, under every name: for the floors.
  LawCurves no_curves() const {
    LawCurves curves;
    for (const TimedCall& timed : calls_) {
      constexpr double nothing = -30;
      curves[curve_name(timed)][timed.call.ranks] = {.x = {-20, 40}, .y = {nothing, nothing}};
    }
    return curves;
  }

  void fit_constants(const std::function<bool(const TimedCall&)>& is_used) {
    const std::span<const LawConstant> constants = law_.constants();
    HierarchicalFit fit{.constants = constants.size(), .huber_scale = 0.1, .rounds = 30};
    for (const LawConstant& constant : constants)
      fit.bounds.push_back({portable_log(constant.least), portable_log(constant.most)});
    std::map<std::string, size_t> index;
    const auto effect = [&](const std::string& name) {
      const auto [found, is_new] = index.emplace(name, fit.effects.size());
      if (is_new) {
        FitEffect added{.name = name, .strength = strength_of(name)};
        const auto known = result_.effects.find(name);
        added.offsets = known != result_.effects.end() ? known->second : std::vector<double>(constants.size(), 0.0);
        added.pull_to_start = name == "common";
        fit.effects.push_back(std::move(added));
      }
      return found->second;
    };
    // Every system counts the same, and so does every operation on it.
    std::map<std::pair<std::string, std::string>, std::vector<const TimedCall*>> groups;
    std::map<std::string, double> operations;
    for (const TimedCall& timed : calls_) {
      if (!is_used(timed)) continue;
      std::vector<const TimedCall*>& group = groups[{timed.device, timed.call.operation}];
      if (group.empty()) operations[timed.device] += 1;
      group.push_back(&timed);
    }
    std::vector<const TimedCall*> used;
    for (const auto& [key, members] : groups) {
      FitGroup group{.first_row = used.size(),
                     .rows = members.size(),
                     .weight = 1 / (operations[key.first] * static_cast<double>(operations.size()))};
      for (const std::string& name : effects_of(key.second, key.first)) group.effects.push_back(effect(name));
      used.insert(used.end(), members.begin(), members.end());
      fit.groups.push_back(std::move(group));
    }
    if (used.empty()) return;
    std::vector<double> natural(constants.size());
    solve(fit, [&](size_t row, std::span<const double> logs, int& choice) {
      choice = 0;
      for (size_t k = 0; k < natural.size(); ++k) natural[k] = portable_exp(logs[k]);
      const TimedCall& timed = *used[row];
      const auto seconds = law_seconds(law_, result_.curves, timed.call, systems_.traits(timed.device), natural);
      ensure(seconds.has_value(), "a fit has every curve it needs");
      return portable_log(*seconds / timed.seconds);
    });
    for (const FitEffect& fitted : fit.effects) result_.effects[fitted.name] = fitted.offsets;
  }

  // The time that is left of each call, in bins of whole doublings of wire time: the mean over generations of what each
  // has there, between its own points.
  void fit_curves() {
    using PointsByX = std::map<double, std::vector<double>>;
    std::map<std::string, std::map<int64_t, std::map<std::string, PointsByX>>> points;  // by curve, ranks, generation
    for (const TimedCall& timed : calls_) {
      const SystemTraits& system = systems_.traits(timed.device);
      if (!law_.teaches_curve(timed.call, system)) continue;
      const std::vector<double> constants = law_constants(law_, result_, timed.call.operation, timed.device);
      const LawParts parts = law_.parts(timed.call, system, constants);
      constexpr double least_share = 0.03;  // of the floor: below that the rest is noise
      const double rest = std::max(timed.seconds - parts.apart, least_share * parts.apart) / parts.curve_scale;
      const double x = std::round(1e3 * doublings(parts.wire_seconds * 1e6)) / 1e3;
      points[std::string(parts.curve)][timed.call.ranks][systems_.generation(timed.device)][x].push_back(
          portable_log(rest * 1e6));
    }
    result_.curves.clear();
    for (const auto& [name, by_ranks] : points) {
      for (const auto& [ranks, by_generation] : by_ranks) {
        std::map<int, std::vector<double>> knots;
        for (const auto& [generation, measured] : by_generation) add_knots(measured, knots);
        Curve& curve = result_.curves[name][ranks];
        for (const auto& [x, values] : knots) {
          curve.x.push_back(x);
          curve.y.push_back(mean(values));
        }
      }
    }
  }

  static void add_knots(const std::map<double, std::vector<double>>& by_x, std::map<int, std::vector<double>>& knots) {
    Curve own;
    for (const auto& [x, values] : by_x) {
      own.x.push_back(x);
      own.y.push_back(median(values));
    }
    constexpr double reach = 0.6;  // of a doubling beyond the generation's own points
    for (int knot = static_cast<int>(std::ceil(own.x.front() - reach)); knot <= own.x.back() + reach; ++knot) {
      knots[knot].push_back(own.x.size() > 1 ? linear_value(own, knot, portable_log(2.0)) : own.y.front());
    }
  }

  const CommunicationLaw& law_;
  const std::vector<TimedCall>& calls_;
  const SystemLibrary& systems_;
  LawCalibration result_;
};

// By log2(size).
using Leftovers = std::map<double, std::vector<double>>;

Curve curve_through(const Leftovers& leftovers) {
  Curve curve;
  for (const auto& [x, values] : leftovers) {
    curve.x.push_back(x);
    curve.y.push_back(median(values));
  }
  return curve;
}

// How a variant differs from the common curve, at four places: as much as noise leaves to see.
Curve offsets_from(const Curve& common, const Leftovers& own) {
  const double least = common.x.front(), width = common.x.back() - least;
  if (width <= 0) return {};
  Curve offsets;
  for (const double share : {0.1, 0.37, 0.63, 0.9}) {
    const double place = least + share * width, reach = 0.16 * width;
    std::vector<double> near;
    for (const auto& [x, values] : own) {
      if (std::abs(x - place) > reach) continue;
      for (const double value : values) near.push_back(value - smooth_value(common, x));
    }
    if (near.empty()) continue;
    offsets.x.push_back(place);
    offsets.y.push_back(median(std::move(near)));
  }
  return offsets;
}

}  // namespace

std::vector<TimedCall> medians_of(const std::vector<const CommunicationRow*>& rows) {
  using Key = std::tuple<std::string, std::string, int64_t, std::string, double>;
  std::map<Key, std::pair<const CommunicationRow*, std::vector<double>>> calls;
  for (const CommunicationRow* row : rows) {
    auto& [first, times] =
        calls[{row->device, series_of(row->call), row->call.ranks, row->call.variant, swept_size(row->call)}];
    if (first == nullptr) first = row;
    times.push_back(row->seconds);
  }
  std::vector<TimedCall> result;
  for (auto& [key, entry] : calls) {
    result.push_back(
        {.call = entry.first->call, .device = entry.first->device, .seconds = median(std::move(entry.second))});
  }
  return result;
}

LawCalibration fit_law(const LawKind& kind, const std::vector<TimedCall>& calls, const SystemLibrary& systems) {
  return LawFit(kind, calls, systems).run();
}

SweepCalibration fit_sweep(const LawKind& kind, const LawCalibration& law, const std::vector<TimedCall>& calls,
                           const SystemTraits& system) {
  constexpr double spike = 0.22;         // a quarter longer than its neighbours
  constexpr double latency_bound = 1.5;  // times the shortest: above, sizes count, and a peak may be a change of kernel
  constexpr double tolerance = 0.002;
  struct Swept {
    Leftovers all;
    std::map<std::string, Leftovers> variants;
    std::map<double, double> seconds;
    bool is_latency_bound = true;  // at its short end
  };
  std::map<std::pair<std::string, int64_t>, Swept> series;
  for (const TimedCall& timed : calls) {
    const auto seconds = swept_reference_seconds(kind, law.curves, timed.call, system,
                                                 law_constants(*kind.law, law, timed.call.operation, timed.device));
    if (!seconds) continue;
    // Hosts without NVLink run NCCL among more than two ranks, whatever the size.
    const std::string name = system.is_host_link ? series_without_shots(timed.call) : series_of(timed.call);
    Swept& swept = series[{name, timed.call.ranks}];
    swept.is_latency_bound = system.is_host_link || all_reduce_shots(timed.call) != AllReduceShots::two;
    const double x = doublings(swept_size(timed.call)), leftover = portable_log(timed.seconds / *seconds);
    swept.all[x].push_back(leftover);
    swept.variants[timed.call.variant][x].push_back(leftover);
    swept.seconds[x] = *seconds;
  }
  SweepCalibration result{.law = std::string(kind.name), .system = system.name, .rows = calls.size()};
  for (auto& [key, swept] : series) {
    SweepSeries& entry = result.series[key];
    const auto cleaned = [&, &swept = swept](const Leftovers& leftovers) {
      Curve curve = curve_through(leftovers);
      if (!swept.is_latency_bound) return curve;
      size_t short_ones = 0;
      const double longest = latency_bound * swept.seconds.begin()->second;
      while (short_ones < curve.x.size() && swept.seconds[curve.x[short_ones]] < longest) ++short_ones;
      remove_spikes(curve, spike, short_ones);
      return curve;
    };
    if (kind.pools_variants) entry.common = cleaned(swept.all);
    for (const auto& [variant, leftovers] : swept.variants) {
      entry.variants[variant] =
          kind.pools_variants ? offsets_from(entry.common, leftovers) : thinned(cleaned(leftovers), tolerance);
    }
    std::erase_if(entry.variants, [](const auto& variant) { return variant.second.x.empty(); });
    if (kind.pools_variants) entry.common = thinned(entry.common, tolerance);
  }
  return result;
}

}  // namespace foretoken
