// What the tests of this folder share: devices, calls at random, folders of their own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "hardware/catalogue.h"
#include "kernel/calibration.h"
#include "kernel/family.h"
#include "kernel/forms/call.h"
#include "kernel/forms/list.h"

namespace foretoken::test_support {

inline const HardwareCatalogue& hardware() {
  static const HardwareCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/hardware");
  return catalogue;
}

// The GPUs of the catalogue that forms can work with.
inline const std::vector<Device>& complete_gpus() {
  static const std::vector<Device> found = [] {
    std::vector<Device> devices;
    for (const std::string& name : hardware().device_names()) {
      Device device = hardware().device(name);
      if (traits_of(device).complete) devices.push_back(std::move(device));
    }
    return devices;
  }();
  return found;
}

inline DeviceTraits traits_named(const std::string& name) {
  for (const Device& device : complete_gpus()) {
    if (device.name == name) return traits_of(device).traits;
  }
  throw std::logic_error("no such GPU: " + name);
}

inline std::vector<double> start_constants(const Form& form) {
  std::vector<double> values;
  for (const FormConstant& constant : form.constants()) values.push_back(constant.start);
  return values;
}

inline double form_seconds(const Form& form, const FormCall& call, const DeviceTraits& traits,
                           std::span<const double> constants) {
  int choice = -1;
  return form.seconds(call, traits, constants, choice);
}

// A value that a user could type, around the parameter's example.
inline std::string random_text(const KernelParameter& parameter, RandomStream& random) {
  if (parameter.kind == ParameterKind::choice) {
    static constexpr std::string_view formats[] = {"bf16", "fp16", "fp8", "fp32", "int8", "int4_wo", "nvfp4"};
    std::vector<std::string> choices;
    const bool of_formats = std::count(parameter.choices.begin(), parameter.choices.end(), "bf16") > 0;
    for (const std::string& choice : parameter.choices) {
      if (!of_formats || std::find(std::begin(formats), std::end(formats), choice) != std::end(formats))
        choices.push_back(choice);
    }
    return choices.empty() ? parameter.example : choices[random.below(choices.size())];
  }
  if (parameter.kind == ParameterKind::number) return parameter.example;
  double middle = std::stod(parameter.example);
  if (middle == 0 && random.below(2) == 0) return "0";
  if (middle == 0) middle = 512;
  const double value = std::round(middle * std::exp2(random.uniform(-4, 4)));
  return fmt::format("{:.0f}", std::clamp(value, parameter.range.least, parameter.range.most));
}

// A shape of the family that fits together.
inline KernelShape random_shape(const KernelFamily& family, RandomStream& random) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::vector<std::pair<std::string, std::string>> flags;
    for (const KernelParameter& parameter : family.parameters)
      flags.emplace_back(parameter.name, random_text(parameter, random));
    // Query heads come in whole groups; experts and widths in powers of two.
    for (auto& [name, text] : flags) {
      const bool divides = name == "heads" || name == "kv_heads" || name == "experts" || name == "inter" ||
                           name == "tp" || name == "ep" || name == "top_k";
      if (divides && text != "0") text = fmt::format("{:.0f}", std::exp2(std::round(std::log2(std::stod(text)))));
    }
    try {
      return shape_from_texts(family, flags);
    } catch (const InputError&) {
      continue;  // sizes that do not fit together
    }
  }
  ADD_FAILURE() << "no shape of " << family.name << " fits together";
  return {};
}

inline constexpr std::string_view tried_attention_variants[] = {"",    "fa2",          "fa3",        "fa4",
                                                                "new", "fi_fiprefill", "triton_attn"};

// A call that the form serves.
inline FormCall random_call(const FormKind& kind, RandomStream& random) {
  const std::string_view family = kind.families[random.below(kind.families.size())];
  FormCall call{.shape = random_shape(kernel_family(family, {}), random), .variant = {}};
  while (form_family(call.shape).empty()) call.shape = random_shape(kernel_family(family, {}), random);
  if (family.starts_with("attention"))
    call.variant = tried_attention_variants[random.below(std::size(tried_attention_variants))];
  if (!kind.variants.empty()) call.variant = kind.variants[random.below(kind.variants.size())];
  if (kind.fp32) {
    std::visit(
        [](auto& shape) {
          if constexpr (requires { shape.scheme; }) shape.scheme = Scheme::fp32;
          if constexpr (requires { shape.dtype; }) shape.dtype = DType::fp32;
        },
        call.shape);
    if (random.below(2) == 1) call.variant = "eager";
  }
  return call;
}

