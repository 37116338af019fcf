#include "report/step/step_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/kernel/roofline_plot.h"
#include "report/parts/json_parts.h"
#include "report/parts/model_notes.h"
#include "report/parts/source_text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string bound_text(const TimedOperator& timed) {
  if (!timed.kernel) return "network";
  return std::string(bound_name(timed.kernel->bound));
}

std::string display_name(const TimedOperator& timed) {
  // Kernels of the backward pass have names of their own; collectives run in both.
  const bool needs_pass = timed.call.pass == Pass::backward && !timed.kernel;
  return needs_pass ? timed.call.name + " (backward)" : timed.call.name;
}

// A slowest-first copy when asked for; ties keep the order of use.
std::vector<const TimedOperator*> ordered(const StageEstimate& stage, bool by_time) {
  std::vector<const TimedOperator*> operators;
  for (const TimedOperator& timed : stage.operators) operators.push_back(&timed);
  if (by_time) {
    std::stable_sort(operators.begin(), operators.end(),
                     [](const auto* a, const auto* b) { return a->seconds.value > b->seconds.value; });
  }
  return operators;
}

// The sum over stages.
struct StepParts {
  DispatchTime time;
  double padding = 0;
  int64_t launches = 0;
};

StepParts parts_of(const StepEstimate& step) {
  StepParts parts;
  for (const StageEstimate& stage : step.stages) {
    parts.time.seconds += stage.time.seconds;
    parts.time.kernels += stage.time.kernels;
    parts.time.communication += stage.time.communication;
    parts.time.hidden_communication += stage.time.hidden_communication;
    parts.time.hidden_attention += stage.time.hidden_attention;
    parts.time.launch_gap += stage.time.launch_gap;
    parts.time.host_stall += stage.time.host_stall;
    parts.time.host += stage.time.host;
    parts.padding += stage.padding;
    for (const TimedOperator& timed : stage.operators) parts.launches += timed.launches;
  }
  return parts;
}

std::string_view verdict(const DispatchTime& time) {
  if (time.host_bound()) return "host-bound";
  return time.communication > time.kernels ? "network-bound" : "device-bound";
}

// The operator whose interval is widest, with its share of the sum of all widths.
struct LeastCertain {
  std::string name;
  double share = 0;
};

LeastCertain least_certain(const StepEstimate& step) {
  LeastCertain result;
  double widest = 0, sum = 0;
  for (const StageEstimate& stage : step.stages) {
    for (const TimedOperator& timed : stage.operators) {
      const double width = timed.seconds.high - timed.seconds.low;
      sum += width;
      if (width <= widest) continue;
      widest = width;
      result.name = timed.call.name;
    }
  }
  if (sum > 0) result.share = widest / sum;
  return result;
}

// "  stack  vllm, one CUDA graph: kernels 4.2 ms + launch gaps 0.1 ms + host stall 0 ms"
std::string dispatch_text(const StepEstimate& step) {
  const StepParts parts = parts_of(step);
  const DispatchTime& time = parts.time;
  std::string text = fmt::format("  stack  {} ({}): {} launches, kernels {}", step.stack.empty() ? "fused" : step.stack,
                                 dispatch_name(step.dispatch), parts.launches, duration_text(time.kernels));
  const auto add = [&](std::string_view name, double seconds) {
    if (seconds > 0) text += fmt::format(" + {} {}", name, duration_text(seconds));
  };
  add("communication", time.communication);
  add("launch gaps", time.launch_gap);
  add("host stall", time.host_stall);
  text += fmt::format("; {}", verdict(time));
  if (step.two_batches) {
    const double traveled = time.communication + time.hidden_communication;
    text += fmt::format("; two batches hide {} of communication ({:.0f}%)", duration_text(time.hidden_communication),
                        100 * time.hidden_communication / traveled);
  }
  if (time.hidden_attention > 0) {
    text +=
        fmt::format("; the batch runs as two halves, which overlaps {} of attention in memory with work on the device",
                    duration_text(time.hidden_attention));
  }
  if (step.padded_batch > step.request.batch) {
    text += fmt::format("; padded to {}, which costs {}", counted(step.padded_batch, "sequence"),
                        duration_text(parts.padding));
  }
  const LeastCertain wide = least_certain(step);
  if (!wide.name.empty()) {
    text += fmt::format("\n  largest source of uncertainty: {} ({:.0f}%)", wide.name, 100 * wide.share);
  }
  return wrap_lines(text, page_width(), 9);
}

