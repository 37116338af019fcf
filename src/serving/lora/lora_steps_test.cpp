#include "serving/lora/lora_steps.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/error.h"
#include "hardware/catalogue.h"
#include "kernel/learned.h"
#include "model/catalogue.h"
#include "serving/engine/engine_setup.h"
#include "serving/lora/lora_engine.h"

namespace foretoken::lora_steps_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

ComposedStepsConfig config(const ParallelPlan& plan = {}) {
  const Device device = HardwareCatalogue(data / "hardware").device("h200_sxm");
  return {.model = ModelCatalogue(data / "models").model("Llama-3.1-8B"),
          .plan = plan,
          .models = {KernelPredictor(device, {},
                                     std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations")),
                     nullptr},
          .stack = StackCatalogue(data / "stacks").stack("vllm")};
}

StepBatch decodes(int64_t count, int64_t adapters, int64_t adapter_tokens) {
  return {.decodes = count,
          .decode_context_tokens = count * 512,
          .longest_decode_context = 512,
          .adapters = adapters,
          .adapter_tokens = adapter_tokens};
}

class LoraSteps : public testing::Test {
 protected:
  double seconds(int64_t rank, const StepBatch& batch) {
    return lora_steps(*base_, {.rank = rank}, setup_)->step_seconds(batch).value;
  }
  ComposedStepsConfig setup_ = config();
  std::unique_ptr<StepTimes> base_ = compose_steps(setup_);
};

TEST_F(LoraSteps, adapters_of_rank_zero_and_steps_without_any_take_what_the_model_takes) {
  const StepBatch batch = decodes(32, 1, 32);
  EXPECT_EQ(seconds(0, batch), base_->step_seconds(batch).value);
  const StepBatch plain = decodes(32, 0, 0);
  EXPECT_EQ(seconds(16, plain), base_->step_seconds(plain).value);
}

TEST_F(LoraSteps, more_adapters_are_never_faster) {
  const auto times = lora_steps(*base_, {.rank = 16}, setup_);
  for (const int64_t tokens : {1, 7, 32, 100, 256}) {
    Estimate before = base_->step_seconds(decodes(tokens, 0, 0));
    for (int64_t adapters = 1; adapters <= tokens; ++adapters) {
      const Estimate now = times->step_seconds(decodes(tokens, adapters, tokens));
      EXPECT_GE(now.value, before.value * (1 - 1e-12)) << tokens << " tokens, " << adapters << " adapters";
      EXPECT_LE(now.low, now.value);
      EXPECT_GE(now.high, now.value);
      before = now;
    }
  }
}

TEST_F(LoraSteps, a_larger_rank_is_slower) {
  const StepBatch batch = decodes(64, 64, 64);
  EXPECT_GT(seconds(64, batch), seconds(16, batch));
  EXPECT_GT(seconds(16, batch), base_->step_seconds(batch).value);
}

TEST_F(LoraSteps, runs_of_equal_decodes_add_up_the_steps) {
  const auto times = lora_steps(*base_, {.rank = 16}, setup_);
  const StepBatch first = decodes(16, 4, 16);
  double sum = 0;
  for (int64_t i = 0; i < 40; ++i) sum += times->step_seconds(grown(first, i)).value;
  EXPECT_NEAR(times->decode_run_seconds(first, 40).value / sum, 1, 1e-3);
}

// Weights of distinct adapters are read from memory: no less than that takes.
TEST_F(LoraSteps, every_adapter_is_read_once) {
  const LoraEngine engine({.max_loras = 64, .max_lora_rank = 64}, setup_);
  const double bandwidth = setup_.models.kernels.device().memory_bandwidth->value.value();
  const StepBatch batch = decodes(64, 64, 64);
  const double least = 64 * engine.slot_bytes().value() / bandwidth;
  EXPECT_GT(seconds(64, batch) - base_->step_seconds(batch).value, least);
}

// Kernels of ours that do the same work (data/measured/h200_sxm/README.md); nothing was fitted to them but the width of
// the interval.
TEST(AdapterKernels, take_about_what_was_measured) {
  const ComposedStepsConfig setup = config();
  CsvReader rows(data / "measured" / "h200_sxm" / "lora.csv");
  const size_t kernel = rows.column("kernel"), rank = rows.column("rank"), width = rows.column("width");
  const size_t tokens = rows.column("tokens"), adapters = rows.column("adapters"), time = rows.column("latency_us");
  double error = 0;
  int64_t count = 0, inside = 0;
  while (rows.next()) {
    const bool expands = rows.cell(kernel) == "expand";
    const int64_t thin = rows.integer(rank), wide = rows.integer(width);
    const Estimate predicted = adapter_kernel_seconds(
        setup.models.kernels, {.n = expands ? wide : thin, .k = expands ? thin : wide, .adds_to_output = expands},
        rows.integer(tokens), rows.integer(adapters));
    const double measured = rows.number(time) * 1e-6;
    error += std::abs(predicted.value / measured - 1);
    inside += predicted.low <= measured && measured <= predicted.high ? 1 : 0;
    ++count;
  }
  EXPECT_EQ(count, 320);
  EXPECT_LT(error / static_cast<double>(count), 0.25);
  EXPECT_GE(static_cast<double>(inside) / static_cast<double>(count), 0.85);
}

TEST(LoraEngine, an_adapter_of_llama_8b_has_its_published_size) {
  // Rank 16 on all linear layers of Llama-3.1-8B: 41,943,040 parameters (as PEFT prints them), two bytes each.
  const LoraEngine engine({.max_loras = 1, .max_lora_rank = 64, .rank = 16}, config());
  EXPECT_EQ(engine.adapter_bytes().value(), 41'943'040 * 2.0);
  EXPECT_EQ(engine.slot_bytes().value(), 4 * engine.adapter_bytes().value());
}

TEST(LoraEngine, slots_take_blocks_from_the_cache) {
  const ComposedStepsConfig setup = config();
  ServingMemory memory =
      serving_memory(setup.model, setup.models.kernels.device(), setup.plan, {.max_model_len = 8192});
  const SchedulerOptions options = scheduler_options(memory, setup.plan);
  int64_t before = options.num_gpu_blocks;
  for (const int64_t slots : {1, 8, 64}) {
    const LoraEngine engine({.max_loras = slots, .max_lora_rank = 16}, setup);
    const SchedulerOptions beside = engine.beside(options, memory);
    EXPECT_LT(beside.num_gpu_blocks, before);
    EXPECT_EQ(beside.max_loras, slots);
    const double taken =
        static_cast<double>(options.num_gpu_blocks - beside.num_gpu_blocks) * memory.layout.block_bytes.value();
    EXPECT_NEAR(taken, static_cast<double>(slots) * engine.slot_bytes().value(), 2 * memory.layout.block_bytes.value());
    before = beside.num_gpu_blocks;
  }
  EXPECT_THROW(LoraEngine({.max_loras = 1000, .max_lora_rank = 64}, setup).beside(options, memory), InputError);
}

TEST(LoraEngine, slots_shorten_the_context_of_engines_that_start_all_the_same) {
  const ComposedStepsConfig setup = config();
  const EngineFlags flags{.engine = "sglang", .max_model_len = 131'072};
  ServingMemory memory = serving_memory(setup.model, setup.models.kernels.device(), setup.plan, flags);
  ASSERT_EQ(memory.asked_model_len, 0) << "it fits without adapters";
  const double slot = LoraEngine({.max_loras = 1, .max_lora_rank = 32}, setup).slot_bytes().value();
  const auto nearly_all = static_cast<int64_t>(0.95 * memory.kv_pool.value / slot);
  const LoraEngine engine({.max_loras = nearly_all, .max_lora_rank = 32}, setup);
  const SchedulerOptions beside = engine.beside(scheduler_options(memory, setup.plan), memory);
  EXPECT_EQ(memory.asked_model_len, 131'072);
  EXPECT_EQ(beside.max_model_len, memory.flags.max_model_len);
  EXPECT_LT(beside.max_model_len, 131'072);
  EXPECT_GT(beside.max_model_len, 0);
}

TEST(LoraEngine, loading_takes_no_less_than_the_bytes_on_the_link) {
  const ComposedStepsConfig setup = config();
  const LoraEngine engine({.max_loras = 4, .max_lora_rank = 16}, setup);
  const AdapterLoading loading = engine.loading();
  EXPECT_EQ(loading.device_slots, 4u);
  EXPECT_EQ(loading.host_slots, 4u);
  const double link = setup.models.kernels.device().host_bandwidth->value.value();
  EXPECT_GT(loading.from_host.value(), engine.adapter_bytes().value() / link);
  // 448 tensors: 32 layers of seven matrices, two for each.
  EXPECT_LT(loading.from_host.value(), engine.adapter_bytes().value() / link * 1.2 + 448 * 8e-6);
}

}  // namespace foretoken::lora_steps_test
