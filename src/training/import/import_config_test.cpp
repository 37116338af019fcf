#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "model/weights.h"
#include "training/import/config_format.h"
#include "training/import/import_test_support.h"
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

TEST(ImportConfig, arguments_of_megatron_lm) {
  const ImportedTraining imported = import(megatron_script);
  EXPECT_EQ(imported.format, "megatron-lm");
  EXPECT_EQ(imported.devices(), 128);
  EXPECT_EQ(imported.said.precision, "bf16");
  EXPECT_THAT(imported.not_modeled, testing::Contains("attention-backend"));
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
  const ImportedTraining imported = import("--bf16 --reload checkpoint");
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
  EXPECT_EQ(imported.said.stack, "deepspeed");
  EXPECT_TRUE(imported.leaves_recompute_open);
  EXPECT_TRUE(imported.notes.empty());
  EXPECT_EQ(imported.not_modeled, std::vector<std::string>{"activation_checkpointing.partition_activations"});
  const TrainingPlan plan = plan_with({}, imported, 16);
  EXPECT_EQ(plan.sharding, Sharding::gradients);
  EXPECT_EQ(plan.overlaps.gradients, TrafficOverlap::on);
  EXPECT_EQ(plan.micro_batch, 4);
  EXPECT_EQ(plan.global_batch, 4 * 8 * 16);
}

TEST(ImportConfig, usual_keys_of_deepspeed_are_known) {
  const ImportedTraining imported = import(R"({
    "train_batch_size": 64, "gradient_clipping": 1.0, "steps_per_print": 10, "wall_clock_breakdown": false,
    "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.9, 0.95], "weight_decay": 0.1}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}},
    "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16},
    "zero_optimization": {"stage": 3, "contiguous_gradients": true, "reduce_bucket_size": 5e8,
      "stage3_prefetch_bucket_size": 5e7, "stage3_param_persistence_threshold": 1e5,
      "stage3_max_live_parameters": 1e9, "stage3_gather_16bit_weights_on_model_save": true,
      "zero_hpz_partition_size": 8, "offload_optimizer": {"device": "cpu", "pin_memory": true, "ratio": 0.5}}})");
  EXPECT_FALSE(imported.said.shard_ranks) << "a second copy of the weights; states stay divided over all";
  EXPECT_THAT(imported.not_modeled, testing::Contains("zero_optimization.zero_hpz_partition_size"));
  EXPECT_TRUE(imported.ignored.empty()) << imported.ignored.front().key;
  EXPECT_EQ(imported.said.optimizer, "adam");
  EXPECT_EQ(imported.said.optimizer_offload_fraction, 0.5);
  EXPECT_EQ(imported.said.clips_gradients, true);
  EXPECT_THAT(imported.not_modeled, testing::Contains("zero_optimization.stage3_prefetch_bucket_size"));
  EXPECT_EQ(import(R"({"zero_optimization": {"stage": 1}, "optimizer": {"type": "Lion"}})").notes.size(), 1);
}

TEST(ImportConfig, states_on_drives_are_said_to_be_predicted_as_if_in_host_memory) {
  const auto notes = [](const std::string& device) {
    return import(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": ")" + device + R"("}}})").notes;
  };
  EXPECT_THAT(notes("nvme"), testing::ElementsAre(testing::HasSubstr("NVMe")));
  EXPECT_TRUE(notes("cpu").empty());
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

TEST(ImportConfig, adapters_of_axolotl_and_their_base) {
  const ImportedTraining imported = parse_training_config(R"(base_model: org/name
adapter: qlora
lora_r: 16
lora_target_modules:
  - q_proj
  - v_proj
sequence_len: 4096
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_bnb_8bit
bf16: auto
fsdp:
  - full_shard
  - auto_wrap
datasets:
  - path: a
micro_batch_sise: 3
)",
                                                          "x.yaml");
  EXPECT_EQ(imported.format, "axolotl");
  const SaidSettings& said = imported.said;
  EXPECT_EQ(said.model_name, "org/name");
  EXPECT_EQ(said.lora_rank, 16);
  EXPECT_EQ(said.lora_on_attention, true);
  EXPECT_EQ(said.lora_on_mlp, false);
  EXPECT_EQ(said.base_weights, "nf4");
  EXPECT_EQ(said.optimizer, "adam-8bit");
  EXPECT_EQ(said.precision, "bf16");
  EXPECT_EQ(said.sharding, Sharding::parameters);
  EXPECT_EQ(plan_with({}, imported, 8).global_batch, 64);
  ASSERT_EQ(imported.ignored.size(), 1u);
  EXPECT_EQ(imported.ignored[0].nearest, "micro_batch_size");
  EXPECT_TRUE(imported.notes.empty());
}

