#include <gtest/gtest.h>

#include "model/step.h"
#include "model/step_test_models.h"

namespace foretoken::step_training_test {

using namespace step_test;

const StepRequest training{.phase = StepPhase::train, .batch = 2, .input_len = 128};

bool forward_gemm(const Operator& one) {
  return one.pass == Pass::forward && (is<GemmShape>(one) || is<LatentProjectionShape>(one));
}
bool backward_gemm(const Operator& one) {
  return one.pass == Pass::backward && (is<GemmShape>(one) || is<LatentProjectionShape>(one));
}
bool is_adapter(const Operator& one) {
  return one.name.find("_lora_") != std::string::npos;
}

TEST(StepTraining, multiplies_take_three_times_the_forward) {
  std::vector<Model> models = hand_made_models();
  for (Model& model : catalogue_models()) models.push_back(std::move(model));
  for (const Model& model : models) {
    const auto operators = stage_operators(model, training, {}, 0);
    const double forward = flops_of(operators, forward_gemm);
    EXPECT_NEAR(flops_of(operators, backward_gemm) / forward, 2, 1e-12) << model.name;
    const double experts =
        flops_of(operators, [](const Operator& one) { return is<MoeShape>(one) && one.pass == Pass::forward; });
    EXPECT_DOUBLE_EQ(flops_of(operators, is<MoeShape>), 3 * experts) << model.name;
  }
}

TEST(StepTraining, the_forward_of_a_training_step_is_what_the_model_flops_count) {
  for (const Model& model : hand_made_models()) {
    const auto operators = stage_operators(model, training, {}, 0);
    const double forward = flops_of(operators, [](const Operator& one) {
      return one.pass == Pass::forward && (is<GemmShape>(one) || is_attention(one) || is<MoeShape>(one) ||
                                           is<LinearAttentionShape>(one) || is<LatentProjectionShape>(one));
    });
    EXPECT_DOUBLE_EQ(forward, model_flops(model, training).value()) << model.name;
  }
}

TEST(StepTraining, gradients_of_input_and_weight_swap_the_sides_of_the_multiply) {
  const auto operators = stage_operators(llama_like(), training, {}, 0);
  const GemmShape forward = std::get<GemmShape>(find_operator(operators, "down_proj")->shape);
  const GemmShape dgrad = std::get<GemmShape>(find_operator(operators, "down_proj_dgrad")->shape);
  const GemmShape wgrad = std::get<GemmShape>(find_operator(operators, "down_proj_wgrad")->shape);
  EXPECT_EQ(forward, (GemmShape{.m = 256, .n = 1024, .k = 2816}));
  EXPECT_EQ(dgrad, (GemmShape{.m = 256, .n = 2816, .k = 1024}));
  EXPECT_EQ(wgrad, (GemmShape{.m = 1024, .n = 2816, .k = 256}));
}

TEST(StepTraining, the_head_sees_every_token_and_nothing_is_cached_or_sampled) {
  for (const Model& model : hand_made_models()) {
    const auto operators = stage_operators(model, training, {}, 0);
    EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "lm_head")->shape).m, 256) << model.name;
    for (const Operator& one : operators) {
      EXPECT_FALSE(is<KvWriteShape>(one) || is<SamplingShape>(one)) << model.name << " " << one.name;
      const auto* attention = std::get_if<AttentionShape>(&one.shape);
      EXPECT_FALSE(attention != nullptr && attention->writes_kv);
    }
  }
}

TEST(StepTraining, frozen_matrices_pass_gradients_on_but_get_none) {
  StepRequest request = training;
  request.lora = {.rank = 16};
  for (const Model& model : hand_made_models()) {
    const auto operators = stage_operators(model, request, {}, 0);
    const auto base = [](auto picks) {
      return [picks](const Operator& one) { return picks(one) && !is_adapter(one); };
    };
    const auto adapter = [](auto picks) {
      return [picks](const Operator& one) { return picks(one) && is_adapter(one); };
    };
    EXPECT_DOUBLE_EQ(flops_of(operators, base(backward_gemm)), flops_of(operators, base(forward_gemm))) << model.name;
    EXPECT_DOUBLE_EQ(flops_of(operators, adapter(backward_gemm)), 2 * flops_of(operators, adapter(forward_gemm)))
        << model.name;
    EXPECT_GT(flops_of(operators, adapter(forward_gemm)), 0) << model.name;
    EXPECT_EQ(find_operator(operators, "embed_tokens_backward"), nullptr) << model.name;
  }
  const auto experts = stage_operators(mixtral_like(), request, {}, 0);
  EXPECT_EQ(find_operator(experts, "experts_backward"), nullptr);
  EXPECT_DOUBLE_EQ(count_work(find_operator(experts, "experts_dgrad")->shape).flops.value(),
                   count_work(find_operator(experts, "experts")->shape).flops.value());
}

TEST(StepTraining, the_optimizer_moves_28_bytes_per_parameter) {
  const auto operators = stage_operators(llama_like(), training, {}, 0);
  const Operator* adam = find_operator(operators, "adam");
  ASSERT_NE(adam, nullptr);
  EXPECT_DOUBLE_EQ(count_work(adam->shape).bytes().value(), 28 * count_parameters(llama_like()).total);
}

