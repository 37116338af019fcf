#include "report/step/image_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr std::string_view image_note =
    "Kernels run back to back, as with torch.compile and CUDA graphs; text encoders are not included. Eager PyTorch is "
    "slower.";

}  // namespace

std::string image_text(const ImageQuestion& question, const ImageEstimate& estimate) {
  const ImageSize& size = question.size;
  std::string text = fmt::format(
      "{} on {}: {} image{} of {} x {} in {} steps, {}\n\ntime          {}\none step      {}, {} of {}\ndecoder       "
      "{}\n"
      "rate          {:.3g} images/s\n",
      question.model.title, question.device.title, size.images, size.images == 1 ? "" : "s", size.width, size.height,
      question.steps, facts(question.scheme).name, interval_text(estimate.seconds),
      interval_text(estimate.step_seconds), count_text(estimate.step_flops) + "FLOP",
      question.model.guidance_passes == 1 ? "one pass" : fmt::format("{} passes", question.model.guidance_passes),
      interval_text(estimate.decode_seconds), static_cast<double>(size.images) / estimate.seconds.value);
  Table table({{"kernels", Table::Align::left}, {"count"}, {"time"}, {"90% interval"}});
  for (const ImagePart& part : estimate.parts) {
    table.add({part.name, fmt::format("{}", part.kernels), duration_text(part.seconds.value),
               fmt::format("{} to {}", duration_text(part.seconds.low), duration_text(part.seconds.high))});
  }
  return text + "\n" + table.text() + "\n" + wrap_lines(std::string(image_note) + "\n", page_width, 2);
}

Json image_json(const ImageQuestion& question, const ImageEstimate& estimate) {
  Json parts = Json::array();
  for (const ImagePart& part : estimate.parts) {
    parts.push(Json::object({{"name", part.name}, {"kernels", part.kernels}, {"seconds", to_json(part.seconds)}}));
  }
  return Json::object({{"model", question.model.name},
                       {"device", question.device.name},
                       {"images", question.size.images},
                       {"height", question.size.height},
                       {"width", question.size.width},
                       {"steps", question.steps},
                       {"quantization", facts(question.scheme).name},
                       {"seconds", to_json(estimate.seconds)},
                       {"step_seconds", to_json(estimate.step_seconds)},
                       {"decode_seconds", to_json(estimate.decode_seconds)},
                       {"step_flops", estimate.step_flops},
                       {"parts", std::move(parts)},
                       {"notes", Json::array({image_note})}});
}

}  // namespace foretoken
