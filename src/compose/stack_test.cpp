#include "compose/stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "compose/lowering.h"
#include "compose/step_estimate.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::stack_test {

using testing::ElementsAre;
using testing::HasSubstr;

StackCatalogue shipped() {
  return StackCatalogue(FORETOKEN_SOURCE_DIR "/data/stacks");
}

std::string with(const std::string& members) {
  return R"({"format": 1, "name": "mine", "summary": "s", "source": "t", "dispatch": {"decode": "graph"})" +
         (members.empty() ? "" : ", " + members) + "}";
}

Stack parse(const std::string& members) {
  return parse_stack(with(members), "mine.json");
}

std::string complaint(const std::string& members) {
  try {
    parse(members);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Stack, every_shipped_file_reads_and_has_the_name_of_its_file) {
  const std::vector<std::string> names = shipped().names();
  EXPECT_GE(names.size(), 7U);
  for (const std::string& name : names) {
    const Stack stack = shipped().stack(name);
    EXPECT_EQ(stack.name, name);
    EXPECT_FALSE(stack.summary.empty());
    EXPECT_FALSE(stack.source.empty());
    EXPECT_FALSE(stack.origin.fitted_on.empty()) << name;
    EXPECT_FALSE(stack.origin.software.empty()) << name;
    EXPECT_LE(stack.costs.host_low, 1);
    EXPECT_GE(stack.costs.host_high, 1);
  }
}

TEST(StackOrigin, says_when_and_for_what_numbers_were_fitted) {
  EXPECT_EQ(origin_text({.fitted_on = "2026-11-18", .software = "vLLM 0.10.2"}),
            "last fitted or changed 2026-11-18, for vLLM 0.10.2");
  EXPECT_EQ(origin_text({.fitted_on = "2026-11-18", .software = "none"}), "last fitted or changed 2026-11-18");
  EXPECT_EQ(origin_text({.fitted_on = "", .software = "vLLM 0.10.2"}), "for vLLM 0.10.2");
  EXPECT_EQ(origin_text({}), "");
}

TEST(Stack, an_unknown_name_suggests_the_nearest) {
  try {
    shipped().stack("hf-eagre");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "hf-eager");
  }
}

TEST(Stack, sizes_are_lists_of_numbers_and_of_ranges) {
  const Stack stack = parse(R"("graph_sizes": [1, 2, {"from": 8, "to": 24, "step": 8}])");
  EXPECT_THAT(stack.graph_sizes, ElementsAre(1, 2, 8, 16, 24));
  EXPECT_EQ(stack.padded_tokens(1), 1);
  EXPECT_EQ(stack.padded_tokens(3), 8);
  EXPECT_EQ(stack.padded_tokens(24), 24);
  EXPECT_EQ(stack.padded_tokens(25), std::nullopt);
}

TEST(Stack, beyond_the_largest_captured_size_the_host_launches) {
  const Stack stack = parse(R"("graph_sizes": [1, 2])");
  EXPECT_EQ(stack.dispatch_of(StepPhase::decode, 2), Dispatch::graph);
  EXPECT_EQ(stack.dispatch_of(StepPhase::decode, 3), Dispatch::eager);
  EXPECT_EQ(parse("").dispatch_of(StepPhase::decode, 3), Dispatch::graph) << "without sizes there is one for each";
  EXPECT_EQ(stack.dispatch_of(StepPhase::train, 1), Dispatch::fused);
}

TEST(Stack, vllm_captures_the_sizes_that_it_documents) {
  const Stack vllm = shipped().stack("vllm");
  EXPECT_EQ(vllm.graph_sizes.size(), 3U + 31U + 17U);
  EXPECT_EQ(vllm.graph_sizes.back(), 512);
  EXPECT_EQ(vllm.padded_tokens(249), 256);
  EXPECT_EQ(vllm.padded_tokens(257), 272);
}

