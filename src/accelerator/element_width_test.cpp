#include "accelerator/element_width.h"

#include <gtest/gtest.h>

#include "accelerator/evaluator.h"
#include "accelerator/mapper/mapper.h"

namespace foretoken::element_width_test {

// A memory that packs, a buffer that packs, registers that do not.
Architecture chip() {
  return {.name = "chip",
          .levels = {{.name = "DRAM",
                      .word_bits = 8,
                      .words_per_access = 8,
                      .bandwidth = {.shared = 4},
                      .energy = {.read_pj = 64, .fill_pj = 64, .update_pj = 64}},
                     {.name = "buffer",
                      .word_bits = 8,
                      .words_per_access = 4,
                      .depth = 1024,
                      .buffers = 2,
                      .energy = {.read_pj = 4, .fill_pj = 4, .update_pj = 4}},
                     {.name = "cell",
                      .instances_x = 4,
                      .instances_y = 4,
                      .word_bits = 8,
                      .depth = 16,
                      .buffers = 2,
                      .energy = {.read_pj = 0.1, .fill_pj = 0.1, .update_pj = 0.1}},
                     {.name = "mac",
                      .kind = LevelKind::compute,
                      .instances_x = 4,
                      .instances_y = 4,
                      .word_bits = 8,
                      .energy = {.compute_pj = 0.2}}}};
}

Problem product(double input_bits, double weight_bits, double result_bits, double sum_bits) {
  Problem problem = gemm_problem({.m = 16, .n = 32, .k = 64});
  problem.tensors[0].bits = input_bits;
  problem.tensors[1].bits = weight_bits;
  problem.tensors[2].bits = result_bits;
  problem.tensors[2].sum_bits = sum_bits;
  return problem;
}

Evaluation best(const Problem& problem, MappingMetric first = MappingMetric::latency, int64_t tries = 4000) {
  const MapperOptions options{.objective = {.first = first, .second = MappingMetric::energy}, .most_tries = tries};
  return search_mappings(chip(), problem, {}, options).best->evaluation;
}

TEST(ElementWidth, memories_and_wide_levels_pack_elements_and_registers_do_not) {
  const Architecture own = chip();
  const ProblemTensor four{.bits = 4}, sums{.written = true, .bits = 8, .sum_bits = 32}, plain{};
  EXPECT_EQ(words_of_element(own, 0, four), 0.5);
  EXPECT_EQ(words_of_element(own, 1, four), 0.5);
  EXPECT_EQ(words_of_element(own, 2, four), 1);
  EXPECT_EQ(words_of_element(own, 2, sums), 1);
  EXPECT_EQ(words_of_sum(own, 2, sums), 4);
  EXPECT_EQ(words_of_element(own, 0, plain), 1);
  EXPECT_EQ(words_of_sum(own, 0, plain), 1);
  EXPECT_EQ(words_of_element(own, 0, {.bits = 8, .outside_bits = 16}), 2);
  EXPECT_EQ(words_of_element(own, 1, {.bits = 8, .outside_bits = 16}), 1);
}

TEST(ElementWidth, elements_as_wide_as_the_words_change_nothing) {
  const Evaluation plain = best(product(0, 0, 0, 0)), stated = best(product(8, 8, 8, 8));
  EXPECT_EQ(plain.cycles, stated.cycles);
  EXPECT_EQ(plain.latency_cycles(), stated.latency_cycles());
  EXPECT_EQ(plain.energy_pj, stated.energy_pj);
}

// 16 x 64 inputs, 64 x 32 weights and 16 x 32 results over 4 bytes a cycle.
TEST(ElementWidth, narrow_weights_take_less_time_and_energy_and_wide_ones_more) {
  const auto floor_cycles = [](double weight_bits, double result_bits) {
    return (16.0 * 64 * 8 + 64.0 * 32 * weight_bits + 16.0 * 32 * result_bits) / 8 / 4;
  };
  const Evaluation wide = best(product(8, 16, 8, 32)), eight = best(product(8, 8, 8, 32)),
                   four = best(product(8, 4, 8, 32));
  EXPECT_GE(wide.cycles, floor_cycles(16, 8));
  EXPECT_GE(eight.cycles, floor_cycles(8, 8));
  EXPECT_GE(four.cycles, floor_cycles(4, 8));
  EXPECT_LT(eight.latency_cycles(), wide.latency_cycles());
  EXPECT_LT(four.latency_cycles(), eight.latency_cycles());
  const auto least_pj = [](double weight_bits) {
    return best(product(8, weight_bits, 8, 32), MappingMetric::energy, 100'000).energy_pj;
  };
  EXPECT_LT(least_pj(8), least_pj(16));
  EXPECT_LT(least_pj(4), least_pj(8));
}

TEST(ElementWidth, sums_are_wide_only_where_they_are_added_to) {
  // All of k inside the cells: the memory gets complete sums of 8 bits, the cells add to sums of 32.
  const Problem problem = product(8, 8, 8, 32);
  Mapping mapping{.kept = {7, 0, 4}};
  const auto loop = [](int level, int dimension, int64_t bound, LoopKind kind = LoopKind::temporal) {
    return Loop{.level = level, .dimension = dimension, .bound = bound, .kind = kind};
  };
  mapping.loops = {loop(0, 0, 4), loop(0, 1, 8), loop(1, 0, 4, LoopKind::spatial_x), loop(1, 1, 4, LoopKind::spatial_y),
                   loop(2, 2, 64)};
  for (Loop& own : mapping.loops) own.last = own.bound;
  const Architecture own = chip();
  Evaluation evaluation;
  ASSERT_TRUE(MappingEvaluator(own, problem).evaluate(mapping, evaluation));
  EXPECT_EQ(traffic_at(evaluation, problem, 0, 2).energy_pj, 16.0 * 32 / 8 * 64);
  EXPECT_EQ(evaluation.levels[2].used_words, 4);
  Problem wider = problem;
  wider.tensors[2].sum_bits = 8 * 17;  // more than a cell holds
  EXPECT_FALSE(MappingEvaluator(own, wider).evaluate(mapping, evaluation));
}

TEST(ElementWidth, bounds_stay_below_what_is_found) {
  const MapperOptions options{.objective = {.first = MappingMetric::energy, .second = MappingMetric::delay},
                              .most_tries = 3000};
  for (const double bits : {2.0, 4.25, 8.0, 12.0, 16.0}) {
    const MapperResult result = search_mappings(chip(), product(bits, bits / 2, 16, 24), {}, options);
    ASSERT_TRUE(result.best) << bits;
    EXPECT_LE(result.bound, result.best->evaluation.energy_pj) << bits;
  }
}

}  // namespace foretoken::element_width_test