Json dispatch_json(const StepEstimate& step) {
  const StepParts parts = parts_of(step);
  const LeastCertain wide = least_certain(step);
  Json gap = Json::object({{"kernels_seconds", parts.time.kernels},
                           {"communication_seconds", parts.time.communication},
                           {"launch_gap_seconds", parts.time.launch_gap},
                           {"host_stall_seconds", parts.time.host_stall},
                           {"host_busy_seconds", parts.time.host},
                           {"padding_seconds", parts.padding},
                           {"launches", parts.launches},
                           {"verdict", verdict(parts.time)},
                           {"least_certain_operator", wide.name},
                           {"least_certain_share", wide.share}});
  if (step.two_batches) gap.set("hidden_communication_seconds", parts.time.hidden_communication);
  if (parts.time.hidden_attention > 0) gap.set("hidden_attention_seconds", parts.time.hidden_attention);
  return gap;
}

// "  links  NVLink 12.3 MB, 0.5 ms (8%); InfiniBand NDR between nodes 4 MB, 2 ms (33%)"
std::string links_text(const StepEstimate& step) {
  std::string text;
  for (const LinkTraffic& link : step.links) {
    text += fmt::format("{}{}{} {}", text.empty() ? "  links  each GPU sends " : "; ", link.link,
                        link.between_nodes ? " between nodes" : "", bytes_text(link.bytes));
    if (link.seconds > 0) {
      text += fmt::format(", {} ({:.1f}% of the step)", duration_text(link.seconds),
                          100 * link.seconds / step.seconds.value);
    }
  }
  return text.empty() ? text : wrap_lines(text, page_width(), 9);
}

Json links_json(const StepEstimate& step) {
  Json links = Json::array();
  for (const LinkTraffic& link : step.links) {
    links.push(Json::object({{"link", link.link},
                             {"between_nodes", link.between_nodes},
                             {"bandwidth_bytes_per_second", link.bandwidth},
                             {"bytes", link.bytes},
                             {"seconds", link.seconds},
                             {"share", link.seconds / step.seconds.value}}));
  }
  return links;
}

// What a reader should know before using the answer.
std::vector<std::string> notes_of(const StepEstimate& step, const Model& model, const DeviceNotes& devices) {
  std::vector<std::string> notes = model.notes;
  notes.insert(notes.end(), devices.sentences.begin(), devices.sentences.end());
  const int64_t positions =
      step.request.context_len + (step.request.phase == StepPhase::decode ? 1 : step.request.input_len);
  if (model.max_positions > 0 && positions > model.max_positions) {
    notes.push_back(
        fmt::format("{} positions are more than the {} that the model supports", positions, model.max_positions));
  }
  return notes;
}

std::string work_sentence(const StepRequest& request) {
  switch (request.phase) {
    case StepPhase::prefill:
      return fmt::format("a prefill step of {} x {} tokens{}", request.batch, request.input_len,
                         request.context_len > 0 ? fmt::format(" after {} cached", request.context_len) : "");
    case StepPhase::decode:
      return fmt::format("a decode step of {} with {} of context", counted(request.batch, "sequence"),
                         counted(request.context_len, "token"));
    case StepPhase::mixed:
      return fmt::format("a mixed step of {} x {} prompt tokens and {}", request.prompts, request.input_len,
                         counted(request.batch - request.prompts, "decode"));
    case StepPhase::train:
      return fmt::format("a training step of {} x {} tokens", request.batch, request.input_len);
  }
  return "";
}

}  // namespace

