#include "report/edge/edge_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/csv.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {

namespace {

std::string speedups_text(const EdgePredictor& predictor) {
  std::string text;
  for (const EdgeThreadScaling& own : predictor.thread_scaling) {
    std::vector<std::string> parts;
    for (const auto& [kind, speedup] : own.kinds) {
      parts.push_back(
          fmt::format("{} {:.2f} after {:.0f} us", edge_kind_name(kind), speedup.times, speedup.wait_ns * 1e-3));
    }
    text += fmt::format("speedup on {} threads: {}\n", own.threads, fmt::join(parts, ", "));
  }
  return wrap_lines(text, page_width(), 2);
}

}  // namespace

std::string edge_fit_text(const EdgeFit& fit) {
  Table table({{"kind", Table::Align::left}, {"rows"}, {"MAPE %"}, {"inside 90% interval"}, {"half width %"}});
  for (const auto& [kind, prices] : fit.predictor.kinds) {
    table.add({std::string(edge_kind_name(kind)), fmt::format("{}", prices.rows),
               fmt::format("{:.1f}", prices.cross_validated_mape),
               fmt::format("{:.0f}%", prices.cross_validated_coverage),
               fmt::format("{:.1f}", 100 * prices.half_width)});
  }
  const ErrorSummary all = summarize_errors(fit.left_out);
  const std::string errors = fmt::format(
      "{}, {} {}, {}\n{}{}, each predicted without its family of shapes: MAPE {:.2f}%, median "
      "{:.2f}%, {:.0f}% inside\n",
      fit.predictor.device, fit.predictor.runtime, fit.predictor.runtime_version,
      counted(fit.predictor.threads, "thread"), table.text(), counted(all.n, "kernel"), all.mape, all.median_ape,
      all.coverage90);
  return errors + speedups_text(fit.predictor);
}

Json edge_fit_json(const EdgeFit& fit) {
  Json kinds = Json::array();
  for (const auto& [kind, prices] : fit.predictor.kinds) {
    kinds.push(Json::object({{"kind", edge_kind_name(kind)},
                             {"rows", prices.rows},
                             {"mape", prices.cross_validated_mape},
                             {"coverage90", prices.cross_validated_coverage}}));
  }
  const ErrorSummary all = summarize_errors(fit.left_out);
  return Json::object({{"device", fit.predictor.device},
                       {"runtime", fit.predictor.runtime},
                       {"n", all.n},
                       {"mape", all.mape},
                       {"median_ape", all.median_ape},
                       {"p90_ape", all.p90_ape},
                       {"coverage90", all.coverage90},
                       {"kinds", std::move(kinds)}});
}

std::string fewshot_text(std::span<const FewshotSpace> spaces) {
  Table table({{"space", Table::Align::left},
               {"device", Table::Align::left},
               {"queries"},
               {"Spearman"},
               {"MAPE %"},
               {"inside 90%"},
               {"all: Spearman"},
               {"MAPE %"}});
  const auto add = [&](const std::string& space, const std::string& device, const FewshotGroup& group) {
    table.add({space, device, fmt::format("{}", group.queries), fmt::format("{:.4f}", group.trimmed.spearman),
               fmt::format("{:.2f}", group.trimmed.mape), fmt::format("{:.0f}%", group.trimmed.coverage90),
               fmt::format("{:.4f}", group.untrimmed.spearman), fmt::format("{:.2f}", group.untrimmed.mape)});
  };
  for (const FewshotSpace& space : spaces) {
    for (const FewshotGroup& group : space.validation.groups)
      add(space.name, group.device + (group.sum_of_blocks ? " (sums of blocks)" : ""), group);
    add(space.name, "mean of measured devices", space.validation.measured);
    if (space.validation.sums.queries > 0) add(space.name, "mean of sums of blocks", space.validation.sums);
    table.add_rule();
  }
  return "Withheld devices, predicted from ten timings each (without the fastest and slowest tenth; then all "
         "queries)\n" +
         table.text();
}

