#include "training/import/import_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/weights.h"
#include "training/import/config_format.h"
#include "training/training_recipe.h"

namespace foretoken::import_config_test {

constexpr const char* megatron_script = R"(#!/bin/bash
GPUS_PER_NODE=8
DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes 16)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto
)
TRAINING_ARGS=(
    --tokenizer-type GPT2BPETokenizer
    --micro-batch-size 1
    --global-batch-size 1536
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 16
    --num-layers-per-virtual-pipeline-stage 3
    --sequence-parallel
    --use-distributed-optimizer
    --recompute-granularity full
    --recompute-method uniform
    --recompute-num-layers 1
    --bf16
)
)";

constexpr const char* nemo_recipe = R"(trainer:
  num_nodes: 2
  devices: 8
  precision: bf16-mixed
model:
  micro_batch_size: 1
  global_batch_size: 128
  encoder_seq_length: 4096
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 11008
  num_attention_heads: 32
  num_query_groups: null
  activation: fast-swiglu
  normalization: rmsnorm
  position_embedding_type: rope
  share_embeddings_and_output_weights: false
  bias: false
  override_vocab_size: 32000
  tensor_model_parallel_size: 2
  sequence_paralel: true
  virtual_pipeline_model_parallel_size: null
  activations_checkpoint_granularity: selective
  fp8: true
  fp8_hybrid: true
  optim:
    name: distributed_fused_adam
)";

constexpr const char* bridge_dump = R"(model:
  num_layers: 61
  hidden_size: 7168
  num_attention_heads: 128
  tensor_model_parallel_size: 1
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: 4
  expert_model_parallel_size: 64
  seq_length: 4096
train:
  micro_batch_size: 1
  global_batch_size: 2048
ddp:
  use_distributed_optimizer: true
mixed_precision: bf16_with_mxfp8_mixed
)";

constexpr const char* foundry_yaml = R"(variables:
  max_seq_len: 2048
max_seq_len: ${variables.max_seq_len}
model:
  name: mpt_causal_lm
  d_model: 4096
  n_heads: 32
  n_layers: 32
  expansion_ratio: 4
  max_seq_len: ${max_seq_len}
  vocab_size: 50368
  attn_config:
    attn_impl: flash
global_train_batch_size: 1024
device_train_microbatch_size: auto
precision: amp_bf16
fsdp_config:
  sharding_strategy: FULL_SHARD
  activation_checkpointing: true
  activation_cpu_offload: false
)";

constexpr const char* deepspeed_json = R"({
  "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8,
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "overlap_comm": true
  },
  "bf16": {"enabled": true},
  "fp16": {"enabled": false},
  "activation_checkpointing": {"partition_activations": true}
})";

ImportedTraining import(std::string_view text) {
  return parse_training_config(text, "config");
}

InputProblem complaint(std::string_view text) {
  try {
    import(text);
    return {};
  } catch (const InputError& error) {
    return error.problem();
  }
}

bool ignores(const ImportedTraining& imported, std::string_view key) {
  return std::ranges::any_of(imported.ignored, [&](const IgnoredKey& one) { return one.key == key; });
}

TEST(ImportConfig, arguments_of_megatron_lm) {
  const ImportedTraining imported = import(megatron_script);
  EXPECT_EQ(imported.format, "megatron-lm");
  EXPECT_EQ(imported.devices(), 128);
  EXPECT_EQ(imported.said.precision, "bf16");
  EXPECT_TRUE(ignores(imported, "attention-backend"));
  ASSERT_TRUE(imported.model);
  EXPECT_EQ(imported.model->vocabulary, 51200);  // GPT-2's 50257, padded to a multiple of 128 x 8
  EXPECT_NEAR(count_parameters(*imported.model).total / 174.6e9, 1, 0.001);

  const TrainingPlan plan = plan_with({}, imported, 0);
  EXPECT_EQ(plan.parallel.tensor, 8);
  EXPECT_EQ(plan.parallel.pipeline, 16);
  EXPECT_EQ(plan.parallel.data, 1);
  EXPECT_EQ(plan.virtual_stages, 2);
  EXPECT_EQ(plan.schedule, "interleaved");
  EXPECT_EQ(plan.global_batch, 1536);
  EXPECT_TRUE(plan.parallel.sequence);
  EXPECT_EQ(plan.sharding, Sharding::optimizer);
  EXPECT_EQ(plan.recompute, Recompute::full);
  EXPECT_EQ(plan.recompute_layers, 0);  // uniform: all of them
}

