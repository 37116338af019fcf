#include "compose/profile/chakra_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "network/chakra/groups.h"

namespace foretoken::chakra_writer_test {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Events of one rank: launches 1 us each on the host, kernels where they are put.
class TestProfile {
 public:
  TestProfile& kernel(const std::string& name, int64_t stream, double launched, double start, double us,
                      Json arguments = Json::object()) {
    ++correlation_;
    events_.push(Json::object({{"ph", "X"},
                               {"cat", "cuda_runtime"},
                               {"name", "cudaLaunchKernel"},
                               {"tid", 1},
                               {"ts", launched},
                               {"dur", 1},
                               {"args", Json::object({{"correlation", correlation_}})}}));
    arguments.set("correlation", correlation_).set("stream", stream);
    events_.push(Json::object({{"ph", "X"},
                               {"cat", "kernel"},
                               {"name", name},
                               {"tid", stream},
                               {"ts", start},
                               {"dur", us},
                               {"args", std::move(arguments)}}));
    return *this;
  }

  ChakraTrace trace() const {
    const Json document =
        Json::object({{"distributedInfo", Json::object({{"rank", 1}, {"world_size", 4}})}, {"traceEvents", events_}});
    return chakra_from_profile(parse_profile(document.dump(0), "trace.json")).trace;
  }

