// What a reader must know about the devices of an answer before relying on it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "hardware/device.h"
#include "kernel/kernel.h"
#include "library/deployment.h"
#include "model/model.h"
#include "network/rank_network.h"

namespace foretoken {

struct DeviceNotes {
  std::vector<std::string> sheet_only;  // names of devices known by their spec sheets alone, each once
  std::vector<std::string> sentences;   // each once

  void add_sheet_only(const Device& device);
  void add_partly_measured(const Device& device);  // much of an answer is kernels known by the sheet
  // Times that are bounds, because the roofline was asked for.
  void add_bounds(const Device& device);
  // A device of a generation that foretoken does not know, declared to be like another; nothing for others.
  void add_like(const Device& device);
  // Whichever of the three hold for it, if any.
  void add_kernels(const KernelPredictor& predictor);
  // An engine (or stack) that needs a plugin or a build of its own there.
  void add_engine(std::string_view engine, const Device& device);
  // Where a calibrated deployment (null: none) does not cover such an engine, or only by what carries over from others.
  void add_deployment(const CalibratedDeployment* deployment, std::string_view engine, const Device& device,
                      const Model& model, const ParallelPlan& plan);
  void add_sentence(const std::string& sentence);
  // What was assumed of the links between the ranks.
  void add_network(const RankNetwork& network);
};

// "AMD Instinct MI300X is known from its spec sheet only: ..."
std::string sheet_only_sentence(const Device& device);

// "R200 is taken to be like NVIDIA B200 SXM 180 GB: ..."; empty for a device whose own kernels are known.
std::string like_sentence(const Device& device);

// As lines of an answer, and as `sheet_only_devices` and `device_notes` of its document.
std::string device_notes_text(const DeviceNotes& notes);
void set_device_notes(Json& document, const DeviceNotes& notes);
// For answers without other notes on devices: nothing unless the device is only like another.
void add_like_note(std::string& text, Json& document, const Device& device);

}  // namespace foretoken
