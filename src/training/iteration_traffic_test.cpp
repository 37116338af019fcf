// What an iteration waits for of its ranks' communication.
#include <cmath>

#include <gtest/gtest.h>

#include "model/step_test_models.h"
#include "model/weights.h"
#include "training/iteration.h"
#include "training/test_machine.h"

namespace foretoken::iteration_traffic_test {

using step_test::llama_like;
using step_test::mixtral_like;
using training_test::library_cluster;
using training_test::part_of;
using training_test::plain_stack;
using training_test::roofline_machine;
using training_test::step_of;

class TrainingIterationTraffic : public testing::Test {
 protected:
  double seconds(CollectiveKind kind, double bytes, int64_t ranks, int64_t stride = 1) const {
    return machine_->machine()
        .network->estimate({.kind = kind, .bytes = bytes, .group = ProcessGroup::strided(0, ranks, stride)})
        .seconds.value;
  }
  double data_seconds(const Model& model, const TrainingPlan& plan) const {
    return part_of(step_of({.model = model}, plan, *machine_), TimePart::data);
  }
  std::unique_ptr<MachineModels> machine_ = roofline_machine(4);
  const double parameters_ = static_cast<double>(count_parameters(llama_like()).total);
};

// 4 bytes of a gradient, 2 of a parameter.
TEST_F(TrainingIterationTraffic, of_replicas_is_that_of_zero_s_stages) {
  TrainingPlan plan{.parallel = {.data = 32}, .global_batch = 64};
  const double reduced = seconds(CollectiveKind::all_reduce, 4 * parameters_, 32);
  const double scattered = seconds(CollectiveKind::reduce_scatter, 4 * parameters_, 32) +
                           seconds(CollectiveKind::all_gather, 2 * parameters_, 32);
  EXPECT_NEAR(data_seconds(llama_like(), plan), reduced, 1e-6 * reduced);
  for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients}) {
    plan.sharding = sharding;
    EXPECT_NEAR(data_seconds(llama_like(), plan), scattered, 1e-6 * scattered);
  }
}

TEST_F(TrainingIterationTraffic, of_hybrid_shards_adds_an_all_reduce_of_one_shard) {
  TrainingPlan plan{.parallel = {.data = 32}, .global_batch = 64, .sharding = Sharding::optimizer, .shard_ranks = 8};
  const double expected = seconds(CollectiveKind::reduce_scatter, 4 * parameters_, 8) +
                          seconds(CollectiveKind::all_gather, 2 * parameters_, 8) +
                          seconds(CollectiveKind::all_reduce, 4 * parameters_ / 8, 4, 8);
  EXPECT_NEAR(data_seconds(llama_like(), plan), expected, 1e-6 * expected);
}

TEST_F(TrainingIterationTraffic, of_experts_stays_among_ranks_with_the_same_ones) {
  const TrainingPlan apart{.parallel = {.data = 8, .expert = 8}, .global_batch = 8};
  const TrainingPlan together{.parallel = {.data = 8}, .global_batch = 8};
  Model model = mixtral_like();
  const double expert_parameters = 6.0 * 8 * 3 * 1024 * 1536;
  const double rest = static_cast<double>(count_parameters(model).total) - expert_parameters;
  EXPECT_NEAR(data_seconds(model, apart), seconds(CollectiveKind::all_reduce, 4 * rest, 8), 1e-9);
  const double both =
      seconds(CollectiveKind::all_reduce, 4 * rest, 8) + seconds(CollectiveKind::all_reduce, 4 * expert_parameters, 8);
  EXPECT_NEAR(data_seconds(model, together), both, 1e-6 * both);
}

