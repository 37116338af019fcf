#include "serving/engine/draft_engine.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/catalogue.h"
#include "kernel/learned.h"
#include "model/catalogue.h"
#include "serving/engine/engine_setup.h"
#include "serving/speculation/speculation_tradeoff.h"

namespace foretoken::draft_engine_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

Model model_of(const char* name) {
  return ModelCatalogue(data / "models").model(name);
}

Device device() {
  return HardwareCatalogue(data / "hardware").device("h200_sxm");
}

ComposedStepsConfig composed(const char* model) {
  return {.model = model_of(model),
          .plan = {},
          .models = {KernelPredictor(device(), {},
                                     std::make_shared<LearnedKernels>(device(), data / "kernels" / "calibrations")),
                     nullptr},
          .stack = StackCatalogue(data / "stacks").stack("vllm")};
}

SpeculativeConfig config(const char* method, int64_t drafts, double rate) {
  return {.method = &draft_method(method),
          .num_speculative_tokens = drafts,
          .acceptance = Acceptance::constant(rate, drafts)};
}

// An engine with and without a drafter.
struct Engine {
  explicit Engine(const SpeculativeConfig& speculative, const char* model = "Llama-3.1-8B",
                  const std::optional<Model>& draft = {})
      : setup(composed(model)),
        target(compose_steps(setup)),
        drafter(speculative, setup, draft),
        speculated(drafter.steps(*target)) {}
  SpeculationPoint at(int64_t batch, int64_t context) const {
    return speculation_point({.target = target.get(),
                              .verified = target.get(),
                              .speculated = speculated.get(),
                              .speculation = drafter.speculation()},
                             batch, context);
  }
  ComposedStepsConfig setup;
  std::unique_ptr<StepTimes> target;
  DraftEngine drafter;
  std::unique_ptr<StepTimes> speculated;
};

TEST(DraftEngine, every_method_has_a_cost) {
  for (const DraftMethod& method : draft_methods()) {
    const char* target = method.name == "mtp" ? "DeepSeek-V3" : "Llama-3.1-8B";
    std::optional<Model> draft;
    if (method.name == "draft_model") draft = model_of("Llama-3.2-1B");
    const Engine engine(config(std::string(method.name).c_str(), 3, 0.7), target, draft);
    const SpeculationPoint point = engine.at(8, 1000);
    EXPECT_GT(point.speculated_seconds.value, point.verify_seconds) << method.name;
    EXPECT_GE(point.verify_seconds, point.plain_seconds.value) << method.name;
    if (!method.can_copy_target) continue;
    const size_t layers = method.network(model_of(target), {}).layers.size();
    EXPECT_EQ(layers, method.name == "dspark" ? 3U : method.name == "dflash" ? 5U : 1U) << method.name;
  }
}

TEST(DraftEngine, that_never_guesses_right_only_costs) {
  const SpeculationPoint point = Engine(config("eagle3", 3, 0)).at(4, 1000);
  EXPECT_DOUBLE_EQ(point.tokens.value, 1);
  EXPECT_NEAR(point.speedup.value, point.plain_seconds.value / point.speculated_seconds.value, 1e-12);
  EXPECT_LT(point.speedup.value, 1);
}

TEST(DraftEngine, pays_less_in_larger_batches_of_short_contexts) {
  const Engine engine(config("eagle3", 5, 0.6));
  double before = 10;
  for (const int64_t batch : {16, 64, 256, 1024}) {
    const double speedup = engine.at(batch, 256).speedup.value;
    EXPECT_LT(speedup, before) << batch;
    before = speedup;
  }
}

