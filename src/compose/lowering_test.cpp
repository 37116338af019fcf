#include "compose/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::lowering_test {

using testing::HasSubstr;

Stack stack_with(const std::string& members) {
  return parse_stack(
      R"({"format": 1, "name": "mine", "summary": "s", "source": "t", "dispatch": {})" + (", " + members + "}"),
      "mine.json");
}

std::vector<Operator> layer() {
  return {{.name = "norm", .count = 2, .shape = NormShape{.rows = 8, .width = 64, .adds_residual = true}},
          {.name = "qkv_proj", .count = 2, .shape = GemmShape{.m = 8, .n = 96, .k = 64}},
          {.name = "attention",
           .count = 2,
           .shape = AttentionShape{.phase = AttentionPhase::decode, .batch = 8, .heads = 4, .kv_heads = 2}},
          {.name = "tp_all_reduce", .count = 2, .shape = CollectiveShape{}}};
}

std::vector<Launch> lowered(const std::string& members, const std::vector<Operator>& operators = layer()) {
  return lower(stack_with(members), operators, {.phase = StepPhase::decode, .model = "llama"});
}

TEST(Lowering, without_rules_every_operator_is_one_kernel) {
  const std::vector<Launch> launches = lowered(R"("kernels": {"gemm": "torch_linear"})");
  const std::vector<Operator> operators = layer();
  ASSERT_EQ(launches.size(), operators.size());
  for (size_t i = 0; i < launches.size(); ++i) {
    EXPECT_EQ(launches[i].call, i);
    EXPECT_EQ(launches[i].name, operators[i].name);
    EXPECT_EQ(launches[i].count, operators[i].count);
    EXPECT_EQ(launches[i].variant, operators[i].name == "qkv_proj" ? "torch_linear" : "");
  }
}

TEST(Lowering, rules_may_ask_how_many_ranks_share_a_layer) {
  const std::string fused = R"("rules": [{"when": {"family": "norm", "if": "1 < ranks"}, "emit": []}])";
  std::vector<Operator> operators = layer();
  EXPECT_EQ(lowered(fused, operators).size(), 4U);
  std::get<CollectiveShape>(operators[3].shape).ranks = 4;
  EXPECT_EQ(lowered(fused, operators).size(), 3U) << "the norm runs inside the all-reduce";
}

TEST(Lowering, a_rule_that_names_an_all_reduce_chooses_its_kernel) {
  std::vector<Operator> operators = layer();
  operators[3].shape = CollectiveShape{.ranks = 8, .bytes = 262144};
  const auto kernel_of = [&](const std::string& rule) {
    return lowered(R"("kernels": {"collective": "vllm"}, "rules": [)" + rule + "]", operators).back().variant;
  };
  EXPECT_EQ(
      kernel_of(R"({"when": {"name": "tp_all_reduce", "if": "bytes <= 262144"}, "emit": [{"kernel": "trtllm"}]})"),
      "trtllm");
  EXPECT_EQ(kernel_of(R"({"when": {"name": "tp_all_reduce", "if": "bytes < 262144"}, "emit": [{"kernel": "trtllm"}]})"),
            "vllm");
  EXPECT_EQ(kernel_of(R"({"when": {"phase": "decode"}, "emit": [{"kernel": "trtllm"}]})"), "vllm")
      << "a rule for operators of any name is not for collectives";
}

TEST(Lowering, vllm_runs_the_fused_all_reduce_on_blackwell_only_since_it_fuses) {
  const StackCatalogue stacks(FORETOKEN_SOURCE_DIR "/data/stacks");
  std::vector<Operator> operators = layer();
  operators[0].name = "input_norm";
  const auto all_reduce_kernel = [&](const char* stack, std::string_view generation, double bytes) {
    operators[3].shape = CollectiveShape{.ranks = 8, .bytes = bytes};
    return lower(stacks.stack(stack), operators, {.model = "llama", .generation = generation}).back().variant;
  };
  constexpr double quarter_mib = 262144, largest_fused = 1048576;
  EXPECT_EQ(all_reduce_kernel("vllm", "Blackwell", quarter_mib), "trtllm");
  EXPECT_EQ(all_reduce_kernel("vllm", "Blackwell Ultra", largest_fused), "trtllm");
  EXPECT_EQ(all_reduce_kernel("vllm", "Blackwell", largest_fused + 2), "vllm");
  EXPECT_EQ(all_reduce_kernel("vllm", "Hopper", quarter_mib), "vllm");
  EXPECT_EQ(all_reduce_kernel("vllm-0.14", "Blackwell", quarter_mib), "vllm");
  EXPECT_EQ(all_reduce_kernel("vllm-0.10-fused", "Blackwell", quarter_mib), "trtllm");
}