TEST(ImportConfig, axolotl_shards_by_the_settings_of_fsdp2_alone) {
  const auto sharding = [](const std::string& more) {
    const std::string text = "base_model: a\nsequence_len: 64\nmicro_batch_size: 1\n" + more;
    return parse_training_config(text, "x.yaml").said.sharding;
  };
  EXPECT_EQ(sharding(""), Sharding::none);
  EXPECT_EQ(sharding("fsdp_version: 2\nfsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"),
            Sharding::parameters);
  EXPECT_EQ(sharding("fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: false\n"), Sharding::gradients);
  EXPECT_EQ(sharding("fsdp_version: 2\nfsdp_config:\n  fsdp_reshard_after_forward: false\n"), Sharding::gradients);
}

// DeepSpeed and PEFT keep what they train in fp32; else it is trained as the model was loaded.
TEST(ImportConfig, axolotl_trains_weights_in_16_bits_unless_deepspeed_has_a_copy) {
  const std::string whole = "base_model: a\nsequence_len: 64\nmicro_batch_size: 1\noptimizer: adamw_torch_fused\n";
  EXPECT_EQ(import(whole).said.optimizer, "adam-bf16-weights");
  EXPECT_EQ(import(whole + "fsdp_version: 2\n").said.optimizer, "adam-bf16-weights");
  EXPECT_EQ(import(whole + "deepspeed: deepspeed_configs/zero2.json\n").said.optimizer, "adam");
  EXPECT_EQ(import(whole + "adapter: lora\nlora_r: 8\n").said.optimizer, "adam");
}

TEST(ImportConfig, weights_trained_in_16_bits_have_no_copy_under_8_bit_adam_or_sgd_either) {
  const auto optimizer = [](const std::string& file) { return import(file).said.optimizer; };
  const std::string axolotl = "base_model: a\nsequence_len: 64\nmicro_batch_size: 1\noptimizer: ";
  EXPECT_EQ(optimizer(axolotl + "adamw_bnb_8bit\n"), "adam-8bit-bf16-weights");
  EXPECT_EQ(optimizer(axolotl + "sgd\n"), "sgd-bf16-weights");
  EXPECT_EQ(optimizer(axolotl + "muon\n"), "muon-bf16-weights");
  EXPECT_EQ(optimizer(axolotl + "adamw_bnb_8bit\nadapter: lora\nlora_r: 8\n"), "adam-8bit");
  EXPECT_EQ(optimizer(axolotl + "adamw_bnb_8bit\ndeepspeed: deepspeed_configs/zero2.json\n"), "adam-8bit");
  const std::string trainer = "model_name_or_path: a/b\nper_device_train_batch_size: 1\noptim: adamw_bnb_8bit\n";
  EXPECT_EQ(optimizer(trainer), "adam-8bit");
  EXPECT_EQ(optimizer(trainer + "torch_dtype: bfloat16\n"), "adam-8bit-bf16-weights");
  EXPECT_EQ(optimizer(trainer + "dtype: bfloat16\nuse_peft: true\n"), "adam-8bit") << "PEFT's adapters are in fp32";
  EXPECT_EQ(optimizer(trainer + "dtype: bfloat16\nfsdp: full_shard\n"), "adam-8bit") << "Accelerate raises them";
  EXPECT_EQ(optimizer(trainer + "dtype: auto\n"), "adam-8bit");
  const std::string factory = trainer + "finetuning_type: full\n";
  EXPECT_EQ(optimizer(factory + "torch_dtype: bfloat16\n"), "adam-8bit") << "raised unless it is told not to";
  EXPECT_EQ(optimizer(factory + "pure_bf16: true\n"), "adam-8bit-bf16-weights");
  EXPECT_TRUE(import(factory + "pure_bf16: true\n").ignored.empty());
}

