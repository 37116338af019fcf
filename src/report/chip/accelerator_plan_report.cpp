#include "report/chip/accelerator_plan_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/statistics.h"
#include "base/text.h"
#include "report/chip/accelerator_report.h"
#include "report/drawing/html_page.h"
#include "report/drawing/line_chart.h"
#include "report/parts/json_rows_csv.h"
#include "report/parts/table.h"

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
  const double below = plan.bound ? std::max(0.0, 1 - plan.bound->value / value) : 1;
  constexpr double says_something = 0.95;
  if (plan.bound && (below < says_something || plan.bound->no_better > 0)) {
    text += fmt::format(
        "; bounds show that no design is more than {:.0f}% better, and that {} of the {} designs within the limits are "
        "no better",
        100 * below, plan.bound->no_better, plan.bound->designs);
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
  if (winner == nullptr) return accelerator_plan_failure(report);
  const double ratio = ratio_to_base(report, winner->costs);
  std::string text = fmt::format("For {}, {} with {}: {:.3g} of the base's {} ({} against {}). ", report.work, name,
                                 report.space.changes_text(winner->point), ratio, objective_text(report),
                                 figures_text(winner->costs), figures_text(plan.base));
  if (ratio >= 1) text += "Nothing found is better than the base. ";
  if (!plan.base.is_usable()) text += fmt::format("The base itself breaks a limit: {}. ", plan.base.fault);
  if (const size_t ties = plan.ties(report.question.objective); ties > 0 && plan.frontier.empty()) {
    text += fmt::format("Tied with {} of the designs below. Two mappings of the same design differ by up to {:.2g}%",
                        ties == 1 ? std::string("one") : fmt::format("{}", ties), 100 * plan.search_noise);
    if (plan.late_gain > 0)
      text += fmt::format(", the second half of the search for designs still gained {:.2g}%", 100 * plan.late_gain);
    text += ", and these designs are closer than that. ";
  }
  if (!plan.is_settled()) {
    text += fmt::format(
        "The choice is not settled: {} may be better, and another seed may choose a different design. More "
        "evaluations or more tries can settle it. ",
        plan.undecided == 1 ? std::string("one other design")
                            : fmt::format("any of {:.6g} other designs", plan.undecided));
  }
  return text + certainty_text(report);
}

// What more bandwidth costs in this model: of the outermost memory its interface, of others nothing is published.
std::string bandwidth_note(const AcceleratorPlanReport& report, const Knob& knob, const Architecture& changed) {
  const Architecture& base = report.space.base().architecture;
  const AcceleratorLevel& before = base.levels.front();
  const AcceleratorLevel& after = changed.levels.front();
  const std::string values = fmt::format("{} {} instead of {} words a cycle", knob.name(),
                                         number_text(knob_value(changed, knob)), number_text(knob_value(base, knob)));
  if (knob.level != before.name || after.area_um2 <= before.area_um2) {
    return values + ": no cost of it is known here, neither area nor energy";
  }
  const double milliwatts = (after.energy.leak_pj_per_cycle - before.energy.leak_pj_per_cycle) * base.clock_hz * 1e-9;
  return fmt::format("{}: its interface takes {:.3g} mm2 instead of {:.3g}, and draws {:.3g} mW more, busy or not",
                     values, after.area_um2 * 1e-6, before.area_um2 * 1e-6, milliwatts);
}

