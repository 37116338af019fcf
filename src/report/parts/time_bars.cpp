#include "report/parts/time_bars.h"

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

constexpr double room_of_bar = 22;

}  // namespace

double time_bars_height(size_t bars) {
  return 40 + room_of_bar * static_cast<double>(bars);
}

void draw_time_bars(Svg& svg, double top, std::string_view title, const std::vector<TimeBar>& bars, double whole) {
  constexpr double left = 330, width = 480, height = 18;
  svg.text({24, top}, title, {.size = 13, .bold = true});
  const double longest = bars.empty() ? 1 : bars.front().seconds;
  for (size_t i = 0; i < bars.size(); ++i) {
    const double y = top + 12 + room_of_bar * static_cast<double>(i);
    constexpr size_t most_letters = 48;
    svg.text({left - 8, y + 13}, bars[i].name.substr(0, most_letters), {.size = 11, .anchor = SvgAnchor::end});
    const double length = longest > 0 ? width * bars[i].seconds / longest : 0;
    svg.rectangle({left, y}, length, height, {.fill = "#4477aa"});
    svg.text({left + length + 6, y + 13},
             fmt::format("{} ({:.1f}%)", duration_text(bars[i].seconds), 100 * bars[i].seconds / whole), {.size = 11});
  }
}

}  // namespace foretoken
