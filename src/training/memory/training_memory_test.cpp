#include "training/memory/training_memory.h"

#include <gtest/gtest.h>

#include <functional>

#include "model/step_test_models.h"
#include "model/weights.h"
#include "training/memory/chunks_in_flight.h"

namespace foretoken::training_memory_test {

using step_test::deepseek_like;
using step_test::hand_made_models;
using step_test::llama_like;
using step_test::mixtral_like;

constexpr int64_t sequence_length = 512;

// Nothing but what the formulas count.
constexpr MemoryOverheads no_overheads{
    .workspace = Bytes(0), .fragmentation = 0, .gathered_layers = 0, .gradient_bucket = Bytes(0)};

PlanMemory memory_of(const Model& model, const TrainingPlan& plan, const TrainingFormats& formats = {},
                     const MemoryOverheads& overheads = {}) {
  check_plan(model, sequence_length, plan, 0);
  return plan_memory(training_parts(model, sequence_length, plan, formats), plan, formats, overheads);
}

double most_bytes(const Model& model, const TrainingPlan& plan, const TrainingFormats& formats = {}) {
  return memory_of(model, plan, formats).most().total().value();
}

// Plans of many kinds that fit the model.
std::vector<TrainingPlan> valid_plans(const Model& model) {
  std::vector<TrainingPlan> plans;
  for (const int64_t tensor : {1, 2}) {
    for (const int64_t pipeline : {1, 2}) {
      for (const int64_t context : {1, 2}) {
        for (const int64_t expert : {1, 4}) {
          for (const bool sequence : {false, true}) {
            const TrainingPlan plan{.parallel = {.tensor = tensor,
                                                 .pipeline = pipeline,
                                                 .data = 4,
                                                 .expert = expert,
                                                 .context = context,
                                                 .sequence = sequence},
                                    .micro_batch = 2,
                                    .global_batch = 64};
            if (is_valid_plan(model, sequence_length, plan, 0)) plans.push_back(plan);
          }
        }
      }
    }
  }
  return plans;
}

void for_models_and_plans(const std::function<void(const Model&, const TrainingPlan&)>& visit) {
  int visited = 0;
  for (const Model& model : hand_made_models()) {
    for (const TrainingPlan& plan : valid_plans(model)) {
      visit(model, plan);
      ++visited;
    }
  }
  EXPECT_GT(visited, 50);
}

// Megatron's mixed precision: 2 for the weight, 4 for the gradient, 12 for Adam.
TEST(TrainingMemoryStates, take_18_bytes_per_parameter) {
  for (const Model& model : hand_made_models()) {
    const TrainingMemory memory = memory_of(model, {}).most();
    const double parameters = count_parameters(model).total;
    EXPECT_DOUBLE_EQ(memory.states().value(), 18 * parameters) << model.name;
    EXPECT_DOUBLE_EQ(memory.parameters.value(), 2 * parameters) << model.name;
    EXPECT_DOUBLE_EQ(memory.gradients.value(), 4 * parameters) << model.name;
  }
}

TEST(TrainingMemoryStates, of_all_stages_are_the_models) {
  for (const Model& model : {llama_like(), mixtral_like(), deepseek_like()}) {
    for (const int64_t stages : {2, 5}) {
      double sum = 0;
      for (const TrainingMemory& memory : memory_of(model, {.parallel = {.pipeline = stages}}).stages) {
        sum += memory.parameters.value();
      }
      EXPECT_DOUBLE_EQ(sum, 2 * count_parameters(model).total) << model.name;
    }
  }
}

TEST(TrainingMemoryStates, hold_a_tied_table_on_both_ends) {
  Model model = llama_like();
  model.tied_embeddings = true;
  const auto stages = memory_of(model, {.parallel = {.pipeline = 2}}).stages;
  const double table = 1024.0 * 32000;
  EXPECT_DOUBLE_EQ((stages[0].parameters + stages[1].parameters).value(), 2 * (count_parameters(model).total + table));
}

TEST(TrainingMemoryStates, of_all_tensor_ranks_are_at_least_the_models) {
  for (const Model& model : hand_made_models()) {
    const double parameters = 2 * count_parameters(model).total;
    for (const int64_t tensor : {2, 4, 8}) {
      const TrainingPlan plan{.parallel = {.tensor = tensor}};
      if (!is_valid_plan(model, sequence_length, plan, 0)) continue;
      const double all = static_cast<double>(tensor) * memory_of(model, plan).most().parameters.value();
      EXPECT_GE(all, parameters) << model.name;
      EXPECT_LT(all, 1.2 * parameters) << model.name;
    }
  }
}

// What lets a search keep the parts from plan to plan.
TEST(TrainingMemoryParts, do_not_change_with_replicas_that_share_no_experts) {
  for_models_and_plans([](const Model& model, const TrainingPlan& plan) {
    TrainingPlan fewer = plan;
    fewer.parallel = without_needless_replicas(plan.parallel);
    const ModelParts parts = training_parts(model, sequence_length, plan, {});
    const ModelParts same = training_parts(model, sequence_length, fewer, {});
    EXPECT_EQ(plan_memory(parts, plan, {}, {}).most().total(), plan_memory(same, plan, {}, {}).most().total())
        << model.name;
  });
}

// arXiv 1910.02054, figure 1.
TEST(TrainingMemoryStates, shrink_with_every_kind_of_sharding_as_in_the_zero_paper) {
  const Model model = llama_like();
  const double parameters = count_parameters(model).total, ranks = 8;
  TrainingPlan plan{.parallel = {.data = 4, .context = 2}, .global_batch = 4};
  const auto states = [&] { return memory_of(model, plan, {.gradient_bytes = 2}).most().states().value(); };
  EXPECT_DOUBLE_EQ(states(), 16 * parameters);
  plan.sharding = Sharding::optimizer;
  EXPECT_DOUBLE_EQ(states(), (4 + 12 / ranks) * parameters);
  plan.sharding = Sharding::gradients;
  EXPECT_DOUBLE_EQ(states(), (2 + 14 / ranks) * parameters);
  plan.sharding = Sharding::parameters;
  EXPECT_DOUBLE_EQ(states(), 16 / ranks * parameters);
  plan.shard_ranks = 4;  // two copies
  EXPECT_DOUBLE_EQ(states(), 16.0 / 4 * parameters);
}

TEST(TrainingMemoryStates, of_experts_are_shared_by_the_ranks_that_hold_the_same_ones) {
  const Model model = mixtral_like();
  const double experts = 6.0 * 8 * 3 * 1024 * 1536, others = count_parameters(model).total - experts;
  TrainingPlan plan{.parallel = {.data = 8, .expert = 4}, .global_batch = 8, .sharding = Sharding::optimizer};
  const TrainingMemory memory = memory_of(model, plan).most();
  EXPECT_DOUBLE_EQ(memory.parameters.value(), 2 * (others + experts / 4));
  EXPECT_DOUBLE_EQ(memory.optimizer.value(), 12 * (others / 8 + experts / 4 / 2));
}

TEST(TrainingMemoryStates, are_those_of_the_adapters_alone_on_a_frozen_base) {
  const TrainingFormats formats{.lora = {.rank = 16, .on_mlp = false}, .frozen_weight_bytes = 0.5};
  const TrainingMemory memory = memory_of(llama_like(), {}, formats).most();
  const double adapters = 10 * (16 * (3 * 1024 + 24 * 64) + 16 * (1024 + 1024));
  const Model model = llama_like();
  const double norms = 1024.0 * (2 * 10 + 1), plain = 2 * 32000.0 * 1024 + norms;
  EXPECT_DOUBLE_EQ(memory.parameters.value(), 0.5 * (count_parameters(model).total - plain) + 2 * (plain + adapters));
  EXPECT_DOUBLE_EQ(memory.gradients.value(), 4 * adapters);
  EXPECT_DOUBLE_EQ(memory.optimizer.value(), 12 * adapters);
}

TEST(TrainingMemoryStates, follow_the_optimizer) {
  EXPECT_EQ(optimizer_state_from_name("adam")->bytes(), 12);
  EXPECT_EQ(optimizer_state_from_name("adam-bf16")->bytes(), 8);
  EXPECT_EQ(optimizer_state_from_name("adam-8bit")->bytes(), 6);
  EXPECT_EQ(optimizer_state_from_name("adam-8bit-bf16-weights")->bytes(), 2);
  EXPECT_EQ(optimizer_state_from_name("sgd-momentum-bf16-weights")->bytes(), 2);
  EXPECT_EQ(optimizer_state_from_name("muon")->bytes(), 8);
  EXPECT_EQ(optimizer_state_from_name("muon-bf16-weights")->bytes(), 2);
  EXPECT_EQ(optimizer_state_from_name("sgd")->bytes(), 4);
  EXPECT_EQ(optimizer_state_from_name("rprop"), std::nullopt);
  EXPECT_EQ(optimizer_state_name({.moments = 7}), std::nullopt);
  for (const std::string& name : optimizer_state_names()) {
    const OptimizerState state = *optimizer_state_from_name(name);
    EXPECT_EQ(optimizer_state_name(state), name);
    EXPECT_EQ(of_weights_in_16_bits(of_weights_in_16_bits(state)), of_weights_in_16_bits(state)) << name;
    EXPECT_EQ(of_weights_in_16_bits(state) == state, name.ends_with("-bf16-weights")) << name;
    const TrainingFormats formats{.optimizer = *optimizer_state_from_name(name)};
    EXPECT_DOUBLE_EQ(memory_of(llama_like(), {}, formats).most().optimizer.value(),
                     formats.optimizer.bytes() * count_parameters(llama_like()).total);
  }
}

TEST(TrainingMemory, tensor_parallelism_over_one_rank_is_none) {
  for (const Model& model : hand_made_models()) {
    EXPECT_EQ(most_bytes(model, {.parallel = {.sequence = true}}), most_bytes(model, {})) << model.name;
  }
}

TEST(TrainingMemory, never_rises_with_tensor_ranks_or_sequence_parallelism) {
  for_models_and_plans([](const Model& model, const TrainingPlan& plan) {
    TrainingPlan more = plan;
    more.parallel.tensor *= 2;
    more.parallel.expert = std::max(plan.parallel.expert, plan.parallel.expert > 1 ? more.parallel.tensor : 1);
    if (is_valid_plan(model, sequence_length, more, 0)) {
      EXPECT_LE(most_bytes(model, more), most_bytes(model, plan)) << model.name;
    }
    more = plan;
    more.parallel.sequence = true;
    EXPECT_LE(most_bytes(model, more), most_bytes(model, plan)) << model.name;
  });
}

TEST(TrainingMemory, never_rises_with_sharding_and_never_falls_with_copies) {
  for_models_and_plans([](const Model& model, const TrainingPlan& plan) {
    double before = most_bytes(model, plan);
    TrainingPlan sharded = plan;
    for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
      sharded.sharding = sharding;
      const double after = most_bytes(model, sharded);
      EXPECT_LE(after, before) << model.name << " " << sharding_name(sharding);
      before = after;
      TrainingPlan copies = sharded;
      copies.shard_ranks = 2;
      EXPECT_GE(most_bytes(model, copies), after) << model.name;
    }
  });
}

