#include "hardware/generation.h"

#include <set>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hardware/catalogue.h"

namespace foretoken::generation_test {

HardwareCatalogue shipped() {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware");
}

TEST(Generation, an_instruction_set_belongs_to_one_generation) {
  std::set<std::string_view> seen;
  for (const GpuGeneration& generation : gpu_generations()) {
    EXPECT_TRUE(seen.insert(generation.instruction_set).second) << generation.instruction_set;
    EXPECT_EQ(find_generation(generation.instruction_set), &generation);
    EXPECT_NE(find_generation(generation.key), nullptr) << generation.key;
    EXPECT_FALSE(generation.title.empty());
  }
  EXPECT_EQ(find_generation("sm_140"), nullptr);
  EXPECT_EQ(find_generation(""), nullptr);
}

// A file that leaves a fact out is then read as the files that ship.
TEST(Generation, what_is_usual_for_a_generation_is_what_its_devices_have) {
  const HardwareCatalogue catalogue = shipped();
  int known = 0;
  for (const std::string& name : catalogue.device_names()) {
    Device device = catalogue.device(name);
    if (kernel_generation(device).key.empty()) continue;
    ++known;
    const bool stacked = has_stacked_memory(device), asynchronous = has_asynchronous_multiplies(device);
    const int exponentials = exponentials_per_clock(device);
    const int64_t graph = vllm_graph_limit(device);
    device.memory_type.reset();
    device.asynchronous_multiplies.reset();
    device.exponentials_per_clock.reset();
    device.vllm_graph_limit.reset();
    EXPECT_EQ(has_stacked_memory(device), stacked) << name;
    EXPECT_EQ(has_asynchronous_multiplies(device), asynchronous) << name;
    EXPECT_EQ(exponentials_per_clock(device), exponentials) << name;
    EXPECT_EQ(vllm_graph_limit(device), graph) << name;
  }
  EXPECT_GT(known, 25);
}

TEST(Generation, the_file_of_a_device_comes_first) {
  Device device{.instruction_set = "sm_90"};
  EXPECT_TRUE(has_stacked_memory(device));
  device.memory_type = {.value = MemoryType::gddr6};
  device.asynchronous_multiplies = {.value = false};
  device.exponentials_per_clock = {.value = 8};
  device.vllm_graph_limit = {.value = 64};
  EXPECT_FALSE(has_stacked_memory(device));
  EXPECT_FALSE(has_asynchronous_multiplies(device));
  EXPECT_EQ(exponentials_per_clock(device), 8);
  EXPECT_EQ(vllm_graph_limit(device), 64);
}

TEST(Generation, only_gpus_have_one) {
  EXPECT_EQ(kernel_generation({.instruction_set = "sm_90"}).title, "Hopper");
  EXPECT_EQ(&kernel_generation({.instruction_set = "sm_90", .kind = DeviceKind::cpu}), &no_generation);
  EXPECT_EQ(&kernel_generation({.instruction_set = "sm_140"}), &no_generation);
  EXPECT_EQ(&kernel_generation(shipped().device("tpu_v5e")), &no_generation);
  EXPECT_EQ(generation_of({.architecture = "Ironwood"}), "Ironwood");
  EXPECT_EQ(generation_of(shipped().device("b300_sxm")), generation_of(shipped().device("b200_sxm")));
  EXPECT_NE(generation_of(shipped().device("rtx_pro_6000_server")), generation_of(shipped().device("b200_sxm")));
}

TEST(Generation, capabilities_have_the_names_of_their_generations) {
  const std::pair<const char*, int> named[] = {{"Volta", volta_capability},
                                               {"Turing", turing_capability},
                                               {"Ampere", ampere_capability},
                                               {"Hopper", hopper_capability},
                                               {"Blackwell", blackwell_capability}};
  for (const auto& [title, capability] : named) {
    const GpuGeneration* const generation = find_generation(fmt::format("sm_{}", capability));
    ASSERT_NE(generation, nullptr) << title;
    EXPECT_EQ(generation->title, title);
    EXPECT_EQ(generation->cuda_capability, capability);
  }
}

TEST(Generation, a_device_that_is_like_another_has_that_ones) {
  const Device device{.instruction_set = "sm_140",
                      .like = LikeDevice{.name = "b200_sxm", .title = "B200", .instruction_set = "sm_100"}};
  EXPECT_EQ(kernel_generation(device).title, "Blackwell");
  EXPECT_EQ(generation_of(device), "sm_100");
}

}  // namespace foretoken::generation_test