// The kernel layer knows what odd sizes cost in n and k; TorchInductor pads them.
TEST(Lowering, heads_of_odd_size_are_multiplied_once_and_padded_where_they_are_compiled) {
  const StackCatalogue stacks(FORETOKEN_SOURCE_DIR "/data/stacks");
  const Operator forward{.name = "lm_head", .shape = GemmShape{.m = 64, .n = 50257, .k = 768}};
  const Operator inputs{
      .name = "lm_head_dgrad", .pass = Pass::backward, .shape = GemmShape{.m = 64, .n = 768, .k = 50257}};
  const auto launches = [&](const char* stack, const Operator& one) {
    return lower(stacks.stack(stack), {one}, {.phase = StepPhase::train, .model = "gpt2"});
  };
  for (const char* stack : {"hf-eager", "torch-eager", "hf-eager-autocast"}) {
    for (const Operator& one : {forward, inputs}) {
      const std::vector<Launch> eager = launches(stack, one);
      ASSERT_EQ(eager.size(), 1U) << stack;
      EXPECT_EQ(eager[0].count, 1) << stack << " " << one.name;
      EXPECT_EQ(eager[0].shape, one.shape) << stack << " " << one.name;
    }
  }
  const auto padded = [&](const Operator& one) {
    return std::get<GemmShape>(launches("torch-compile", one).back().shape);
  };
  EXPECT_EQ(padded(forward).n, 50264);
  EXPECT_EQ(padded(inputs).k, 50264);
  const Operator aligned{.name = "lm_head", .shape = GemmShape{.m = 64, .n = 50304, .k = 768}};
  EXPECT_EQ(launches("torch-compile", aligned).size(), 1U);
}

TEST(Lowering, rules_may_be_for_some_generations_of_gpus) {
  const Stack stack =
      stack_with(R"("rules": [{"when": {"family": "norm", "generation": ["Hopper", "Ada"]}, "emit": []}])");
  const auto launches_on = [&](std::string_view generation) {
    return lower(stack, layer(), {.phase = StepPhase::decode, .model = "llama", .generation = generation}).size();
  };
  EXPECT_EQ(launches_on("Hopper"), 3U);
  EXPECT_EQ(launches_on("Blackwell"), 4U);
  EXPECT_EQ(launches_on(""), 4U);
}

TEST(Lowering, prompts_and_decodes_share_a_kernel_unless_the_stack_splits_them) {
  MixedAttentionShape batch{.heads = 4, .kv_heads = 2};
  batch.add_prompts(1, 100, 300);
  batch.add_decodes(8, 50);
  const std::vector<Operator> operators = {{.name = "attention", .count = 2, .shape = batch}};
  EXPECT_EQ(lowered(R"("kernels": {})", operators).size(), 1U);
  const std::vector<Launch> split =
      lowered(R"("split_mixed_attention": true, "kernels": {"attention_decode": "trtllm"})", operators);
  ASSERT_EQ(split.size(), 2U);
  EXPECT_EQ(std::get<AttentionShape>(split[0].shape).q_len, 100);
  EXPECT_EQ(split[0].variant, "");
  EXPECT_EQ(std::get<AttentionShape>(split[1].shape).batch, 8);
  EXPECT_EQ(split[1].variant, "trtllm");
  EXPECT_EQ(split[1].count, 2);
}