TEST(TrainingMemory, never_rises_with_recomputation) {
  for (const bool flash : {true, false}) {
    const TrainingFormats formats{.saved = {.flash_attention = flash}};
    for_models_and_plans([&](const Model& model, TrainingPlan plan) {
      double before = most_bytes(model, plan, formats);
      plan.recompute = Recompute::selective;
      const double selective = most_bytes(model, plan, formats);
      EXPECT_LE(selective, before) << model.name;
      plan.recompute = Recompute::full;
      for (const int64_t layers : {1, 2, 0}) {
        plan.recompute_layers = layers;
        const double after = most_bytes(model, plan, formats);
        EXPECT_LE(after, before) << model.name << " " << layers;
        before = after;
      }
    });
  }
}

TEST(TrainingMemory, falls_by_what_lies_in_host_memory) {
  const TrainingMemory before = memory_of(llama_like(), {}).most();
  const TrainingMemory after =
      memory_of(llama_like(), {}, {.offloaded_optimizer = 1, .offloaded_activations = 0.5}).most();
  EXPECT_EQ(after.optimizer.value(), 0);
  EXPECT_DOUBLE_EQ(after.activations.value(), before.activations.value() / 2);
  EXPECT_EQ(after.gradients.value(), before.gradients.value());
}

TEST(TrainingMemory, of_gathered_layers_is_two_sets_of_weights_and_one_of_gradients_of_the_largest) {
  const TrainingPlan plan{.parallel = {.data = 4}, .global_batch = 4, .sharding = Sharding::parameters};
  const ModelParts parts = training_parts(llama_like(), sequence_length, plan, {});
  const double table = 32000.0 * 1024, layer = parts.layers.front().parameters;
  ASSERT_GT(table, layer);
  EXPECT_DOUBLE_EQ(memory_of(llama_like(), plan).most().communication.value(), (2 * 2 + 4) * (table + 1024));
}

