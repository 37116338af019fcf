#include "report/page/trust_panel.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/text.h"
#include "hardware/catalogue.h"
#include "report/drawing/line_chart.h"

namespace foretoken {
namespace {

struct LayerTitle {
  std::string_view layer, title;
};
constexpr LayerTitle layer_titles[] = {{"kernels", "Kernels"},
                                       {"collectives", "Collectives"},
                                       {"steps", "Model step"},
                                       {"serving", "Serving engine"},
                                       {"training", "Training run"}};

std::string_view title_of(std::string_view layer) {
  for (const LayerTitle& one : layer_titles) {
    if (one.layer == layer) return one.title;
  }
  return layer;
}

// Groups of one layer that a reader would read alike.
struct ErrorRow {
  bool is_own = false;  // measured on the device of the prediction
  std::string seen, source;
  int64_t groups = 0, rows = 0, rows_with_interval = 0;
  double error = 0, inside = 0;  // sums over rows

  void add(const PublishedGroup& group) {
    const auto weight = static_cast<double>(group.rows);
    ++groups;
    rows += group.rows;
    error += weight * group.mean_error;
    if (!group.in_interval) return;
    rows_with_interval += group.rows;
    inside += weight * *group.in_interval;
  }
};

bool names_one_of(std::string_view system, const std::vector<std::string>& names) {
  const std::string wanted = comparable_name(system);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return comparable_name(name) == wanted; });
}

// Those of the prediction's own device first, else in the order of the file.
std::vector<ErrorRow> error_rows(const Trust& trust, std::string_view layer) {
  std::vector<ErrorRow> rows;
  for (const PublishedGroup& group : trust.published) {
    if (group.layer != layer) continue;
    const bool is_own = names_one_of(group.system(), trust.names);
    const auto same = [&](const ErrorRow& row) {
      return row.is_own == is_own && row.seen == group.seen && row.source == group.source;
    };
    auto found = std::find_if(rows.begin(), rows.end(), same);
    if (found == rows.end()) {
      found = rows.insert(rows.end(), {.is_own = is_own, .seen = group.seen, .source = group.source});
    }
    found->add(group);
  }
  std::stable_partition(rows.begin(), rows.end(), [](const ErrorRow& row) { return row.is_own; });
  return rows;
}

void add_confidence(HtmlPage& page, const Trust& trust) {
  const double all = std::accumulate(trust.time.begin(), trust.time.end(), 0.0);
  if (all <= 0) {
    page.paragraph("This estimate does not record how much of the time is measured, interpolated or extrapolated.");
    return;
  }
  struct Meaning {
    Confidence kind;
    const char* rests_on;
  };
  constexpr Meaning meanings[] = {{Confidence::measured, "this shape, measured on this device"},
                                  {Confidence::interpolated, "interpolated between measured shapes"},
                                  {Confidence::extrapolated, "beyond measured shapes, or from other devices"},
                                  {Confidence::roofline, "the device's spec sheet alone"}};
  std::vector<BarPart> parts;
  std::vector<std::vector<std::string>> rows;
  for (const Meaning& meaning : meanings) {
    const double seconds = trust.time[static_cast<size_t>(meaning.kind)];
    const std::string name(confidence_name(meaning.kind));
    parts.push_back({name, seconds, duration_text(seconds)});
    rows.push_back({name, fmt::format("{:.0f}%", 100 * seconds / all), meaning.rests_on});
  }
  page.figure(parts_bar_svg("Sources of the times", parts), fmt::format("Shares of {}", trust.time_of));
  page.table({"times are", "share", "source"}, rows);
}

template <class Counts>
TimeByConfidence confidence_times(const StepEstimate& step, const Counts& counts) {
  TimeByConfidence time = {};
  for (const StageEstimate& stage : step.stages) {
    for (const TimedOperator& timed : stage.operators) {
      if (counts(timed)) time[static_cast<size_t>(timed.seconds.kind)] += timed.seconds.value;
    }
  }
  return time;
}

}  // namespace

TimeByConfidence time_by_confidence(const StepEstimate& step) {
  return confidence_times(step, [](const TimedOperator&) { return true; });
}

TimeByConfidence kernel_time_by_confidence(const StepEstimate& step) {
  return confidence_times(step, [](const TimedOperator& timed) { return timed.kernel.has_value(); });
}

std::vector<std::string> measured_names(const Device& device, const std::optional<Node>& node) {
  std::vector<std::string> names = {device.name, device.title};
  names.insert(names.end(), device.aliases.begin(), device.aliases.end());
  if (!node) return names;
  names.push_back(node->name);
  names.insert(names.end(), node->aliases.begin(), node->aliases.end());
  return names;
}

void add_trust(HtmlPage& page, const Trust& trust) {
  page.heading("How far to trust it");
  add_confidence(page, trust);
  std::vector<std::vector<std::string>> rows;
  for (const std::string_view layer : trust.layers) {
    const std::vector<ErrorRow> errors = error_rows(trust, layer);
    if (errors.empty()) rows.push_back({std::string(title_of(layer)), "not published", "", "", "", "", ""});
    for (const ErrorRow& row : errors) {
      const auto count = static_cast<double>(row.rows);
      rows.push_back({std::string(title_of(layer)), fmt::format("{:.1f}%", row.error / count),
                      row.rows_with_interval > 0
                          ? fmt::format("{:.0f}%", row.inside / static_cast<double>(row.rows_with_interval))
                          : "",
                      fmt::format("{}", row.rows), row.is_own ? "this device" : "other devices", row.seen, row.source});
    }
  }
  page.paragraph(
      "Errors of the layers behind this prediction, compared with published measurements. Each layer builds on those "
      "above it in the table and inherits their errors.");
  page.table({"layer", "mean error", "inside 90% interval", "measurements", "on", "seen by fits", "source"}, rows);
  page.paragraph(
      "Intervals on this page are central 90% intervals. docs/accuracy.md has all figures; `foretoken validate` "
      "reproduces them.");
}

}  // namespace foretoken
