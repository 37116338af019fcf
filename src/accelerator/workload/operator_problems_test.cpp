#include "accelerator/workload/operator_problems.h"

#include <gtest/gtest.h>

#include "model/work.h"

namespace foretoken::operator_problems_test {

double flops(const KernelShape& shape) {
  double sum = 0;
  for (const CountedProblem& own : operator_problems(shape)) sum += 2 * operations(own.problem) * own.count;
  return sum;
}

TEST(OperatorProblems, do_the_operations_of_their_operator) {
  const std::vector<KernelShape> shapes = {
      GemmShape{.m = 100, .n = 200, .k = 300, .batch = 4},
      ConvShape{.batch = 2,
                .in_channels = 64,
                .out_channels = 128,
                .height = 56,
                .width = 28,
                .kernel_height = 3,
                .kernel_width = 3,
                .stride = 2,
                .padding = 1},
      ConvShape{.in_channels = 32,
                .out_channels = 32,
                .height = 16,
                .width = 16,
                .kernel_height = 3,
                .kernel_width = 3,
                .padding = 1,
                .groups = 32},
      AttentionShape{.batch = 2, .heads = 32, .kv_heads = 8, .q_len = 512, .kv_len = 1024},
      AttentionShape{.phase = AttentionPhase::decode, .batch = 64, .heads = 32, .kv_heads = 8, .kv_len = 4096},
      LatentAttentionShape{.phase = AttentionPhase::decode, .batch = 8, .heads = 128, .kv_len = 2048},
      MoeShape{.tokens = 256, .hidden = 2048, .inter = 768, .top_k = 8, .experts = 128},
  };
  for (const KernelShape& shape : shapes) {
    EXPECT_NEAR(flops(shape) / count_work(shape).flops.value(), 1, 1e-9) << family_name(shape);
    for (const CountedProblem& own : operator_problems(shape)) EXPECT_EQ(problem_fault(own.problem), "");
  }
}

TEST(OperatorProblems, what_does_not_multiply_has_none) {
  EXPECT_TRUE(operator_problems(NormShape{.rows = 10, .width = 20}).empty());
  EXPECT_TRUE(operator_problems(ActivationShape{.rows = 10, .width = 20}).empty());
}

TEST(OperatorProblems, a_convolution_reads_the_rows_its_windows_cover) {
  const auto problems = operator_problems(ConvShape{.in_channels = 3,
                                                    .out_channels = 64,
                                                    .height = 224,
                                                    .width = 224,
                                                    .kernel_height = 7,
                                                    .kernel_width = 7,
                                                    .stride = 2,
                                                    .padding = 3});
  const Problem& conv = problems.front().problem;
  EXPECT_EQ(tensor_words(conv.tensors[find_tensor(conv, "Inputs")], conv), 3 * 229 * 229);
  EXPECT_EQ(tensor_words(conv.tensors[find_tensor(conv, "Outputs")], conv), 64 * 112 * 112);
}

}  // namespace foretoken::operator_problems_test