TEST(TrainingMemory, holds_as_many_micro_batches_as_are_in_flight) {
  TrainingPlan plan{.parallel = {.pipeline = 5}, .global_batch = 20};
  const ModelParts parts = training_parts(llama_like(), sequence_length, plan, {});
  const double two_layers = 2 * parts.layers.front().saved.value();
  const PlanMemory memory = plan_memory(parts, plan, {}, no_overheads);
  for (int64_t stage = 1; stage < 4; ++stage) {
    EXPECT_DOUBLE_EQ(memory.stages[static_cast<size_t>(stage)].activations.value(),
                     static_cast<double>(5 - stage) * two_layers);
  }
  EXPECT_EQ(memory.stages[3].logits.value(), 0);
  EXPECT_EQ(memory.stages[4].logits.value(), 4.0 * sequence_length * 32000);
  EXPECT_DOUBLE_EQ(stage_memory(parts, plan, {}, no_overheads, 2, 7).activations.value(), 7 * two_layers);
}

TEST(TrainingMemory, of_draft_layers_lies_on_the_last_stage) {
  Model model = llama_like();
  const TrainingPlan plan{.parallel = {.pipeline = 2}, .global_batch = 4};
  const std::vector<TrainingMemory> before = memory_of(model, plan).stages;
  Layer draft = model.layers.front();
  draft.draft_projection = true;
  model.draft_layers = {draft};
  const std::vector<TrainingMemory> after = memory_of(model, plan).stages;
  EXPECT_EQ(after[0].total(), before[0].total());
  EXPECT_DOUBLE_EQ((after[1].parameters - before[1].parameters).value(), 2 * count_parameters(model).draft);
  EXPECT_DOUBLE_EQ(after[1].logits.value(), 2 * before[1].logits.value());
}

