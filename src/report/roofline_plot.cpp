#include "report/roofline_plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

// A logarithmic axis over `cells` cells.
class LogAxis {
 public:
  LogAxis(double least, double most, size_t cells) : low_(std::log10(least)), high_(std::log10(most)), cells_(cells) {}
  size_t cell(double value) const {
    const double share = (std::log10(value) - low_) / (high_ - low_);
    const double position = std::clamp(share, 0.0, 1.0) * static_cast<double>(cells_ - 1);
    return static_cast<size_t>(std::lround(position));
  }
  double value(size_t cell) const {
    return std::pow(10, low_ + (high_ - low_) * static_cast<double>(cell) / static_cast<double>(cells_ - 1));
  }

 private:
  double low_, high_;
  size_t cells_;
};

double power_of_ten_below(double value) {
  return std::pow(10, std::floor(std::log10(value)));
}

}  // namespace

std::string roofline_plot(const RooflineAxes& axes, const std::vector<RooflinePoint>& points, size_t width,
                          size_t height) {
  const double ridge = axes.peak.value() / axes.bandwidth.value();
  double least_intensity = ridge / 100, most_intensity = ridge * 30;
  for (const RooflinePoint& point : points) {
    if (point.flops_per_byte <= 0 || point.rate.value() <= 0) continue;
    least_intensity = std::min(least_intensity, point.flops_per_byte);
    most_intensity = std::max(most_intensity, point.flops_per_byte);
  }
  constexpr size_t margin = 14;
  const LogAxis across(power_of_ten_below(least_intensity), most_intensity * 1.5, width - margin);
  const LogAxis up(power_of_ten_below(least_intensity) * axes.bandwidth.value(), axes.peak.value() * 1.3, height);

  std::vector<std::string> rows(height, std::string(width - margin, ' '));
  const auto spot = [&](double intensity, double rate) -> char& {
    return rows[height - 1 - up.cell(rate)][across.cell(intensity)];
  };
  for (size_t x = 0; x < width - margin; ++x) {
    const double intensity = across.value(x);
    const bool sloped = intensity < ridge;
    spot(intensity, std::min(axes.peak.value(), intensity * axes.bandwidth.value())) = sloped ? '/' : '-';
  }
  std::string legend;
  char letter = 'A';
  for (const RooflinePoint& point : points) {
    if (point.flops_per_byte <= 0 || point.rate.value() <= 0 || letter > 'Z') continue;
    char& mark = spot(point.flops_per_byte, point.rate.value());
    mark = mark >= 'A' && mark <= 'Z' ? '*' : letter;
    legend += fmt::format("  {}  {:<22} {:>8.2f} FLOP/byte  {}\n", letter, point.label, point.flops_per_byte,
                          rate_text(point.rate.value(), "FLOP/s"));
    ++letter;
  }

  std::string out;
  for (size_t y = 0; y < height; ++y) {
    const bool labelled = y % 4 == 0;
    const double rate = up.value(height - 1 - y);
    out += fmt::format("{:>{}} |{}", labelled ? rate_text(rate, "F/s") : "", margin - 2, rows[y]);
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  out += fmt::format("{:>{}} +{}\n", "", margin - 2, std::string(width - margin, '-'));
  out += fmt::format("{:>{}}  {:<{}.3g}{:^{}}{:>{}.3g}\n", "", margin - 2, across.value(0), (width - margin) / 4,
                     fmt::format("FLOP/byte (ridge at {:.0f})", ridge), (width - margin) / 2,
                     across.value(width - margin - 1), (width - margin) / 4);
  out += fmt::format("  /  memory at {}, -  {} {}\n", rate_text(axes.bandwidth.value(), "B/s"), axes.peak_label,
                     rate_text(axes.peak.value(), "FLOP/s"));
  return out + legend;
}

}  // namespace foretoken
