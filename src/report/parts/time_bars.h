// Bars of times, the longest first, in a figure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/drawing/svg.h"

namespace foretoken {

struct TimeBar {
  std::string name;
  double seconds = 0;
};

inline constexpr double time_bars_width = 960;  // of a figure that holds them
double time_bars_height(size_t bars);           // with their title

// From `top` on; each says its share of `whole` seconds.
void draw_time_bars(Svg& svg, double top, std::string_view title, const std::vector<TimeBar>& bars, double whole);

}  // namespace foretoken