// Nothing can be hidden where computing takes no time beside it: two gathers and a scatter for each micro-batch.
TEST_F(TrainingIterationTraffic, of_sharded_parameters_is_two_gathers_and_a_scatter_for_every_micro_batch) {
  Cluster slow = library_cluster(4);
  slow.node.network_cards->bandwidth.value = slow.fabric.nic_bandwidth.value = BytesPerSecond(1e8);
  machine_ = roofline_machine(slow);
  TrainingStack stack = plain_stack();
  stack.constants[sharded_exposed] = 1;
  const TrainingPlan plan{.parallel = {.data = 32}, .global_batch = 96, .sharding = Sharding::parameters};
  const Model model = llama_like();
  const double layer = 2 * 1024 * 1024 + 2 * 1024 * 256 + 3 * 1024 * 2816 + 2 * 1024;
  const auto table = static_cast<double>(model.vocabulary * model.hidden);
  const auto traffic = [&](double parameters) {
    return 2 * seconds(CollectiveKind::all_gather, 2 * parameters, 32) +
           seconds(CollectiveKind::reduce_scatter, 4 * parameters, 32);
  };
  // Ten layers, the embedding, the head with its norm.
  const double all = 10 * traffic(layer) + traffic(table) + traffic(table + 1024);
  const IterationEstimate step = step_of({.model = model}, plan, *machine_, stack);
  EXPECT_NEAR(part_of(step, TimePart::sharded), 3 * all, 1e-6 * 3 * all);
  EXPECT_EQ(part_of(step, TimePart::data), 0);
}

TEST_F(TrainingIterationTraffic, of_sharded_parameters_never_pays_where_the_network_is_slow) {
  for (const double gigabytes : {0.1, 1.0, 5.0}) {
    Cluster slow = library_cluster(4);
    slow.node.network_cards->bandwidth.value = slow.fabric.nic_bandwidth.value = BytesPerSecond(gigabytes * 1e9);
    const auto machine = roofline_machine(slow);
    TrainingPlan plan{.parallel = {.data = 32}, .global_batch = 128};
    const double whole = step_of({.model = llama_like()}, plan, *machine).seconds.value;
    plan.sharding = Sharding::parameters;
    EXPECT_GT(step_of({.model = llama_like()}, plan, *machine).seconds.value, whole) << gigabytes;
  }
}

TEST_F(TrainingIterationTraffic, of_sharded_parameters_obeys_the_overlaps_that_are_asked_for) {
  TrainingStack stack = plain_stack();
  stack.constants[sharded_exposed] = 0.5;
  const TrainingPlan plan{.parallel = {.data = 32}, .global_batch = 64, .sharding = Sharding::parameters};
  const auto sharded = [&](TrafficOverlap gradients, TrafficOverlap parameters) {
    TrainingPlan one = plan;
    one.overlaps = {.gradients = gradients, .parameters = parameters};
    return part_of(step_of({.model = llama_like()}, one, *machine_, stack), TimePart::sharded);
  };
  using enum TrafficOverlap;
  const double usual = sharded(published, published), all = sharded(off, off);
  for (const double half : {sharded(off, published), sharded(published, off)}) {
    EXPECT_GT(half, usual);
    EXPECT_LT(half, all);
  }
  EXPECT_LT(sharded(on, published), usual);
  EXPECT_LT(sharded(published, on), usual);
  EXPECT_LT(sharded(on, on), sharded(on, published));
}

// Copies of sharded parameters exchange gradients alone.
TEST_F(TrainingIterationTraffic, between_copies_of_shards_obeys_the_overlap_of_gradients) {
  TrainingStack stack = plain_stack();
  stack.constants[data_exposed] = 0.5;
  const auto between_copies = [&](TrafficOverlap gradients, TrafficOverlap parameters) {
    TrainingPlan plan{.parallel = {.data = 32}, .global_batch = 64, .sharding = Sharding::parameters};
    plan.shard_ranks = 8;
    plan.overlaps = {.gradients = gradients, .parameters = parameters};
    return part_of(step_of({.model = llama_like()}, plan, *machine_, stack), TimePart::data);
  };
  using enum TrafficOverlap;
  const double usual = between_copies(published, published);
  EXPECT_GT(usual, 0);
  EXPECT_EQ(between_copies(published, off), usual);
  EXPECT_GT(between_copies(off, published), usual);
}

// Nobody waits longer for a communication than it lasts.
TEST_F(TrainingIterationTraffic, that_shipped_stacks_do_not_hide_lasts_no_longer_than_without_overlap) {
  const TrainingStackCatalogue shipped(FORETOKEN_SOURCE_DIR "/data/training/stacks");
  TrainingPlan plan{.parallel = {.tensor = 2, .data = 16, .expert = 2, .sequence = true}, .global_batch = 32};
  for (const TrainingStack& stack : shipped.all()) {
    for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::parameters}) {
      plan.sharding = sharding;
      plan.overlaps = {};
      const double usual = step_of({.model = mixtral_like()}, plan, *machine_, stack).seconds.value;
      using enum TrafficOverlap;
      plan.overlaps = {.gradients = off, .parameters = off, .tensor = off, .experts = off};
      EXPECT_LE(usual, (1 + 1e-9) * step_of({.model = mixtral_like()}, plan, *machine_, stack).seconds.value)
          << stack.name;
    }
  }
}

