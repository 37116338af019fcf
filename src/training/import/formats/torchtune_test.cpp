#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/import/import_test_support.h"

namespace foretoken::import_config_test {

const std::string tune_file = "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\nbatch_size: 2\n";

TEST(ImportConfig, chunked_losses_of_torchtune_hold_fewer_logits) {
  const auto bytes = [](const std::string& loss) {
    return import(tune_file + "loss:\n  _component_: " + loss + "\n").said.logit_bytes;
  };
  EXPECT_EQ(bytes("torchtune.modules.loss.LinearCrossEntropyLoss"), 3.5);
  EXPECT_FALSE(bytes("torch.nn.CrossEntropyLoss"));
}

TEST(ImportConfig, compiled_losses_of_torchtune_keep_what_the_compiled_stack_keeps) {
  const std::string chunked = tune_file + "loss:\n  _component_: torchtune.modules.loss.CEWithChunkedOutputLoss\n";
  EXPECT_EQ(import(chunked).said.logit_bytes, 3.5);
  EXPECT_EQ(import(chunked + "compile: True\n").said.logit_bytes, std::nullopt);
  EXPECT_EQ(import("compile: True\n" + chunked).said.logit_bytes, std::nullopt);
  EXPECT_EQ(import(chunked + "compile: False\n").said.logit_bytes, 3.5);
  EXPECT_EQ(import(chunked + "compile: True\n").said.stack, "torchtitan");
  EXPECT_EQ(import(chunked + "compile: False\n").said.stack, "torchtitan-eager");
}

// torchtune's default is allgather.
TEST(ImportConfig, context_ranks_of_torchtune_gather_unless_they_rotate) {
  const std::string ranks = tune_file + "context_parallel_dim: 2\n";
  EXPECT_EQ(import(ranks).said.context_exchange, ContextExchange::all_gather);
  EXPECT_EQ(import(ranks + "context_parallel_rotate_method: alltoall\n").said.context_exchange, ContextExchange::ring);
}

TEST(ImportTorchtune, tensor_ranks_cut_the_sequence_too) {
  EXPECT_EQ(import(tune_file + "tensor_parallel_dim: 2\n").said.sequence_parallel, true);
  EXPECT_FALSE(import(tune_file).said.sequence_parallel.value_or(false));
}

TEST(ImportConfig, what_torchtune_does_not_model_and_is_off_gets_no_note) {
  for (const char* off : {"False", "false", "no", "off", "0"}) {
    EXPECT_TRUE(import(tune_file + "optimizer_in_bwd: " + off + "\n").not_modeled.empty()) << off;
  }
  EXPECT_EQ(import(tune_file + "optimizer_in_bwd: True\n").not_modeled, std::vector<std::string>{"optimizer_in_bwd"});
  const ImportedTraining kept = import(tune_file + "optimizer_in_bwd: False\nfsdp_reshard_after_forward: False\n");
  EXPECT_EQ(kept.not_modeled, std::vector<std::string>{"fsdp_reshard_after_forward"}) << "false is what is unusual";
}

}  // namespace foretoken::import_config_test
