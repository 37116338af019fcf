// Power calibrations as JSON: data/kernels/power.json.
#include <cmath>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rounding.h"
#include "kernel/power.h"

namespace foretoken {
namespace {

constexpr int power_version = 1;

// Four digits say more than the fit knows.
double rounded(double value) {
  return rounded_to_digits(value, 4);
}

PowerCalibration read_one(const JsonView& view) {
  view.allow_only({"device", "source", "fitted_on", "rows", "limit_watts", "bandwidth", "peak_16", "peak_8",
                   "idle_watts", "limit_share", "watts_half_width", "slowdown_half_width", "constants"});
  PowerCalibration result;
  result.device = view.at("device").string();
  result.source = view.at("source").string();
  result.fitted_on = view.at("fitted_on").string();
  result.rows = static_cast<size_t>(view.at("rows").integer({.least = 1, .most = 1'000'000}));
  result.limit_watts = view.at("limit_watts").number({1, 100'000});
  result.bandwidth = view.at("bandwidth").number({1e6, 1e17});
  result.peak_16 = view.at("peak_16").number({0, 1e20});
  result.peak_8 = view.at("peak_8").number({0, 1e20});
  result.idle_watts = view.at("idle_watts").number({0, result.limit_watts});
  result.limit_share = view.at("limit_share").number({0.5, 1.5});
  result.watts_half_width = view.at("watts_half_width").number({0, 5});
  result.slowdown_half_width = view.at("slowdown_half_width").number({0, 5});
  const JsonView constants = view.at("constants");
  const auto facts = power_constant_facts();
  if (constants.members().size() != facts.size()) {
    constants.fail(fmt::format("{} constants, as this foretoken has: fit it anew", facts.size()));
  }
  for (size_t k = 0; k < facts.size(); ++k) {
    result.constants[k] = constants.at(facts[k].name).number({facts[k].least, facts[k].most});
  }
  return result;
}

}  // namespace

std::string power_calibration_json(std::span<const PowerCalibration> calibrations) {
  Json boards = Json::array();
  for (const PowerCalibration& c : calibrations) {
    Json constants = Json::object();
    for (size_t k = 0; k < power_constant_count; ++k) {
      constants.set(std::string(power_constant_facts()[k].name), rounded(c.constants[k]));
    }
    boards.push(Json::object({{"device", c.device},
                              {"source", c.source},
                              {"fitted_on", c.fitted_on},
                              {"rows", c.rows},
                              {"limit_watts", c.limit_watts},
                              {"bandwidth", c.bandwidth},
                              {"peak_16", c.peak_16},
                              {"peak_8", c.peak_8},
                              {"idle_watts", rounded(c.idle_watts)},
                              {"limit_share", rounded(c.limit_share)},
                              {"watts_half_width", rounded(c.watts_half_width)},
                              {"slowdown_half_width", rounded(c.slowdown_half_width)},
                              {"constants", std::move(constants)}}));
  }
  Json readings = Json::object();
  for (const PowerConstantFacts& fact : power_constant_facts()) readings.set(std::string(fact.name), fact.reading);
  return Json::object({{"version", power_version},
                       {"about",
                        "Power of a board held busy; docs/kernels.md has the formula. Half widths: 90% of kernels "
                        "left out of the fit lie within them; watts as a logarithm, slowdown as it is."},
                       {"constants", std::move(readings)},
                       {"boards", std::move(boards)}})
             .dump() +
         "\n";
}

std::vector<PowerCalibration> parse_power_calibrations(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  const JsonView view(document, source);
  view.allow_only({"version", "about", "constants", "boards"});
  if (view.at("version").integer({.least = 1, .most = 1'000'000}) > power_version) {
    view.at("version").fail(fmt::format("up to {}: a newer foretoken wrote this file", power_version));
  }
  std::vector<PowerCalibration> result;
  for (const JsonView& board : view.at("boards").items()) result.push_back(read_one(board));
  return result;
}

std::vector<PowerCalibration> read_power_calibrations(const std::filesystem::path& path) {
  constexpr size_t largest = size_t{1} << 20;
  return parse_power_calibrations(read_file(path, largest), path.string());
}

}  // namespace foretoken