// MagicDec (arXiv 2408.11049): reading the cache dominates, and a drafter that reads little of it pays more and more.
TEST(DraftEngine, pays_more_in_larger_batches_of_long_contexts) {
  SpeculativeConfig bounded = config("draft_model", 3, 0.8);
  bounded.draft_context = 512;
  const Engine engine(bounded, "Llama-3.1-8B", model_of("Llama-3.2-1B"));
  double before = 0;
  for (const int64_t batch : {1, 8, 64}) {
    const double speedup = engine.at(batch, 64'000).speedup.value;
    EXPECT_GT(speedup, before) << batch;
    before = speedup;
  }
}

TEST(DraftEngine, a_better_guess_is_never_slower) {
  double before = 0;
  for (const double rate : {0.0, 0.4, 0.8, 1.0}) {
    const double speedup = Engine(config("eagle", 4, rate)).at(16, 1000).speedup.value;
    EXPECT_GT(speedup, before);
    before = speedup;
  }
}

TEST(DraftEngine, break_even_is_where_the_speed_up_passes_one) {
  const Engine engine(config("draft_model", 4, 0.8), "Llama-3.1-8B", model_of("Llama-3.2-1B"));
  const SpeculationSteps steps{.target = engine.target.get(),
                               .verified = engine.target.get(),
                               .speculated = engine.speculated.get(),
                               .speculation = engine.drafter.speculation()};
  const auto batch = break_even_batch(steps, 500, 1000);
  ASSERT_TRUE(batch.has_value());
  EXPECT_LE(engine.at(*batch, 500).speedup.value, 1);
  EXPECT_GT(engine.at(*batch - 1, 500).speedup.value, 1);
  EXPECT_FALSE(break_even_batch(steps, 500, *batch - 1).has_value());
}

TEST(DraftEngine, the_largest_batch_is_the_last_that_fits_beside_the_drafter) {
  const Engine engine(config("draft_model", 4, 0.8), "Llama-3.1-8B", model_of("Llama-3.2-1B"));
  const Engine eagle(config("eagle", 4, 0.8));
  const auto largest = [](const Engine& one, int64_t context) {
    return largest_batch_in_memory(one.setup, one.drafter, context, 65536);
  };
  const int64_t batch = largest(engine, 32000);
  // 131 kB a token of the model and 33 kB of the drafter, beside 16.1 and 2.5 GB of weights.
  const double room = allocatable_bytes(engine.setup.models.kernels.device()).value - 18.6e9;
  EXPECT_NEAR(static_cast<double>(batch), room / (32000 * 163.8e3), 1);
  EXPECT_GT(largest(eagle, 32000), batch) << "one layer keeps less than sixteen";
  EXPECT_NEAR(static_cast<double>(largest(engine, 1000)), 32.0 * static_cast<double>(batch), 40);
  EXPECT_EQ(largest_batch_in_memory(engine.setup, engine.drafter, 1000, 8), 8) << "no more than was asked for";
  EXPECT_EQ(largest(engine, 10'000'000), 0);
}

TEST(DraftEngine, a_speed_up_is_as_uncertain_as_the_ratio_of_two_steps) {
  const SpeculationPoint point = Engine(config("eagle3", 3, 0.7)).at(16, 1000);
  const auto spread = [](const Estimate& one) { return one.high / one.low; };
  EXPECT_GT(spread(point.speedup), 1.05) << "steps of another batch share only a part of their errors";
  EXPECT_LT(spread(point.speedup), spread(point.plain_seconds) * spread(point.speculated_seconds));
  EXPECT_DOUBLE_EQ(spread(point.tokens), 1) << "the acceptance was given";
}

TEST(DraftEngine, an_unknown_acceptance_widens_the_speed_up) {
  SpeculativeConfig usual = config("eagle3", 3, 0.7);
  usual.assume_usual();
  SpeculativeConfig known = usual;
  known.unknown_acceptance.clear();
  const SpeculationPoint point = Engine(usual).at(16, 1000), other = Engine(known).at(16, 1000);
  EXPECT_DOUBLE_EQ(point.speedup.value, other.speedup.value);
  EXPECT_LT(point.speedup.low, other.speedup.low);
  EXPECT_GT(point.speedup.high, other.speedup.high);
  EXPECT_LT(point.speedup.low, point.speedup.value * point.tokens.low / point.tokens.value);
}

TEST(DraftEngine, above_the_batch_that_drafts_nothing_is_gained_for_certain) {
  SpeculativeConfig few = config("eagle3", 3, 0.7);
  few.disable_by_batch_size = 8;
  const SpeculationPoint point = Engine(few).at(16, 1000);
  EXPECT_DOUBLE_EQ(point.speedup.low, 1);
  EXPECT_DOUBLE_EQ(point.speedup.high, 1);
}

TEST(DraftEngine, break_even_comes_earlier_at_the_low_end) {
  const Engine engine(config("draft_model", 4, 0.8), "Llama-3.1-8B", model_of("Llama-3.2-1B"));
  const SpeculationSteps steps{.target = engine.target.get(),
                               .verified = engine.target.get(),
                               .speculated = engine.speculated.get(),
                               .speculation = engine.drafter.speculation()};
  EXPECT_LT(break_even_batch(steps, 500, 1000, &Estimate::low).value(), break_even_batch(steps, 500, 1000).value());
}

TEST(DraftEngine, without_experts_drafts_beside_a_model_that_spreads_them) {
  ComposedStepsConfig setup = composed("XiaomiMiMo/MiMo-V2.5");
  setup.plan = {.tensor = 4, .data = 2, .expert = 8};
  EXPECT_NO_THROW(DraftEngine(config("mtp", 3, 0.6), setup, {}));
}

TEST(DraftEngine, takes_its_place_from_the_cache) {
  const Model target = model_of("Llama-3.1-8B");
  ServingMemory memory = serving_memory(target, device(), {}, {.max_model_len = 4096});
  const SchedulerOptions alone = scheduler_options(memory, {});
  const auto blocks = [&](const SpeculativeConfig& speculative, const std::optional<Model>& draft = {}) {
    return Engine(speculative, "Llama-3.1-8B", draft).drafter.beside(alone, memory).num_gpu_blocks;
  };
  const int64_t with_model = blocks(config("draft_model", 3, 0.5), model_of("Llama-3.2-1B"));
  const int64_t with_head = blocks(config("eagle", 3, 0.5));
  EXPECT_LT(with_model, with_head);
  EXPECT_LT(with_head, alone.num_gpu_blocks);
  EXPECT_EQ(blocks(config("ngram", 3, 0.5)), alone.num_gpu_blocks);
  // A head is one more layer of 32, in the cache and nearly so in the weights.
  EXPECT_NEAR(static_cast<double>(with_head), static_cast<double>(alone.num_gpu_blocks) * 32 / 33, 500);
}

TEST(DraftEngine, shortens_the_context_of_engines_that_start_all_the_same) {
  const Model target = model_of("Llama-3.1-8B");
  const auto longest = [&](const std::string& engine) {
    const Device small = HardwareCatalogue(data / "hardware").device("rtx_4090");
    const EngineFlags flags{.engine = engine, .max_model_len = 4096};
    const auto room = static_cast<int64_t>(serving_memory(target, small, {}, flags).tokens.value);
    ServingMemory memory = serving_memory(target, small, {}, {.engine = engine, .max_model_len = room - 64});
    const SchedulerOptions alone = scheduler_options(memory, {});
    const SchedulerOptions with_head = Engine(config("eagle", 3, 0.5)).drafter.beside(alone, memory);
    EXPECT_EQ(memory.asked_model_len, room - 64);
    EXPECT_EQ(memory.flags.max_model_len, with_head.max_model_len);
    return with_head.max_model_len - room;
  };
  EXPECT_LT(longest("sglang"), -64);
  EXPECT_THROW(longest("vllm"), InputError);
}

TEST(DraftEngine, says_what_a_method_lacks) {
  EXPECT_THROW(Engine(config("mtp", 1, 0.5)), InputError);          // no layers for it
  EXPECT_THROW(Engine(config("draft_model", 1, 0.5)), InputError);  // no model named
}

}  // namespace foretoken::draft_engine_test
