#include "report/accuracy/validation_report.h"

#include <map>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/csv.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::vector<std::string> cells(const std::string& name, const ErrorSummary& errors, std::optional<double> mape_20us,
                               double seconds_per_1000_rows, bool has_intervals) {
  if (errors.n == 0) {
    std::vector<std::string> none(10, "-");
    none[0] = name, none[1] = "0";
    return none;
  }
  return {name,
          fmt::format("{}", errors.n),
          fmt::format("{:.1f}", errors.mape),
          mape_20us ? fmt::format("{:.1f}", *mape_20us) : std::string("-"),
          fmt::format("{:.1f}", errors.median_ape),
          fmt::format("{:.1f}", errors.p90_ape),
          fmt::format("{:+.1f}", errors.bias),
          fmt::format("{:.3f}", errors.spearman),
          has_intervals ? fmt::format("{:.1f}", errors.coverage90) : std::string("-"),
          fmt::format("{:.2g}", seconds_per_1000_rows)};
}

Json errors_json(const ErrorSummary& errors, std::optional<double> mape_20us, double seconds_per_1000_rows,
                 bool has_intervals) {
  // Without a row there is no error, which is not an error of zero.
  const auto known = [&](double figure) { return errors.n > 0 ? Json(figure) : Json(); };
  return Json::object({{"n", errors.n},
                       {"mape", known(errors.mape)},
                       {"mape_20us", mape_20us ? known(*mape_20us) : Json()},
                       {"median_ape", known(errors.median_ape)},
                       {"p90_ape", known(errors.p90_ape)},
                       {"bias", known(errors.bias)},
                       {"spearman", known(errors.spearman)},
                       {"coverage90", has_intervals ? known(errors.coverage90) : Json()},
                       {"seconds_per_1000_rows", known(seconds_per_1000_rows)}});
}

// What was left out, by reason, and what else there is to say.
std::string skipped_text(const Validation& validation, const std::string& heading) {
  std::string text;
  std::map<std::string, size_t> reasons;
  for (const SkippedRows& skipped : validation.skipped) ++reasons[skipped.why];
  if (!reasons.empty()) text += heading;
  for (const auto& [why, count] : reasons) text += wrap_lines(fmt::format("  {} x {}", count, why), page_width(), 4);
  for (const std::string& note : validation.notes) text += wrap_lines(fmt::format("note: {}", note), page_width(), 2);
  return text;
}

}  // namespace

std::string validation_text(const Validation& validation) {
  if (validation.overall.n == 0) {
    if (validation.skipped.empty()) return "No row was scored: the data has no rows.\n" + skipped_text(validation, "");
    return skipped_text(validation, fmt::format("No row was scored: {} {} (listed one by one under {{json}}):\n",
                                                validation.skipped.size(),
                                                validation.skipped.size() == 1 ? "was skipped" : "were skipped"));
  }
  Table table({{"group", Table::Align::left},
               {"n"},
               {"mape %"},
               {"20us+"},
               {"median"},
               {"p90 %"},
               {"bias %"},
               {"spearman"},
               {"cover90"},
               {"s/1000"}});
  for (const ValidationGroup& group : validation.groups)
    table.add(cells(group.name, group.errors, group.mape_20us, group.seconds_per_1000_rows, validation.has_intervals));
  table.add_rule();
  table.add(cells("overall", validation.overall, validation.mape_20us, validation.seconds_per_1000_rows,
                  validation.has_intervals));
  return table.text() + skipped_text(validation, fmt::format("\nskipped {} (each with its row under {{json}}):\n",
                                                             validation.skipped.size()));
}

Json validation_json(const Validation& validation, const std::string& layer) {
  Json groups = Json::array();
  for (const ValidationGroup& group : validation.groups) {
    Json entry = Json::object({{"name", group.name}});
    const Json errors =
        errors_json(group.errors, group.mape_20us, group.seconds_per_1000_rows, validation.has_intervals);
    for (const auto& [key, value] : errors.members()) entry.set(key, value);
    groups.push(std::move(entry));
  }
  Json skipped = Json::array();
  for (const SkippedRows& row : validation.skipped) {
    skipped.push(Json::object({{"file", row.file}, {"row", row.row > 0 ? Json(row.row) : Json()}, {"why", row.why}}));
  }
  Json notes = Json::array();
  for (const std::string& note : validation.notes) notes.push(note);
  return Json::object({{"layer", layer},
                       {"overall", errors_json(validation.overall, validation.mape_20us,
                                               validation.seconds_per_1000_rows, validation.has_intervals)},
                       {"groups", groups},
                       {"skipped", skipped},
                       {"notes", notes}});
}

std::string scored_kernel_header() {
  return "file,row,device,family,group,measured_us,predicted_us,low_us,high_us,confidence,error_percent\n";
}

std::string scored_kernel_row(const ScoredKernel& scored) {
  const Estimate& seconds = scored.predicted.seconds;
  const double predicted_us = seconds.value * 1e6;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(scored.file), scored.row, csv_cell(scored.device),
                     scored.family, csv_cell(scored.group), number_text(scored.measured_us), number_text(predicted_us),
                     number_text(seconds.low * 1e6), number_text(seconds.high * 1e6), confidence_name(seconds.kind),
                     number_text(100 * (predicted_us / scored.measured_us - 1)));
}

std::string scored_training_header() {
  std::string header =
      "id,row,source,model,gpu,stack,group,measured_s,predicted_s,low,high,confidence,kernels_low,kernels_high,"
      "error_percent,memory_bytes,fits,allocated_bytes,measured_allocated_bytes";
  for (size_t part = 0; part < time_part_count; ++part) {
    header += fmt::format(",{}_s", time_part_name(static_cast<TimePart>(part)));
  }
  return header + "\n";
}

