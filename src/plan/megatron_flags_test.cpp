#include "plan/megatron_flags.h"

#include <gtest/gtest.h>

#include "model/step_test_models.h"
#include "plan/plan_space.h"
#include "training/import/import_config.h"
#include "training/layer_split.h"

namespace foretoken::megatron_flags_test {

// The reader of Megatron-LM's command lines gets the plan back.
TEST(MegatronFlags, say_the_plan) {
  const Model model = step_test::mixtral_like();
  const PlanSpace space{.model = &model,
                        .sequence_length = 4096,
                        .devices = 16,
                        .global_batch = 64,
                        .fast_domain = 8,
                        .keeps_scores = true};
  for (const RankSizes& sizes : rank_sizes(space)) {
    for (const TrainingPlan& pipeline : pipeline_plans(space, sizes)) {
      if (pipeline.micro_batch > 2) continue;
      for (const TrainingPlan& plan : memory_plans(space, pipeline)) {
        const std::string flags = megatron_flags(plan);
        const ImportedTraining imported = parse_training_config("pretrain_gpt.py --bf16 " + flags + "\n", "script.sh");
        EXPECT_EQ(megatron_flags(plan_with({}, imported, 16)), flags);
      }
    }
  }
}

TEST(MegatronFlags, of_a_large_run) {
  const TrainingPlan plan{
      .parallel = {.tensor = 8, .pipeline = 16, .data = 128, .sequence = true},
      .micro_batch = 1,
      .global_batch = 2048,
      .schedule = "interleaved",
      .virtual_stages = 8,
      .embedding_in_split = true,
      .loss_in_split = true,
      .sharding = Sharding::optimizer,
      .recompute = Recompute::full,
      .recompute_layers = 1,
  };
  EXPECT_EQ(megatron_flags(plan),
            "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --sequence-parallel "
            "--num-virtual-stages-per-pipeline-rank 8 --account-for-embedding-in-pipeline-split "
            "--account-for-loss-in-pipeline-split --micro-batch-size 1 --global-batch-size 2048 "
            "--use-distributed-optimizer --recompute-granularity full --recompute-method block "
            "--recompute-num-layers 1");
}

// With the checkpoints and gradients that Megatron-FSDP asserts.
TEST(MegatronFlags, of_fsdp) {
  const TrainingPlan plan{.parallel = {.data = 8}, .global_batch = 8, .sharding = Sharding::parameters};
  EXPECT_EQ(megatron_flags(plan),
            "--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --micro-batch-size 1 "
            "--global-batch-size 8 --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params "
            "--use-distributed-optimizer --ckpt-format fsdp_dtensor --no-gradient-accumulation-fusion");
}

TEST(MegatronFlags, name_the_dispatcher_and_the_group_of_micro_batches_beside_a_layout) {
  TrainingPlan plan{.parallel = {.pipeline = 2, .data = 1},
                    .global_batch = 3,
                    .schedule = "interleaved",
                    .virtual_stages = 2,
                    .layout = parse_pipeline_layout("Et|t|t|tL")};
  EXPECT_NE(megatron_flags(plan).find("--pipeline-model-parallel-layout \"Et|t|t|tL\" "
                                      "--microbatch-group-size-per-virtual-pipeline-stage 3 --micro"),
            std::string::npos)
      << megatron_flags(plan);
  EXPECT_EQ(megatron_flags(plan).find("dispatcher"), std::string::npos);
  plan = {.parallel = {.data = 8, .expert = 8}, .global_batch = 8};
  EXPECT_EQ(megatron_flags(plan).find("dispatcher"), std::string::npos) << "`train` takes these flags";
  plan.dispatcher = TokenDispatcher::all_to_all;
  EXPECT_NE(megatron_flags(plan).find("--moe-token-dispatcher-type alltoall"), std::string::npos);
}

TEST(MegatronFlags, say_the_dropout_that_was_predicted) {
  const TrainingPlan plan{.global_batch = 8};
  for (const Dropout dropout : {Dropout{}, Dropout{.hidden = true}, Dropout{.attention = true}}) {
    const SaidSettings said = parse_training_config(megatron_flags(plan, dropout) + "\n", "script.sh").said;
    EXPECT_EQ(said.hidden_dropout, dropout.hidden);
    EXPECT_EQ(said.attention_dropout, dropout.attention);
  }
}

}  // namespace foretoken::megatron_flags_test
