#include "training/iteration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/step_test_models.h"
#include "model/weights.h"
#include "training/layer_split.h"
#include "training/test_machine.h"

namespace foretoken::iteration_test {

using step_test::deepseek_like;
using step_test::llama_like;
using step_test::mixtral_like;
using training_test::library_cluster;
using training_test::part_of;
using training_test::plain_stack;
using training_test::roofline_machine;
using training_test::step_of;

struct NamedPlan {
  const char* name;
  TrainingPlan plan;
};

// One of each kind of parallelism, on 32 devices.
std::vector<NamedPlan> plans_of_all_kinds() {
  return {
      {"data", {.parallel = {.data = 32}, .global_batch = 64}},
      {"tensor", {.parallel = {.tensor = 4, .data = 8}, .global_batch = 32}},
      {"sequence", {.parallel = {.tensor = 4, .data = 8, .sequence = true}, .global_batch = 32}},
      {"context", {.parallel = {.data = 8, .context = 4}, .global_batch = 32}},
      {"all-to-all",
       {.parallel = {.data = 8, .context = 4}, .global_batch = 32, .context_exchange = ContextExchange::all_to_all}},
      {"pipeline", {.parallel = {.tensor = 2, .pipeline = 2, .data = 8}, .global_batch = 64}},
      {"zero 1", {.parallel = {.data = 32}, .global_batch = 64, .sharding = Sharding::optimizer}},
      {"zero 3", {.parallel = {.data = 32}, .global_batch = 64, .sharding = Sharding::parameters}},
      {"hybrid", {.parallel = {.data = 32}, .global_batch = 64, .sharding = Sharding::parameters, .shard_ranks = 8}},
      {"recompute", {.parallel = {.data = 32}, .global_batch = 64, .recompute = Recompute::full}},
  };
}

TEST(TrainingIteration, sequence_parallelism_of_one_tensor_rank_changes_nothing) {
  const auto machine = roofline_machine(4);
  for (const Model& model : {llama_like(), mixtral_like(), deepseek_like()}) {
    for (const int64_t pipeline : {1, 2}) {
      TrainingPlan plan{.parallel = {.pipeline = pipeline, .data = 8}, .global_batch = 32};
      const IterationEstimate without = step_of({.model = model}, plan, *machine);
      plan.parallel.sequence = true;
      EXPECT_EQ(step_of({.model = model}, plan, *machine).seconds.value, without.seconds.value) << model.name;
      EXPECT_EQ(part_of(without, TimePart::tensor), 0) << model.name;
    }
  }
}

// Each change makes one thing of the machine faster.
struct FasterPart {
  const char* name;
  void (*change)(Cluster&, double factor);
};
constexpr FasterPart faster_parts[] = {
    {"links in a node",
     [](Cluster& cluster, double factor) {
       BytesPerSecond& fabric = cluster.node.fabric.bandwidth.value;
       fabric = BytesPerSecond(fabric.value() * factor);
       if (auto& links = cluster.node.device.link_bandwidth)
         links->value = BytesPerSecond(links->value.value() * factor);
     }},
    {"network",
     [](Cluster& cluster, double factor) {
       BytesPerSecond& cards = cluster.node.network_cards->bandwidth.value;
       cards = BytesPerSecond(cards.value() * factor);
       BytesPerSecond& fabric = cluster.fabric.nic_bandwidth.value;
       fabric = BytesPerSecond(fabric.value() * factor);
     }},
    {"memory",
     [](Cluster& cluster, double factor) {
       BytesPerSecond& memory = cluster.node.device.memory_bandwidth->value;
       memory = BytesPerSecond(memory.value() * factor);
     }},
    {"multiplies",
     [](Cluster& cluster, double factor) {
       for (auto& peak : cluster.node.device.dense_peak) {
         if (peak) peak->value = FlopsPerSecond(peak->value.value() * factor);
       }
     }},
};

TEST(TrainingIteration, is_never_slower_on_a_faster_machine) {
  for (const FasterPart& part : faster_parts) {
    std::vector<double> before(plans_of_all_kinds().size(), INFINITY);
    double all_before = INFINITY;
    for (const double factor : {0.05, 0.5, 1.0, 2.0, 10.0}) {
      Cluster cluster = library_cluster(4);
      part.change(cluster, factor);
      const auto machine = roofline_machine(cluster);
      double all = 0;
      const std::vector<NamedPlan> plans = plans_of_all_kinds();
      for (size_t i = 0; i < plans.size(); ++i) {
        const double seconds = step_of({.model = llama_like()}, plans[i].plan, *machine).seconds.value;
        EXPECT_LE(seconds, before[i] * (1 + 1e-12)) << part.name << " x " << factor << ", " << plans[i].name;
        before[i] = seconds;
        all += seconds;
      }
      EXPECT_LT(all, all_before) << part.name << " counts for some plan";
      all_before = all;
    }
  }
}

TEST(TrainingIteration, parts_add_up_to_the_step_and_none_is_below_zero) {
  const auto machine = roofline_machine(4);
  for (const auto& [name, plan] : plans_of_all_kinds()) {
    const IterationEstimate step = step_of({.model = llama_like()}, plan, *machine);
    double sum = 0;
    for (const Estimate& part : step.parts) sum += part.value;
    EXPECT_NEAR(sum, step.seconds.value, 1e-12 * sum) << name;
    EXPECT_NEAR(step.seconds.value,
                step.run.seconds + part_of(step, TimePart::data) + part_of(step, TimePart::optimizer) +
                    part_of(step, TimePart::step),
                1e-12 * sum)
        << name;
    for (const Estimate& part : step.parts) EXPECT_GE(part.value, -1e-9 * sum) << name;
    EXPECT_DOUBLE_EQ(step.tokens_per_second * step.seconds.value, static_cast<double>(plan.global_batch) * 2048);
    EXPECT_DOUBLE_EQ(step.tokens_per_second, 32 * step.tokens_per_second_per_device);
    EXPECT_LE(step.seconds.low, step.seconds.value);
    EXPECT_GE(step.seconds.high, step.seconds.value);
  }
}

TEST(TrainingIteration, of_one_stage_grows_by_the_same_with_every_micro_batch) {
  const auto machine = roofline_machine(4);
  for (auto [name, plan] : plans_of_all_kinds()) {
    if (plan.stages() > 1) continue;
    const auto seconds_of = [&, &plan = plan](int64_t micro_batches) {
      plan.global_batch = micro_batches * plan.parallel.data;
      return step_of({.model = llama_like()}, plan, *machine).seconds.value;
    };
    const double two = seconds_of(2), three = seconds_of(3), many = seconds_of(1002);
    EXPECT_NEAR(many - two, 1000 * (three - two), 1e-6 * many) << name;
  }
}

// Steady states are found, not played: a billion micro-batches would take hours otherwise.
TEST(TrainingIteration, costs_the_same_to_predict_whatever_is_accumulated) {
  const auto machine = roofline_machine(4);
  for (const char* schedule : {"1f1b", "gpipe"}) {
    TrainingPlan plan{.parallel = {.pipeline = 4, .data = 1}, .global_batch = 1000, .schedule = schedule};
    const double thousand = step_of({.model = llama_like()}, plan, *machine).run.seconds;
    plan.global_batch = 2000;
    const double two_thousand = step_of({.model = llama_like()}, plan, *machine).run.seconds;
    plan.global_batch = 1'000'000'000;
    const double expected = two_thousand + (two_thousand - thousand) / 1000 * (1e9 - 2000);
    EXPECT_NEAR(step_of({.model = llama_like()}, plan, *machine).run.seconds, expected, 1e-6 * expected) << schedule;
  }
}

TEST(TrainingIteration, recomputing_all_layers_adds_their_forward_pass_once_more) {
  const auto machine = roofline_machine(1);
  Model half = llama_like();
  half.layers.resize(5);
  TrainingPlan plan{.parallel = {.tensor = 2, .data = 4}, .global_batch = 16};
  const auto forward_of = [&](const Model& model) {
    return step_of({.model = model}, plan, *machine).pipeline.chunks.front().forward;
  };
  const double five_layers = forward_of(llama_like()) - forward_of(half);
  const double kept = step_of({.model = llama_like()}, plan, *machine).seconds.value;
  plan.recompute = Recompute::full;
  const IterationEstimate recomputed = step_of({.model = llama_like()}, plan, *machine);
  const double expected = 4 * 2 * five_layers;  // micro-batches, and twice five layers
  EXPECT_NEAR(part_of(recomputed, TimePart::recompute), expected, 1e-9 * expected);
  EXPECT_NEAR(recomputed.seconds.value - kept, expected, 1e-9 * kept);
  plan.recompute_layers = 5;
  EXPECT_NEAR(step_of({.model = llama_like()}, plan, *machine).seconds.value - kept, expected / 2, 1e-9 * kept);
}

TEST(TrainingIteration, selective_recomputation_repeats_the_cores_of_unfused_attention_alone) {
  const auto machine = roofline_machine(1);
  TrainingPlan plan{.parallel = {.data = 8}, .global_batch = 8};
  TrainingStack unfused = plain_stack();
  unfused.attention = AttentionKernel::unfused;
  const auto recomputed = [&](Recompute recompute, const TrainingStack& stack) {
    plan.recompute = recompute;
    return part_of(step_of({.model = llama_like()}, plan, *machine, stack), TimePart::recompute);
  };
  EXPECT_EQ(recomputed(Recompute::selective, plain_stack()), 0);
  EXPECT_GT(recomputed(Recompute::selective, unfused), 0);
  EXPECT_LT(recomputed(Recompute::selective, unfused), recomputed(Recompute::full, unfused));
  EXPECT_EQ(recomputed(Recompute::none, unfused), 0);
}

TEST(TrainingIteration, orthogonal_updates_cost_their_multiplies_once_a_step_on_the_ranks_that_share_them) {
  const auto machine = roofline_machine(4);
  for (const Model& model : {llama_like(), mixtral_like()}) {
    TrainingJob adam{.model = model};
    TrainingJob muon = adam;
    muon.orthogonal_steps = 5;
    TrainingPlan plan{.parallel = {.data = 32}, .global_batch = 64};
    const auto added = [&] {
      return part_of(step_of(muon, plan, *machine), TimePart::optimizer) -
             part_of(step_of(adam, plan, *machine), TimePart::optimizer);
    };
    const double whole = added();
    EXPECT_GT(whole, 0) << model.name;
    muon.orthogonal_steps = 10;
    EXPECT_NEAR(added(), 2 * whole, 1e-9 * whole) << model.name;
    muon.orthogonal_steps = 5;
    plan.sharding = Sharding::optimizer;
    EXPECT_LT(added(), whole / 4) << model.name;
  }
}

TEST(TrainingIteration, of_adapters_is_faster_and_has_hardly_an_optimizer) {
  const auto machine = roofline_machine(1);
  const TrainingPlan plan{.parallel = {.data = 8}, .global_batch = 32};
  for (const Model& model : {llama_like(), mixtral_like(), deepseek_like()}) {
    const IterationEstimate full = step_of({.model = model}, plan, *machine);
    const IterationEstimate adapters = step_of({.model = model, .lora = {.rank = 4}}, plan, *machine);
    EXPECT_LT(adapters.seconds.value, full.seconds.value) << model.name;
    EXPECT_LT(part_of(adapters, TimePart::optimizer), 0.1 * part_of(full, TimePart::optimizer)) << model.name;
    EXPECT_LT(adapters.stage_parameters.front(), 0.1 * full.stage_parameters.front()) << model.name;
  }
}

TEST(TrainingIterationSchedule, each_kind_runs_and_its_bubble_is_what_the_busiest_stage_waits) {
  const auto machine = roofline_machine(4);
  Model model = llama_like();
  model.layers.resize(8);
  size_t run = 0;
  for (const std::string& schedule : pipeline_schedule_names()) {
    for (const int64_t chunks : {1, 2}) {
      const TrainingPlan plan{
          .parallel = {.pipeline = 4, .data = 8}, .global_batch = 128, .schedule = schedule, .virtual_stages = chunks};
      if (!is_valid_plan(model, 2048, plan, 32)) continue;
      ++run;
      const IterationEstimate step = step_of({.model = model}, plan, *machine);
      const double busiest = step.run.busy[static_cast<size_t>(step.slowest_stage)];
      EXPECT_NEAR(part_of(step, TimePart::bubble), step.run.seconds - busiest, 1e-9 * busiest) << schedule;
      EXPECT_GE(part_of(step, TimePart::bubble), -1e-9 * busiest) << schedule;
    }
  }
  EXPECT_GE(run, pipeline_schedule_names().size());
}

TEST(TrainingIterationSchedule, without_a_bubble_is_never_slower_than_1f1b) {
  const auto machine = roofline_machine(4);
  Model model = llama_like();
  model.layers.resize(8);
  model.vocabulary = 1000;  // stages that are nearly equal
  TrainingPlan plan{.parallel = {.pipeline = 4, .data = 8}, .global_batch = 64};
  const double usual = step_of({.model = model}, plan, *machine).run.seconds;
  for (const char* schedule : {"zb-h1", "zb-h2"}) {
    plan.schedule = schedule;
    EXPECT_LT(step_of({.model = model}, plan, *machine).run.seconds, usual) << schedule;
  }
}

TEST(TrainingIteration, draft_layers_cost_a_layer_and_a_head_each) {
  const auto machine = roofline_machine(1);
  const TrainingPlan plan{.parallel = {.data = 8}, .global_batch = 8};
  const auto forward_of = [&](const Model& model) {
    return step_of({.model = model}, plan, *machine).pipeline.chunks.back().forward;
  };
  Model deeper = deepseek_like(), drafting = deepseek_like(), headless = deepseek_like();
  deeper.layers.push_back(deeper.layers.back());
  drafting.draft_layers.push_back(drafting.layers.back());
  headless.vocabulary = 1;
  const double layer = forward_of(deeper) - forward_of(deepseek_like());
  const double head = forward_of(deepseek_like()) - forward_of(headless);
  const double draft = forward_of(drafting) - forward_of(deepseek_like());
  EXPECT_GT(layer, 0);
  EXPECT_GT(draft, layer + 0.9 * head);
  EXPECT_LT(draft, layer + 1.2 * head);
}

TEST(TrainingIteration, waits_for_a_slow_host_and_says_so) {
  const auto machine = roofline_machine(1);
  const TrainingPlan plan{.parallel = {.data = 8}, .global_batch = 16};
  TrainingStack eager = plain_stack();
  eager.constants[host_layer_us] = 100'000;
  const IterationEstimate step = step_of({.model = llama_like()}, plan, *machine, eager);
  // Two micro-batches of ten layers, three passes of four.
  EXPECT_GT(step.seconds.value, 2 * 10 * 0.075);
  EXPECT_GT(part_of(step, TimePart::host), 0.5 * step.seconds.value);
}

TEST(TrainingIteration, routing_waits_for_the_host_even_where_the_device_is_busy) {
  const auto machine = roofline_machine(1);
  const TrainingPlan plan{.parallel = {.data = 8}, .global_batch = 16};
  const auto seconds_with = [&](const Model& model, double host_us) {
    TrainingStack stack = plain_stack();
    stack.constants[host_layer_us] = host_us;
    stack.constants[host_tensor] = 0;
    return step_of({.model = model}, plan, *machine, stack).seconds.value;
  };
  // Far less than a layer takes.
  EXPECT_EQ(seconds_with(llama_like(), 100), seconds_with(llama_like(), 1));
  const Model experts = mixtral_like();
  const double layers = 2 * static_cast<double>(experts.layers.size());  // of two micro-batches
  EXPECT_NEAR(seconds_with(experts, 100) - seconds_with(experts, 1), layers * 0.75 * 99e-6, 1e-9);
}

TEST(TrainingIteration, each_recipe_runs_and_narrower_formats_multiply_faster_and_cast) {
  const auto machine = roofline_machine(1, "gb200_nvl72_ib");
  const TrainingPlan plan{.parallel = {.data = 4}, .micro_batch = 4, .global_batch = 16};
  const auto step = [&](std::string_view recipe) {
    return step_of({.model = llama_like(), .recipe = training_recipe(recipe)}, plan, *machine);
  };
  const IterationEstimate wide = step("bf16");
  for (const TrainingRecipe& recipe : training_recipes()) {
    const IterationEstimate one = step(recipe.name);
    const bool narrow = recipe.cast_bytes.has_value();
    EXPECT_EQ(part_of(one, TimePart::linear) < part_of(wide, TimePart::linear), narrow) << recipe.name;
    EXPECT_EQ(part_of(one, TimePart::passes) > part_of(wide, TimePart::passes), narrow) << recipe.name;
    EXPECT_EQ(part_of(one, TimePart::attention), part_of(wide, TimePart::attention)) << recipe.name;
  }
  EXPECT_LT(part_of(step("nvfp4"), TimePart::linear), part_of(step("mxfp8"), TimePart::linear));
}

// A roofline that is always met: kernels without an error.
std::unique_ptr<MachineModels> certain_machine(int nodes) {
  const Cluster cluster = library_cluster(nodes);
  RooflineIntervals intervals;
  for (IntervalFactors& bin : intervals.other.bins) bin = {.low = 1, .high = 1};
  return std::make_unique<MachineModels>(cluster, KernelPredictor(cluster.node.device, intervals), std::nullopt,
                                         std::nullopt);
}

TEST(TrainingInterval, of_kernels_without_errors_is_the_stacks_alone) {
  TrainingStack stack = plain_stack();
  stack.runs = {{.source = "made-up"}};
  stack.interval = {.low = 0.9, .high = 1.2};
  const auto machine = certain_machine(1);
  const IterationEstimate step = step_of({.model = llama_like()}, {.parallel = {}, .global_batch = 4}, *machine, stack);
  EXPECT_DOUBLE_EQ(step.composed.low, step.seconds.value);
  EXPECT_DOUBLE_EQ(step.composed.high, step.seconds.value);
  EXPECT_DOUBLE_EQ(step.seconds.low, 0.9 * step.seconds.value);
  EXPECT_DOUBLE_EQ(step.seconds.high, 1.2 * step.seconds.value);
}

TEST(TrainingInterval, of_parts_and_families_hold_them_and_that_of_the_step_is_no_wider_than_their_sum) {
  const auto machine = roofline_machine(4);
  for (const auto& [name, plan] : plans_of_all_kinds()) {
    const IterationEstimate step = step_of({.model = llama_like()}, plan, *machine);
    double below = 0, above = 0, families = 0, kernels = 0;
    for (size_t i = 0; i < time_part_count; ++i) {
      const Estimate& part = step.parts[i];
      EXPECT_LE(part.low, part.value + 1e-12) << name << time_part_name(static_cast<TimePart>(i));
      EXPECT_GE(part.high, part.value - 1e-12) << name << time_part_name(static_cast<TimePart>(i));
      below += part.value - part.low;
      above += part.high - part.value;
    }
    EXPECT_LT(step.composed.low, step.composed.value) << name;
    EXPECT_GE(step.composed.low, step.composed.value - below * (1 + 1e-9)) << name;
    EXPECT_LE(step.composed.high, step.composed.value + above * (1 + 1e-9)) << name;
    EXPECT_LE(step.seconds.low, 0.8 * step.seconds.value * (1 + 1e-12)) << name;
    EXPECT_GE(step.seconds.high, 1.25 * step.seconds.value * (1 - 1e-12)) << name;
    EXPECT_EQ(step.seconds.kind, Confidence::roofline) << name;
    for (const FamilySeconds& family : step.families) families += family.seconds.value;
    for (const TimePart part : {TimePart::linear, TimePart::attention, TimePart::passes, TimePart::recompute}) {
      kernels += part_of(step, part);
    }
    EXPECT_NEAR(families, kernels, 1e-9 * kernels) << name;
  }
}

TEST(TrainingInterval, of_a_part_that_rests_on_constants_alone_has_no_width) {
  const auto machine = roofline_machine(1);
  const IterationEstimate step =
      step_of({.model = llama_like()}, {.parallel = {.data = 8}, .global_batch = 16}, *machine);
  for (const TimePart part : {TimePart::accumulate, TimePart::host, TimePart::optimizer, TimePart::step}) {
    const Estimate& own = step.parts[static_cast<size_t>(part)];
    EXPECT_GT(own.value, 0) << time_part_name(part);
    EXPECT_EQ(own.low, own.value) << time_part_name(part);
    EXPECT_EQ(own.high, own.value) << time_part_name(part);
  }
}

// `step --phase train` under a training stack is the micro-batch that `train` adds up.
TEST(MicroBatchStep, is_one_micro_batch_of_the_iteration) {
  const auto machine = roofline_machine(1);
  for (const Model& model : {llama_like(), mixtral_like(), deepseek_like()}) {
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      for (const char* precision : {"bf16", "fp8-delayed"}) {
        TrainingJob job{.model = model, .recipe = training_recipe(precision)};
        IterationModel iterations(job, training_test::shipped_stack(), machine->machine());
        const TrainingPlan plan{.micro_batch = 2, .global_batch = 2, .recompute = recompute};
        const IterationEstimate step = iterations.estimate(plan);
        const StepEstimate micro = iterations.micro_batch_step(plan);
        ASSERT_EQ(micro.stages.size(), 1U);
        const double compute = part_of(step, TimePart::linear) + part_of(step, TimePart::attention) +
                               part_of(step, TimePart::experts) + part_of(step, TimePart::passes) +
                               part_of(step, TimePart::recompute);
        EXPECT_NEAR(micro.stages[0].kernels.value, compute, 1e-9 * compute) << model.name << precision;
        EXPECT_NEAR(micro.seconds.value, step.run.seconds, 1e-9 * step.run.seconds) << model.name << precision;
        EXPECT_EQ(micro.stack, "megatron-bridge-26.08");
      }
    }
  }
}

