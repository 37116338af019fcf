#include "report/plan/day_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/table.h"
#include "report/plan/serving_plan_words.h"

namespace foretoken {
namespace {

std::string usd_of_day(const DayRun& run) {
  return run.usd ? fmt::format("{:.2f}", *run.usd) : "-";
}

std::string good_of_day(const DayRun& run) {
  return run.good_share ? fmt::format("{:.1f}%", 100 * *run.good_share) : "-";
}

Json day_run_json(const DayRun& run) {
  return Json::object({{"least_replicas", run.least_replicas},
                       {"most_replicas", run.most_replicas},
                       {"mean_replicas_paid_for", run.mean_held},
                       {"gpu_hours", run.gpu_hours},
                       {"usd_per_day", run.usd ? Json(*run.usd) : Json()},
                       {"share_within_limits", run.good_share ? Json(*run.good_share) : Json()},
                       {"starts", run.starts ? Json(*run.starts) : Json()}});
}

// What autoscaling gains for the first layout.
std::string day_sentence(const DayPlan& plan) {
  if (plan.layouts.empty()) return "";
  const DayOfLayout& best = plan.layouts.front();
  if (!best.scaled || best.fixed.gpu_hours <= 0) return "";
  const std::string all_day = counted(best.fixed.most_replicas, "replica");
  if (best.scaled->least_replicas == best.fixed.most_replicas && best.scaled->most_replicas == best.fixed.most_replicas)
    return fmt::format("Autoscaling changes nothing for {}: {} all day.\n", layout_text(best.layout), all_day);
  const std::string scaled =
      best.scaled->least_replicas == best.scaled->most_replicas
          ? counted(best.scaled->most_replicas, "replica")
          : fmt::format("{} to {} replicas", best.scaled->least_replicas, best.scaled->most_replicas);
  std::string text =
      fmt::format("Autoscaled with {}, {} uses {:.0f}% of the GPU-hours of {} all day", scaled,
                  layout_text(best.layout), 100 * best.scaled->gpu_hours / best.fixed.gpu_hours, all_day);
  if (best.scaled->good_share && best.fixed.good_share) {
    text += fmt::format("; {:.1f}% of the requests meet every limit ({:.1f}% without autoscaling)",
                        100 * *best.scaled->good_share, 100 * *best.fixed.good_share);
  }
  return text + ".\n";
}

}  // namespace

std::string day_plan_text(const DayPlan& plan) {
  std::string text =
      wrap_lines(fmt::format("A day with a mean of {} requests/s and a peak of {}. Fixed = enough "
                             "replicas for the peak all day; scaled = an "
                             "autoscaler ({}, target load {:.0f}% of each replica's capacity); "
                             "within = share of requests that meet every limit:\n",
                             rate_number(plan.settings.rates.mean()), rate_number(plan.settings.rates.peak()),
                             plan.settings.autoscaler, 100 * plan.settings.utilization),
                 page_width(), 2);
  Table table({{"layout", Table::Align::left},
               {.title = "device", .align = Table::Align::left, .is_name = true},
               {"fixed"},
               {"$/day"},
               {"within"},
               {"scaled"},
               {"$/day"},
               {"within"},
               {"starts"}});
  std::string reasons;
  for (const DayOfLayout& day : plan.layouts) {
    std::vector<std::string> cells = {layout_text(day.layout), devices_text(day.layout),
                                      fmt::format("{}", day.fixed.most_replicas), usd_of_day(day.fixed),
                                      good_of_day(day.fixed)};
    if (day.scaled) {
      cells.insert(cells.end(), {fmt::format("{}-{}", day.scaled->least_replicas, day.scaled->most_replicas),
                                 usd_of_day(*day.scaled), good_of_day(*day.scaled),
                                 day.scaled->starts ? fmt::format("{}", *day.scaled->starts) : "-"});
    } else {
      cells.insert(cells.end(), {"-", "-", "-", "-"});
      reasons += wrap_lines(fmt::format("  {}: {}.\n", layout_text(day.layout), day.why_not_scaled), page_width(), 4);
    }
    if (day.scaled && day.scaled->most_replicas < plan.settings.least_replicas) {
      reasons += wrap_lines(
          fmt::format("  {}: the devices hold {}, not the {} of {{min_replicas}}.\n", layout_text(day.layout),
                      counted(day.scaled->most_replicas, "replica"), plan.settings.least_replicas),
          page_width(), 4);
    }
    table.add(std::move(cells));
  }
  text += table.text() + reasons + wrap_lines(day_sentence(plan), page_width(), 2);
  if (plan.speed > 1) {
    text += wrap_lines(fmt::format("The simulated day is {:.1f} times shorter than a real day, "
                                   "so rates change faster "
                                   "than in reality. Costs are for 24 hours.\n",
                                   plan.speed),
                       page_width(), 2);
  }
  return text;
}

Json day_plan_json(const DayPlan& plan) {
  Json layouts = Json::array();
  for (const DayOfLayout& day : plan.layouts) {
    layouts.push(Json::object({{"key", day.layout.key()},
                               {"layout", layout_text(day.layout)},
                               {"device", devices_text(day.layout)},
                               {"fixed", day_run_json(day.fixed)},
                               {"autoscaled", day.scaled ? day_run_json(*day.scaled) : Json()},
                               {"reason", day.why_not_scaled.empty() ? Json() : Json(day.why_not_scaled)}}));
  }
  return Json::object({{"mean_requests_per_s", plan.settings.rates.mean()},
                       {"peak_requests_per_s", plan.settings.rates.peak()},
                       {"autoscaler", plan.settings.autoscaler},
                       {"utilization", plan.settings.utilization},
                       {"simulated_speed", plan.speed},
                       {"layouts", std::move(layouts)}});
}

}  // namespace foretoken
