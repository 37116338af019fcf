#include "compose/profile/trace_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/profile/chakra_step.h"
#include "compose/profile/ported_trace.h"
#include "compose/profile/test_trace.h"
#include "library/library.h"
#include "network/chakra/groups.h"

namespace foretoken::trace_plan_test {

const Library& library() {
  static const Library opened(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data", {});
  return opened;
}

ParallelPlan plan(int64_t tensor, int64_t pipeline, int64_t data) {
  return {.tensor = tensor, .pipeline = pipeline, .data = data};
}

// One rank of a step whose kernels are long enough for launches not to matter.
class TestRank {
 public:
  TestRank& run(const std::string& name, std::vector<Json> inputs, const std::string& kernel, double us) {
    trace_.run(name, std::move(inputs), kernel);
    times_.push_back(us);
    messages_.emplace_back();
    return *this;
  }
  // [rows, inner] x [inner, columns]
  TestRank& multiply(int64_t rows, int64_t columns, int64_t inner, double us) {
    return run("aten::mm", {TestTrace::sizes({rows, inner}), TestTrace::sizes({inner, columns})}, "nvjet_sm90", us);
  }
  TestRank& message(ProfiledMessage message, double us) {
    run("record_param_comms", {}, "ncclDevKernel", us);
    messages_.back() = std::move(message);
    return *this;
  }

  // Kernels one after the other, all launched at the start.
  ProfiledStep step() const {
    ProfiledStep step = parse_profile(trace_.text(), "test");
    double end = 0;
    for (size_t i = 0; i < step.kernels.size(); ++i) {
      ProfiledKernel& kernel = step.kernels[i];
      kernel.launched_us = 0.001 * static_cast<double>(i);
      kernel.us = times_[i], kernel.start_us = end, kernel.message = messages_[i];
      kernel.backward = i >= backward_from;
      end += kernel.us;
    }
    return step;
  }

  size_t backward_from = 1000;

 private:
  TestTrace trace_;
  std::vector<double> times_;
  std::vector<std::optional<ProfiledMessage>> messages_;
};

struct Question {
  ParallelPlan recorded, wanted;
  std::string to = "h100_sxm";
  int64_t micro_batches = 0;
};

PortedTrace ask(const ProfiledStep& step, const Question& question, const ImportedChakra* graph = nullptr) {
  const KernelPredictor from = library().predictor(std::string("h100_sxm")), to = library().predictor(question.to);
  const PlacementSpec placement{.order = {std::begin(training_rank_order), std::end(training_rank_order)}};
  const auto network = [&](const KernelPredictor& kernels, const ParallelPlan& plan) {
    return rank_count(plan) > 1 ? library().network(kernels.device(), plan, placement) : nullptr;
  };
  const auto before = network(from, question.recorded), after = network(to, question.wanted);
  return port_trace(step, {.from = from,
                           .to = to,
                           .recorded = {.plan = question.recorded, .network = before.get()},
                           .wanted = {.plan = question.wanted, .network = after.get()},
                           .same_links = question.to == "h100_sxm",
                           .graph = graph,
                           .micro_batches = question.micro_batches});
}

const PortedClass& class_of(const PortedTrace& trace, const std::string& name) {
  for (const PortedClass& one : trace.classes) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("no class " + name);
}

Estimate network_us(const ParallelPlan& plan, const CollectiveShape& shape) {
  const PlacementSpec placement{.order = {std::begin(training_rank_order), std::end(training_rank_order)}};
  const auto network = library().network(library().predictor(std::string("h100_sxm")).device(), plan, placement);
  return scaled(network->seconds({.shape = shape}), 1e6);
}

constexpr double gradients = 1 << 30;

ProfiledMessage all_reduce(std::vector<int32_t> ranks, double bytes) {
  const auto size = static_cast<int64_t>(ranks.size());
  return {.kind = CollectiveKind::all_reduce, .bytes = bytes, .ranks = std::move(ranks), .group_size = size};
}

TestRank data_parallel_rank() {
  TestRank rank;
  rank.multiply(8192, 8192, 4096, 900)
      .message(all_reduce({0, 1, 2, 3, 4, 5, 6, 7}, gradients), 6000)
      .run("aten::_fused_adamw_", {}, "multi_tensor_apply_kernel", 502);
  return rank;
}

TEST(TracePlan, the_recorded_job_takes_what_was_recorded) {
  const ProfiledStep step = data_parallel_rank().step();
  const PortedTrace same = ask(step, {.recorded = plan(1, 1, 8), .wanted = plan(1, 1, 8)});
  EXPECT_DOUBLE_EQ(same.ported_span_us.value, same.measured_span_us);
  EXPECT_DOUBLE_EQ(same.ported_span_us.low, same.measured_span_us);
  EXPECT_DOUBLE_EQ(same.ported_span_us.high, same.measured_span_us);
  EXPECT_DOUBLE_EQ(same.measured_us_by(PortBasis::kept), same.measured_us);
}

TEST(TracePlan, more_data_parallel_ranks_change_their_collectives_alone) {
  const PortedTrace more = ask(data_parallel_rank().step(), {.recorded = plan(1, 1, 8), .wanted = plan(1, 1, 64)});
  const PortedClass& reduce = class_of(more, "communicate (all_reduce)");
  EXPECT_EQ(reduce.basis, PortBasis::network);
  const auto time = [&](int64_t ranks) {
    return network_us(
               plan(1, 1, ranks),
               {.kind = CollectiveKind::all_reduce, .axis = ParallelAxis::data, .ranks = ranks, .bytes = gradients})
        .value;
  };
  ASSERT_LT(time(8), 6000) << "the rest of the measured time is waiting";
  EXPECT_NEAR(reduce.ported_us.value, 6000 - time(8) + time(64), 1e-6);
  EXPECT_LT(reduce.ported_us.low, reduce.ported_us.value);
  EXPECT_GT(reduce.ported_us.high, reduce.ported_us.value);
  EXPECT_EQ(class_of(more, "multiply (torch_linear)").basis, PortBasis::kept);
  EXPECT_DOUBLE_EQ(class_of(more, "multiply (torch_linear)").ported_us.value, 900);
  EXPECT_NEAR(more.ported_span_us.value, more.measured_span_us + time(64) - time(8), 1e-6);
}

TEST(TracePlan, one_data_parallel_rank_has_no_collectives) {
  const PortedTrace one = ask(data_parallel_rank().step(), {.recorded = plan(1, 1, 8), .wanted = plan(1, 1, 1)});
  EXPECT_EQ(class_of(one, "communicate (all_reduce)").ported_us.high, 0);
  EXPECT_NEAR(one.ported_span_us.value, one.measured_span_us - 6000, 1e-6);
}

TEST(TracePlan, a_sharded_optimizer_is_divided_among_data_parallel_ranks) {
  TestRank rank = data_parallel_rank();
  rank.message({.kind = CollectiveKind::all_gather, .bytes = gradients / 8, .group_size = 8}, 4000);
  const PortedTrace more = ask(rank.step(), {.recorded = plan(1, 1, 8), .wanted = plan(1, 1, 16)});
  EXPECT_DOUBLE_EQ(more.measured_us_by(PortBasis::split), 502);
  double optimizer = 0;
  for (const PortedClass& one : more.classes) optimizer += one.basis == PortBasis::split ? one.ported_us.value : 0;
  EXPECT_DOUBLE_EQ(optimizer, 2 + 500.0 / 2);
  const auto gathered = [&](int64_t ranks) {
    return network_us(
               plan(1, 1, ranks),
               {.kind = CollectiveKind::all_gather, .axis = ParallelAxis::data, .ranks = ranks, .bytes = gradients})
        .value;
  };
  ASSERT_LT(gathered(8), 4000);
  const double stretch = (900.0 + 252) / (900 + 502);
  EXPECT_NEAR(class_of(more, "communicate (all_gather)").ported_us.value, gathered(16) + (4000 - gathered(8)) * stretch,
              1e-6)
      << "all ranks together gather as much as before, and other ranks' kernels are shorter too";
}

// A layer of TP2: hidden 4096, MLP 14336, 4096 tokens.
TestRank tensor_parallel_rank() {
  TestRank rank;
  const Json hidden = TestTrace::sizes({4096, 4096}), wide = TestTrace::sizes({4096, 7168});
  rank.multiply(4096, 3072, 4096, 200)
      .multiply(4096, 4096, 2048, 150)
      .message(all_reduce({0, 1}, 2.0 * 4096 * 4096), 300)
      .run("aten::add", {hidden, hidden}, "void at::native::vectorized_elementwise_kernel", 50)
      .multiply(4096, 14336, 4096, 900)
      .run("aten::mul", {wide, wide}, "void at::native::vectorized_elementwise_kernel", 80)
      .multiply(4096, 4096, 7168, 450)
      .message(all_reduce({0, 1}, 2.0 * 4096 * 4096), 300);
  return rank;
}

TEST(TracePlan, more_tensor_parallel_ranks_divide_multiplies_and_wide_tensors) {
  const PortedTrace more = ask(tensor_parallel_rank().step(), {.recorded = plan(2, 1, 1), .wanted = plan(4, 1, 1)});
  const PortedClass& multiplies = class_of(more, "multiply (torch_linear)");
  EXPECT_EQ(multiplies.basis, PortBasis::estimates);
  EXPECT_GT(multiplies.ported_us.value, 0.45 * multiplies.measured_us);
  EXPECT_LT(multiplies.ported_us.value, 0.7 * multiplies.measured_us);
  double kept = 0, divided = 0;
  for (const PortedClass& one : more.classes) {
    if (one.name != "elementwise (torch_add)") continue;
    (one.basis == PortBasis::kept ? kept : divided) = one.ported_us.high;
  }
  EXPECT_DOUBLE_EQ(kept, 50) << "every rank adds the whole hidden state, for sure";
  EXPECT_GT(divided, 30);
  EXPECT_LE(divided, 80) << "half of the work takes no longer";
  EXPECT_EQ(class_of(more, "communicate (all_reduce)").basis, PortBasis::network);
}

TEST(TracePlan, sequence_parallelism_divides_the_hidden_state_too) {
  ParallelPlan recorded = plan(2, 1, 1), wanted = plan(4, 1, 1);
  recorded.sequence = wanted.sequence = true;
  const PortedTrace more = ask(tensor_parallel_rank().step(), {.recorded = recorded, .wanted = wanted});
  const PortedClass& sums = class_of(more, "elementwise (torch_add)");
  EXPECT_EQ(sums.kernels, 2u);
  EXPECT_LT(sums.ported_us.value, 0.65 * sums.measured_us);
}

TEST(TracePlan, groups_are_told_apart_by_the_distance_of_their_ranks) {
  const MessagePrices prices({.plan = plan(4, 2, 4)}, {.plan = plan(4, 2, 4)});
  EXPECT_EQ(prices.axis_of(all_reduce({0, 1, 2, 3}, 1)), ParallelAxis::tensor);
  EXPECT_EQ(prices.axis_of(all_reduce({0, 4, 8, 12}, 1)), ParallelAxis::data);
  EXPECT_EQ(prices.axis_of(all_reduce({0, 16}, 1)), ParallelAxis::pipeline);
  EXPECT_EQ(prices.axis_of(all_reduce({0, 2, 4, 6}, 1)), std::nullopt);
  EXPECT_EQ(prices.axis_of({.kind = CollectiveKind::all_reduce, .bytes = 1, .group_size = 4}), std::nullopt)
      << "TP and DP groups are of one size";
}

TEST(TracePlan, stages_of_a_new_pipeline_have_fewer_layers_and_a_bubble) {
  TestRank rank;
  rank.multiply(8192, 8192, 4096, 8000);
  const PortedTrace four = ask(rank.step(), {.recorded = plan(1, 1, 1), .wanted = plan(1, 4, 1), .micro_batches = 8});
  EXPECT_NEAR(four.ported_us.value, 2000, 1e-6);
  EXPECT_GE(four.bubble_us.value, 2000.0 * 3 / 8);
  EXPECT_LT(four.bubble_us.value, 2000.0 * 3 / 8 + 6 * 1000);
  EXPECT_NEAR(four.ported_span_us.value, 2000 + four.bubble_us.value, 1);
}

TEST(TracePlan, waits_for_other_stages_grow_with_the_bubble) {
  TestRank rank;
  const ProfiledMessage receive{.kind = CollectiveKind::send_recv, .bytes = 1 << 20, .group_size = 2, .peer = 0};
  rank.multiply(8192, 8192, 4096, 4000).message(receive, 2000);
  const PortedTrace four = ask(rank.step(), {.recorded = plan(1, 2, 1), .wanted = plan(1, 4, 1)});
  // (4 - 1) stages of half the layers against one.
  EXPECT_NEAR(class_of(four, "communicate (send_recv)").ported_us.value, 1.5 * 2000, 60);
  EXPECT_NEAR(class_of(four, "multiply (torch_linear)").ported_us.value, 2000, 1e-6);
}

TEST(TracePlan, all_reduces_are_added_for_tensor_ranks_that_a_trace_of_one_gpu_does_not_have) {
  TestRank rank;
  rank.multiply(4096, 6144, 4096, 400)
      .run("aten::_flash_attention_forward", {}, "flash_fwd_kernel", 200)
      .multiply(4096, 4096, 4096, 300)
      .multiply(4096, 28672, 4096, 1800)
      .multiply(4096, 4096, 14336, 900);
  const PortedTrace two = ask(rank.step(), {.recorded = plan(1, 1, 1), .wanted = plan(2, 1, 1)});
  const double each =
      network_us(
          plan(2, 1, 1),
          {.kind = CollectiveKind::all_reduce, .axis = ParallelAxis::tensor, .ranks = 2, .bytes = 2.0 * 4096 * 4096})
          .value;
  EXPECT_NEAR(two.tensor_us.value, 2 * each, 1e-6);
  EXPECT_LT(two.tensor_us.low, 0.6 * two.tensor_us.value) << "some stacks hide them";
  EXPECT_LT(class_of(two, "multiply (torch_linear)").ported_us.value, 0.65 * 3400);
  EXPECT_NEAR(two.ported_span_us.value, two.ported_us.value + two.tensor_us.value, 1);
  TestRank without;
  without.multiply(4096, 4096, 4096, 300);
  EXPECT_THROW(ask(without.step(), {.recorded = plan(1, 1, 1), .wanted = plan(2, 1, 1)}), InputError);
}

TEST(TracePlan, gradients_are_added_for_ranks_that_a_trace_of_one_gpu_does_not_have) {
  TestRank rank;
  rank.multiply(8192, 16384, 16384, 8000).multiply(8192, 16384, 16384, 100);
  rank.backward_from = 1;
  const PortedTrace eight = ask(rank.step(), {.recorded = plan(1, 1, 1), .wanted = plan(1, 1, 8)});
  const double whole =
      network_us(
          plan(1, 1, 8),
          {.kind = CollectiveKind::all_reduce, .axis = ParallelAxis::data, .ranks = 8, .bytes = 2.0 * 16384 * 16384})
          .value;
  EXPECT_NEAR(eight.gradients_us.value, whole - 100, 1e-6) << "the backward pass hides 100 us";
  EXPECT_GE(eight.gradients_us.high, whole);
  EXPECT_TRUE(eight.assumes_one_micro_batch);
  const Question four{.recorded = plan(1, 1, 1), .wanted = plan(1, 1, 8), .micro_batches = 4};
  EXPECT_FALSE(ask(rank.step(), four).assumes_one_micro_batch);
  EXPECT_LT(ask(rank.step(), four).gradients_us.high, eight.gradients_us.high);
  rank.backward_from = 2;
  EXPECT_EQ(ask(rank.step(), {.recorded = plan(1, 1, 1), .wanted = plan(1, 1, 8)}).gradients_us.value, 0)
      << "no training";
}

TEST(TracePlan, a_chakra_trace_says_what_the_profile_said) {
  const ProfiledStep step = data_parallel_rank().step();
  const ChakraStep same = chakra_step(chakra_from_profile(step).trace, "test", 8);
  ASSERT_EQ(same.step.kernels.size(), step.kernels.size());
  const Question question{.recorded = plan(1, 1, 8), .wanted = plan(1, 1, 64)};
  const PortedTrace profile = ask(step, question), chakra = ask(same.step, question, &same.graph);
  EXPECT_NEAR(chakra.measured_span_us, profile.measured_span_us, 1e-6);
  EXPECT_NEAR(chakra.ported_span_us.value, profile.ported_span_us.value, 1e-6);
}

TEST(TracePlan, chakra_traces_that_cannot_be_are_refused) {
  const ChakraTrace good = chakra_from_profile(data_parallel_rank().step()).trace;
  ChakraTrace circle = good;
  circle.nodes[1].data_dependencies.push_back(circle.nodes.back().id);
  EXPECT_THROW(chakra_step(circle, "test", 8), InputError);
  ChakraTrace missing = good;
  missing.nodes.back().data_dependencies.push_back(100000);
  EXPECT_THROW(chakra_step(missing, "test", 8), InputError);
  ChakraTrace generated = good;
  for (ChakraNode& node : generated.nodes) {
    if (node.type != ChakraNodeType::collective) continue;
    node.duration_micros = 0;
    std::erase_if(node.attributes, [](const auto& one) { return one.name == fine_duration_attribute; });
  }
  EXPECT_THROW(chakra_step(generated, "test", 8), InputError) << "no times of communication";
  EXPECT_THROW(chakra_step({}, "test", 8), InputError);
}

ChakraNode& collective_in(ChakraTrace& trace) {
  for (ChakraNode& node : trace.nodes) {
    if (node.type == ChakraNodeType::collective) return node;
  }
  throw std::runtime_error("no collective");
}

TEST(TracePlan, groups_of_all_ranks_take_no_memory_for_each_rank) {
  ChakraTrace trace = chakra_from_profile(data_parallel_rank().step()).trace;
  std::erase_if(collective_in(trace).attributes, [](const auto& one) { return one.name == "pg_name"; });
  collective_in(trace).attributes.push_back(chakra_text("pg_name", "all7"));
  NamedGroups groups;
  for (int i = 0; i < 20000; ++i) groups["all" + std::to_string(i)] = {};
  trace.nodes.push_back(chakra_group_node(100000, groups));
  for (const int64_t ranks : {int64_t{0}, int64_t{8}, most_job_ranks}) {
    const ChakraStep read = chakra_step(trace, "test", ranks);
    ASSERT_TRUE(read.step.kernels[1].message);
    EXPECT_EQ(read.step.kernels[1].message->group_size, ranks);
    EXPECT_TRUE(read.step.kernels[1].message->ranks.empty());
  }
  const ChakraStep eight = chakra_step(trace, "test", 8);
  const PortedTrace more = ask(eight.step, {.recorded = plan(1, 1, 8), .wanted = plan(1, 1, 64)}, &eight.graph);
  EXPECT_GT(more.measured_us_by(PortBasis::network), 0) << "all ranks are the data-parallel ones";
}

TEST(TracePlan, negative_times_and_sizes_of_chakra_traces_are_refused) {
  const ChakraTrace good = chakra_from_profile(data_parallel_rank().step()).trace;
  const auto complaint = [](const ChakraTrace& trace) {
    try {
      chakra_step(trace, "test", 8);
    } catch (const InputError& error) {
      return error.problem().path + ": " + error.problem().value;
    }
    return std::string();
  };
  ChakraTrace early = good;
  for (ChakraNode& node : early.nodes) {
    if (node.name != "nvjet_sm90") continue;
    std::erase_if(node.attributes, [](const auto& one) { return one.name == fine_duration_attribute; });
    node.attributes.push_back(chakra_number(std::string(fine_duration_attribute), -900));
  }
  EXPECT_THAT(complaint(early), testing::AllOf(testing::HasSubstr("nvjet_sm90"), testing::HasSubstr("-900")));
  ChakraTrace small = good;
  std::erase_if(collective_in(small).attributes, [](const auto& one) { return one.name == "comm_size"; });
  collective_in(small).attributes.push_back(chakra_integer("comm_size", -1));
  EXPECT_THAT(complaint(small),
              testing::AllOf(testing::HasSubstr("ncclDevKernel"), testing::HasSubstr("comm_size -1")));
}

TEST(TracePlan, what_the_trace_does_not_show_is_refused) {
  TestRank rank;
  rank.multiply(64, 64, 64, 10);
  EXPECT_THROW(ask(rank.step(), {.recorded = plan(1, 1, 1), .wanted = plan(2, 1, 1)}), InputError);
  EXPECT_THROW(ask(rank.step(), {.recorded = plan(1, 1, 1), .wanted = plan(1, 2, 1)}), InputError)
      << "no micro-batches";
  TestRank sizeless;
  sizeless.run("mine::kernel", {}, "my_kernel", 10);
  EXPECT_THROW(ask(sizeless.step(), {.recorded = plan(1, 1, 1), .wanted = plan(1, 1, 2)}), InputError);
  TestRank heads;
  const Json query = TestTrace::sizes({1, 6, 128, 64});
  heads.run("aten::scaled_dot_product_attention", {query, query, query}, "flash_fwd", 10);
  EXPECT_THROW(ask(heads.step(), {.recorded = plan(2, 1, 1), .wanted = plan(8, 1, 1)}), InputError);
}

TEST(TracePlanNeedsData, a_real_training_chunk_takes_what_was_recorded_under_its_own_plan) {
  const char* const data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const ProfiledStep step = read_profile(std::filesystem::path(data) / "deepseek/train_trace.json.gz");
  const double recorded_us = 129012;  // from the first kernel's start to the last one's end
  const PortedTrace same = ask(step, {.recorded = plan(1, 1, 64), .wanted = plan(1, 1, 64)});
  EXPECT_NEAR(same.ported_span_us.value, recorded_us, 0.001 * recorded_us);
  const ChakraStep chakra = chakra_step(chakra_from_profile(step).trace, "test", 64);
  EXPECT_NEAR(
      ask(chakra.step, {.recorded = plan(1, 1, 64), .wanted = plan(1, 1, 64)}, &chakra.graph).ported_span_us.value,
      same.ported_span_us.value, 1e-3);
  const PortedTrace more = ask(step, {.recorded = plan(1, 1, 64), .wanted = plan(1, 1, 1024)});
  EXPECT_DOUBLE_EQ(more.ported_span_us.value, same.ported_span_us.value) << "it has no data-parallel collectives";
  const PortedTrace half = ask(step, {.recorded = plan(1, 16, 4), .wanted = plan(1, 32, 4)});
  EXPECT_NEAR(half.ported_span_us.value, same.ported_span_us.value / 2, 0.05 * same.ported_span_us.value);
}

}  // namespace foretoken::trace_plan_test
