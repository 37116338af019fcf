#include "library/own_device.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace foretoken::own_device_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// A sweep of a few hundred multiplies that was taken on an H200, under whatever driver facts a test asks for.
class OwnDeviceTest : public testing::Test {
 protected:
  OwnDeviceTest() {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("own_device_") + info.name());
    fs::remove_all(folder_);
    fs::create_directories(sweep());
    std::ifstream rows(FORETOKEN_SOURCE_DIR "/data/measured/h200_sxm/gemm.csv");
    std::string text, line;
    for (int i = 0; i < 200 && std::getline(rows, line); ++i) text += line + "\n";
    write_file(sweep() / "gemm.csv", text);
    write_meta("NVIDIA H200", "9.0", 132);
  }
  ~OwnDeviceTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path sweep() const { return folder_ / "sweep"; }
  fs::path home() const { return folder_ / "home"; }
  Library library() const { return Library(FORETOKEN_SOURCE_DIR "/data").with_own(home()); }

  void write_meta(const std::string& device, const std::string& capability, int processors,
                  const std::string& more = "") const {
    write_file(sweep() / "meta.json",
               R"({"device": ")" + device + R"(", "compute_capability": ")" + capability + R"(", "processors": )" +
                   std::to_string(processors) +
                   R"(, "l2_bytes": 62914560, "memory_bytes": 150109880320, "power_limit_w": 650.0,
                   "max_sm_clock_mhz": 1980, "date": "2026-11-15")" +
                   more + "}\n");
  }

  OwnDevice install(const std::string& name, const std::string& like = "") const {
    return install_own_device(library(), {.sweep = sweep(), .name = name, .like = like, .progress = {}});
  }

  Device described(const std::string& like = "") const {
    std::string sheet_of;
    return described_by_sweep(library().hardware(), {.sweep = sweep(), .name = "mine", .like = like, .progress = {}},
                              sheet_of);
  }

  template <class Call>
  static std::string complaint_of(const Call& call) {
    try {
      call();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no complaint";
  }

  fs::path folder_;
};

const KernelShape layer = GemmShape{.m = 512, .n = 4096, .k = 4096};

TEST_F(OwnDeviceTest, an_installed_device_is_found_by_name_and_priced_by_its_own_sweep) {
  const OwnDevice own = install("mine");
  EXPECT_EQ(own.sheet_of, "h200_sxm");
  EXPECT_FALSE(own.replaced);
  ASSERT_EQ(own.fit.entries.size(), 1U);
  EXPECT_EQ(own.fit.entries[0].form, "gemm");
  EXPECT_EQ(library().hardware().own_device_names(), std::vector<std::string>{"mine"});
  const KernelEstimate estimate = library().predictor("mine").estimate(layer);
  EXPECT_EQ(estimate.tier, Tier::measured);
  // What the sweep lacks comes from the nearest swept device of the generation.
  const AttentionShape decode{.batch = 8, .heads = 32, .kv_heads = 8, .head_dim = 128, .q_len = 1, .kv_len = 2048};
  EXPECT_EQ(library().predictor("mine").estimate(decode).tier, Tier::sibling);
}

TEST_F(OwnDeviceTest, other_devices_are_answered_as_before) {
  const double before = library().predictor("h100_pcie").estimate(layer).seconds.value;
  install("mine");
  EXPECT_EQ(library().predictor("h100_pcie").estimate(layer).seconds.value, before);
  EXPECT_EQ(library().with_own({}).hardware().own_device_names().size(), 0U);
}

TEST_F(OwnDeviceTest, a_copied_file_is_not_taken_for_the_measured_device) {
  fs::create_directories(home() / "hardware" / "devices");
  fs::copy_file(FORETOKEN_SOURCE_DIR "/data/hardware/devices/h100_sxm.json",
                home() / "hardware" / "devices" / "my_copy.json");
  EXPECT_EQ(library().predictor("h100_sxm").estimate(layer).tier, Tier::measured);
  const KernelPredictor copy = library().predictor("my_copy");
  EXPECT_EQ(copy.device().name, "my_copy");
  EXPECT_EQ(copy.estimate(layer).tier, Tier::sibling);
  EXPECT_EQ(library().predictor(library().hardware().device("my_copy")).estimate(layer).tier, Tier::sibling);
}

TEST_F(OwnDeviceTest, installing_again_replaces) {
  install("mine");
  EXPECT_TRUE(install("mine").replaced);
  EXPECT_EQ(library().hardware().own_device_names().size(), 1U);
  EXPECT_FALSE(fs::exists(home() / ".new_mine"));
}

