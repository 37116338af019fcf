#include "accelerator/mapper/constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::constraints_test {

using testing::ElementsAre;
using testing::HasSubstr;

// Memory, a buffer of 64 words over 4 x 2 registers of 8.
Architecture small_array() {
  return {.name = "small",
          .levels = {{.name = "dram"},
                     {.name = "buffer", .depth = 64},
                     {.name = "registers", .instances_x = 4, .instances_y = 2, .depth = 8},
                     {.name = "mac", .kind = LevelKind::compute, .instances_x = 4, .instances_y = 2}}};
}

Problem small_product() {
  return gemm_problem({.m = 16, .n = 8, .k = 6});
}

constexpr int product_m = 0, product_n = 1, product_k = 2;

FactorRule exact_factor(int dimension, int64_t value) {
  return {.dimension = dimension, .value = value};
}

FactorRule factor_at_most(int dimension, int64_t value) {
  return {.dimension = dimension, .kind = FactorRule::Kind::at_most, .value = value};
}

FactorRule factor_remaining(int dimension) {
  return {.dimension = dimension, .kind = FactorRule::Kind::remaining};
}

LoopConstraint loops(int level, bool spatial, std::vector<FactorRule> factors) {
  return {.level = level, .spatial = spatial, .factors = std::move(factors)};
}

std::vector<std::string> faults(const Constraints& constraints) {
  return constraint_faults(constraints, small_array(), small_product());
}

TEST(Constraints, sound_ones_have_no_faults) {
  EXPECT_THAT(faults({.loops = {loops(1, true, {exact_factor(product_m, 4), exact_factor(product_n, 2)}),
                                loops(0, false, {factor_remaining(product_k)}),
                                loops(2, false, {factor_at_most(product_n, 2)})},
                      .storage = {{.level = 1, .tensor = 0, .keep = false}}}),
              ElementsAre());
}

TEST(Constraints, factors_beyond_the_fanout_are_named) {
  EXPECT_THAT(faults({.loops = {loops(1, true, {exact_factor(product_m, 16)})}}),
              ElementsAre(HasSubstr("buffer (spatial)")));
  LoopConstraint split = loops(1, true, {exact_factor(product_m, 4), exact_factor(product_n, 2)});
  split.permutation = {product_n, product_m};
  split.split = 1;  // N across 4, M down 2
  EXPECT_THAT(faults({.loops = {split}}), ElementsAre(HasSubstr("2 x 4 instances; there are 4 x 2")));
}

TEST(Constraints, products_that_miss_the_size_are_named) {
  EXPECT_THAT(
      faults({.loops = {loops(0, false, {exact_factor(product_m, 2)}), loops(1, false, {factor_at_most(product_m, 2)}),
                        loops(1, true, {exact_factor(product_m, 1)}), loops(2, false, {exact_factor(product_m, 1)})}}),
      ElementsAre(HasSubstr("M: the factors allowed make 4 at most; its size is 16")));
  EXPECT_THAT(
      faults({.loops = {loops(0, false, {exact_factor(product_m, 8)}), loops(1, false, {exact_factor(product_m, 4)})}}),
      ElementsAre(HasSubstr("M: fixed factors make 32")));
}

TEST(Constraints, contradictions_at_one_level_are_named_one_by_one) {
  const auto found = faults({.loops = {loops(0, false, {exact_factor(product_m, 2)}),
                                       loops(0, false, {exact_factor(product_m, 4), exact_factor(product_n, 2)}),
                                       loops(0, false, {factor_remaining(product_n)})},
                             .storage = {{.level = 1, .tensor = 1}, {.level = 1, .tensor = 1, .keep = false}}});
  EXPECT_THAT(found, ElementsAre(HasSubstr("M is fixed to both 2 and 4"), HasSubstr("N = 2 but also all"),
                                 HasSubstr("buffer must keep B and must let it pass by")));
}

TEST(Constraints, tiles_that_cannot_fit_are_named) {
  EXPECT_THAT(faults({.loops = {loops(2, false, {exact_factor(product_m, 4), exact_factor(product_n, 4)})},
                      .storage = {{.level = 2, .tensor = 2}}}),
              ElementsAre(HasSubstr("registers: fixed factors make tiles of 16 words")));
}

TEST(Constraints, a_tensor_that_no_level_may_keep_is_named) {
  EXPECT_THAT(faults({.storage = {{.level = 0, .tensor = 0, .keep = false},
                                  {.level = 1, .tensor = 0, .keep = false},
                                  {.level = 2, .tensor = 0, .keep = false}}}),
              ElementsAre("no level may keep A"));
}

TEST(Constraints, a_use_that_the_factors_cannot_reach_is_named) {
  LoopConstraint own =
      loops(1, true, {factor_at_most(product_m, 2), exact_factor(product_n, 1), exact_factor(product_k, 1)});
  own.least_utilization = 0.5;
  EXPECT_THAT(faults({.loops = {own}}), ElementsAre(HasSubstr("at most 0.25 of the instances")));
}

TEST(Constraints, places_that_do_not_exist_are_named) {
  EXPECT_EQ(faults({.loops = {loops(3, false, {exact_factor(product_m, 2)})}}).size(), 1U);
  EXPECT_EQ(faults({.storage = {{.level = 0, .tensor = 3}}}).size(), 1U);
}

TEST(Constraints, all_faults_stand_in_one_error) {
  try {
    check_constraints(
        {.source = "map.yaml",
         .loops = {loops(1, true, {exact_factor(product_m, 16)}), loops(0, false, {exact_factor(product_k, 13)})}},
        small_array(), small_product());
    FAIL() << "contradictions pass";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("map.yaml"));
    EXPECT_THAT(error.what(), HasSubstr("buffer (spatial)"));
    EXPECT_THAT(error.what(), HasSubstr("K: fixed factors make 13"));
  }
}

}  // namespace foretoken::constraints_test
