#include "compose/vendor_stack.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/catalogue.h"

namespace foretoken::vendor_stack_test {

Device device(const char* name) {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(name);
}

const StackCatalogue shipped(FORETOKEN_SOURCE_DIR "/data/stacks");

std::string name_on(const char* name, const char* of_device) {
  return stack_on(device(of_device), name, [](const std::string& one) { return shipped.stack(one); }).name;
}

TEST(VendorStack, engines_have_stacks_of_their_own_on_amds_gpus) {
  for (const char* of_device : {"mi300x", "mi325x", "mi355x"}) {
    EXPECT_EQ(name_on("vllm", of_device), "vllm-rocm");
    EXPECT_EQ(name_on("vllm-0.14", of_device), "vllm-rocm");
    EXPECT_EQ(name_on("vllm-0.11", of_device), "vllm-0.10-rocm");
    EXPECT_EQ(name_on("vllm-0.10", of_device), "vllm-0.10-rocm");
    EXPECT_EQ(name_on("sglang", of_device), "sglang-rocm");
    EXPECT_EQ(name_on("sglang-0.5.10", of_device), "sglang-0.5.10-rocm");
    EXPECT_EQ(name_on("torch-graph", of_device), "torch-graph");
  }
  for (const char* name : {"vllm", "vllm-0.14", "vllm-0.11", "vllm-0.10", "sglang"}) {
    EXPECT_EQ(name_on(name, "h100_sxm"), name);
    EXPECT_EQ(name_on(name, "epyc_9654"), name) << "a CPU of the same vendor";
  }
}

TEST(VendorStack, every_form_that_ships_is_there_and_has_no_further_form) {
  for (const std::string& name : shipped.names()) {
    for (const auto& [platform, form] : shipped.stack(name).on) EXPECT_TRUE(shipped.stack(form).on.empty()) << form;
  }
}

// Its scheduler does not hide the host's part of steps with drafts, whatever the GPU.
TEST(VendorStack, releases_keep_their_host_times_on_amds_gpus) {
  EXPECT_EQ(shipped.stack("sglang-0.5.10-rocm").costs.step_host, shipped.stack("sglang-0.5.10").costs.step_host);
  EXPECT_LT(shipped.stack("sglang-rocm").costs.step_host, shipped.stack("sglang-0.5.10").costs.step_host);
}

Stack made_up(const std::string& name, const std::string& members) {
  return parse_stack(
      R"({"format": 1, "summary": "s", "source": "t", "dispatch": {}, "name": ")" + name + '"' + members + "}",
      name + ".json");
}

TEST(VendorStack, another_platform_is_data_alone) {
  const StackFinder find = [](const std::string& name) {
    return name == "mine" ? made_up(name, R"(, "on": {"tpu": "mine-on-tpus", "xpu": "mine-on-intel"})")
                          : made_up(name, "");
  };
  EXPECT_EQ(stack_on(device("tpu_v5e"), "mine", find).name, "mine-on-tpus");
  EXPECT_EQ(stack_on(device("h100_sxm"), "mine", find).name, "mine");
  EXPECT_EQ(stack_on(device("tpu_v5e"), "yours", find).name, "yours");
}

TEST(VendorStack, the_host_of_a_grace_superchip_takes_longer_than_that_of_a_board) {
  const auto costs_on = [](const char* of_device) {
    return stack_on(device(of_device), "sglang", [](const std::string& one) { return shipped.stack(one); }).costs;
  };
  const StackCosts board = costs_on("b300_sxm"), superchip = costs_on("gb300");
  EXPECT_GT(superchip.step_host.value(), board.step_host.value());
  EXPECT_GT(superchip.host.at("moe").value(), board.host.at("moe").value());
  EXPECT_GT(superchip.front.token.value(), board.front.token.value());
  EXPECT_EQ(superchip.graph_gap.value(), board.graph_gap.value()) << "the device's own time";
  const StackFinder file = [](const std::string&) { return shipped.stack("sglang"); };
  EXPECT_EQ(stack_on(device("gb300"), "./measured.json", file).costs.step_host.value(), board.step_host.value());
}

TEST(VendorStack, a_platform_that_nobody_knows_is_refused) {
  EXPECT_THROW(made_up("mine", R"(, "on": {"rocn": "other"})"), InputError);
}

}  // namespace foretoken::vendor_stack_test
