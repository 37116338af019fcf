// Laws of sharding: what the ranks do together is what one device would do alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "base/error.h"
#include "model/expert_popularity.h"
#include "model/step.h"
#include "model/step_test_models.h"

namespace foretoken::step_parallel_test {

using namespace step_test;
using testing::HasSubstr;

const StepRequest prefill{.phase = StepPhase::prefill, .batch = 2, .input_len = 256};

double communicated(const std::vector<Operator>& operators, CollectiveKind kind, ParallelAxis axis) {
  double bytes = 0;
  for (const Operator& one : operators) {
    const auto* shape = std::get_if<CollectiveShape>(&one.shape);
    if (shape != nullptr && shape->kind == kind && shape->axis == axis)
      bytes += shape->bytes * static_cast<double>(one.count);
  }
  return bytes;
}

std::string message_of(const Model& model, const ParallelPlan& plan) {
  try {
    check_step(model, prefill, plan);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

int64_t fewest_kv_heads(const Model& model) {
  int64_t fewest = 1 << 20;
  for (const Layer& layer : model.layers) {
    if (const auto* a = std::get_if<Attention>(&layer.mixer)) {
      fewest = std::min(fewest, a->kv_heads);
      if (a->indexer) fewest = std::min(fewest, a->indexer->heads);
    }
    if (const auto* m = std::get_if<Mamba2>(&layer.mixer)) fewest = std::min(fewest, m->groups);
  }
  return fewest;
}

// Multiplies of one layer stack over all tensor ranks, from the weights and how they are cut.
double expected_over_ranks(const Model& model, double tokens, int64_t ranks) {
  static const std::vector<std::string> others{"conv",          "router_table",         "hyper_proj",
                                               "relative_bias", "compressor_positions", "indexer_compressor_positions"};
  double sum = 0;
  for (const Layer& layer : model.layers) {
    for (const Weight& weight : layer_weights(model, with_own_experts(layer))) {
      if (weight.inputs <= 1 || weight.cut == Cut::experts) continue;
      if (std::find(others.begin(), others.end(), weight.name) != others.end()) continue;
      sum += 2 * tokens * weight.parameters() * (weight.cut == Cut::none ? static_cast<double>(ranks) : 1);
    }
  }
  return sum;
}

TEST(ParallelPlan, experts_are_cut_by_the_ranks_that_are_left_or_shared_across_replicas) {
  EXPECT_EQ(expert_tensor_ranks({.tensor = 8}), 8);
  EXPECT_EQ(expert_tensor_ranks({.tensor = 8, .expert = 4}), 2);
  EXPECT_EQ(expert_tensor_ranks({.tensor = 4, .data = 4, .expert = 16}), 1);
  EXPECT_EQ(lock_step_ranks({.tensor = 8, .expert = 4}), 1);
  EXPECT_EQ(lock_step_ranks({.tensor = 4, .data = 4, .expert = 16}), 4);
}

TEST(StepTensorParallel, the_ranks_together_multiply_what_one_device_would_plus_the_replicated_matrices) {
  int checked = 0;
  std::vector<Model> models = catalogue_models();
  for (Model& model : hand_made_models()) models.push_back(std::move(model));
  for (const Model& model : models) {
    if (!model.encoder_layers.empty()) continue;
    for (const int64_t ranks : {1, 2, 4, 8}) {
      const ParallelPlan plan{.tensor = ranks};
      if (ranks > fewest_kv_heads(model) || !accepts(model, prefill, plan)) continue;
      const double one = flops_of(stage_operators(model, prefill, plan, 0), [](const Operator& op) {
        return multiplies_weights(op) && op.part != StepPart::embedding && op.part != StepPart::head;
      });
      EXPECT_NEAR(one * static_cast<double>(ranks) / expected_over_ranks(model, 512, ranks), 1, 1e-12)
          << model.name << " on " << ranks;
      ++checked;
    }
  }
  EXPECT_GT(checked, 200);
}

TEST(StepTensorParallel, attention_and_experts_are_cut_evenly) {
  for (const Model& model :
       {llama_like(), mixtral_like(), deepseek_like(), hybrid_like(), convolution_like(), bert_like(), t5_like()}) {
    const auto whole = stage_operators(model, prefill, {}, 0), cut = stage_operators(model, prefill, {.tensor = 4}, 0);
    EXPECT_DOUBLE_EQ(flops_of(cut, is_attention) * 4, flops_of(whole, is_attention)) << model.name;
    EXPECT_DOUBLE_EQ(flops_of(cut, is<MoeShape>) * 4, flops_of(whole, is<MoeShape>)) << model.name;
    EXPECT_NEAR(flops_of(cut, is<LinearAttentionShape>) * 4, flops_of(whole, is<LinearAttentionShape>),
                1e-9 * flops_of(whole, is<LinearAttentionShape>))
        << model.name;
  }
}

TEST(StepTensorParallel, more_ranks_than_kv_heads_replicate_a_head) {
  const auto operators = stage_operators(llama_like(), prefill, {.tensor = 16}, 0);
  const AttentionShape attention = std::get<AttentionShape>(find_operator(operators, "attention")->shape);
  EXPECT_EQ(attention.heads, 1);
  EXPECT_EQ(attention.kv_heads, 1);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "qkv_proj")->shape).n, 3 * 64);
}