void add_step_notes(DeviceNotes& notes, const StepEstimate& step, const Device& device) {
  notes.add_like(device);
  constexpr double much = 0.3;
  double total = 0, bare = 0, derated = 0, mapped = 0, measured = 0;
  for (const StageEstimate& stage : step.stages) {
    for (const TimedOperator& timed : stage.operators) {
      total += timed.seconds.value;
      if (!timed.kernel) continue;
      double& part = timed.kernel->tier == Tier::mapped     ? mapped
                     : timed.kernel->tier != Tier::roofline ? measured
                     : timed.kernel->derated                ? derated
                                                            : bare;
      part += timed.seconds.value;
    }
  }
  if (derated > much * total) {
    if (measured > 0)
      notes.add_partly_measured(device);
    else
      notes.add_sheet_only(device);
  }
  if (bare > much * total && mapped == 0) notes.add_bounds(device);
}

std::string step_sentence(const StepEstimate& step, const Model& model, const Device& device) {
  const std::string devices = step.devices == 1 ? device.title : fmt::format("{:g} x {}", step.devices, device.title);
  const std::string replicas = step.plan.data > 1 ? fmt::format(" on each of {} replicas", step.plan.data) : "";
  std::string text = fmt::format("{} on {}: {}{} takes about {} (90% interval {} to {})", model.served_name(), devices,
                                 work_sentence(step.request), replicas, duration_text(step.seconds.value),
                                 duration_text(step.seconds.low), duration_text(step.seconds.high));
  if (step.request.phase == StepPhase::decode) {
    text += fmt::format(", {:.0f} tokens/s", step.tokens / step.seconds.value);
  }
  return text + ".";
}

Json step_json(const StepEstimate& step, const Model& model, const Device& device, DeviceNotes more) {
  add_step_notes(more, step, device);
  Json stages = Json::array();
  for (const StageEstimate& stage : step.stages) {
    Json operators = Json::array();
    for (const TimedOperator& timed : stage.operators) {
      Json entry = Json::object({{"name", timed.call.name},
                                 {"part", step_part_name(timed.call.part)},
                                 {"pass", timed.call.pass == Pass::forward ? "forward" : "backward"},
                                 {"family", family_name(timed.call.shape)},
                                 {"count", timed.call.count},
                                 {"launches", timed.launches},
                                 {"seconds", to_json(timed.seconds)},
                                 {"bound", bound_text(timed)},
                                 {"tier", timed.kernel ? Json(tier_name(timed.kernel->tier)) : Json()}});
      if (timed.kernel) {
        entry.set("work", to_json(timed.work));
        const std::optional<DType> used = device.type_or_fallback(timed.work.math);
        const std::optional<FlopsPerSecond> peak = device.peak_or_fallback(timed.work.math);
        entry.set("multiplies_in", used ? Json(dtype_name(*used)) : Json());
        entry.set("peak_flops_per_second", peak ? Json(peak->value()) : Json());
      }
      operators.push(std::move(entry));
    }
    stages.push(Json::object(
        {{"seconds", to_json(stage.seconds)}, {"memory_bytes", to_json(stage.memory)}, {"operators", operators}}));
  }
  Json notes = Json::array();
  for (const std::string& note : notes_of(step, model, more)) notes.push(note);
  const std::optional<double> mbu = memory_bandwidth_utilization(step, device);
  Json json =
      Json::object({{"model", model.served_name()},
                    {"device", device.name},
                    {"devices", step.devices},
                    {"phase", step_phase_name(step.request.phase)},
                    {"batch", step.request.batch},
                    {"input_len", step.request.phase == StepPhase::decode ? Json() : Json(step.request.input_len)},
                    {"context_len", step.request.context_len},
                    {"parallel", to_json(step.plan)},
                    {"seconds", to_json(step.seconds)},
                    {"sources", to_json(sources_of(step))},
                    {"stack", step.stack.empty() ? "fused" : step.stack},
                    {"dispatch", dispatch_name(step.dispatch)},
                    {"padded_batch", step.padded_batch > 0 ? Json(step.padded_batch) : Json()},
                    {"gap", dispatch_json(step)},
                    {"tokens", step.tokens},
                    {"tokens_per_second", step.tokens / step.seconds.value},
                    {"model_flops", step.model_flops.value()},
                    {"mfu", step.model_flops_utilization},
                    {"mbu", mbu ? Json(*mbu) : Json()},
                    {"device_memory_bytes", step.device_memory.value() > 0 ? Json(step.device_memory.value()) : Json()},
                    {"fits_in_memory", step.fits_in_memory ? Json(*step.fits_in_memory) : Json()},
                    {"stages", stages},
                    {"notes", notes}});
  if (!step.links.empty()) json.set("links", links_json(step));
  set_device_notes(json, more);
  return json;
}

