#include "report/accelerator_plan_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "report/accelerator_report.h"
#include "report/json_rows_csv.h"
#include "report/page/html_page.h"
#include "report/page/line_chart.h"
#include "report/table.h"

namespace foretoken {
namespace {

struct TextTable {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
  size_t left_column = 0;  // the one with words
};

double base_value(const AcceleratorPlanReport& report) {
  return report.question.objective.value(report.plan.base.run);
}

// What the best so far is compared with: both come from few tries of mappings.
double quick_base_value(const AcceleratorPlanReport& report) {
  return report.question.objective.value(report.plan.base_quickly.run);
}

double ratio_to_base(const AcceleratorPlanReport& report, const DesignCosts& costs) {
  return report.question.objective.value(costs.run) / base_value(report);
}

std::string objective_text(const AcceleratorPlanReport& report) {
  return report.question.objective.metrics.size() > 1 ? "the product of " + report.question.objective.name()
                                                      : report.question.objective.name();
}

std::string figures_text(const DesignCosts& costs) {
  return fmt::format("{}, {} cycles, {:.3g} mm2 and {:.3g} W", picojoule_text(costs.run.energy_pj),
                     count_text(costs.run.cycles), costs.area_mm2, costs.watts);
}

// Whether one of the searches left no design out.
bool saw_all(const AcceleratorPlan& plan) {
  return plan.bound && std::any_of(plan.searches.begin(), plan.searches.end(), [&](const DesignSearchResult& own) {
           return std::ssize(own.designs) + own.ruled_out == plan.bound->designs;
         });
}

std::string certainty_text(const AcceleratorPlanReport& report) {
  const AcceleratorPlan& plan = report.plan;
  std::string text = fmt::format("It is the best of {} evaluations", plan.evaluations);
  if (plan.ruled_out > 0) text += fmt::format(" and {} designs ruled out by bounds", plan.ruled_out);
  text += saw_all(plan) ? std::string(", which are all within the limits; their mappings were searched, not proven")
                        : fmt::format(", not proven to be the best of {:.6g} designs", plan.designs);
  const double value = report.question.objective.value(plan.winner()->costs.run);
  if (plan.bound) {
    text += fmt::format("; by bounds, none is more than {:.0f}% below it, and {} of the {} within limits are no better",
                        100 * std::max(0.0, 1 - plan.bound->value / value), plan.bound->no_better, plan.bound->designs);
  } else if (plan.winner_least) {
    text += fmt::format("; a better mapping may bring it down by at most {:.0f}%",
                        100 * (1 - report.question.objective.value(*plan.winner_least) / value));
  }
  return text + ".";
}

std::string sentence(const AcceleratorPlanReport& report) {
  const AcceleratorPlan& plan = report.plan;
  const std::string& name = report.space.base().architecture.name;
  const EvaluatedDesign* winner = plan.winner();
  if (winner == nullptr) {
    return fmt::format("None of {} evaluated designs around {} runs {} within the limits.", plan.evaluations, name,
                       report.work);
  }
  const double ratio = ratio_to_base(report, winner->costs);
  std::string text = fmt::format("For {}, {} with {}: {:.3g} of the base's {} ({} against {}). ", report.work, name,
                                 report.space.changes_text(winner->point), ratio, objective_text(report),
                                 figures_text(winner->costs), figures_text(plan.base));
  if (!plan.base.is_usable()) text += fmt::format("The base itself breaks a limit: {}. ", plan.base.fault);
  return text + certainty_text(report);
}

std::vector<std::string> notes(const AcceleratorPlanReport& report) {
  std::vector<std::string> all;
  const EvaluatedDesign* winner = report.plan.winner();
  if (winner == nullptr) return all;
  const auto knobs = report.space.knobs();
  for (size_t k = 0; k < knobs.size(); ++k) {
    const double now = knob_value(report.space.base().architecture, knobs[k]);
    if (knobs[k].kind == KnobKind::bandwidth && report.space.value(winner->point, k) > now) {
      all.push_back(
          fmt::format("{} is free here: a faster memory costs neither area nor energy in this model", knobs[k].name()));
    }
  }
  return all;
}

TextTable best_table(const AcceleratorPlanReport& report) {
  TextTable table{.titles = {"of base", "energy", "cycles", "mm2", "W", "design"}, .left_column = 5};
  const auto add = [&](const DesignCosts& costs, const std::string& name) {
    table.rows.push_back({fmt::format("{:.3f}", ratio_to_base(report, costs)), picojoule_text(costs.run.energy_pj),
                          count_text(costs.run.cycles), fmt::format("{:.3g}", costs.area_mm2),
                          fmt::format("{:.3g}", costs.watts), name});
  };
  const bool has_frontier = !report.plan.frontier.empty();
  for (const EvaluatedDesign& own : has_frontier ? report.plan.frontier : report.plan.finalists) {
    add(own.costs, report.space.changes_text(own.point));
  }
  add(report.plan.base, "the base");
  return table;
}

TextTable knob_table(const AcceleratorPlanReport& report) {
  TextTable table{.titles = {"knob", "base", "chosen", "best by effect", "worst/best"}};
  const EvaluatedDesign* winner = report.plan.winner();
  for (const KnobEffect& effect : report.plan.effects) {
    const Knob& knob = report.space.knobs()[effect.knob];
    table.rows.push_back(
        {knob.name(), knob_value_text(knob, knob_value(report.space.base().architecture, knob)),
         winner != nullptr ? knob_value_text(knob, report.space.value(winner->point, effect.knob)) : "",
         knob_value_text(knob, knob.values[effect.best]), fmt::format("{:.2f}", effect.ratio)});
  }
  return table;
}

// How many evaluations a search took to come within a hundredth of the best that any found; 0 = it did not.
size_t evaluations_to_best(const AcceleratorPlanReport& report, const DesignSearchResult& search) {
  constexpr double near = 1.01;
  double best = std::numeric_limits<double>::infinity();
  for (const DesignSearchResult& own : report.plan.searches) {
    if (!own.best_so_far.empty()) best = std::min(best, own.best_so_far.back());
  }
  for (size_t i = 0; i < search.best_so_far.size(); ++i) {
    if (search.best_so_far[i] <= best * near && std::isfinite(best)) return i + 1;
  }
  return 0;
}

TextTable method_table(const AcceleratorPlanReport& report) {
  TextTable table{.titles = {"method", "evaluated", "ruled out", "best, of base", "within 1% of the best after"}};
  for (const DesignSearchResult& own : report.plan.searches) {
    const bool found = !own.best_so_far.empty() && std::isfinite(own.best_so_far.back());
    const size_t after = evaluations_to_best(report, own);
    table.rows.push_back({own.method, fmt::format("{}", own.designs.size()), fmt::format("{}", own.ruled_out),
                          found ? fmt::format("{:.3f}", own.best_so_far.back() / quick_base_value(report)) : "none",
                          after > 0 ? fmt::format("{}", after) : "never"});
  }
  return table;
}

std::string table_text(const TextTable& own) {
  std::vector<Table::Column> columns;
  for (size_t i = 0; i < own.titles.size(); ++i) {
    columns.push_back(
        {.title = own.titles[i], .align = i == own.left_column ? Table::Align::left : Table::Align::right});
  }
  Table table(columns);
  for (const std::vector<std::string>& row : own.rows) table.add(row);
  return table.text();
}

Json costs_json(const AcceleratorPlanReport& report, const DesignCosts& costs) {
  return Json::object({{"energy_pj", costs.run.energy_pj},
                       {"cycles", costs.run.cycles},
                       {"latency_cycles", costs.run.latency_cycles},
                       {"area_mm2", costs.area_mm2},
                       {"watts", costs.watts},
                       {"of_base", ratio_to_base(report, costs)},
                       {"fault", costs.fault}});
}

Json design_json(const AcceleratorPlanReport& report, const EvaluatedDesign& own) {
  Json values = Json::object();
  for (size_t k = 0; k < own.point.size(); ++k) {
    values.set(report.space.knobs()[k].name(), report.space.value(own.point, k));
  }
  return Json::object({{"knobs", std::move(values)}, {"costs", costs_json(report, own.costs)}});
}

Json designs_json(const AcceleratorPlanReport& report, const std::vector<EvaluatedDesign>& designs) {
  Json list = Json::array();
  for (const EvaluatedDesign& own : designs) list.push(design_json(report, own));
  return list;
}

Json methods_json(const AcceleratorPlanReport& report) {
  Json methods = Json::array();
  for (const DesignSearchResult& own : report.plan.searches) {
    Json curve = Json::array();
    for (const double best : own.best_so_far) curve.push(best / quick_base_value(report));
    methods.push(Json::object({{"method", own.method},
                               {"evaluated", own.designs.size()},
                               {"ruled_out", own.ruled_out},
                               {"exhausted", own.exhausted},
                               {"best_of_base", std::move(curve)}}));
  }
  return methods;
}

Json effects_json(const AcceleratorPlanReport& report) {
  Json effects = Json::array();
  for (const KnobEffect& effect : report.plan.effects) {
    const Knob& knob = report.space.knobs()[effect.knob];
    Json values = Json::array();
    for (size_t i = 0; i < knob.values.size(); ++i) {
      values.push(
          Json::object({{"value", knob.values[i]}, {"factor", effect.factors[i]}, {"designs", effect.seen[i]}}));
    }
    effects.push(Json::object({{"knob", knob.name()},
                               {"base", knob_value(report.space.base().architecture, knob)},
                               {"worst_of_best", effect.ratio},
                               {"best", knob.values[effect.best]},
                               {"values", std::move(values)}}));
  }
  return effects;
}

std::string frontier_svg(const AcceleratorPlanReport& report) {
  const auto& metrics = report.question.objective.metrics;
  LineChart chart{.title = "Designs that no other beats in both",
                  .x_label = fmt::format("{}, of the base", metric_name(metrics.front())),
                  .y_label = fmt::format("{}, of the base", metric_name(metrics.back()))};
  ChartLine line{.name = "frontier"};
  const auto of_base = [&](MappingMetric metric, const DesignCosts& costs) {
    return metric_value(metric, costs.run) / metric_value(metric, report.plan.base.run);
  };
  for (const EvaluatedDesign& own : report.plan.frontier) {
    line.points.emplace_back(of_base(metrics.front(), own.costs), of_base(metrics.back(), own.costs));
  }
  chart.lines.push_back(std::move(line));
  return line_chart_svg(chart);
}

}  // namespace

std::string accelerator_plan_text(const AcceleratorPlanReport& report) {
  std::string text = wrap_lines(sentence(report) + "\n\n", page_width, 2);
  if (report.plan.winner() != nullptr) {
    text += report.plan.frontier.empty() ? "The best:\n" : "Designs that no other beats in both:\n";
    text += table_text(best_table(report)) + "\n";
  }
  text += "What each knob does to " + objective_text(report) + ", the others alike:\n" + table_text(knob_table(report));
  if (report.plan.searches.size() > 1) {
    text += "\nMethods, with few tries of mappings:\n" + table_text(method_table(report));
  }
  for (const std::string& note : notes(report)) text += wrap_lines("note: " + note + "\n", page_width, 2);
  return text;
}

Json accelerator_plan_json(const AcceleratorPlanReport& report) {
  const AcceleratorPlan& plan = report.plan;
  Json json = Json::object({{"base_design", report.space.base().architecture.name},
                            {"work", report.work},
                            {"objective", report.question.objective.name()},
                            {"designs", plan.designs},
                            {"evaluations", plan.evaluations},
                            {"ruled_out", plan.ruled_out},
                            {"base", costs_json(report, plan.base)}});
  json.set("winner", plan.winner() != nullptr ? design_json(report, *plan.winner()) : Json());
  json.set("finalists", designs_json(report, plan.finalists));
  if (!plan.frontier.empty()) json.set("frontier", designs_json(report, plan.frontier));
  if (plan.bound) {
    json.set("bound", Json::object({{"of_base", plan.bound->value / base_value(report)},
                                    {"designs_within_limits", plan.bound->designs},
                                    {"proven_no_better", plan.bound->no_better}}));
  }
  Json all_notes = Json::array();
  for (const std::string& note : notes(report)) all_notes.push(note);
  return json.set("effects", effects_json(report))
      .set("methods", methods_json(report))
      .set("notes", std::move(all_notes));
}

std::string accelerator_plan_csv(const AcceleratorPlanReport& report) {
  Json rows = Json::array();
  for (const DesignSearchResult& search : report.plan.searches) {
    for (size_t i = 0; i < search.designs.size(); ++i) {
      const EvaluatedDesign& own = search.designs[i];
      Json row = Json::object({{"method", search.method}, {"evaluation", i + 1}});
      for (size_t k = 0; k < own.point.size(); ++k) {
        row.set(report.space.knobs()[k].name(), report.space.value(own.point, k));
      }
      row.set("energy_pj", own.costs.run.energy_pj).set("cycles", own.costs.run.cycles);
      row.set("latency_cycles", own.costs.run.latency_cycles).set("area_mm2", own.costs.area_mm2);
      rows.push(row.set("watts", own.costs.watts).set("fault", own.costs.fault));
    }
  }
  return json_rows_csv(rows);
}

std::string learning_curve_svg(const AcceleratorPlanReport& report) {
  LineChart chart{.title = fmt::format("Best {} so far", objective_text(report)),
                  .x_label = "designs evaluated",
                  .y_label = "of the base",
                  .logarithmic_y = true};
  for (const DesignSearchResult& own : report.plan.searches) {
    ChartLine line{.name = own.method};
    for (size_t i = 0; i < own.best_so_far.size(); ++i) {
      if (!std::isfinite(own.best_so_far[i])) continue;
      line.points.emplace_back(static_cast<double>(i + 1), own.best_so_far[i] / quick_base_value(report));
    }
    chart.lines.push_back(std::move(line));
  }
  return line_chart_svg(chart);
}

std::string accelerator_plan_html(const AcceleratorPlanReport& report) {
  HtmlPage page(fmt::format("foretoken: designs around {}", report.space.base().architecture.name));
  page.sentence(sentence(report));
  const auto add = [&](const std::string& heading, const TextTable& table) {
    page.heading(heading);
    page.table(table.titles, table.rows);
  };
  if (!report.plan.frontier.empty()) page.figure(frontier_svg(report), "Designs that no other beats in both");
  if (report.plan.winner() != nullptr) add("The best designs", best_table(report));
  add("What each knob does, the others alike", knob_table(report));
  page.heading("How the search learnt");
  page.figure(learning_curve_svg(report),
              "The best design so far against designs evaluated, with few tries of mappings");
  page.table(method_table(report).titles, method_table(report).rows);
  for (const std::string& note : notes(report)) page.paragraph("Note: " + note + ".");
  page.heading("To reproduce");
  page.preformatted(report.command);
  return page.finish();
}

}  // namespace foretoken