TEST(Lowering, a_rule_turns_an_operator_into_its_kernels) {
  const std::vector<Launch> launches = lowered(
      R"("rules": [{"when": {"family": "norm"}, "host_us": 25, "emit": [
           {"family": "elementwise", "kernel": "torch_add", "elements": "rows * width", "inputs": 2, "name": "add"},
           {"name": "scale", "times": 3, "residual": 0}]}])");
  ASSERT_EQ(launches.size(), 5U);
  EXPECT_EQ(launches[0].name, "add");
  EXPECT_EQ(launches[0].variant, "torch_add");
  EXPECT_EQ(std::get<ElementwiseShape>(launches[0].shape).elements, 8 * 64);
  EXPECT_DOUBLE_EQ(launches[0].host_before.value(), 25e-6);
  EXPECT_EQ(launches[1].name, "scale");
  EXPECT_EQ(launches[1].count, 6);
  EXPECT_FALSE(std::get<NormShape>(launches[1].shape).adds_residual);
  EXPECT_EQ(std::get<NormShape>(launches[1].shape).width, 64) << "fields that a rule does not set stay";
  EXPECT_EQ(launches[1].host_before.value(), 0) << "the operator's own cost is paid once";
}

TEST(Lowering, the_first_rule_that_fits_decides) {
  const std::vector<Launch> launches = lowered(
      R"("rules": [{"when": {"name": "qkv_proj"}, "emit": [{"name": "first"}]},
                   {"when": {"family": "gemm"}, "emit": [{"name": "second"}]}])");
  EXPECT_EQ(launches.at(1).name, "first");
}

TEST(Lowering, an_operator_that_a_rule_consumes_has_no_kernel_of_its_own) {
  const std::string rule =
      R"("rules": [{"when": {"family": "norm"}, "then": [{"family": "gemm"}], "emit": [{"name": "both"}]}])";
  const std::vector<Launch> launches = lowered(rule);
  ASSERT_EQ(launches.size(), 3U);
  EXPECT_EQ(launches[0].name, "both");
  EXPECT_EQ(launches[1].name, "attention");
  const std::vector<Operator> alone = {layer()[0]};
  EXPECT_EQ(lowered(rule, alone).at(0).name, "norm") << "what must follow does not";
}

TEST(Lowering, an_operator_may_cost_no_kernel) {
  EXPECT_EQ(lowered(R"("rules": [{"when": {"family": "norm"}, "emit": []}])").size(), 3U);
  EXPECT_EQ(lowered(R"("rules": [{"when": {"family": "norm"}, "emit": [{"times": "0 * rows"}]}])").size(), 3U);
}

TEST(Lowering, names_that_the_operator_lacks_are_those_of_the_nearest_attention) {
  const std::vector<Launch> launches = lowered(
      R"("rules": [{"when": {"family": "norm"},
                    "emit": [{"family": "elementwise", "elements": "rows * heads + kv_heads"}]}])");
  EXPECT_EQ(std::get<ElementwiseShape>(launches.at(0).shape).elements, 8 * 4 + 2);
}

TEST(Lowering, a_field_that_does_not_exist_or_does_not_fit_is_told) {
  for (const char* emit : {R"({"times": "pages"})", R"({"pages": 1})", R"({"rows": "0 - 5"})"}) {
    try {
      lowered(std::string(R"("rules": [{"when": {"family": "norm"}, "emit": [)") + emit + "]}]");
      FAIL() << emit;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("mine")) << emit;
    }
  }
}

TEST(Lowering, collectives_are_left_alone) {
  EXPECT_EQ(lowered(R"("rules": [{"when": {}, "emit": []}])").size(), 1U);
}

TEST(Lowering, host_costs_are_the_named_class_then_the_family_then_the_default) {
  const std::vector<Launch> launches = lowered(
      R"("costs": {"host_us": {"default": 1, "norm": 2, "slow": 3}},
         "rules": [{"when": {"family": "gemm"}, "emit": [{"host": "slow"}]}])");
  EXPECT_DOUBLE_EQ(launches.at(0).host.value(), 2e-6);
  EXPECT_DOUBLE_EQ(launches.at(1).host.value(), 3e-6);
  EXPECT_DOUBLE_EQ(launches.at(2).host.value(), 1e-6);
}

}  // namespace foretoken::lowering_test