TEST(Stack, releases_differ_in_when_the_host_works_and_where_norms_run) {
  for (const char* ahead : {"vllm", "vllm-0.14", "trtllm"}) EXPECT_TRUE(shipped().stack(ahead).asynchronous) << ahead;
  for (const char* serial :
       {"vllm-0.6", "vllm-0.10", "vllm-0.10-fused", "vllm-0.11", "trtllm-1.1", "sglang", "hf-eager"}) {
    EXPECT_FALSE(shipped().stack(serial).asynchronous) << serial;
  }
  const std::vector<Operator> operators = {{.name = "input_norm", .shape = NormShape{.rows = 16, .width = 8192}},
                                           {.name = "tp_all_reduce", .shape = CollectiveShape{.ranks = 4}}};
  const auto launches = [&](const char* stack, std::string_view generation) {
    return lower(shipped().stack(stack), operators, {.generation = generation}).size();
  };
  EXPECT_EQ(launches("vllm", "Hopper"), 1U) << "inside the all-reduce";
  EXPECT_EQ(launches("vllm", "Ampere"), 2U);
  EXPECT_EQ(launches("vllm-0.14", "Hopper"), 2U);
}

TEST(Stack, attention_with_sinks_is_tritons_where_vllm_has_no_other) {
  const std::vector<Operator> operators = {
      {.name = "attention", .shape = AttentionShape{.phase = AttentionPhase::prefill, .q_len = 8, .kv_len = 8}},
      {.name = "attention", .shape = AttentionShape{.phase = AttentionPhase::decode, .kv_len = 8}},
      {.name = "attention", .shape = MixedAttentionShape{}}};
  const auto kernels = [&](const char* stack, const char* model, std::string_view generation) {
    std::vector<std::string> names;
    const LoweredStep step{.model = model, .generation = generation};
    for (const Launch& launch : lower(shipped().stack(stack), operators, step)) names.push_back(launch.variant);
    return names;
  };
  for (const char* stack : {"vllm", "vllm-0.10", "vllm-0.14"}) {
    for (const char* generation : {"Ampere", "Ada", "Blackwell (graphics)"}) {
      EXPECT_THAT(kernels(stack, "gpt_oss", generation), ElementsAre("triton_attn", "triton_attn", "triton_attn"))
          << stack << " " << generation;
    }
    EXPECT_THAT(kernels(stack, "gpt_oss", "Hopper"), ElementsAre("", "", "")) << stack;
    EXPECT_THAT(kernels(stack, "llama", "Ampere"), ElementsAre("", "", "")) << stack;
  }
}

TEST(Stack, times_are_microseconds) {
  const Stack stack = parse(R"("costs": {"launch_us": 4, "host_us": {"gemm": 2.5}})");
  EXPECT_DOUBLE_EQ(stack.costs.launch.value(), 4e-6);
  EXPECT_DOUBLE_EQ(stack.costs.host.at("gemm").value(), 2.5e-6);
  EXPECT_FALSE(stack.costs.uncompiled);
}

TEST(Stack, an_extension_puts_its_rules_first_and_inherits_the_rest) {
  const std::string base = with(
      R"("costs": {"launch_us": 4, "step_host_us": 900, "kernel_factor": {"prefill": 1.2}}, "graph_sizes": [8], "kernels": {"gemm": "a", "norm": "b"},
         "rules": [{"when": {"name": "x"}, "emit": []}])");
  const StackFinder find = [&](const std::string&) { return parse_stack(base, "base.json"); };
  const Stack stack = parse_stack(R"({"format": 1, "name": "more", "summary": "s", "source": "t", "extends": "mine",
      "costs": {"step_host_us": 500, "front": {"latency_us": 8000, "token_us": 1}},
      "kernels": {"gemm": "c"}, "rules": [{"when": {"name": "y"}, "emit": []}]})",
                                  "more.json", find);
  EXPECT_EQ(stack.name, "more");
  EXPECT_EQ(stack.dispatch_of(StepPhase::decode), Dispatch::graph);
  EXPECT_DOUBLE_EQ(stack.costs.launch.value(), 4e-6);
  EXPECT_DOUBLE_EQ(stack.costs.step_host.value(), 500e-6) << "its own costs come before those it extends";
  EXPECT_DOUBLE_EQ(stack.costs.front.latency.value(), 8e-3);
  EXPECT_DOUBLE_EQ(stack.costs.front.token.value(), 1e-6);
  EXPECT_DOUBLE_EQ(stack.kernel_factor(StepPhase::prefill), 1.2);
  EXPECT_DOUBLE_EQ(stack.kernel_factor(StepPhase::decode), 1);
  EXPECT_THAT(stack.graph_sizes, ElementsAre(8));
  EXPECT_EQ(stack.kernels.at("gemm"), "c");
  EXPECT_EQ(stack.kernels.at("norm"), "b");
  ASSERT_EQ(stack.rules.size(), 2U);
  EXPECT_THAT(stack.rules[0].when.names, ElementsAre("y"));
  EXPECT_THAT(stack.rules[1].when.names, ElementsAre("x"));
}

