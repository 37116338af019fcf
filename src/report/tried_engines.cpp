#include "report/tried_engines.h"

#include <algorithm>

#include <fmt/format.h>

#include "plan/serving/layout_space.h"
#include "report/serving_plan_words.h"

namespace foretoken {
namespace {

// The best simulated layout that serves anything, by what layouts are ranked by; null = there is none.
const PlanPoint* best_point(const ServingPlanReport& report, const TriedEngine& tried) {
  const PlanPoint* best = nullptr;
  const auto score = [&](const PlanPoint& point) {
    const double capacity = ranked_capacity(report.question, report.result, point);
    return layout_score(report.question, point.layout, capacity);
  };
  for (const PlanPoint& point : report.result.points) {
    const EngineChoice& engine = point.layout.pool.engine;
    const bool is_its = engine.device == tried.device && engine.engine == tried.engine && !point.layout.is_mixed();
    if (!is_its || point.capacity.value <= 0) continue;
    if (best == nullptr || score(point) > score(*best)) best = &point;
  }
  return best;
}

// "weights and the longest request do not fit the memory (12 layouts)", the most frequent first.
std::string pruned_text(const TriedEngine& tried) {
  std::vector<size_t> reasons;
  for (size_t i = 0; i < prune_reasons; ++i) {
    if (tried.pruned[i] > 0) reasons.push_back(i);
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [&](size_t a, size_t b) { return tried.pruned[a] > tried.pruned[b]; });
  std::string text;
  for (const size_t i : reasons) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", prune_reason_text(static_cast<PruneReason>(i)));
    if (reasons.size() > 1) text += fmt::format(" ({} of {} layouts)", tried.pruned[i], tried.layouts);
  }
  return text;
}

// Whether its bounds leave room for a better layout than the winner.
bool can_win(const ServingPlanReport& report, const TriedEngine& tried) {
  const PlanPoint* winner = report.result.winner();
  if (winner == nullptr) return true;
  return layout_score(report.question, *tried.most_promising, tried.most_requests_per_s) >
         layout_score(report.question, winner->layout, ranked_capacity(report.question, report.result, *winner));
}

UnshownEngine unshown(const ServingPlanReport& report, const TriedEngine& tried) {
  UnshownEngine row{.device = tried.device, .engine = tried.engine, .reason = {}};
  if (tried.layouts == 0) {
    row.reason = why_no_layouts(report.question, report.question.hardware_of(tried.device), tried.engine);
    return row;
  }
  if (tried.most_promising) {
    row.most_requests_per_s = tried.most_requests_per_s;
    row.reason = fmt::format("at most {} requests/s, by {}; ", rate_number(tried.most_requests_per_s),
                             layout_text(*tried.most_promising));
    if (can_win(report, tried)) {
      row.reason += "not simulated (raise {most_simulated})";
    } else if (report.question.objective == PlanObjective::capacity) {
      row.reason += "not simulated, because that does not beat the winner";
    } else {
      row.reason += "not simulated, because it cannot be cheaper than the winner";
    }
    return row;
  }
  row.reason = tried.simulated > 0 ? fmt::format("none of {} simulated layouts meets the limits", tried.simulated)
                                   : pruned_text(tried);
  return row;
}

}  // namespace

std::vector<UnshownEngine> unshown_engines(const ServingPlanReport& report) {
  std::vector<UnshownEngine> rows;
  for (const TriedEngine& tried : report.result.tried) {
    if (best_point(report, tried) == nullptr) rows.push_back(unshown(report, tried));
  }
  return rows;
}

Json tried_engines_json(const ServingPlanReport& report) {
  Json list = Json::array();
  for (const TriedEngine& tried : report.result.tried) {
    Json row = Json::object({{"device", tried.device},
                             {"engine", tried.engine},
                             {"layouts", tried.layouts},
                             {"simulated", tried.simulated},
                             {"sheet_only", report.question.hardware_of(tried.device).sheet_only}});
    const PlanPoint* best = best_point(report, tried);
    row.set("best", best != nullptr ? Json(best->layout.key()) : Json());
    const std::optional<UnshownEngine> none = best == nullptr ? std::optional(unshown(report, tried)) : std::nullopt;
    row.set("reason", none ? Json(none->reason) : Json());
    row.set("most_requests_per_s", none && none->most_requests_per_s ? Json(*none->most_requests_per_s) : Json());
    list.push(std::move(row));
  }
  return list;
}

DeviceNotes plan_device_notes(const ServingPlanReport& report) {
  DeviceNotes notes;
  for (const HardwareChoice& choice : report.question.hardware) {
    notes.add_like(choice.device);
    for (const std::string& engine : report.question.choices.engines) {
      if (runs_on(engine_kind(engine), choice.device)) notes.add_engine(engine, choice.device);
    }
    for (const std::string& note : choice.link_notes) notes.add_sentence(note);
    if (choice.is_bound) notes.add_bounds(choice.device);
    if (!choice.sheet_only) continue;
    if (choice.is_bound) notes.sheet_only.push_back(choice.device.name);
    if (!choice.is_bound) notes.add_sheet_only(choice.device);
  }
  if (report.result.ranked_by_slow_end) {
    notes.sentences.emplace_back(
        "Layouts on devices known from their spec sheet only are ranked by the slow end of their intervals, because "
        "{hardware} also names measured devices.");
  }
  for (const std::string& sentence : tensor_sizes_left_out(report.question)) notes.sentences.push_back(sentence);
  return notes;
}

}  // namespace foretoken
