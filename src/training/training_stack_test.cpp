#include "training/training_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "hardware/catalogue.h"
#include "model/step_test_models.h"
#include "training/test_machine.h"

namespace foretoken::training_stack_test {

using testing::HasSubstr;

std::string stack_text(const std::string& name, const std::string& more = "") {
  return fmt::format(R"({{"format": 1, "name": "{}", "summary": "made up", "source": "made up"{}{}}})", name,
                     more.empty() ? "" : ", ", more);
}

InputProblem stack_problem(const std::string& text) {
  try {
    parse_training_stack(text, "stack.json");
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "no InputError: " << text;
  return {};
}

Device stack_device(const std::string& name) {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(name);
}

TEST(TrainingConstants, names_read_back_and_usual_values_are_allowed) {
  for (size_t i = 0; i < training_constant_facts().size(); ++i) {
    const TrainingConstantFacts& facts = training_constant_facts()[i];
    EXPECT_EQ(training_constant_from_name(facts.name), static_cast<TrainingConstant>(i));
    EXPECT_LE(facts.least, facts.usual) << facts.name;
    EXPECT_GE(facts.most, facts.usual) << facts.name;
    EXPECT_EQ(usual_training_constants()[i], facts.usual) << facts.name;
  }
  EXPECT_EQ(training_constant_from_name("linear"), std::nullopt);
}

TEST(TrainingStack, a_file_that_says_nothing_has_usual_constants) {
  const TrainingStack stack = parse_training_stack(stack_text("plain"), "stack.json");
  EXPECT_EQ(stack.constants, usual_training_constants());
  EXPECT_EQ(stack.attention, AttentionKernel::flash);
  EXPECT_TRUE(stack.runs.empty());
}

// GB300 is of the generation sm_100 with the instruction set sm_103.
TEST(TrainingStack, the_narrowest_place_of_a_device_counts) {
  const TrainingStack stack = parse_training_stack(
      stack_text("placed", R"("constants": {"board_factor": 1.1, "linear_factor": 1.2, "fp8_factor": 1.3},
        "on": {"gb300": {"board_factor": 0.5}, "sm_103": {"board_factor": 0.6, "linear_factor": 0.7},
               "sm_100": {"board_factor": 0.8, "linear_factor": 0.9, "fp8_factor": 0.95}})"),
      "stack.json");
  const auto values = [&](const char* device) {
    const TrainingConstants constants = stack.constants_on(stack_device(device));
    return std::vector<double>{constants[board_factor], constants[linear_factor], constants[fp8_factor]};
  };
  EXPECT_EQ(values("gb300"), (std::vector<double>{0.5, 0.7, 0.95}));
  EXPECT_EQ(values("b300_sxm"), (std::vector<double>{0.6, 0.7, 0.95}));
  EXPECT_EQ(values("gb200"), (std::vector<double>{0.8, 0.9, 0.95}));
  EXPECT_EQ(values("h100_sxm"), (std::vector<double>{1.1, 1.2, 1.3}));
}

TEST(TrainingStack, says_what_it_does_differently_in_a_number_format) {
  const TrainingStack stack = parse_training_stack(
      stack_text("habits", R"("recipes": {"nvfp4": {"hides_tensor": false}, "fp8": {"gathered_parameter_bytes": 1}})"),
      "stack.json");
  EXPECT_FALSE(stack.habits_of("nvfp4").hides_tensor);
  EXPECT_EQ(stack.habits_of("fp8").gathered_parameter_bytes, 1);
  EXPECT_TRUE(stack.habits_of("bf16").hides_tensor);
  EXPECT_EQ(stack.habits_of("bf16").gathered_parameter_bytes, std::nullopt);
  EXPECT_EQ(stack_problem(stack_text("odd", R"("recipes": {"nvfp5": {}})")).suggestion, "nvfp4");
}

TEST(TrainingStack, attention_with_sinks_is_unfused_on_the_places_that_say_so) {
  const TrainingStack stack =
      parse_training_stack(stack_text("sinks", R"("unfused_sinks": ["sm_90", "gb200"])"), "stack.json");
  Layer plain = step_test::llama_like().layers.front(), sinks = plain;
  std::get<Attention>(sinks.mixer).sinks = true;
  EXPECT_EQ(stack.attention_of(sinks, stack_device("h100_sxm")), AttentionKernel::unfused);
  EXPECT_EQ(stack.attention_of(sinks, stack_device("gb200")), AttentionKernel::unfused);
  EXPECT_EQ(stack.attention_of(sinks, stack_device("b200_sxm")), AttentionKernel::flash);
  EXPECT_EQ(stack.attention_of(plain, stack_device("h100_sxm")), AttentionKernel::flash);
}

TEST(TrainingStack, models_with_routed_experts_may_have_an_interval_of_their_own) {
  const std::string one = R"("runs": [{"source": "made-up"}], "interval": {"low": 0.9, "high": 1.1})";
  const TrainingStack same = parse_training_stack(stack_text("same", one), "stack.json");
  EXPECT_EQ(same.interval_for(step_test::llama_like(), {}).low, 0.9);
  EXPECT_LT(same.interval_for(step_test::mixtral_like(), {}).low, 0.8) << "it says of no run with experts";
  const TrainingStack apart =
      parse_training_stack(stack_text("apart", one + R"(, "experts_interval": {"low": 0.5, "high": 2})"), "stack.json");
  EXPECT_EQ(apart.interval_for(step_test::llama_like(), {}).high, 1.1);
  EXPECT_EQ(apart.interval_for(step_test::mixtral_like(), {}).high, 2);
}

TEST(TrainingStack, fine_tuning_may_have_an_interval_of_its_own) {
  const TrainingStack stack =
      parse_training_stack(stack_text("a", R"("runs": [{"source": "made-up"}], "interval": {"low": 0.9, "high": 1.1},
                                              "tuning_interval": {"low": 0.8, "high": 1.3})"),
                           "a");
  EXPECT_EQ(stack.interval_for(step_test::llama_like(), {}).high, 1.1);
  EXPECT_EQ(stack.interval_for(step_test::llama_like(), {.tuning = true}).high, 1.3);
}

TEST(TrainingStack, says_how_uncertain_the_kernels_of_its_runs_were) {
  const TrainingStack said = parse_training_stack(
      stack_text("said", R"("interval": {"low": 0.9, "high": 1.1, "kernels_low": 0.8, "kernels_high": 1.3})"),
      "stack.json");
  EXPECT_EQ(said.interval.kernels_low, 0.8);
  EXPECT_EQ(said.interval.kernels_high, 1.3);
  const TrainingStack silent =
      parse_training_stack(stack_text("silent", R"("interval": {"low": 0.9, "high": 1.1})"), "stack.json");
  EXPECT_EQ(silent.interval.kernels_low, 1);
  EXPECT_EQ(silent.interval.kernels_high, 1);
  EXPECT_EQ(stack_problem(stack_text("bad", R"("interval": {"low": 0.9, "high": 1.1, "kernels_low": 1.2})")).path,
            "interval.kernels_low");
}

TEST(TrainingStack, a_complaint_names_file_path_and_the_nearest_name) {
  InputProblem problem = stack_problem(stack_text("bad", R"("constants": {"linear_facter": 1})"));
  EXPECT_EQ(problem.source, "stack.json");
  EXPECT_EQ(problem.path, "constants.linear_facter");
  EXPECT_EQ(problem.suggestion, "linear_factor");
  problem = stack_problem(stack_text("bad", R"("on": {"sm_90": {"step_us": -1}})"));
  EXPECT_EQ(problem.path, "on.sm_90.step_us");
  EXPECT_EQ(problem.value, "-1");
  EXPECT_EQ(stack_problem(stack_text("bad", R"("runs": [{"source": "a", "release": "1"}])")).path, "runs[0].release");
  EXPECT_EQ(stack_problem(stack_text("bad", R"("interval": {"low": 1.2, "high": 1.3})")).path, "interval.low");
  EXPECT_EQ(stack_problem(stack_text("bad", R"("attention": "fast")")).path, "attention");
  EXPECT_EQ(stack_problem(stack_text("bad", R"("atention": "flash")")).suggestion, "attention");
  EXPECT_EQ(stack_problem(stack_text("bad", R"("extends": "plain")")).path, "extends");
  EXPECT_EQ(stack_problem("{\n\"format\": 1,\n\"name\": oops}").line, 3);
}

class TrainingStackFolder : public testing::Test {
 protected:
  TrainingStackFolder() {
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("training_stacks_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~TrainingStackFolder() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  void add(const std::string& name, const std::string& more) const {
    write_file(folder_ / (name + ".json"), stack_text(name, more));
  }
  InputProblem problem_of_stack(const std::string& name) const {
    try {
      TrainingStackCatalogue(folder_).stack(name);
    } catch (const InputError& error) {
      return error.problem();
    }
    ADD_FAILURE() << "no InputError";
    return {};
  }
  std::filesystem::path folder_;
};

TEST_F(TrainingStackFolder, a_stack_has_what_those_it_extends_say_and_its_own_instead) {
  add("first", R"("attention": "unfused", "gathers_always": true, "fitted": ["step_us"], "runs": [{"source": "a"}],
                  "constants": {"step_us": 1, "linear_factor": 2, "fp8_factor": 3},
                  "on": {"sm_90": {"board_factor": 0.5, "loss_factor": 0.6}})");
  add("second", R"("extends": "first", "constants": {"linear_factor": 1.5},
                   "on": {"sm_90": {"board_factor": 0.7}})");
  add("third", R"("extends": "second", "attention": "flash", "constants": {"fp8_factor": 3.5})");
  const TrainingStack third = TrainingStackCatalogue(folder_).stack("third");
  EXPECT_EQ(third.name, "third");
  EXPECT_EQ(third.attention, AttentionKernel::flash);
  EXPECT_TRUE(third.gathers_always);
  EXPECT_EQ(third.constants[step_us], 1);
  EXPECT_EQ(third.constants[linear_factor], 1.5);
  EXPECT_EQ(third.constants[fp8_factor], 3.5);
  EXPECT_EQ(third.on.at("sm_90").at(board_factor), 0.7);
  EXPECT_EQ(third.on.at("sm_90").at(loss_factor), 0.6);
  EXPECT_TRUE(third.fitted.empty());
  EXPECT_TRUE(third.runs.empty());
}

TEST_F(TrainingStackFolder, stacks_that_extend_each_other_or_nobody_are_refused_where_they_say_so) {
  add("one", R"("extends": "two")");
  add("two", R"("extends": "three")");
  add("three", R"("extends": "one")");
  InputProblem problem = problem_of_stack("one");
  EXPECT_EQ(problem.source, (folder_ / "three.json").string());
  EXPECT_EQ(problem.path, "extends");
  EXPECT_EQ(problem.value, "one");
  add("three", R"("extends": "twoo")");
  problem = problem_of_stack("one");
  EXPECT_EQ(problem.source, (folder_ / "three.json").string());
  EXPECT_EQ(problem.suggestion, "two");
  add("self", R"("extends": "self")");
  EXPECT_EQ(problem_of_stack("self").path, "extends");
}

TEST_F(TrainingStackFolder, an_unknown_name_gets_the_nearest_one) {
  add("megatron", "");
  const InputProblem problem = problem_of_stack("megatorn");
  EXPECT_EQ(problem.field, "stack");
  EXPECT_EQ(problem.suggestion, "megatron");
}

TEST(TrainingStackCatalogue, software_without_a_stack_of_its_own_is_answered_with_one_that_ships) {
  const TrainingStackCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/training/stacks");
  const std::vector<std::string> known = catalogue.names();
  for (const char* software : {"NeMo", "megatron-bridge", "megatron-lm", "megatron-core", "axolotl", "accelerate",
                               "trl", "huggingface", "torchtune", "fsdp2"}) {
    try {
      catalogue.stack(software);
      FAIL() << software;
    } catch (const InputError& error) {
      EXPECT_THAT(known, testing::Contains(error.problem().suggestion)) << software;
    }
  }
}

TEST(TrainingStackCatalogue, every_stack_that_ships_is_read_and_names_constants_it_has) {
  const TrainingStackCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/training/stacks");
  EXPECT_GE(catalogue.all().size(), 10U);
  for (const TrainingStack& stack : catalogue.all()) {
    EXPECT_FALSE(stack.origin.fitted_on.empty()) << stack.name;
    EXPECT_FALSE(stack.origin.software.empty()) << stack.name;
    EXPECT_LE(stack.interval.low, 1) << stack.name;
    EXPECT_GE(stack.interval.high, 1) << stack.name;
    EXPECT_TRUE(!stack.runs.empty() || stack.fitted.empty()) << stack.name << " is fitted to nothing";
    for (const std::string& fitted : stack.fitted) {
      const std::string name = fitted.substr(fitted.rfind('.') + 1);
      EXPECT_TRUE(training_constant_from_name(name)) << stack.name << " " << fitted;
    }
  }
}

TEST(TrainingStack, is_less_sure_beyond_its_runs) {
  TrainingStack stack{.name = "fitted", .interval = {.low = 0.9, .high = 1.1}};
  stack.runs = {{.source = "made-up"}};
  const Device device{.name = "some_device", .title = "Some device"};
  const StackUse use{.device = &device, .devices = 8};
  stack.coverage = StackCoverage{.devices = {"some_device"}, .most_devices = 64};
  EXPECT_TRUE(stack.beyond_runs(step_test::llama_like(), use).empty());
  EXPECT_EQ(stack.interval_for(step_test::llama_like(), use).high, 1.1);
  EXPECT_EQ(stack.confidence_for(step_test::llama_like(), use), Confidence::interpolated);
  EXPECT_EQ(stack.beyond_runs(step_test::mixtral_like(), use).size(), 1U);
  EXPECT_LT(stack.interval_for(step_test::mixtral_like(), use).low, 0.8);
  const StackUse large{.device = &device, .adapters = true, .devices = 1024};
  EXPECT_EQ(stack.beyond_runs(step_test::llama_like(), large).size(), 2U);
  stack.coverage->longest_sequence = 4096;
  StackUse longer = use;
  longer.sequence_length = 16384;
  EXPECT_TRUE(stack.beyond_runs(step_test::llama_like(), longer).empty()) << "near enough";
  longer.sequence_length = 65536;
  EXPECT_EQ(stack.beyond_runs(step_test::llama_like(), longer).size(), 1U);
  EXPECT_LT(stack.interval_for(step_test::llama_like(), longer).low, 0.8);
  stack.coverage->devices = {"another"};
  EXPECT_EQ(stack.confidence_for(step_test::llama_like(), use), Confidence::extrapolated);
  EXPECT_GT(stack.interval_for(step_test::llama_like(), use).high, 1.2);
}

TEST(TrainingStack, without_coverage_stands_for_dense_models_on_the_gpus_of_public_facts) {
  const TrainingStack stack{.name = "assumed", .interval = {.low = 0.75, .high = 1.35}};
  const Model dense = step_test::llama_like();
  const auto high_on = [&](const char* device, const Model& model, StackUse use) {
    const Device found = stack_device(device);
    use.device = &found;
    return stack.interval_for(model, use).high;
  };
  for (const char* device : {"a100_sxm", "h100_sxm", "h200_sxm"}) {
    EXPECT_NEAR(high_on(device, dense, {.devices = 1024}), 1.372, 0.001) << device;
  }
  for (const char* device : {"b200_sxm", "mi300x", "rtx_4090", "v100_sxm"}) {
    EXPECT_GT(high_on(device, dense, {.devices = 64}), 1.42) << device;
  }
  EXPECT_GT(high_on("h100_sxm", step_test::mixtral_like(), {.devices = 64}), 1.45);
  EXPECT_GT(high_on("h100_sxm", dense, {.adapters = true, .devices = 64}), 1.45);
  EXPECT_GT(high_on("h100_sxm", dense, {.devices = 64, .sequence_length = 65536}), 1.45);
  EXPECT_GT(high_on("h100_sxm", dense, {.devices = 16384}), high_on("h100_sxm", dense, {.devices = 8192}));
  const Device amd = stack_device("mi300x"), hopper = stack_device("h100_sxm");
  EXPECT_EQ(stack.beyond_runs(dense, {.device = &hopper}), std::vector<std::string>{"no measured run of assumed"});
  EXPECT_THAT(stack.beyond_runs(dense, {.device = &amd}).at(1), HasSubstr("no measured run on"));
}

TEST(TrainingStack, that_was_compared_with_steps_is_nowhere_less_sure_than_one_that_was_not) {
  const Model dense = step_test::llama_like(), experts = step_test::mixtral_like();
  for (const TrainingStack& stack : TrainingStackCatalogue(FORETOKEN_SOURCE_DIR "/data/training/stacks").all()) {
    if (!stack.runs.empty() || !stack.coverage) continue;
    TrainingStack compared_with_none = stack;
    compared_with_none.coverage.reset();
    for (const char* name : {"a100_sxm", "h200_sxm", "b200_sxm", "mi300x", "rtx_4090"}) {
      const Device device = stack_device(name);
      for (const int64_t devices : {1, 64, 16384}) {
        for (const int64_t length : {2048, 16384, 262144}) {
          for (const bool adapters : {false, true}) {
            const StackUse use{.device = &device, .adapters = adapters, .devices = devices, .sequence_length = length};
            for (const Model& model : {dense, experts}) {
              const RunInterval some = stack.interval_for(model, use),
                                none = compared_with_none.interval_for(model, use);
              EXPECT_GE(some.low, none.low) << stack.name << " " << name << " " << devices << " " << length;
              EXPECT_LE(some.high, none.high) << stack.name << " " << name << " " << devices << " " << length;
              EXPECT_FALSE(compared_with_none.beyond_runs(model, use).empty());
            }
          }
        }
      }
    }
  }
}

// The steps of data/measured_training ran on one H200, some with adapters.
TEST(TrainingStack, that_was_compared_with_steps_of_one_gpu_is_less_sure_of_others) {
  const Device h200 = stack_device("h200_sxm"), mi300x = stack_device("mi300x");
  for (const char* name : {"transformers", "transformers-compile", "torchtitan", "torchtitan-eager", "nanogpt"}) {
    const TrainingStack stack = training_test::shipped_stack(name);
    const auto high = [&](const StackUse& use) { return stack.interval_for(step_test::llama_like(), use).high; };
    EXPECT_EQ(high({.device = &h200}), stack.interval.high) << name;
    EXPECT_GT(high({.device = &mi300x}), stack.interval.high) << name;
    EXPECT_GT(high({.device = &h200, .devices = 64}), stack.interval.high) << name;
    const bool tuned = std::string_view(name).starts_with("transformers");
    EXPECT_EQ(high({.device = &h200, .adapters = true}) == stack.interval.high, tuned) << name;
  }
}

// Experts were measured on one GPU, where no token travels.
TEST(TrainingStack, that_saw_experts_on_one_gpu_is_less_sure_of_several) {
  const Device h200 = stack_device("h200_sxm");
  for (const char* name : {"transformers", "torchtitan", "torchtitan-eager"}) {
    const TrainingStack stack = training_test::shipped_stack(name);
    const auto high = [&](int64_t expert_ranks) {
      return stack.interval_for(step_test::mixtral_like(), {.device = &h200, .expert_ranks = expert_ranks}).high;
    };
    EXPECT_EQ(high(1), stack.interval.high) << name;
    EXPECT_GT(high(8), 1.08 * stack.interval.high) << name;
  }
}

TEST(TrainingStack, of_fsdp_shards_parameters_unless_it_is_told_otherwise) {
  for (const char* name : {"torchtitan", "torchtitan-eager", "pytorch-fsdp"}) {
    EXPECT_EQ(training_test::shipped_stack(name).usual_sharding, Sharding::parameters) << name;
  }
  for (const char* name : {"nanogpt", "llm.c", "deepspeed", "megatron-bridge-26.08"}) {
    EXPECT_EQ(training_test::shipped_stack(name).usual_sharding, Sharding::none) << name;
  }
}

TEST(TrainingStack, of_eager_software_names_the_kernels_that_it_runs) {
  const TrainingStack trainer = training_test::shipped_stack("transformers");
  ASSERT_TRUE(trainer.kernels && trainer.autocast_kernels);
  EXPECT_EQ(trainer.kernels->name, "hf-eager");
  EXPECT_EQ(training_test::shipped_stack("deepspeed").kernels->name, "hf-eager") << "as the stack that it extends";
  EXPECT_FALSE(training_test::shipped_stack("pytorch-fsdp").kernels);
  EXPECT_EQ(on_host(trainer, 2).host_factor, 2);
}

TEST(TrainingStack, with_unknown_kernels_is_refused) {
  const std::string text = R"({"format": 1, "name": "mine", "summary": "s", "source": "t", "kernels": "unheard-of"})";
  EXPECT_THROW(parse_training_stack(text, "mine.json"), InputError);
}

TEST(TrainingConstants, no_share_that_is_not_hidden_is_above_one) {
  for (const TrainingConstantFacts& facts : training_constant_facts()) {
    if (!facts.name.ends_with("_exposed")) continue;
    EXPECT_LE(facts.most, 1) << facts.name;
  }
}

TEST(TrainingStack, names_the_schedules_it_can_run) {
  const auto read = [](const std::string& list) {
    return parse_training_stack(
        R"({"format": 1, "name": "x", "summary": "s", "source": "t", "schedules": )" + list + "}", "x.json");
  };
  EXPECT_EQ(read(R"(["1f1b", "zb-v"])").schedules, (std::vector<std::string>{"1f1b", "zb-v"}));
  EXPECT_THROW(read(R"(["zb-w"])"), InputError);
  EXPECT_THROW(read("[]"), InputError);
}

TEST(TrainingStack, names_what_it_can_shard_and_recompute) {
  const TrainingStack usual = parse_training_stack(stack_text("plain"), "stack.json");
  EXPECT_EQ(usual.shardings, (std::vector{Sharding::none, Sharding::optimizer, Sharding::parameters}));
  EXPECT_TRUE(usual.takes_megatron_flags);
  const TrainingStack own = parse_training_stack(
      stack_text("own",
                 R"("shardings": ["gradients"], "recomputes": ["op"], "recomputes_some_layers": false,
        "takes_megatron_flags": false)"),
      "stack.json");
  EXPECT_EQ(own.shardings, std::vector{Sharding::gradients});
  EXPECT_EQ(own.recomputes, std::vector{Recompute::op});
  EXPECT_FALSE(own.recomputes_some_layers);
  EXPECT_FALSE(own.takes_megatron_flags);
  EXPECT_EQ(stack_problem(stack_text("x", R"("shardings": ["optimiser"])")).suggestion, "optimizer");
  EXPECT_THAT(stack_problem(stack_text("x", R"("recomputes": [])")).expected, HasSubstr("at least one"));
}

TEST(TrainingStack, torchtitan_shards_parameters_or_nothing) {
  const TrainingStackCatalogue shipped(FORETOKEN_SOURCE_DIR "/data/training/stacks");
  for (const char* name : {"torchtitan", "torchtitan-eager"}) {
    const TrainingStack stack = shipped.stack(name);
    EXPECT_EQ(stack.shardings, (std::vector{Sharding::none, Sharding::parameters})) << name;
    EXPECT_EQ(stack.recomputes, (std::vector{Recompute::none, Recompute::op, Recompute::full})) << name;
    EXPECT_FALSE(stack.takes_megatron_flags) << name;
  }
  for (const TrainingStack& stack : shipped.all()) {
    EXPECT_THAT(stack.shardings, testing::Contains(stack.usual_sharding)) << stack.name;
  }
}

}  // namespace foretoken::training_stack_test