TEST(ImportConfig, sgd_has_a_moment_where_a_file_gives_it_momentum) {
  const auto optimizer = [](const std::string& file) { return import(file).said.optimizer; };
  const std::string axolotl = "base_model: a\nsequence_len: 64\nmicro_batch_size: 1\noptimizer: sgd\n";
  EXPECT_EQ(optimizer(axolotl + "optim_args: momentum=0.9,nesterov=true\n"), "sgd-momentum-bf16-weights");
  EXPECT_EQ(optimizer(axolotl + "optim_args:\n  momentum: 0.9\n"), "sgd-momentum-bf16-weights");
  EXPECT_EQ(optimizer(axolotl + "optim_args: momentum=0\n"), "sgd-bf16-weights");
}

TEST(ImportConfig, every_optimizer_has_a_state_of_weights_in_16_bits) {
  for (const char* kept : {"adam", "adam-8bit", "sgd", "sgd-momentum", "muon"}) {
    SaidSettings said{.optimizer = kept};
    keeps_weights_in_16_bits(said);
    EXPECT_EQ(said.optimizer, std::string(kept) + "-bf16-weights");
  }
  SaidSettings copied{.optimizer = "adam"};
  runs_on_deepspeed(copied);
  keeps_weights_in_16_bits(copied);
  EXPECT_EQ(copied.optimizer, "adam");
}

TEST(ImportConfig, switches_of_the_trainer_may_be_set_when_the_job_starts) {
  const std::string trainer = "model_name_or_path: a/b\nper_device_train_batch_size: 1\nlora_r: 4\n";
  EXPECT_EQ(import(trainer + "use_peft: yes\n").said.lora_rank, 4);
  for (const char* other : {"no", "auto", "${oc.env:PEFT}"}) {
    EXPECT_FALSE(import(trainer + "use_peft: " + other + "\n").said.lora_rank) << other;
  }
  EXPECT_EQ(complaint(trainer + "use_peft: perhaps\n").path, "use_peft");
}

TEST(ImportConfig, fsdp_may_recompute_by_its_own_key) {
  const std::string trainer = "model_name_or_path: a/b\nper_device_train_batch_size: 1\nfsdp: full_shard\n";
  const std::string axolotl = "base_model: a\nsequence_len: 64\nmicro_batch_size: 1\nfsdp_version: 2\n";
  for (const std::string& file : {trainer, axolotl}) {
    EXPECT_EQ(import(file).said.recompute, Recompute::none);
    for (const char* key : {"activation_checkpointing", "fsdp_activation_checkpointing"}) {
      const std::string on = fmt::format("{}fsdp_config:\n  {}: true\ngradient_checkpointing: false\n", file, key);
      EXPECT_EQ(import(on).said.recompute, Recompute::full) << on;
    }
  }
}

TEST(ImportConfig, axolotl_without_an_adapter_trains_all_weights) {
  const ImportedTraining imported = parse_training_config(
      "base_model: a\nsequence_len: 64\nlora_r: 16\nmicro_batch_size: 1\noptimizer: adafactor\n"
      "deepspeed: deepspeed_configs/zero3_bf16_cpuoffload_all.json\n",
      "x.yaml");
  EXPECT_FALSE(imported.said.lora_rank);
  EXPECT_EQ(imported.said.sharding, Sharding::parameters);
  EXPECT_EQ(imported.said.offloads_optimizer, true);
  EXPECT_EQ(imported.said.offloads_parameters, true);
  EXPECT_EQ(imported.said.stack, "deepspeed");
  ASSERT_EQ(imported.notes.size(), 1u);
  EXPECT_NE(imported.notes[0].find("adafactor"), std::string::npos);
}

