#include "report/kernel/kernel_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "compose/serving_engine.h"
#include "kernel/forms/call.h"
#include "model/work.h"
#include "report/parts/table.h"

namespace foretoken {

namespace {

constexpr size_t most_nearest = 5;

std::string tier_text(const KernelExplanation& explanation) {
  switch (explanation.estimate.tier) {
    case Tier::measured:
      return "a sweep of this device";
    case Tier::sibling:
      return fmt::format("a sweep of {}, of the same generation, scaled by the spec sheets", explanation.swept_device);
    case Tier::cross:
      return "measurements of other devices, scaled by the spec sheet";
    case Tier::mapped:
      return "the best mapping found onto the described accelerator";
    case Tier::best:
    case Tier::roofline:
      break;
  }
  if (explanation.estimate.derated) return "the spec sheet, derated to the efficiency of kernels on measured devices";
  return "the roofline alone, a lower bound: real kernels take longer";
}

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string size_text(double value) {
  return value == std::round(value) && value < 1e9 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string value_text(const Explained& line) {
  if (line.unit == "s") return duration_text(line.value);
  if (line.unit == "B") return bytes_text(line.value);
  if (line.unit == "share") return fmt::format("{:.0f}%", 100 * line.value);
  if (!line.unit.empty()) return rate_text(line.value, line.unit);
  return size_text(line.value);
}

// "m 200000 is 3.05 times the largest measured, 65536".
std::string breach_text(const EnvelopeSize& size) {
  const std::string name = fmt::format("{} {}", size.name, size_text(size.value));
  if (size.value > size.most) {
    if (size.most <= 0) return fmt::format("{}, where only 0 was measured", name);
    return fmt::format("{} is {:.3g} times the largest measured, {}", name, size.value / size.most,
                       size_text(size.most));
  }
  if (size.value <= 0) return fmt::format("{}, where at least {} was measured", name, size_text(size.least));
  return fmt::format("{} is {:.3g} times below the smallest measured, {}", name, size.least / size.value,
                     size_text(size.least));
}

std::string envelope_text(const KernelExplanation& explanation) {
  if (explanation.envelope.empty()) return "no record of which sizes were measured";
  const bool own = !explanation.swept_device.empty();
  std::string outside;
  for (const EnvelopeSize& size : explanation.envelope) {
    if (!size.inside()) outside += (outside.empty() ? "" : "; ") + breach_text(size);
  }
  const std::string whose = own ? fmt::format("the sweep on {}", explanation.swept_device) : "the devices measured";
  if (outside.empty()) return fmt::format("inside: every size is within the range of {}", whose);
  return fmt::format("outside the range of {}: {}", whose, outside);
}

const Explained* largest_limit(const KernelExplanation& explanation) {
  const Explained* largest = nullptr;
  for (const Explained& line : explanation.lines) {
    if (line.kind == Explained::Kind::limit && (largest == nullptr || line.value > largest->value)) largest = &line;
  }
  return largest;
}

std::string interval_origin_text(const IntervalOrigin& origin) {
  std::string text = fmt::format("{}: {}", origin.basis, origin.reading);
  if (origin.mape > 0) text += fmt::format("; mean error there {:.1f}%", origin.mape);
  if (!origin.fitted_on.empty()) text += fmt::format("; fitted {}", origin.fitted_on);
  return text;
}

std::string work_text(const KernelReport& report) {
  const KernelEstimate& estimate = report.explanation.estimate;
  const Work& work = estimate.work;
  std::string text = fmt::format("  compute     {}: {} in {}", duration_text(estimate.compute.value()),
                                 rate_text(work.flops.value(), "FLOP"), dtype_name(work.math));
  if (const auto peak = report.device.peak_or_fallback(work.math))
    text += fmt::format(" at {}", rate_text(peak->value(), "FLOP/s"));
  const std::optional<DType> used = report.device.type_or_fallback(work.math);
  if (used && *used != work.math) {
    text += fmt::format(", the {} rate: this device does not multiply in {}", dtype_name(*used), dtype_name(work.math));
  }
  const DType asked = count_work(report.shape).math;
  if (asked != work.math) text += fmt::format(", weight-only: this device does not multiply in {}", dtype_name(asked));
  if (estimate.waves > 0 && report.explanation.lines.empty()) {
    text += fmt::format("; {:.3g} waves of tiles at best, {:.0f}% of the slots filled", estimate.waves,
                        100 * estimate.wave_efficiency);
  }
  text += fmt::format("\n  memory      {}: weights {}, other reads {}, writes {}",
                      duration_text(estimate.memory.value()), bytes_text(work.weights_read.value()),
                      bytes_text(work.activations_read.value()), bytes_text(work.written.value()));
  if (report.device.memory_bandwidth)
    text += fmt::format(" at {}", rate_text(report.device.memory_bandwidth->value.value(), "B/s"));
  text += fmt::format("\n  intensity   {:.3g} FLOP/byte\n", work.flops.value() / work.bytes().value());
  if (report.device.memory || report.device.allocatable_memory) {
    const double room = allocatable_bytes(report.device).value;
    if (work.bytes().value() > room) {
      text += fmt::format("  note        the data, {}, do not fit in this device's {}\n",
                          bytes_text(work.bytes().value()), memory_size_text(room));
    }
  }
  return text;
}

// FLOPs over the predicted time and the peak of the format that is multiplied in; least bytes over the time and the
// bandwidth. Data that caches serve may be faster than DRAM.
struct KernelUse {
  std::optional<double> mfu, mbu;
};

KernelUse use_of(const KernelReport& report) {
  if (report.in_memory) return {};  // not the device's own units, nor its memory's pins
  const KernelEstimate& estimate = report.explanation.estimate;
  KernelUse use;
  if (const auto peak = report.device.peak_or_fallback(estimate.work.math)) {
    use.mfu = (estimate.work.flops / *peak).value() / estimate.seconds.value;
  }
  if (report.device.memory_bandwidth) {
    use.mbu = (estimate.work.bytes() / report.device.memory_bandwidth->value).value() / estimate.seconds.value;
  }
  return use;
}

// What stands behind the time: how near it is to the roofline, or that another unit than the device runs the kernel.
std::string against_roofline_text(const KernelReport& report) {
  const KernelExplanation& explanation = report.explanation;
  const std::string bound = duration_text(explanation.roofline_seconds);
  if (!report.in_memory)
    return fmt::format("  efficiency  {:.0f}% of the roofline, {}\n", 100 * explanation.efficiency, bound);
  return fmt::format(
      "  runs on     units in the memory, which do not move keys and values; with its own units, the device would "
      "need at least {}\n",
      bound);
}

std::string utilization_text(const KernelReport& report) {
  const KernelUse use = use_of(report);
  if (!use.mfu && !use.mbu) return {};
  std::string text = "  use         ";
  if (use.mfu) {
    const DType math = report.explanation.estimate.work.math;
    text += fmt::format("MFU {:.1f}% of the {} peak", 100 * *use.mfu,
                        dtype_name(report.device.type_or_fallback(math).value_or(math)));
  }
  if (use.mbu) text += fmt::format("{}MBU {:.1f}% of the memory bandwidth", use.mfu ? ", " : "", 100 * *use.mbu);
  return text + (use.mbu && *use.mbu > 1 ? ": caches serve part of the data\n" : "\n");
}

// The parts of the form and what was learned on top add up to the time.
std::string parts_text(const KernelExplanation& explanation) {
  using enum Explained::Kind;
  const double total = explanation.estimate.seconds.value;
  Table parts({{"where the time goes", Table::Align::left}, {"time"}, {"share"}, {"", Table::Align::left}});
  const auto add = [&](const std::string& name, double seconds, std::string_view reading) {
    parts.add({name, duration_text(seconds), fmt::format("{:.1f}%", 100 * seconds / total), std::string(reading)});
  };
  for (const Explained& line : explanation.lines) {
    if (line.kind == part) add(spaced(line.name), line.value, line.reading);
  }
  const double rest = total - explanation.form_seconds;
  if (std::abs(rest) > 5e-4 * total) {
    add("learned correction", rest,
        explanation.held_at_bound
            ? std::string("limited to the minimum that multiply units or DRAM need")
            : fmt::format("measured rows relative to this form: x{:.3f}", explanation.correction));
  }
  Table facts({{"what it assumes", Table::Align::left}, {""}, {"", Table::Align::left}});
  for (const Explained& line : explanation.lines) {
    if (line.kind == fact) facts.add({spaced(line.name), value_text(line), std::string(line.reading)});
  }
  Table limits({{"what could bound it", Table::Align::left}, {"time"}, {"", Table::Align::left}});
  for (const Explained& line : explanation.lines) {
    if (line.kind == limit) limits.add({spaced(line.name), value_text(line), std::string(line.reading)});
  }
  return "\n" + parts.text() + "\n" + limits.text() + "\n" + facts.text();
}

// The sizes in which two calls differ.
std::string difference_text(const KernelShape& row, const KernelShape& asked) {
  const std::vector<NamedSize> sizes = named_sizes(row), others = named_sizes(asked);
  std::string text;
  for (size_t i = 0; i < sizes.size() && i < others.size(); ++i) {
    const bool is_product = sizes[i].name.find(" x ") != std::string_view::npos;
    if (is_product || sizes[i].value == others[i].value) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", sizes[i].name, size_text(sizes[i].value));
  }
  return text.empty() ? "the same sizes" : text;
}

std::string nearest_text(std::span<const MeasuredRow> nearest, const KernelShape& asked) {
  Table table({{"nearest measured rows, and what differs", Table::Align::left},
               {"kernel", Table::Align::left},
               {"measured"},
               {"predicted"},
               {"error %"},
               {"doublings"}});
  for (const MeasuredRow& row : nearest.first(std::min(nearest.size(), most_nearest))) {
    const double predicted = row.predicted.seconds.value;
    table.add({difference_text(row.shape, asked), row.variant, duration_text(row.measured_seconds),
               duration_text(predicted), fmt::format("{:+.1f}", 100 * (predicted / row.measured_seconds - 1)),
               fmt::format("{:.2f}", row.distance)});
  }
  return fmt::format("\n{}{} measured on {}, with caches as warm as the benchmark leaves them\n", table.text(),
                     nearest.size() == 1 ? "1 row like this" : fmt::format("{} rows like this", nearest.size()),
                     nearest.front().device);
}

Json explained_json(const std::vector<Explained>& lines) {
  constexpr std::string_view kinds[] = {"fact", "limit", "part"};
  Json list = Json::array();
  for (const Explained& line : lines) {
    list.push(Json::object({{"kind", kinds[static_cast<size_t>(line.kind)]},
                            {"name", line.name},
                            {"value", line.value},
                            {"unit", line.unit},
                            {"reading", line.reading}}));
  }
  return list;
}

Json nearest_json(std::span<const MeasuredRow> nearest) {
  Json list = Json::array();
  for (const MeasuredRow& row : nearest.first(std::min(nearest.size(), most_nearest))) {
    Json sizes = Json::object();
    for (const NamedSize& size : named_sizes(row.shape)) sizes.set(std::string(size.name), size.value);
    list.push(Json::object({{"device", row.device},
                            {"kernel", row.variant},
                            {"row", row.row},
                            {"sizes", std::move(sizes)},
                            {"measured_seconds", row.measured_seconds},
                            {"predicted_seconds", to_json(row.predicted.seconds)},
                            {"doublings_apart", row.distance}}));
  }
  return list;
}

}  // namespace

std::string call_text(const KernelFamily& family, GivenParameters given) {
  std::string call = family.name;
  for (const auto& [name, value] : given) {
    const auto parameter = std::find_if(family.parameters.begin(), family.parameters.end(),
                                        [&name = name](const KernelParameter& p) { return p.name == name; });
    const bool is_usual = parameter != family.parameters.end() && parameter->fallback == value;
    if (!is_usual || name.ends_with("dtype")) call += fmt::format(" {}={}", name, value);
  }
  return call;
}

std::string sizes_text(const KernelShape& shape) {
  std::string text;
  for (const NamedSize& size : named_sizes(shape)) {
    if (size.name.find(" x ") != std::string_view::npos) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", size.name, size_text(size.value));
  }
  return text;
}

std::string kernel_text(const KernelReport& report) {
  const KernelExplanation& explanation = report.explanation;
  const KernelEstimate& estimate = explanation.estimate;
  std::string text = fmt::format("{} on {}\n", call_text(report.family, report.given), report.device.title);
  text += fmt::format("  time        {}, confidence: {}\n", interval_text(estimate.seconds),
                      confidence_name(estimate.seconds.kind));
  text += fmt::format("  source      {}\n", tier_text(explanation));
  text += fmt::format("  interval    {}\n", interval_origin_text(explanation.interval));
  if (!explanation.form.empty()) text += fmt::format("  sizes       {}\n", envelope_text(explanation));
  if (!explanation.variant.empty()) text += fmt::format("  kernel      {}\n", explanation.variant);
  text += against_roofline_text(report) + utilization_text(report);
  text += fmt::format("  bound by    {}", report.in_memory ? "the units in the memory" : bound_name(estimate.bound));
  const Explained* limit = largest_limit(explanation);
  if (limit != nullptr && !report.in_memory) {
    text += fmt::format(" on the roofline; in this kernel by {}", spaced(limit->name));
  }
  text += "\n" + work_text(report);
  text = wrap_lines(text, page_width(), 14);
  if (!explanation.lines.empty()) text += parts_text(explanation);
  if (!report.nearest.empty()) text += nearest_text(report.nearest, report.shape);
  return text;
}

Json kernel_json(const KernelReport& report) {
  const KernelExplanation& explanation = report.explanation;
  Json parameters = Json::object();
  for (const auto& [name, value] : report.given) parameters.set(name, value);
  Json envelope = Json::array();
  for (const EnvelopeSize& size : explanation.envelope) {
    envelope.push(Json::object({{"name", size.name},
                                {"value", size.value},
                                {"least", size.least},
                                {"most", size.most},
                                {"inside", size.inside()}}));
  }
  const DType math = explanation.estimate.work.math;
  const std::optional<DType> used = report.device.type_or_fallback(math);
  const IntervalOrigin& origin = explanation.interval;
  const KernelUse use = use_of(report);
  return Json::object({{"family", report.family.name},
                       {"device", report.device.name},
                       {"parameters", parameters},
                       {"estimate", to_json(explanation.estimate)},
                       {"roofline_seconds", explanation.roofline_seconds},
                       {"efficiency", report.in_memory ? Json() : Json(explanation.efficiency)},
                       {"runs_in_memory", report.in_memory},
                       {"mfu", use.mfu ? Json(*use.mfu) : Json()},
                       {"mbu", use.mbu ? Json(*use.mbu) : Json()},
                       {"multiplies_in", used ? Json(dtype_name(*used)) : Json()},
                       {"form", explanation.form.empty() ? Json() : Json(explanation.form)},
                       {"kernel", explanation.variant.empty() ? Json() : Json(explanation.variant)},
                       {"swept_device", explanation.swept_device.empty() ? Json() : Json(explanation.swept_device)},
                       {"explanation", explained_json(explanation.lines)},
                       {"form_seconds", explanation.form_seconds},
                       {"correction", explanation.correction},
                       {"held_at_bound", explanation.held_at_bound},
                       {"interval_origin", Json::object({{"basis", origin.basis},
                                                         {"reading", origin.reading},
                                                         {"measurements", origin.measurements},
                                                         {"fitted_on", origin.fitted_on},
                                                         {"mape", origin.mape > 0 ? Json(origin.mape) : Json()}})},
                       {"envelope", std::move(envelope)},
                       {"nearest", nearest_json(report.nearest)}});
}

}  // namespace foretoken