TEST_F(OwnDeviceTest, a_name_that_ships_is_refused) {
  EXPECT_THAT(complaint_of([&] { install("h200_sxm"); }), HasSubstr("my_h200_sxm"));
  EXPECT_THAT(complaint_of([&] { install("My GPU"); }), HasSubstr("lower-case"));
  EXPECT_FALSE(fs::exists(home()));
}

TEST_F(OwnDeviceTest, a_sweep_that_cannot_be_read_leaves_nothing_behind) {
  write_file(sweep() / "gemm.csv", "kernel,dtype,m,n,k,caches,latency_us\ntorch_linear,bf16,x,1,1,cold,1\n");
  EXPECT_THAT(complaint_of([&] { install("mine"); }), HasSubstr("gemm.csv"));
  EXPECT_TRUE(library().hardware().own_device_names().empty());
  EXPECT_FALSE(fs::exists(home() / ".new_mine"));
}

TEST_F(OwnDeviceTest, the_driver_overrules_the_sheet_of_a_known_device) {
  const Device device = described();
  EXPECT_EQ(device.power_limit->value.value(), 650);
  EXPECT_EQ(device.allocatable_memory->value.value(), 150109880320.0);
  EXPECT_EQ(device.memory_bandwidth->value.value(), 4800e9);
  EXPECT_TRUE(device.aliases.empty());
  EXPECT_FALSE(device.dense_peak[static_cast<size_t>(DType::bf16)]->assumed);
}

TEST_F(OwnDeviceTest, an_unknown_product_of_a_known_generation_gets_peaks_by_processors_and_clock) {
  write_meta("NVIDIA H199", "9.0", 66, R"(, "max_memory_clock_mhz": 2619, "memory_bus_bits": 5120)");
  const Device device = described("h200_sxm");
  const Device lender = library().hardware().device("h200_sxm");
  const auto peak = [](const Device& one) { return one.dense_peak[static_cast<size_t>(DType::bf16)]->value.value(); };
  EXPECT_NEAR(peak(device), peak(lender) / 2, 1e-3 * peak(lender));
  EXPECT_NEAR(device.memory_bandwidth->value.value(), 2 * 2619e6 * 5120 / 8, 1);
  EXPECT_EQ(device.title, "NVIDIA H199");
  EXPECT_FALSE(device.link_bandwidth.has_value());
}

TEST_F(OwnDeviceTest, an_unknown_product_does_not_get_the_host_of_another) {
  write_meta("NVIDIA H100 64GB", "9.0", 132);
  const Device device = described();
  EXPECT_FALSE(device.host_time_factor.has_value());
  EXPECT_EQ(device.host_bandwidth->value.value(),
            library().hardware().device("h100_sxm").host_bandwidth->value.value());
}

TEST_F(OwnDeviceTest, memory_is_as_fast_as_the_fastest_copy_where_the_clock_says_less) {
  write_meta("NVIDIA H199", "9.0", 66, R"(, "max_memory_clock_mhz": 1300, "memory_bus_bits": 5120)");
  write_file(sweep() / "copy.csv", "bytes,latency_us\n1000000000,1000\n");
  EXPECT_NEAR(described("h200_sxm").memory_bandwidth->value.value(), 2e12, 1e6);
}

TEST_F(OwnDeviceTest, a_sweep_on_rocm_is_an_amd_gpu_with_the_cache_of_its_sheet) {
  write_file(sweep() / "meta.json", R"({"device": "AMD Instinct MI300X", "architecture": "gfx942:sramecc+:xnack-",
      "processors": 304, "l2_bytes": 4194304, "memory_bytes": 206141652992, "power_limit_w": 750})");
  const Device device = described();
  EXPECT_EQ(device.vendor, "AMD");
  EXPECT_EQ(device.instruction_set, "gfx942");
  EXPECT_EQ(device.last_level_cache->value.value(),
            library().hardware().device("mi300x").last_level_cache->value.value());
}

TEST_F(OwnDeviceTest, an_unknown_generation_needs_a_device_to_be_like) {
  write_meta("NVIDIA X", "19.5", 132);
  EXPECT_THAT(complaint_of([&] { described(); }), AllOf(HasSubstr("like"), HasSubstr("sm_195")));
  const Device device = described("b200_sxm");
  ASSERT_TRUE(device.like.has_value());
  EXPECT_EQ(device.like->name, "b200_sxm");
}

TEST_F(OwnDeviceTest, calibrations_that_were_asked_for_stand_alone) {
  install("mine");
  const Library asked = library().with_calibrations(FORETOKEN_SOURCE_DIR "/data/kernels/calibrations");
  EXPECT_EQ(asked.predictor("mine").estimate(layer).tier, Tier::sibling);
  EXPECT_THAT(complaint_of([&] { library().with_calibrations(folder_ / "nothing"); }), HasSubstr("fit kernels"));
}

}  // namespace foretoken::own_device_test
