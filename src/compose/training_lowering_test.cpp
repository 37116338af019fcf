#include "compose/training_lowering.h"

#include <gtest/gtest.h>

#include "model/step_test_models.h"

namespace foretoken::training_lowering_test {

using step_test::llama_like;
using step_test::mixtral_like;

std::vector<Operator> operators_of(const Model& model, const ParallelPlan& plan = {}) {
  return stage_operators(
      model, {.phase = StepPhase::train, .batch = 2, .input_len = 2048, .routing = Routing::balanced}, plan, 0);
}

std::vector<TrainingCall> of_kind(const std::vector<TrainingCall>& calls, CostKind kind) {
  std::vector<TrainingCall> found;
  for (const TrainingCall& call : calls) {
    if (call.kind == kind) found.push_back(call);
  }
  return found;
}

TEST(TrainingLowering, keeps_every_call_of_a_dense_model_but_those_of_once_a_step) {
  std::vector<Operator> operators = operators_of(llama_like(), {.tensor = 2, .data = 4});
  const std::vector<TrainingCall> calls = training_calls(operators, {});
  std::erase_if(operators, [](const Operator& call) {
    const auto* collective = std::get_if<CollectiveShape>(&call.shape);
    return call.part == StepPart::optimizer || (collective != nullptr && collective->axis == ParallelAxis::data);
  });
  ASSERT_EQ(calls.size(), operators.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].call.name, operators[i].name);
    EXPECT_EQ(calls[i].call.count, operators[i].count);
    EXPECT_EQ(calls[i].call.shape, operators[i].shape);
    EXPECT_EQ(calls[i].pass == TrainingPass::forward, operators[i].pass == Pass::forward);
    EXPECT_EQ(calls[i].share, 1);
  }
  EXPECT_FALSE(of_kind(calls, CostKind::tensor).empty());
}

TEST(TrainingLowering, of_packed_documents_reads_every_token_once) {
  for (const int64_t packed : {512, 600}) {
    const std::vector<TrainingCall> calls =
        training_calls(operators_of(llama_like()), {.sequence_length = 2048, .packed_length = packed});
    int64_t forward_tokens = 0, layers = 0;
    for (const TrainingCall& call : of_kind(calls, CostKind::attention)) {
      if (call.pass != TrainingPass::forward) continue;
      const auto& shape = std::get<AttentionShape>(call.call.shape);
      EXPECT_LE(shape.q_len, packed);
      forward_tokens += shape.batch * shape.q_len;
      layers = call.call.count;
    }
    EXPECT_EQ(forward_tokens, 2 * 2048) << packed << " tokens, in each of " << layers << " layers";
  }
}

TEST(TrainingLowering, of_unfused_attention_multiplies_twice_as_often_backward) {
  const std::vector<TrainingCall> calls =
      training_calls(operators_of(llama_like()), {.attention = AttentionKernel::unfused});
  int64_t forward = 0, backward = 0;
  for (const TrainingCall& call : of_kind(calls, CostKind::attention)) {
    if (!std::holds_alternative<GemmShape>(call.call.shape)) continue;
    (call.pass == TrainingPass::forward ? forward : backward) += call.call.count;
  }
  EXPECT_GT(forward, 0);
  EXPECT_EQ(backward, 2 * forward);
}

TEST(TrainingLowering, tensor_ranks_gather_what_is_quantized_in_fewer_bytes_and_scatter_the_rest_whole) {
  const std::vector<Operator> operators = operators_of(llama_like(), {.tensor = 2, .sequence = true});
  const std::vector<TrainingCall> whole = of_kind(training_calls(operators, {}), CostKind::tensor);
  const std::vector<TrainingCall> less =
      of_kind(training_calls(operators, {.gathered = {.forward = 0.5, .backward = 0.75}}), CostKind::tensor);
  ASSERT_EQ(less.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto& before = std::get<CollectiveShape>(whole[i].call.shape);
    const double share = before.kind != CollectiveKind::all_gather ? 1
                         : whole[i].pass == TrainingPass::forward  ? 0.5
                                                                   : 0.75;
    EXPECT_EQ(std::get<CollectiveShape>(less[i].call.shape).bytes, share * before.bytes) << whole[i].call.name;
  }
}

