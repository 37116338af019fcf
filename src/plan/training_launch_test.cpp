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

// With the optimizer and the dispatcher that the file asks for, as `plan train` takes them where nobody names any.
TrainingQuestion as_planned(const char* launcher, TrainingQuestion question) {
  const TrainingLauncher& framework = *find_training_launcher(launcher);
  if (question.job.model.has_experts() && question.plan.dispatcher == TokenDispatcher::usual) {
    question.plan.dispatcher = framework.dispatcher;
  }
  const Sharding sharding = question.plan.sharding;
  const bool zero = sharding == Sharding::optimizer || sharding == Sharding::gradients;
  if (zero && framework.name == "axolotl") return question;  // DeepSpeed's is Adam in fp32
  const std::string_view usual = question.job.lora.rank > 0 ? framework.adapter_optimizer : framework.optimizer;
  if (question.formats.optimizer == OptimizerState{} && !usual.empty()) {
    question.formats.optimizer = optimizer_state_from_name(usual).value();
  }
  return question;
}

// What `train` makes of the file.
ImportedTraining read_back(const char* launcher, const TrainingQuestion& asked) {
  const TrainingLauncher* found = find_training_launcher(launcher);
  EXPECT_NE(found, nullptr) << launcher;
  const TrainingQuestion question = as_planned(launcher, asked);
  EXPECT_EQ(found->refusal(question), "") << launcher;
  ImportedTraining imported = parse_training_config(found->write(question), launcher);
  EXPECT_TRUE(imported.ignored.empty()) << launcher << ": " << imported.ignored.front().key;
  EXPECT_TRUE(imported.notes.empty()) << launcher << ": " << imported.notes.front();
  const SaidSettings& said = imported.said;
  EXPECT_EQ(optimizer_state_from_name(said.optimizer.value_or("adam")), question.formats.optimizer) << launcher;
  EXPECT_EQ(said.clips_gradients.value_or(true), question.job.clips_gradients) << launcher;
  EXPECT_EQ(said.gradient_bytes.value_or(question.formats.gradient_bytes), question.formats.gradient_bytes) << launcher;
  return imported;
}

void expect_same_adapters(const char* launcher, const TrainingQuestion& question, const SaidSettings& said) {
  const LoraAdapter& lora = question.job.lora;
  EXPECT_EQ(said.lora_rank.value_or(0), lora.rank) << launcher;
  if (lora.rank == 0) return;
  EXPECT_EQ(said.lora_on_attention, lora.on_attention) << launcher;
  EXPECT_EQ(said.lora_on_mlp, lora.on_mlp) << launcher;
  EXPECT_EQ(base_weight_bytes(said.base_weights.value_or("bf16")), question.formats.frozen_weight_bytes) << launcher;
}

void expect_same_offloads(const char* launcher, const TrainingFormats& formats, const SaidSettings& said) {
  const double share = said.optimizer_offload_fraction.value_or(1);
  EXPECT_EQ(said.offloads_optimizer.value_or(false) ? share : 0, formats.offloaded_optimizer) << launcher;
  EXPECT_EQ(said.offloads_parameters.value_or(false) ? 1 : 0, formats.offloaded_parameters) << launcher;
  EXPECT_EQ(said.offloads_activations.value_or(false) ? 1 : 0, formats.offloaded_activations) << launcher;
}

