// What was learned about a kernel family: constants that port between devices, and corrections measured on one device.
// Kept as versioned JSON with where it came from and how far off it was; verified when it is read.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/calibration_parts.h"
#include "kernel/trees/boosted_trees.h"
#include "kernel/trees/smooth_residual.h"

namespace foretoken {

// The cross-generation tier of a form.
struct FormCalibration {
  std::string form;
  std::string source;     // of the measurements
  std::string fitted_on;  // date
  std::vector<std::string> devices;
  std::vector<std::string> constants;                               // names, in the order of the offsets
  std::map<std::string, std::vector<double>, std::less<>> effects;  // log offsets by name
  BoostedTrees residual;
  double residual_strength = 0;
  HalfWidths half_widths;                                           // of devices whose generation was withheld
  std::map<std::string, double> withheld_mape, withheld_mape_20us;  // by device; the second: rows of 20 us and more
  std::map<std::string, double> withheld_coverage;  // percent, by generation, of intervals made without it
  std::optional<HalfWidths> sibling_half_widths;    // of devices predicted with a sweep of their generation's other one
};

// A layer in the formats of a call group, as a sweep knows it.
std::string swept_layer(std::string_view group, std::string_view layer);

// The measured tier of a form on one device.
struct DeviceCalibration {
  std::string form, device;
  std::string source, fitted_on;
  size_t rows = 0;
  std::vector<std::string> constants;
  std::map<std::string, std::vector<double>, std::less<>> groups;  // log constants by call group
  std::vector<double> shared;                                      // log offset for groups without measurements
  std::map<std::string, std::vector<std::pair<float, float>>, std::less<>> ranges;  // of raw features, by group
  BoostedTrees residual;
  SmoothResidual smooth;   // of a small sweep, beside the trees: what is left over is the mean of both
  HalfWidths half_widths;  // on rows held out of the fit
  // Times that for a call group whose kernels are harder or easier to predict than the rest; a group not named here: 1.
  std::map<std::string, double, std::less<>> width_factors;
  // A sweep over many sizes of few layers knows those better than others. Empty where it was none such.
  std::vector<std::string> layers;  // swept_layer of each, sorted
  double unseen_layer_factor = 1;   // times the half-width for a call of another layer
  // The logarithm of what the form leaves over.
  double left_over(std::span<const float> features) const;
  double width_factor(std::string_view group) const;
  double layer_factor(std::string_view group, const std::string& layer) const;
  double held_out_mape = 0, held_out_mape_20us = 0;  // the second: rows of 20 us and more
  double held_out_coverage = 0;                      // percent
};

std::string calibration_json(const FormCalibration& calibration);
std::string calibration_json(const DeviceCalibration& calibration);
// InputError for a newer version, missing keys, or contents that fail the file's own check. `source` names the text.
FormCalibration parse_form_calibration(std::string_view text, const std::string& source);
DeviceCalibration parse_device_calibration(std::string_view text, const std::string& source);
FormCalibration read_form_calibration(const std::filesystem::path& path);
DeviceCalibration read_device_calibration(const std::filesystem::path& path);

// Where a library keeps them: <folder>/<form>.json and <folder>/<device>/<form>.json.gz.
std::filesystem::path form_calibration_path(const std::filesystem::path& folder, std::string_view form);
std::filesystem::path device_calibration_path(const std::filesystem::path& folder, std::string_view device,
                                              std::string_view form);

}  // namespace foretoken