TEST(StepTensorParallel, two_all_reduces_per_layer_and_one_for_the_embedding) {
  const auto operators = stage_operators(llama_like(), prefill, {.tensor = 4}, 0);
  EXPECT_EQ(calls_of(operators, "tp_all_reduce"), 21);
  const CollectiveShape shape = std::get<CollectiveShape>(find_operator(operators, "tp_all_reduce")->shape);
  EXPECT_EQ(shape.ranks, 4);
  EXPECT_EQ(shape.bytes, 512 * 1024 * 2);
  const CollectiveShape logits = std::get<CollectiveShape>(find_operator(operators, "logits_all_gather")->shape);
  EXPECT_EQ(logits.bytes, 2 * 32000 * 2);
}

TEST(StepTensorParallel, sequence_parallelism_moves_as_many_bytes_and_norms_fewer_rows) {
  const auto plain = stage_operators(llama_like(), prefill, {.tensor = 4}, 0);
  const auto cut = stage_operators(llama_like(), prefill, {.tensor = 4, .sequence = true}, 0);
  EXPECT_EQ(find_operator(cut, "tp_all_reduce"), nullptr);
  // 20 blocks and the embedding are summed; 20 blocks and the head are gathered.
  const double all_reduced = communicated(plain, CollectiveKind::all_reduce, ParallelAxis::tensor);
  EXPECT_EQ(communicated(cut, CollectiveKind::reduce_scatter, ParallelAxis::tensor), all_reduced);
  EXPECT_EQ(calls_of(cut, "tp_all_gather"), 21);
  EXPECT_EQ(std::get<NormShape>(find_operator(cut, "post_attention_norm")->shape).rows, 128);
  EXPECT_EQ(flops_of(cut, is<GemmShape>), flops_of(plain, is<GemmShape>));
}

TEST(StepTensorParallel, sequence_parallelism_on_one_rank_changes_nothing) {
  for (const Model& model : hand_made_models()) {
    const auto plain = stage_operators(model, prefill, {}, 0),
               cut = stage_operators(model, prefill, {.sequence = true}, 0);
    ASSERT_EQ(plain.size(), cut.size());
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(plain[i].shape == cut[i].shape) << plain[i].name;
  }
}

TEST(StepPipeline, layers_are_split_evenly_and_the_last_stage_is_never_the_longest) {
  for (int64_t layers = 1; layers < 40; ++layers) {
    for (int64_t stages = 1; stages <= layers; ++stages) {
      int64_t next = 0;
      for (int64_t stage = 0; stage < stages; ++stage) {
        const LayerRange range = stage_layers(layers, stages, stage);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.count, layers / stages);
        EXPECT_LE(range.count, layers / stages + 1);
        next += range.count;
      }
      EXPECT_EQ(next, layers);
      EXPECT_EQ(stage_layers(layers, stages, stages - 1).count, layers / stages);
    }
  }
  EXPECT_EQ(stage_layers(10, 4, 0).count, 2);  // 2, 3, 3, 2 as vLLM
  EXPECT_EQ(stage_layers(10, 4, 1).count, 3);
  EXPECT_EQ(stage_layers(10, 4, 2).count, 3);
}