TEST(TrainingMemory, of_a_bidirectional_pipeline_has_two_copies_of_the_model) {
  double sum = 0;
  const TrainingPlan plan{.parallel = {.pipeline = 2}, .global_batch = 8, .schedule = "dualpipe"};
  for (const TrainingMemory& memory : memory_of(llama_like(), plan).stages) sum += memory.parameters.value();
  EXPECT_DOUBLE_EQ(sum, 2 * 2 * count_parameters(llama_like()).total);
}

TEST(TrainingMemory, is_the_sum_of_its_parts_and_the_fullest_stage_is_found) {
  for_models_and_plans([](const Model& model, const TrainingPlan& plan) {
    const PlanMemory memory = memory_of(model, plan);
    for (const TrainingMemory& stage : memory.stages) {
      for (const Bytes part : {stage.parameters, stage.gradients, stage.optimizer, stage.activations,
                               stage.communication, stage.logits, stage.workspace, stage.fragmentation}) {
        EXPECT_GE(part.value(), 0);
      }
      EXPECT_LE(stage.total(), memory.most().total());
    }
  });
}

TEST(TrainingMemory, of_modules_computed_again_is_less_and_lies_between_none_and_full) {
  for_models_and_plans([](const Model& model, const TrainingPlan& plan) {
    TrainingPlan other = plan;
    const auto kept = [&] { return memory_of(model, other, {}, no_overheads).stages.front().activations; };
    const Bytes none = kept();
    other.recompute = Recompute::full;
    const Bytes full = kept();
    other.recompute = Recompute::selective;
    other.recompute_modules = cheap_modules(model);
    const Bytes cheap = kept();
    other.recompute_modules.add(LayerModule::mlp);
    other.recompute_modules.add(LayerModule::moe);
    const Bytes more = kept();
    other.recompute = Recompute::op;
    const Bytes operators = kept();
    EXPECT_LT(cheap, none) << model.name;
    EXPECT_LE(more, cheap) << model.name;
    EXPECT_GE(more, full) << model.name;
    EXPECT_LE(operators, none) << model.name;
    EXPECT_GE(operators, full) << model.name;
  });
}

