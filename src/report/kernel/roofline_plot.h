// Operators on a device's roofline, as text: arithmetic intensity across, FLOP/s up, both logarithmic.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace foretoken {

struct RooflinePoint {
  std::string label;
  double flops_per_byte = 0;
  FlopsPerSecond rate;       // achieved, or predicted
  std::string of_roof = {};  // "62% of the fp8 roof": the roof of its own number format; empty = not shown
};

struct RooflineAxes {
  FlopsPerSecond peak;
  BytesPerSecond bandwidth;
  std::string peak_label;  // "bf16 peak"
};

// "62%"; "from cache" for an operator above the memory roof, which bounds only those whose data are not in the cache.
std::string share_of_roof_text(double share);

// A plot of at most `width` columns with a legend; each point is a letter, moved to the next free cell where several
// fall on one spot. Points without FLOPs or bytes are left out, and those after the 26th.
std::string roofline_plot(const RooflineAxes& axes, const std::vector<RooflinePoint>& points, size_t width = 78,
                          size_t height = 14);

}  // namespace foretoken