 private:
  Json events_ = Json::array();
  int64_t correlation_ = 0;
};

Json all_reduce(int64_t elements, const std::string& ranks = "[0, 1]", int64_t size = 2) {
  return Json::object({{"Collective name", "allreduce"},
                       {"dtype", "BFloat16"},
                       {"In msg nelems", elements},
                       {"Out msg nelems", elements},
                       {"Group size", size},
                       {"Process Group Name", "3"},
                       {"Process Group Ranks", ranks}});
}

const ChakraNode& named(const ChakraTrace& trace, std::string_view name) {
  for (const ChakraNode& node : trace.nodes) {
    if (node.name == name) return node;
  }
  throw std::out_of_range(std::string(name));
}

TEST(ProfileChakra, kernels_follow_their_launch_and_the_kernel_before_on_their_stream) {
  const ChakraTrace trace = TestProfile().kernel("a", 7, 0, 5, 10).kernel("b", 7, 2, 15, 3.25).trace();
  const ChakraNode& b = named(trace, "b");
  EXPECT_EQ(b.type, ChakraNodeType::compute);
  EXPECT_THAT(b.data_dependencies, Contains(named(trace, "a").id));
  ASSERT_EQ(b.control_dependencies.size(), 1U);
  const ChakraNode& launch = trace.nodes[b.control_dependencies[0]];
  EXPECT_EQ(integer_value(*launch.find("is_cpu_op")), 1);
  EXPECT_EQ(number_value(*launch.find(fine_duration_attribute)), 2) << "from the launch of a to that of b";
  EXPECT_EQ(number_value(*b.find(fine_duration_attribute)), 3.25);
  EXPECT_EQ(b.duration_micros, 3U);
  EXPECT_EQ(integer_value(*b.find("stream")), 7);
}

TEST(ProfileChakra, a_collective_has_its_size_kind_and_group) {
  const ChakraTrace trace = TestProfile().kernel("ncclDevKernel_AllReduce", 20, 0, 5, 10, all_reduce(1000)).trace();
  const ChakraNode& node = named(trace, "ncclDevKernel_AllReduce");
  EXPECT_EQ(node.type, ChakraNodeType::collective);
  EXPECT_EQ(integer_value(*node.find("comm_size")), 2000);
  EXPECT_EQ(integer_value(*node.find("comm_type")), 0);
  EXPECT_EQ(text_value(*node.find("pg_name")), "3");
  EXPECT_EQ(groups_in_metadata(trace.nodes[0].inputs->values, 4), (NamedGroups{{"3", {0, 1}}}));
}

TEST(ProfileChakra, a_group_of_everyone_needs_no_list) {
  const ChakraTrace trace =
      TestProfile().kernel("ncclDevKernel_AllReduce", 20, 0, 5, 10, all_reduce(8, "[0, ..., 3]", 4)).trace();
  EXPECT_EQ(named(trace, "ncclDevKernel_AllReduce").find("pg_name"), nullptr);
}

TEST(ProfileChakra, streams_wait_for_each_other_where_the_times_show_it) {
  const ChakraTrace trace = TestProfile()
                                .kernel("producer", 7, 0, 5, 10)
                                .kernel("ncclDevKernel_AllReduce", 20, 1, 16, 10, all_reduce(8))
                                .kernel("beside", 7, 2, 15, 5)
                                .kernel("consumer", 7, 3, 27, 5)
                                .kernel("late", 7, 40, 42, 5)
                                .trace();
  const uint64_t collective = named(trace, "ncclDevKernel_AllReduce").id;
  EXPECT_THAT(trace.nodes[collective].data_dependencies, Contains(named(trace, "producer").id));
  EXPECT_THAT(named(trace, "beside").data_dependencies, Not(Contains(collective)));
  EXPECT_THAT(named(trace, "consumer").data_dependencies, Contains(collective));
  EXPECT_THAT(named(trace, "late").data_dependencies, Not(Contains(collective))) << "the host held it up";
}

double recorded_us(const ChakraNode& node) {
  return *number_value(*node.find(fine_duration_attribute));
}

TEST(ProfileChakra, a_kernel_waits_for_one_of_another_stream_that_ended_just_before_it_started) {
  const ChakraTrace trace = TestProfile()
                                .kernel("producer", 7, 0, 5, 100)
                                .kernel("exchange", 20, 1, 107, 50)
                                .kernel("beside", 7, 2, 106, 20)
                                .kernel("later", 7, 3, 127, 1)
                                .trace();
  EXPECT_THAT(named(trace, "exchange").data_dependencies, Contains(named(trace, "producer").id));
  EXPECT_THAT(named(trace, "beside").data_dependencies, Not(Contains(named(trace, "exchange").id)));
  EXPECT_THAT(named(trace, "later").data_dependencies, Not(Contains(named(trace, "producer").id)));
}

TEST(ProfileChakra, what_passes_before_a_kernel_starts_is_a_node_of_its_own) {
  const ChakraTrace trace = TestProfile().kernel("a", 7, 0, 5, 10).kernel("b", 7, 2, 17, 3).trace();
  EXPECT_EQ(recorded_us(named(trace, "launch latency")), 5);
  EXPECT_EQ(recorded_us(named(trace, "gap")), 2);
  EXPECT_THAT(named(trace, "b").data_dependencies, Contains(named(trace, "gap").id));
}

TEST(ProfileChakra, a_host_that_launches_nothing_until_its_last_kernel_is_over_waits_for_it) {
  const ChakraTrace trace =
      TestProfile().kernel("a", 7, 0, 5, 10).kernel("counts", 7, 2, 15, 5000).kernel("b", 7, 5030, 5035, 3).trace();
  const ChakraNode& launch = trace.nodes[named(trace, "b").control_dependencies.at(0)];
  EXPECT_THAT(launch.data_dependencies, Contains(named(trace, "counts").id));
  EXPECT_EQ(recorded_us(launch), 15);
}

TEST(ProfileChakra, sends_and_receives_name_the_other_rank) {
  const auto message = [](const char* name, const char* peer) {
    return Json::object(
        {{"Collective name", name}, {"dtype", "Float"}, {"In msg nelems", 10}, {"Out msg nelems", 20}, {peer, 3}});
  };
  const ChakraTrace trace = TestProfile()
                                .kernel("ncclDevKernel_SendRecv_a", 20, 0, 5, 1, message("send", "Dst Rank"))
                                .kernel("ncclDevKernel_SendRecv_b", 20, 1, 7, 1, message("recv", "Src Rank"))
                                .trace();
  const ChakraNode& send = named(trace, "ncclDevKernel_SendRecv_a");
  EXPECT_EQ(send.type, ChakraNodeType::send);
  EXPECT_EQ(integer_value(*send.find("comm_dst")), 3);
  EXPECT_EQ(integer_value(*send.find("comm_size")), 40);
  const ChakraNode& receive = named(trace, "ncclDevKernel_SendRecv_b");
  EXPECT_EQ(receive.type, ChakraNodeType::receive);
  EXPECT_EQ(integer_value(*receive.find("comm_src")), 3);
  EXPECT_EQ(integer_value(*receive.find("comm_size")), 80);
}

TEST(ProfileChakra, a_collective_of_unknown_size_is_refused) {
  try {
    TestProfile().kernel("ncclDevKernel_AllReduce", 20, 0, 5, 10).trace();
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Collective name"));
  }
}

TEST(ProfileChakra, older_traces_note_messages_on_the_operator) {
  const std::string text =
      R"([{"ph":"X","cat":"cpu_op","name":"record_param_comms","tid":1,"ts":0,"dur":5,"args":{"External id":9,
           "Collective name":"_allgather_base","dtype":"Float","In msg nelems":25,"Out msg nelems":100}},
          {"ph":"X","cat":"kernel","name":"ncclKernel_AllGather","tid":20,"ts":7,"dur":2,
           "args":{"External id":9,"stream":20}}])";
  const ChakraTrace trace = chakra_from_profile(parse_profile(text, "trace.json")).trace;
  const ChakraNode& node = named(trace, "ncclKernel_AllGather");
  EXPECT_EQ(integer_value(*node.find("comm_size")), 100) << "what one rank puts in";
  EXPECT_EQ(integer_value(*node.find("comm_type")), 2);
}

}  // namespace foretoken::chakra_writer_test