inline const FormKind& form_named(std::string_view name) {
  for (const FormKind& kind : form_kinds()) {
    if (kind.name == name) return kind;
  }
  throw std::logic_error("no such form");
}

// A calibration that says what the form says unfitted.
inline FormCalibration start_calibration(const FormKind& kind) {
  FormCalibration calibration{.form = std::string(kind.name), .source = "made up", .fitted_on = "2026-01-01"};
  const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
  for (const FormConstant& constant : form->constants()) {
    calibration.constants.emplace_back(constant.name);
    calibration.effects["common"].push_back(std::log(constant.start));
  }
  for (double& width : calibration.half_widths.by_time) width = 0.2;
  return calibration;
}

// Trees that answer `leaf` whatever they are asked.
inline BoostedTrees constant_trees(size_t features, float leaf) {
  const std::vector<float> values(features * 100, 1.0F), targets(100, leaf);
  return fit_boosted_trees(values, features, targets, {.trees = 1, .learning_rate = 1, .min_leaf_rows = 0});
}

// What an InputError says; a failure when there is none.
inline InputProblem problem_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "no InputError";
  return {};
}

// An empty folder of the test's own, removed when it ends.
class TestWithFolder : public testing::Test {
 protected:
  TestWithFolder() {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::path(testing::TempDir()) / (std::string(info.test_suite_name()) + "_" + info.name());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~TestWithFolder() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  std::filesystem::path folder;
};

// Trees that learned noise.
inline BoostedTrees some_trees(size_t features) {
  RandomStream random(1, "trees");
  std::vector<float> values, targets;
  for (int i = 0; i < 200; ++i) {
    for (size_t f = 0; f < features; ++f) values.push_back(static_cast<float>(random.uniform()));
    targets.push_back(static_cast<float>(random.normal(0, 0.3)));
  }
  return fit_boosted_trees(values, features, targets, {.trees = 6, .depth = 3});
}

// Calibrations in which every member is set.
inline FormCalibration form_example() {
  FormCalibration calibration = start_calibration(form_named("memory"));
  calibration.devices = {"a100_sxm", "h100_sxm"};
  calibration.effects["device a100_sxm"] = std::vector<double>(calibration.constants.size(), -0.25);
  calibration.residual = some_trees(9);
  calibration.residual_strength = 0.75;
  calibration.half_widths = {.by_time = {0.5, 0.4, 0.3, 0.2, 0.1}};
  calibration.withheld_mape = {{"a100_sxm", 12.34}, {"h100_sxm", 9}};
  calibration.withheld_mape_20us = {{"a100_sxm", 10.5}, {"h100_sxm", 8.25}};
  calibration.withheld_coverage = {{"sm_80", 88.5}, {"sm_90", 93}};
  calibration.sibling_half_widths = HalfWidths{.by_time = {0.25, 0.2, 0.15, 0.1, 0.05}};
  return calibration;
}

inline DeviceCalibration device_example() {
  const FormCalibration form = form_example();
  DeviceCalibration calibration{.form = "memory", .device = "h100_sxm", .source = "made up", .fitted_on = "2026-01-01"};
  calibration.rows = 321;
  calibration.constants = form.constants;
  calibration.shared = std::vector<double>(form.constants.size(), 0.125);
  calibration.groups["rms_norm"] = form.effects.at("common");
  calibration.groups["rope"] = form.effects.at("common");
  calibration.ranges["rms_norm"] = {{0.1F, 12}, {3, 3.3F}};
  calibration.residual = some_trees(18);
  calibration.half_widths = {.by_time = {0.05, 0.04, 0.03, 0.02, 0.01}};
  calibration.held_out_mape = 3.21;
  calibration.held_out_mape_20us = 2.75;
  calibration.held_out_coverage = 90.5;
  return calibration;
}

// Of DeepSeek-V3, over so many ranks.
inline MoeShape deepseek_experts(int64_t tokens, int64_t ranks) {
  return {.tokens = tokens,
          .hidden = 7168,
          .inter = 2048,
          .top_k = 8,
          .experts = 256,
          .ep = ranks,
          .scheme = Scheme::fp8_block};
}

}  // namespace foretoken::test_support
