// The roofline of a kernel on a device: how long the multiply units and the memory would need at least.
#pragma once

#include "base/units.h"
#include "hardware/device.h"
#include "model/shapes.h"
#include "model/work.h"

namespace foretoken {

struct Roofline {
  Seconds compute;             // FLOPs at the dense peak, stretched by the partial last wave of tiles
  Seconds memory;              // least bytes at DRAM bandwidth
  double waves = 0;            // tiles over processors; 0 where the family has no tile grid
  double wave_efficiency = 1;  // ideal over stretched compute
};

// A grid of output tiles that are spread over the processors, one multiply of m x n x k per group.
struct TileGrid {
  double groups = 1;  // experts, heads, a batch
  double m = 1, n = 1, k = 1;
  bool unequal = false;   // m is the mean over groups: at least a tile for each, else whole tiles
  bool splits_k = false;  // several processors may share the k of one tile
  double row_tiles = 0;   // >0: the number of tiles is known, and the sizes above do not matter
};

// Time of the best tile size over that of an ideal spread, at least 1; and its waves. No processor count: {1, 0}.
struct WaveStretch {
  double stretch = 1;
  double waves = 0;
};
WaveStretch wave_stretch(const TileGrid& grid, int processors);

// `work` is count_work(shape). InputError when the device has no peak for the type that the kernel multiplies in.
Roofline roofline(const KernelShape& shape, const Work& work, const Device& device);

}  // namespace foretoken