TEST(Stack, a_chain_of_extensions_ends) {
  const StackCatalogue stacks(FORETOKEN_SOURCE_DIR "/data/stacks");
  const Stack compiled = stacks.stack("torch-compile"), eager = stacks.stack("torch-eager");
  EXPECT_GT(compiled.rules.size(), eager.rules.size());
  EXPECT_GT(eager.rules.size(), stacks.stack("hf-eager").rules.size());
  EXPECT_EQ(compiled.dispatch_of(StepPhase::train), Dispatch::eager);
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "circle_of_stacks";
  std::filesystem::create_directories(folder);
  for (const auto& [name, base] : {std::pair("a", "b"), std::pair("b", "a")}) {
    write_file(
        folder / (std::string(name) + ".json"),
        fmt::format(R"({{"format": 1, "name": "{}", "summary": "s", "source": "t", "extends": "{}"}})", name, base));
  }
  try {
    read_stack(folder / "a.json");
    FAIL() << "a circle is refused";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().path, "extends");
  }
}

TEST(Stack, mistakes_are_told_with_path_and_expectation) {
  EXPECT_THAT(complaint(R"("kernel": {})"), HasSubstr("kernel"));
  EXPECT_THAT(complaint(R"("costs": {"launch": 4})"), HasSubstr("launch"));
  EXPECT_THAT(complaint(R"("costs": {"launch_us": -4})"), HasSubstr("costs.launch_us"));
  EXPECT_THAT(complaint(R"("graph_sizes": [2, 1])"), HasSubstr("ascending"));
  EXPECT_THAT(complaint(R"("graph_sizes": [0])"), HasSubstr("graph_sizes"));
  EXPECT_THAT(complaint(R"("rules": [{"when": {"pass": "backwards"}, "emit": []}])"), HasSubstr("backward"));
  EXPECT_THAT(complaint(R"("rules": [{"when": {}, "emit": [{"family": "nrom"}]}])"), HasSubstr("rules[0]"));
  EXPECT_THAT(complaint(R"("rules": [{"when": {}, "emit": [{"family": "norm", "heads": 1}]}])"),
              HasSubstr("a field of the family norm"));
  EXPECT_THAT(complaint(R"("rules": [{"when": {"if": "1 +"}, "emit": []}])"), HasSubstr("at character"));
  EXPECT_THAT(complaint(R"("rules": [{"when": {}}])"), HasSubstr("emit"));
  EXPECT_THAT(complaint(R"("extends": "other")"), HasSubstr("no other stack"));
  for (const char* date : {"November", "2026-13-01", "2026-11", "2026-11-32", "20261117", "2026-11-1 "}) {
    EXPECT_THAT(complaint(fmt::format(R"("fitted_on": "{}")", date)), HasSubstr("a date such as 2026-11-17")) << date;
  }
  EXPECT_THAT(complaint(R"("fitted_on": 20261117)"), HasSubstr("fitted_on"));
  EXPECT_THAT(complaint(R"("software": "")"), HasSubstr("its release"));
}

