#include "compose/captured_sizes.h"

#include <gtest/gtest.h>

namespace foretoken::captured_sizes_test {

constexpr const char* compiled = R"({
  "format": 1, "name": "s", "summary": "s", "source": "s",
  "dispatch": {"prefill": "piecewise", "decode": "graph"}, "graph_sizes": [1, 2, 4],
  "costs": {"host_low": 0.5, "host_high": 1.6, "host_us": {"default": 40, "norm": 50},
            "uncompiled": {"host_us": {"default": 25, "norm": 25, "gemm": 30, "attention_decode": 60}, "host_low": 0.6, "host_high": 1.8}}
})";

TEST(RunUncompiled, python_launches_every_kernel_of_every_step) {
  Stack stack = parse_stack(compiled, "test");
  run_uncompiled(stack);
  EXPECT_TRUE(stack.graph_sizes.empty());
  EXPECT_EQ(stack.dispatch_of(StepPhase::decode, 1), Dispatch::eager);
  EXPECT_EQ(stack.dispatch_of(StepPhase::prefill, 512), Dispatch::eager);
}

TEST(RunUncompiled, a_launch_costs_what_python_needs_and_never_less_than_in_compiled_steps) {
  Stack stack = parse_stack(compiled, "test");
  EXPECT_DOUBLE_EQ(stack.costs.host.at("default").value(), 40e-6) << "only where nothing is compiled";
  run_uncompiled(stack);
  const auto& host = stack.costs.host;
  EXPECT_DOUBLE_EQ(host.at("attention_decode").value(), 60e-6);
  EXPECT_DOUBLE_EQ(host.at("gemm").value(), 40e-6);
  EXPECT_DOUBLE_EQ(host.at("norm").value(), 50e-6);
  EXPECT_DOUBLE_EQ(host.at("default").value(), 40e-6);
  EXPECT_DOUBLE_EQ(stack.costs.host_low, 0.6);
  EXPECT_DOUBLE_EQ(stack.costs.host_high, 1.8);
}

TEST(RunUncompiled, a_stack_without_such_costs_keeps_its_own) {
  Stack stack = parse_stack(
      R"({"format": 1, "name": "s", "summary": "s", "source": "s", "dispatch": {"decode": "graph"}, "costs": {"host_us": {"default": 8}}})",
      "test");
  run_uncompiled(stack);
  EXPECT_EQ(stack.costs.host.size(), 1U);
  EXPECT_EQ(stack.dispatch_of(StepPhase::decode, 1), Dispatch::eager);
}

}  // namespace foretoken::captured_sizes_test
