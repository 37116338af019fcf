#include "training/estimate/training_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "hardware/usual_cluster.h"
#include "model/catalogue.h"
#include "model/step_test_models.h"
#include "training/estimate/training_spec.h"
#include "training/test_machine.h"

namespace foretoken::training_estimate_test {

using testing::HasSubstr;
using training_test::library_cluster;
using training_test::plain_stack;
using training_test::roofline_machine;

TrainingQuestion small_question() {
  TrainingQuestion question{.job = {.model = step_test::llama_like()},
                            .plan = {.parallel = {.data = 8}, .global_batch = 16},
                            .devices = 8,
                            .stack = plain_stack(),
                            .cluster = library_cluster(1),
                            .convention = &flop_convention_named("model-3x-causal-half")};
  question.formats = usual_formats(question.job.recipe, question.job.lora, question.stack.attention);
  return question;
}

// Too large for eight devices without sharding.
TrainingQuestion large_question() {
  TrainingQuestion question = small_question();
  question.job.model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-3.1-8B");
  return question;
}

TrainingEstimate estimate_of(const TrainingQuestion& question) {
  return estimate_training(question, *roofline_machine(question.cluster));
}

TEST(TrainingEstimate, lists_everything_that_is_wrong_with_a_plan) {
  TrainingQuestion question = small_question();
  question.plan.parallel = {.tensor = 3, .pipeline = 7, .data = 5};
  question.plan.global_batch = 13;
  try {
    estimate_of(question);
    FAIL() << "no InputError";
  } catch (const InputError& error) {
    for (const char* field :
         {"{tensor_model_parallel_size}", "{pipeline_model_parallel_size}", "{global_batch_size}", "105"}) {
      EXPECT_THAT(error.what(), HasSubstr(field));
    }
  }
}

TEST(TrainingEstimate, a_plan_that_does_not_fit_gets_changes_that_do) {
  EXPECT_TRUE(estimate_of(small_question()).fits);
  EXPECT_TRUE(estimate_of(small_question()).advice.empty());
  const TrainingEstimate large = estimate_of(large_question());
  EXPECT_FALSE(large.fits);
  ASSERT_FALSE(large.advice.empty());
  for (const MemoryAdvice& advice : large.advice) {
    EXPECT_TRUE(fits(advice.need, *large.capacity)) << advice.sentence;
    EXPECT_FALSE(fits(large.memory.most().total(), *large.capacity));
  }
}

TEST(TrainingEstimate, an_optimizer_in_host_memory_takes_its_time_over_the_host_link) {
  TrainingQuestion question = large_question();
  const TrainingEstimate kept = estimate_of(question);
  question.formats.offloaded_optimizer = 1;
  const TrainingEstimate moved = estimate_of(question);
  const IterationEstimate& iteration = moved.iteration;
  EXPECT_GT(iteration.seconds.value, kept.iteration.seconds.value);
  EXPECT_LT(moved.memory.most().total(), kept.memory.most().total());
  double sum = 0;
  for (const Estimate& part : iteration.parts) sum += part.value;
  EXPECT_NEAR(sum, iteration.seconds.value, 1e-9 * iteration.seconds.value);
  EXPECT_NEAR(iteration.tokens_per_second * iteration.seconds.value, 16 * 2048, 1e-6);
  const auto part = [](const TrainingEstimate& one, TimePart part) {
    return one.iteration.parts[static_cast<size_t>(part)];
  };
  EXPECT_GT(part(kept, TimePart::optimizer).value, 0);
  EXPECT_EQ(part(moved, TimePart::optimizer).value, 0) << "the host's takes its place";
  const Estimate offload = part(moved, TimePart::offload);
  EXPECT_LT(offload.low, 0.5 * offload.value);
  EXPECT_GT(offload.high, 2.5 * offload.value);
  EXPECT_GT(iteration.seconds.high - iteration.seconds.value, offload.high - offload.value);
  EXPECT_LT(iteration.seconds.low, iteration.seconds.value - (offload.value - offload.low));
}

TEST(TrainingEstimate, half_an_optimizer_in_host_memory_leaves_half_of_it_on_the_device) {
  TrainingQuestion question = large_question();
  const auto optimizer = [&] {
    return estimate_of(question).iteration.parts[static_cast<size_t>(TimePart::optimizer)].value;
  };
  const double whole = optimizer();
  question.formats.offloaded_optimizer = 0.5;
  EXPECT_NEAR(optimizer(), 0.5 * whole, 1e-9 * whole);
}

// Whatever lies in host memory before and after.
TEST(TrainingEstimate, advice_takes_and_needs_what_it_says_once_it_is_followed) {
  for (const double away : {0.0, 0.25}) {
    TrainingQuestion question = large_question();
    question.formats.offloaded_optimizer = away;
    const TrainingEstimate before = estimate_of(question);
    bool moves_optimizer = false;
    for (const MemoryAdvice& advice : before.advice) {
      question.plan = advice.plan;
      question.formats = advice.formats;
      const TrainingEstimate after = estimate_of(question);
      EXPECT_DOUBLE_EQ(after.iteration.seconds.value, advice.step.value()) << advice.sentence;
      EXPECT_EQ(after.memory.most().total(), advice.need) << advice.sentence;
      const double percent = 100 * (after.iteration.seconds.value / before.iteration.seconds.value - 1);
      EXPECT_THAT(advice.sentence,
                  HasSubstr(fmt::format(", {:.1f}% {} time", std::abs(percent), percent < 0 ? "less" : "more")));
      moves_optimizer = moves_optimizer || advice.formats.offloaded_optimizer > away;
    }
    EXPECT_TRUE(moves_optimizer) << away;
  }
}

TEST(TrainingEstimate, full_recomputation_executes_more_flops_and_trains_with_the_same) {
  TrainingQuestion question = small_question();
  const TrainingEstimate kept = estimate_of(question);
  question.plan.recompute = Recompute::full;
  const TrainingEstimate recomputed = estimate_of(question);
  const double slower = kept.iteration.seconds.value / recomputed.iteration.seconds.value;
  EXPECT_LT(slower, 1);
  EXPECT_NEAR(recomputed.use.mfu, kept.use.mfu * slower, 1e-9);
  EXPECT_GT(recomputed.use.hfu, recomputed.use.mfu);
  EXPECT_GT(recomputed.use.hfu / recomputed.use.mfu, kept.use.hfu / kept.use.mfu);
}

TEST(TrainingEstimate, a_long_run_is_its_steps_and_what_failures_take) {
  TrainingQuestion question = small_question();
  question.run = LongRun{.tokens = 1e12};
  question.run->checkpoints.storage_bytes_per_second = 1e9;
  const TrainingEstimate estimate = estimate_of(question);
  ASSERT_TRUE(estimate.run);
  const LongRunEstimate& run = *estimate.run;
  EXPECT_NEAR(run.run.steps, 1e12 / (16 * 2048), 1);
  const double steps_alone = run.run.steps * estimate.variation.mean / 86400;
  EXPECT_NEAR(run.run.days.value, steps_alone / run.goodput.effective, 0.01 * run.run.days.value);
  EXPECT_GT(run.run.days.value, steps_alone);
  EXPECT_FALSE(run.run.usd) << "no price was given";
}

TEST(TrainingEstimate, activations_and_weights_in_host_memory_take_their_time_where_computing_does_not_hide_them) {
  TrainingQuestion question = large_question();
  const double kept = estimate_of(question).iteration.seconds.value;
  question.cluster.node.device.host_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(1e15), .source = "test"};
  question.formats.offloaded_activations = 1;
  EXPECT_DOUBLE_EQ(estimate_of(question).iteration.seconds.value, kept) << "a link without bounds hides everything";
  question.cluster.node.device.host_bandwidth->value = BytesPerSecond(1e9);
  const IterationEstimate slow = estimate_of(question).iteration;
  EXPECT_GT(slow.seconds.value, 1.1 * kept);
  EXPECT_NEAR(slow.seconds.value - kept, slow.parts[static_cast<size_t>(TimePart::offload)].value, 1e-9 * kept);
  question.formats.offloaded_activations = 0;
  question.formats.offloaded_parameters = 1;
  EXPECT_GT(estimate_of(question).iteration.seconds.value, 1.1 * kept);
}

