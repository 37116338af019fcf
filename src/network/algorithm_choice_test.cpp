#include "network/algorithm_choice.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::algorithm_choice_test {

constexpr GroupShape one_node{.ranks = 8, .most_per_node = 8, .fewest_per_node = 8};
constexpr GroupShape four_nodes{.ranks = 32, .nodes = 4, .most_per_node = 8, .fewest_per_node = 8};
constexpr GroupShape one_each{.ranks = 4, .nodes = 4};
constexpr ChoiceLimits hopper{.nvlink = true, .reduces_in_switch = true};

std::vector<std::string> names(CollectiveKind kind, const GroupShape& shape, const ChoiceRequest& request,
                               const ChoiceLimits& limits) {
  std::vector<std::string> all;
  for (const AlgorithmAndProtocol& candidate : candidates(kind, shape, request, limits))
    all.push_back(candidate_text(candidate));
  return all;
}

using Names = std::vector<std::string>;

TEST(AlgorithmChoice, offers_what_nccl_has) {
  EXPECT_EQ(names(CollectiveKind::all_reduce, one_node, {}, hopper),
            (Names{"ring ll", "ring ll128", "ring simple", "in_switch simple"}));
  EXPECT_EQ(names(CollectiveKind::all_reduce, four_nodes, {.protocol = Protocol::simple}, hopper),
            (Names{"ring simple", "tree simple", "in_switch_tree simple"}));
  EXPECT_EQ(names(CollectiveKind::all_gather, one_each, {.protocol = Protocol::simple}, hopper),
            (Names{"ring simple", "pat simple"}));
  EXPECT_EQ(names(CollectiveKind::all_to_all, four_nodes, {.protocol = Protocol::simple}, hopper),
            (Names{"direct simple"}));
}

TEST(AlgorithmChoice, leaves_out_what_the_machine_does_not_allow) {
  EXPECT_EQ(names(CollectiveKind::all_reduce, one_node, {}, {}), (Names{"ring ll", "ring simple"}));
  EXPECT_EQ(names(CollectiveKind::broadcast, one_node, {}, {.is_ideal = true}), (Names{"ring ideal"}));
}

TEST(AlgorithmChoice, every_collective_has_an_algorithm_on_every_group) {
  for (size_t kind = 0; kind < std::size(collective_kind_names); ++kind) {
    for (const GroupShape& shape : {one_node, four_nodes, one_each}) {
      EXPECT_FALSE(candidates(static_cast<CollectiveKind>(kind), shape, {}, {}).empty());
      EXPECT_FALSE(candidates(static_cast<CollectiveKind>(kind), shape, {.algorithm = "best"}, {}).empty());
    }
  }
}

TEST(AlgorithmChoice, says_why_what_was_asked_for_does_not_suit) {
  EXPECT_THROW(candidates(CollectiveKind::all_reduce, one_node, {.algorithm = "in_switch"}, {}), InputError);
  EXPECT_THROW(candidates(CollectiveKind::all_reduce, one_node, {.algorithm = "pat"}, hopper), InputError);
  EXPECT_THROW(candidates(CollectiveKind::all_reduce, one_node, {.protocol = Protocol::ll128}, {}), InputError);
  EXPECT_THROW(
      candidates(CollectiveKind::all_reduce, one_node, {.algorithm = "in_switch", .protocol = Protocol::ll}, hopper),
      InputError);
}

TEST(AlgorithmChoice, takes_the_fastest_the_first_of_equals_and_names_the_next) {
  const std::vector<AlgorithmAndProtocol> all = candidates(CollectiveKind::all_reduce, one_node, {}, hopper);
  const Choice equal = choose(all, [](const AlgorithmAndProtocol&) { return ClosedForm{.wire = Seconds(1)}; });
  EXPECT_EQ(candidate_text(equal.chosen), "ring ll");
  const Choice simple = choose(all, [](const AlgorithmAndProtocol& candidate) {
    return ClosedForm{.wire = Seconds(candidate.protocol == Protocol::simple ? 1 : 2)};
  });
  EXPECT_EQ(candidate_text(simple.chosen), "ring simple");
  EXPECT_NE(simple.why.find("in_switch simple 1.00 s"), std::string::npos) << simple.why;
}

}  // namespace foretoken::algorithm_choice_test