TEST(TrainingMemory, of_inputs_kept_in_8_bits_is_less) {
  TrainingFormats formats;
  const TrainingPlan plan{.parallel = {.data = 4}, .micro_batch = 2, .global_batch = 64};
  const double kept = memory_of(llama_like(), plan, formats, no_overheads).most().activations.value();
  formats.saved.linear_input_bytes = 1;
  const double quantized = memory_of(llama_like(), plan, formats, no_overheads).most().activations.value();
  EXPECT_LT(quantized, kept);
  EXPECT_GT(quantized, 0.5 * kept);
}

TEST(TrainingMemory, leaves_what_lies_with_the_host_out_and_names_it) {
  const TrainingPlan plan{.parallel = {.data = 4}, .micro_batch = 2, .global_batch = 64};
  const TrainingMemory all = memory_of(llama_like(), plan).most();
  const TrainingFormats away{.offloaded_optimizer = 1, .offloaded_activations = 0.5, .offloaded_parameters = 1};
  const TrainingMemory left = memory_of(llama_like(), plan, away).most();
  EXPECT_EQ(left.parameters.value(), 0);
  EXPECT_EQ(left.away_parameters, all.parameters);
  EXPECT_EQ(left.away_optimizer, all.optimizer);
  EXPECT_NEAR(left.activations.value(), 0.5 * all.activations.value(), 1);
  EXPECT_GT(left.offloaded.value(), 0);
  EXPECT_GT(left.communication.value(), 0) << "layers come to the device to be computed";
}

TEST(TrainingMemory, of_sharded_gradients_is_a_bucket_where_they_go_to_the_host_as_they_are_made) {
  const TrainingPlan zero2{.sharding = Sharding::gradients};
  const TrainingFormats kept{.gradient_bytes = 2, .offloaded_optimizer = 1};
  TrainingFormats sent = kept;
  sent.offloads_gradients = true;
  const TrainingMemory on_device = memory_of(llama_like(), zero2, kept).most();
  const TrainingMemory on_host = memory_of(llama_like(), zero2, sent).most();
  EXPECT_EQ(on_host.gradients.value(), 0);
  EXPECT_EQ(on_host.away_gradients, on_device.gradients);
  EXPECT_EQ(on_host.host_gradients, 2 * on_device.gradients) << "fp32 there";
  EXPECT_EQ(on_host.communication, std::min(MemoryOverheads{}.gradient_bucket, on_device.gradients));
  const TrainingMemory zero1 = memory_of(llama_like(), {.sharding = Sharding::optimizer}, sent).most();
  EXPECT_EQ(zero1.away_gradients.value(), 0);
}

TEST(TrainingMemory, gradients_that_leave_as_they_are_made_travel_for_each_micro_batch) {
  const TrainingPlan zero2{.sharding = Sharding::gradients};
  TrainingFormats formats{.gradient_bytes = 2, .offloaded_optimizer = 1};
  const HostMemoryLink slow_link{.link = BytesPerSecond(1e9), .memory = BytesPerSecond(1e15)};
  const auto seconds = [&](int64_t micro_batches) {
    const TrainingMemory memory = memory_of(llama_like(), zero2, formats).most();
    return offload_seconds(memory, {.micro_batches = micro_batches}, slow_link).value;
  };
  EXPECT_DOUBLE_EQ(seconds(8), seconds(1)) << "summed on the device";
  formats.offloads_gradients = true;
  // Read back, added and sent again.
  const double once = (seconds(2) - seconds(1)) / 2;
  EXPECT_DOUBLE_EQ(once, 2 * count_parameters(llama_like()).total / (0.4 * 1e9));
  EXPECT_NEAR(seconds(8), seconds(1) + 14 * once, 1e-9);
}