TEST(TrainingEstimate, a_base_in_four_bits_is_expanded_before_each_multiply) {
  TrainingQuestion question = small_question();
  question.job.lora = question.formats.lora = {.rank = 16};
  const TrainingEstimate whole = estimate_of(question);
  question.job.frozen_weight_bytes = question.formats.frozen_weight_bytes = *base_weight_bytes("nf4");
  const TrainingEstimate packed = estimate_of(question);
  EXPECT_GT(packed.iteration.seconds.value, whole.iteration.seconds.value);
  // Embedding, head and norms stay in 16 bits.
  const double tables = 2 * 2 * 32000.0 * 1024, all = whole.memory.most().parameters.value();
  EXPECT_NEAR(packed.memory.most().parameters.value(), tables + *base_weight_bytes("nf4") / 2 * (all - tables),
              0.02 * all);
  // In the forward and the backward pass of both micro-batches.
  const double linear = 10 * (2 * 1024.0 * 1024 + 2 * 1024.0 * 256 + 3 * 1024.0 * 2816);
  const Device& device = question.cluster.node.device;
  const double once = question.stack.constants_on(device)[board_factor] * (*base_weight_bytes("nf4") + 2) * linear /
                      device.memory_bandwidth->value.value();
  const auto passes = [](const TrainingEstimate& one) {
    return one.iteration.parts[static_cast<size_t>(TimePart::passes)].value;
  };
  EXPECT_NEAR(passes(packed) - passes(whole), 2 * 2 * once, 1e-6 * once);
}

