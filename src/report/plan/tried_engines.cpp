#include "report/plan/tried_engines.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "model/weights.h"
#include "plan/serving/layout_space.h"
#include "report/plan/serving_plan_words.h"

namespace foretoken {
namespace {

// Whether devices of this name talk to each other in a layout that was looked at.
bool uses_links(const ServingSearchResult& result, const std::string& device) {
  const bool any = std::any_of(result.points.begin(), result.points.end(), [&](const PlanPoint& point) {
    const auto shares_work = [&](const EnginePool& pool) {
      return pool.engine.device == device && (pool.engine.devices() > 1 || point.layout.decode);
    };
    return shares_work(point.layout.pool) || (point.layout.decode && shares_work(*point.layout.decode));
  });
  return any || (result.without_rate && uses_links(*result.without_rate, device));
}

// The most devices of this name that talk to each other in an engine of the layout.
int64_t talking_devices(const ServingLayout& layout, const std::string& device) {
  int64_t most = 0;
  const auto look = [&](const EnginePool& pool) {
    if (pool.engine.device == device) most = std::max(most, pool.engine.devices() / pool.engine.pipeline);
  };
  look(layout.pool);
  if (layout.decode) look(*layout.decode);
  return most;
}

// The same in the winner's engines; else in the largest that were looked at, and where the rate cannot be kept, in
// those that were looked at without it.
int64_t talking_devices(const ServingSearchResult& result, const std::string& device) {
  const PlanPoint* winner = result.winner();
  int64_t devices = winner != nullptr ? talking_devices(winner->layout, device) : 0;
  if (devices > 1) return devices;
  for (const PlanPoint& point : result.points) devices = std::max(devices, talking_devices(point.layout, device));
  return devices <= 1 && result.without_rate ? talking_devices(*result.without_rate, device) : devices;
}

// What is assumed of the links that the answer rests on.
std::vector<std::string> link_notes(const ServingPlanReport& report, const HardwareChoice& choice) {
  if (choice.link_notes.empty() || !uses_links(report.result, choice.device.name)) return {};
  const auto found = choice.link_notes.lower_bound(talking_devices(report.result, choice.device.name));
  return found != choice.link_notes.end() ? found->second : choice.link_notes.rbegin()->second;
}

// Whether layouts are ranked as those of `result`: where nothing serves the rate, as if none had been asked for.
struct Ranked {
  const ServingQuestion* question;
  const ServingSearchResult* result;

