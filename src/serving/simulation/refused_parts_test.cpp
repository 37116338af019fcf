// Every pair of parts that cannot be combined is refused by the run itself, whoever asks for it.
#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/results/request_details.h"
#include "serving/results/request_life.h"
#include "serving/test_support.h"

namespace foretoken::refused_parts_test {

// Measures energy as far as a run can tell.
class Metered final : public RunObserver {
 public:
  void add_parts(RunParts& parts) const override { parts.add(RunPart::energy); }
};

struct Asked {
  LinearTimes times{{}};
  SimulationConfig config;
  std::vector<Request> requests = random_requests(1, 20, 20, 100, 20);
  RunObserver nobody;
  Metered meter;
  RequestDetails details;
  RequestLife life{3};
  RunObserver* observer = &nobody;

  Asked() { config.replicas.assign(2, {.options = {.max_num_seqs = 16, .num_gpu_blocks = 400}, .times = &times}); }
  FleetConfig& fleet() {
    if (!config.fleet) {
      FleetConfig two;
      two.members.assign(2, {.devices = 1, .cold_start = one_second});
      const auto capacity = [](double /*input*/, double /*output*/) { return 1.0; };
      two.pools = {{.members = 2, .at_start = 2, .capacity = capacity}};
      config.fleet = two;
    }
    return *config.fleet;
  }
  SimulationTotals run() {
    if (config.disaggregation && config.fleet) config.fleet->pools.assign(2, {.members = 1});
    ListedRequests source(requests);
    return simulate(config, source, *observer);
  }
};

const std::map<RunPart, std::function<void(Asked&)>> ask_for = {
    {RunPart::colocation,
     [](Asked& run) {
       run.config.colocation = {.engines = {{}, {}}};
     }},
    {RunPart::fleet, [](Asked& run) { run.fleet(); }},
    {RunPart::failures, [](Asked& run) { run.fleet().failures.gpu_mtbf_hours = 1; }},
    {RunPart::drains, [](Asked& run) { run.fleet().drains = {one_second}; }},
    {RunPart::admission, [](Asked& run) { run.fleet().admission.most_outstanding = 100; }},
    {RunPart::regions, [](Asked& run) { run.fleet().region_policy.spill = Spill::queued; }},
    {RunPart::separate_pools,
     [](Asked& run) {
       const KvPort port{.bandwidth = BytesPerSecond(1e9), .latency = Seconds(0)};
       run.config.disaggregation = {.kv_bytes_per_token = 1e5, .ports = {port, port}};
     }},
    {RunPart::kv_tiers,
     [](Asked& run) {
       run.config.kv_tiers = {.tiers = {}, .node_of_replica = {0, 0}, .kv_bytes_per_token = 1e5};
     }},
    {RunPart::adapters,
     [](Asked& run) {
       for (ReplicaConfig& replica : run.config.replicas) replica.adapters = {.device_slots = 2, .host_slots = 2};
     }},
    {RunPart::ffn_pool, [](Asked& run) { run.config.replicas.front().ffn_apart = true; }},
    {RunPart::samples, [](Asked& run) { run.config.samples.count = 2; }},
    {RunPart::pooled_requests, [](Asked& run) { run.requests.back().pooled = true; }},
    {RunPart::energy, [](Asked& run) { run.observer = &run.meter; }},
    {RunPart::request_details, [](Asked& run) { run.observer = &run.details; }},
    {RunPart::request_life, [](Asked& run) { run.observer = &run.life; }},
};

class RefusedParts : public testing::TestWithParam<size_t> {};

TEST_P(RefusedParts, are_refused_together_and_run_alone) {
  const auto [part, with, expected] = refused_pairs()[GetParam()];
  for (const RunPart alone : {part, with}) {
    Asked run;
    ask_for.at(alone)(run);
    EXPECT_EQ(run.run().completed, 20) << spec_field(alone);
  }
  for (const bool swapped : {false, true}) {
    Asked run;
    ask_for.at(swapped ? with : part)(run);
    ask_for.at(swapped ? part : with)(run);
    try {
      run.run();
      FAIL() << spec_field(part) << " ran with " << spec_field(with);
    } catch (const InputError& error) {
      EXPECT_EQ(error.problem().source, spec_field(part));
      EXPECT_EQ(error.problem().value, "with " + std::string(spec_field(with)));
      EXPECT_EQ(error.problem().expected, expected);
    }
  }
}

std::string pair_name(const testing::TestParamInfo<size_t>& info) {
  const RefusedPair& pair = refused_pairs()[info.param];
  std::string name;
  for (const std::string_view field : {spec_field(pair.part), spec_field(pair.with)}) {
    if (!name.empty()) name += "_with_";
    for (const char c : field) name += std::isalpha(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(EachPair, RefusedParts, testing::Range<size_t>(0, refused_pairs().size()), pair_name);

}  // namespace foretoken::refused_parts_test