Json fewshot_json(std::span<const FewshotSpace> spaces) {
  const auto errors_json = [](const FewshotErrors& errors) {
    return Json::object({{"spearman", errors.spearman}, {"mape", errors.mape}, {"coverage90", errors.coverage90}});
  };
  const auto group_json = [&](const FewshotGroup& group) {
    return Json::object({{"queries", group.queries},
                         {"failed_rows", group.failed_rows},
                         {"sum_of_blocks", group.sum_of_blocks},
                         {"trimmed", errors_json(group.trimmed)},
                         {"untrimmed", errors_json(group.untrimmed)}});
  };
  Json list = Json::array();
  for (const FewshotSpace& space : spaces) {
    Json devices = Json::array();
    for (const FewshotGroup& group : space.validation.groups) {
      Json own = Json::object({{"device", group.device}});
      const Json figures = group_json(group);
      for (const auto& [key, value] : figures.members()) own.set(key, value);
      devices.push(std::move(own));
    }
    const FewshotGroup& sums = space.validation.sums;
    list.push(Json::object({{"space", space.name},
                            {"devices", std::move(devices)},
                            {"measured", group_json(space.validation.measured)},
                            {"sums_of_blocks", sums.queries > 0 ? group_json(sums) : Json()}}));
  }
  return list;
}

void add_fewshot_groups(Json& validation, std::span<const FewshotSpace> spaces) {
  const auto add_figures = [](Json& entry, size_t rows, const FewshotErrors& errors) {
    entry.set("n", rows);
    entry.set("mape", errors.mape);
    for (const char* unknown : {"mape_20us", "median_ape", "p90_ape", "bias"}) entry.set(unknown, Json());
    entry.set("spearman", errors.spearman);
    entry.set("coverage90", errors.coverage90);
    entry.set("seconds_per_1000_rows", Json());
  };
  Json groups = *validation.find("groups");
  size_t measured_devices = 0, rows = 0;
  for (const FewshotSpace& space : spaces) {
    for (const FewshotGroup& group : space.validation.groups) {
      Json entry = Json::object({{"name", fmt::format("{}/{}", space.name, group.device)}});
      add_figures(entry, group.queries, group.untrimmed);
      groups.push(std::move(entry));
      if (!group.sum_of_blocks) ++measured_devices;
    }
  }
  validation.set("groups", std::move(groups));
  if (validation.find("overall")->find("n")->integer() > 0) return;
  FewshotErrors mean;
  double devices = 0;
  for (const FewshotSpace& space : spaces) {
    for (const FewshotGroup& group : space.validation.groups) {
      if (group.sum_of_blocks && measured_devices > 0) continue;
      rows += group.queries;
      devices += 1;
      mean.mape += group.untrimmed.mape;
      mean.spearman += group.untrimmed.spearman;
      mean.coverage90 += group.untrimmed.coverage90;
    }
  }
  for (double* figure : {&mean.mape, &mean.spearman, &mean.coverage90}) *figure /= std::max(1.0, devices);
  Json overall = Json::object({});
  add_figures(overall, rows, mean);
  validation.set("overall", std::move(overall));
}

std::string scored_edge_header() {
  return "row,kind,params,measured_ms,predicted_ms,low_ms,high_ms,confidence,error_percent\n";
}

std::string scored_edge_row(const ScoredEdge& scored) {
  const Estimate& seconds = scored.predicted;
  return fmt::format("{},{},{},{},{},{},{},{},{}\n", scored.row, csv_cell(scored.name), csv_cell(scored.parameters),
                     number_text(scored.measured * 1e3), number_text(seconds.value * 1e3),
                     number_text(seconds.low * 1e3), number_text(seconds.high * 1e3), confidence_name(seconds.kind),
                     number_text(100 * (seconds.value / scored.measured - 1)));
}

}  // namespace foretoken
