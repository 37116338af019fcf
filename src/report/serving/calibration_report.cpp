#include "report/serving/calibration_report.h"

#include <map>

#include <fmt/format.h>

#include "report/parts/table.h"

namespace foretoken {

namespace {

// Empty unless the fit held rows out. All rows count alike in `pooled`, all devices and kernels in `mean`.
std::string held_out_text(const CalibrationSummary& summary) {
  if (summary.held_out.empty()) return {};
  Table table({{"form", Table::Align::left},
               {"device", Table::Align::left},
               {"kernels", Table::Align::left},
               {"rows held out"},
               {"mape %"},
               {"cover90"}});
  const auto percent = [](double value) { return fmt::format("{:.1f}", value); };
  struct Sum {
    double rows = 0, groups = 0, mape = 0, mean_mape = 0, inside = 0;
  };
  std::map<std::string, Sum> sums;
  for (const auto& one : summary.held_out) {
    table.add({one.form, one.device, one.group, fmt::format("{}", one.rows), percent(one.mape), percent(one.coverage)});
    Sum& sum = sums[one.form];
    const auto rows = static_cast<double>(one.rows);
    sum.rows += rows;
    sum.groups += 1;
    sum.mape += rows * one.mape;
    sum.mean_mape += one.mape;
    sum.inside += rows * one.coverage;
  }
  for (const auto& [form, sum] : sums) {
    table.add({form, "pooled", "", fmt::format("{:.0f}", sum.rows), percent(sum.mape / sum.rows),
               percent(sum.inside / sum.rows)});
    table.add({form, "mean", "", "", percent(sum.mean_mape / sum.groups), ""});
  }
  return "\n" + table.text() + "\n";
}

}  // namespace

std::string calibration_summary_text(const CalibrationSummary& summary) {
  Table table({{"form", Table::Align::left},
               {"device", Table::Align::left},
               {"rows"},
               {"withheld: mape %"},
               {"20us+"},
               {"cover90"},
               {"held out: mape %"},
               {"20us+"},
               {"cover90"}});
  const auto percent = [](double mape) { return mape > 0 ? fmt::format("{:.1f}", mape) : std::string("-"); };
  for (const auto& entry : summary.entries) {
    table.add({entry.form, entry.device, fmt::format("{}", entry.rows), percent(entry.withheld_mape),
               percent(entry.withheld_mape_20us), percent(entry.withheld_coverage), percent(entry.held_out_mape),
               percent(entry.held_out_mape_20us), percent(entry.held_out_coverage)});
  }
  return table.text() + held_out_text(summary) +
         "withheld: the device's whole generation was not in the fit; held out: a fifth of its rows, or those outside "
         "the sweep.\n20us+: rows of 20 us and more. cover90: share of rows inside 90% intervals made without them.\n";
}

Json calibration_summary_json(const CalibrationSummary& summary) {
  Json entries = Json::array();
  const auto number = [](double mape) { return mape > 0 ? Json(mape) : Json(); };
  for (const auto& entry : summary.entries) {
    entries.push(Json::object({{"form", entry.form},
                               {"device", entry.device},
                               {"rows", entry.rows},
                               {"withheld_mape", number(entry.withheld_mape)},
                               {"withheld_mape_20us", number(entry.withheld_mape_20us)},
                               {"withheld_coverage", number(entry.withheld_coverage)},
                               {"held_out_mape", number(entry.held_out_mape)},
                               {"held_out_mape_20us", number(entry.held_out_mape_20us)},
                               {"held_out_coverage", number(entry.held_out_coverage)}}));
  }
  Json held_out = Json::array();
  for (const auto& one : summary.held_out) {
    held_out.push(Json::object({{"form", one.form},
                                {"device", one.device},
                                {"group", one.group},
                                {"rows", one.rows},
                                {"mape", one.mape},
                                {"coverage90", one.coverage}}));
  }
  return Json::object({{"files", summary.files}, {"entries", entries}, {"held_out", held_out}});
}

std::string campaign_fit_text(const CampaignFit& fit) {
  Table table({{"device", Table::Align::left},
               {"operator", Table::Align::left},
               {"points"},
               {"before us"},
               {"after us"},
               {"scale"},
               {"rows unseen"},
               {"mape %"},
               {"cover90"}});
  const auto row = [&](const std::string& device, const std::string& name, const CampaignEffect* effect,
                       const ErrorSummary& errors) {
    const auto cell = [&](double value, int digits) { return effect ? fmt::format("{:.{}f}", value, digits) : ""; };
    table.add({device, name, effect ? fmt::format("{}", effect->points) : "",
               cell(effect ? effect->before * 1e6 : 0, 1), cell(effect ? effect->after * 1e6 : 0, 1),
               cell(effect ? effect->scale : 0, 3), fmt::format("{}", errors.n), fmt::format("{:.1f}", errors.mape),
               fmt::format("{:.1f}", errors.coverage90)});
  };
  for (const CampaignFit::Entry& entry : fit.entries) row(entry.device, entry.operation, &entry.effect, entry.errors);
  row("overall", "", nullptr, fit.overall);
  return table.text();
}

Json campaign_fit_json(const CampaignFit& fit) {
  Json entries = Json::array();
  for (const CampaignFit::Entry& entry : fit.entries) {
    entries.push(Json::object({{"device", entry.device},
                               {"operator", entry.operation},
                               {"points", entry.effect.points},
                               {"before_us", entry.effect.before * 1e6},
                               {"after_us", entry.effect.after * 1e6},
                               {"scale", entry.effect.scale},
                               {"n", entry.errors.n},
                               {"mape", entry.errors.mape},
                               {"coverage90", entry.errors.coverage90}}));
  }
  return Json::object({{"entries", entries}, {"n", fit.overall.n}, {"mape", fit.overall.mape}});
}

std::string correlation_fit_text(const CorrelationFit& fit) {
  Table table({{"form", Table::Align::left}, {"correlation of two of its kernels"}});
  for (const auto& [form, within] : fit.correlations.within) table.add({form, fmt::format("{:.2f}", within)});
  return table.text() +
         fmt::format(
             "between forms {:.2f}; other forms {:.2f}\n{} steps inside the 90% intervals of their kernels' sum: "
             "{:.1f}% with these correlations, {:.1f}% with independent errors, {:.1f}% with fully correlated errors\n",
             fit.correlations.between, fit.correlations.within_other, fit.steps, fit.fitted, fit.independent,
             fit.alike);
}

Json correlation_fit_json(const CorrelationFit& fit) {
  Json within = Json::object();
  for (const auto& [form, value] : fit.correlations.within) within.set(form, value);
  return Json::object({{"steps", fit.steps},
                       {"within", std::move(within)},
                       {"within_other", fit.correlations.within_other},
                       {"between", fit.correlations.between},
                       {"coverage90", fit.fitted},
                       {"coverage90_independent", fit.independent},
                       {"coverage90_alike", fit.alike}});
}

}  // namespace foretoken
