// Kernels on a device's roofline as an SVG file: arithmetic intensity across, FLOP/s up, both logarithmic.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hardware/device.h"
#include "report/kernel/roofline_plot.h"

namespace foretoken {

// A prediction with its interval.
struct PredictedMark {
  double flops_per_byte = 0;
  FlopsPerSecond rate, low, high;  // low: at the upper end of the time
  std::string label;               // shown beside a single one, and as a tooltip
  std::string tag;                 // a short text beside it, whatever their number
  size_t series = 0;               // place in RooflineFigure::series
};

// A measured kernel and what was predicted for it.
struct MeasuredMark {
  double flops_per_byte = 0;
  FlopsPerSecond measured, predicted;
  std::string label;
};

struct RooflineFigure {
  std::string title;
  std::string subtitle;
  RooflineAxes axes;
  std::optional<BytesPerSecond> cache_bandwidth;                    // L2, where it is known
  std::vector<std::pair<std::string, FlopsPerSecond>> lower_peaks;  // of other types in the figure, with their labels
  std::vector<PredictedMark> predicted;
  std::vector<std::string> series;  // kinds of predicted marks, told apart by colour; empty = one kind without a name
  std::vector<MeasuredMark> measured;  // at most most_measured_marks are drawn, evenly picked
};

inline constexpr size_t most_measured_marks = 400;

// The roofs of a device for kernels that multiply in these types, the highest first; marks and titles are left to the
// caller. Nothing where the sheet gives no bandwidth or none of the peaks.
std::optional<RooflineFigure> device_roofs(const Device& device, std::vector<DType> types);

// Marks without FLOPs, bytes or time are left out: they have no place on a roofline.
std::string roofline_svg(const RooflineFigure& figure);

}  // namespace foretoken
