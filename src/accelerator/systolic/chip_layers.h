// The layers of a network on a chip built around systolic arrays: where the cycles of each go, and what bounds it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/systolic/chip.h"
#include "accelerator/systolic/chip_work.h"
#include "accelerator/workload/network_layer.h"

namespace foretoken {

// The parts add up. Of a chip fed with weights tile by tile (TPU v1), `memory` waits for weights and shifts them in,
// and `vector` is the share without matrix products.
struct ChipLayerCycles {
  double matrix = 0;
  double memory = 0;
  double vector = 0;
  double total() const { return matrix + memory + vector; }
};

enum class ChipBound { arrays, memory, vector };
std::string_view chip_bound_name(ChipBound bound);
ChipBound chip_bound(const ChipLayerCycles& cycles);  // the longest part

struct ChipLayerRun {
  std::string name;
  double macs = 0;  // these and the cycles: of all `count` together
  ChipLayerCycles cycles;
};

struct ChipNetworkRun {
  std::vector<ChipLayerRun> layers;
  double launch_cycles = 0;  // once, for all layers are one program
  ChipLayerCycles sum() const;
  double macs() const;
  Seconds time(const SystolicChip& chip) const;
};

// One layer by itself takes operands from memory and leaves its result there. In a network weights come from memory
// once and results stay on the chip, but for the first input and the last output; each output of a convolution is
// scaled, shifted and rectified, as in resnet_work(). InputError for dilation, and for a chip file that holds neither
// `vector` nor `non_matrix_share`.
ChipNetworkRun run_chip_network(const SystolicChip& chip, std::span<const NetworkLayer> layers);

}  // namespace foretoken
