#include "report/plan/goal_seek_report.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/table.h"
#include "report/plan/serving_plan_words.h"

namespace foretoken {
namespace {

std::string cost_at_rate_text(const SoughtChange& one) {
  if (!one.at_rate) return "serves less";
  if (one.at_rate->cost_ratio <= 0) return "-";
  return fmt::format("{}x {:.2f}", one.at_rate->is_simulated ? "" : "~", one.at_rate->cost_ratio);
}

std::string goal_seek_table(const ServingPlanReport& report) {
  const std::optional<double>& rate = report.question.rate;
  std::vector<Table::Column> columns = {{"change", Table::Align::left}, {"max req/s"}, {"capacity"}};
  if (rate) {
    columns.insert(columns.end(), {{fmt::format("cost at {} req/s", asked_rate_number(*rate))}, {"GPUs there"}});
  } else {
    columns.push_back({"cost at full load"});
  }
  columns.push_back({rate ? "layout there" : "layout", Table::Align::left});
  Table table(std::move(columns));
  for (const SoughtChange& one : report.sought->changes) {
    std::vector<std::string> cells = {one.change, (one.is_simulated ? "" : "~") + rate_number(one.requests_per_s),
                                      fmt::format("x {:.2f}", one.capacity_ratio)};
    const ServingLayout& shown = one.at_rate ? one.at_rate->layout : one.layout;
    if (rate) {
      cells.push_back(cost_at_rate_text(one));
      cells.push_back(one.at_rate ? fmt::format("{}", shown.devices()) : "-");
    } else {
      cells.push_back(one.cost_ratio > 0 ? fmt::format("x {:.2f}", one.cost_ratio) : "-");
    }
    cells.push_back(layout_text(shown));
    table.add(std::move(cells));
  }
  return table.text();
}

// Where the search for changes finds a better layout though nothing is changed.
std::string better_base_text(const SoughtBase& base) {
  if (base.is_winner && !base.at_rate) return "";
  const std::string what =
      base.is_winner
          ? fmt::format("{} serves this rate at a lower cost", layout_text(*base.at_rate))
          : fmt::format("{} sustains more ({} requests/s)", layout_text(base.layout), rate_number(base.requests_per_s));
  return wrap_lines(fmt::format("Without any change, {} by short simulations: gains are counted from that. Raise "
                                "{{most_simulated}} so that the search above tries it too.\n",
                                what),
                    page_width(), 2);
}

}  // namespace

std::string goal_seek_text(const ServingPlanReport& report) {
  const bool has_rate = report.question.rate.has_value();
  const SoughtGoals& sought = *report.sought;
  if (!sought.base) {
    return wrap_lines("No layout meets the limits at any rate, so {goal_seek} has no layout to change.\n", page_width(),
                      2);
  }
  std::string cautions;
  bool halves = false, doubles = false;
  for (const SoughtChange& one : sought.changes) {
    if (!one.caution.empty())
      cautions += wrap_lines(fmt::format("  {}: {}.\n", one.change, one.caution), page_width(), 4);
    const double cost = one.asked_cost_ratio(has_rate);
    halves = halves || (cost > 0 && cost <= 0.5);
    doubles = doubles || one.capacity_ratio >= 2;
  }
  std::string text =
      has_rate ? "What would lower the hourly cost of serving this rate, or raise the capacity on as many GPUs, one "
                 "change at a time (against the best layout; ~ by closed form, else by short simulations):\n"
               : "What would lower the cost of a request at full load or raise the capacity, one change at a time "
                 "(against the best layout; ~ by closed form, else by short simulations):\n";
  if (report.result.winner() == nullptr) {
    text = fmt::format("No layout sustains the rate. Compared with {}, which sustains the most ({} requests/s): ",
                       layout_text(sought.base->layout), rate_number(sought.base->requests_per_s)) +
           text;
  }
  text = better_base_text(*sought.base) + wrap_lines(text, page_width(), 2);
  if (!sought.changes.empty()) text += goal_seek_table(report);
  if (sought.stopped) text += "The search for changes was stopped before its end: others may gain more.\n";
  if (!halves && !sought.stopped) text += "No single change halves the cost.\n";
  if (!doubles && !sought.stopped) text += "No single change doubles the capacity.\n";
  return text + cautions;
}

Json goal_seek_json(const ServingPlanReport& report) {
  Json changes = Json::array();
  for (const SoughtChange& one : report.sought->changes) {
    Json change = Json::object({{"change", one.change},
                                {"caution", one.caution},
                                {"key", one.layout.key()},
                                {"requests_per_s", one.requests_per_s},
                                {"capacity_ratio", one.capacity_ratio},
                                {"cost_ratio", one.cost_ratio > 0 ? Json(one.cost_ratio) : Json()},
                                {"simulated", one.is_simulated}});
    if (const std::optional<ChangeAtRate>& there = one.at_rate) {
      change.set("at_rate", Json::object({{"key", there->layout.key()},
                                          {"devices", there->layout.devices()},
                                          {"requests_per_s", there->requests_per_s},
                                          {"cost_ratio", there->cost_ratio > 0 ? Json(there->cost_ratio) : Json()},
                                          {"simulated", there->is_simulated}}));
    }
    changes.push(std::move(change));
  }
  return changes;
}

}  // namespace foretoken
