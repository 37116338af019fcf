#include "serving/engine/engine_builder.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/model_spec.h"
#include "library/library.h"

namespace foretoken::engine_builder_test {

EngineSpec spec_of(const Library& library, const char* model) {
  const Device device = library.hardware().device("h100_sxm");
  return {.model = open_model(library, {.model = model}, device), .device = device};
}

TEST(EngineBuilder, engines_of_one_builder_accept_their_own_drafts) {
  const Library library = Library::open();
  EngineBuilder builder(serving_facts(library));
  EngineSpec spec = spec_of(library, "Llama-3.1-8B");
  const auto accepted = [&](double rate) {
    spec.speculation = SpeculativeConfig{
        .method = &draft_method("ngram"), .num_speculative_tokens = 3, .acceptance = Acceptance::constant(rate, 3)};
    return builder.build(spec).config.options.speculation.acceptance.expected_tokens(3);
  };
  EXPECT_DOUBLE_EQ(accepted(0.5), Acceptance::constant(0.5, 3).expected_tokens(3));
  EXPECT_DOUBLE_EQ(accepted(0.8), Acceptance::constant(0.8, 3).expected_tokens(3));
}

TEST(EngineBuilder, data_parallel_ranks_of_vllm_share_a_mixture_of_experts) {
  const Library library = Library::open();
  EngineBuilder builder(serving_facts(library));
  const auto built = [&](const char* model, const char* engine) {
    EngineSpec spec = spec_of(library, model);
    spec.flags.engine = engine;
    spec.flags.max_model_len = 4096;
    spec.plan.data = 2;
    spec.replicas = 3;
    return builder.build(spec);
  };
  const ReplicaGroup shared = built("Qwen3-30B-A3B", "vllm");
  EXPECT_EQ(shared.count, 3) << "replicas are servers of their own";
  EXPECT_EQ(shared.config.options.lock_step_ranks, 2);
  EXPECT_NE(shared.model.notes.back().find("take every step together"), std::string::npos);
  for (const auto& [model, engine] : {std::pair("Qwen3-30B-A3B", "sglang"), std::pair("Llama-3.1-8B", "vllm")}) {
    const ReplicaGroup apart = built(model, engine);
    EXPECT_EQ(apart.count, 6) << engine;
    EXPECT_EQ(apart.config.options.lock_step_ranks, 1) << engine;
  }
}

TEST(EngineBuilder, ranks_that_share_experts_unasked_keep_the_calibration_of_the_layout_asked_for) {
  const auto host_seconds = [](double log_factor) {
    const Model model = spec_of(Library::open(), "Qwen3-30B-A3B").model;
    CalibratedEngine engine{.model = model.name, .plan = {.data = 2}, .constants = {}};
    at(engine.constants.mean, DeploymentConstant::host) = log_factor;
    CalibratedDeployment deployment{.engine = "vllm", .device = "h100_sxm"};
    deployment.engines.push_back(engine);
    const Library library = Library::open().with_deployment(deployment);
    EngineSpec spec = spec_of(library, "Qwen3-30B-A3B");
    spec.flags.max_model_len = 4096;
    spec.plan.data = 2;
    return EngineBuilder(serving_facts(library)).build(spec).stack.costs.step_host.value();
  };
  EXPECT_NEAR(host_seconds(0.5) / host_seconds(0), std::exp(0.5), 1e-9);
}

TEST(EngineBuilder, tensorrt_llm_cuts_prompts_only_when_it_is_told_to) {
  const Library library = Library::open();
  EngineBuilder builder(serving_facts(library));
  EngineSpec spec = spec_of(library, "Llama-3.1-8B");
  const auto cuts = [&](const char* engine, std::optional<bool> said) {
    spec.flags.engine = engine;
    spec.scheduling.enable_chunked_prefill = said;
    return builder.build(spec).config.options.enable_chunked_prefill;
  };
  EXPECT_TRUE(cuts("vllm", std::nullopt));
  EXPECT_TRUE(cuts("sglang", std::nullopt));
  EXPECT_FALSE(cuts("trtllm", std::nullopt));
  EXPECT_TRUE(cuts("trtllm", true));
  spec.scheduler = "vllm";  // which cuts them under any engine
  EXPECT_TRUE(cuts("trtllm", std::nullopt));
}

TEST(EngineBuilder, experts_over_context_ranks_are_refused) {
  const Library library = Library::open();
  EngineBuilder builder(serving_facts(library));
  EngineSpec spec = spec_of(library, "Qwen3-30B-A3B");
  spec.plan = {.expert = 2, .context = 2};
  EXPECT_THROW(builder.build(spec), InputError);
}

}  // namespace foretoken::engine_builder_test