TEST(TrainingMemory, an_optimizer_of_the_host_is_far_from_its_memorys_peak) {
  const TrainingFormats formats{.gradient_bytes = 2, .offloaded_optimizer = 1, .offloads_gradients = true};
  // Llama 2 7B on 8 A800, micro-batches of one sequence, 64 a step: DeepSpeed's ZeRO-2 took 35.4 s, and 15.3 s without
  // offloading (gist.github.com/chenyaofo/d4cd6a20ab4b95cb3a49491747e2139a). Adam at the peak would take 0.4 s.
  constexpr double parameters = 6.74e9 / 8;
  TrainingMemory memory;
  memory.away_gradients = Bytes(2 * parameters);
  memory.host_gradients = Bytes(4 * parameters);
  memory.away_optimizer = Bytes(formats.optimizer.bytes() * parameters);
  memory.updated_parameters = Bytes(2 * parameters);
  const HostMemoryLink host{.link = BytesPerSecond(32e9), .memory = BytesPerSecond(2 * 204.8e9 / 8)};
  const Estimate seconds = offload_seconds(memory, {.micro_batches = 8}, host);
  EXPECT_LT(seconds.low, 35.4 - 15.3);
  EXPECT_GT(seconds.high, 35.4 - 15.3);
  EXPECT_GT(seconds.value, 5);
}

// The base under adapters does not change, weights that stay with the host need not come back.
TEST(TrainingMemory, weights_that_come_back_from_the_host_are_those_that_it_changed) {
  TrainingFormats formats{.offloaded_optimizer = 1};
  TrainingPlan plan{.parallel = {.data = 4}, .global_batch = 64};
  const auto memory = [&] { return memory_of(llama_like(), plan, formats).most(); };
  EXPECT_EQ(memory().updated_parameters, memory().parameters);
  for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
    plan.sharding = sharding;
    EXPECT_EQ(memory().updated_parameters, Bytes(2 * count_parameters(llama_like()).total / 4));
  }
  formats.offloaded_parameters = 1;
  EXPECT_EQ(memory().updated_parameters.value(), 0);
  formats.offloaded_parameters = 0;

  formats.lora = {.rank = 16};
  const TrainingMemory adapted = memory();
  EXPECT_EQ(adapted.updated_parameters, 2 / formats.gradient_bytes * adapted.gradients);
  EXPECT_LT(adapted.updated_parameters, 0.1 * adapted.parameters);
  const HostMemoryLink slow_link{.link = BytesPerSecond(1e9), .memory = BytesPerSecond(1e15)};
  const Bytes both_ways = adapted.gradients + adapted.updated_parameters;
  EXPECT_DOUBLE_EQ(offload_seconds(adapted, {}, slow_link).value, both_ways.value() / (0.7 * 1e9));
}

// Two of the eight GPUs of a node have all of its memory's bandwidth to themselves.
TEST(TrainingMemory, bandwidth_of_the_host_is_shared_by_the_devices_that_are_used) {
  Node node{.device_count = 8};
  node.host = NodeHost{.count = 2};
  node.host->cpu.memory_bandwidth = Fact<BytesPerSecond>{.value = BytesPerSecond(200e9)};
  EXPECT_DOUBLE_EQ(host_memory_link(node, 64).memory.value(), 50e9);
  EXPECT_DOUBLE_EQ(host_memory_link(node, 2).memory.value(), 200e9);
  node.host_devices = Fact<int>{.value = 4};  // two hosts, each with half of it
  EXPECT_DOUBLE_EQ(host_memory_link(node, 64).memory.value(), 50e9);
  EXPECT_DOUBLE_EQ(host_memory_link(node, 2).memory.value(), 100e9);
}

TEST(TrainingMemory, of_a_host_is_what_all_its_devices_send_there) {
  const TrainingFormats away{.offloaded_optimizer = 1, .offloaded_activations = 1};
  const PlanMemory memory = memory_of(llama_like(), {.parallel = {.data = 4}, .global_batch = 4}, away);
  Node node{.device_count = 8};
  const HostMemoryLoad use = host_memory_use(memory, node, 4);
  EXPECT_EQ(use.of_device, memory.most().away_optimizer + memory.most().away_activations);
  EXPECT_EQ(use.of_host, 4 * use.of_device);
  EXPECT_TRUE(use.fits()) << "not known";
  node.host = NodeHost{.count = 2};
  node.host->cpu.memory = Fact<Bytes>{.value = 1.5 * use.of_device};
  EXPECT_FALSE(host_memory_use(memory, node, 4).fits());
  EXPECT_TRUE(host_memory_use(memory, node, 2).fits());
  node.host_devices = Fact<int>{.value = 4};
  EXPECT_EQ(host_memory_use(memory, node, 8).of_host, 4 * use.of_device);
  EXPECT_EQ(host_memory_use(memory, node, 8).capacity, 1.5 * use.of_device);
  const HostMemoryLoad without_devices = host_memory_use(memory, Node{.device_count = 0, .host = node.host}, 4);
  EXPECT_EQ(without_devices.of_host, use.of_device) << "one at least";
}