TEST(StepPipeline, the_stages_together_run_the_operators_of_one_device) {
  for (const StepPhase phase : {StepPhase::prefill, StepPhase::decode, StepPhase::train}) {
    for (const Model& model : {llama_like(), mixtral_like(), deepseek_like(), hybrid_like()}) {
      const StepRequest request{.phase = phase, .batch = 2, .input_len = 64, .context_len = 32};
      const auto tally = [](const std::vector<Operator>& operators, std::vector<Operator>& sum) {
        for (const Operator& one : operators) {
          if (is<CollectiveShape>(one) || one.part == StepPart::optimizer) continue;
          bool found = false;
          for (Operator& known : sum) {
            if (known.name != one.name || known.pass != one.pass || !(known.shape == one.shape)) continue;
            known.count += one.count;
            found = true;
          }
          if (!found) sum.push_back(one);
        }
      };
      std::vector<Operator> whole, staged;
      tally(stage_operators(model, request, {}, 0), whole);
      for (int64_t stage = 0; stage < 3; ++stage)
        tally(stage_operators(model, request, {.pipeline = 3}, stage), staged);
      ASSERT_EQ(whole.size(), staged.size()) << model.name;
      for (const Operator& one : whole) {
        const auto same = std::find_if(staged.begin(), staged.end(), [&](const Operator& other) {
          return other.name == one.name && other.pass == one.pass && other.shape == one.shape;
        });
        ASSERT_NE(same, staged.end()) << one.name;
        EXPECT_EQ(same->count, one.count) << model.name << " " << one.name;
      }
    }
  }
}

TEST(StepPipeline, every_stage_but_the_last_sends_and_in_training_every_stage_but_the_first_sends_back) {
  StepRequest request = prefill;
  for (int64_t stage = 0; stage < 3; ++stage) {
    const auto inference = stage_operators(llama_like(), request, {.pipeline = 3}, stage);
    EXPECT_EQ(calls_of(inference, "pp_send"), stage < 2 ? 1 : 0);
  }
  request.phase = StepPhase::train;
  for (int64_t stage = 0; stage < 3; ++stage) {
    int64_t sent = 0, sent_back = 0;
    for (const Operator& one : stage_operators(llama_like(), request, {.pipeline = 3}, stage)) {
      if (one.name == "pp_send") (one.pass == Pass::forward ? sent : sent_back) += one.count;
    }
    EXPECT_EQ(sent, stage < 2 ? 1 : 0);
    EXPECT_EQ(sent_back, stage > 0 ? 1 : 0);
  }
}

TEST(StepPipeline, tensor_ranks_send_their_shares_and_gather_them_on_the_next_stage) {
  const ParallelPlan plan{.tensor = 4, .pipeline = 2};
  const double whole = 2.0 * 256 * 1024 * 2;  // one of two tensors: tokens x hidden in bf16
  const auto first = stage_operators(llama_like(), prefill, plan, 0),
             last = stage_operators(llama_like(), prefill, plan, 1);
  EXPECT_EQ(communicated(first, CollectiveKind::send_recv, ParallelAxis::pipeline), 2 * whole / 4);
  EXPECT_EQ(calls_of(first, "pp_all_gather"), 0);
  EXPECT_EQ(calls_of(last, "pp_all_gather"), 2);
  EXPECT_EQ(
      std::get<CollectiveShape>(find_operator(last, "pp_all_gather")->shape),
      (CollectiveShape{.kind = CollectiveKind::all_gather, .axis = ParallelAxis::tensor, .ranks = 4, .bytes = whole}));

  StepRequest training = prefill;
  training.phase = StepPhase::train;
  EXPECT_EQ(
      communicated(stage_operators(llama_like(), training, plan, 0), CollectiveKind::send_recv, ParallelAxis::pipeline),
      whole);
  EXPECT_EQ(calls_of(stage_operators(llama_like(), training, plan, 1), "pp_all_gather"), 0);
}

TEST(StepContext, the_ranks_together_attend_what_one_device_would) {
  const StepRequest request{.phase = StepPhase::prefill, .batch = 2, .input_len = 512, .context_len = 100};
  for (const Model& model : {llama_like(), deepseek_like(), bert_like()}) {
    const double whole = flops_of(stage_operators(model, request, {}, 0), is_attention);
    for (const int64_t ranks : {2, 4, 8}) {
      const auto operators = stage_operators(model, request, {.context = ranks}, 0);
      EXPECT_DOUBLE_EQ(flops_of(operators, is_attention) * static_cast<double>(ranks), whole) << model.name;
      EXPECT_GT(communicated(operators, CollectiveKind::all_gather, ParallelAxis::context), 0) << model.name;
    }
  }
}