TEST(ImportConfig, a_recipe_of_torchtune_names_its_model_by_a_function) {
  const ImportedTraining imported = parse_training_config(R"(output_dir: /tmp/x
model:
  _component_: torchtune.models.llama3_1.qlora_llama3_1_8b
  lora_attn_modules: ['q_proj', 'v_proj']
  lora_rank: 8
tokenizer:
  max_seq_len: 8192
dataset:
  packed: True
batch_size: 2
gradient_accumulation_steps: 8
enable_activation_checkpointing: True
optimizer:
  _component_: bitsandbytes.optim.PagedAdamW8bit
checkpointer:
  output_dir: ${output_dir}
dtype: bf16
)",
                                                          "x.yaml");
  EXPECT_EQ(imported.format, "torchtune");
  EXPECT_EQ(imported.said.model_name, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(imported.said.base_weights, "nf4");
  EXPECT_EQ(imported.said.lora_on_mlp, false);
  EXPECT_EQ(imported.said.optimizer, "adam-8bit-bf16-weights");
  EXPECT_EQ(imported.said.packed, true);
  EXPECT_EQ(imported.said.recompute, Recompute::full);
  EXPECT_EQ(imported.said.sequence_length, 8192);
}

TEST(ImportConfig, accelerate_says_who_shards_what) {
  const ImportedTraining fsdp = parse_training_config(
      "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n  fsdp_offload_params: false\n"
      "mixed_precision: fp8\nnum_machines: 2\nnum_processes: 16\n",
      "x.yaml");
  EXPECT_EQ(fsdp.format, "accelerate");
  EXPECT_EQ(fsdp.said.sharding, Sharding::gradients);
  EXPECT_EQ(fsdp.said.precision, "fp8-delayed");
  EXPECT_EQ(fsdp.devices(), 16);
  const ImportedTraining deepspeed = parse_training_config(
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n"
      "  gradient_accumulation_steps: 4\n",
      "x.yaml");
  EXPECT_EQ(deepspeed.said.sharding, Sharding::parameters);
  EXPECT_EQ(deepspeed.said.offloads_optimizer, true);
  EXPECT_EQ(deepspeed.said.accumulation, 4);
  EXPECT_EQ(deepspeed.said.stack, "deepspeed");
  EXPECT_EQ(fsdp.said.stack, "transformers");
}

TEST(ImportConfig, a_hybrid_of_accelerate_shards_inside_each_machine) {
  const std::string machines = "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\n";
  for (const char* strategy : {"fsdp_sharding_strategy: HYBRID_SHARD", "fsdp_sharding_strategy: 5",
                               "fsdp_reshard_after_forward: HYBRID_SHARD"}) {
    const ImportedTraining imported = import(machines + "fsdp_config:\n  " + strategy + "\n");
    EXPECT_EQ(plan_with({}, imported, 0).shard_ranks, 8) << strategy;
  }
  const std::string whole = machines + "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n";
  EXPECT_EQ(plan_with({}, import(whole), 0).shard_ranks, 0);
}

TEST(ImportConfig, arguments_of_the_trainer) {
  const ImportedTraining imported = parse_training_config(
      "model_name_or_path: a/b\nfinetuning_type: lora\nlora_target: all\ncutoff_len: 2048\n"
      "per_device_train_batch_size: 4\nquantization_bit: 4\nfsdp: full_shard auto_wrap offload\n",
      "x.yaml");
  EXPECT_EQ(imported.format, "hf-trainer");
  EXPECT_EQ(imported.said.lora_rank, 8);
  EXPECT_EQ(imported.said.base_weights, "nf4");
  EXPECT_EQ(imported.said.micro_batch, 4);
  EXPECT_EQ(imported.said.offloads_parameters, true);
}

// src/llamafactory/hparams/model_args.py: disable_gradient_checkpointing = False.
TEST(ImportConfig, llama_factory_recomputes_unless_it_is_told_not_to) {
  const std::string trl = "model_name_or_path: a/b\nper_device_train_batch_size: 1\n";
  EXPECT_EQ(import(trl).said.recompute, Recompute::none);
  for (const char* own : {"finetuning_type: full\n", "stage: sft\n", "template: llama3\n", "cutoff_len: 64\n"}) {
    EXPECT_EQ(import(trl + own).said.recompute, Recompute::full) << own;
    EXPECT_TRUE(import(trl + own).notes.empty());
    EXPECT_EQ(import(trl + own + "disable_gradient_checkpointing: true\n").said.recompute, Recompute::none) << own;
  }
  const ImportedTraining still_on = import(trl + "cutoff_len: 64\ngradient_checkpointing: false\n");
  EXPECT_EQ(still_on.said.recompute, Recompute::full);
  EXPECT_THAT(still_on.notes, testing::ElementsAre(testing::HasSubstr("disable_gradient_checkpointing: true")));
}

