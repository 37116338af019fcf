#include "network/replay/chakra_workload.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "network/chakra/chakra.h"
#include "network/replay/replay.h"
#include "network/replay/test_workload.h"

namespace foretoken::chakra_workload_test {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class ChakraWorkload : public testing::Test {
 protected:
  ChakraWorkload() : folder_(fs::path(testing::TempDir()) / ("foretoken_chakra_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~ChakraWorkload() override { fs::remove_all(folder_); }

  std::string prefix() const { return (folder_ / "run").string(); }

  void write(int64_t rank, std::vector<ChakraNode> nodes) const {
    write_file(chakra_path(prefix(), rank), chakra_text({.nodes = std::move(nodes)}));
  }
  std::string write_groups(const std::string& text) const {
    write_file(folder_ / "groups.json", text);
    return (folder_ / "groups.json").string();
  }
  ReplayWorkload read(const ChakraReplayOptions& options = {}) const { return read_chakra_workload(prefix(), options); }
  std::string complaint(const ChakraReplayOptions& options = {}) const {
    try {
      read(options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

ChakraNode compute(uint64_t id, uint64_t us) {
  return {.id = id, .name = "kernel", .type = ChakraNodeType::compute, .duration_micros = us};
}

ChakraNode collective(uint64_t id, ChakraCollective kind, int64_t bytes, std::vector<ChakraAttribute> more = {}) {
  more.push_back(chakra_integer("comm_type", static_cast<int64_t>(kind)));
  more.push_back(chakra_integer("comm_size", bytes));
  return {.id = id, .name = "collective", .type = ChakraNodeType::collective, .attributes = std::move(more)};
}

ChakraNode message(uint64_t id, ChakraNodeType type, int64_t from, int64_t to, int64_t bytes) {
  return {.id = id,
          .name = "message",
          .type = type,
          .attributes = {chakra_integer("comm_src", from), chakra_integer("comm_dst", to),
                         chakra_integer("comm_size", bytes)}};
}

TEST_F(ChakraWorkload, kernels_streams_and_host_operations_get_lanes_of_their_own) {
  ChakraNode second = compute(1, 3), host = compute(2, 4);
  second.attributes = {chakra_integer("stream", 20)};
  host.attributes = {chakra_boolean("is_cpu_op", true)};
  write(0, {compute(0, 2), second, host, {.id = 3, .type = ChakraNodeType::memory_load, .duration_micros = 1}});
  const ReplayWorkload workload = read();
  ASSERT_EQ(workload.ranks[0].lanes.size(), 4U);
  EXPECT_EQ(workload.ranks[0].lanes[1].number, 20);
  EXPECT_EQ(workload.ranks[0].lanes[2].kind, ReplayKind::host);
  EXPECT_EQ(replay(workload, *test_network()).makespan, 4 * test_microsecond);
}

TEST_F(ChakraWorkload, a_finer_duration_counts_where_there_is_one) {
  ChakraNode node = compute(0, 2);
  node.attributes = {chakra_number(std::string(fine_duration_attribute), 2.25)};
  write(0, {node});
  EXPECT_EQ(read().ranks[0].nodes[0].duration, 2'250'000);
}

TEST_F(ChakraWorkload, sizes_of_gathers_are_what_each_rank_puts_in) {
  for (int64_t rank = 0; rank < 4; ++rank) {
    write(rank, {collective(0, ChakraCollective::all_gather, 10), collective(1, ChakraCollective::reduce_scatter, 10),
                 collective(2, ChakraCollective::all_reduce, 10)});
  }
  const ReplayWorkload workload = read();
  EXPECT_EQ(workload.ranks[0].nodes[0].bytes, 40);
  EXPECT_EQ(workload.ranks[0].nodes[1].bytes, 10);
  EXPECT_EQ(workload.ranks[0].nodes[2].bytes, 10);
  EXPECT_THAT(workload.groups[0].ranks, ElementsAre(0, 1, 2, 3));
}

TEST_F(ChakraWorkload, groups_come_from_a_file_from_metadata_or_from_dimensions) {
  const ChakraNode init{.id = 1,
                        .name = "## process_group:init ##",
                        .type = ChakraNodeType::metadata,
                        .inputs = ChakraTensors{.values = R"(['[{"pg_name": "7", "ranks": [1, 0]}, )"
                                                          R"({"pg_name": "8", "ranks": []}]'])"}};
  for (int64_t rank = 0; rank < 4; ++rank) {
    std::vector<ChakraNode> nodes = {
        init, collective(2, ChakraCollective::all_reduce, 1, {chakra_text("pg_name", rank < 2 ? "7" : "9")}),
        collective(3, ChakraCollective::all_reduce, 1, {chakra_text("pg_name", "8")}),
        collective(
            4, ChakraCollective::all_reduce, 1,
            {{.name = "involved_dim", .format = ChakraFormat::boolean, .value = std::vector<bool>{false, true}}})};
    write(rank, nodes);
  }
  const ReplayWorkload workload = read({.group_file = write_groups(R"({"9": [2, 3]})"), .dimensions = {2, 2}});
  const auto ranks_of = [&](size_t rank, size_t node) {
    return workload.groups[static_cast<size_t>(workload.ranks[rank].nodes[node].group)].ranks;
  };
  EXPECT_THAT(ranks_of(0, 1), ElementsAre(0, 1));
  EXPECT_THAT(ranks_of(3, 1), ElementsAre(2, 3));
  EXPECT_THAT(ranks_of(1, 2), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ranks_of(1, 3), ElementsAre(1, 3));
  EXPECT_THAT(ranks_of(2, 3), ElementsAre(0, 2));
  EXPECT_GT(replay(workload, *test_network()).makespan, 0);
}

TEST_F(ChakraWorkload, groups_number_their_ranks_in_the_order_they_list_them) {
  for (int64_t rank = 0; rank < 4; ++rank) {
    write(rank, {collective(0, ChakraCollective::all_reduce, 1, {chakra_text("pg_name", "9")})});
  }
  const ReplayWorkload workload = read({.group_file = write_groups(R"({"9": [2, 0, 3, 1]})")});
  ASSERT_EQ(workload.groups.size(), 1U);
  EXPECT_THAT(workload.groups[0].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(workload.groups[0].in_order(), ElementsAre(2, 0, 3, 1));
  std::vector<int32_t> seen;
  const auto network = undisturbed_network([&](const NetworkCall& call) {
    seen.assign(call.ranks.begin(), call.ranks.end());
    return microseconds(1);
  });
  replay(workload, *network);
  EXPECT_THAT(seen, ElementsAre(2, 0, 3, 1));
}

TEST_F(ChakraWorkload, a_root_is_where_the_data_comes_from_or_goes_to) {
  const auto root_of = [&](ChakraCollective kind, std::vector<ChakraAttribute> attributes) {
    write(0, {collective(0, kind, 1, std::move(attributes))});
    write(1, {});
    write(2, {});
    return read().ranks[0].nodes[0].root;
  };
  const std::vector<ChakraAttribute> ends = {chakra_integer("comm_src", 1), chakra_integer("comm_dst", 2)};
  EXPECT_EQ(root_of(ChakraCollective::broadcast, ends), 1);
  EXPECT_EQ(root_of(ChakraCollective::scatter, ends), 1);
  EXPECT_EQ(root_of(ChakraCollective::reduce, ends), 2);
  EXPECT_EQ(root_of(ChakraCollective::gather, ends), 2);
  EXPECT_EQ(root_of(ChakraCollective::all_reduce, ends), -1);
  EXPECT_EQ(root_of(ChakraCollective::broadcast, {}), -1);
  EXPECT_EQ(root_of(ChakraCollective::reduce, {chakra_integer("root", 1), chakra_integer("comm_dst", 2)}), 1);
  write(0, {collective(0, ChakraCollective::broadcast, 1, {chakra_integer("root", 3)})});
  EXPECT_THAT(complaint(), HasSubstr("attribute root = 3"));
}

TEST_F(ChakraWorkload, work_takes_the_roofline_of_a_device_and_refuses_to_take_nothing) {
  ChakraNode node = compute(0, 0);
  node.attributes = {chakra_integer("num_ops", 4'000'000), chakra_integer("tensor_size", 1000)};
  write(0, {node});
  EXPECT_THAT(complaint(), HasSubstr("{compute} predicted"));
  const ComputeRoofline roofline{.peak = FlopsPerSecond(1e12), .memory_bandwidth = BytesPerSecond(1e9)};
  EXPECT_EQ(read({.roofline = roofline}).ranks[0].nodes[0].duration, 4 * test_microsecond);
  node.attributes[1] = chakra_integer("tensor_size", 9000);
  write(0, {node});
  EXPECT_EQ(read({.roofline = roofline}).ranks[0].nodes[0].duration, 9 * test_microsecond);
}

TEST_F(ChakraWorkload, a_missing_rank_is_named) {
  EXPECT_THAT(complaint(), HasSubstr("run.0.et"));
  write(0, {});
  write(2, {});
  EXPECT_THAT(complaint(), HasSubstr("run.1.et"));
  write(1, {});
  EXPECT_EQ(read().ranks.size(), 3U);
  EXPECT_THAT(complaint({.ranks = 4}), HasSubstr("run.3.et"));
}

TEST_F(ChakraWorkload, attributes_that_are_missing_or_absurd_are_named) {
  const auto refused = [&](const ChakraNode& node) {
    write(0, {node});
    write(1, {});
    return complaint();
  };
  EXPECT_THAT(refused({.id = 5, .type = ChakraNodeType::collective}), HasSubstr("node 5 (), attribute comm_type"));
  EXPECT_THAT(refused(collective(5, static_cast<ChakraCollective>(42), 1)), HasSubstr("from 0 to 9"));
  EXPECT_THAT(refused(collective(5, ChakraCollective::all_reduce, -1)), HasSubstr("comm_size = -1"));
  EXPECT_THAT(refused(collective(5, ChakraCollective::all_reduce, 1, {chakra_text("pg_name", "tp")})),
              HasSubstr("pg_name = tp"));
  EXPECT_THAT(refused(message(5, ChakraNodeType::send, 0, 2, 1)), HasSubstr("comm_dst = 2"));
  EXPECT_THAT(refused(message(5, ChakraNodeType::send, 1, 0, 1)), HasSubstr("the rank of this trace"));
}

TEST_F(ChakraWorkload, group_files_and_dimensions_are_checked) {
  write(0, {});
  write(1, {});
  EXPECT_THAT(complaint({.group_file = write_groups(R"({"0": [0, 2]})")}), HasSubstr("0[1] = 2"));
  EXPECT_THAT(complaint({.group_file = write_groups(R"({"0": [1, 1]})")}), HasSubstr("appear once"));
  EXPECT_THAT(complaint({.group_file = write_groups(R"({"0": []})")}), HasSubstr("at least one rank"));
  EXPECT_THAT(complaint({.dimensions = {2, 2}}), HasSubstr("{dims}"));
}

}  // namespace foretoken::chakra_workload_test