TEST(StepTraining, adapters_alone_are_optimized_and_reduced) {
  StepRequest request = training;
  request.lora = {.rank = 16, .on_mlp = false};
  const auto operators = stage_operators(llama_like(), request, {.data = 4}, 0);
  const int64_t adapters = int64_t{10} * (16 * (3 * 1024 + 24 * 64) + 16 * (1024 + 1024));
  EXPECT_EQ(std::get<ElementwiseShape>(find_operator(operators, "adam")->shape).elements, adapters);
  EXPECT_EQ(std::get<CollectiveShape>(find_operator(operators, "grad_all_reduce")->shape).bytes,
            2.0 * static_cast<double>(adapters));
}

TEST(StepTraining, data_and_context_ranks_reduce_the_gradients_of_the_parameters_they_share) {
  const auto operators = stage_operators(llama_like(), training, {.data = 4, .context = 2}, 0);
  const CollectiveShape shape = std::get<CollectiveShape>(find_operator(operators, "grad_all_reduce")->shape);
  EXPECT_EQ(shape.ranks, 8);
  EXPECT_EQ(shape.bytes, 2 * count_parameters(llama_like()).total);
  EXPECT_EQ(find_operator(stage_operators(llama_like(), training, {}, 0), "grad_all_reduce"), nullptr);

  // Eight data ranks, experts spread over four: two hold the same ones.
  const auto spread = stage_operators(mixtral_like(), training, {.data = 8, .expert = 4}, 0);
  const CollectiveShape experts = std::get<CollectiveShape>(find_operator(spread, "expert_grad_all_reduce")->shape);
  EXPECT_EQ(experts.ranks, 2);
  EXPECT_EQ(experts.bytes, 6.0 * 8 / 4 * 3 * 1024 * 1536 * 2);
  EXPECT_EQ(std::get<CollectiveShape>(find_operator(spread, "grad_all_reduce")->shape).ranks, 8);
  EXPECT_EQ(
      find_operator(stage_operators(mixtral_like(), training, {.data = 8, .expert = 8}, 0), "expert_grad_all_reduce"),
      nullptr);
}

TEST(StepTraining, tensor_ranks_sum_as_often_backward_as_forward) {
  int64_t forward = 0, backward = 0;
  for (const Operator& one : stage_operators(llama_like(), training, {.tensor = 4}, 0)) {
    if (one.name == "tp_all_reduce") (one.pass == Pass::forward ? forward : backward) += one.count;
  }
  EXPECT_EQ(forward, 21);   // two per layer and the embedding
  EXPECT_EQ(backward, 21);  // two per layer and the head
}

TEST(StepTraining, sequence_parallelism_swaps_gathers_and_scatters_and_gathers_inputs_again) {
  int64_t gathers = 0, scatters = 0;
  for (const Operator& one : stage_operators(llama_like(), training, {.tensor = 4, .sequence = true}, 0)) {
    if (one.pass == Pass::forward) continue;
    if (one.name == "tp_all_gather") gathers += one.count;
    if (one.name == "tp_reduce_scatter") scatters += one.count;
  }
  EXPECT_EQ(scatters, 21);      // gradients of the 20 blocks' inputs and the head's
  EXPECT_EQ(gathers, 21 + 21);  // gradients of outputs and of the embedding; stored inputs of blocks and head
}

TEST(StepTraining, recomputation_repeats_the_layers_and_not_the_head) {
  StepRequest request = training;
  request.recompute = true;
  for (const Model& model : hand_made_models()) {
    const auto once = stage_operators(model, training, {}, 0), twice = stage_operators(model, request, {}, 0);
    const auto everything = [](const Operator&) { return true; };
    const double in_layers = flops_of(once, [](const Operator& one) {
      return one.pass == Pass::forward && one.part != StepPart::embedding && one.part != StepPart::head &&
             one.part != StepPart::optimizer;
    });
    EXPECT_NEAR(flops_of(twice, everything), flops_of(once, everything) + in_layers, 1e-9 * in_layers) << model.name;
  }
}

TEST(StepTraining, tied_tables_on_two_stages_sum_their_gradients) {
  Model model = llama_like();
  model.tied_embeddings = true;
  for (int64_t stage = 0; stage < 3; ++stage) {
    const auto operators = stage_operators(model, training, {.pipeline = 3}, stage);
    EXPECT_EQ(calls_of(operators, "embedding_grad_all_reduce"), stage == 1 ? 0 : 1);
  }
}

TEST(StepTraining, accumulated_gradients_are_read_and_written_once_for_each_trained_parameter) {
  const Model model = llama_like();
  StepRequest request{.phase = StepPhase::train, .batch = 1, .input_len = 64, .optimizer = Optimizer::adam_fused};
  const std::vector<Operator> fresh = stage_operators(model, request, {}, 0);
  EXPECT_EQ(find_operator(fresh, "grad_accumulate"), nullptr);
  request.accumulate = true;
  const std::vector<Operator> added = stage_operators(model, request, {}, 0);
  EXPECT_EQ(std::get<ElementwiseShape>(find_operator(added, "grad_accumulate")->shape).elements,
            std::get<ElementwiseShape>(find_operator(added, "adam_fused")->shape).elements);
}

}  // namespace foretoken::step_training_test
