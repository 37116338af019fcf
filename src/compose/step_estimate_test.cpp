#include "compose/step_sources.h"

#include <cmath>

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "network/calibration/communication_predictor.h"
#include "network/calibration/system_library.h"

namespace foretoken::step_estimate_test {

const Model& llama() {
  static const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-3.1-8B");
  return model;
}

KernelPredictor h100() {
  return KernelPredictor(HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h100_sxm"));
}

StepEstimate decode(const ParallelPlan& plan, int64_t batch = 8) {
  return estimate_step(llama(), {.phase = StepPhase::decode, .batch = batch, .context_len = 1024}, plan, h100());
}

TEST(StepEstimate, a_stage_is_the_sum_of_its_operators) {
  const StepEstimate step = decode({});
  double sum = 0, widest = 0, squares = 0;
  for (const TimedOperator& timed : step.stages.at(0).operators) {
    const double above = timed.seconds.high - timed.seconds.value;
    sum += timed.seconds.value;
    widest += above;
    squares += above * above;
  }
  EXPECT_NEAR(step.seconds.value, sum, 1e-12);
  // Kernel errors of one device go the same way in part.
  EXPECT_LT(step.seconds.high - sum, widest);
  EXPECT_GT(step.seconds.high - sum, std::sqrt(squares));
}

StepEstimate with_stack(const std::string& name, const StepRequest& request, const ExecutionOptions& options = {}) {
  const Stack stack = StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack(name);
  return estimate_step(llama(), request, {}, h100(), stack, options);
}

TEST(StepEstimate, a_device_without_measurements_rests_on_its_sheet) {
  const StepSources sources = sources_of(decode({}));
  EXPECT_NEAR(sources.sheets, 1, 1e-12);
  EXPECT_EQ(sources.measured + sources.other_devices + sources.mapped, 0);
}

TEST(StepEstimate, the_fused_stack_is_no_stack_at_all) {
  const StepEstimate fused = with_stack("fused", {.phase = StepPhase::decode, .batch = 8, .context_len = 1024});
  EXPECT_DOUBLE_EQ(fused.seconds.value, decode({}).seconds.value);
  EXPECT_EQ(fused.dispatch, Dispatch::fused);
}

TEST(StepEstimate, measured_collectives_of_the_stack_replace_the_wire_time_of_the_sheet) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const SystemLibrary systems(hardware);
  const auto library = std::make_shared<const CommunicationLibrary>(
      read_communication_library(FORETOKEN_SOURCE_DIR "/data/networks", {"h100_sxm"}));
  const RankNetwork collectives(std::make_shared<const NetworkFacts>(NetworkFacts{
                                    .device = hardware.device("h100_sxm"),
                                    .node = hardware.node("hgx_h100"),
                                    .measured = std::make_shared<const CommunicationPredictor>(
                                        library, systems.traits("h100_sxm"), std::vector<SystemTraits>{})}),
                                {.tensor = 8});
  const StepRequest request{.phase = StepPhase::decode, .batch = 8, .context_len = 1024};
  const auto all_reduce = [&](const char* stack_name, const RankNetwork* network) {
    const Stack stack = StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack(stack_name);
    const StepEstimate step = estimate_step(llama(), request, {.tensor = 8}, h100(), stack, {.collectives = network});
    for (const TimedOperator& timed : step.stages.at(0).operators) {
      if (timed.call.name == "tp_all_reduce") return timed.seconds;
    }
    return Estimate{};
  };
  EXPECT_EQ(all_reduce("vllm", &collectives).kind, Confidence::interpolated);
  EXPECT_EQ(all_reduce("vllm", nullptr).kind, Confidence::extrapolated);
  // 64 KiB among eight: the engine's one-shot kernel beats NCCL's ring, which stacks without a kernel of their own run.
  EXPECT_LT(all_reduce("vllm", &collectives).value, all_reduce("fused", &collectives).value);
}

TEST(StepEstimate, the_wall_time_is_accounted_for) {
  for (const char* stack : {"fused", "vllm", "sglang", "trtllm", "torch-graph", "hf-eager"}) {
    for (const StepPhase phase : {StepPhase::prefill, StepPhase::decode}) {
      const StepEstimate step = with_stack(stack, {.phase = phase, .batch = 3, .input_len = 100, .context_len = 10});
      const DispatchTime& time = step.stages.at(0).time;
      EXPECT_NEAR(step.seconds.value, time.kernels + time.communication + time.launch_gap + time.host_stall, 1e-9);
      EXPECT_LE(step.seconds.low, step.seconds.value) << stack;
      EXPECT_GE(step.seconds.high, step.seconds.value) << stack;
    }
  }
}

TEST(StepEstimate, the_head_alone_is_that_of_the_whole_step) {
  for (const char* name : {"vllm", "sglang", "trtllm", "hf-eager"}) {
    const Stack stack = StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack(name);
    for (const int64_t batch : {1, 17, 700}) {
      const StepRequest request{.phase = StepPhase::decode, .batch = batch, .context_len = 16};
      const StepEstimate step = estimate_step(llama(), request, {.pipeline = 2}, h100(), stack);
      std::vector<TimedLaunch> launches;
      for (const StageEstimate& stage : step.stages) {
        for (const TimedLaunch& timed : stage.launches) {
          if (stage.calls[timed.launch.call].part == StepPart::head) launches.push_back(timed);
        }
      }
      const Estimate whole = sum_of_launches(launches, h100().correlations());
      const Estimate alone = estimate_head(llama(), request, {.pipeline = 2}, h100(), stack, {});
      EXPECT_GT(alone.value, 0);
      EXPECT_EQ(alone.value, whole.value) << name << batch;
      EXPECT_EQ(alone.high, whole.high) << name << batch;
    }
  }
}

TEST(StepEstimate, times_alone_are_those_of_the_whole_estimate) {
  const StepRequest request{.phase = StepPhase::decode, .batch = 17, .context_len = 1024};
  const StepEstimate whole = with_stack("vllm", request), alone = with_stack("vllm", request, {.times_only = true});
  EXPECT_EQ(alone.seconds.value, whole.seconds.value);
  EXPECT_EQ(alone.seconds.high, whole.seconds.high);
  EXPECT_EQ(alone.stages[0].time.host, whole.stages[0].time.host);
}

TEST(StepEstimate, no_stack_is_faster_than_its_own_kernels_without_gaps) {
  for (const char* stack : {"vllm", "sglang", "trtllm", "torch-graph", "hf-eager"}) {
    const StepRequest request{.phase = StepPhase::decode, .batch = 8, .context_len = 1024};
    const double alone = with_stack(stack, request, {.dispatch = Dispatch::fused}).seconds.value;
    const double graph = with_stack(stack, request, {.dispatch = Dispatch::graph}).seconds.value;
    const double eager = with_stack(stack, request, {.dispatch = Dispatch::eager}).seconds.value;
    EXPECT_LT(alone, graph) << stack;
    EXPECT_LE(graph, eager) << stack;
  }
}

TEST(StepEstimate, a_decode_runs_at_the_next_captured_size) {
  const auto decoded = [](int64_t batch) {
    return with_stack("vllm", {.phase = StepPhase::decode, .batch = batch, .context_len = 1024});
  };
  const StepEstimate exact = decoded(24), padded = decoded(17);
  EXPECT_EQ(exact.padded_batch, 24);
  EXPECT_EQ(exact.stages[0].padding, 0);
  EXPECT_EQ(padded.padded_batch, 24);
  EXPECT_GE(padded.stages[0].padding, 0);
  // Dense operators are those of 24 sequences, attention reads the cache of 17.
  EXPECT_LT(padded.seconds.value, exact.seconds.value);
  for (size_t i = 0; i < exact.stages[0].calls.size(); ++i) {
    const Operator &full = exact.stages[0].calls[i], &filled = padded.stages[0].calls[i];
    if (const auto* attention = std::get_if<AttentionShape>(&filled.shape)) {
      EXPECT_EQ(attention->batch, 17);
    }
    if (const auto* gemm = std::get_if<GemmShape>(&filled.shape)) {
      EXPECT_EQ(gemm->m, std::get<GemmShape>(full.shape).m) << full.name;
    }
  }
}

TEST(StepEstimate, a_step_beyond_the_captured_sizes_is_launched_by_the_host) {
  EXPECT_EQ(with_stack("vllm", {.phase = StepPhase::decode, .batch = 512}).dispatch, Dispatch::graph);
  const StepEstimate large = with_stack("vllm", {.phase = StepPhase::decode, .batch = 513});
  EXPECT_EQ(large.dispatch, Dispatch::eager);
  EXPECT_EQ(large.padded_batch, 0);
  EXPECT_EQ(with_stack("vllm", {.phase = StepPhase::prefill, .batch = 1, .input_len = 512}).dispatch,
            Dispatch::piecewise);
  EXPECT_EQ(with_stack("vllm", {.phase = StepPhase::prefill, .batch = 1, .input_len = 2048}).dispatch, Dispatch::eager);
}

TEST(StepEstimate, shared_experts_of_small_steps_run_beside_the_routed_ones) {
  Stack both = StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack("vllm");
  both.costs.kernel_factor[StepPhase::decode] = 3;  // of what the memory needs
  Stack one = both;
  one.side_stream_tokens = 0;
  const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("DeepSeek-V3");
  const auto seconds_of = [&](const Stack& stack, int64_t batch, std::string_view name) {
    const StepEstimate step = estimate_step(model, {.phase = StepPhase::decode, .batch = batch, .context_len = 64},
                                            {.tensor = 8}, h100(), stack);
    double sum = 0;
    for (const TimedLaunch& launch : step.stages[0].launches) {
      if (launch.launch.name.starts_with(name)) sum += launch.seconds.value;
    }
    return sum;
  };
  EXPECT_LT(seconds_of(both, 8, "shared_"), 0.5 * seconds_of(one, 8, "shared_")) << "what the memory needs for both";
  EXPECT_GT(seconds_of(both, 8, "shared_"), 0);
  EXPECT_EQ(seconds_of(both, 8, "experts"), seconds_of(one, 8, "experts"));
  EXPECT_EQ(seconds_of(both, 512, "shared_"), seconds_of(one, 512, "shared_")) << "one after the other";
}

TEST(StepEstimate, a_timeline_ends_with_the_step) {
  const Stack stack = StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack("hf-eager");
  const StepEstimate step =
      estimate_step(llama(), {.phase = StepPhase::decode, .batch = 8, .context_len = 64}, {}, h100(), stack);
  double end = 0, busy = 0;
  for (const TimelineEvent& event : step_timeline(step.stages[0], stack, step.dispatch)) {
    end = std::max(end, event.start + event.seconds);
    if (!event.on_host) busy += event.seconds;
  }
  EXPECT_LE(end, step.seconds.value);
  EXPECT_GT(end, 0.99 * (step.seconds.value - stack.costs.synchronize.value()));
  EXPECT_NEAR(busy, step.stages[0].kernels.value, 1e-9);
}

TEST(StepEstimate, one_device_communicates_with_nobody) {
  const StepEstimate step = decode({});
  for (const TimedOperator& timed : step.stages.at(0).operators) {
    EXPECT_TRUE(timed.kernel.has_value()) << timed.call.name;
  }
}

TEST(StepEstimate, eight_devices_are_faster_than_one_but_not_eight_times) {
  const double one = decode({}).seconds.value, eight = decode({.tensor = 8}).seconds.value;
  EXPECT_LT(eight, one);
  EXPECT_GT(eight, one / 8);
}

TEST(StepEstimate, two_stages_hold_half_the_model_each_and_take_the_time_of_one) {
  const StepEstimate whole = decode({}), halves = decode({.pipeline = 2});
  ASSERT_EQ(halves.stages.size(), 2U);
  EXPECT_NEAR(halves.stages[0].memory.weights.value() / whole.stages[0].memory.weights.value(), 0.5, 0.05);
  EXPECT_NEAR(halves.seconds.value / whole.seconds.value, 1, 0.01);
}

TEST(StepEstimate, a_larger_batch_is_never_faster) {
  double before = 0;
  for (int64_t batch = 1; batch <= 512; batch *= 2) {
    const double seconds = decode({}, batch).seconds.value;
    EXPECT_GE(seconds, before) << batch;
    before = seconds;
  }
}

TEST(StepEstimate, a_training_step_counts_three_forwards) {
  const StepRequest prompt{.phase = StepPhase::prefill, .batch = 1, .input_len = 512};
  StepRequest sample = prompt;
  sample.phase = StepPhase::train;
  const StepEstimate forward = estimate_step(llama(), prompt, {}, h100()),
                     training = estimate_step(llama(), sample, {}, h100());
  // The head runs on every position in training and on the last one in inference.
  EXPECT_GT(training.model_flops.value(), 3 * forward.model_flops.value());
  EXPECT_LT(training.model_flops.value(), 3.5 * forward.model_flops.value());
  EXPECT_GT(training.stages[0].memory.gradients_and_optimizer.value(), 12 * 8e9);
  EXPECT_EQ(training.fits_in_memory, false);
}

TEST(StepEstimate, no_step_uses_more_than_the_peak) {
  for (const int64_t length : {128, 4096, 65536}) {
    const StepEstimate step =
        estimate_step(llama(), {.phase = StepPhase::prefill, .batch = 1, .input_len = length}, {}, h100());
    EXPECT_GT(step.model_flops_utilization, 0);
    EXPECT_LE(step.model_flops_utilization, 1);
  }
}

TEST(StepEstimate, bandwidth_utilization_counts_weights_and_cache_once) {
  const StepEstimate step = decode({});
  const double mbu = memory_bandwidth_utilization(step, h100().device()).value();
  EXPECT_LE(mbu, 1);
  // All weights but the table of embeddings, of which a decode reads one row a sequence, and the whole cache.
  const RankMemory& memory = step.stages[0].memory;
  const double all = (memory.weights + memory.kv_cache).value();
  const double read = mbu * step.seconds.value * h100().device().memory_bandwidth->value.value();
  EXPECT_LT(read, 1.01 * all);
  EXPECT_GT(read, 0.9 * all);
}

TEST(StepEstimate, bandwidth_utilization_is_that_of_all_stages) {
  const double one = memory_bandwidth_utilization(decode({}), h100().device()).value();
  const double two = memory_bandwidth_utilization(decode({.pipeline = 2}), h100().device()).value();
  EXPECT_NEAR(two, one / 2, 0.05 * one);
}

TEST(StepEstimate, adapters_leave_no_step_above_the_peak) {
  const StepRequest request{.phase = StepPhase::train, .batch = 4, .input_len = 4096, .lora = {.rank = 16}};
  const StepEstimate step = estimate_step(llama(), request, {}, h100());
  EXPECT_LE(step.model_flops_utilization, 1);
}

TEST(StepEstimate, replicas_add_tokens_but_no_time) {
  const StepEstimate one = decode({}), four = decode({.data = 4});
  EXPECT_EQ(four.tokens, 4 * one.tokens);
  EXPECT_DOUBLE_EQ(four.seconds.value, one.seconds.value);
}

// In a model the weights and the cache come from DRAM, whatever a benchmark finds in its L2.
TEST(StepEstimate, no_decode_reads_weights_and_cache_faster_than_memory_delivers) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const ModelCatalogue models(FORETOKEN_SOURCE_DIR "/data/models");
  for (const char* name : {"l40s", "l4", "rtx_4090", "rtx_pro_6000_server", "h100_sxm", "b200_sxm", "a100_sxm"}) {
    const Device device = hardware.device(name);
    const KernelPredictor predictor(
        device, {},
        std::make_shared<LearnedKernels>(device,
                                         std::filesystem::path(FORETOKEN_SOURCE_DIR "/data/kernels/calibrations")));
    for (const char* model : {"Llama-3.1-8B", "Qwen3-30B-A3B", "DeepSeek-V2-Lite"}) {
      for (const int64_t batch : {1, 64}) {
        const StepRequest request{.phase = StepPhase::decode, .batch = batch, .context_len = 1024};
        const StepEstimate step = estimate_step(models.model(model), request, {}, predictor);
        for (const TimedOperator& timed : step.stages[0].operators) {
          const bool attends = timed.call.name == "attention";
          const Bytes cold = timed.work.weights_read + (attends ? timed.work.activations_read : Bytes(0));
          EXPECT_GE(timed.seconds.low * 1.000001, (cold / device.memory_bandwidth->value).value())
              << model << " on " << name << ": " << timed.call.name;
        }
      }
    }
  }
}

TEST(StepEstimate, tokens_are_what_the_step_takes_in) {
  EXPECT_EQ(decode({}).tokens, 8);
  const StepRequest mixed{.phase = StepPhase::mixed, .batch = 9, .input_len = 256, .context_len = 1024, .prompts = 1};
  EXPECT_EQ(estimate_step(llama(), mixed, {}, h100()).tokens, 256 + 8);
}

}  // namespace foretoken::step_estimate_test
