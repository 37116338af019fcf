#include "kernel/calibration.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "kernel/calibration_parts.h"

namespace foretoken {
namespace {

// Log offsets to six digits: a millionth of a constant.
Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push(std::round(value * 1e6) / 1e6);
  return list;
}

std::vector<double> numbers_of(const JsonView& view, size_t count) {
  std::vector<double> values;
  for (const JsonView& item : view.items()) values.push_back(item.number({.least = -60, .most = 60}));
  if (values.size() != count) view.fail(fmt::format("{} numbers, one per constant", count));
  return values;
}

// The file's own check: the trees' answer to one question, as it was when the file was written, and a digest of the
// rest.
Json self_check(const Json& file, const BoostedTrees& trees) {
  const std::vector<float> question(trees.features(), 0.5F);
  return Json::object({{"all_features", 0.5},
                       {"residual", trees.empty() ? 0.0 : std::round(trees.predict(question) * 1e6) / 1e6},
                       {"digest", digest_of(file)}});
}

void verify(const JsonView& file, const BoostedTrees& trees) {
  const JsonView check = file.at("self_check");
  const double expected = check.at("residual").number();
  const std::vector<float> question(trees.features(), 0.5F);
  const double found = trees.empty() ? 0 : trees.predict(question);
  if (!(std::abs(found - expected) < 1e-4))
    check.fail(fmt::format("{:.6f}, which these trees answer: the file is damaged", found));
  verify_digest(file);
}

FormCalibration form_calibration_from(const JsonView& view) {
  check_calibration_header(view, "form calibration");
  FormCalibration result;
  result.form = view.at("form").string();
  result.source = view.at("source").string();
  result.fitted_on = view.at("fitted_on").string();
  result.devices = texts_of(view.at("devices"));
  view.at("withheld_mape");
  result.withheld_mape = percentages_of(view, "withheld_mape");
  result.withheld_mape_20us = percentages_of(view, "withheld_mape_20us");
  result.withheld_coverage = percentages_of(view, "withheld_coverage");
  if (const auto widths = view.find("sibling_half_widths")) result.sibling_half_widths = half_widths_of(*widths);
  result.half_widths = half_widths_of(view.at("half_widths"));
  result.constants = texts_of(view.at("constants"));
  for (const auto& [name, offsets] : view.at("effects").members())
    result.effects[name] = numbers_of(offsets, result.constants.size());
  if (!result.effects.contains("common")) view.at("effects").fail("an effect `common`");
  result.residual_strength = view.at("residual_strength").number({.least = 0, .most = 1});
  result.residual = BoostedTrees::from_json(view.at("residual"));
  verify(view, result.residual);
  return result;
}

DeviceCalibration device_calibration_from(const JsonView& view) {
  check_calibration_header(view, "device calibration");
  DeviceCalibration result;
  result.form = view.at("form").string();
  result.device = view.at("device").string();
  result.source = view.at("source").string();
  result.fitted_on = view.at("fitted_on").string();
  result.rows = static_cast<size_t>(view.at("rows").integer({.least = 1}));
  result.held_out_mape = view.at("held_out_mape").number({.least = 0});
  if (const auto mape = view.find("held_out_mape_20us")) result.held_out_mape_20us = mape->number({.least = 0});
  if (const auto share = view.find("held_out_coverage"))
    result.held_out_coverage = share->number({.least = 0, .most = 100});
  result.half_widths = half_widths_of(view.at("half_widths"));
  if (const std::optional<JsonView> factors = view.find("width_factors")) {
    for (const auto& [name, factor] : factors->members()) result.width_factors[name] = factor.number({0.01, 100});
  }
  if (const std::optional<JsonView> layers = view.find("layers")) {
    result.layers = texts_of(*layers);
    if (!std::is_sorted(result.layers.begin(), result.layers.end())) layers->fail("layers in order");
    result.unseen_layer_factor = view.at("unseen_layer_factor").number({1, 100});
  }
  result.constants = texts_of(view.at("constants"));
  result.shared = numbers_of(view.at("shared"), result.constants.size());
  for (const auto& [name, values] : view.at("groups").members())
    result.groups[name] = numbers_of(values, result.constants.size());
  for (const auto& [name, bounds] : view.at("ranges_log2").members()) {
    for (const JsonView& pair : bounds.items()) {
      const std::vector<JsonView> ends = pair.items();
      if (ends.size() != 2) pair.fail("two numbers");
      result.ranges[name].emplace_back(static_cast<float>(ends[0].number()), static_cast<float>(ends[1].number()));
    }
  }
  result.residual = BoostedTrees::from_json(view.at("residual"));
  if (const std::optional<JsonView> smooth = view.find("smooth_residual"))
    result.smooth = SmoothResidual::from_json(*smooth, result.residual.features());
  verify(view, result.residual);
  return result;
}

}  // namespace