TEST(TrainingMemory, has_a_verdict_with_a_margin) {
  const MemoryOverheads overheads{.usable = 0.9};
  EXPECT_EQ(memory_verdict(Bytes(90), Bytes(100), overheads), MemoryVerdict::fits);
  EXPECT_EQ(memory_verdict(Bytes(95), Bytes(100), overheads), MemoryVerdict::tight);
  EXPECT_EQ(memory_verdict(Bytes(104), Bytes(100), overheads), MemoryVerdict::uncertain);
  EXPECT_EQ(memory_verdict(Bytes(106), Bytes(100), overheads), MemoryVerdict::too_large);
}

// One byte for each element after the attention and after the MLP; fused attention draws its numbers again.
TEST(TrainingMemory, dropout_of_activations_keeps_its_masks) {
  const auto formats = [](AttentionKernel attention, Dropout dropout) {
    return usual_formats(training_recipe("bf16"), {}, attention, dropout);
  };
  const TrainingPlan plan{.global_batch = 1};
  const auto activations = [&](const TrainingFormats& one) {
    return memory_of(llama_like(), plan, one, no_overheads).stages.front().activations.value();
  };
  const double none = activations(formats(AttentionKernel::flash, {}));
  const Model model = llama_like();
  const auto layers = static_cast<double>(model.layers.size());
  const auto stream = static_cast<double>(sequence_length * model.hidden);
  EXPECT_DOUBLE_EQ(activations(formats(AttentionKernel::flash, {.hidden = true})), none + (2 * layers + 1) * stream);
  EXPECT_DOUBLE_EQ(activations(formats(AttentionKernel::flash, {.attention = true})), none);
  // Where scores stay, each kind of dropout has its own masks.
  const double scores = activations(formats(AttentionKernel::unfused, {}));
  const double dropped_scores = activations(formats(AttentionKernel::unfused, {.attention = true}));
  EXPECT_GT(dropped_scores, scores);
  EXPECT_DOUBLE_EQ(activations(formats(AttentionKernel::unfused, {.hidden = true})),
                   scores + (2 * layers + 1) * stream);
  EXPECT_DOUBLE_EQ(activations(formats(AttentionKernel::unfused, {.hidden = true, .attention = true})),
                   dropped_scores + (2 * layers + 1) * stream);
}

TEST(TrainingMemory, freed_gradients_take_the_place_of_activations) {
  const Model model = llama_like();
  TrainingFormats formats;
  TrainingPlan plan{.micro_batch = 8, .global_batch = 8};
  const double kept = most_bytes(model, plan, formats);
  formats.frees_gradients = true;
  const PlanMemory freed = memory_of(model, plan, formats);
  EXPECT_LT(freed.most().total().value(), kept);
  EXPECT_GE(freed.most().total(), freed.most().states() - freed.most().gradients + freed.most().activations);
  plan.global_batch = 16;
  EXPECT_EQ(most_bytes(model, plan, formats), kept) << "with several micro-batches they stay";
}

TEST(TrainingMemory, eager_kernels_keep_more_and_compiled_ones_less) {
  const Model model = llama_like();
  const TrainingPlan plan{.micro_batch = 2, .global_batch = 2};
  const auto activations = [&](const SavedBeside& beside) {
    TrainingFormats formats;
    formats.saved.beside = beside;
    return memory_of(model, plan, formats).most().activations;
  };
  const Bytes fused = activations({});
  EXPECT_GT(activations({.gate = 2}), fused);
  EXPECT_GT(activations({.norm = 4}), activations({.stream = 2}));
  EXPECT_GT(activations({.stream = 2}), fused);
  EXPECT_LT(activations({.activation = -2}), fused);
}

TEST(TrainingMemory, an_allocator_knows_nothing_of_the_driver) {
  const PlanMemory memory = memory_of(llama_like(), {}, {}, allocator_overheads());
  EXPECT_EQ(memory.most().fragmentation, Bytes());
  EXPECT_LT(memory.most().total() + gibibytes(1), memory_of(llama_like(), {}).most().total() + Bytes(1));
}

}  // namespace foretoken::training_memory_test
