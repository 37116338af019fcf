#include "network/algorithms/list.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "network/algorithms/test_block_movement.h"

namespace foretoken::algorithms_list_test {

GroupLayout layout_of(std::vector<int64_t> members_of_nodes, bool mesh = false) {
  GroupLayout layout{.first_places = {0}, .mesh = mesh};
  for (const int64_t members : members_of_nodes) {
    for (int64_t i = 0; i < members; ++i) layout.devices.push_back(static_cast<int32_t>(layout.members()));
    layout.first_places.push_back(layout.members());
  }
  return layout;
}

GroupShape shape_of(const GroupLayout& layout) {
  return {.ranks = layout.members(),
          .nodes = layout.nodes(),
          .most_per_node = layout.most_per_node(),
          .fewest_per_node = layout.fewest_per_node(),
          .nodes_per_leaf = layout.nodes(),
          .most_per_leaf = layout.members(),
          .mesh = layout.mesh};
}

std::vector<GroupLayout> layouts() {
  std::vector<GroupLayout> all;
  for (const int64_t members : {1, 2, 3, 5, 7, 8, 12, 16}) {
    all.push_back(layout_of({members}));
    all.push_back(layout_of({members}, true));
    all.push_back(layout_of(std::vector<int64_t>(members, 1)));
  }
  all.push_back(layout_of({2, 2}));
  all.push_back(layout_of({4, 4, 4}));
  all.push_back(layout_of({3, 3, 3, 3}));
  all.push_back(layout_of({8, 8}));
  all.push_back(layout_of({4, 4, 4, 4, 4}));
  all.push_back(layout_of({5, 2}));
  all.push_back(layout_of({8, 4, 1}));
  return all;
}

std::string text_of(const GroupLayout& layout) {
  std::string text = layout.mesh ? "mesh" : "nodes";
  for (int64_t node = 0; node < layout.nodes(); ++node) text += " " + std::to_string(layout.members_of(node));
  return text;
}

// Calls `check` for every algorithm, collective and layout that go together.
template <class Check>
void for_each_case(Check check) {
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
    for (size_t k = 0; k < std::size(collective_kind_names); ++k) {
      const auto kind = static_cast<CollectiveKind>(k);
      for (const GroupLayout& layout : layouts()) {
        if (!algorithm.unsuitable(kind, shape_of(layout)).empty()) continue;
        SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(collective_kind_name(kind)) + " on " +
                     text_of(layout));
        check(algorithm, kind, layout);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(CollectiveAlgorithms, leave_every_member_with_what_the_collective_promises) {
  for_each_case([](const CollectiveAlgorithm& algorithm, CollectiveKind kind, const GroupLayout& layout) {
    for (const int32_t root : {0, static_cast<int32_t>(layout.members() / 2)}) {
      expect_that_all_arrives(kind, algorithm.plan(kind, layout, root), layout.members(), root);
    }
  });
}

// Shares of the buffer that leave and reach the busiest member of a stage.
double busiest_member(const BlockStage& stage, int64_t blocks, int64_t members, bool all_to_all) {
  std::vector<double> out(members, 0), in(members, 0);
  for (const BlockTransfer& transfer : stage.transfers) {
    const auto count = static_cast<double>(transfer.count);
    double &sent = out[transfer.from], &got = in[transfer.to];
    sent = transfer.in_switch ? std::max(sent, count) : sent + count;
    got = transfer.in_switch ? std::max(got, count) : got + count;
  }
  double most = 0;
  for (int64_t place = 0; place < members; ++place) most = std::max({most, out[place], in[place]});
  // An all-to-all cuts all buffers together.
  return most / static_cast<double>(blocks) * (all_to_all ? static_cast<double>(members) : 1);
}

TEST(CollectiveAlgorithms, load_the_links_of_a_single_node_as_their_formula_says) {
  for_each_case([](const CollectiveAlgorithm& algorithm, CollectiveKind kind, const GroupLayout& layout) {
    if (layout.nodes() > 1 || layout.members() == 1) return;
    const BlockPlan plan = algorithm.plan(kind, layout, 0);
    const std::vector<StageLoad> loads = algorithm.loads(kind, shape_of(layout));
    ASSERT_EQ(plan.stages.size(), loads.size());
    for (size_t s = 0; s < loads.size(); ++s) {
      EXPECT_DOUBLE_EQ(loads[s].messages, static_cast<double>(plan.stages[s].messages));
      const double counted =
          busiest_member(plan.stages[s], plan.blocks, layout.members(), kind == CollectiveKind::all_to_all);
      EXPECT_NEAR(loads[s].device, counted, 1e-12) << "stage " << s;
    }
  });
}

// Bytes that all members together send, as shares of the buffer, in an algorithm that moves no byte twice.
double least_volume(CollectiveKind kind, double members) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier:
      return 2 * (members - 1);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return members - 1;
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return (members - 1) / members;
    case CollectiveKind::send_recv:
      return members > 1 ? 1 : 0;
  }
  return 0;
}

TEST(CollectiveAlgorithms, send_exactly_the_bytes_that_are_needed_unless_they_fold_or_forward) {
  for_each_case([](const CollectiveAlgorithm& algorithm, CollectiveKind kind, const GroupLayout& layout) {
    const bool folds =
        algorithm.name == "halving_doubling" && !std::has_single_bit(static_cast<uint64_t>(layout.members()));
    const bool forwards = algorithm.name == "hierarchical" && kind == CollectiveKind::all_to_all;
    if (folds || forwards || algorithm.needs_reducing_switch) return;
    const BlockPlan plan = algorithm.plan(kind, layout, 0);
    int64_t sent = 0;
    for (const BlockStage& stage : plan.stages) {
      for (const BlockTransfer& transfer : stage.transfers) sent += transfer.count;
    }
    const auto members = static_cast<double>(layout.members());
    const double buffers = kind == CollectiveKind::all_to_all ? members : 1;
    EXPECT_NEAR(static_cast<double>(sent) / static_cast<double>(plan.blocks) * buffers, least_volume(kind, members),
                1e-9 * members);
  });
}

TEST(CollectiveAlgorithms, are_found_by_name_and_a_slip_suggests_one) {
  for (const std::string& name : collective_algorithm_names()) EXPECT_EQ(collective_algorithm(name).name, name);
  try {
    collective_algorithm("rnig");
    FAIL() << "nobody knows this algorithm";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "ring");
  }
}

TEST(CollectiveAlgorithms, say_why_they_are_unsuitable) {
  EXPECT_FALSE(ring_algorithm().unsuitable(CollectiveKind::all_to_all, {}).empty());
  EXPECT_FALSE(hierarchical_algorithm().unsuitable(CollectiveKind::all_reduce, {.ranks = 8}).empty());
  EXPECT_FALSE(in_switch_algorithm().unsuitable(CollectiveKind::all_reduce, {.ranks = 16, .nodes = 2}).empty());
  EXPECT_FALSE(pat_algorithm().unsuitable(CollectiveKind::all_reduce, {.ranks = 16}).empty());
}

}  // namespace foretoken::algorithms_list_test
