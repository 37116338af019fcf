#include "kernel/fit/fit_device.h"
#include "kernel/fit/fit_form.h"

#include <gtest/gtest.h>

#include "kernel/evaluate.h"
#include "kernel/test_support.h"

namespace foretoken::fit_device_test {

using namespace test_support;

constexpr double noise = 0.03;

// What a device adds to the planted law.
using Oddity = std::function<double(const NormShape&)>;

// Norms timed by the memory form with constants a third away from where a fit starts, and noise of 3%.
MeasuredDevice measured_norms(const std::string& name, size_t rows, const Oddity& oddity = {}) {
  const std::unique_ptr<Form> form = form_named("memory").make(Caches::benchmark);
  std::vector<double> planted = start_constants(*form);
  for (size_t k = 0; k < planted.size(); ++k) {
    const FormConstant& c = form->constants()[k];
    planted[k] = std::clamp(planted[k] * (k % 2 == 0 ? 1.4 : 0.75), c.least, c.most);
  }
  RandomStream random(11, "norms of " + name);
  MeasuredDevice measured{.device = hardware().device(name), .rows = {}};
  const DeviceTraits traits = traits_of(measured.device).traits;
  for (size_t i = 0; i < rows; ++i) {
    const NormShape shape{.rows = static_cast<int64_t>(std::exp2(random.uniform(0, 17))),
                          .width = static_cast<int64_t>(std::exp2(random.uniform(9, 14)))};
    const FormCall call{.shape = shape, .variant = {}};
    const double seconds = form_seconds(*form, call, traits, planted) * std::exp(random.normal(0, noise));
    measured.rows.push_back({.call = call, .seconds = seconds * (oddity ? oddity(shape) : 1)});
  }
  return measured;
}

std::vector<MeasuredDevice> three_generations(const Oddity& oddity_of_the_last = {}) {
  return {measured_norms("a100_sxm", 150), measured_norms("h100_sxm", 150),
          measured_norms("l40s", 300, oddity_of_the_last)};
}

double mean_error(const FormCalibration& calibration, const MeasuredDevice& device, const std::string& name) {
  const std::unique_ptr<Form> form = form_named(calibration.form).make(Caches::benchmark);
  const DeviceTraits traits = traits_of(device.device).traits;
  double sum = 0;
  for (const MeasuredCall& row : device.rows) {
    const std::vector<double> logs = cross_log_constants(*form, calibration, row.call, traits, name);
    const double seconds = form_seconds_with_residual(*form, row.call, traits, logs, calibration.residual,
                                                      calibration.residual_strength, std::nullopt);
    sum += std::abs(seconds / row.seconds - 1);
  }
  return 100 * sum / static_cast<double>(device.rows.size());
}

TEST(FitDevice, a_planted_law_is_found_and_ports_to_generations_that_were_withheld) {
  const FormKind& kind = form_named("memory");
  const std::vector<MeasuredDevice> devices = three_generations();
  const FormCalibration fitted = fit_form(kind, devices, {.source = "made up", .date = "2026-01-01"});
  EXPECT_EQ(fitted.form, "memory");
  EXPECT_EQ(fitted.source, "made up");
  EXPECT_EQ(fitted.fitted_on, "2026-01-01");
  EXPECT_EQ(fitted.devices, (std::vector<std::string>{"a100_sxm", "h100_sxm", "l40s"}));
  ASSERT_EQ(fitted.withheld_mape.size(), 3u);
  // Noise of 3% alone is a mean error of 2.4%.
  for (const auto& [device, mape] : fitted.withheld_mape) {
    EXPECT_LT(mape, 4) << device;
    EXPECT_GT(mape, 2) << device << ": better than the noise cannot be";
  }
  for (const MeasuredDevice& device : devices) EXPECT_LT(mean_error(fitted, device, device.device.name), 3.2);
  EXPECT_GT(mean_error(start_calibration(kind), devices[0], ""), 10);  // what the start was off by
  // 90% of normal noise lies within 1.64 deviations.
  for (const double width : fitted.half_widths.by_time) {
    EXPECT_GT(width, 1.3 * noise);
    EXPECT_LT(width, 3 * noise);
  }
}

TEST(FitDevice, the_same_rows_and_seed_give_the_same_file) {
  const std::vector<MeasuredDevice> devices = three_generations();
  const auto run = [&](uint64_t seed) {
    const FormCalibration cross = fit_form(form_named("memory"), devices, {.seed = seed});
    return calibration_json(cross) +
           calibration_json(fit_device(form_named("memory"), cross, devices[2], {.seed = seed, .sweep_size = 100}));
  };
  const std::string first = run(1);
  EXPECT_EQ(run(1), first);
  EXPECT_NE(run(2), first);  // another sweep
}

TEST(FitDevice, one_generation_alone_says_nothing_about_others) {
  const FormCalibration fitted =
      fit_form(form_named("memory"), {measured_norms("h100_sxm", 80), measured_norms("h200_sxm", 80)}, {});
  EXPECT_TRUE(fitted.withheld_mape.empty());
  for (const double width : fitted.half_widths.by_time) EXPECT_GE(width, 1);  // a factor of e either way
}

TEST(FitDevice, a_sweep_puts_an_odd_device_right) {
  const FormKind& kind = form_named("memory");
  const std::vector<MeasuredDevice> devices =
      three_generations([](const NormShape& shape) { return shape.width > 4096 ? 1.9 : 1.2; });
  const FormCalibration cross = fit_form(kind, devices, {});
  EXPECT_GT(cross.withheld_mape.at("l40s"), 15);
  const DeviceCalibration measured = fit_device(kind, cross, devices[2], {.source = "made up", .date = "2026-01-01"});
  EXPECT_EQ(measured.device, "l40s");
  EXPECT_EQ(measured.form, "memory");
  EXPECT_EQ(measured.rows, 300u);
  EXPECT_EQ(measured.source, "made up");
  EXPECT_EQ(measured.constants, cross.constants);
  // A step that no constant can express is the trees' to learn.
  EXPECT_LT(measured.held_out_mape, 7);
  EXPECT_LT(measured.held_out_mape, cross.withheld_mape.at("l40s") / 3);
  ASSERT_TRUE(measured.groups.contains("rms_norm"));
  EXPECT_GE(measured.ranges.at("rms_norm")[1].first, 9);
  EXPECT_LE(measured.ranges.at("rms_norm")[1].second, 14);
  for (const double width : measured.half_widths.by_time) EXPECT_LT(width, 0.35);
}

TEST(FitDevice, a_small_sweep_is_smooth_between_its_rows_and_a_large_one_has_trees_alone) {
  const FormKind& kind = form_named("memory");
  const auto swell = [](const NormShape& shape) {
    return std::exp(0.4 * std::sin(std::log2(static_cast<double>(shape.width)) * 2));
  };
  const MeasuredDevice seen = measured_norms("l40s", 150, swell);
  const FormCalibration cross = fit_form(kind, {measured_norms("a100_sxm", 100), measured_norms("h100_sxm", 100)}, {});
  DeviceCalibration sweep = fit_device(kind, cross, seen, {});
  EXPECT_FALSE(sweep.smooth.empty());
  const MeasuredDevice other = measured_norms("l40s", 600, swell);
  const std::vector<MeasuredCall> unseen(other.rows.begin() + 150, other.rows.end());
  const auto error = [&] {
    return mean_percentage_error(errors_of_sweep(kind, sweep, seen.device, unseen).at("rms_norm").errors);
  };
  const double both = error();
  sweep.smooth = {};
  EXPECT_LT(both, 0.95 * error());
  EXPECT_TRUE(fit_device(kind, cross, other, {}).smooth.empty());
}

// Fits on four fifths of these rows are small enough for a process; the sweep that they speak for is not.
TEST(FitDevice, widths_of_a_sweep_are_those_of_its_own_kind_of_fit) {
  const FormKind& kind = form_named("memory");
  const auto swell = [](const NormShape& shape) {
    return std::exp(0.4 * std::sin(std::log2(static_cast<double>(shape.width)) * 2));
  };
  const FormCalibration cross = fit_form(kind, {measured_norms("a100_sxm", 100), measured_norms("h100_sxm", 100)}, {});
  const MeasuredDevice small = measured_norms("l40s", 400, swell), large = measured_norms("l40s", 401, swell);
  const DeviceCalibration smooth = fit_device(kind, cross, small, {}), trees = fit_device(kind, cross, large, {});
  EXPECT_FALSE(smooth.smooth.empty());
  EXPECT_TRUE(trees.smooth.empty());
  EXPECT_GT(trees.held_out_mape, 1.05 * smooth.held_out_mape);
}

TEST(FitDevice, a_sweep_takes_no_more_rows_than_asked_for) {
  const FormKind& kind = form_named("memory");
  const std::vector<MeasuredDevice> devices = three_generations();
  const FormCalibration cross = fit_form(kind, devices, {});
  EXPECT_EQ(fit_device(kind, cross, devices[2], {.sweep_size = 100}).rows, 100u);
  EXPECT_EQ(fit_device(kind, cross, devices[2], {.sweep_size = 100000}).rows, 300u);
  // Rows beyond the sweep have no say: other times in them change nothing.
  const auto fitted_from = [&](const MeasuredDevice& device) {
    DeviceCalibration fitted = fit_device(kind, cross, device, {.sweep_size = 100});
    fitted.held_out_mape = fitted.held_out_mape_20us = fitted.held_out_coverage = 0;  // scored on the rows outside
    return calibration_json(fitted);
  };
  const std::string sweep = fitted_from(devices[2]);
  size_t unchanged = 0;
  for (size_t i = 0; i < 300; i += 50) {
    MeasuredDevice changed = devices[2];
    changed.rows[i].seconds *= 1.5;
    if (fitted_from(changed) == sweep) ++unchanged;
  }
  EXPECT_GE(unchanged, 1u);  // a third of the rows is in the sweep
  EXPECT_LE(unchanged, 5u);
}

// Twelve numbers of tokens in each of a few layers, some of which run slower than any size says.
MeasuredDevice measured_layers(const std::string& name, double oddity) {
  const std::unique_ptr<Form> form = form_named("gemm").make(Caches::benchmark);
  RandomStream random(5, "layers of " + name);
  MeasuredDevice measured{.device = hardware().device(name), .rows = {}};
  const DeviceTraits traits = traits_of(measured.device).traits;
  for (int64_t layer = 1; layer <= 6; ++layer) {
    const double own = std::exp(random.normal(0, oddity));
    for (int64_t m = 1; m <= 12; ++m) {
      const FormCall call{.shape = GemmShape{.m = 64 * m, .n = 1024 * layer, .k = 4096, .scheme = Scheme::bf16},
                          .variant = {}};
      const double seconds = form_seconds(*form, call, traits, start_constants(*form));
      measured.rows.push_back({.call = call, .seconds = own * seconds * std::exp(random.normal(0, 0.01))});
    }
  }
  return measured;
}

TEST(FitDevice, intervals_are_wider_for_layers_that_a_sweep_has_not_seen) {
  const FormKind& kind = form_named("gemm");
  const std::vector<MeasuredDevice> devices = {measured_layers("a100_sxm", 0.2), measured_layers("h100_sxm", 0.2)};
  const FormCalibration cross = fit_form(kind, devices, {});
  const DeviceCalibration odd = fit_device(kind, cross, devices[1], {});
  EXPECT_EQ(odd.layers.size(), 6u);
  EXPECT_GT(odd.unseen_layer_factor, 2);
  MeasuredDevice sparse = devices[1];
  for (size_t i = 0; i < sparse.rows.size(); ++i) std::get<GemmShape>(sparse.rows[i].call.shape).k = 1024 + 8 * i;
  EXPECT_TRUE(fit_device(kind, cross, sparse, {}).layers.empty()) << "each row is a layer of its own";
}

// Many multiplies of one format, and few of another that are slower beyond a size of their own.
MeasuredDevice measured_formats(std::string_view stream, size_t many, size_t few) {
  const std::unique_ptr<Form> form = form_named("gemm_cdna").make(Caches::benchmark);
  RandomStream random(7, stream);
  MeasuredDevice measured{.device = hardware().device("mi355x"), .rows = {}};
  const DeviceTraits traits = traits_of(measured.device).traits;
  const auto size = [&] { return 64 * static_cast<int64_t>(std::exp2(random.uniform(2, 8))); };
  for (size_t i = 0; i < many + few; ++i) {
    const GemmShape shape{.m = size(), .n = size(), .k = size(), .scheme = i < many ? Scheme::fp8 : Scheme::bf16};
    const FormCall call{.shape = shape, .variant = "aiter"};
    const double oddity =
        i < many ? (shape.m > 2000 ? 1.3 : 1) : (shape.n > 3000 ? 1 : 1.5) * (shape.k > 900 ? 1 : 0.7);
    measured.rows.push_back({.call = call,
                             .seconds = oddity * form_seconds(*form, call, traits, start_constants(*form)) *
                                        std::exp(random.normal(0, 0.02))});
  }
  return measured;
}

TEST(FitDevice, a_format_with_few_rows_of_an_amd_sweep_has_trees_of_its_own) {
  FormKind kind = form_named("gemm_cdna");
  const MeasuredDevice seen = measured_formats("seen", 1200, 80), unseen = measured_formats("unseen", 1, 80);
  const FormCalibration cross = fit_form(kind, {seen}, {});
  const auto error = [&] {
    const DeviceCalibration sweep = fit_device(kind, cross, seen, {});
    return mean_percentage_error(errors_of_sweep(kind, sweep, seen.device, unseen.rows).at("aiter bf16").errors);
  };
  const double own = error();
  kind.amd = false;
  EXPECT_LT(own, 0.95 * error());
}

TEST(FitDevice, progress_names_what_is_fitted_and_withheld) {
  std::string told;
  fit_form(form_named("memory"), three_generations(),
           {.progress = [&](const std::string& line) { told += line + "\n"; }});
  for (const char* word : {"memory: fitting 3 devices", "withholding sm_80", "withholding sm_89", "withholding sm_90"})
    EXPECT_NE(told.find(word), std::string::npos) << word << " in " << told;
}

TEST(FitDevice, generations_are_instruction_sets_and_blackwell_datacentre_parts_are_one) {
  const auto generation = [](const char* name) { return generation_of(hardware().device(name)); };
  EXPECT_EQ(generation("h100_sxm"), generation("h200_sxm"));
  EXPECT_EQ(generation("b200_sxm"), generation("b300_sxm"));
  EXPECT_NE(generation("b200_sxm"), generation("rtx_pro_6000_server"));
  EXPECT_NE(generation("a100_sxm"), generation("a40"));
  EXPECT_EQ(generation_of(Device{.architecture = "Ironwood"}), "Ironwood");
}

}  // namespace foretoken::fit_device_test