TEST(MicroBatchStep, of_tensor_and_pipeline_ranks_has_the_traffic_that_is_not_hidden) {
  const auto machine = roofline_machine(1);
  IterationModel iterations({.model = llama_like()}, plain_stack(), machine->machine());
  const TrainingPlan plan{.parallel = {.tensor = 2, .pipeline = 2}, .micro_batch = 1, .global_batch = 1};
  const IterationEstimate step = iterations.estimate(plan);
  const StepEstimate micro = iterations.micro_batch_step(plan);
  ASSERT_EQ(micro.stages.size(), 2U);
  for (size_t stage = 0; stage < 2; ++stage) {
    EXPECT_GT(micro.stages[stage].time.communication, 0);
    EXPECT_NEAR(micro.stages[stage].seconds.value, step.pipeline.chunks[stage].sum(),
                1e-9 * micro.stages[stage].seconds.value);
  }
}

TEST(TrainingIteration, modules_computed_again_take_less_than_whole_layers) {
  const auto machine = roofline_machine(4);
  for (const Model& model : {llama_like(), mixtral_like(), deepseek_like()}) {
    TrainingPlan plan{.parallel = {.data = 8}, .global_batch = 32};
    const double none = step_of({.model = model}, plan, *machine).seconds.value;
    plan.recompute = Recompute::selective;
    plan.recompute_modules = cheap_modules(model);
    const IterationEstimate cheap = step_of({.model = model}, plan, *machine);
    plan.recompute = Recompute::op;
    const double operators = step_of({.model = model}, plan, *machine).seconds.value;
    plan.recompute = Recompute::full;
    const double full = step_of({.model = model}, plan, *machine).seconds.value;
    EXPECT_GT(cheap.seconds.value, none) << model.name;
    EXPECT_LT(cheap.seconds.value, operators) << model.name;
    EXPECT_LT(operators, full) << model.name;
    EXPECT_GT(part_of(cheap, TimePart::recompute), 0) << model.name;
  }
}