TEST(TrainingEstimate, activations_are_in_the_precision_of_training_whatever_the_checkpoint_is_in) {
  TrainingSpec spec{.job = {.model = step_test::llama_like()}, .plan = {.parallel = {.data = 8}, .global_batch = 16}};
  const auto activations = [&](DType checkpoint) {
    spec.job.model.dtype = checkpoint;
    const TrainingQuestion question = training_question(spec, library_cluster(1), plain_stack());
    return estimate_of(question).memory.most().activations.value();
  };
  EXPECT_EQ(activations(DType::fp32), activations(DType::bf16));
}

// 5.7 GB as bitsandbytes loads it, not 4.2 with tables in 4 bits.
TEST(TrainingEstimate, llama_8b_in_four_bits_keeps_its_tables_in_16) {
  TrainingQuestion question = large_question();
  question.job.lora = question.formats.lora = {.rank = 1};
  question.formats.frozen_weight_bytes = *base_weight_bytes("nf4");
  EXPECT_NEAR(estimate_of(question).memory.most().parameters.value(), 5.7e9, 0.05e9);
}

// Tables in 16 bits are an eighth of the parameters.
TEST(TrainingEstimate, a_sharded_base_in_four_bits_is_gathered_in_four_bits) {
  TrainingQuestion question = large_question();
  question.plan.sharding = Sharding::parameters;
  question.stack.constants[sharded_exposed] = 1;
  question.job.lora = question.formats.lora = {.rank = 16};
  const auto gathered = [&] {
    return estimate_of(question).iteration.parts[static_cast<size_t>(TimePart::sharded)].value;
  };
  const double whole = gathered();
  question.job.frozen_weight_bytes = question.formats.frozen_weight_bytes = *base_weight_bytes("nf4");
  const double tables = 2 * 128256.0 * 4096 / 8.03e9;
  const double bytes = tables + (1 - tables) * *base_weight_bytes("nf4") / 2;
  EXPECT_NEAR(gathered(), bytes * whole, 0.03 * whole);
}

TEST(TrainingEstimate, a_stack_may_gather_sharded_parameters_once_for_all_micro_batches_of_a_pipeline) {
  TrainingQuestion question = small_question();
  question.plan = {.parallel = {.pipeline = 2, .data = 4}, .global_batch = 32, .sharding = Sharding::parameters};
  const TrainingEstimate anew = estimate_of(question);
  question.stack.keeps_gathered_in_pipelines = question.formats.keeps_gathered_in_pipelines = true;
  const TrainingEstimate once = estimate_of(question);
  const auto part = [](const TrainingEstimate& one, TimePart which) {
    return one.iteration.parts[static_cast<size_t>(which)].value;
  };
  EXPECT_GT(part(anew, TimePart::sharded), 0);
  EXPECT_EQ(part(once, TimePart::sharded), 0);
  EXPECT_GT(part(once, TimePart::data), part(anew, TimePart::data));
  EXPECT_GT(once.memory.most().gradients, 3 * anew.memory.most().gradients) << "whole, until the end of the step";
  EXPECT_GT(once.memory.most().total(), anew.memory.most().total()) << "the gathered weights of the stage";
  EXPECT_EQ(once.memory.most().optimizer, anew.memory.most().optimizer);
  question.plan.parallel = {.data = 8};
  const double alone = estimate_of(question).iteration.seconds.value;
  question.stack.keeps_gathered_in_pipelines = question.formats.keeps_gathered_in_pipelines = false;
  EXPECT_EQ(estimate_of(question).iteration.seconds.value, alone) << "without stages nothing changes";
}

TEST(TrainingEstimate, nodes_without_a_cluster_form_the_usual_one) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  TrainingSpec spec{.job = {}, .cluster = "rtx_4090", .devices = 16};
  for (const char* device : {"rtx_4090", "l40s", "h100_pcie", "h100_sxm"}) {
    spec.cluster = device;
    const Cluster cluster = open_cluster(hardware, spec);
    EXPECT_GT(cluster.node_count, 1) << device;
    EXPECT_EQ(total_devices(cluster), 16) << device;
    EXPECT_TRUE(cluster.node.network_cards.has_value()) << device;
    EXPECT_THAT(assumed_cluster_note(hardware, spec, cluster), HasSubstr("16 ranks span")) << device;
  }
  // As `foretoken step` assumes for it.
  const Cluster usual = usual_cluster(hardware, hardware.node("hgx_h100"));
  EXPECT_EQ(open_cluster(hardware, spec).name, usual.name);
  EXPECT_EQ(open_cluster(hardware, spec).fabric.nodes_per_leaf.value, usual.fabric.nodes_per_leaf.value);
  spec.cluster = usual.name;
  EXPECT_EQ(assumed_cluster_note(hardware, spec, open_cluster(hardware, spec)), "");
  spec = {.job = {}, .cluster = "rtx_4090", .devices = 2};
  EXPECT_EQ(assumed_cluster_note(hardware, spec, open_cluster(hardware, spec)), "");
}

}  // namespace foretoken::training_estimate_test
