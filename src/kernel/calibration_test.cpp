#include "kernel/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "kernel/test_support.h"

namespace foretoken::calibration_test {

using namespace test_support;
using testing::HasSubstr;

// The text of a calibration in which one key holds something else, or is missing.
std::string with(const std::string& text, const std::string& key, std::optional<Json> value) {
  const Json document = parse_json(text, "original");
  Json changed = Json::object();
  for (const auto& [name, member] : document.members()) {
    if (name != key) changed.set(name, member);
    if (name == key && value) changed.set(name, *value);
  }
  return changed.dump();
}

InputProblem form_problem(const std::string& text) {
  return problem_of([&] { parse_form_calibration(text, "form.json"); });
}

InputProblem device_problem(const std::string& text) {
  return problem_of([&] { parse_device_calibration(text, "device.json"); });
}

std::string everything(const InputProblem& problem) {
  return problem.path + " " + problem.value + " " + problem.expected + " " + problem.suggestion;
}

TEST(Calibration, written_and_read_back_it_is_the_same) {
  const std::string form = calibration_json(form_example()), device = calibration_json(device_example());
  EXPECT_EQ(calibration_json(parse_form_calibration(form, "x")), form);
  EXPECT_EQ(calibration_json(parse_device_calibration(device, "x")), device);
  const FormCalibration read = parse_form_calibration(form, "x");
  const FormCalibration wrote = form_example();
  EXPECT_EQ(read.constants, wrote.constants);
  EXPECT_EQ(read.devices, wrote.devices);
  EXPECT_EQ(read.withheld_mape, wrote.withheld_mape);
  EXPECT_EQ(read.withheld_mape_20us, wrote.withheld_mape_20us);
  EXPECT_EQ(read.withheld_coverage, wrote.withheld_coverage);
  ASSERT_TRUE(read.sibling_half_widths);
  EXPECT_EQ(read.sibling_half_widths->at(1e-6), 0.25);
  EXPECT_EQ(read.residual_strength, 0.75);
  for (size_t k = 0; k < wrote.constants.size(); ++k)
    EXPECT_NEAR(read.effects.at("common")[k], wrote.effects.at("common")[k], 1e-6);
  const DeviceCalibration measured = parse_device_calibration(device, "x");
  EXPECT_EQ(measured.rows, 321u);
  EXPECT_EQ(measured.device, "h100_sxm");
  EXPECT_EQ(measured.ranges, device_example().ranges);
  EXPECT_EQ(measured.shared, device_example().shared);
}

TEST(Calibration, width_factors_are_kept_where_there_are_any) {
  EXPECT_EQ(parse_device_calibration(calibration_json(device_example()), "x").width_factor("rope"), 1);
  DeviceCalibration example = device_example();
  example.width_factors["rope"] = 1.25;
  const std::string device = calibration_json(example);
  EXPECT_EQ(parse_device_calibration(device, "x").width_factor("rope"), 1.25);
  EXPECT_EQ(parse_device_calibration(device, "x").width_factor("rms_norm"), 1);
  EXPECT_EQ(device_problem(with(device, "width_factors", Json::object({{"rope", -1}}))).path, "width_factors.rope");
}

TEST(Calibration, a_small_sweep_takes_the_mean_of_its_trees_and_its_smooth_residual) {
  DeviceCalibration example = device_example();
  const std::vector<float> features(example.residual.features(), 0.5F);
  const double trees = example.left_over(features);
  EXPECT_EQ(trees, example.residual.predict(features));
  example.smooth =
      SmoothResidual({.used = {0}, .inverse_lengths = {1}, .groups = {0.5F}, .weights = {0.75F}, .places = {0.5F}});
  EXPECT_DOUBLE_EQ(example.left_over(features), 0.5 * (trees + 0.75));
  const std::string text = calibration_json(example);
  EXPECT_EQ(calibration_json(parse_device_calibration(text, "made up")), text);
  EXPECT_EQ(parse_device_calibration(text, "made up").left_over(features), example.left_over(features));
}

TEST(Calibration, layers_of_a_sweep_are_kept_and_others_get_wider_intervals) {
  EXPECT_EQ(parse_device_calibration(calibration_json(device_example()), "x").layer_factor("fp8", "8192x8192"), 1);
  DeviceCalibration example = device_example();
  example.layers = {swept_layer("fp8", "10240x8192"), swept_layer("fp8", "8192x8192")};
  example.unseen_layer_factor = 2.5;
  const std::string text = calibration_json(example);
  const DeviceCalibration read = parse_device_calibration(text, "x");
  EXPECT_EQ(read.layer_factor("fp8", "8192x8192"), 1);
  EXPECT_EQ(read.layer_factor("fp8", "8192x1024"), 2.5);
  EXPECT_EQ(read.layer_factor("bf16", "8192x8192"), 2.5) << "the same layer in other formats";
  EXPECT_EQ(device_problem(with(text, "unseen_layer_factor", 0.5)).path, "unseen_layer_factor");
  EXPECT_EQ(device_problem(with(text, "layers", Json::array({"b", "a"}))).path, "layers");
}

TEST(Calibration, a_newer_version_is_refused_and_says_why) {
  const InputProblem form = form_problem(with(calibration_json(form_example()), "version", calibration_version + 1));
  EXPECT_EQ(form.source, "form.json");
  EXPECT_EQ(form.path, "version");
  EXPECT_THAT(form.expected, HasSubstr("newer"));
  EXPECT_EQ(device_problem(with(calibration_json(device_example()), "version", 99)).path, "version");
  EXPECT_EQ(form_problem(with(calibration_json(form_example()), "version", 0)).path, "version");
}

TEST(Calibration, one_kind_is_not_taken_for_the_other) {
  EXPECT_EQ(form_problem(calibration_json(device_example())).path, "kind");
  EXPECT_EQ(device_problem(calibration_json(form_example())).path, "kind");
}

TEST(Calibration, every_key_is_needed_and_named_when_it_is_missing) {
  const std::string form = calibration_json(form_example()), device = calibration_json(device_example());
  const Json form_keys = parse_json(form, "form"), device_keys = parse_json(device, "device");
  // Errors that older files do not tell; that one is missing from a newer file shows in the digest.
  const auto name_of = [](const std::string& key) {
    const bool is_newer = key.ends_with("_20us") || key.ends_with("_coverage") || key == "sibling_half_widths";
    return is_newer ? std::string("digest") : key;
  };
  for (const auto& [key, value] : form_keys.members())
    EXPECT_THAT(everything(form_problem(with(form, key, std::nullopt))), HasSubstr(name_of(key)));
  for (const auto& [key, value] : device_keys.members())
    EXPECT_THAT(everything(device_problem(with(device, key, std::nullopt))), HasSubstr(name_of(key)));
}

TEST(Calibration, as_many_offsets_as_constants_are_needed) {
  const std::string form = calibration_json(form_example()), device = calibration_json(device_example());
  EXPECT_EQ(form_problem(with(form, "effects", Json::object({{"common", Json::array({1, 2})}}))).path,
            "effects.common");
  EXPECT_EQ(device_problem(with(device, "shared", Json::array({1}))).path, "shared");
  EXPECT_EQ(device_problem(with(device, "groups", Json::object({{"rope", Json::array()}}))).path, "groups.rope");
  EXPECT_EQ(form_problem(with(form, "effects", Json::object())).path, "effects");  // none is common
}

TEST(Calibration, numbers_out_of_range_are_refused) {
  const std::string form = calibration_json(form_example()), device = calibration_json(device_example());
  EXPECT_EQ(form_problem(with(form, "residual_strength", 2)).path, "residual_strength");
  EXPECT_EQ(form_problem(with(form, "half_widths", Json::array({1, 2}))).path, "half_widths");
  EXPECT_EQ(form_problem(with(form, "half_widths", Json::array({-1, 0, 0, 0, 0}))).path, "half_widths[0]");
  EXPECT_EQ(device_problem(with(device, "rows", 0)).path, "rows");
  EXPECT_EQ(device_problem(with(device, "held_out_mape", -1)).path, "held_out_mape");
  EXPECT_EQ(
      device_problem(with(device, "ranges_log2", Json::object({{"rope", Json::array({Json::array({1, 2, 3})})}}))).path,
      "ranges_log2.rope[0]");
}

TEST(Calibration, trees_that_answer_otherwise_than_they_did_are_damaged) {
  FormCalibration other = form_example();
  other.residual = constant_trees(9, 0.5F);
  const Json trees = other.residual.to_json();
  const InputProblem problem = form_problem(with(calibration_json(form_example()), "residual", trees));
  EXPECT_EQ(problem.source, "form.json");
  EXPECT_EQ(problem.path, "self_check");
  EXPECT_THAT(problem.expected, HasSubstr("damaged"));
  DeviceCalibration device = device_example();
  EXPECT_EQ(device_problem(with(calibration_json(device), "residual", trees)).path, "self_check");
}

TEST(Calibration, a_damaged_leaf_or_threshold_anywhere_is_noticed) {
  const std::string text = calibration_json(form_example());
  const Json document = parse_json(text, "original");
  for (const char* key : {"features_u8", "thresholds_f32", "leaves_i16"}) {
    const std::string packed = document.find("residual")->find(key)->string();
    size_t noticed = 0;
    for (size_t i = 0; i + 4 < packed.size(); i += 3) {
      std::string damaged = packed;
      damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
      Json trees = *document.find("residual");
      trees.set(key, damaged);
      try {
        parse_form_calibration(with(text, "residual", trees), "form.json");
        ADD_FAILURE() << key << " at " << i;
        break;
      } catch (const InputError&) {
        ++noticed;
      }
    }
    EXPECT_GT(noticed, 0u);
  }
}

TEST(Calibration, half_widths_go_by_time) {
  const HalfWidths widths{.by_time = {5, 4, 3, 2, 1}};
  EXPECT_EQ(widths.at(0), 5);
  EXPECT_EQ(widths.at(9.9e-6), 5);
  EXPECT_EQ(widths.at(10.1e-6), 4);
  EXPECT_EQ(widths.at(50e-6), 3);
  EXPECT_EQ(widths.at(500e-6), 2);
  EXPECT_EQ(widths.at(1), 1);
}

using CalibrationFile = TestWithFolder;

TEST_F(CalibrationFile, files_are_named_in_complaints) {
  const auto form = form_calibration_path(folder, "memory");
  EXPECT_EQ(form.parent_path(), folder);
  EXPECT_EQ(device_calibration_path(folder, "h100_sxm", "memory").parent_path(), folder / "h100_sxm");
  EXPECT_THROW(read_form_calibration(form), InputError);
  write_file(form, with(calibration_json(form_example()), "version", 7));
  EXPECT_EQ(problem_of([&] { read_form_calibration(form); }).source, form.string());
  write_file(form, calibration_json(form_example()));
  EXPECT_EQ(calibration_json(read_form_calibration(form)), calibration_json(form_example()));
  const std::string text = calibration_json(form_example());
  write_file(form, text.substr(0, text.size() / 2));
  EXPECT_EQ(problem_of([&] { read_form_calibration(form); }).source, form.string());
}

}  // namespace foretoken::calibration_test