TEST(StepContext, a_rank_multiplies_its_share_of_the_prompt_and_gathers_all_keys) {
  const StepRequest request{.phase = StepPhase::prefill, .batch = 2, .input_len = 512};
  const auto operators = stage_operators(llama_like(), request, {.context = 4}, 0);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "qkv_proj")->shape).m, 256);
  EXPECT_EQ(communicated(operators, CollectiveKind::all_gather, ParallelAxis::context),
            10.0 * 2 * 512 * 4 * (64 + 64) * 2);
}

TEST(StepContext, a_decode_reads_a_share_of_the_cache_on_each_rank) {
  const StepRequest request{.phase = StepPhase::decode, .batch = 3, .context_len = 1023};
  const auto operators = stage_operators(llama_like(), request, {.context = 4}, 0);
  EXPECT_EQ(std::get<AttentionShape>(find_operator(operators, "attention")->shape).kv_len, 256);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "qkv_proj")->shape).m, 3);
}

TEST(StepExperts, inside_the_tensor_group_every_rank_sees_all_tokens_and_nothing_is_dispatched) {
  const auto operators = stage_operators(mixtral_like(), prefill, {.tensor = 8, .expert = 4}, 0);
  const MoeShape shape = std::get<MoeShape>(find_operator(operators, "experts")->shape);
  EXPECT_EQ(shape.tokens, 512);
  EXPECT_EQ(shape.ep, 4);
  EXPECT_EQ(shape.tp, 2);
  EXPECT_EQ(communicated(operators, CollectiveKind::all_to_all, ParallelAxis::expert), 0);
  EXPECT_EQ(calls_of(operators, "tp_all_reduce"), 13);
}

TEST(StepExperts, over_data_ranks_tokens_travel_to_their_experts_and_back) {
  const auto operators = stage_operators(mixtral_like(), prefill, {.tensor = 2, .data = 4, .expert = 8}, 0);
  const MoeShape shape = std::get<MoeShape>(find_operator(operators, "experts")->shape);
  EXPECT_EQ(shape.tokens, 512 * 4);
  EXPECT_EQ(shape.ep, 8);
  EXPECT_EQ(shape.tp, 1);
  // Two travels of this rank's half of the tokens, two copies each, in six layers.
  EXPECT_EQ(communicated(operators, CollectiveKind::all_to_all, ParallelAxis::expert), 6.0 * 2 * 256 * 2 * 1024 * 2);
  EXPECT_EQ(calls_of(operators, "tp_all_reduce"), 7);
  EXPECT_EQ(calls_of(operators, "tp_all_gather"), 6);
  // The shared experts are whole, on half the tokens.
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "shared_gate_up")->shape).m, 256);
  EXPECT_EQ(std::get<GemmShape>(find_operator(operators, "shared_gate_up")->shape).n, 2 * 768);
}

TEST(StepExperts, quantized_activations_travel_narrow_to_the_experts_and_wide_back) {
  const Model model = with_scheme(mixtral_like(), Scheme::fp8);
  const auto operators = stage_operators(model, prefill, {.data = 8, .expert = 8}, 0);
  EXPECT_EQ(std::get<CollectiveShape>(find_operator(operators, "ep_dispatch")->shape).bytes,
            512 * 2 * 1024 * facts(Scheme::fp8).activation_bytes);
  EXPECT_EQ(std::get<CollectiveShape>(find_operator(operators, "ep_combine")->shape).bytes, 512 * 2 * 1024 * 2);
}

TEST(StepExperts, gathered_tokens_go_to_every_rank_whatever_the_number_of_experts_they_choose) {
  const ParallelPlan plan{.data = 8, .expert = 8, .exchange = ExpertExchange::all_gather};
  const auto operators = stage_operators(mixtral_like(), prefill, plan, 0);
  const auto exchange = [&](const char* name) {
    return std::get<CollectiveShape>(find_operator(operators, name)->shape);
  };
  EXPECT_EQ(exchange("ep_dispatch").kind, CollectiveKind::all_gather);
  EXPECT_EQ(exchange("ep_combine").kind, CollectiveKind::reduce_scatter);
  EXPECT_EQ(exchange("ep_dispatch").bytes, 8.0 * 512 * 1024 * 2);
  EXPECT_EQ(exchange("ep_combine").bytes, 8.0 * 512 * 1024 * 2);
}

