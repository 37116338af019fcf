#include "accelerator/mapper/constraints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken {
namespace {

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

LoopConstraint loops(int level, bool spatial, std::string_view factors) {
  return {.level = level, .spatial = spatial, .factors = read_factor_rules(factors, small_product(), "test")};
}

std::vector<std::string> faults(const Constraints& constraints) {
  return constraint_faults(constraints, small_array(), small_product());
}

TEST(Constraints, read_factors_as_they_are_written) {
  const auto rules = read_factor_rules("M=4, N<=8 K=0", small_product(), "test");
  ASSERT_EQ(rules.size(), 3U);
  EXPECT_EQ(rules[0].kind, FactorRule::Kind::exactly);
  EXPECT_EQ(rules[0].value, 4);
  EXPECT_EQ(rules[1].kind, FactorRule::Kind::at_most);
  EXPECT_EQ(rules[1].dimension, find_dimension(small_product(), "N"));
  EXPECT_EQ(rules[2].kind, FactorRule::Kind::remaining);
}

TEST(Constraints, rules_that_cannot_be_read_are_refused) {
  for (const char* text : {"M", "=3", "M=x", "M<=0", "M=-1", "Q=3", "M=4.5"}) {
    EXPECT_THROW(read_factor_rules(text, small_product(), "test"), InputError) << text;
  }
  EXPECT_THROW(read_permutation("MQ", small_product(), "test"), InputError);
}

TEST(Constraints, permutations_are_letters_or_a_list) {
  const Problem problem = small_product();
  const int m = find_dimension(problem, "M"), k = find_dimension(problem, "K");
  EXPECT_THAT(read_permutation("KM", problem, "test"), ElementsAre(k, m));
  EXPECT_THAT(read_permutation("K, M", problem, "test"), ElementsAre(k, m));
}

TEST(Constraints, sound_ones_have_no_faults) {
  EXPECT_THAT(faults({.loops = {loops(1, true, "M=4 N=2"), loops(0, false, "K=0"), loops(2, false, "N<=2")},
                      .storage = {{.level = 1, .tensor = 0, .keep = false}}}),
              ElementsAre());
}

TEST(Constraints, factors_beyond_the_fanout_are_named) {
  EXPECT_THAT(faults({.loops = {loops(1, true, "M=16")}}), ElementsAre(HasSubstr("buffer (spatial)")));
  LoopConstraint split = loops(1, true, "M=4 N=2");
  split.permutation = read_permutation("NM", small_product(), "test");
  split.split = 1;  // N across 4, M down 2
  EXPECT_THAT(faults({.loops = {split}}), ElementsAre(HasSubstr("2 x 4 instances; there are 4 x 2")));
}

TEST(Constraints, products_that_miss_the_size_are_named) {
  EXPECT_THAT(faults({.loops = {loops(0, false, "M=2"), loops(1, false, "M<=2"), loops(1, true, "M=1"),
                                loops(2, false, "M=1")}}),
              ElementsAre(HasSubstr("M: the factors allowed make 4 at most; its size is 16")));
  EXPECT_THAT(faults({.loops = {loops(0, false, "M=8"), loops(1, false, "M=4")}}),
              ElementsAre(HasSubstr("M: fixed factors make 32")));
}

TEST(Constraints, contradictions_at_one_level_are_named_one_by_one) {
  const auto found = faults({.loops = {loops(0, false, "M=2"), loops(0, false, "M=4 N=2"), loops(0, false, "N=0")},
                             .storage = {{.level = 1, .tensor = 1}, {.level = 1, .tensor = 1, .keep = false}}});
  EXPECT_THAT(found, ElementsAre(HasSubstr("M is fixed to both 2 and 4"), HasSubstr("N = 2 but also all"),
                                 HasSubstr("buffer must keep B and must let it pass by")));
}

TEST(Constraints, tiles_that_cannot_fit_are_named) {
  EXPECT_THAT(faults({.loops = {loops(2, false, "M=4 N=4")}, .storage = {{.level = 2, .tensor = 2}}}),
              ElementsAre(HasSubstr("registers: fixed factors make tiles of 16 words")));
}

TEST(Constraints, a_tensor_that_no_level_may_keep_is_named) {
  EXPECT_THAT(faults({.storage = {{.level = 0, .tensor = 0, .keep = false},
                                  {.level = 1, .tensor = 0, .keep = false},
                                  {.level = 2, .tensor = 0, .keep = false}}}),
              ElementsAre("no level may keep A"));
}

TEST(Constraints, a_use_that_the_factors_cannot_reach_is_named) {
  LoopConstraint own = loops(1, true, "M<=2 N=1 K=1");
  own.least_utilization = 0.5;
  EXPECT_THAT(faults({.loops = {own}}), ElementsAre(HasSubstr("at most 0.25 of the instances")));
}

TEST(Constraints, places_that_do_not_exist_are_named) {
  EXPECT_EQ(faults({.loops = {loops(3, false, "M=2")}}).size(), 1U);
  EXPECT_EQ(faults({.storage = {{.level = 0, .tensor = 3}}}).size(), 1U);
}

TEST(Constraints, all_faults_stand_in_one_error) {
  try {
    check_constraints({.source = "map.yaml", .loops = {loops(1, true, "M=16"), loops(0, false, "K=13")}}, small_array(),
                      small_product());
    FAIL() << "contradictions pass";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("map.yaml"));
    EXPECT_THAT(error.what(), HasSubstr("buffer (spatial)"));
    EXPECT_THAT(error.what(), HasSubstr("K: fixed factors make 13"));
  }
}

}  // namespace
}  // namespace foretoken