// As many expert-tensor ranks as tensor ranks, unless they are given (megatron/core/model_parallel_config.py).
TEST(ImportConfig, experts_of_megatron_are_cut_by_tensor_ranks_too) {
  const auto read = [](const std::string& more) {
    return import(
        "--num-experts 64 --tensor-model-parallel-size 2 --hidden-dropout 0 --attention-dropout 0 "
        "--overlap-grad-reduce --expert-model-parallel-size " +
        more);
  };
  EXPECT_EQ(read("8").said.expert, 16);
  EXPECT_THAT(read("8").notes, testing::ElementsAre(testing::HasSubstr("predicted as 16 expert ranks")));
  EXPECT_EQ(read("8 --expert-tensor-parallel-size 1").said.expert, 8);
  EXPECT_TRUE(read("8 --expert-tensor-parallel-size 1").notes.empty());
  EXPECT_TRUE(read("1").notes.empty()) << "two ranks cut each expert";
  EXPECT_EQ(read("64").said.expert, 64);  // there are no 128 experts
  EXPECT_THAT(read("64").notes, testing::ElementsAre(testing::HasSubstr("is not modeled: 1 is assumed")));
  const std::string bridge =
      "model:\n  tensor_model_parallel_size: 2\n  expert_model_parallel_size: 8\n  num_moe_experts: 64\n";
  EXPECT_EQ(import(bridge).said.expert, 8) << "the recipe says";
  EXPECT_EQ(import(bridge + "  expert_tensor_parallel_size: 2\n").said.expert, 16);
}

TEST(ImportConfig, training_on_preferences_is_named) {
  const std::string factory = "model_name_or_path: m/x\ncutoff_len: 64\nper_device_train_batch_size: 1\n";
  EXPECT_THAT(import(factory + "stage: dpo\n").notes, testing::ElementsAre(testing::HasSubstr("stage dpo")));
  EXPECT_TRUE(import(factory + "stage: sft\n").notes.empty());
  const std::string tune = "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\nbatch_size: 2\nloss:\n";
  EXPECT_THAT(import(tune + "  _component_: torchtune.rlhf.loss.DPOLoss\n").notes,
              testing::ElementsAre(testing::HasSubstr("DPOLoss")));
  EXPECT_TRUE(import(tune + "  _component_: torch.nn.CrossEntropyLoss\n").notes.empty());
}

TEST(ImportConfig, batch_sizes_that_contradict_each_other_are_refused) {
  const ImportedTraining imported =
      import(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})");
  EXPECT_NO_THROW(check_batch_sizes(imported, 8));
  EXPECT_THROW(check_batch_sizes(imported, 16), InputError);
  EXPECT_NO_THROW(check_batch_sizes(import(R"({"train_batch_size": 64, "gradient_accumulation_steps": 4})"), 3));
}

TEST(ImportConfig, usual_arguments_of_megatron_lm_are_known) {
  const ImportedTraining imported = import(
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --transformer-impl transformer_engine --train-iters 10 "
      "--manual-gc --ckpt-format torch_dist --cross-entropy-loss-fusion --no-gradient-accumulation-fusion --lr 1e-4 "
      "--min-lr 1e-5 --lr-decay-style cosine --weight-decay 0.1 --clip-grad 1.0 --log-interval 1 --save-interval 10 "
      "--eval-iters 0 --data-path x --split 100,0,0 --seed 1 --adam-beta2 0.95");
  EXPECT_TRUE(imported.ignored.empty()) << imported.ignored.front().key;
  EXPECT_THAT(imported.not_modeled, testing::Contains("transformer-impl"));
  EXPECT_THAT(imported.without_effect, testing::Contains("train-iters"));
}

