#include "report/kernel/roofline_plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "report/drawing/axis.h"

namespace foretoken {
namespace {

constexpr size_t margin = 14;  // columns left of the plot

bool has_place(const RooflinePoint& point) {
  return point.flops_per_byte > 0 && point.rate.value() > 0;
}

// The cells of the plot; row 0 is the top.
class Canvas {
 public:
  Canvas(size_t columns, size_t rows) : rows_(rows, std::string(columns, ' ')) {}
  const std::string& row(size_t y) const { return rows_[y]; }
  void draw(size_t x, size_t y, char mark) { rows_[y][x] = mark; }

  // Puts a letter on the nearest cell that no other letter has; a column counts half a row, as it looks on a screen.
  void put_letter(size_t x, size_t y, char letter) {
    const auto distance = [&](size_t column, size_t row) {
      const double across = static_cast<double>(column) - static_cast<double>(x);
      const double up = 2 * (static_cast<double>(row) - static_cast<double>(y));
      return across * across + up * up;
    };
    size_t best_x = x, best_y = y;
    double best = -1;
    for (size_t row = 0; row < rows_.size(); ++row) {
      for (size_t column = 0; column < rows_[row].size(); ++column) {
        const char taken = rows_[row][column];
        if (taken >= 'A' && taken <= 'Z') continue;
        if (best >= 0 && distance(column, row) >= best) continue;
        best = distance(column, row);
        best_x = column;
        best_y = row;
      }
    }
    rows_[best_y][best_x] = letter;
  }

 private:
  std::vector<std::string> rows_;
};

size_t cell(const Axis& axis, double value) {
  return static_cast<size_t>(std::lround(axis.position(value)));
}

// Numbers under the axis where there is room, each around its tick.
std::string tick_line(const Axis& across, size_t columns) {
  std::string line(columns, ' ');
  size_t free_from = 0;
  for (const double tick : across.ticks()) {
    const std::string text = number_text(tick);
    const size_t middle = cell(across, tick), half = text.size() / 2;
    const size_t start = middle < half ? 0 : middle - half;
    if (start < free_from || start + text.size() > columns) continue;
    line.replace(start, text.size(), text);
    free_from = start + text.size() + 1;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string share_of_roof_text(double share) {
  constexpr double rounding = 1e-6;
  return share > 1 + rounding ? "from cache" : fmt::format("{:.0f}%", 100 * std::min(share, 1.0));
}

std::string roofline_plot(const RooflineAxes& axes, const std::vector<RooflinePoint>& points, size_t width,
                          size_t height) {
  const double peak = axes.peak.value(), bandwidth = axes.bandwidth.value(), ridge = peak / bandwidth;
  double least_intensity = ridge / 100, most_intensity = ridge * 30, slowest = peak;
  for (const RooflinePoint& point : points) {
    if (!has_place(point)) continue;
    least_intensity = std::min(least_intensity, point.flops_per_byte);
    most_intensity = std::max(most_intensity, point.flops_per_byte);
    slowest = std::min(slowest, point.rate.value());
  }
  const size_t columns = width - margin;
  const double first = power_of_ten(decade_of(least_intensity));
  const Axis across = Axis::logarithmic(first, most_intensity * 1.5, 0, static_cast<double>(columns - 1));
  const Axis up =
      Axis::logarithmic(std::min(first * bandwidth, slowest), peak * 1.3, static_cast<double>(height - 1), 0);

  Canvas canvas(columns, height);
  for (size_t x = 0; x < columns; ++x) {
    const double intensity = across.value(static_cast<double>(x));
    canvas.draw(x, cell(up, std::min(peak, intensity * bandwidth)), intensity < ridge ? '/' : '-');
  }
  std::string legend;
  char letter = 'A';
  for (const RooflinePoint& point : points) {
    if (!has_place(point) || letter > 'Z') continue;
    canvas.put_letter(cell(across, point.flops_per_byte), cell(up, point.rate.value()), letter);
    legend += fmt::format("  {}  {:<22} {:>8.2f} FLOP/byte  {}{}{}\n", letter, point.label, point.flops_per_byte,
                          rate_text(point.rate.value(), "FLOP/s"), point.of_roof.empty() ? "" : ", ", point.of_roof);
    ++letter;
  }

  std::vector<std::string> labels(height);
  for (const double tick : up.ticks()) labels[cell(up, tick)] = rate_text(tick, "FLOP/s");
  std::string out;
  for (size_t y = 0; y < height; ++y) {
    out += fmt::format("{:>{}} |{}", labels[y], margin - 2, canvas.row(y));
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  out += fmt::format("{:>{}} +{}\n", "", margin - 2, std::string(columns, '-'));
  out += fmt::format("{:>{}}  {}\n", "", margin - 2, tick_line(across, columns));
  out += fmt::format("  /  memory at {}, -  {} {}; across: FLOP/byte, the ridge at {:.0f}\n",
                     rate_text(bandwidth, "B/s"), axes.peak_label, rate_text(peak, "FLOP/s"), ridge);
  return out + legend;
}

}  // namespace foretoken
