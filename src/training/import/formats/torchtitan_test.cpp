#include <gtest/gtest.h>

#include "training/import/import_test_support.h"

namespace foretoken::import_config_test {

constexpr const char* titan_file = R"(# eight GPUs
[job]
description = "Llama 3 8B"
[model]
name = "llama3"
flavor = "8B"
converters = ["float8"]
[training]
local_batch_size = 4
seq_len = 8192
steps = 1_000
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 2
[compile]
enable = true
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
)";

TEST(ImportConfig, meshes_of_torchtitan_must_be_all_devices) {
  const auto shard_ranks = [](const std::string& mesh) {
    const std::string text = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 64\n[parallelism]\n";
    return plan_with({}, parse_training_config(text + mesh, "x.toml"), 8).shard_ranks;
  };
  EXPECT_EQ(shard_ranks("data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"), 4);
  EXPECT_EQ(shard_ranks("data_parallel_shard_degree = 8\n"), 0);  // all of them
  EXPECT_THROW(shard_ranks("data_parallel_shard_degree = 4\n"), InputError);
  EXPECT_THROW(shard_ranks("data_parallel_shard_degree = 64\n"), InputError);
  EXPECT_THROW(shard_ranks("data_parallel_replicate_degree = 3\n"), InputError);
}

TEST(ImportConfig, torchtitan_keys_that_change_time_or_memory_are_read_or_named) {
  const auto imported = [](const std::string& rest) {
    return parse_training_config("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 64\n" + rest,
                                 "x.toml");
  };
  const std::string checkpoints = "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = ";
  const ImportedTraining every_second = imported(checkpoints + "\"2\"\n");
  EXPECT_EQ(every_second.said.recompute, Recompute::full);
  EXPECT_EQ(every_second.said.recompute_every, 2);
  EXPECT_EQ(imported(checkpoints + "\"op\"\n").said.recompute, Recompute::op);
  for (const char* usual : {"", "[activation_checkpoint]\nmode = \"selective\"\n"}) {  // torchtitan's own option is "2"
    EXPECT_EQ(imported(usual).said.recompute, Recompute::full) << usual;
    EXPECT_EQ(imported(usual).said.recompute_every, 2) << usual;
  }
  const ImportedTraining budget =
      imported("[activation_checkpoint]\nmode = \"memory_budget\"\nselective_ac_option = \"2\"\n");
  EXPECT_EQ(budget.said.recompute, Recompute::op);
  EXPECT_FALSE(budget.said.recompute_every);
  const ImportedTraining none = imported("[activation_checkpoint]\nmode = \"none\"\nselective_ac_option = \"2\"\n");
  EXPECT_EQ(none.said.recompute, Recompute::none);
  EXPECT_FALSE(none.said.recompute_every);
  const std::string gathers = "[float8]\nenable_fsdp_float8_all_gather = true\n";
  EXPECT_EQ(imported("[model]\nconverters = [\"float8\"]\n" + gathers).said.fp8_gathers, true);
  EXPECT_FALSE(imported(gathers).said.fp8_gathers) << "without float8 there is nothing to gather in it";
  EXPECT_EQ(imported("[parallelism]\npipeline_parallel_layers_per_stage = 4\n").said.layers_per_virtual_stage, 4);
  const std::string compiled = "[compile]\nenable = true\ncomponents = [\"model\"";
  EXPECT_EQ(imported(compiled + "]\n").said.logit_bytes, 10);
  EXPECT_FALSE(imported(compiled + ", \"loss\"]\n").said.logit_bytes);
  EXPECT_EQ(imported("[parallelism]\ntensor_parallel_degree = 2\n").keys.at("tensor_model_parallel_size"),
            "parallelism.tensor_parallel_degree");
  const ImportedTraining other = imported("[parallelism]\nfsdp_reshard_after_forward = \"never\"\n");
  EXPECT_EQ(other.not_modeled, std::vector<std::string>{"parallelism.fsdp_reshard_after_forward"});
  EXPECT_TRUE(other.without_effect.empty());
}

TEST(ImportConfig, a_torchtitan_file_says_plan_model_and_formats) {
  const ImportedTraining imported = parse_training_config(titan_file, "x.toml");
  EXPECT_EQ(imported.format, "torchtitan");
  EXPECT_EQ(imported.said.model_name, "meta-llama/Llama-3.1-8B");
  EXPECT_EQ(imported.said.precision, "fp8-current");
  EXPECT_EQ(imported.said.stack, "torchtitan");
  EXPECT_TRUE(imported.ignored.empty());
  EXPECT_EQ(imported.without_effect, (std::vector<std::string>{"job.description", "training.steps"}));
  const TrainingPlan plan = plan_with({}, imported, 32);
  EXPECT_EQ(plan.parallel.tensor, 2);
  EXPECT_EQ(plan.parallel.pipeline, 2);
  EXPECT_EQ(plan.parallel.data, 8);
  EXPECT_EQ(plan.shard_ranks, 4);  // two copies of the model
  EXPECT_EQ(plan.sharding, Sharding::parameters);
  EXPECT_EQ(plan.recompute, Recompute::op);
  EXPECT_EQ(plan.schedule, "interleaved");
  EXPECT_EQ(plan.micro_batch, 2);
  EXPECT_EQ(plan.global_batch, 32);  // four sequences of each replica, two at a time
}

TEST(ImportConfig, a_pipeline_of_torchtitan_may_accumulate_gradients) {
  const ImportedTraining imported = parse_training_config(
      "[training]\nlocal_batch_size = 4\nglobal_batch_size = 64\nseq_len = 64\n"
      "[parallelism]\npipeline_parallel_degree = 2\n",
      "x.toml");
  EXPECT_NO_THROW(check_batch_sizes(imported, 8));
  const TrainingPlan plan = plan_with({}, imported, 16);
  EXPECT_EQ(plan.micro_batch, 1);
  EXPECT_EQ(plan.micro_batches(), 8);  // two local batches of four
}

TEST(ImportConfig, context_ranks_of_torchtitan_gather_unless_they_rotate) {
  const std::string titan = "[training]\nseq_len = 64\n[parallelism]\ncontext_parallel_degree = 2\n";
  EXPECT_EQ(import(titan).said.context_exchange, ContextExchange::all_gather);
  EXPECT_EQ(import(titan + "context_parallel_rotate_method = \"alltoall\"\n").said.context_exchange,
            ContextExchange::ring);
}

TEST(ImportConfig, torchtitan_holds_a_copy_on_each_replica_with_one_shard) {
  const ImportedTraining imported = parse_training_config(
      "[training]\nlocal_batch_size = 1\nseq_len = 64\n[parallelism]\ndata_parallel_shard_degree = 1\n", "x.toml");
  EXPECT_EQ(imported.said.sharding, Sharding::none);
  EXPECT_EQ(imported.said.stack, "torchtitan-eager");
}

}  // namespace foretoken::import_config_test
