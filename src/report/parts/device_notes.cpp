#include "report/parts/device_notes.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "compose/engine_release.h"
#include "compose/serving_engine.h"
#include "hardware/software.h"
#include "report/parts/table.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

void add_once(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

Json text_list(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

}  // namespace

std::string sheet_only_sentence(const Device& device) {
  return fmt::format(
      "{} is known from its spec sheet only: its kernels are not calibrated by measurements, so times are derated "
      "estimates with wide intervals.",
      device.title);
}

void DeviceNotes::add_sheet_only(const Device& device) {
  add_once(sheet_only, device.name);
  add_once(sentences, sheet_only_sentence(device));
}

void DeviceNotes::add_partly_measured(const Device& device) {
  add_once(sentences,
           fmt::format("Much of this time is attention and other kernels that were not measured on {}: they "
                       "are derated estimates from its spec sheet with wide intervals. Its matrix multiplies "
                       "were measured.",
                       device.title));
}

void DeviceNotes::add_bounds(const Device& device) {
  add_once(sentences, fmt::format("Kernel times on {} are roofline bounds ({{tier}} roofline): the least time that its "
                                  "spec sheet allows. Real kernels take longer.",
                                  device.title));
}

std::string like_sentence(const Device& device) {
  if (!device.like) return {};
  return fmt::format(
      "{} is taken to be like {}: foretoken does not know its generation, so it assumes the kernels of {} and gives "
      "wider intervals.",
      device.title, device.like->title, device.like->name);
}

void DeviceNotes::add_like(const Device& device) {
  if (device.like) add_once(sentences, like_sentence(device));
}

void DeviceNotes::add_kernels(const KernelPredictor& predictor) {
  add_like(predictor.device());
  for (const std::string& note : predictor.notes()) add_sentence(note);
  if (predictor.is_known_by_sheet_only()) add_once(sheet_only, predictor.device().name);
  if (predictor.tier() == Tier::roofline) {
    add_bounds(predictor.device());
  } else if (predictor.is_known_by_sheet_only()) {
    add_sheet_only(predictor.device());
  }
}

void DeviceNotes::add_network(const RankNetwork& network) {
  for (const std::string& note : network.notes()) add_sentence(note);
}

void DeviceNotes::add_engine(std::string_view engine, const Device& device) {
  if (const std::string note = unfitted_release_note(engine); !note.empty()) add_once(sentences, note);
  const auto kinds = engine_kinds();
  const std::string_view name = engine_release(engine) ? engine_kind(engine).name : engine;
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const EngineKind& one) { return one.name == name; });
  if (kind == kinds.end()) return;
  const std::string_view needs = software_needs(kind->family, device);
  if (needs.empty()) return;
  add_once(sentences,
           fmt::format("On {}, {} needs {}. foretoken assumes the scheduler and memory limits that {} has on "
                       "GPUs.",
                       device.title, kind->name, needs, kind->name));
}

void DeviceNotes::add_deployment(const CalibratedDeployment* deployment, std::string_view engine, const Device& device,
                                 const Model& model, const ParallelPlan& plan) {
  if (deployment == nullptr) return;
  const std::string_view family = engine_family(engine);
  const std::string name = deployment->name.empty() ? "The deployment" : "The deployment " + deployment->name;
  if (!deployment->constants_of(family, device.name, model.name, plan)) {
    add_sentence(
        fmt::format("{} was calibrated for {} on {}. It does not cover {} on {}, which is predicted without it.", name,
                    deployment->engine, deployment->device, family, device.name));
  } else if (!deployment->has_measured(model.name, plan)) {
    add_sentence(
        fmt::format("{} has no run of {} in this layout. Only what carries over from its other runs is used, "
                    "and intervals are wider.",
                    name, model.name));
  }
}

void DeviceNotes::add_sentence(const std::string& sentence) {
  add_once(sentences, sentence);
}

std::string device_notes_text(const DeviceNotes& notes) {
  std::string text;
  for (const std::string& sentence : notes.sentences) text += wrap_lines("note: " + sentence + "\n", page_width(), 2);
  return text;
}

void set_device_notes(Json& document, const DeviceNotes& notes) {
  document.set("sheet_only_devices", text_list(notes.sheet_only));
  document.set("device_notes", text_list(notes.sentences));
}

void add_like_note(std::string& text, Json& document, const Device& device) {
  if (!device.like) return;
  DeviceNotes notes;
  notes.add_like(device);
  text += device_notes_text(notes);
  document.set("device_notes", text_list(notes.sentences));
}

}  // namespace foretoken
