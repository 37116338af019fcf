#include "training/piece_costs.h"

#include <gtest/gtest.h>

#include "model/part_memory.h"
#include "model/step_test_models.h"
#include "model/weights.h"
#include "training/test_machine.h"

namespace foretoken::piece_costs_test {

using step_test::deepseek_like;
using step_test::llama_like;
using step_test::mixtral_like;
using step_test::t5_like;
using training_test::roofline_machine;

constexpr int64_t piece_batch = 2, piece_length = 2048;

PieceRequest piece_request(const ParallelPlan& plan) {
  return {.micro_batch = piece_batch, .sequence_length = piece_length, .parallel = plan};
}

PieceCosts first_layer_costs(const Model& model, const PieceRequest& request, const MachineModels& machine) {
  return layer_costs(model, model.layers.back(), request, machine.machine());
}

// What textbooks count, as times of the network layer: bytes as in nccl-tests (model/shapes.h).
class PieceTraffic : public testing::Test {
 protected:
  double seconds(CollectiveKind kind, double bytes, int64_t ranks, int64_t stride = 1) const {
    return machine_->machine()
        .network->estimate({.kind = kind, .bytes = bytes, .group = ProcessGroup::strided(0, ranks, stride)})
        .seconds.value;
  }
  std::unique_ptr<MachineModels> machine_ = roofline_machine(4);
};

constexpr double token_bytes = piece_batch * piece_length * 2.0;  // of one 16-bit value for each token

TEST_F(PieceTraffic, of_tensor_ranks_is_two_all_reduces_each_way) {
  for (const int64_t tensor : {2, 4}) {
    const PieceCosts costs = first_layer_costs(llama_like(), piece_request({.tensor = tensor}), *machine_);
    const double once = seconds(CollectiveKind::all_reduce, token_bytes * 1024, tensor);
    EXPECT_NEAR(costs.forward.tensor.value, 2 * once, 1e-9 * once);
    EXPECT_NEAR(costs.backward_input.tensor.value, 2 * once, 1e-9 * once);
    EXPECT_EQ(costs.backward_weight.tensor.value, 0);
  }
}

// What was gathered is not kept, so it is gathered twice more in the backward pass (arXiv 2205.05198, section 4.2.2).
TEST_F(PieceTraffic, of_sequence_parallel_ranks_is_gathers_and_scatters_of_the_same_size) {
  const PieceCosts costs = first_layer_costs(llama_like(), piece_request({.tensor = 4, .sequence = true}), *machine_);
  const double gather = seconds(CollectiveKind::all_gather, token_bytes * 1024, 4);
  const double scatter = seconds(CollectiveKind::reduce_scatter, token_bytes * 1024, 4);
  EXPECT_NEAR(costs.forward.tensor.value, 2 * gather + 2 * scatter, 1e-9 * gather);
  EXPECT_NEAR(costs.backward_input.tensor.value, 4 * gather + 2 * scatter, 1e-9 * gather);
}

// Keys and values of 4 heads of 64: a ring passes every block to all others, as a gather does.
TEST_F(PieceTraffic, of_context_ranks_is_keys_and_values_once_forward_and_with_gradients_backward) {
  const PieceCosts costs = first_layer_costs(llama_like(), piece_request({.tensor = 2, .context = 4}), *machine_);
  const double bytes = token_bytes * 2 * 4 * 64 / 2;
  const double gather = seconds(CollectiveKind::all_gather, bytes, 4, 2);
  const double scatter = seconds(CollectiveKind::reduce_scatter, bytes, 4, 2);
  EXPECT_NEAR(costs.forward.context.value, gather, 1e-9 * gather);
  EXPECT_NEAR(costs.backward_input.context.value, gather + scatter, 1e-9 * gather);
}

// Queries and results of 16 heads, keys and values of 4 (arXiv 2309.14509, section 3.2).
TEST_F(PieceTraffic, of_all_to_all_context_ranks_is_four_exchanges_of_heads_each_way) {
  PieceRequest request = piece_request({.context = 4});
  request.context_exchange = ContextExchange::all_to_all;
  const PieceCosts costs = first_layer_costs(llama_like(), request, *machine_);
  const double all = 2 * seconds(CollectiveKind::all_to_all, token_bytes / 4 * 16 * 64, 4) +
                     2 * seconds(CollectiveKind::all_to_all, token_bytes / 4 * 4 * 64, 4);
  EXPECT_NEAR(costs.forward.context.value, all, 1e-9 * all);
  EXPECT_NEAR(costs.backward_input.context.value, all, 1e-9 * all);
}

TEST_F(PieceTraffic, of_expert_ranks_is_the_routed_copies_there_and_back_each_way) {
  const PieceCosts costs = first_layer_costs(mixtral_like(), piece_request({.data = 8, .expert = 8}), *machine_);
  const double once = seconds(CollectiveKind::all_to_all, token_bytes * 2 * 1024, 8);  // two experts for each token
  EXPECT_NEAR(costs.forward.expert.value, 2 * once, 1e-9 * once);
  EXPECT_NEAR(costs.backward_input.expert.value, 2 * once, 1e-9 * once);
}

TEST_F(PieceTraffic, between_nodes_carries_fewer_copies_than_experts_of_a_token) {
  const PieceCosts costs = first_layer_costs(deepseek_like(), piece_request({.data = 16, .expert = 16}), *machine_);
  const double all_copies = 2 * seconds(CollectiveKind::all_to_all, token_bytes * 4 * 1024, 16);
  const double one_copy = 2 * seconds(CollectiveKind::all_to_all, token_bytes * 1024, 16);
  EXPECT_LT(costs.forward.expert.value, all_copies);
  EXPECT_GT(costs.forward.expert.value, one_copy);
}

TEST_F(PieceTraffic, of_one_rank_is_none) {
  for (const Model& model : {llama_like(), mixtral_like(), deepseek_like()}) {
    const PieceCosts costs = first_layer_costs(model, piece_request({.sequence = true}), *machine_);
    for (const PassCosts* pass : {&costs.forward, &costs.backward_input, &costs.backward_weight}) {
      EXPECT_EQ(pass->tensor.value + pass->context.value + pass->expert.value, 0) << model.name;
    }
  }
}

// What compose says of the layer's operators, value and interval, less what comes once a step.
TEST(PieceCosts, of_a_layer_are_what_compose_adds_up) {
  const auto machine = roofline_machine(1);
  const KernelPredictor& kernels = *machine->machine().kernels;
  ParallelPlan stages;
  stages.pipeline = 10;  // the second has one layer, and nothing else
  const StepRequest request{.phase = StepPhase::train, .batch = piece_batch, .input_len = piece_length};
  for (const Model& model : {llama_like(), deepseek_like()}) {
    if (std::holds_alternative<Moe>(model.layers[1].feed_forward)) continue;
    std::vector<Operator> operators = stage_operators(model, request, stages, 1);
    std::erase_if(operators, [](const Operator& call) {
      return call.part == StepPart::optimizer || step_test::is<CollectiveShape>(call);  // between stages
    });
    const Stack stack;
    const std::vector<TimedLaunch> launches =
        LaunchTimer{.kernels = kernels, .stack = stack, .collectives = {}}.time(operators, StepPhase::train, {});
    const Estimate composed = sum_of_launches(launches, kernels.correlations());
    const PieceCosts costs = layer_costs(model, model.layers[1], piece_request({}), machine->machine());
    std::vector<TimedLaunch> own;
    double by_pass = 0;
    for (const PieceCall& call : costs.calls) own.push_back(call.timed);
    for (const PassCosts* pass : {&costs.forward, &costs.backward_input, &costs.backward_weight}) {
      by_pass += pass->linear.value + pass->attention.value + pass->passes.value;
    }
    const Estimate sum = sum_of_launches(own, kernels.correlations());
    EXPECT_NEAR(sum.value, composed.value, 1e-12 * composed.value) << model.name;
    EXPECT_NEAR(sum.low, composed.low, 1e-12 * composed.value) << model.name;
    EXPECT_NEAR(sum.high, composed.high, 1e-12 * composed.high) << model.name;
    EXPECT_EQ(sum.kind, composed.kind) << model.name;
    EXPECT_NEAR(by_pass, composed.value, 1e-12 * composed.value) << model.name;
  }
}

TEST(PieceCosts, of_all_pieces_hold_every_parameter_once) {
  const auto machine = roofline_machine(1);
  for (const Model& model : {llama_like(), mixtral_like(), deepseek_like()}) {
    const PieceRequest request = piece_request({.data = 8});
    double sum = 0;
    const auto add = [&](const PieceCosts& costs) { sum += costs.shared_parameters + costs.expert_parameters; };
    for (const Layer& layer : model.layers) add(layer_costs(model, layer, request, machine->machine()));
    add(embedding_costs(model, request, machine->machine()));
    add(head_costs(model, request, machine->machine()));
    const double expected = static_cast<double>(count_parameters(model).total);
    EXPECT_NEAR(sum, expected, 1e-6 * expected) << model.name;
  }
}

TEST(PieceCosts, of_frozen_layers_have_no_gradients_of_their_weights) {
  const auto machine = roofline_machine(1);
  PieceRequest request = piece_request({});
  request.lora = {.rank = 8};
  double multiplies = 0;
  ParallelPlan stages;
  stages.pipeline = 10;  // the second has one layer, and nothing else
  for (const Operator& call : stage_operators(
           llama_like(),
           {.phase = StepPhase::train, .batch = piece_batch, .input_len = piece_length, .lora = request.lora}, stages,
           1)) {
    if (!call.name.ends_with("_wgrad")) continue;
    const auto shape = std::get<GemmShape>(call.shape);
    EXPECT_NE(call.name.find("_lora_"), std::string::npos) << call.name;
    multiplies += static_cast<double>(call.count) * machine->machine().kernels->estimate(shape).seconds.value;
  }
  const PieceCosts adapted = first_layer_costs(llama_like(), request, *machine);
  EXPECT_GT(multiplies, 0);
  EXPECT_NEAR(adapted.backward_weight.linear.value, multiplies, 1e-9 * multiplies);
  // q and o 1024 x 1024, k and v 1024 x 256, gate, up and down 1024 x 2816.
  EXPECT_EQ(adapted.shared_parameters, 8 * (2 * 2048 + 2 * 1280 + 3 * 3840));
}

// bitsandbytes and others quantize the linear layers of decoder layers; memory counts the same parameters as plain.
TEST(PieceCosts, of_a_frozen_base_tell_what_no_quantizer_touches) {
  const auto machine = roofline_machine(1);
  for (const Model& model : {llama_like(), mixtral_like(), deepseek_like()}) {
    PieceRequest request = piece_request({.tensor = 2, .data = 2});
    EXPECT_EQ(first_layer_costs(model, request, *machine).plain_shared, 0) << "all are trained";
    request.lora = {.rank = 8};
    const ModelParts parts = model_parts(
        model, {.phase = StepPhase::train, .batch = piece_batch, .input_len = piece_length, .lora = request.lora},
        request.parallel);
    const PieceCosts layer = first_layer_costs(model, request, *machine);
    EXPECT_EQ(layer.plain_shared, parts.layers.back().plain_parameters) << model.name;
    EXPECT_GT(layer.plain_shared, 0) << model.name;
    EXPECT_LT(layer.plain_shared, 0.01 * layer.held_shared) << model.name;
    for (const PieceCosts& outer :
         {embedding_costs(model, request, machine->machine()), head_costs(model, request, machine->machine())}) {
      EXPECT_GT(outer.plain_shared, 0) << model.name;
      EXPECT_EQ(outer.plain_shared, outer.held_shared) << model.name;
    }
  }
  PieceRequest request = piece_request({});
  request.lora = {.rank = 8};
  EXPECT_EQ(first_layer_costs(llama_like(), request, *machine).plain_shared, 2 * 1024);
  const PieceCosts share = first_layer_costs(t5_like(), request, *machine);
  EXPECT_GT(share.plain_shared, 0);
  EXPECT_LT(share.plain_shared, share.held_shared - share.shared_parameters);
}

TEST(PieceCosts, of_frozen_experts_have_no_gradients_of_their_weights_either) {
  const auto machine = roofline_machine(1);
  PieceRequest request = piece_request({});
  const PieceCosts full = first_layer_costs(mixtral_like(), request, *machine);
  request.lora = {.rank = 8, .on_mlp = false};
  const PieceCosts adapted = first_layer_costs(mixtral_like(), request, *machine);
  EXPECT_GT(full.backward_weight.experts.value, 0);
  EXPECT_EQ(adapted.backward_weight.experts.value, 0);
  EXPECT_DOUBLE_EQ(adapted.backward_input.experts.value, full.backward_input.experts.value);
}

TEST(PieceCosts, of_packed_documents_have_less_attention_and_the_same_of_everything_else) {
  const auto machine = roofline_machine(1);
  for (const Model& model : {llama_like(), deepseek_like()}) {
    PieceRequest request = piece_request({});
    request.sequence_length = 16384;
    const PieceCosts whole = first_layer_costs(model, request, *machine);
    double before = whole.forward.attention.value;
    for (const int64_t length : {8192, 4096, 2048}) {
      request.packed_length = length;
      const PieceCosts packed = first_layer_costs(model, request, *machine);
      EXPECT_LT(packed.forward.attention.value, before) << model.name;
      EXPECT_LT(packed.backward_input.attention.value, whole.backward_input.attention.value) << model.name;
      EXPECT_EQ(packed.forward.linear.value, whole.forward.linear.value) << model.name;
      EXPECT_EQ(packed.forward.passes.value, whole.forward.passes.value) << model.name;
      before = packed.forward.attention.value;
    }
    request.packed_length = 16384;
    EXPECT_EQ(first_layer_costs(model, request, *machine).forward.attention.value, whole.forward.attention.value)
        << model.name;
  }
}

TEST(PieceCosts, of_experts_grow_with_skew_up_to_their_capacity) {
  const auto machine = roofline_machine(1);
  PieceRequest request = piece_request({.data = 8, .expert = 8});
  const double even = first_layer_costs(mixtral_like(), request, *machine).forward.experts.value;
  request.routing = Routing::random;
  const double skewed = first_layer_costs(mixtral_like(), request, *machine).forward.experts.value;
  EXPECT_GE(skewed, even);
  double before = skewed;
  for (const double capacity : {1.5, 1.0, 0.5}) {
    request.expert_capacity = capacity;
    const double capped = first_layer_costs(mixtral_like(), request, *machine).forward.experts.value;
    EXPECT_LE(capped, before) << capacity;
    EXPECT_TRUE(capacity != 1 || capped == even) << capped << " is not " << even;
    before = capped;
  }
  EXPECT_LT(before, even);
}

TEST(PieceCosts, tokens_that_experts_drop_do_not_travel) {
  const auto machine = roofline_machine(1);
  for (const TokenDispatcher dispatcher : {TokenDispatcher::usual, TokenDispatcher::all_to_all}) {
    PieceRequest request = piece_request({.data = 8, .expert = 8});
    request.dispatcher = dispatcher;
    const double all = first_layer_costs(mixtral_like(), request, *machine).forward.expert.value;
    request.expert_capacity = 2;
    EXPECT_EQ(first_layer_costs(mixtral_like(), request, *machine).forward.expert.value, all);
    request.expert_capacity = 0.5;
    EXPECT_LT(first_layer_costs(mixtral_like(), request, *machine).forward.expert.value, all);
  }
}

TEST(PieceCosts, of_unfused_attention_write_every_score) {
  const auto machine = roofline_machine(1);
  PieceRequest request = piece_request({});
  const PieceCosts flash = first_layer_costs(llama_like(), request, *machine);
  request.attention = AttentionKernel::unfused;
  const PieceCosts unfused = first_layer_costs(llama_like(), request, *machine);
  const double scores = 16.0 * piece_batch * piece_length * piece_length;
  const double bandwidth = machine->device().memory_bandwidth->value.value();
  EXPECT_GT(unfused.forward.attention.value, 2 * scores * 2 / bandwidth);
  EXPECT_GT(unfused.forward.attention.value, flash.forward.attention.value);
  EXPECT_EQ(unfused.forward.linear.value, flash.forward.linear.value);
  request.dropout.attention = true;
  const PieceCosts dropping = first_layer_costs(llama_like(), request, *machine);
  EXPECT_NEAR(dropping.forward.attention.value - unfused.forward.attention.value, 2 * scores * 2 / bandwidth,
              0.1 * scores * 2 / bandwidth);
}

// A cast serves more than one multiply: it is counted apart, and kernels that hold a cast are not those of training.
TEST(PieceCosts, of_quantized_multiplies_are_of_inputs_that_arrive_cast) {
  const auto machine = roofline_machine(1);
  for (const Model& plain : {llama_like(), mixtral_like()}) {
    const Model model = with_scheme(plain, Scheme::fp8, Scheme::fp8);
    size_t quantized = 0;
    for (const PieceCall& one : first_layer_costs(model, piece_request({}), *machine).calls) {
      const auto* multiply = std::get_if<GemmShape>(&one.timed.launch.shape);
      if (multiply == nullptr) continue;
      const bool casts = facts(multiply->scheme).quantizes_activations;
      quantized += casts ? 1 : 0;
      EXPECT_EQ(one.timed.launch.variant, casts ? "scaled_mm_tensor" : "") << one.call.name;
    }
    EXPECT_GE(quantized, 6);
  }
}

// An encoder-decoder is one stage: its decoder layers stand for equal shares of all its operators.
TEST(PieceCosts, of_an_encoder_decoder_are_equal_shares_of_the_whole_model) {
  const auto machine = roofline_machine(1);
  const Model model = t5_like();
  const PieceRequest request = piece_request({});
  double multiplies = 0;
  for (const Operator& call :
       stage_operators(model, {.phase = StepPhase::train, .batch = piece_batch, .input_len = piece_length}, {}, 0)) {
    if (call.pass != Pass::forward || !step_test::is<GemmShape>(call)) continue;
    multiplies += static_cast<double>(call.count) * machine->machine().kernels->estimate(call.shape).seconds.value;
  }
  const PieceCosts share = first_layer_costs(model, request, *machine);
  EXPECT_NEAR(3 * share.forward.linear.value, multiplies, 1e-9 * multiplies);
  EXPECT_NEAR(3 * share.shared_parameters, static_cast<double>(count_parameters(model).total), 1);
  EXPECT_EQ(head_costs(model, request, machine->machine()).forward.linear.value, 0);
  EXPECT_EQ(embedding_costs(model, request, machine->machine()).shared_parameters, 0);
}

}  // namespace foretoken::piece_costs_test