TEST_F(TrainingIterationTraffic, of_gradients_may_come_with_every_micro_batch) {
  TrainingStack stack = plain_stack();
  stack.scatters_always = true;
  stack.constants[sharded_exposed] = 1;
  const auto step = [&](int64_t batch, Sharding sharding) {
    const TrainingPlan plan{.parallel = {.data = 32}, .global_batch = batch, .sharding = sharding};
    return step_of({.model = llama_like()}, plan, *machine_, stack);
  };
  const double once = part_of(step(32, Sharding::gradients), TimePart::sharded);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(part_of(step(96, Sharding::gradients), TimePart::sharded), 3 * once, 1e-6 * once);
  EXPECT_EQ(part_of(step(96, Sharding::optimizer), TimePart::sharded), 0);
  // Parameters come back once a step.
  const double gathered = seconds(CollectiveKind::all_gather, 2 * parameters_, 32);
  EXPECT_NEAR(part_of(step(96, Sharding::gradients), TimePart::data), gathered, 1e-6 * gathered);
}

TEST_F(TrainingIterationTraffic, of_tensor_ranks_is_waited_for_in_formats_that_hide_none_of_it) {
  const auto machine = roofline_machine(1);
  const TrainingPlan plan{.parallel = {.tensor = 4, .data = 2, .sequence = true}, .global_batch = 8};
  const TrainingJob job{.model = llama_like(), .recipe = training_recipe("fp8-current")};
  TrainingStack stack = plain_stack();
  stack.constants[tensor_exposed] = 0.25;
  stack.constants[board_factor] = 1000;  // computing enough to hide it
  const auto tensor_seconds = [&](const TrainingJob& asked) {
    return part_of(IterationModel(asked, stack, machine->machine()).estimate(plan), TimePart::tensor);
  };
  const double hidden = tensor_seconds(job);
  stack.recipes["fp8-current"] = {.hides_tensor = false, .gathered_parameter_bytes = std::nullopt};
  EXPECT_NEAR(tensor_seconds(job), 4 * hidden, 1e-9 * hidden);
  // Quantized inputs are gathered in fewer bytes than 16-bit ones, which adapters read.
  TrainingJob wide = job;
  wide.recipe = training_recipe("bf16");
  EXPECT_GT(tensor_seconds(wide), hidden);
}

TEST_F(TrainingIterationTraffic, between_stages_is_the_activations_of_a_micro_batch) {
  const TrainingJob job{.model = llama_like(), .sequence_length = 4096};
  TrainingStack whole = plain_stack();
  whole.scatters_sends = false;
  TrainingPlan plan{.parallel = {.tensor = 4, .pipeline = 2, .data = 2, .context = 2}, .micro_batch = 3};
  const double all = 3 * 4096 / 2 * 1024 * 2;
  EXPECT_EQ(pipeline_message_bytes(job, plan, whole), all);
  EXPECT_EQ(pipeline_message_bytes(job, plan, plain_stack()), all / 4);
  plan.parallel.sequence = true;
  EXPECT_EQ(pipeline_message_bytes(job, plan, whole), all / 4);
}

TEST(TrainingTraffic, gradients_travel_in_the_bytes_that_the_job_asks_for) {
  const auto machine = roofline_machine(8);
  TrainingStack stack = plain_stack();
  stack.constants[gradient_bytes] = 2;
  stack.constants[data_exposed] = 1;
  TrainingJob job{.model = llama_like()};
  const TrainingPlan plan{.parallel = {.data = 8}, .global_batch = 8};
  const auto data = [&] { return part_of(step_of(job, plan, *machine, stack), TimePart::data); };
  const double narrow = data();
  job.gradient_bytes = 4;
  EXPECT_GT(data(), 1.5 * narrow);
  EXPECT_LE(data(), 2 * narrow);
  // The job's word stands also where a fit tries other constants.
  IterationModel model(job, stack, machine->machine());
  const double before = model.seconds(plan);
  model.use_constants(stack.constants);
  EXPECT_EQ(model.seconds(plan), before);
}

