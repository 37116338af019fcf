#include "kernel/fit/fit_calibrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "kernel/test_support.h"

namespace foretoken::fit_calibrations_test {

using namespace test_support;
using testing::HasSubstr;

// Folders of measurements made by the unfitted memory form.
class FitCalibrationsTest : public TestWithFolder {
 protected:
  void write_norms(const std::string& device, size_t rows, double unit = 1) const {
    const std::unique_ptr<Form> form = form_named("memory").make(Caches::benchmark);
    const std::vector<double> constants = start_constants(*form);
    const DeviceTraits traits = traits_named(device);
    RandomStream random(1, "norms of " + device);
    std::string text = "dtype,rows,width,latency_us\n";
    for (size_t i = 0; i < rows; ++i) {
      const NormShape shape{.rows = static_cast<int64_t>(std::exp2(random.uniform(0, 16))),
                            .width = static_cast<int64_t>(std::exp2(random.uniform(10, 14)))};
      const double seconds = form_seconds(*form, {.shape = shape, .variant = {}}, traits, constants);
      text += fmt::format("bf16,{},{},{}\n", shape.rows, shape.width,
                          seconds * 1e6 * unit * std::exp(random.normal(0, 0.02)));
    }
    std::filesystem::create_directories(folder / "data" / device);
    write_file(folder / "data" / device / "norm.csv", text);
  }
  CalibrationSummary fit(const char* out, const FitOptions& options = {}, Sweeps sweeps = Sweeps::all) const {
    return fit_calibrations({{.data = folder / "data"}}, hardware(), options, sweeps, folder / out);
  }
  // Of the form, or of a device's measured tier.
  std::filesystem::path path(const char* out, const char* device = nullptr) const {
    return device == nullptr ? form_calibration_path(folder / out, "memory")
                             : device_calibration_path(folder / out, device, "memory");
  }
  std::string text(const char* out, const char* device = nullptr) const {
    return read_file(path(out, device), size_t{1} << 24);
  }
  bool exists(const char* out, const char* device = nullptr) const {
    return std::filesystem::exists(path(out, device));
  }
};

TEST_F(FitCalibrationsTest, files_lie_where_predictions_look_for_them) {
  write_norms("a100_sxm", 80);
  write_norms("l40s", 80);
  write_norms("h100_sxm", 30);
  const CalibrationSummary summary = fit("out", {.source = "made up", .date = "2026-01-01"});
  EXPECT_TRUE(exists("out"));
  EXPECT_TRUE(exists("out", "a100_sxm"));
  EXPECT_FALSE(exists("out", "h100_sxm"));  // too few rows for trees
  EXPECT_EQ(summary.files, 3u);
  ASSERT_EQ(summary.entries.size(), 3u);
  for (const CalibrationSummary::Entry& entry : summary.entries) {
    EXPECT_EQ(entry.form, "memory");
    EXPECT_EQ(entry.rows, entry.device == "h100_sxm" ? 30u : 80u);
    EXPECT_GT(entry.withheld_mape, 0);
    EXPECT_LT(entry.withheld_mape, 4) << entry.device;
    EXPECT_EQ(entry.held_out_mape > 0, entry.device != "h100_sxm");
  }
  for (const char* device : {"a100_sxm", "h100_sxm", "h200_sxm"}) {
    const LearnedKernels learned(hardware().device(device), folder / "out");
    const std::optional<LearnedTime> time = learned.estimate(NormShape{.rows = 64, .width = 4096}, "", Tier::best);
    ASSERT_TRUE(time) << device;
    EXPECT_EQ(time->tier, device == std::string("a100_sxm") ? Tier::measured : Tier::cross);
  }
}

TEST_F(FitCalibrationsTest, rows_faster_than_dram_do_not_bend_what_ports_but_their_sweep_keeps_them) {
  for (const char* device : {"a100_sxm", "l40s", "h100_sxm"}) write_norms(device, 80);
  fit("clean", {.date = "2026-01-01"});
  // A second kernel on one device, timed on a tenth of the rows it states.
  std::string quantized = "op,m,k,latency_us\n";
  for (int i = 0; i < 60; ++i) quantized += fmt::format("static_quant,{},8192,{}\n", 65536 + 64 * i, 80 + i % 7);
  write_file(folder / "data" / "a100_sxm" / "quantize_fp8.csv", quantized);
  fit("odd", {.date = "2026-01-01"});
  const FormCalibration clean = read_form_calibration(path("clean")), odd = read_form_calibration(path("odd"));
  EXPECT_EQ(odd.effects.at("common"), clean.effects.at("common"));
  EXPECT_FALSE(odd.effects.contains("operation quantize"));
  EXPECT_EQ(odd.withheld_mape.at("a100_sxm"), clean.withheld_mape.at("a100_sxm"));
  const DeviceCalibration sweep = read_device_calibration(path("odd", "a100_sxm"));
  EXPECT_TRUE(sweep.groups.contains("quantize_fp8"));
}

TEST_F(FitCalibrationsTest, measured_tiers_are_left_out_when_not_asked_for) {
  write_norms("a100_sxm", 80);
  write_norms("l40s", 80);
  EXPECT_EQ(fit("out", {}, Sweeps::none).files, 1u);
  EXPECT_FALSE(exists("out", "a100_sxm"));
}

TEST_F(FitCalibrationsTest, sweeps_that_are_not_asked_for_stay_and_siblings_still_follow_from_them) {
  for (const char* device : {"a100_sxm", "h100_sxm", "h200_sxm"}) write_norms(device, 80);
  fit("out", {.date = "2026-01-01"});
  const std::string cross = text("out"), kept = text("out", "h100_sxm"), asked = text("out", "h200_sxm");
  EXPECT_TRUE(read_form_calibration(path("out")).sibling_half_widths);
  EXPECT_EQ(fit("out", {.date = "2026-01-01"}, Sweeps::none).files, 1u);
  EXPECT_EQ(text("out"), cross);
  const CalibrationSummary summary = fit("out", {.date = "2026-01-02", .sweep_devices = {"h200_sxm"}});
  EXPECT_EQ(summary.files, 2u);
  EXPECT_EQ(text("out", "h100_sxm"), kept);
  EXPECT_NE(text("out", "h200_sxm"), asked) << "another day";
  EXPECT_TRUE(read_form_calibration(path("out")).sibling_half_widths);
  EXPECT_THROW(fit("out", {.sweep_devices = {"h2000"}}), InputError);
}

TEST_F(FitCalibrationsTest, sweeps_that_stay_are_put_on_top_of_new_cross_constants) {
  for (const char* device : {"a100_sxm", "h100_sxm", "l40s"}) write_norms(device, 80);
  fit("out", {.date = "2026-01-01"});
  const DeviceCalibration before = read_device_calibration(path("out", "h100_sxm"));
  for (const char* device : {"a100_sxm", "l40s"}) write_norms(device, 80, 1.5);
  EXPECT_GT(fit("out", {.date = "2026-01-01"}, Sweeps::none).files, 1u);
  const DeviceCalibration kept = read_device_calibration(path("out", "h100_sxm"));
  EXPECT_EQ(kept.groups, before.groups) << "what was measured stays";
  EXPECT_NE(kept.shared, before.shared);
  const std::string once = text("out", "h100_sxm");
  EXPECT_EQ(fit("out", {.date = "2026-01-01"}, Sweeps::none).files, 1u);
  EXPECT_EQ(text("out", "h100_sxm"), once);
}

TEST_F(FitCalibrationsTest, the_sweep_size_is_honoured) {
  write_norms("a100_sxm", 150);
  write_norms("l40s", 150);
  fit("out", {.sweep_size = 60});
  EXPECT_EQ(read_device_calibration(path("out", "l40s")).rows, 60u);
}

TEST_F(FitCalibrationsTest, a_withheld_device_and_its_generation_are_never_seen) {
  write_norms("a100_sxm", 80);
  write_norms("l40s", 80);
  fit("clean", {.date = "2026-01-01"});
  // Absurd times of two devices of the withheld generation: a fit that saw a single row would differ or refuse.
  write_norms("h100_sxm", 80, 37);
  write_norms("h200_sxm", 80, 1e6);
  const CalibrationSummary summary = fit("without", {.date = "2026-01-01", .without = {"h200_sxm"}});
  EXPECT_EQ(text("without"), text("clean"));
  EXPECT_EQ(text("without", "l40s"), text("clean", "l40s"));
  EXPECT_FALSE(exists("without", "h100_sxm"));
  EXPECT_FALSE(exists("without", "h200_sxm"));
  for (const CalibrationSummary::Entry& entry : summary.entries)
    EXPECT_THAT(entry.device, testing::Not(HasSubstr("h")));
  EXPECT_THROW(fit("unknown", {.without = {"h2000"}}), InputError);
}

TEST_F(FitCalibrationsTest, a_withheld_generation_is_swept_without_the_rows_that_are_held_out) {
  for (const char* device : {"a100_sxm", "l40s", "h100_sxm"}) write_norms(device, 200);
  fit("none", {.date = "2026-01-01", .without = {"Hopper"}}, Sweeps::none);
  fit("out", {.date = "2026-01-01", .without = {"hopper"}}, Sweeps::withheld);
  EXPECT_EQ(text("out"), text("none"));
  EXPECT_FALSE(exists("out", "l40s"));
  size_t seen = 0;
  for (size_t row = 1; row <= 200; ++row) seen += is_held_out("h100_sxm", "norm", row) ? 0 : 1;
  EXPECT_GT(seen, 140u);
  EXPECT_LT(seen, 180u);
  EXPECT_EQ(read_device_calibration(path("out", "h100_sxm")).rows, seen);
}

TEST_F(FitCalibrationsTest, a_probe_takes_a_few_rows_of_each_group_and_finds_their_level) {
  write_norms("a100_sxm", 300);
  write_norms("l40s", 300);
  write_norms("h100_sxm", 300, 1.6);  // slower than its sheet says
  const FitOptions options{.date = "2026-01-01", .without = {"hopper"}, .probe_rows = 25};
  const CalibrationSummary summary = fit("out", options, Sweeps::withheld);
  EXPECT_EQ(read_device_calibration(path("out", "h100_sxm")).rows, 25u);
  for (const CalibrationSummary::Entry& entry : summary.entries) {
    if (entry.device != "h100_sxm") continue;
    EXPECT_GT(entry.held_out_mape, 0) << "on all other rows";
    EXPECT_LT(entry.held_out_mape, 6);
    EXPECT_GT(entry.held_out_coverage, 75);
  }
  const KernelShape shape = NormShape{.rows = 4096, .width = 8192};
  const LearnedKernels learned(hardware().device("h100_sxm"), folder / "out");
  const double sheet = learned.estimate(shape, "", Tier::cross)->seconds.value;
  EXPECT_NEAR(learned.estimate(shape, "", Tier::measured)->seconds.value / sheet, 1.6, 0.15);
}

TEST_F(FitCalibrationsTest, a_probe_stays_as_it_was_when_the_cross_tier_below_it_changes) {
  write_norms("a100_sxm", 300);
  write_norms("l40s", 300);
  write_norms("h100_sxm", 300, 1.6);
  fit("out", {.date = "2026-01-01", .without = {"hopper"}, .probe_rows = 25}, Sweeps::withheld);
  const DeviceCalibration probe = read_device_calibration(path("out", "h100_sxm"));
  fit("out", {.date = "2026-01-02"}, Sweeps::none);  // has seen the device, which the probe's had not
  const DeviceCalibration kept = read_device_calibration(path("out", "h100_sxm"));
  EXPECT_EQ(kept.groups, probe.groups);
  for (const double offset : kept.shared) EXPECT_EQ(offset, 0) << "a probe moves no constants";
}

TEST_F(FitCalibrationsTest, a_generation_has_a_title_an_instruction_set_and_devices) {
  for (const char* name : {"hopper", "Hopper", "sm_90", "h100_sxm", "h200_sxm"})
    EXPECT_EQ(generation_named(name, hardware()), "sm_90") << name;
  const InputProblem problem = problem_of([] { generation_named("hoper", hardware()); });
  EXPECT_EQ(problem.field, "without");
  EXPECT_EQ(problem.suggestion, "Hopper");
}

TEST_F(FitCalibrationsTest, times_in_another_unit_are_refused_and_the_device_is_named) {
  write_norms("a100_sxm", 80);
  for (const double unit : {1e-6, 1e-3, 1e3, 1e6}) {
    write_norms("l40s", 80, unit);
    const InputProblem problem = problem_of([&] { fit("out"); });
    EXPECT_THAT(problem.source, HasSubstr("l40s")) << unit;
    EXPECT_THAT(problem.source, HasSubstr("norm")) << unit;
    EXPECT_EQ(problem.path, "latency_us") << unit;
    EXPECT_THAT(problem.value, HasSubstr("80 of 80 rows")) << unit;
    EXPECT_THAT(problem.value, HasSubstr("norm.csv rows 1, 2, 3")) << unit;
    EXPECT_FALSE(exists("out"));
  }
  for (const double unit : {0.5, 3.0}) {
    write_norms("l40s", 80, unit);
    EXPECT_NO_THROW(fit("out")) << unit;
  }
}

TEST_F(FitCalibrationsTest, a_few_rows_in_another_unit_or_without_a_number_are_named) {
  write_norms("a100_sxm", 80);
  write_norms("l40s", 80);
  const std::filesystem::path file = folder / "data" / "l40s" / "norm.csv";
  const std::string sweep = read_file(file, size_t{1} << 20);
  write_file(file, sweep + "bf16,4096,4096,0.009\nbf16,8192,4096,0.018\nbf16,8192,8192,0.036\n");
  const InputProblem off = problem_of([&] { fit("out"); });
  EXPECT_THAT(off.value, HasSubstr("3 of 83 rows"));
  EXPECT_THAT(off.value, HasSubstr("norm.csv rows 81, 82, 83"));
  for (const char* broken : {"nan", "inf", "", "fast"}) {
    write_file(file, sweep + "bf16,4096,4096," + broken + "\n");
    const InputProblem problem = problem_of([&] { fit("out"); });
    EXPECT_THAT(problem.source + problem.path, HasSubstr("norm.csv")) << broken;
    EXPECT_TRUE(problem.line == 82 || problem.path.find("81") != std::string::npos) << broken << " " << problem.path;
  }
  // One row in a hundred may be a kernel that is broken rather than a broken measurement.
  write_file(file, sweep + "bf16,4096,4096,0.009\n");
  EXPECT_NO_THROW(fit("out"));
}

TEST_F(FitCalibrationsTest, rows_without_a_form_or_a_complete_device_are_left_out) {
  write_norms("a100_sxm", 80);
  write_norms("l40s", 80);
  fit("clean", {.date = "2026-01-01"});
  std::filesystem::create_directories(folder / "data" / "tpu_v5e");
  write_file(folder / "data" / "tpu_v5e" / "norm.csv", "rows,width,latency_us\n64,64,5\n");
  write_file(folder / "data" / "a100_sxm" / "pool.csv",
             "batch,channels,height,width,kernel,stride,latency_us\n1,8,8,8,2,2,5\n");
  fit("more", {.date = "2026-01-01"});
  EXPECT_EQ(text("more"), text("clean"));
}

TEST_F(FitCalibrationsTest, a_withheld_device_alone_leaves_its_siblings) {
  for (const char* device : {"a100_sxm", "l40s", "h100_sxm"}) write_norms(device, 80);
  fit("clean", {.date = "2026-01-01"});
  write_norms("h200_sxm", 80, 1e6);
  fit("without", {.date = "2026-01-01", .without_devices = {"h200_sxm"}});
  EXPECT_EQ(text("without"), text("clean"));
  EXPECT_TRUE(exists("without", "h100_sxm"));
  EXPECT_FALSE(exists("without", "h200_sxm"));
}

TEST_F(FitCalibrationsTest, rows_held_out_are_scored_and_never_fitted) {
  for (const char* device : {"a100_sxm", "l40s"}) write_norms(device, 200);
  const CalibrationSummary all = fit("all", {.date = "2026-01-01"});
  EXPECT_TRUE(all.held_out.empty());
  const CalibrationSummary part = fit("part", {.date = "2026-01-01", .hold_out = HoldOut::rows});
  ASSERT_EQ(part.held_out.size(), 2u);
  for (const CalibrationSummary::HeldOut& group : part.held_out) {
    EXPECT_EQ(group.form, "memory");
    EXPECT_EQ(group.group, "rms_norm");
    EXPECT_GT(group.rows, 20u);
    EXPECT_LT(group.rows, 60u);
    EXPECT_EQ(read_device_calibration(path("part", group.device.c_str())).rows + group.rows, 200u);
    EXPECT_GT(group.mape, 0);
    EXPECT_LT(group.mape, 10);
  }
}

}  // namespace foretoken::fit_calibrations_test