// Those of examples/llama/train_llama3_8b_h100_fp8.sh and of its examples for GPT-3 and Mixtral.
TEST(ImportConfig, arguments_of_the_examples_of_megatron_lm_are_known) {
  const std::string sizes = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 ";
  const ImportedTraining imported = import(
      sizes +
      "--use-mcore-models --apply-layernorm-1p --decoupled-lr 5e-4 --decoupled-min-lr 4e-5 --calculate-per-token-loss "
      "--fp8-format hybrid --fp8-amax-history-len 1024 --fp8-amax-compute-algo max --fp8-param-gather --mock-data "
      "--tiktoken-pattern v2 --no-ckpt-fully-parallel-save --no-position-embedding --ddp-bucket-size 40000000 "
      "--use-tp-pp-dp-mapping --moe-permute-fusion --no-initialization --reset-position-ids --rerun-mode disabled");
  EXPECT_TRUE(imported.ignored.empty()) << imported.ignored.front().key;
  EXPECT_THAT(imported.not_modeled, testing::IsSupersetOf({"ddp-bucket-size", "use-tp-pp-dp-mapping"}));
  EXPECT_EQ(imported.said.fp8_gathers, true);
  EXPECT_FALSE(import(sizes + "--bf16 --fp8-param-gather").said.fp8_gathers)
      << "without FP8 there is nothing to gather";
}

TEST(ImportConfig, files_say_whether_gradients_are_clipped) {
  EXPECT_EQ(import(R"({"train_batch_size": 64, "zero_optimization": {"stage": 2}})").said.clips_gradients, false);
  EXPECT_EQ(import(R"({"zero_optimization": {"stage": 2}, "gradient_clipping": 0.0})").said.clips_gradients, false);
  const std::string accelerate = "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\n";
  EXPECT_EQ(import(accelerate).said.clips_gradients, std::nullopt);
  const std::string zero = accelerate + "deepspeed_config:\n  zero_stage: 2\n  gradient_clipping: ";
  EXPECT_EQ(import(zero + "1.0\n").said.clips_gradients, true);
  EXPECT_EQ(import(zero + "0.0\n").said.clips_gradients, false);
  const ImportedTraining titan =
      import("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nmax_norm = 1.0\n");
  EXPECT_EQ(titan.said.clips_gradients, true);
  EXPECT_THAT(titan.without_effect, testing::Not(testing::Contains("training.max_norm")));
}

// megatron/training/arguments.py
TEST(ImportConfig, megatron_sums_gradients_in_fp32_unless_it_is_told_otherwise) {
  const auto bytes = [&](const std::string& more) {
    return import("--num-layers 2 --hidden-size 64 --num-attention-heads 4 " + more).said.gradient_bytes;
  };
  EXPECT_EQ(bytes("--bf16"), 4);
  EXPECT_EQ(bytes("--bf16 --fp8-format hybrid"), 4);
  EXPECT_EQ(bytes("--bf16 --grad-reduce-in-bf16"), 2);
  EXPECT_EQ(bytes("--bf16 --use-precision-aware-optimizer --main-grads-dtype bf16"), 2);
  EXPECT_EQ(bytes("--bf16 --grad-reduce-in-bf16 --main-grads-dtype fp32"), 2);
  EXPECT_EQ(bytes("--bf16 --main-grads-dtype fp32 --grad-reduce-in-bf16"), 2);
  EXPECT_EQ(bytes("--fp16 --main-grads-dtype fp32"), 2);
  EXPECT_EQ(bytes("--fp16 --fp8-format hybrid"), 2);
  EXPECT_EQ(bytes("--fp8-format hybrid --fp16"), 2);
  EXPECT_EQ(bytes("--bf16 --main-grads-dtype fp32 --main-grads-dtype bf16"), 2);
  EXPECT_EQ(bytes("--fp16"), 2);
  EXPECT_EQ(bytes("--fp16 --accumulate-allreduce-grads-in-fp32"), 4);
  const std::string bridge = "model:\n  tensor_model_parallel_size: 2\ntrain:\n  micro_batch_size: 1\nddp:\n";
  EXPECT_EQ(import(bridge + "  grad_reduce_in_fp32: true\n").said.gradient_bytes, 4);
  EXPECT_EQ(import(bridge + "  grad_reduce_in_fp32: false\n").said.gradient_bytes, 2);
  EXPECT_EQ(import(bridge + "  use_distributed_optimizer: true\n").said.gradient_bytes, std::nullopt);
}