std::string calibration_json(const FormCalibration& calibration) {
  Json effects = Json::object();
  for (const auto& [name, offsets] : calibration.effects) effects.set(name, numbers(offsets));
  Json file = calibration_header("form calibration");
  file.set("form", calibration.form)
      .set("source", calibration.source)
      .set("fitted_on", calibration.fitted_on)
      .set("devices", list_of(calibration.devices))
      .set("withheld_mape", percentages(calibration.withheld_mape))
      .set("withheld_mape_20us", percentages(calibration.withheld_mape_20us))
      .set("withheld_coverage", percentages(calibration.withheld_coverage))
      .set("half_widths", half_widths_json(calibration.half_widths));
  if (calibration.sibling_half_widths)
    file.set("sibling_half_widths", half_widths_json(*calibration.sibling_half_widths));
  file.set("constants", list_of(calibration.constants))
      .set("effects", std::move(effects))
      .set("residual_strength", calibration.residual_strength)
      .set("residual", calibration.residual.to_json());
  file.set("self_check", self_check(file, calibration.residual));
  return file.dump() + "\n";
}

std::string swept_layer(std::string_view group, std::string_view layer) {
  return fmt::format("{}: {}", group, layer);
}

double DeviceCalibration::left_over(std::span<const float> features) const {
  if (smooth.empty()) return residual.predict(features);
  return 0.5 * (residual.predict(features) + smooth.predict(features));
}

double DeviceCalibration::layer_factor(std::string_view group, const std::string& layer) const {
  if (layers.empty() || std::binary_search(layers.begin(), layers.end(), swept_layer(group, layer))) return 1;
  return unseen_layer_factor;
}

double DeviceCalibration::width_factor(std::string_view group) const {
  const auto found = width_factors.find(group);
  return found == width_factors.end() ? 1 : found->second;
}

std::string calibration_json(const DeviceCalibration& calibration) {
  Json groups = Json::object(), ranges = Json::object(), width_factors = Json::object();
  for (const auto& [name, factor] : calibration.width_factors) {
    width_factors.set(name, std::round(factor * 1000) / 1000);
  }
  for (const auto& [name, values] : calibration.groups) groups.set(name, numbers(values));
  for (const auto& [name, bounds] : calibration.ranges) {
    Json list = Json::array();
    for (const auto& [low, high] : bounds)
      list.push(Json::array({static_cast<double>(low), static_cast<double>(high)}));
    ranges.set(name, std::move(list));
  }
  Json file = calibration_header("device calibration");
  file.set("form", calibration.form)
      .set("device", calibration.device)
      .set("source", calibration.source)
      .set("fitted_on", calibration.fitted_on)
      .set("rows", calibration.rows)
      .set("held_out_mape", rounded_percent(calibration.held_out_mape))
      .set("held_out_mape_20us", rounded_percent(calibration.held_out_mape_20us))
      .set("held_out_coverage", rounded_percent(calibration.held_out_coverage))
      .set("half_widths", half_widths_json(calibration.half_widths))
      .set("constants", list_of(calibration.constants))
      .set("shared", numbers(calibration.shared))
      .set("groups", std::move(groups))
      .set("ranges_log2", std::move(ranges))
      .set("residual", calibration.residual.to_json());
  if (!calibration.smooth.empty()) file.set("smooth_residual", calibration.smooth.to_json());
  if (!calibration.width_factors.empty()) file.set("width_factors", std::move(width_factors));
  if (!calibration.layers.empty()) {
    file.set("layers", list_of(calibration.layers))
        .set("unseen_layer_factor", std::round(calibration.unseen_layer_factor * 1000) / 1000);
  }
  file.set("self_check", self_check(file, calibration.residual));
  return file.dump() + "\n";
}

FormCalibration parse_form_calibration(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  return form_calibration_from(JsonView(document, source));
}

DeviceCalibration parse_device_calibration(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  return device_calibration_from(JsonView(document, source));
}

FormCalibration read_form_calibration(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  return form_calibration_from(JsonView(document, path.string()));
}

DeviceCalibration read_device_calibration(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  return device_calibration_from(JsonView(document, path.string()));
}

std::filesystem::path form_calibration_path(const std::filesystem::path& folder, std::string_view form) {
  return folder / fmt::format("{}.json", form);
}

std::filesystem::path device_calibration_path(const std::filesystem::path& folder, std::string_view device,
                                              std::string_view form) {
  return folder / device / fmt::format("{}.json.gz", form);
}

}  // namespace foretoken
