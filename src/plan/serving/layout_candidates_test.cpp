#include "plan/serving/layout_candidates.h"

#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"

namespace foretoken::layout_candidates_test {

struct Limited {
  int64_t max_num_seqs;
  std::vector<int64_t> filled_blocks;
};

// Layouts of one engine that run alike within these limits.
std::vector<ServingLayout> left_of(const std::vector<Limited>& choices) {
  ServingQuestion question = small_question();
  question.choices.engines = {"vllm"};
  SearchedPart part{.hardware = &question.hardware.front(), .space = {}, .judgements = {}};
  for (const Limited& one : choices) {
    part.space.layouts.push_back({.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}});
    part.space.layouts.back().pool.max_num_seqs = one.max_num_seqs;
    part.judgements.push_back({.pruned = {},
                               .most_requests_per_s = 10,
                               .alone_ms = {5, 1},
                               .reachable = {32, 2048},
                               .filled_blocks = one.filled_blocks});
  }
  ServingSearchResult result;
  std::vector<ServingLayout> left;
  for (const LayoutCandidate& one : layout_candidates(question, part, result)) left.push_back(*one.layout);
  EXPECT_EQ(result.merged, static_cast<int64_t>(choices.size() - left.size()));
  return left;
}

int64_t seats_of_the_one_left(const std::vector<Limited>& choices) {
  const std::vector<ServingLayout> left = left_of(choices);
  EXPECT_EQ(left.size(), 1U);
  return left.front().pool.max_num_seqs;
}

TEST(LayoutCandidates, of_layouts_that_run_alike_the_one_with_the_fullest_cache_stands_for_all) {
  EXPECT_EQ(seats_of_the_one_left({{256, {900}}, {1024, {700}}, {512, {950}}}), 512);
  EXPECT_EQ(seats_of_the_one_left({{512, {950}}, {1024, {700}}, {256, {900}}}), 512);
}

TEST(LayoutCandidates, of_equal_caches_the_lowest_limits_stand_for_all) {
  EXPECT_EQ(seats_of_the_one_left({{1024, {900}}, {256, {900}}, {512, {900}}}), 256);
  EXPECT_EQ(seats_of_the_one_left({{256, {900}}, {512, {900}}, {1024, {900}}}), 256);
}

}  // namespace foretoken::layout_candidates_test
