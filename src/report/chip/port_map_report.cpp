#include "report/chip/port_map_report.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "report/drawing/axis.h"
#include "report/drawing/svg.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string_view verdict(const FamilyPortability& family) {
  if (family.devices.size() < 2) return "one device";
  if (family.spread <= spread_that_ports) return "ports";
  return family.spread <= spread_that_needs_a_sweep ? "in part" : "sweep it";
}

std::string percent(double share) {
  return fmt::format("{:.0f}", 100 * share);
}

struct Box {
  double left, top, right, bottom;
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Labels beside their points: the first of some places that covers neither a point nor an earlier label.
class Labels {
 public:
  explicit Labels(const Box& frame) : frame_(frame) {}
  void avoid(SvgPoint point) { taken_.push_back({point.x - 7, point.y - 7, point.x + 7, point.y + 7}); }

  void place(Svg& svg, SvgPoint point, const std::string& text, double size) {
    const double width = svg_text_width(text, size);
    Box best{};
    size_t fewest = taken_.size() + 2;
    for (const double reach : {11.0, 22.0, 34.0}) {
      for (const auto& [across, up] : {std::pair{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {1, -1}, {1, 1}, {-1, -1}, {-1, 1}}) {
        const double x = point.x + across * reach - (across == 0 ? width / 2 : across < 0 ? width : 0);
        const double y = point.y + up * (reach + size / 2);
        const Box box{x, y - size / 2 - 1, x + width, y + size / 2 + 1};
        const bool outside =
            box.left < frame_.left || box.right > frame_.right || box.top < frame_.top || box.bottom > frame_.bottom;
        size_t overlaps = outside ? 1 : 0;
        for (const Box& other : taken_) overlaps += box.overlaps(other) ? 1 : 0;
        if (overlaps >= fewest) continue;
        fewest = overlaps;
        best = box;
      }
      if (fewest == 0) break;
    }
    const SvgPoint middle{(best.left + best.right) / 2, (best.top + best.bottom) / 2};
    if (std::abs(middle.y - point.y) > 20) svg.line(point, middle, {.stroke = "#9aa5b1", .width = 0.7});
    svg.text({best.left, best.bottom - 3}, text, {.size = size, .halo = true});
    taken_.push_back(best);
  }

 private:
  Box frame_;
  std::vector<Box> taken_;
};

}  // namespace

std::string port_map_text(std::span<const FamilyPortability> families) {
  std::set<std::string> devices;
  for (const FamilyPortability& family : families) {
    for (const DeviceEfficiency& device : family.devices) devices.insert(device.device);
  }
  constexpr size_t most_columns = 6;
  const bool fits = devices.size() <= most_columns;
  std::vector<Table::Column> columns = {{"% of the roofline", Table::Align::left}, {"mean"}, {"spread"}};
  if (fits) {
    for (const std::string& device : devices) columns.push_back({device.substr(0, 7)});
  }
  columns.push_back({"", Table::Align::left});
  Table table(columns);
  for (const FamilyPortability& family : families) {
    std::vector<std::string> cells = {family.family, percent(family.efficiency),
                                      family.devices.size() > 1 ? percent(family.spread) : "-"};
    for (const std::string& device : devices) {
      if (!fits) break;
      const auto found = std::find_if(family.devices.begin(), family.devices.end(),
                                      [&](const DeviceEfficiency& entry) { return entry.device == device; });
      cells.push_back(found == family.devices.end() ? "-" : percent(found->mean));
    }
    cells.emplace_back(verdict(family));
    table.add(std::move(cells));
  }
  return table.text();
}

std::string port_map_svg(std::span<const FamilyPortability> families) {
  constexpr double width = 860, height = 600, left = 84, right = width - 30, top = 78, bottom = height - 74;
  double most = 0.5, best = 1;
  for (const FamilyPortability& family : families) {
    most = std::max(most, family.spread * 1.1);
    best = std::max(best, family.efficiency * 1.05);
  }
  const Axis across = Axis::linear(0, best, left, right), up = Axis::linear(0, most, bottom, top);
  Svg svg(width, height, "Does the efficiency of a kernel family carry over between GPUs?");
  svg.text({left, 32}, "Does the efficiency of a kernel family carry over between GPUs?", {.size = 17, .bold = true});
  svg.text({left, 54}, "Large kernels only: mean of roofline / measured time per GPU, and the spread between GPUs",
           {.fill = "#52606d"});
  const double ports = up.position(spread_that_ports), sweeps = up.position(spread_that_needs_a_sweep);
  svg.rectangle({left, ports}, right - left, bottom - ports, {.fill = "#e3f4e5"});
  svg.rectangle({left, sweeps}, right - left, ports - sweeps, {.fill = "#fdf6e0"});
  svg.rectangle({left, top}, right - left, sweeps - top, {.fill = "#fbe9e7"});
  const SvgTextStyle zone{.size = 11, .anchor = SvgAnchor::end, .fill = "#616e7c"};
  svg.text({right - 8, bottom - 8}, "carries over: constants of other GPUs are enough", zone);
  svg.text({right - 8, ports - 8}, "carries over in part", zone);
  svg.text({right - 8, sweeps - 8}, "does not carry over: measure it on the target GPU", zone);
  for (const double tick : across.ticks()) {
    const double x = across.position(tick);
    svg.line({x, bottom}, {x, bottom + 4}, {.stroke = "#1f2933"});
    svg.text({x, bottom + 19}, percent(tick) + "%", {.anchor = SvgAnchor::middle});
  }
  for (const double tick : up.ticks()) {
    const double y = up.position(tick);
    svg.line({left - 4, y}, {left, y}, {.stroke = "#1f2933"});
    svg.text({left - 8, y + 4}, percent(tick) + "%", {.anchor = SvgAnchor::end});
  }
  svg.rectangle({left, top}, right - left, bottom - top, {.stroke = "#1f2933"});
  svg.text({(left + right) / 2, bottom + 44},
           "efficiency: share of the roofline reached by large kernels, mean over GPUs",
           {.size = 13, .anchor = SvgAnchor::middle});
  svg.text({22, (top + bottom) / 2}, "spread across GPUs (standard deviation of log efficiency)",
           {.size = 13, .anchor = SvgAnchor::middle, .rotation = -90});
  Labels labels({left, top, right, bottom});
  const auto point_of = [&](const FamilyPortability& family) {
    return SvgPoint{across.position(family.efficiency), up.position(family.spread)};
  };
  for (const FamilyPortability& family : families) {
    if (family.devices.size() > 1) labels.avoid(point_of(family));
  }
  for (const FamilyPortability& family : families) {
    if (family.devices.size() < 2) continue;
    const SvgPoint point = point_of(family);
    labels.place(svg, point, fmt::format("{} ({})", family.family, family.devices.size()), 12);
    std::string tip = family.family;
    for (const DeviceEfficiency& device : family.devices)
      tip += fmt::format("; {} {}%", device.device, percent(device.mean));
    svg.circle(point, 5.5, {.stroke = "white", .fill = "#2374ab", .width = 1}, tip);
  }
  svg.text({left, height - 8}, "(n): number of measured GPUs", {.size = 11, .fill = "#616e7c"});
  return svg.finish();
}

Json port_map_json(std::span<const FamilyPortability> families) {
  Json list = Json::array();
  for (const FamilyPortability& family : families) {
    Json devices = Json::array();
    for (const DeviceEfficiency& device : family.devices) {
      devices.push(Json::object({{"device", device.device}, {"efficiency", device.mean}, {"rows", device.rows}}));
    }
    list.push(Json::object({{"family", family.family},
                            {"efficiency", family.efficiency},
                            {"spread", family.devices.size() > 1 ? Json(family.spread) : Json()},
                            {"verdict", verdict(family)},
                            {"devices", std::move(devices)}}));
  }
  return list;
}

}  // namespace foretoken