TEST(StepExperts, tokens_sent_to_their_experts_are_sorted_by_the_receiver_unless_they_are_few) {
  const ParallelPlan sent{.data = 8, .expert = 8};
  StepRequest evenly = prefill;
  evenly.routing = Routing::balanced;
  const auto many = stage_operators(mixtral_like(), evenly, sent, 0);
  EXPECT_TRUE(std::get<MoeShape>(find_operator(many, "experts")->shape).received);
  EXPECT_EQ(std::get<ElementwiseShape>(find_operator(many, "expert_sort")->shape).elements, 512 * 2 * 1024);
  EXPECT_EQ(std::get<ElementwiseShape>(find_operator(many, "expert_unsort")->shape).elements, 512 * 2 * 1024);

  const StepRequest decode{.phase = StepPhase::decode, .batch = 256, .context_len = 16};
  const auto few = stage_operators(mixtral_like(), decode, sent, 0);
  EXPECT_TRUE(std::get<MoeShape>(find_operator(few, "experts")->shape).received);
  EXPECT_EQ(find_operator(few, "expert_sort"), nullptr) << "low-latency kernels deliver them sorted";

  const auto gathered =
      stage_operators(mixtral_like(), prefill, {.data = 8, .expert = 8, .exchange = ExpertExchange::all_gather}, 0);
  EXPECT_FALSE(std::get<MoeShape>(find_operator(gathered, "experts")->shape).received);
  EXPECT_EQ(find_operator(gathered, "expert_sort"), nullptr);
}

TEST(StepExperts, of_many_experts_some_are_busier_than_others_unless_a_popularity_is_given) {
  Model model = mixtral_like();
  const auto routing = [&](const StepRequest& request) {
    return std::get<MoeShape>(find_operator(stage_operators(model, request, {}, 0), "experts")->shape).routing;
  };
  EXPECT_EQ(routing(prefill), Routing::random) << "eight experts";
  for (Layer& layer : model.layers) {
    if (auto* moe = std::get_if<Moe>(&layer.feed_forward)) moe->experts = 64;
  }
  EXPECT_EQ(routing(prefill), Routing::measured) << "drawn from a power law";
  StepRequest evenly = prefill;
  evenly.routing = Routing::balanced;
  EXPECT_EQ(routing(evenly), Routing::balanced);
  model.expert_popularity = std::make_shared<const ExpertPopularity>(zipf_popularity(64, 0));
  EXPECT_EQ(routing(prefill), Routing::measured);
}

TEST(StepExperts, a_few_more_tokens_wake_a_few_more_experts) {
  Model model = mixtral_like();
  for (Layer& layer : model.layers) {
    if (auto* moe = std::get_if<Moe>(&layer.feed_forward)) moe->experts = 128, moe->top_k = 8;
  }
  const auto weights = [&](int64_t batch, std::optional<Routing> routing) {
    const StepRequest decode{.batch = batch, .context_len = 16, .routing = routing, .power_law_exponent = 1.2};
    return count_work(find_operator(stage_operators(model, decode, {}, 0), "experts")->shape).weights_read.value();
  };
  for (const std::optional<Routing> routing : {std::optional<Routing>(), std::optional(Routing::power_law)}) {
    for (int64_t batch = 1; batch < 300; ++batch) {
      const double grown = weights(batch + 1, routing) / weights(batch, routing);
      EXPECT_GE(grown, 1) << batch;
      EXPECT_LE(grown, 1 + 1 / static_cast<double>(batch)) << "no faster than the tokens: " << batch;
      EXPECT_LE(weights(batch, routing), weights(batch, Routing::random) * (1 + 1e-12)) << batch;
    }
  }
}