TEST(TrainingIteration, draft_layers_take_their_time_on_the_stage_of_the_layout) {
  const auto machine = roofline_machine(4);
  Model model = llama_like();
  model.layers.assign(8, model.layers.front());
  model.draft_layers = {model.layers.front()};
  TrainingPlan plan{.parallel = {.pipeline = 4, .data = 8}, .global_batch = 64};
  plan.layout = parse_pipeline_layout("Ett|tt|tt|ttmL");
  const IterationEstimate last = step_of({.model = model}, plan, *machine);
  plan.layout = parse_pipeline_layout("Et*3|t*3|tt|mL");
  const IterationEstimate spread = step_of({.model = model}, plan, *machine);
  EXPECT_EQ(last.slowest_stage, 3);
  EXPECT_LT(spread.seconds.value, last.seconds.value);
}

TrainingStack eager_stack(const std::string& name = "torch-eager") {
  TrainingStack stack = plain_stack();
  stack.kernels = StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks").stack(name);
  return stack;
}

TEST(TrainingIteration, kernels_that_run_one_by_one_stream_more_memory_than_fused_ones) {
  const auto machine = roofline_machine(1);
  const TrainingPlan plan{.micro_batch = 4, .global_batch = 4};
  const TrainingJob job{.model = llama_like(), .sequence_length = 4096};
  const auto passes = [&](const TrainingStack& stack) {
    return part_of(step_of(job, plan, *machine, stack), TimePart::passes);
  };
  EXPECT_LT(passes(eager_stack("torch-compile")), passes(eager_stack("torch-eager")));
  EXPECT_LT(passes(eager_stack("torch-eager")), passes(eager_stack("hf-eager")));
}

