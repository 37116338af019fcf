#include "report/step/image_report.h"

#include <optional>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

// What programs get of it; nothing where nobody says.
std::optional<double> memory_of(const Device& device) {
  const MaybeFact<Bytes>& offered = device.allocatable_memory ? device.allocatable_memory : device.memory;
  return offered ? std::optional(offered->value.value()) : std::nullopt;
}

bool holds(const Device& device, double bytes) {
  return bytes <= memory_of(device).value_or(bytes);
}

std::vector<std::string> notes_on(const ImageQuestion& question, const ImageEstimate& estimate) {
  std::vector<std::string> notes = {
      "Kernels run back to back, as with torch.compile and CUDA graphs; text encoders are not timed. Eager PyTorch is "
      "slower."};
  if (question.asked != question.setup.scheme) {
    notes.push_back(fmt::format("{} does not multiply in {}: the {} weights are multiplied in bf16.",
                                question.device.name, dtype_name(facts(question.asked).math),
                                facts(question.asked).name));
  }
  const ImageMemory& memory = estimate.memory;
  if (holds(question.device, memory.without_text()) && !holds(question.device, memory.total())) {
    notes.push_back(fmt::format("The model fits only if the text encoders ({}) are unloaded before the first step.",
                                bytes_text(memory.text_encoders)));
  }
  if (!estimate.step.power) {
    notes.push_back("The board's power limit is not known, so a long run may be slower than predicted.");
  }
  return notes;
}

std::string memory_line(const ImageQuestion& question, const ImageMemory& memory) {
  const std::optional<double> have = memory_of(question.device);
  return fmt::format("memory        weights {}, text encoders {}, activations {}, context {}; total {}{}\n",
                     bytes_text(memory.weights()), bytes_text(memory.text_encoders), bytes_text(memory.activations()),
                     bytes_text(memory.context), bytes_text(memory.total()), have ? " of " + bytes_text(*have) : "");
}

std::string whole_or_short(double joules) {
  return joules >= 100 ? fmt::format("{:.0f}", joules) : fmt::format("{:.3g}", joules);
}

std::string power_line(const ImageEstimate& estimate, int64_t images) {
  if (!estimate.joules) return "";
  const SustainedPower& power = *estimate.step.power;
  const Estimate each = scaled(*estimate.joules, 1 / static_cast<double>(images));
  return fmt::format("energy        {} J per image (90% interval {} to {}), {:.0f} W; {}\n", whole_or_short(each.value),
                     whole_or_short(each.low), whole_or_short(each.high), power.watts.value,
                     power.limited ? fmt::format("at its power limit, {:.0f}% slower than a short burst",
                                                 100 * (power.slowdown.value - 1))
                                   : "below its power limit");
}

}  // namespace

std::string image_failure(const ImageQuestion& question, const ImageEstimate& estimate) {
  const double need = estimate.memory.without_text();
  if (holds(question.device, need)) return "";
  return fmt::format("Out of memory: {} does not fit on {}. It needs {} without text encoders; the device has {}.",
                     question.setup.model.title, question.device.title, bytes_text(need),
                     bytes_text(*memory_of(question.device)));
}

std::string image_text(const ImageQuestion& question, const ImageEstimate& estimate) {
  const ImageSetup& setup = question.setup;
  const ImageSize& size = setup.size;
  std::string failed, text;
  if (const std::string failure = image_failure(question, estimate); !failure.empty()) {
    failed = wrap_lines(failure + " With enough memory:", page_width(), 2) + "\n";
  }
  text += fmt::format(
      "{} on {}: {} of {} x {} in {}, {}\n\ntime          {}\none step      {}, {} of {}\n"
      "decoder       {}\nrate          {:.3g} images/s\n",
      setup.model.title, question.device.title, counted(size.images, "image"), size.width, size.height,
      counted(setup.steps, "step"), facts(question.asked).name, interval_text(estimate.seconds),
      interval_text(estimate.step.seconds), count_text(estimate.step.flops) + "FLOP",
      setup.model.guidance_passes == 1 ? "one pass" : fmt::format("{} passes", setup.model.guidance_passes),
      interval_text(estimate.decoder.seconds), static_cast<double>(size.images) / estimate.seconds.value);
  text += power_line(estimate, size.images) + memory_line(question, estimate.memory);
  const double sheets = 1 - estimate.step.measured_share - estimate.step.cross_share;
  text += fmt::format(
      "source        {} of a step from kernels measured on this device, {} from other devices, {} from "
      "spec sheets\n",
      share_words(estimate.step.measured_share), share_words(estimate.step.cross_share), share_words(sheets));
  constexpr int label_width = 14;
  text = failed + wrap_lines(text, page_width(), label_width);
  Table table({{"kernels, in a short burst", Table::Align::left}, {"count"}, {"time"}, {"90% interval"}});
  for (const ImagePhase* phase : {&estimate.step, &estimate.decoder}) {
    for (const ImagePart& part : phase->parts) {
      table.add({part.name, fmt::format("{}", part.kernels), duration_text(part.seconds.value),
                 fmt::format("{} to {}", duration_text(part.seconds.low), duration_text(part.seconds.high))});
    }
  }
  text += "\n" + table.text() + "\n";
  for (const std::string& note : notes_on(question, estimate))
    text += wrap_lines("note: " + note + "\n", page_width(), 2);
  return text;
}

Json image_json(const ImageQuestion& question, const ImageEstimate& estimate) {
  const ImageSetup& setup = question.setup;
  Json parts = Json::array(), notes = Json::array();
  for (const ImagePhase* phase : {&estimate.step, &estimate.decoder}) {
    for (const ImagePart& part : phase->parts) {
      parts.push(Json::object({{"name", part.name}, {"kernels", part.kernels}, {"seconds", to_json(part.seconds)}}));
    }
  }
  for (const std::string& note : notes_on(question, estimate)) notes.push(note);
  const ImageMemory& memory = estimate.memory;
  Json json = Json::object({{"model", setup.model.name},
                            {"device", question.device.name},
                            {"images", setup.size.images},
                            {"height", setup.size.height},
                            {"width", setup.size.width},
                            {"steps", setup.steps},
                            {"quantization", facts(question.asked).name},
                            {"seconds", to_json(estimate.seconds)},
                            {"step_seconds", to_json(estimate.step.seconds)},
                            {"step_burst_seconds", to_json(estimate.step.burst_seconds)},
                            {"decode_seconds", to_json(estimate.decoder.seconds)},
                            {"step_flops", estimate.step.flops},
                            {"memory", Json::object({{"weights_bytes", memory.weights()},
                                                     {"text_encoder_bytes", memory.text_encoders},
                                                     {"activation_bytes", memory.activations()},
                                                     {"context_bytes", memory.context}})},
                            {"measured_share", estimate.step.measured_share},
                            {"other_devices_share", estimate.step.cross_share},
                            {"parts", std::move(parts)},
                            {"notes", std::move(notes)}});
  if (const std::optional<double> have = memory_of(question.device)) json.set("device_memory_bytes", *have);
  if (estimate.joules) {
    json.set("joules", to_json(*estimate.joules));
    json.set("watts", to_json(estimate.step.power->watts));
    json.set("slowdown", to_json(estimate.step.power->slowdown));
  }
  return json;
}

}  // namespace foretoken
