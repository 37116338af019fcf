#include <gtest/gtest.h>

#include <set>

#include "network/calibration/communication_calibration.h"
#include "network/calibration/laws/expert_traffic.h"
#include "network/calibration/laws/list.h"
#include "network/calibration/test_systems.h"

namespace foretoken::laws_test {

using test_support::expert_call;
using test_support::message;

SystemTraits nvlink_system(double rate) {
  return {.name = "made_up", .link_rate = rate, .reduces_in_switch = true, .processors = 132};
}

std::vector<CommunicationCall> calls_of(std::string_view law, double factor) {
  std::vector<CommunicationCall> calls;
  if (law == "nccl" || law == "oneccl") {
    for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter", "alltoall"})
      calls.push_back(message(std::string(law), operation, 4, 1e5 * factor));
  } else if (law == "custom_all_reduce") {
    for (const char* operation : {"vllm_graph", "vllm_eager"})
      calls.push_back(message(std::string(law), operation, 4, 1e5 * factor));
  } else {
    for (const char* operation : {"dispatch", "combine"})
      calls.push_back(expert_call(std::string(law), operation, static_cast<int64_t>(64 * factor)));
  }
  return calls;
}

LawCurves plain_curves() {
  LawCurves curves;
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "vllm"})
    curves[name][4] = {.x = {-5, 12}, .y = {-3, 8}};
  return curves;
}

TEST(Laws, more_to_send_is_never_faster_and_a_faster_link_never_slower) {
  for (const LawKind& kind : all_laws()) {
    const std::vector<double> constants = test_support::start_constants(*kind.law);
    const LawCurves curves = plain_curves();
    for (double factor = 1; factor < 5000; factor *= 8) {
      const std::vector<CommunicationCall> small = calls_of(kind.name, factor), large = calls_of(kind.name, 2 * factor);
      for (size_t i = 0; i < small.size(); ++i) {
        const auto seconds = [&](const CommunicationCall& call, double rate) {
          return law_seconds(*kind.law, curves, call, nvlink_system(rate), constants).value();
        };
        EXPECT_LE(seconds(small[i], 450e9), seconds(large[i], 450e9)) << kind.name;
        EXPECT_LE(seconds(large[i], 900e9), seconds(large[i], 450e9)) << kind.name;
        EXPECT_GT(seconds(small[i], 450e9), 1e-7) << kind.name;
      }
    }
  }
}

TEST(Laws, have_names_of_their_own_and_start_within_their_bounds) {
  std::set<std::string_view> names;
  for (const LawKind& kind : all_laws()) {
    EXPECT_TRUE(names.insert(kind.name).second);
    EXPECT_EQ(find_law(kind.name), &kind);
    for (const LawConstant& constant : kind.law->constants()) {
      EXPECT_GE(constant.start, constant.least) << constant.name;
      EXPECT_LE(constant.start, constant.most) << constant.name;
    }
  }
  EXPECT_EQ(find_law("nothing"), nullptr);
}

TEST(Laws, an_eager_all_reduce_takes_the_hosts_time_until_the_device_needs_longer) {
  const std::vector<double> constants = test_support::start_constants(custom_all_reduce_law());
  const auto seconds = [&](const char* operation, double bytes) {
    return law_seconds(custom_all_reduce_law(), plain_curves(), message("custom_all_reduce", operation, 4, bytes),
                       nvlink_system(450e9), constants)
        .value();
  };
  EXPECT_DOUBLE_EQ(seconds("vllm_eager", 1024), 25e-6);
  EXPECT_LT(seconds("vllm_graph", 1024), 10e-6);
  EXPECT_DOUBLE_EQ(seconds("vllm_eager", 1e9), seconds("vllm_graph", 1e9));
}

TEST(Laws, a_law_without_its_curve_has_no_answer) {
  const std::vector<double> constants = test_support::start_constants(nccl_law());
  EXPECT_FALSE(law_seconds(nccl_law(), {}, message("nccl", "all_reduce", 4, 1e6), nvlink_system(450e9), constants));
}

TEST(Laws, between_measured_rank_counts_lies_a_time_between_theirs) {
  LawCurves curves;
  curves["all_gather"][2] = {.x = {0, 10}, .y = {1, 8}};
  curves["all_gather"][8] = {.x = {0, 10}, .y = {2, 9}};
  const std::vector<double> constants = test_support::start_constants(nccl_law());
  const SystemTraits system = nvlink_system(450e9);
  const auto curve = [&](int64_t ranks) {
    const CommunicationCall call = message("nccl", "all_gather", ranks, 1e7);
    return law_seconds(nccl_law(), curves, call, system, constants).value() -
           nccl_law().parts(call, system, constants).apart;
  };
  EXPECT_GT(curve(4), curve(2));
  EXPECT_LT(curve(4), curve(8));
}

TEST(ExpertTraffic, a_token_reaches_one_place_with_one_expert_and_nearly_all_with_many) {
  EXPECT_NEAR(places_reached(8, 1), 1, 1e-12);
  EXPECT_NEAR(places_reached(8, 1000), 8, 1e-9);
  EXPECT_LT(places_reached(8, 8), 8);
  EXPECT_EQ(card_bytes(expert_call("deepep_normal", "dispatch", 100), 2), 0);  // one host
}

}  // namespace foretoken::laws_test
