#include "kernel/calibration_pack.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "kernel/calibration_folder.h"
#include "kernel/learned.h"
#include "kernel/test_support.h"

namespace foretoken::calibration_pack_test {

using namespace test_support;

constexpr size_t no_limit = size_t{1} << 30;

class PackedCalibrations : public TestWithFolder {
 protected:
  PackedCalibrations() {
    DeviceCalibration measured = device_example();
    measured.width_factors["rope"] = 1.25;
    // Leaves that need two bytes, and those at the ends of one.
    SymmetricTrees trees{.levels = {3, 0}, .features = {0, 1, 17}, .thresholds = {0.5F, -1, 2}};
    trees.leaves = {0, 1, -127, 127, -128, 128, 32767, -32768, 5};
    measured.residual = BoostedTrees(18, trees);
    measured.smooth = SmoothResidual({.used = {0, 3},
                                      .inverse_lengths = {0.5F, 2},
                                      .group_feature = 9,
                                      .across = 0.25F,
                                      .groups = {0, 1},
                                      .weights = {0.125F, -0.5F},
                                      .places = {1, 2, 3, 4}});
    std::filesystem::create_directories(json / "h100_sxm");
    write_file(form_file, calibration_json(form_example()));
    write_file(device_file, calibration_json(measured));
    write_pack(pack_calibrations(json));
  }

  void write_pack(const std::vector<uint8_t>& bytes) const {
    write_file(pack_file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  std::filesystem::path json = folder / "calibrations", pack_file = folder / "calibrations.pack";
  std::filesystem::path form_file = form_calibration_path(json, "memory");
  std::filesystem::path device_file = device_calibration_path(json, "h100_sxm", "memory");
};

TEST_F(PackedCalibrations, what_is_unpacked_is_what_the_json_says) {
  const CalibrationPack pack(pack_file);
  const auto form = pack.form(read_raw_file(form_file, no_limit));
  const auto device = pack.device(read_raw_file(device_file, no_limit));
  ASSERT_TRUE(form && device);
  EXPECT_EQ(calibration_json(*form), calibration_json(read_form_calibration(form_file)));
  EXPECT_EQ(calibration_json(*device), calibration_json(read_device_calibration(device_file)));
}

TEST_F(PackedCalibrations, one_kind_is_not_taken_for_the_other) {
  const CalibrationPack pack(pack_file);
  EXPECT_FALSE(pack.form(read_raw_file(device_file, no_limit)));
  EXPECT_FALSE(pack.device(read_raw_file(form_file, no_limit)));
}

TEST_F(PackedCalibrations, a_file_fitted_anew_is_read_and_not_the_old_pack) {
  DeviceCalibration anew = device_example();
  anew.rows = 777;
  write_file(device_file, calibration_json(anew));
  EXPECT_FALSE(CalibrationPack(pack_file).device(read_raw_file(device_file, no_limit)));
  const CalibrationFolder calibrations(json, CalibrationPack(pack_file));
  EXPECT_EQ(calibrations.device("h100_sxm", "memory")->rows, 777u);
  std::filesystem::remove(device_file);
  EXPECT_FALSE(calibrations.device("h100_sxm", "memory"));
}

TEST_F(PackedCalibrations, a_damaged_json_file_is_refused_in_spite_of_the_pack) {
  const std::string text = calibration_json(form_example());
  write_file(form_file, text.substr(0, text.size() / 2));
  const CalibrationFolder calibrations(json, CalibrationPack(pack_file));
  EXPECT_EQ(problem_of([&] { calibrations.form("memory"); }).source, form_file.string());
}

TEST_F(PackedCalibrations, a_damaged_pack_is_passed_over) {
  const std::vector<uint8_t> whole = read_raw_file(pack_file, no_limit);
  const std::string expected = calibration_json(read_device_calibration(device_file));
  for (size_t at = 0; at < whole.size(); at += 1 + whole.size() / 29) {
    std::vector<uint8_t> damaged = whole;
    damaged[at] = static_cast<uint8_t>(damaged[at] ^ 16U);
    write_pack(damaged);
    const CalibrationFolder calibrations(json, CalibrationPack(pack_file));
    EXPECT_EQ(calibration_json(*calibrations.device("h100_sxm", "memory")), expected) << "byte " << at;
    write_pack({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at)});
    EXPECT_FALSE(CalibrationPack(pack_file).device(read_raw_file(device_file, no_limit)) &&
                 CalibrationPack(pack_file).form(read_raw_file(form_file, no_limit)))
        << "cut at " << at;
  }
}

TEST_F(PackedCalibrations, no_pack_is_no_mistake) {
  const CalibrationFolder calibrations(json, CalibrationPack(folder / "none"));
  EXPECT_EQ(calibrations.device("h100_sxm", "memory")->rows, 321u);
}

TEST_F(PackedCalibrations, calibrations_that_ship_predict_the_same_packed_and_as_json) {
  const std::filesystem::path shipped = FORETOKEN_SOURCE_DIR "/data/kernels/calibrations";
  write_pack(pack_calibrations(shipped));
  const Device device = hardware().device("h200_sxm");
  const LearnedKernels packed(device, CalibrationFolder(shipped, CalibrationPack(pack_file)));
  const LearnedKernels plain(device, shipped);
  RandomStream random(1, "calls");
  size_t answered = 0;
  for (const FormKind& kind : form_kinds()) {
    const std::filesystem::path file = device_calibration_path(shipped, device.name, kind.name);
    if (!std::filesystem::exists(file)) continue;
    EXPECT_TRUE(CalibrationPack(pack_file).device(read_raw_file(file, no_limit))) << file;
    for (int i = 0; i < 20; ++i) {
      const FormCall call = random_call(kind, random);
      for (const Tier tier : {Tier::best, Tier::cross}) {
        const auto a = packed.estimate(call.shape, call.variant, tier),
                   b = plain.estimate(call.shape, call.variant, tier);
        ASSERT_EQ(a.has_value(), b.has_value()) << kind.name;
        if (!a) continue;
        ++answered;
        EXPECT_EQ(a->seconds.value, b->seconds.value) << kind.name;
        EXPECT_EQ(a->seconds.low, b->seconds.low) << kind.name;
        EXPECT_EQ(a->seconds.high, b->seconds.high) << kind.name;
      }
    }
  }
  EXPECT_GT(answered, 100u);
}

}  // namespace foretoken::calibration_pack_test