  std::optional<LayoutScore> score(const PlanPoint& point) const {
    return layout_score(*question, point.layout, ranked_capacity(*question, *result, point));
  }
  // The best that keeps the limits at any rate; simulated at length before others, which short runs may flatter.
  const PlanPoint* best(const std::function<bool(const ServingLayout&)>& is_its) const {
    const PlanPoint* best = nullptr;
    const auto rank = [&](const PlanPoint& point) {
      const std::optional<LayoutScore> own = score(point);
      const bool is_promised = point.effort == Effort::promised;
      return std::tuple(own.has_value(), is_promised, is_at_length(point.effort), own, point.capacity.value);
    };
    for (const PlanPoint& point : result->points) {
      if (point.capacity.value <= 0 || !is_its(point.layout)) continue;
      if (best == nullptr || rank(point) > rank(*best)) best = &point;
    }
    if (const PlanPoint* winner = result->winner(); winner != nullptr && is_its(winner->layout)) return winner;
    return best;
  }
};

// How far a run is from keeping its limits: above 1 where it breaks one.
double worst_ratio(const ServingQuestion& question, const PlanRun& run) {
  double worst = 0;
  for (size_t i = 0; i < question.slos.size(); ++i) {
    const double ratio = run.achieved_ms[i] / question.slos[i].limit_ms;
    if (!(ratio <= worst)) worst = ratio;
  }
  return worst;
}

std::string memory_text(const ServingPlanReport& report, const HardwareChoice& hardware) {
  const MaybeFact<Bytes>& memory = hardware.device.memory;
  if (!memory) return "";
  const int64_t devices = affordable_devices(report.question, hardware);
  const std::string budget = devices < hardware.most_devices
                                 ? fmt::format("; the budget pays for {} of {} GPUs", devices, hardware.most_devices)
                                 : "";
  return fmt::format(" ({:.0f} GB of weights in the model's own format, {} x {:.0f} GB of memory{})",
                     weight_bytes(report.question.model).value() / 1e9, devices, memory->value.value() / 1e9, budget);
}

// "TTFT p99 < 500 ms is out of reach: a request alone takes 812 ms or more"; empty where each limit is in reach.
std::string out_of_reach_text(const ServingQuestion& question, const TriedEngine& tried) {
  std::string text;
  for (size_t i = 0; i < tried.alone_ms.size(); ++i) {
    if (tried.alone_ms[i] <= question.slos[i].limit_ms) continue;
    text += fmt::format("{}{} is out of reach: a request alone takes at least {}", text.empty() ? "" : "; ",
                        slo_text(question.slos[i]), duration_above(question.slos[i], tried.alone_ms[i]));
  }
  return text;
}

// "weights and the longest request do not fit the memory (12 of 20 layouts)", the most frequent first.
std::string pruned_text(const ServingPlanReport& report, const TriedEngine& tried) {
  std::vector<size_t> reasons;
  for (size_t i = 0; i < prune_reasons; ++i) {
    if (tried.pruned[i] > 0) reasons.push_back(i);
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [&](size_t a, size_t b) { return tried.pruned[a] > tried.pruned[b]; });
  std::string text;
  for (const size_t i : reasons) {
    const auto reason = static_cast<PruneReason>(i);
    text += fmt::format("{}{}", text.empty() ? "" : "; ", prune_reason_text(reason));
    if (reason == PruneReason::no_room) text += memory_text(report, report.question.hardware_of(tried.device));
    if (reason == PruneReason::too_few_requests && tried.most_capable) {
      text += fmt::format(": at most {} requests/s, with {}", rate_number(tried.most_requests_per_s),
                          layout_text(*tried.most_capable));
    }
    if (reasons.size() > 1) text += fmt::format(" ({} of {} layouts)", tried.pruned[i], tried.layouts);
  }
  return text;
}

// Why none of its layouts keeps the limits.
std::string reason_of(const ServingPlanReport& report, const TriedEngine& tried) {
  if (tried.layouts == 0) {
    return why_no_layouts(report.question, report.question.hardware_of(tried.device), tried.engine);
  }
  const std::string out_of_reach = out_of_reach_text(report.question, tried);
  if (!out_of_reach.empty()) return out_of_reach;
  const NearRun nearest = nearest_run(report, &tried);
  if (nearest.run == nullptr) {
    const std::string pruned = pruned_text(report, tried);
    return pruned.empty() ? "the search was stopped before any of its layouts was simulated" : pruned;
  }
  return fmt::format("no layout keeps the limits; the nearest, {}, reaches {} at {} requests/s{}",
                     layout_text(nearest.point->layout), achieved_text(report.question, *nearest.run),
                     rate_number(nearest.run->rate),
                     is_within_limits(report.question, *nearest.run) ? ", too close to the limits to be promised" : "");
}

std::string below_rate_text(const ServingQuestion& question, const PlanPoint& point) {
  if (point.capacity.value >= *question.rate) {
    return fmt::format("sustains the rate by its middle estimate, but only {} requests/s at the slow end",
                       rate_number(point.capacity.low));
  }
  return fmt::format("sustains {}{} of {} requests/s; about {} would be enough",
                     point.effort == Effort::promised ? "" : "about ", rate_number(point.capacity.value),
                     asked_rate_number(*question.rate), counted(devices_for_rate(*question.rate, point), "GPU"));
}

}  // namespace

bool is_within_limits(const ServingQuestion& question, const PlanRun& run) {
  // Of requests that must keep all limits at once, the percentiles of each say too little.
  if (question.joint_percent) return false;
  const bool fails_too_often = std::any_of(question.slos.begin(), question.slos.end(), [&](const LatencySlo& slo) {
    return run.failed_share > 1 - slo.percentile / 100;
  });
  return !fails_too_often && worst_ratio(question, run) <= 1;
}

NearRun nearest_run(const ServingPlanReport& report, const TriedEngine* of) {
  NearRun nearest;
  const auto look = [&](const std::vector<PlanPoint>& points) {
    for (const PlanPoint& point : points) {
      if (of != nullptr && !is_of(point.layout, *of)) continue;
      for (const PlanRun& run : point.runs) {
        const double ratio = worst_ratio(report.question, run);
        const bool nearer = nearest.run == nullptr || ratio < worst_ratio(report.question, *nearest.run);
        if (std::isfinite(ratio) && nearer) nearest = {.point = &point, .run = &run};
      }
    }
  };
  look(report.result.points);
  if (nearest.run == nullptr && report.result.without_rate) look(report.result.without_rate->points);
  return nearest;
}

std::string rests_on_text(const ServingQuestion& question, const ServingLayout& layout) {
  bool sheet_only = false, is_swept = true;
  double sheet_share = 0;
  for (const auto& [choice, devices] : question.hardware_of(layout)) {
    sheet_only = sheet_only || choice->sheet_only || choice->is_bound;
    is_swept = is_swept && choice->is_swept;
    sheet_share = std::max(sheet_share, choice->sheet_share);
  }
  constexpr double worth_saying = 0.1;
  if (!sheet_only && sheet_share > worth_saying) return fmt::format("{:.0f}% sheet", 100 * sheet_share);
  return sheet_only ? "spec sheet" : is_swept ? "this GPU" : "other GPUs";
}

std::vector<DecisionRow> decision_rows(const ServingPlanReport& report) {
  ServingQuestion any_rate = report.question;
  any_rate.rate.reset();
  any_rate.objective = PlanObjective::capacity;
  const Ranked asked{.question = &report.question, .result = &report.result};
  const Ranked lower{.question = &any_rate, .result = &report.result};
  const Ranked lowest{.question = &any_rate, .result = report.result.without_rate.get()};
  const std::vector<size_t> alike = indistinguishable(report.question, report.result);
  std::vector<DecisionRow> serving, below, none;
  const auto add = [&](const TriedEngine* tried, const std::function<bool(const ServingLayout&)>& is_its) {
    DecisionRow row{.tried = tried, .point = asked.best(is_its), .reason = {}};
    row.serves = row.point != nullptr && asked.score(*row.point).has_value();
    if (row.serves) {
      row.is_best = row.point == report.result.winner();
      row.is_tied =
          std::any_of(alike.begin(), alike.end(), [&](size_t i) { return is_its(report.result.points[i].layout); });
      row.is_tied = row.is_tied && !row.is_best;
      serving.push_back(row);
      return;
    }
    row.point = lowest.result != nullptr ? lowest.best(is_its) : nullptr;
    if (row.point == nullptr) row.point = lower.best(is_its);
    if (row.point != nullptr) {
      row.reason = report.question.rate ? below_rate_text(report.question, *row.point) : "";
      below.push_back(row);
    } else if (tried != nullptr) {
      row.reason = reason_of(report, *tried);
      none.push_back(row);
    }
  };
  for (const TriedEngine& tried : report.result.tried) {
    add(&tried, [&](const ServingLayout& layout) { return is_of(layout, tried); });
  }
  add(nullptr, [](const ServingLayout& layout) { return layout.is_mixed(); });
  std::stable_sort(serving.begin(), serving.end(), [&](const DecisionRow& a, const DecisionRow& b) {
    if (a.is_best != b.is_best) return a.is_best;
    const bool doubtful = serves_by_middle_alone(report.question, report.result, a.point->layout);
    if (doubtful != serves_by_middle_alone(report.question, report.result, b.point->layout)) return !doubtful;
    return asked.score(*a.point) > asked.score(*b.point);
  });
  // The one that the answer's sentence names comes first: others are estimates, which may look better.
  const PlanPoint* most = lowest.result != nullptr ? lowest.result->winner() : nullptr;
  std::stable_sort(below.begin(), below.end(), [&](const DecisionRow& a, const DecisionRow& b) {
    if ((a.point == most) != (b.point == most)) return a.point == most;
    return a.point->capacity.value > b.point->capacity.value;
  });
  serving.insert(serving.end(), below.begin(), below.end());
  serving.insert(serving.end(), none.begin(), none.end());
  return serving;
}

DeviceNotes plan_device_notes(const ServingPlanReport& report) {
  DeviceNotes notes;
  for (const HardwareChoice& choice : report.question.hardware) {
    notes.add_like(choice.device);
    for (const std::string& engine : report.question.choices.engines) {
      if (runs_on(engine_kind(engine), choice.device)) notes.add_engine(engine, choice.device);
    }
    for (const std::string& note : link_notes(report, choice)) notes.add_sentence(note);
    if (choice.is_bound) notes.add_bounds(choice.device);
    if (!choice.sheet_only) continue;
    if (choice.is_bound) notes.sheet_only.push_back(choice.device.name);
    if (!choice.is_bound) notes.add_sheet_only(choice.device);
  }
  if (report.result.ranked_by_slow_end) {
    notes.sentences.emplace_back(
        "If more than a third of a device's step time comes from its spec sheet, its layouts are ranked by the slow "
        "end "
        "of their intervals. If none serves the rate there, they are ranked by the middle estimate, after all other "
        "devices.");
  }
  for (const std::string& sentence : tensor_sizes_left_out(report.question)) notes.sentences.push_back(sentence);
  return notes;
}

}  // namespace foretoken