TEST(TrainingIteration, a_small_step_waits_for_the_host_that_launches_its_kernels) {
  const auto machine = roofline_machine(1);
  const TrainingJob small{.model = llama_like(), .sequence_length = 16};
  const TrainingPlan plan{};
  TrainingStack stack = eager_stack();
  const IterationEstimate step = step_of(small, plan, *machine, stack);
  EXPECT_GT(part_of(step, TimePart::host), 0.5 * step.seconds.value);
  stack = on_host(std::move(stack), 2);
  EXPECT_GT(step_of(small, plan, *machine, stack).seconds.value, 1.5 * step.seconds.value);
  EXPECT_NEAR(part_of(step_of(small, plan, *machine), TimePart::host), 0, 1e-4)
      << "fused kernels cost the host nothing";
}

TEST(TrainingIteration, adapters_cost_the_host_launches_of_their_own) {
  const auto machine = roofline_machine(1);
  TrainingJob job{.model = llama_like(), .sequence_length = 16};
  job.lora.rank = 16;
  const auto host = [&] { return part_of(step_of(job, {}, *machine, eager_stack("hf-eager")), TimePart::host); };
  const double all = host();
  job.lora.on_mlp = false;
  EXPECT_LT(host(), all);
}

TEST(TrainingIteration, fp32_weights_are_cast_for_each_micro_batch) {
  const auto machine = roofline_machine(1);
  TrainingStack stack = plain_stack();
  stack.constants[weight_cast_bytes] = 12;
  TrainingJob job{.model = llama_like()};
  const TrainingPlan one{.global_batch = 1}, two{.global_batch = 2};
  const auto casts = [&](const TrainingPlan& plan) {
    return part_of(step_of(job, plan, *machine, stack), TimePart::passes) -
           part_of(step_of(job, plan, *machine), TimePart::passes);
  };
  const double once = casts(one);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(casts(two), 2 * once, 1e-9);
  job.updates_weights = true;
  EXPECT_NEAR(casts(one), 0, 1e-12);
}