TEST(ImportConfig, a_recipe_of_nemo) {
  const ImportedTraining imported = import(nemo_recipe);
  EXPECT_EQ(imported.format, "nemo");
  EXPECT_EQ(imported.said.precision, "fp8-delayed");
  ASSERT_TRUE(imported.model);
  EXPECT_EQ(count_parameters(*imported.model).total, 6'738'415'616);  // Llama 2 7B
  const TrainingPlan plan = plan_with({}, imported, 0);
  EXPECT_EQ(plan.parallel.data, 8);
  EXPECT_EQ(plan.recompute, Recompute::selective);
  EXPECT_EQ(plan.sharding, Sharding::optimizer);
  EXPECT_EQ(plan.virtual_stages, 1);  // null says nothing
}

TEST(ImportConfig, a_misspelt_key_is_listed_with_the_one_it_resembles) {
  const ImportedTraining imported = import(nemo_recipe);
  EXPECT_FALSE(imported.said.sequence_parallel);
  for (const IgnoredKey& key : imported.ignored) {
    if (key.key != "model.sequence_paralel") continue;
    EXPECT_EQ(key.nearest, "model.sequence_parallel");
    EXPECT_EQ(key.line, 21);
    return;
  }
  FAIL() << "the key was lost";
}

TEST(ImportConfig, a_key_of_another_meaning_gets_no_hint) {
  const ImportedTraining imported = import("--bf16 --load checkpoint");
  ASSERT_EQ(imported.ignored.size(), 1);
  EXPECT_EQ(imported.ignored[0].nearest, "");  // not optimizer-cpu-offload
}

TEST(ImportConfig, devices_of_the_caller_come_before_those_of_the_file) {
  const ImportedTraining imported = import("--nnodes 2 --nproc-per-node 8 --tensor-model-parallel-size 4");
  EXPECT_EQ(plan_with({}, imported, 0).parallel.data, 4);
  EXPECT_EQ(plan_with({}, imported, 64).parallel.data, 16);
}

TEST(ImportConfig, a_dump_of_megatron_bridge_without_a_vocabulary) {
  const ImportedTraining imported = import(bridge_dump);
  EXPECT_EQ(imported.format, "nemo");
  EXPECT_EQ(imported.said.precision, "mxfp8");
  EXPECT_FALSE(imported.model);
  ASSERT_FALSE(imported.notes.empty());
  EXPECT_EQ(imported.notes.back(), "no model: its vocabulary is missing");
  const TrainingPlan plan = plan_with({}, imported, 256);
  EXPECT_EQ(plan.parallel.data, 64);
  EXPECT_EQ(plan.parallel.expert, 64);
  EXPECT_EQ(plan.virtual_stages, 4);
}

TEST(ImportConfig, all_missing_sizes_of_a_model_are_listed) {
  const ImportedTraining imported = import("--num-layers 32 --hidden-size 4096 --num-attention-heads 32");
  EXPECT_FALSE(imported.model);
  EXPECT_EQ(imported.notes.back(), "no model: its vocabulary, sequence length are missing");
}

TEST(ImportConfig, a_config_of_llm_foundry) {
  const ImportedTraining imported = import(foundry_yaml);
  EXPECT_EQ(imported.format, "llm-foundry");
  ASSERT_TRUE(imported.model);
  EXPECT_EQ(count_parameters(*imported.model).total, 6'658'859'008);  // as its benchmarks print it
  EXPECT_EQ(imported.said.sequence_length, 2048);
  EXPECT_FALSE(imported.said.micro_batch);
  ASSERT_EQ(imported.notes.size(), 1);
  EXPECT_NE(imported.notes[0].find("device_train_microbatch_size = auto"), std::string::npos);
  const TrainingPlan plan = plan_with({}, imported, 64);
  EXPECT_EQ(plan.sharding, Sharding::parameters);
  EXPECT_EQ(plan.recompute, Recompute::full);
  EXPECT_EQ(plan.parallel.data, 64);
}

TEST(ImportConfig, a_config_of_deepspeed) {
  const ImportedTraining imported = import(deepspeed_json);
  EXPECT_EQ(imported.format, "deepspeed");
  EXPECT_FALSE(imported.model);
  EXPECT_EQ(imported.said.precision, "bf16");
  EXPECT_EQ(imported.said.offloads_optimizer, true);
  EXPECT_TRUE(ignores(imported, "zero_optimization.overlap_comm"));
  EXPECT_EQ(imported.notes.size(), 1);  // on activation checkpointing
  const TrainingPlan plan = plan_with({}, imported, 16);
  EXPECT_EQ(plan.sharding, Sharding::gradients);
  EXPECT_EQ(plan.micro_batch, 4);
  EXPECT_EQ(plan.global_batch, 4 * 8 * 16);
}

TEST(ImportConfig, what_a_file_does_not_say_stays_as_it_was) {
  TrainingPlan before;
  before.parallel.tensor = 4;
  before.micro_batch = 2;
  before.recompute = Recompute::full;
  const TrainingPlan after = plan_with(before, import("{\"zero_optimization\": {\"stage\": 1}}"), 0);
  EXPECT_EQ(after.parallel.tensor, 4);
  EXPECT_EQ(after.micro_batch, 2);
  EXPECT_EQ(after.recompute, Recompute::full);
  EXPECT_EQ(after.sharding, Sharding::optimizer);
}

TEST(ImportConfig, the_order_of_flags_does_not_matter) {
  for (const char* text :
       {"--bf16 --fp8-format hybrid --fp8-recipe mxfp8", "--fp8-recipe mxfp8 --bf16 --fp8-format hybrid",
        "--fp8-format hybrid --fp8-recipe mxfp8 --bf16"}) {
    EXPECT_EQ(import(text).said.precision, "mxfp8") << text;
  }
  for (const char* text :
       {"--use-distributed-optimizer --use-megatron-fsdp", "--use-megatron-fsdp --use-distributed-optimizer"}) {
    EXPECT_EQ(import(text).said.sharding, Sharding::parameters) << text;
  }
}

TEST(ImportConfig, every_precision_is_a_recipe) {
  const std::vector<std::string> names = training_recipe_names();
  for (const char* text :
       {"--bf16", "--fp16", "--fp8-recipe delayed", "--fp8-recipe tensorwise", "--fp8-recipe blockwise",
        "--fp8-recipe mxfp8", "--fp4-format e2m1", "precision: amp_fp8\nglobal_train_batch_size: 8"}) {
    const ImportedTraining imported = import(text);
    ASSERT_TRUE(imported.said.precision) << text;
    EXPECT_TRUE(std::ranges::count(names, *imported.said.precision) == 1) << text;
  }
}

TEST(ImportConfig, keys_of_a_format_are_listed_once) {
  for (const ConfigFormat& format : config_formats()) {
    std::set<std::string_view> keys;
    for (const KeyRule& rule : format.rules) EXPECT_TRUE(keys.insert(rule.key).second) << rule.key;
    EXPECT_NE(format.complete, nullptr) << format.name;
  }
}

TEST(ImportConfig, wrong_values_are_named_with_line_and_key) {
  const InputProblem number = complaint("model:\n  num_layers: many\n");
  EXPECT_EQ(number.line, 2);
  EXPECT_EQ(number.path, "model.num_layers");
  EXPECT_EQ(complaint("--recompute-granularity ful").suggestion, "full");
  EXPECT_EQ(complaint("{\"zero_optimization\": {\"stage\": 4}}").path, "zero_optimization.stage");
  EXPECT_EQ(
      complaint("--num-layers 10 --num-layers-per-virtual-pipeline-stage 3 --pipeline-model-parallel-size 2").path,
      "layers of a virtual stage");
  EXPECT_EQ(complaint("--tensor-model-parallel-size 100001").path, "tensor-model-parallel-size");
  EXPECT_NE(complaint("colour: green\n").expected.find("Megatron-LM"), std::string::npos);
  EXPECT_FALSE(complaint("").expected.empty());
  EXPECT_FALSE(complaint("{").expected.empty());
}

}  // namespace foretoken::import_config_test