TEST(ImportDropout, is_what_the_file_says) {
  const SaidSettings said =
      import("--tensor-model-parallel-size 2 --hidden-dropout 0.1 --attention-dropout 0.0\n").said;
  EXPECT_EQ(said.hidden_dropout, true);
  EXPECT_EQ(said.attention_dropout, false);
  const std::string nemo = "model:\n  tensor_model_parallel_size: 2\n  micro_batch_size: 1\n  attention_dropout: 0.1\n";
  EXPECT_EQ(import(nemo).said.attention_dropout, true);
}

TEST(ImportConfig, megatron_hides_nothing_that_no_flag_hides) {
  const std::string line =
      "pretrain_gpt.py --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer ";
  const auto read = [&](const std::string& more) { return parse_training_config(line + more + "\n", "script.sh"); };
  const ImportedTraining bare = read("");
  const TrafficOverlaps none = plan_with({}, bare, 8).overlaps;
  for (const TrafficOverlap one : {none.gradients, none.parameters, none.tensor, none.experts}) {
    EXPECT_EQ(one, TrafficOverlap::off);
  }
  EXPECT_THAT(bare.notes, testing::Contains(
                              testing::HasSubstr("--overlap-grad-reduce, --overlap-param-gather, --tp-comm-overlap")));
  const TrafficOverlaps some = plan_with({}, read("--overlap-grad-reduce --tp-comm-overlap"), 8).overlaps;
  EXPECT_EQ(some.gradients, TrafficOverlap::published);
  EXPECT_EQ(some.parameters, TrafficOverlap::off);
  EXPECT_EQ(some.tensor, TrafficOverlap::published);
  const TrafficOverlaps fsdp = plan_with({}, read("--use-torch-fsdp2"), 8).overlaps;
  EXPECT_EQ(fsdp.parameters, TrafficOverlap::published) << "FSDP has its own";
}

TEST(ImportDropout, is_the_default_of_megatron_where_nothing_is_said) {
  const ImportedTraining none = import("--overlap-grad-reduce --tensor-model-parallel-size 2\n");
  EXPECT_EQ(none.said.hidden_dropout, true);
  EXPECT_EQ(none.said.attention_dropout, true);
  ASSERT_EQ(none.notes.size(), 1u);
  EXPECT_EQ(none.notes[0], "no hidden or attention dropout is given; Megatron-LM's default is 0.1");
  const ImportedTraining one = import("--overlap-grad-reduce --tensor-model-parallel-size 2 --hidden-dropout 0\n");
  EXPECT_EQ(one.said.hidden_dropout, false);
  EXPECT_EQ(one.said.attention_dropout, true);
  EXPECT_EQ(one.notes.at(0), "no attention dropout is given; Megatron-LM's default is 0.1");
  EXPECT_TRUE(import("--overlap-grad-reduce --tensor-model-parallel-size 2 --hidden-dropout 0 --attention-dropout 0\n")
                  .notes.empty());
}

TEST(ImportDropout, of_nemo_is_that_of_its_code_where_the_file_has_the_model) {
  EXPECT_EQ(import(nemo_recipe).said.hidden_dropout, true);
  const std::string overrides = "model:\n  tensor_model_parallel_size: 2\n  micro_batch_size: 1\n";
  EXPECT_EQ(import(overrides).said.hidden_dropout, std::nullopt);  // as the recipe that it changes
}

TEST(ImportDropout, is_a_number_from_0_to_1) {
  EXPECT_EQ(import("--hidden-dropout 0e1\n").said.hidden_dropout, false);
  EXPECT_EQ(import("--hidden-dropout 1e-1\n").said.hidden_dropout, true);
  for (const char* wrong : {"some1", "1.5", "-0.1", "0.1%"}) {
    const InputProblem problem = complaint("model:\n  num_layers: 2\n  hidden_dropout: " + std::string(wrong) + "\n");
    EXPECT_EQ(problem.path, "model.hidden_dropout") << wrong;
    EXPECT_EQ(problem.expected, "a number from 0 to 1") << wrong;
  }
}

}  // namespace foretoken::import_config_test
