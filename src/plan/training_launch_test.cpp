#include "plan/training_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "training/import/import_config.h"

namespace foretoken::training_launch_test {

using testing::HasSubstr;

TrainingQuestion launched(const std::string& model = "meta-llama/Llama-3.1-8B") {
  TrainingQuestion question{
      .job = {.model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model(model), .sequence_length = 8192}};
  question.cluster = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").cluster("h100_ib_rail");
  question.stack.name = "torchtitan";
  question.plan = {.parallel = {.data = 32}, .micro_batch = 2, .global_batch = 256, .sharding = Sharding::parameters};
  question.devices = question.plan.devices();
  return question;
}

// What `train` makes of the file.
ImportedTraining read_back(const char* launcher, const TrainingQuestion& question) {
  const TrainingLauncher* found = find_training_launcher(launcher);
  EXPECT_NE(found, nullptr) << launcher;
  EXPECT_EQ(found->refusal(question), "") << launcher;
  const ImportedTraining imported = parse_training_config(found->write(question), launcher);
  EXPECT_TRUE(imported.ignored.empty()) << launcher << ": " << imported.ignored.front().key;
  EXPECT_TRUE(imported.notes.empty()) << launcher << ": " << imported.notes.front();
  return imported;
}

void expect_same_plan(const char* launcher, const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const ImportedTraining imported = read_back(launcher, question);
  const TrainingPlan read = plan_with({}, imported, plan.devices());
  EXPECT_EQ(read.parallel.tensor, plan.parallel.tensor) << launcher;
  EXPECT_EQ(read.parallel.pipeline, plan.parallel.pipeline) << launcher;
  EXPECT_EQ(read.parallel.context, plan.parallel.context) << launcher;
  EXPECT_EQ(read.parallel.expert, plan.parallel.expert) << launcher;
  EXPECT_EQ(read.parallel.data, plan.parallel.data) << launcher;
  EXPECT_EQ(read.parallel.sequence, plan.parallel.sequence) << launcher;
  EXPECT_EQ(read.micro_batch, plan.micro_batch) << launcher;
  EXPECT_EQ(read.global_batch, plan.global_batch) << launcher;
  EXPECT_EQ(read.virtual_stages, plan.virtual_stages) << launcher;
  EXPECT_EQ(read.sharding, plan.sharding) << launcher;
  EXPECT_EQ(read.shard_ranks, plan.shard_ranks) << launcher;
  EXPECT_EQ(read.dispatcher, plan.dispatcher) << launcher;
  EXPECT_EQ(read.recompute_layers, plan.recompute_layers) << launcher;
  if (plan.recompute == Recompute::selective) {
    EXPECT_EQ(read.recompute_modules, plan.recompute_modules) << launcher;
  }
  if (std::string_view(launcher) != "deepspeed") {  // its file does not say what is recomputed
    EXPECT_EQ(read.recompute, plan.recompute) << launcher;
    EXPECT_EQ(imported.said.sequence_length, question.job.sequence_length) << launcher;
  }
  EXPECT_EQ(imported.said.lora_rank.value_or(0), question.job.lora.rank) << launcher;
  EXPECT_EQ(imported.said.precision.value_or("bf16"), question.job.recipe.name) << launcher;
}

TEST(TrainingLaunch, every_file_says_the_plan_it_was_written_for) {
  TrainingQuestion question = launched();
  for (const char* launcher : {"megatron-lm", "megatron-bridge", "torchtitan", "axolotl", "torchtune", "deepspeed"}) {
    expect_same_plan(launcher, question);
  }
  question.plan.recompute = Recompute::full;
  for (const char* launcher : {"megatron-lm", "megatron-bridge", "torchtitan", "axolotl", "torchtune"}) {
    expect_same_plan(launcher, question);
  }
  question.plan.shard_ranks = 8;  // a copy on each node
  for (const char* launcher : {"megatron-lm", "megatron-bridge", "torchtitan", "axolotl", "torchtune"}) {
    expect_same_plan(launcher, question);
  }
}

TEST(TrainingLaunch, files_of_megatron_say_the_dropout_of_the_job) {
  TrainingQuestion question = launched();
  for (const bool drops : {false, true}) {
    question.job.dropout = {.hidden = drops, .attention = drops};
    for (const char* launcher : {"megatron-lm", "megatron-bridge"}) {
      const SaidSettings said = read_back(launcher, question).said;
      EXPECT_EQ(said.hidden_dropout, drops) << launcher;
      EXPECT_EQ(said.attention_dropout, drops) << launcher;
    }
  }
}

TEST(TrainingLaunch, pipelines_and_number_formats) {
  TrainingQuestion question = launched();
  TrainingPlan& plan = question.plan;
  plan.parallel = {.tensor = 4, .pipeline = 4, .data = 2, .sequence = true};
  plan.sharding = Sharding::none;
  plan.schedule = "interleaved";
  plan.virtual_stages = 2;
  question.job.recipe = training_recipe("fp8-current");
  for (const char* launcher : {"megatron-lm", "megatron-bridge", "torchtitan"}) expect_same_plan(launcher, question);
  plan.recompute = Recompute::full;
  plan.recompute_layers = 3;
  for (const char* launcher : {"megatron-lm", "megatron-bridge"}) expect_same_plan(launcher, question);
  EXPECT_THAT(find_training_launcher("torchtitan")->refusal(question), HasSubstr("recomputes all layers"));
  EXPECT_THAT(find_training_launcher("axolotl")->refusal(question), HasSubstr("no pipeline parallelism"));
}

TEST(TrainingLaunch, experts_and_recomputed_modules) {
  TrainingQuestion question = launched("Qwen/Qwen3-30B-A3B");
  TrainingPlan& plan = question.plan;
  plan.parallel.expert = 8;
  plan.sharding = Sharding::optimizer;
  plan.recompute = Recompute::selective;
  plan.recompute_modules = {LayerModule::layernorm, LayerModule::moe_act};
  for (const char* launcher : {"megatron-lm", "megatron-bridge"}) expect_same_plan(launcher, question);
  plan.dispatcher = TokenDispatcher::hybridep;
  expect_same_plan("megatron-lm", question);
  const ImportedTraining script = read_back("megatron-lm", question);
  ASSERT_TRUE(script.model.has_value());
  EXPECT_EQ(script.model->layers.size(), question.job.model.layers.size());
}

TEST(TrainingLaunch, adapters_are_in_the_file_or_it_is_refused) {
  TrainingQuestion question = launched();
  question.job.lora = {.rank = 16, .on_attention = true, .on_mlp = false};
  question.formats.frozen_weight_bytes = 0.516;
  for (const char* launcher : {"axolotl", "torchtune"}) {
    expect_same_plan(launcher, question);
    const ImportedTraining imported = read_back(launcher, question);
    EXPECT_EQ(imported.said.base_weights, "nf4") << launcher;
    EXPECT_EQ(imported.said.lora_on_attention, true) << launcher;
    EXPECT_EQ(imported.said.lora_on_mlp, false) << launcher;
    EXPECT_EQ(imported.said.model_name, "meta-llama/Llama-3.1-8B") << launcher;
  }
  expect_same_plan("megatron-bridge", question);
  EXPECT_THAT(find_training_launcher("megatron-lm")->refusal(question), HasSubstr("no adapters"));
  EXPECT_THAT(find_training_launcher("torchtitan")->refusal(question), HasSubstr("no adapters"));
}

TEST(TrainingLaunch, axolotl_combines_tensor_and_context_ranks_as_its_support_matrix_says) {
  const TrainingLauncher& axolotl = *find_training_launcher("axolotl");
  const auto refusal = [&](Sharding sharding, const ParallelPlan& parallel) {
    TrainingQuestion question = launched();
    question.plan.sharding = sharding;
    question.plan.parallel = parallel;
    return axolotl.refusal(question);
  };
  const ParallelPlan tensor{.tensor = 4, .data = 8}, context{.data = 8, .context = 4};
  EXPECT_THAT(refusal(Sharding::none, tensor), HasSubstr("not with unsharded replicas"));
  EXPECT_THAT(refusal(Sharding::none, context), HasSubstr("not with unsharded replicas"));
  EXPECT_EQ(refusal(Sharding::none, {.tensor = 8}), "");
  EXPECT_EQ(refusal(Sharding::none, {.data = 8}), "");
  for (const Sharding zero : {Sharding::optimizer, Sharding::gradients}) {
    EXPECT_EQ(refusal(zero, tensor), "");
    EXPECT_THAT(refusal(zero, context), HasSubstr("under DeepSpeed's ZeRO"));
  }
  EXPECT_EQ(refusal(Sharding::parameters, tensor), "");
  EXPECT_EQ(refusal(Sharding::parameters, context), "");
}

TEST(TrainingLaunch, a_file_of_axolotl_fills_its_sequences_and_scales_its_adapters) {
  TrainingQuestion question = launched();
  question.job.lora = {.rank = 16};
  question.plan.parallel = {.tensor = 2, .data = 16};
  expect_same_plan("axolotl", question);
  const std::string file = find_training_launcher("axolotl")->write(question);
  for (const char* line : {"\nsample_packing: true\n", "\npad_to_sequence_len: true\n", "\nlora_alpha: 32 ",
                           "\nlora_target_linear: true\n", "\ntensor_parallel_size: 2\n"}) {
    EXPECT_THAT(file, HasSubstr(line));
  }
  EXPECT_EQ(read_back("axolotl", question).said.packed, true);
  question.formats.frozen_weight_bytes = 0.516;
  EXPECT_THAT(find_training_launcher("axolotl")->refusal(question), HasSubstr("4-bit weights"));
  EXPECT_EQ(choices_of(*find_training_launcher("axolotl"), {}, true).tensor, 1);
  EXPECT_EQ(choices_of(*find_training_launcher("axolotl"), {.tensor = 2}, true).tensor, 2);
  EXPECT_FALSE(choices_of(*find_training_launcher("torchtune"), {}, true).tensor);
}

TEST(TrainingLaunch, a_search_for_a_framework_tries_what_it_can_run) {
  const PlanChoices titan = choices_of(*find_training_launcher("torchtitan"), {});
  EXPECT_EQ(titan.shardings, (std::vector{Sharding::none, Sharding::parameters}));
  EXPECT_EQ(titan.parts_of_layers, 1);
  EXPECT_FALSE(titan.pipeline);
  EXPECT_EQ(choices_of(*find_training_launcher("axolotl"), {}).pipeline, 1);
  EXPECT_EQ(choices_of(*find_training_launcher("axolotl"), {}).expert, 1);
  EXPECT_FALSE(choices_of(*find_training_launcher("axolotl"), {}).tensor);
  EXPECT_EQ(choices_of(*find_training_launcher("deepspeed"), {}).tensor, 1);
  EXPECT_EQ(find_training_launcher("axolotl")->stack, "pytorch-fsdp");
  EXPECT_EQ(find_training_launcher("megatron-lm")->stack, "");
  const PlanChoices fixed = choices_of(*find_training_launcher("torchtune"), {.shardings = {Sharding::none}});
  EXPECT_EQ(fixed.shardings, std::vector{Sharding::none});
}

}  // namespace foretoken::training_launch_test
