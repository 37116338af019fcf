// Parts of a serving run that cannot be combined: C++ programs, questions and command lines get the same refusal, each
// in its own words for the parts.
#include <functional>
#include <map>
#include <string>

#include <foretoken/foretoken.h>
#include <gtest/gtest.h>

#include "run.h"
#include "serving/energy/energy_meter.h"
#include "serving/results/request_details.h"
#include "serving/results/request_life.h"

namespace foretoken::refused_parts_test {

struct Specs {
  Specs()
      : device(library().hardware().device("h100_sxm")),
        engine{.model = open_model(library(), {.model = "Llama-3.1-8B"}, device), .device = device, .replicas = 2} {}
  static const Library& library() {
    static const Library opened(Library::find());
    return opened;
  }
  FleetConfig& fleet() {
    if (!deployment.fleet) deployment.fleet.emplace();
    return *deployment.fleet;
  }

  Device device;
  EngineSpec engine;
  DeploymentSpec deployment;
  EnergyMeter meter{{}};
  RequestDetails details;
  RequestLife life{0};
};

struct Asked {
  std::function<void(Specs&)> in_specs;
  std::string flags;  // the first names the part
};

const std::map<RunPart, Asked> ask_for = {
    {RunPart::colocation,
     {[](Specs& specs) { specs.deployment.colocation.emplace(); }, "--colocate model=Llama-3.1-8B"}},
    {RunPart::fleet, {[](Specs& specs) { specs.fleet(); }, "--autoscaler reactive --max-replicas 2"}},
    {RunPart::failures, {[](Specs& specs) { specs.fleet().failures.gpu_mtbf_hours = 1; }, "--gpu-mtbf 1"}},
    {RunPart::drains, {[](Specs& specs) { specs.fleet().drains = {1}; }, "--drain-at 5"}},
    {RunPart::admission, {[](Specs& specs) { specs.fleet().admission.most_outstanding = 5; }, "--admission-limit 5"}},
    {RunPart::regions,
     {[](Specs& specs) { specs.fleet().region_policy.spill = Spill::queued; }, "--region name=a --region name=b"}},
    {RunPart::separate_pools,
     {[](Specs& specs) { specs.deployment.prefill = PrefillPool{.engine = specs.engine}; },
      "--prefill-pool count=1 --decode-pool count=1"}},
    {RunPart::kv_tiers, {[](Specs& specs) { specs.deployment.kv_tiers.emplace(); }, "--kv-tier kind=host,size=20GiB"}},
    {RunPart::adapters, {[](Specs& specs) { specs.engine.lora.emplace(); }, "--enable-lora --num-adapters 4"}},
    {RunPart::ffn_pool,
     {[](Specs& specs) { specs.engine.ffn = FfnPool{.models = Specs::library().device_models("h100_sxm", {})}; },
      "--ffn-pool count=1"}},
    {RunPart::samples, {[](Specs& specs) { specs.deployment.samples.count = 2; }, "--n 2"}},
    {RunPart::pooled_requests, {{}, "--task embed"}},  // that is said by requests
    {RunPart::energy, {[](Specs& specs) { specs.deployment.observers = {&specs.meter}; }, "--energy"}},
    {RunPart::request_details,
     {[](Specs& specs) { specs.deployment.observers = {&specs.details}; }, "--details-in-json"}},
    {RunPart::request_life, {[](Specs& specs) { specs.deployment.observers = {&specs.life}; }, "--explain-request 0"}},
};

std::string flag_of(RunPart part) {
  const std::string& flags = ask_for.at(part).flags;
  return flags.substr(0, flags.find(' '));
}

class RefusedParts : public testing::TestWithParam<size_t> {};

TEST_P(RefusedParts, are_refused_by_the_api) {
  const auto [part, with, expected] = refused_pairs()[GetParam()];
  if (!ask_for.at(part).in_specs) return;
  Specs specs;
  ask_for.at(part).in_specs(specs);
  ask_for.at(with).in_specs(specs);
  try {
    simulate_serving(Specs::library(), specs.engine, {.num_prompts = 5}, specs.deployment);
    FAIL() << spec_field(part) << " ran with " << spec_field(with);
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().source, spec_field(part));
    EXPECT_EQ(error.problem().value, "with " + std::string(spec_field(with)));
    EXPECT_EQ(error.problem().expected, expected);
  }
}