// Adam on weights of two bytes: 14 bytes, and 6 to clip gradients of two bytes. On fp32: 28 and 12.
TEST(TrainingIteration, the_optimizer_reads_and_writes_what_it_keeps) {
  const auto machine = roofline_machine(1);
  TrainingStack stack = plain_stack();
  stack.constants[optimizer_bytes] = 40;
  stack.constants[optimizer_16_bytes] = 20;
  TrainingJob job{.model = llama_like()};
  const auto optimizer = [&] { return part_of(step_of(job, {}, *machine, stack), TimePart::optimizer); };
  const double whole = optimizer();
  job.clips_gradients = false;
  EXPECT_NEAR(optimizer() / whole, 28.0 / 40, 1e-9);
  job.updates_weights = true;
  job.optimizer_state_bytes = 4;
  EXPECT_NEAR(optimizer() / whole, 14.0 / 40, 1e-9);
  job.clips_gradients = true;
  EXPECT_NEAR(optimizer() / whole, 20.0 / 40, 1e-9);
  job.optimizer_state_bytes = 2;
  EXPECT_NEAR(optimizer() / whole, 16.0 / 40, 1e-9) << "moments in 8 bits";
}

TEST(TrainingIteration, a_checkpoint_that_stops_early_spares_the_last_multiply) {
  const auto machine = roofline_machine(1);
  TrainingStack stack = plain_stack();
  TrainingJob job{.model = llama_like()};
  const TrainingPlan plan{.recompute = Recompute::full};
  const auto again = [&] { return part_of(step_of(job, plan, *machine, stack), TimePart::recompute); };
  const double all = again();
  stack.stops_recompute_early = true;
  const double early = again();
  EXPECT_LT(early, all);
  EXPECT_GT(early, 0.5 * all);
  job.lora.rank = 16;
  const double with_adapters = again();
  stack.stops_recompute_early = false;
  EXPECT_EQ(again(), with_adapters) << "an adapter keeps its input, behind the frozen multiply";
}

TEST(TrainingIteration, a_table_that_embedding_and_head_share_is_trained_once) {
  const auto machine = roofline_machine(1);
  Model model = llama_like();
  model.tied_embeddings = true;
  const IterationEstimate step = step_of({.model = model}, {}, *machine);
  EXPECT_NEAR(step.stage_parameters.front() / count_parameters(model).total, 1, 1e-9);
}

}  // namespace foretoken::iteration_test
