// A question that tests of searches ask: small enough to simulate everything.
#pragma once

#include "hardware/catalogue.h"
#include "model/step_test_models.h"
#include "plan/serving/layout_engines.h"
#include "serving/test_support.h"

namespace foretoken {

// Kernels by roofline: quick, and no calibrations.
inline ServingFacts roofline_facts() {
  return {.device_models =
              [](const Device& device, const ParallelPlan&, const PlacementSpec&) {
                return DeviceModels{.kernels = KernelPredictor(device), .collectives = nullptr};
              },
          .stack =
              [](std::string_view name) {
                return StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack(std::string(name));
              }};
}

// A small model on few devices: everything can be simulated.
inline ServingQuestion small_question() {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const Device device = hardware.device("l4");
  return {.model = step_test::llama_like(),
          .slos = parse_slos("ttft<60ms@p95,tpot<4ms@p95", "slo"),
          .hardware = {{.device = device,
                        .most_devices = 2,
                        .node_devices = 2,
                        .node = hardware.node_with(hardware.device("h100_sxm")),
                        .usd_per_hour = 1}},
          .choices = {.pipeline = {1}, .max_num_seqs = {0, 8}, .max_num_batched_tokens = {0}},
          .drafts = {}};
}

inline const Traffic& small_traffic() {
  static const Traffic traffic(random_requests(3, 400, 10, 600, 60));
  return traffic;
}

}  // namespace foretoken