std::string step_failure(const StepEstimate& step, const Model& model, const Device& device) {
  if (step.fits_in_memory.value_or(true)) return "";
  double need = 0;
  for (const StageEstimate& stage : step.stages) need = std::max(need, stage.memory.total().value());
  const double have = step.device_memory.value();
  return fmt::format(
      "Out of memory: this step of {} does not fit on {} x {}. Each device needs {} but has only {} ({} short).",
      model.served_name(), step.devices, device.title, bytes_text(need), bytes_text(have), bytes_text(need - have));
}

std::string step_text(const StepEstimate& step, const Model& model, const Device& device, bool by_time,
                      DeviceNotes more) {
  add_step_notes(more, step, device);
  const std::vector<std::string> notes = notes_of(step, model, more);
  std::string out = model_warnings_text(notes);
  if (const std::string failure = step_failure(step, model, device); !failure.empty()) {
    out += wrap_lines(failure + " With enough memory:", page_width(), 2) + "\n";
  }
  out += wrap_lines(step_sentence(step, model, device), page_width(), 2);
  out += dispatch_text(step);
  out += links_text(step);
  out += wrap_lines(fmt::format("  source {}\n", source_text(sources_of(step), "this time")), page_width(), 9);
  out += fmt::format("  work   {} by the model: MFU {:.1f}% of the {} peak",
                     rate_text(step.model_flops.value(), "FLOP"), 100 * step.model_flops_utilization,
                     dtype_name(device.type_or_fallback(facts(model.scheme).math).value_or(facts(model.scheme).math)));
  if (const std::optional<double> mbu = memory_bandwidth_utilization(step, device)) {
    out += fmt::format("; MBU {:.1f}% of {}", 100 * *mbu, rate_text(device.memory_bandwidth->value.value(), "B/s"));
  }
  out += "\n";
  for (size_t i = 0; i < step.stages.size(); ++i) {
    const StageEstimate& stage = step.stages[i];
    const RankMemory& memory = stage.memory;
    std::string memory_text =
        fmt::format("{}Per device: weights {}, KV cache {}, activations {}",
                    step.stages.size() > 1 ? fmt::format("Stage {}. ", i) : "", bytes_text(memory.weights.value()),
                    bytes_text(memory.kv_cache.value()), bytes_text(memory.activations.value()));
    if (memory.gradients_and_optimizer.value() > 0) {
      memory_text += fmt::format(", gradients and optimizer {}", bytes_text(memory.gradients_and_optimizer.value()));
    }
    if (step.device_memory.value() > 0) {
      const bool fits = memory.total() <= step.device_memory;
      memory_text += fmt::format("; {} of {} memory: {}", bytes_text(memory.total().value()),
                                 memory_size_text(step.device_memory.value()), fits ? "fits" : "DOES NOT FIT");
    }
    out += "\n" + wrap_lines(memory_text, page_width(), 2) + "\n";
    Table table({{"operator", Table::Align::left},
                 {"calls"},
                 {"time"},
                 {"share"},
                 {"bound", Table::Align::left},
                 {"FLOPs"},
                 {"bytes"},
                 {"", Table::Align::left}});
    for (const TimedOperator* timed : ordered(stage, by_time)) {
      const double share = timed->seconds.value / stage.kernels.value;
      table.add({display_name(*timed), fmt::format("{}", timed->call.count), duration_text(timed->seconds.value),
                 fmt::format("{:.1f}%", 100 * share), bound_text(*timed),
                 timed->kernel ? rate_text(timed->work.flops.value(), "") : "",
                 timed->kernel ? bytes_text(timed->work.bytes().value()) : "", bar(share, 12)});
    }
    table.add_rule();
    table.add({"sum of calls", "", duration_text(stage.kernels.value), "100.0%", "", "", "", ""});
    out += table.text();
  }
  return out + notes_text(notes);
}