std::vector<std::string> notes(const AcceleratorPlanReport& report) {
  std::vector<std::string> all;
  const EvaluatedDesign* winner = report.plan.winner();
  if (winner == nullptr) return all;
  constexpr double roughly_mapped = 1.25;
  const double roughness = quick_base_value(report) / base_value(report);
  if (roughness > roughly_mapped) {
    all.push_back(fmt::format(
        "with {} tries per layer, the mappings found for the base take {:.3g} times the {} of those found with {} "
        "tries. "
        "The search may have preferred designs that are easy to map: use more {{tries}} for a better choice",
        report.question.work.mapper.most_tries, roughness, objective_text(report), report.question.final_tries));
  }
  const auto knobs = report.space.knobs();
  for (size_t k = 0; k < knobs.size(); ++k) {
    const double now = knob_value(report.space.base().architecture, knobs[k]);
    if (knobs[k].kind == KnobKind::bandwidth && report.space.value(winner->point, k) > now) {
      all.push_back(bandwidth_note(report, knobs[k], report.space.design(winner->point).architecture));
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

std::vector<std::string> method_names(const AcceleratorPlanReport& report) {
  std::vector<std::string> names;
  for (const DesignSearchResult& own : report.plan.searches) {
    if (names.empty() || names.back() != own.method) names.push_back(own.method);
  }
  return names;
}

// Of the best so far after so many evaluations, against the base, over the seeds of a method. A search that ended
// sooner has its last.
double best_of_base(const AcceleratorPlanReport& report, const std::string& method, size_t evaluations, double share) {
  std::vector<double> values;
  for (const DesignSearchResult& own : report.plan.searches) {
    if (own.method != method || own.best_so_far.empty()) continue;
    values.push_back(own.best_so_far[std::min(evaluations, own.best_so_far.size()) - 1] / quick_base_value(report));
  }
  return values.empty() ? std::numeric_limits<double>::infinity() : quantile(values, share);
}

// How the methods learn, by median and quartiles: one search says little of a method.
TextTable seeds_table(const AcceleratorPlanReport& report) {
  TextTable table{.titles = {"method"}};
  std::vector<size_t> checkpoints;
  for (size_t own = report.question.budget.evaluations; own >= 10 && checkpoints.size() < 4; own /= 2) {
    checkpoints.insert(checkpoints.begin(), own);
  }
  for (const size_t own : checkpoints) table.titles.push_back(fmt::format("after {}", own));
  for (const std::string& method : method_names(report)) {
    std::vector<std::string> row = {method};
    for (const size_t own : checkpoints) {
      const auto of_base = [&](double share) { return best_of_base(report, method, own, share); };
      row.push_back(std::isfinite(of_base(0.75))
                        ? fmt::format("{:.3f} ({:.3f}-{:.3f})", of_base(0.5), of_base(0.25), of_base(0.75))
                        : "none");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable searches_table(const AcceleratorPlanReport& report) {
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

TextTable method_table(const AcceleratorPlanReport& report) {
  return report.question.seeds > 1 ? seeds_table(report) : searches_table(report);
}

std::string method_heading(const AcceleratorPlanReport& report) {
  if (report.question.seeds == 1) return "Methods, with few tries of mappings";
  return fmt::format("The best so far, of base, with few tries of mappings: median (quartiles) of {} seeds",
                     report.question.seeds);
}

std::string table_text(const TextTable& own) {
  std::vector<Table::Column> columns;
  for (size_t i = 0; i < own.titles.size(); ++i) {
    columns.push_back(
        {.title = own.titles[i], .align = i == own.left_column ? Table::Align::left : Table::Align::right});
  }
  Table table(columns);
  for (const std::vector<std::string>& row : own.rows) table.add(row);
  return table.text(accelerator_page_width);
}

// Words that would be cut stand below the table, by number: what tells designs apart is often at the end.
std::string table_with_legend(TextTable own) {
  std::string legend;
  constexpr size_t most_width = 36;  // beside five columns of figures
  for (size_t i = 0; i < own.rows.size(); ++i) {
    std::string& cell = own.rows[i][own.left_column];
    if (cell.size() <= most_width) continue;
    legend += fmt::format("{}: {}\n", i + 1, cell);
    cell = fmt::format("{} below", i + 1);
  }
  return table_text(own) + wrap_lines(legend, accelerator_page_width, 3);
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
                               {"seed", static_cast<double>(own.seed)},
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

std::string accelerator_plan_failure(const AcceleratorPlanReport& report) {
  if (report.plan.winner() != nullptr) return "";
  return fmt::format("No design around {} runs {} within the limits: {} of {:.6g} were evaluated.",
                     report.space.base().architecture.name, report.work, report.plan.evaluations, report.plan.designs);
}

std::string accelerator_plan_text(const AcceleratorPlanReport& report) {
  std::string text = wrap_lines(sentence(report) + "\n\n", accelerator_page_width, 2);
  if (report.plan.winner() != nullptr) {
    text += report.plan.frontier.empty() ? "The best:\n" : "Designs that no other beats in both:\n";
    text += table_with_legend(best_table(report)) + "\n";
  }
  text += "What each knob does to " + objective_text(report) + ", the others alike:\n" + table_text(knob_table(report));
  if (report.plan.searches.size() > 1) {
    text += "\n" + method_heading(report) + ":\n" + table_text(method_table(report));
  }
  for (const std::string& note : notes(report)) text += wrap_lines("note: " + note + "\n", accelerator_page_width, 2);
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
  json.set("search_noise", plan.search_noise).set("ties", plan.ties(report.question.objective));
  json.set("late_gain", plan.late_gain).set("undecided_designs", plan.undecided).set("settled", plan.is_settled());
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
  const auto final_costs = [&](const EvaluatedDesign& own) {
    for (const EvaluatedDesign& other : report.plan.remapped) {
      if (other.point == own.point) return &other.costs;
    }
    return &own.costs;
  };
  for (const DesignSearchResult& search : report.plan.searches) {
    for (size_t i = 0; i < search.designs.size(); ++i) {
      const EvaluatedDesign& own = search.designs[i];
      Json row =
          Json::object({{"method", search.method}, {"seed", static_cast<double>(search.seed)}, {"evaluation", i + 1}});
      for (size_t k = 0; k < own.point.size(); ++k) {
        row.set(report.space.knobs()[k].name(), report.space.value(own.point, k));
      }
      const DesignCosts& costs = *final_costs(own);
      row.set("energy_pj", costs.run.energy_pj).set("cycles", costs.run.cycles);
      row.set("latency_cycles", costs.run.latency_cycles).set("area_mm2", costs.area_mm2);
      row.set("watts", costs.watts).set("fault", costs.fault);
      rows.push(row.set("tries",
                        &costs == &own.costs ? report.question.work.mapper.most_tries : report.question.final_tries));
    }
  }
  return json_rows_csv(rows);
}

std::string learning_curve_svg(const AcceleratorPlanReport& report) {
  LineChart chart{.title = fmt::format("Best {} so far", objective_text(report)),
                  .x_label = "designs evaluated",
                  .y_label = "of the base",
                  .logarithmic_y = true};
  for (const std::string& method : method_names(report)) {
    ChartLine line{.name = method};
    size_t longest = 0;
    for (const DesignSearchResult& own : report.plan.searches) {
      if (own.method == method) longest = std::max(longest, own.best_so_far.size());
    }
    for (size_t i = 1; i <= longest; ++i) {
      const double best = best_of_base(report, method, i, 0.5);
      if (std::isfinite(best)) line.points.emplace_back(static_cast<double>(i), best);
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
