#include "report/plan/hardware_plan_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "report/drawing/html_page.h"
#include "report/drawing/line_chart.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

// A ratio that was worked out from sheets leaves the relative interval as it is.
Estimate changed_seconds(const HardwarePlanReport& report) {
  Estimate seconds = scaled(report.step.seconds, report.changed_ratio);
  seconds.kind = std::max(seconds.kind, Confidence::extrapolated);
  return seconds;
}

std::string changes_text(const HardwarePlanReport& report) {
  std::vector<std::string> parts;
  for (const DeviceChange& change : report.changes) {
    parts.push_back(fmt::format("{} of {}", device_number_name(change.number),
                                device_number_text(*report.changed_device, change.number)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string sentence(const HardwarePlanReport& report) {
  std::string text = fmt::format("A {} step of {} on {} takes {}", step_phase_name(report.step.request.phase),
                                 report.model, report.device.name, interval_text(report.step.seconds));
  if (!report.sensitivities.empty()) {
    const Sensitivity& first = report.sensitivities.front();
    text += fmt::format("; it depends most on {}: 10% more saves {:.1f}%", device_number_name(first.number),
                        10 * first.elasticity);
  }
  if (report.changed_device) {
    text += fmt::format(". With {} it takes {}, {:+.1f}%", changes_text(report), interval_text(changed_seconds(report)),
                        100 * (report.changed_ratio - 1));
  }
  return text + ".";
}

std::string percent_text(double ratio) {
  const double percent = std::round(100 * (ratio - 1));
  return percent == 0 ? "0%" : fmt::format("{:+.0f}%", percent);
}

std::vector<std::string> table_titles(const HardwarePlanReport& report) {
  std::vector<std::string> titles = {"number", "is", "saves per 1% more"};
  if (report.sensitivities.empty()) return titles;
  for (const auto& [factor, ratio] : report.sensitivities.front().times) titles.push_back(fmt::format("x{:g}", factor));
  return titles;
}

std::vector<std::vector<std::string>> table_rows(const HardwarePlanReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Sensitivity& one : report.sensitivities) {
    std::vector<std::string> row = {std::string(device_number_name(one.number)),
                                    device_number_text(report.device, one.number),
                                    fmt::format("{:.2f}%", std::abs(one.elasticity) < 0.005 ? 0.0 : one.elasticity)};
    for (const auto& [factor, ratio] : one.times) row.push_back(percent_text(ratio));
    rows.push_back(std::move(row));
  }
  return rows;
}

// Times are those of steps that fit, whatever is changed.
std::string memory_text(const HardwarePlanReport& report) {
  if (report.step.fits_in_memory.value_or(true)) return "";
  return fmt::format(" It does not fit the {} of one device: the time assumes a device with more memory.",
                     memory_size_text(report.step.device_memory.value()));
}

}  // namespace

std::string hardware_plan_text(const HardwarePlanReport& report) {
  std::vector<Table::Column> columns;
  for (const std::string& title : table_titles(report)) {
    columns.push_back({.title = title, .align = columns.empty() ? Table::Align::left : Table::Align::right});
  }
  Table table(columns);
  for (std::vector<std::string>& row : table_rows(report)) table.add(std::move(row));
  return wrap_lines(sentence(report) + memory_text(report) + "\n\n", page_width(), 2) + table.text() +
         "\nColumns: change in step time when the number is scaled by that factor.\n" + device_notes_text(report.notes);
}

Json hardware_plan_json(const HardwarePlanReport& report) {
  Json rows = Json::array();
  for (const Sensitivity& one : report.sensitivities) {
    Json times = Json::array();
    for (const auto& [factor, ratio] : one.times) {
      times.push(Json::object({{"factor", factor}, {"seconds_ratio", ratio}}));
    }
    rows.push(Json::object({{"number", std::string(device_number_name(one.number))},
                            {"is", device_number_text(report.device, one.number)},
                            {"elasticity", one.elasticity},
                            {"times", std::move(times)}}));
  }
  Json json = Json::object({{"model", report.model},
                            {"device", report.device.name},
                            {"fits_in_memory", report.step.fits_in_memory.value_or(true)},
                            {"phase", std::string(step_phase_name(report.step.request.phase))},
                            {"seconds", to_json(report.step.seconds)},
                            {"sensitivities", std::move(rows)}});
  if (report.changed_device) {
    Json changes = Json::array();
    for (const DeviceChange& change : report.changes) {
      changes.push(
          Json::object({{"number", std::string(device_number_name(change.number))}, {"factor", change.factor}}));
    }
    json.set("changed", Json::object({{"changes", std::move(changes)},
                                      {"seconds_ratio", report.changed_ratio},
                                      {"seconds", to_json(changed_seconds(report))}}));
  }
  set_device_notes(json, report.notes);
  return json;
}

std::string hardware_plan_svg(const HardwarePlanReport& report) {
  LineChart chart{.title = fmt::format("{} step of {} on {}", step_phase_name(report.step.request.phase), report.model,
                                       report.device.name),
                  .x_label = "multiple of the number on the spec sheet",
                  .y_label = "ms",
                  .logarithmic_x = false};
  for (const Sensitivity& one : report.sensitivities) {
    ChartLine line{.name = std::string(device_number_name(one.number))};
    for (const auto& [factor, ratio] : one.times) {
      line.points.emplace_back(factor, 1e3 * ratio * report.step.seconds.value);
    }
    chart.lines.push_back(std::move(line));
  }
  return line_chart_svg(chart);
}

std::string hardware_plan_html(const HardwarePlanReport& report) {
  HtmlPage page(fmt::format("foretoken: what {} depends on", report.device.name));
  page.sentence(sentence(report));
  page.figure(hardware_plan_svg(report), "The step's time when one number of the device changes");
  page.table(table_titles(report), table_rows(report));
  for (const std::string& note : report.notes.sentences) page.paragraph(note);
  page.heading("To reproduce");
  page.preformatted(report.command);
  return page.finish();
}

}  // namespace foretoken
