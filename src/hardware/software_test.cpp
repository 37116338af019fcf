#include "hardware/software.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/catalogue.h"

namespace foretoken::software_test {

using testing::HasSubstr;

HardwareCatalogue shipped() {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware");
}

TEST(Software, every_shipped_device_has_a_platform_and_something_that_runs_there) {
  const HardwareCatalogue catalogue = shipped();
  std::set<std::string_view> seen;
  for (const std::string& name : catalogue.device_names()) {
    const Device device = catalogue.device(name);
    const Platform* platform = platform_of(device);
    ASSERT_NE(platform, nullptr) << name;
    seen.insert(platform->name);
    EXPECT_FALSE(software_of(device).empty()) << name;
    for (const Software& one : software_of(device)) EXPECT_FALSE(one.source.empty()) << name;
  }
  EXPECT_EQ(seen.size(), platforms().size()) << "a platform without a device";
}

TEST(Software, tensorrt_llm_runs_on_nvidia_gpus_since_ampere_alone) {
  const HardwareCatalogue catalogue = shipped();
  for (const char* name : {"a100_sxm", "h100_sxm", "rtx_5090", "gb10"}) {
    EXPECT_TRUE(software_runs_on("trtllm", catalogue.device(name))) << name;
  }
  for (const char* name : {"t4", "v100_sxm", "mi300x", "tpu_v6e", "gaudi3", "trainium2", "m3_ultra", "xeon_8480"}) {
    EXPECT_FALSE(software_runs_on("trtllm", catalogue.device(name))) << name;
  }
  EXPECT_EQ(hardware_of_software("trtllm"), "NVIDIA GPUs since Ampere");
}

TEST(Software, a_pascal_gpu_is_too_old_for_the_engines) {
  const Device p100 = shipped().device("p100");
  for (const char* engine : {"vllm", "sglang", "trtllm"}) EXPECT_FALSE(software_runs_on(engine, p100)) << engine;
  EXPECT_TRUE(software_runs_on("llama.cpp", p100));
}

TEST(Software, other_accelerators_need_a_plugin_of_vllm) {
  const HardwareCatalogue catalogue = shipped();
  EXPECT_THAT(std::string(software_needs("vllm", catalogue.device("tpu_v7"))), HasSubstr("tpu-inference"));
  EXPECT_THAT(std::string(software_needs("vllm", catalogue.device("gaudi3"))), HasSubstr("vllm-gaudi"));
  EXPECT_THAT(std::string(software_needs("vllm", catalogue.device("trainium2"))), HasSubstr("vllm-neuron"));
  EXPECT_THAT(std::string(software_needs("vllm", catalogue.device("m4_max"))), HasSubstr("vllm-metal"));
  EXPECT_EQ(software_needs("vllm", catalogue.device("h100_sxm")), "");
  EXPECT_EQ(software_needs("vllm", catalogue.device("mi300x")), "");
}

TEST(Software, a_described_accelerator_belongs_to_no_platform) {
  Device design{.name = "own", .vendor = "NVIDIA", .accelerator = "{}"};
  EXPECT_EQ(platform_of(design), nullptr);
  EXPECT_TRUE(software_runs_on("vllm", design));
  EXPECT_FALSE(software_runs_on("trtllm", design));
}

}  // namespace foretoken::software_test