TEST(StepExperts, copies_of_busy_experts_count_where_experts_are_shared_out) {
  Model model = mixtral_like();
  const ParallelPlan plan{.data = 12, .expert = 12};
  EXPECT_THROW(stage_operators(model, prefill, plan, 0), InputError);
  ExpertPopularity popularity = zipf_popularity(8, 0);
  popularity.redundant = 4;
  model.expert_popularity = std::make_shared<const ExpertPopularity>(popularity);
  EXPECT_NO_THROW(stage_operators(model, prefill, plan, 0));
  EXPECT_THROW(stage_operators(model, prefill, {.data = 8, .expert = 8}, 0), InputError);  // 12 copies over 8 ranks
}

TEST(StepExperts, all_plans_together_compute_every_routed_copy_once) {
  const double copies = 512.0 * 2;
  for (const ParallelPlan plan :
       {ParallelPlan{}, ParallelPlan{.tensor = 8, .expert = 8}, ParallelPlan{.data = 4, .expert = 4},
        ParallelPlan{.tensor = 2, .data = 2, .expert = 4}}) {
    StepRequest request = prefill;
    request.routing = Routing::balanced;
    const auto operators = stage_operators(mixtral_like(), request, plan, 0);
    const MoeShape shape = std::get<MoeShape>(find_operator(operators, "experts")->shape);
    const auto ranks = static_cast<double>(shape.ep);
    const auto replicas = static_cast<double>(std::max<int64_t>(1, plan.expert / plan.tensor));
    EXPECT_DOUBLE_EQ(expert_load(shape).pairs * ranks, copies * replicas);
  }
}

TEST(StepPlan, a_plan_that_does_not_fit_says_which_sizes_would) {
  EXPECT_THAT(message_of(llama_like(), {.tensor = 3}), HasSubstr("{tensor_parallel_size}"));
  EXPECT_THAT(message_of(llama_like(), {.tensor = 3}), HasSubstr("one of 1, 2, 4, 8, 16: 16 attention heads"));
  EXPECT_THAT(message_of(llama_like(), {.pipeline = 11}), HasSubstr("at most 10, one stage for each layer"));
  EXPECT_THAT(message_of(llama_like(), {.tensor = 2, .expert = 2}), HasSubstr("the model has no experts"));
  EXPECT_THAT(message_of(mixtral_like(), {.data = 12, .expert = 12}), HasSubstr("one of 1, 2, 4: 8 experts"));
  EXPECT_THAT(message_of(mixtral_like(), {.tensor = 2, .expert = 8}), HasSubstr("{expert_parallel_size}"));
  EXPECT_THAT(message_of(t5_like(), {.pipeline = 2}), HasSubstr("one stage"));
  EXPECT_THAT(message_of(llama_like(), {.tensor = 0}), HasSubstr("a number from 1"));
  EXPECT_EQ(message_of(mixtral_like(), {.tensor = 4, .pipeline = 3, .data = 2, .expert = 8, .context = 2}), "");
}

TEST(StepPlan, a_request_out_of_range_is_refused) {
  const Model model = llama_like();
  const int64_t huge = int64_t{1} << 62;
  EXPECT_THROW(stage_operators(model, {.batch = 0}, {}, 0), InputError);
  EXPECT_THROW(stage_operators(model, {.batch = huge, .context_len = 1}, {}, 0), InputError);
  EXPECT_THROW(stage_operators(model, {.batch = int64_t{1} << 20, .context_len = int64_t{1} << 20}, {}, 0), InputError);
  EXPECT_THROW(stage_operators(model, {.input_len = -1}, {}, 0), InputError);
  EXPECT_THROW(stage_operators(model, {.phase = StepPhase::mixed, .batch = 2, .prompts = 3}, {}, 0), InputError);
}

TEST(StepParallel, blocks_of_fp8_scales_stay_whole) {
  Model model = mixtral_like();
  Moe& moe = std::get<Moe>(model.layers.front().feed_forward);
  moe.width = 1536;
  moe.shared_width = 0;
  for (Layer& layer : model.layers) layer.feed_forward = moe;
  EXPECT_EQ(cut_scale_blocks(model, {.tensor = 8}), "");
  model.scheme = model.expert_scheme = Scheme::fp8_block;
  EXPECT_EQ(cut_scale_blocks(model, {.tensor = 4}), "");
  EXPECT_THAT(cut_scale_blocks(model, {.tensor = 8}), HasSubstr("the 192 of 1536 channels of an expert"));
  EXPECT_EQ(cut_scale_blocks(model, {.tensor = 8, .expert = 8}), "");
}

}  // namespace foretoken::step_parallel_test