TEST(OperatorPattern, fits_by_name_family_pass_phase_model_and_condition) {
  const Operator call{.name = "qkv_proj", .pass = Pass::forward, .shape = GemmShape{.m = 4}};
  const Expression::Names fields = [](std::string_view name) {
    return name == "m" ? std::optional(4.0) : std::nullopt;
  };
  const auto fits = [&](OperatorPattern pattern) {
    return pattern.fits(call, {.phase = StepPhase::decode, .model = "llama"}, fields);
  };
  EXPECT_TRUE(fits({}));
  EXPECT_TRUE(fits({.names = {"o_proj", "qkv*"}}));
  EXPECT_FALSE(fits({.names = {"qkv"}}));
  EXPECT_TRUE(fits({.families = {"gemm"}}));
  EXPECT_FALSE(fits({.families = {"norm"}}));
  EXPECT_FALSE(fits({.pass = Pass::backward}));
  EXPECT_FALSE(fits({.phases = {StepPhase::prefill}}));
  EXPECT_FALSE(fits({.models = {"gemma2"}}));
  EXPECT_TRUE(fits({.condition = Expression::parse("m <= 4", "", "")}));
  EXPECT_FALSE(fits({.condition = Expression::parse("m < 4", "", "")}));
}

TEST(Stack, every_shipped_stack_runs_dense_window_expert_and_latent_models_in_its_phases_and_no_others) {
  const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";
  const StackCatalogue stacks(data / "stacks");
  const ModelCatalogue models(data / "models");
  const KernelPredictor roofline(HardwareCatalogue(data / "hardware").device("h200_sxm"));
  for (const std::string& name : stacks.names()) {
    const Stack stack = stacks.stack(name);
    for (const char* model_name : {"Llama-3.1-8B", "gemma-2-2b", "Qwen3-30B-A3B", "gpt2-large", "DeepSeek-V2-Lite"}) {
      const Model model = models.model(model_name);
      for (const StepPhase phase : {StepPhase::prefill, StepPhase::decode, StepPhase::mixed, StepPhase::train}) {
        const StepRequest request{.phase = phase, .batch = 4, .input_len = 64, .context_len = 32, .prompts = 2};
        if (!stack.runs(phase)) {
          EXPECT_EQ(phase, StepPhase::train) << name;
          EXPECT_THROW(estimate_step(model, request, {}, roofline, stack), InputError) << name;
          continue;
        }
        EXPECT_GT(estimate_step(model, request, {}, roofline, stack).seconds.value, 0) << name << " " << model_name;
      }
    }
  }
}

TEST(Stack, a_file_extends_its_neighbour_before_a_shipped_stack_of_that_name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "neighbour_stacks";
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& base, double step_host_us) {
    write_file(folder / (name + ".json"),
               fmt::format(R"({{"format": 1, "name": "{}", "summary": "s", "source": "t", "extends": "{}", )"
                           R"("costs": {{"step_host_us": {}}}}})",
                           name, base, step_host_us));
  };
  write("vllm", "vllm", 77);  // itself by name: the shipped one is meant
  write_file(folder / "mine.json",
             R"({"format": 1, "name": "mine", "summary": "s", "source": "t", "extends": "vllm"})");
  write_file(folder / "later.json",
             R"({"format": 1, "name": "later", "summary": "s", "source": "t", "extends": "vllm-0.11"})");
  const Stack ours = shipped().stack((folder / "mine.json").string());
  EXPECT_DOUBLE_EQ(ours.costs.step_host.value(), 77e-6);
  EXPECT_EQ(ours.costs.launch, shipped().stack("vllm").costs.launch);
  EXPECT_EQ(shipped().stack((folder / "later.json").string()).costs.step_host,
            shipped().stack("vllm-0.11").costs.step_host)
      << "a shipped stack extends shipped ones";
  std::filesystem::remove_all(folder);
}

TEST(Stack, a_users_file_extends_a_shipped_stack_from_any_folder) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "extends_hf_eager.json";
  write_file(file,
             R"({"format": 1, "name": "mine", "extends": "hf-eager", "summary": "s", "source": "t", "rules": []})");
  const StackCatalogue stacks(FORETOKEN_SOURCE_DIR "/data/stacks");
  const Stack mine = stacks.stack(file.string());
  EXPECT_EQ(mine.rules.size(), stacks.stack("hf-eager").rules.size());
  EXPECT_EQ(mine.dispatch_of(StepPhase::decode, 1), Dispatch::eager);
  std::filesystem::remove(file);
}

}  // namespace foretoken::stack_test