TEST_P(RefusedParts, are_refused_by_the_command_by_their_flags) {
  const auto [part, with, expected] = refused_pairs()[GetParam()];
  const Outcome run = run_foretoken("serve --model Llama-3.1-8B --device h100_sxm --num-prompts 5 " +
                                    ask_for.at(part).flags + " " + ask_for.at(with).flags);
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find(flag_of(part) + ": with " + flag_of(with)), std::string::npos) << run.err;
  std::string on_one_line = run.err;
  for (size_t at = 0; (at = on_one_line.find("\n  ", at)) != std::string::npos;) on_one_line.replace(at, 3, " ");
  EXPECT_NE(on_one_line.find(expected), std::string::npos) << run.err;
}

std::string pair_name(const testing::TestParamInfo<size_t>& info) {
  const RefusedPair& pair = refused_pairs()[info.param];
  std::string name = flag_of(pair.part) + "_with_" + flag_of(pair.with);
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(EachPair, RefusedParts, testing::Range<size_t>(0, refused_pairs().size()), pair_name);

TEST(ServingParts, that_do_not_fit_the_replicas_are_refused) {
  const auto field_refused = [](const std::function<void(DeploymentSpec&)>& change) -> std::string {
    Specs specs;
    change(specs.deployment);
    try {
      simulate_serving(Specs::library(), specs.engine, {.num_prompts = 5}, specs.deployment);
      return "none";
    } catch (const InputError& error) {
      return error.problem().source;
    }
  };
  EXPECT_EQ(field_refused([](DeploymentSpec& spec) { spec.fleet.emplace().members.resize(3); }),
            "deployment.fleet.members");
  EXPECT_EQ(field_refused([](DeploymentSpec& spec) { spec.fleet.emplace().members.resize(2); }),
            "deployment.fleet.pools");
  EXPECT_EQ(field_refused([](DeploymentSpec& spec) { spec.kv_tiers.emplace(); }),
            "deployment.kv_tiers.node_of_replica");
  EXPECT_EQ(field_refused([](DeploymentSpec& spec) { spec.colocation.emplace(); }), "deployment.colocation.engines");
}

// One engine computes prompts, one decodes: as the command with the same link.
TEST(ServingParts, of_the_api_run_as_those_of_the_command) {
  Specs specs;
  specs.deployment.step_bounds = false;
  const LoadSpec load{.num_prompts = 40, .arrivals = {.rate = 4}, .output_len = 32};
  specs.engine.replicas = 1;
  specs.deployment.prefill =
      PrefillPool{.engine = specs.engine, .transfer = {.device_bandwidth = BytesPerSecond(50e9)}};
  const ServingPrediction pools = simulate_serving(Specs::library(), specs.engine, load, specs.deployment);
  EXPECT_EQ(pools.run.totals.completed, 40);
  const Outcome run = run_foretoken(
      "serve --model Llama-3.1-8B --device h100_sxm --num-prompts 40 --request-rate 4 --random-output-len 32 "
      "--no-intervals --prefill-pool count=1 --decode-pool count=1 --kv-transfer-bandwidth 50 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json printed = parse_json(run.out, "answer");
  const Json* const mean = printed.find("mean_ttft_ms");
  ASSERT_NE(mean, nullptr);
  EXPECT_DOUBLE_EQ(mean->number(), pools.run.metrics.ttft.mean_ms);
}

}  // namespace foretoken::refused_parts_test