TEST(TrainingLowering, quantized_multiplies_cast_inputs_and_gradients_once) {
  const Model quantized = with_scheme(llama_like(), Scheme::fp8, Scheme::fp8);
  for (const TrainingCall& call : of_kind(training_calls(operators_of(quantized), {}), CostKind::quantized)) {
    EXPECT_EQ(call.cast_elements == 0, call.pass == TrainingPass::backward_weight) << call.call.name;
  }
}

TEST(TrainingLowering, adapters_are_scaled_and_summed_in_passes_of_their_own) {
  const auto operators = stage_operators(
      llama_like(), {.phase = StepPhase::train, .batch = 1, .input_len = 512, .lora = {.rank = 16, .on_mlp = false}},
      {}, 0);
  double forward = 0, backward = 0;
  for (const TrainingCall& call : of_kind(training_calls(operators, {}), CostKind::passes)) {
    if (call.call.name.find("qkv_proj_lora") == std::string::npos) continue;
    const auto& shape = std::get<ElementwiseShape>(call.call.shape);
    (call.pass == TrainingPass::forward ? forward : backward) +=
        static_cast<double>(shape.elements * (shape.inputs + shape.outputs));
  }
  EXPECT_EQ(forward, 512 * 24 * 64 * 5);
  EXPECT_EQ(backward, 512 * (24 * 64 * 2 + 1024 * 3));
}

TEST(TrainingLowering, dropout_lengthens_attention_and_adds_a_pass_to_the_backward_of_each_sum) {
  const std::vector<Operator> operators = operators_of(llama_like());
  const auto sum_of = [&](const Dropout& dropout, CostKind kind) {
    double sum = 0;
    for (const TrainingCall& call : of_kind(training_calls(operators, {.dropout = dropout}), kind)) {
      sum += call.share * static_cast<double>(call.call.count);
    }
    return sum;
  };
  EXPECT_DOUBLE_EQ(sum_of({.attention = true}, CostKind::attention), 1.2 * sum_of({}, CostKind::attention));
  EXPECT_EQ(sum_of({.hidden = true}, CostKind::attention), sum_of({}, CostKind::attention));
  EXPECT_GT(sum_of({.hidden = true}, CostKind::passes), sum_of({}, CostKind::passes));
}

TEST(TrainingLowering, of_experts_makes_grouped_multiplies_with_tokens_rounded_up_to_a_tile) {
  const std::vector<TrainingCall> calls = training_calls(operators_of(mixtral_like()), {});
  const std::vector<TrainingCall> experts = of_kind(calls, CostKind::experts);
  ASSERT_EQ(experts.size(), 6U);  // two multiplies for each of the three passes
  for (const TrainingCall& call : experts) {
    const auto& shape = std::get<GemmShape>(call.call.shape);
    const bool of_weights = call.pass == TrainingPass::backward_weight;
    EXPECT_EQ((of_weights ? shape.k : shape.m) % 128, 0) << call.call.name;
    EXPECT_EQ(call.cast_elements, 0) << "16-bit multiplies cast nothing";
  }
  const auto& up = std::get<GemmShape>(experts.front().call.shape);
  EXPECT_GT(experts.front().expert_elements, 0);
  // Gate, up and their product of each routed token, for two widths of what it reads and gives.
  EXPECT_DOUBLE_EQ(experts.front().between_elements / experts.front().expert_elements,
                   1.5 * static_cast<double>(up.n) / (2 * static_cast<double>(up.k)));
  for (const TrainingCall& call : experts) EXPECT_EQ(call.expert_starts, experts.front().expert_starts);
}

}  // namespace foretoken::training_lowering_test