void expect_same_plan(const char* launcher, const TrainingQuestion& question) {
  const TrainingPlan plan = as_planned(launcher, question).plan;
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
  if (plan.parallel.context > 1) {
    EXPECT_EQ(read.context_exchange, plan.context_exchange) << launcher;
  }
  EXPECT_EQ(read.recompute_layers, plan.recompute_layers) << launcher;
  if (plan.recompute == Recompute::selective) {
    EXPECT_EQ(read.recompute_modules, plan.recompute_modules) << launcher;
  }
  if (std::string_view(launcher) != "deepspeed") {  // its file does not say what is recomputed
    EXPECT_EQ(read.recompute, plan.recompute) << launcher;
    EXPECT_EQ(imported.said.sequence_length, question.job.sequence_length) << launcher;
  }
  if (std::string_view(launcher) != "deepspeed") expect_same_adapters(launcher, question, imported.said);
  expect_same_offloads(launcher, question.formats, imported.said);
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
  question.plan.recompute = Recompute::op;
  expect_same_plan("torchtitan", question);
  question.plan.recompute = Recompute::full;
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

TEST(TrainingLaunch, files_of_megatron_say_what_is_hidden_and_how_gradients_are_summed) {
  TrainingQuestion question = launched();
  question.plan.parallel = {.tensor = 2, .data = 4, .sequence = true};
  question.plan.sharding = Sharding::optimizer;
  const auto flags_of = [&] { return find_training_launcher("megatron-lm")->write(question); };
  EXPECT_THAT(flags_of(), HasSubstr("--overlap-grad-reduce --overlap-param-gather --tp-comm-overlap"));
  const TrainingPlan read = plan_with({}, read_back("megatron-lm", question), question.plan.devices());
  EXPECT_EQ(read.overlaps.gradients, TrafficOverlap::published);
  EXPECT_EQ(read.overlaps.parameters, TrafficOverlap::published);
  EXPECT_EQ(read.overlaps.tensor, TrafficOverlap::published);
  question.plan.overlaps.tensor = question.plan.overlaps.gradients = TrafficOverlap::off;
  EXPECT_THAT(flags_of(), testing::Not(HasSubstr("overlap")));
  const auto bridge_of = [&](double bytes) {
    question.formats.gradient_bytes = bytes;
    return find_training_launcher("megatron-bridge")->write(question);
  };
  question.plan.overlaps = {};
  for (const double bytes : {2.0, 4.0}) {
    question.formats.gradient_bytes = bytes;
    for (const char* launcher : {"megatron-lm", "megatron-bridge"}) {
      EXPECT_EQ(read_back(launcher, question).said.gradient_bytes, bytes) << launcher;
    }
  }
  EXPECT_THAT(bridge_of(2), HasSubstr("grad_reduce_in_fp32: false"));
  EXPECT_THAT(bridge_of(4), HasSubstr("grad_reduce_in_fp32: true"));
}

// megatron/training/arguments.py asserts them.
TEST(TrainingLaunch, scripts_of_megatron_set_the_queues_that_their_ranks_need) {
  TrainingQuestion question = launched();
  const auto script = [&] { return find_training_launcher("megatron-lm")->write(question); };
  EXPECT_THAT(script(), HasSubstr("\nunset CUDA_DEVICE_MAX_CONNECTIONS\ntorchrun "));
  EXPECT_THAT(script(), HasSubstr(" --ckpt-format fsdp_dtensor --no-gradient-accumulation-fusion"));
  question.plan.sharding = Sharding::optimizer;
  EXPECT_THAT(script(), testing::Not(HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS")));
  for (const ParallelPlan& parallel :
       {ParallelPlan{.tensor = 2, .data = 16, .sequence = true}, ParallelPlan{.data = 16, .context = 2}}) {
    question.plan.parallel = parallel;
    EXPECT_THAT(script(), HasSubstr("\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\ntorchrun "));
    expect_same_plan("megatron-lm", question);
  }
}

TEST(TrainingLaunch, context_ranks_exchange_as_they_were_priced) {
  TrainingQuestion question = launched();
  question.plan.parallel = {.data = 8, .context = 4};
  for (const ContextExchange exchange : {ContextExchange::ring, ContextExchange::all_gather}) {
    question.plan.context_exchange = exchange;
    for (const char* launcher : {"megatron-lm", "megatron-bridge", "torchtitan", "torchtune"}) {
      expect_same_plan(launcher, question);
    }
  }
  question.plan.context_exchange = ContextExchange::all_to_all;
  for (const char* launcher : {"megatron-lm", "megatron-bridge"}) expect_same_plan(launcher, question);
  for (const char* launcher : {"torchtitan", "torchtune"}) {
    EXPECT_THAT(find_training_launcher(launcher)->refusal(question), HasSubstr("no all-to-all over heads")) << launcher;
  }
}

TEST(TrainingLaunch, torchtitan_runs_replicas_that_share_nothing_with_data_ranks_alone) {
  const auto refusal = [](Sharding sharding, const ParallelPlan& parallel) {
    TrainingQuestion question = launched();
    question.plan.sharding = sharding;
    question.plan.parallel = parallel;
    return find_training_launcher("torchtitan")->refusal(question);
  };
  EXPECT_EQ(refusal(Sharding::none, {.data = 32}), "");
  EXPECT_EQ(refusal(Sharding::parameters, {.tensor = 4, .data = 8}), "");
  EXPECT_THAT(refusal(Sharding::none, {.tensor = 4, .data = 8}), HasSubstr("only with FSDP"));
  EXPECT_THAT(refusal(Sharding::none, {.data = 8, .context = 4}), HasSubstr("only with FSDP"));
  EXPECT_THAT(refusal(Sharding::parameters, {.tensor = 8}), HasSubstr("only with FSDP")) << "nothing to shard";
}

TEST(TrainingLaunch, pipelines_and_number_formats) {
  TrainingQuestion question = launched();
  TrainingPlan& plan = question.plan;
  plan.parallel = {.tensor = 4, .pipeline = 4, .data = 2, .sequence = true};
  plan.sharding = Sharding::parameters;
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
  EXPECT_THAT(find_training_launcher("megatron-bridge")->write(question), testing::Not(HasSubstr("dispatcher")))
      << "the recipe has its own";
  plan.dispatcher = TokenDispatcher::hybridep;
  for (const char* launcher : {"megatron-lm", "megatron-bridge"}) expect_same_plan(launcher, question);
  plan.parallel = {.tensor = 2, .data = 16, .expert = 8, .sequence = true};
  for (const char* launcher : {"megatron-lm", "megatron-bridge"}) expect_same_plan(launcher, question);
  EXPECT_THAT(find_training_launcher("megatron-bridge")->write(question),
              HasSubstr("\n  expert_tensor_parallel_size: 1\n"));
  const ImportedTraining script = read_back("megatron-lm", question);
  ASSERT_TRUE(script.model.has_value());
  EXPECT_EQ(script.model->layers.size(), question.job.model.layers.size());
}

std::string refusal(const char* launcher, const TrainingQuestion& question) {
  return find_training_launcher(launcher)->refusal(question);
}

TEST(TrainingLaunch, a_script_of_megatron_names_a_dispatcher_that_was_priced) {
  TrainingQuestion question = launched("Qwen/Qwen3-30B-A3B");
  question.plan.parallel = {.data = 32, .expert = 8};
  question.plan.sharding = Sharding::optimizer;
  EXPECT_THAT(refusal("megatron-lm", question), HasSubstr("{moe_token_dispatcher} to alltoall"));
  question = as_planned("megatron-lm", question);
  EXPECT_EQ(question.plan.dispatcher, TokenDispatcher::all_to_all);
  EXPECT_EQ(refusal("megatron-lm", question), "");
  EXPECT_EQ(as_planned("megatron-lm", launched()).plan.dispatcher, TokenDispatcher::usual) << "no experts";
}

// megatron/core/transformer/transformer_config.py asserts it.
TEST(TrainingLaunch, megatron_hides_traffic_of_experts_where_it_can_run_it) {
  TrainingQuestion question = as_planned("megatron-lm", launched("Qwen/Qwen3-30B-A3B"));
  TrainingPlan& plan = question.plan;
  plan.parallel = {.data = 32, .expert = 8};
  plan.sharding = Sharding::optimizer;
  plan.overlaps.experts = TrafficOverlap::on;
  EXPECT_THAT(find_training_launcher("megatron-lm")->write(question), HasSubstr("--overlap-moe-expert-parallel-comm"));
  EXPECT_THAT(find_training_launcher("megatron-lm")->write(question),
              HasSubstr("\nexport CUDA_DEVICE_MAX_CONNECTIONS=32\ntorchrun "));
  EXPECT_EQ(refusal("megatron-lm", question), "");
  plan.recompute = Recompute::full;
  EXPECT_THAT(refusal("megatron-lm", question), HasSubstr("experts that it recomputes"));
  plan.recompute = Recompute::selective;
  plan.recompute_modules = {LayerModule::moe};
  EXPECT_THAT(refusal("megatron-lm", question), HasSubstr("experts that it recomputes"));
  plan.recompute = Recompute::none;
  plan.parallel = {.pipeline = 2, .data = 16, .expert = 8};
  EXPECT_THAT(refusal("megatron-lm", question), HasSubstr("virtual stages"));
  plan.schedule = "interleaved";
  plan.virtual_stages = 2;
  EXPECT_EQ(refusal("megatron-lm", question), "");
  plan.virtual_stages = 1;
  plan.schedule = "1f1b";
  plan.overlaps.experts = TrafficOverlap::off;
  EXPECT_EQ(refusal("megatron-lm", question), "");
}

TEST(TrainingLaunch, adapters_are_in_the_file_or_it_is_refused) {
  TrainingQuestion question = launched();
  for (const bool on_mlp : {false, true}) {
    question.job.lora = {.rank = 16, .on_attention = true, .on_mlp = on_mlp};
    question.formats.frozen_weight_bytes = 2;
    for (const char* launcher : {"megatron-bridge", "axolotl", "torchtune"}) expect_same_plan(launcher, question);
    question.formats.frozen_weight_bytes = base_weight_bytes("nf4").value();
    for (const char* launcher : {"axolotl", "torchtune"}) {
      expect_same_plan(launcher, question);
      EXPECT_EQ(read_back(launcher, question).said.model_name, "meta-llama/Llama-3.1-8B") << launcher;
    }
    EXPECT_THAT(refusal("megatron-bridge", question), HasSubstr("frozen weights under adapters in 4 bits"));
    EXPECT_THAT(refusal("megatron-lm", question), HasSubstr("no adapters"));
    EXPECT_THAT(refusal("torchtitan", question), HasSubstr("no adapters"));
  }
  question.formats.frozen_weight_bytes = 1;
  expect_same_plan("axolotl", question);
  EXPECT_THAT(refusal("torchtune", question), HasSubstr("in 8 bits"));
  question.job.lora = {.rank = 16, .on_attention = false, .on_mlp = true};
  question.formats.frozen_weight_bytes = 2;
  for (const char* launcher : {"megatron-bridge", "axolotl"}) expect_same_plan(launcher, question);
  EXPECT_THAT(refusal("torchtune", question), HasSubstr("on attention"));
}

TEST(TrainingLaunch, what_is_in_host_memory_is_in_the_file_or_it_is_refused) {
  TrainingQuestion question = launched();
  question.formats.offloaded_optimizer = 1;
  for (const char* launcher : {"megatron-lm", "megatron-bridge", "deepspeed"}) {
    EXPECT_TRUE(find_training_launcher(launcher)->host_memory.optimizer) << launcher;
    expect_same_plan(launcher, question);
  }
  for (const char* launcher : {"torchtitan", "axolotl", "torchtune"}) {
    EXPECT_FALSE(find_training_launcher(launcher)->host_memory.optimizer) << launcher;
    EXPECT_THAT(refusal(launcher, question), HasSubstr("together or not at all")) << launcher;
  }
  question.formats.offloaded_parameters = 1;
  for (const char* launcher : {"torchtitan", "axolotl", "torchtune", "deepspeed"}) expect_same_plan(launcher, question);
  for (const char* launcher : {"megatron-lm", "megatron-bridge"}) {
    EXPECT_THAT(refusal(launcher, question), HasSubstr("does not keep the weights in host memory")) << launcher;
  }
  question.formats.offloaded_optimizer = 0.5;
  question.formats.offloaded_parameters = 0;
  for (const char* launcher : {"megatron-lm", "megatron-bridge"}) expect_same_plan(launcher, question);
  EXPECT_THAT(refusal("deepspeed", question), HasSubstr("a part in host memory"));
  question.plan.sharding = Sharding::none;
  for (const char* launcher : {"megatron-lm", "megatron-bridge"}) {
    EXPECT_THAT(refusal(launcher, question), HasSubstr("only where it is sharded")) << launcher;
  }
  question.plan.sharding = Sharding::parameters;
  question.plan.recompute = Recompute::full;
  question.formats = {.offloaded_activations = 1};
  for (const char* launcher : {"axolotl", "torchtune"}) expect_same_plan(launcher, question);
  for (const char* launcher : {"megatron-lm", "megatron-bridge", "torchtitan", "deepspeed"}) {
    EXPECT_THAT(refusal(launcher, question), HasSubstr("activations in host memory")) << launcher;
  }
}

TEST(TrainingLaunch, files_say_whether_gradients_are_clipped_or_it_is_refused) {
  TrainingQuestion question = launched();
  question.job.clips_gradients = false;
  for (const char* launcher : {"megatron-lm", "megatron-bridge", "axolotl", "torchtune", "deepspeed"}) {
    EXPECT_EQ(read_back(launcher, question).said.clips_gradients, false) << launcher;
  }
  question.formats.offloaded_optimizer = 1;
  EXPECT_EQ(read_back("megatron-bridge", question).said.clips_gradients, false);
  EXPECT_THAT(refusal("torchtitan", launched()), testing::Not(HasSubstr("clips")));
  question.formats.offloaded_optimizer = 0;
  EXPECT_THAT(refusal("torchtitan", question), HasSubstr("always clips"));
}

// Their files load the weights in bf16 and train those: nothing in them asks for a copy in fp32.
TEST(TrainingLaunch, adam_in_fp32_is_refused_where_the_file_trains_weights_in_16_bits) {
  TrainingQuestion question = launched();
  EXPECT_EQ(question.formats.optimizer, optimizer_state_from_name("adam"));
  for (const char* launcher : {"axolotl", "torchtune"}) {
    EXPECT_THAT(refusal(launcher, question), HasSubstr("adam-bf16-weights")) << launcher;
    EXPECT_EQ(read_back(launcher, question).said.optimizer, "adam-bf16-weights") << launcher;
  }
  // PEFT keeps adapters in fp32, torchtune does not.
  question.job.lora = {.rank = 16};
  EXPECT_EQ(refusal("axolotl", question), "");
  EXPECT_EQ(read_back("axolotl", question).said.optimizer.value_or("adam"), "adam");
  EXPECT_THAT(refusal("torchtune", question), HasSubstr("adam-bf16-weights"));
  question.formats.optimizer = optimizer_state_from_name("adam-bf16-weights").value();
  EXPECT_EQ(refusal("torchtune", question), "");
  EXPECT_THAT(refusal("axolotl", question), HasSubstr("fp32 moments"));
}

// ZeRO keeps a copy of the weights in fp32, whatever the model was loaded in.
TEST(TrainingLaunch, axolotl_under_deepspeed_trains_weights_in_fp32) {
  TrainingQuestion question = launched();
  for (const Sharding zero : {Sharding::optimizer, Sharding::gradients}) {
    question.plan.sharding = zero;
    const ImportedTraining imported = read_back("axolotl", question);
    EXPECT_EQ(imported.said.stack, "deepspeed");
    EXPECT_EQ(imported.said.optimizer.value_or("adam"), "adam");
  }
  question.formats.optimizer = optimizer_state_from_name("adam-bf16-weights").value();
  EXPECT_THAT(refusal("axolotl", question), HasSubstr("under DeepSpeed can only ask for Adam with fp32"));
  EXPECT_EQ(choices_of(*find_training_launcher("axolotl"), {}, question).shardings,
            (std::vector{Sharding::none, Sharding::parameters}));
}

TEST(TrainingLaunch, optimizers_are_in_the_file_or_it_is_refused) {
  TrainingQuestion question = launched();
  question.formats.optimizer = optimizer_state_from_name("adam-8bit").value();
  TrainingQuestion small = question;
  small.formats.optimizer = optimizer_state_from_name("adam-8bit-bf16-weights").value();
  for (const char* launcher : {"axolotl", "torchtune"}) {
    EXPECT_THAT(refusal(launcher, question), HasSubstr("adam-8bit-bf16-weights")) << launcher;
    EXPECT_EQ(read_back(launcher, small).said.optimizer, "adam-8bit-bf16-weights") << launcher;
  }
  // Adapters of PEFT are in fp32.
  TrainingQuestion adapters = question;
  adapters.job.lora = small.job.lora = {.rank = 16};
  EXPECT_EQ(read_back("axolotl", adapters).said.optimizer, "adam-8bit");
  EXPECT_NE(refusal("axolotl", small), "");
  TrainingQuestion halved = launched();
  halved.formats.optimizer = optimizer_state_from_name("adam-bf16-weights").value();
  for (const char* launcher : {"axolotl", "torchtune"}) {
    EXPECT_EQ(read_back(launcher, halved).said.optimizer, "adam-bf16-weights") << launcher;
  }
  EXPECT_THAT(refusal("deepspeed", halved), HasSubstr("fp32 moments"));
  for (const char* launcher : {"megatron-lm", "megatron-bridge", "torchtitan", "deepspeed"}) {
    EXPECT_THAT(refusal(launcher, question), HasSubstr("fp32 moments")) << launcher;
  }
}

TEST(TrainingLaunch, torchtune_starts_a_recipe_that_can_run_the_plan) {
  TrainingQuestion question = launched();
  question.plan.parallel = {.tensor = 4, .data = 8, .sequence = true};
  expect_same_plan("torchtune", question);
  const TrainingLauncher& torchtune = *find_training_launcher("torchtune");
  EXPECT_THAT(torchtune.write(question), HasSubstr("tensor_parallel_plan:\n  _component_: torchtune.models.llama3."));
  EXPECT_FALSE(choices_of(torchtune, {}, question).tensor);
  question.job.lora = {.rank = 16};
  EXPECT_THAT(refusal("torchtune", question), HasSubstr("LoRA recipe has no tensor parallelism"));
  EXPECT_EQ(choices_of(torchtune, {}, question).tensor, 1);
  question.plan.parallel = {.data = 32};
  const std::string file = torchtune.write(question);
  for (const char* key :
       {"\noutput_dir: ", "\ncheckpointer:\n", "\nseed: ", "\noptimizer:\n", "\nloss:\n", "\n  lora_alpha: 32 ",
        "\nlr_scheduler:\n", "\nmetric_logger:\n", "\nepochs: ", "\nshuffle: ", "\ndevice: cuda\n", "\nlog_level: "}) {
    EXPECT_THAT(file, HasSubstr(key));
  }
  EXPECT_THAT(file, HasSubstr("\n  output_dir: ${output_dir}\n"));
  EXPECT_FALSE(read_back("torchtune", question).said.logit_bytes);  // compiled: as the stack has it
  question.stack.name = torchtune.stack;
  EXPECT_EQ(read_back("torchtune", question).said.logit_bytes, torchtune.logit_bytes);
  question = launched("Qwen/Qwen3-8B");
  question.plan.parallel = {.tensor = 4, .data = 8, .sequence = true};
  EXPECT_THAT(refusal("torchtune", question), HasSubstr("no plan for tensor parallelism of this model"));
}

TEST(TrainingLaunch, deepspeed_leaves_to_the_script_what_its_file_cannot_say) {
  TrainingQuestion question = launched();
  question.job.lora = {.rank = 16, .on_attention = true, .on_mlp = false};
  question.formats.frozen_weight_bytes = base_weight_bytes("nf4").value();
  question.plan.recompute = Recompute::full;
  expect_same_plan("deepspeed", question);
  const auto left = find_training_launcher("deepspeed")->left_to_script(question);
  EXPECT_THAT(left, testing::ElementsAre(HasSubstr("Llama-3.1-8B, with sequences of 8192"),
                                         HasSubstr("rank 16 on the linear layers of attention"), HasSubstr("NF4"),
                                         HasSubstr("recomputation of all layers")));
}

TEST(TrainingLaunch, axolotl_combines_tensor_and_context_ranks_as_its_support_matrix_says) {
  const TrainingLauncher& axolotl = *find_training_launcher("axolotl");
  const auto refusal = [&](Sharding sharding, const ParallelPlan& parallel) {
    TrainingQuestion question = launched();
    question.plan.sharding = sharding;
    question.plan.parallel = parallel;
    return axolotl.refusal(as_planned("axolotl", question));
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

TEST(TrainingLaunch, axolotl_gets_the_settings_of_fsdp_that_it_reads) {
  TrainingQuestion question = launched();
  const auto file = [&] { return find_training_launcher("axolotl")->write(question); };
  const std::string settings =
      "\nfsdp_config:\n  reshard_after_forward: true\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
  EXPECT_THAT(file(), HasSubstr(settings));
  question.formats.offloaded_optimizer = question.formats.offloaded_parameters = 1;
  EXPECT_THAT(file(), HasSubstr(settings + "  offload_params: true\n"));
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
  question.formats.frozen_weight_bytes = base_weight_bytes("nf4").value();
  EXPECT_THAT(refusal("axolotl", question), HasSubstr("4-bit weights"));
  EXPECT_EQ(choices_of(*find_training_launcher("axolotl"), {}, question).tensor, 1);
  EXPECT_EQ(choices_of(*find_training_launcher("axolotl"), {.tensor = 2}, question).tensor, 2);
}

TEST(TrainingLaunch, a_search_for_a_framework_tries_what_it_can_run) {
  const TrainingQuestion question = launched();
  const PlanChoices titan = choices_of(*find_training_launcher("torchtitan"), {}, question);
  EXPECT_EQ(titan.shardings, (std::vector{Sharding::none, Sharding::parameters}));
  EXPECT_EQ(titan.parts_of_layers, 1);
  EXPECT_FALSE(titan.pipeline);
  EXPECT_EQ(choices_of(*find_training_launcher("axolotl"), {}, question).pipeline, 1);
  EXPECT_EQ(choices_of(*find_training_launcher("axolotl"), {}, question).expert, 1);
  EXPECT_FALSE(choices_of(*find_training_launcher("axolotl"), {}, question).tensor);
  EXPECT_EQ(choices_of(*find_training_launcher("deepspeed"), {}, question).tensor, 1);
  EXPECT_EQ(find_training_launcher("axolotl")->stack, "transformers");
  EXPECT_EQ(find_training_launcher("megatron-lm")->stack, "");
  const PlanChoices fixed = choices_of(*find_training_launcher("torchtune"), {.shardings = {Sharding::none}}, question);
  EXPECT_EQ(fixed.shardings, std::vector{Sharding::none});
}

}  // namespace foretoken::training_launch_test