std::string scored_training_row(const ScoredTraining& scored) {
  const TrainingRow& row = scored.run->row;
  const Estimate &seconds = scored.predicted->seconds, &composed = scored.predicted->composed;
  std::string text =
      fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_cell(row.id), row.row, csv_cell(row.source),
                  csv_cell(row.model), csv_cell(row.gpu), csv_cell(scored.stack), csv_cell(scored.group),
                  number_text(scored.measured_s), number_text(seconds.value), number_text(seconds.low),
                  number_text(seconds.high), confidence_name(seconds.kind), number_text(composed.low),
                  number_text(composed.high), number_text(100 * (seconds.value / scored.measured_s - 1)),
                  number_text(scored.memory.value()), scored.fits ? 1 : 0);
  text += "," + number_text(scored.allocated.value()) + ",";
  if (row.peak_allocated_gb) text += number_text(1e9 * *row.peak_allocated_gb);
  for (const Estimate& part : scored.predicted->parts) text += "," + number_text(part.value);
  return text + "\n";
}

std::string scored_serving_header() {
  return "case_id,row,device,model,engine,group,metric,measured,predicted,low,high,error_percent\n";
}

std::string scored_serving_row(const ScoredServing& scored) {
  const Headline& predicted = scored.predicted;
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(scored.id), scored.row, csv_cell(scored.device),
                     csv_cell(scored.model), csv_cell(scored.engine), csv_cell(scored.group), scored.metric,
                     number_text(scored.measured), number_text(predicted.value), number_text(predicted.low),
                     number_text(predicted.high), number_text(100 * (predicted.value / scored.measured - 1)));
}

std::string step_validation_text(const StepValidation& validation) {
  std::string text = validation_text(validation.errors);
  if (validation.kernels.n > 0) {
    text += wrap_lines(
        fmt::format("kernels' sum: mape {:.1f}%, bias {:+.1f}% over {}; gap off by {:.1f}% of the step; host-bound or "
                    "device-bound classified correctly: {:.1f}%\n",
                    validation.kernels.mape, validation.kernels.bias, counted(validation.kernels.n, "row"),
                    validation.gap.mape, validation.verdicts_right),
        page_width(), 2);
  }
  if (validation.sustained.n > 0) {
    text +=
        wrap_lines(fmt::format("repeated without pause: mape {:.1f}%, bias {:+.1f}%, in the interval {:.0f}% of {} "
                               "rows; board power: mape "
                               "{:.1f}%, bias {:+.1f}%\n",
                               validation.sustained.mape, validation.sustained.bias, validation.sustained.coverage90,
                               validation.sustained.n, validation.watts.mape, validation.watts.bias),
                   page_width(), 2);
  }
  return text;
}

Json step_validation_json(const StepValidation& validation) {
  Json json = validation_json(validation.errors, "steps");
  if (validation.kernels.n > 0) {
    json.set("kernels", Json::object({{"n", validation.kernels.n},
                                      {"mape", validation.kernels.mape},
                                      {"bias", validation.kernels.bias},
                                      {"coverage90", validation.kernels.coverage90}}));
    json.set("gap_error", validation.gap.mape);
    json.set("verdicts_right", validation.verdicts_right);
  }
  if (validation.sustained.n > 0) {
    json.set("sustained", Json::object({{"n", validation.sustained.n},
                                        {"mape", validation.sustained.mape},
                                        {"coverage90", validation.sustained.coverage90},
                                        {"power_mape", validation.watts.mape}}));
  }
  return json;
}

std::string scored_step_header() {
  return "row,device,model,stack,dispatch,phase,batch,input_len,context_len,measured_ms,predicted_ms,low_ms,high_ms,"
         "confidence,error_percent,measured_kernel_ms,predicted_kernel_ms,host_stall_ms,launch_gap_ms\n";
}

std::string scored_step_row(const ScoredStep& scored) {
  const StepEstimate& step = *scored.predicted;
  double kernels = 0, stall = 0, gap = 0;
  for (const StageEstimate& stage : step.stages) {
    kernels += stage.time.kernels + stage.time.communication, stall += stage.time.host_stall,
        gap += stage.time.launch_gap;
  }
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", scored.row, csv_cell(scored.device),
                     csv_cell(scored.model), csv_cell(scored.stack), dispatch_name(step.dispatch),
                     step_phase_name(step.request.phase), step.request.batch, step.request.input_len,
                     step.request.context_len, number_text(scored.measured_ms), number_text(scored.seconds.value * 1e3),
                     number_text(scored.seconds.low * 1e3), number_text(scored.seconds.high * 1e3),
                     confidence_name(scored.seconds.kind),
                     number_text(100 * (scored.seconds.value * 1e3 / scored.measured_ms - 1)),
                     scored.measured_kernel_ms > 0 ? number_text(scored.measured_kernel_ms) : "",
                     number_text(kernels * 1e3), number_text(stall * 1e3), number_text(gap * 1e3));
}

std::string scored_figure_header() {
  return "file,case,figure,expected,predicted,error_percent\n";
}

std::string scored_figure_row(const ScoredFigure& scored) {
  const AcceleratorFigure& figure = *scored.figure;
  const std::string error =
      figure.expected > 0 ? number_text(100 * (figure.predicted / figure.expected - 1)) : std::string();
  return fmt::format("{},{},{},{},{},{}\n", csv_cell(scored.file), csv_cell(figure.case_id), csv_cell(figure.figure),
                     figure.expected, figure.predicted, error);
}

}  // namespace foretoken