std::string step_roofline(const StepEstimate& step, const Model& model, const Device& device) {
  if (!device.memory_bandwidth || step.stages.empty()) return "";
  constexpr size_t most_points = 8;
  const BytesPerSecond bandwidth = device.memory_bandwidth->value;
  DType highest = facts(model.scheme).math;  // of those that operators multiply in
  FlopsPerSecond highest_peak;
  std::vector<RooflinePoint> points;
  for (const TimedOperator* timed : ordered(step.stages.front(), true)) {
    if (!timed->kernel || timed->work.flops.value() <= 0 || points.size() >= most_points) continue;
    const DType math = timed->work.math;
    const std::optional<FlopsPerSecond> peak = device.peak_or_fallback(math);
    RooflinePoint point{.label = display_name(*timed),
                        .flops_per_byte = timed->work.flops.value() / timed->work.bytes().value(),
                        .rate = timed->work.flops / Seconds(timed->seconds.value),
                        .of_roof = {}};
    if (peak) {
      const double roof = std::min(peak->value(), point.flops_per_byte * bandwidth.value());
      const std::string share = share_of_roof_text(point.rate.value() / roof);
      const std::string_view type = dtype_name(device.type_or_fallback(math).value_or(math));
      point.of_roof = share.ends_with('%') ? fmt::format("{} of the {} roof", share, type) : share;
    }
    points.push_back(std::move(point));
    if (!peak || *peak <= highest_peak) continue;
    highest = math;
    highest_peak = *peak;
  }
  if (!(highest_peak.value() > 0)) return "";
  return roofline_plot(
      {.peak = highest_peak,
       .bandwidth = bandwidth,
       .peak_label = fmt::format("{} peak", dtype_name(device.type_or_fallback(highest).value_or(highest)))},
      points);
}

std::string sustained_step_text(const SustainedStep& held, const StepEstimate& step) {
  const SustainedPower& power = held.power;
  std::string text = fmt::format(
      "Repeated without pause: {} per step (90% interval {} to {}), {:.0f} W per device ({:.0f} to {:.0f}), {:.3g} J "
      "per step",
      duration_text(held.seconds.value), duration_text(held.seconds.low), duration_text(held.seconds.high),
      power.watts.value, power.watts.low, power.watts.high, held.joules);
  if (power.limited) {
    text += fmt::format("; the power limit lowers the clock by {:.0f}% and makes the step {:.1f}% longer",
                        100 * (1 - power.clock_share), 100 * (held.seconds.value / step.seconds.value - 1));
  } else {
    text += "; it stays within the power limit";
  }
  return wrap_lines(text + ".", page_width(), 2);
}

Json sustained_step_json(const SustainedStep& held) {
  return Json::object({{"seconds", to_json(held.seconds)},
                       {"watts", to_json(held.power.watts)},
                       {"joules", held.joules},
                       {"slowdown", to_json(held.power.slowdown)},
                       {"clock_share", held.power.clock_share},
                       {"limited", held.power.limited}});
}

}  // namespace foretoken