TEST(TrainingTraffic, what_does_not_fit_beside_computing_is_waited_for) {
  const auto machine = roofline_machine(2);
  TrainingStack stack = plain_stack();
  for (const TrainingConstant share : {tensor_exposed, expert_exposed, data_exposed}) stack.constants[share] = 0.5;
  const TrainingPlan plan{.parallel = {.tensor = 2, .data = 8, .expert = 8, .sequence = true},
                          .global_batch = 16,
                          .sharding = Sharding::optimizer};
  IterationModel model({.model = step_test::mixtral_like(), .sequence_length = 2048}, stack, machine->machine());
  const auto seconds = [&](TrafficOverlaps overlaps) {
    TrainingPlan one = plan;
    one.overlaps = overlaps;
    EXPECT_LE(model.quick_seconds(one), model.seconds(one) * (1 + 1e-9));
    return model.seconds(one);
  };
  const double published = seconds({});
  for (TrafficOverlap TrafficOverlaps::*kind : {&TrafficOverlaps::gradients, &TrafficOverlaps::parameters,
                                                &TrafficOverlaps::tensor, &TrafficOverlaps::experts}) {
    TrafficOverlaps overlaps;
    overlaps.*kind = TrafficOverlap::off;
    EXPECT_GT(seconds(overlaps), published);
    overlaps.*kind = TrafficOverlap::on;
    EXPECT_LE(seconds(overlaps), published);
  }
}

TEST(TrainingTraffic, a_stack_that_hides_all_tokens_sent_hides_no_more_than_it_computes) {
  const auto machine = roofline_machine(2);
  TrainingStack stack = plain_stack();
  stack.constants[expert_exposed] = 0;
  const TrainingPlan plan{.parallel = {.data = 16, .expert = 16}, .global_batch = 16};
  const auto waited = [&](int64_t width) {
    Model model = mixtral_like();
    for (Layer& layer : model.layers) {
      auto& experts = std::get<Moe>(layer.feed_forward);
      experts.experts = 64;
      experts.top_k = 8;
      experts.width = width;
    }
    IterationModel iterations({.model = model, .sequence_length = 4096}, stack, machine->machine());
    EXPECT_LE(iterations.quick_seconds(plan), iterations.seconds(plan) * (1 + 1e-9));
    return part_of(iterations.estimate(plan), TimePart::expert);
  };
  EXPECT_EQ(waited(32'768), 0);
  EXPECT_GT(waited(64), 0);
}

TEST(TrainingTraffic, experts_over_two_nodes_wait_no_less_for_tokens_than_in_one) {
  const auto machine = roofline_machine(2);
  Model model = mixtral_like();
  for (Layer& layer : model.layers) {
    auto& experts = std::get<Moe>(layer.feed_forward);
    experts.experts = 64;
    experts.top_k = 8;
  }
  const auto exchange = [&](int64_t ranks, TokenDispatcher dispatcher) {
    const TrainingPlan plan{.parallel = {.data = 16, .expert = ranks}, .global_batch = 16, .dispatcher = dispatcher};
    return part_of(step_of({.model = model, .sequence_length = 4096}, plan, *machine), TimePart::expert);
  };
  for (const TokenDispatcher dispatcher :
       {TokenDispatcher::usual, TokenDispatcher::all_to_all, TokenDispatcher::hybridep}) {
    EXPECT_GE(exchange(16, dispatcher), exchange(8, dispatcher)) << token_dispatcher_name(dispatcher);
  }
}

TEST(TrainingTraffic, a_token_goes_once_to_each_rank_that_needs_it) {
  const auto machine = roofline_machine(1);
  TrainingPlan plan{.parallel = {.data = 8, .expert = 8}, .global_batch = 8};
  IterationModel model({.model = step_test::mixtral_like(), .sequence_length = 2048}, plain_stack(),
                       machine->machine());
  const auto seconds = [&](TokenDispatcher dispatcher) {
    plan.dispatcher = dispatcher;
    return model.seconds(plan);
  };
  EXPECT_LT(seconds(TokenDispatcher::hybridep), seconds(TokenDispatcher::all_to_all));
  EXPECT_DOUBLE_EQ(seconds(TokenDispatcher::deepep), seconds(TokenDispatcher::hybridep));  // nothing was measured here
  EXPECT_LT(seconds(TokenDispatcher::usual), seconds(TokenDispatcher::all_to_all));  // copies are sorted once more
}

}  // namespace foretoken::iteration_traffic_test
