#include "validate/serving/vllm_run.h"

#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace foretoken::vllm_run_test {

namespace fs = std::filesystem;

constexpr const char* header =
    "request_id,input_tokens,output_tokens,arrival_client_s,queued_s,first_token_s,last_token_s\n";

class VllmRunFolder : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(root_);
    fs::create_directories(folder_);
    write_file(
        folder_ / "meta.json",
        R"({"model": "M", "engine_kwargs": {"max_num_seqs": 64, "max_model_len": null, "tensor_parallel_size": 2},
                   "kv_cache": {"num_gpu_blocks": 99}, "gpu": "Some GPU, 96 GB"})");
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_ = fs::path(testing::TempDir()) / "vllm_run_test", folder_ = root_ / "run";
};

TEST_F(VllmRunFolder, is_read_in_order_of_arrival_with_times_by_id) {
  write_file(folder_ / "requests.csv", std::string(header) + "0,40,3,2.0,2.1,2.5,3.0\n1,20,2,1.0,1.1,1.2,1.3\n");
  write_file(root_ / "workload_x.csv",
             "request_id,arrival_s,input_tokens,output_tokens,prefix_block_ids_16\n0,1,40,3,7 8\n1,2,20,2,7\n");
  const VllmRun run = read_vllm_run(folder_);
  EXPECT_EQ(run.device, "Some GPU");
  EXPECT_EQ(run.flags.max_num_seqs, 64);
  EXPECT_EQ(run.plan.tensor, 2);
  EXPECT_EQ(run.num_gpu_blocks, 99);
  ASSERT_EQ(run.requests.size(), 2U);
  EXPECT_EQ(run.requests[0].id, 1);
  EXPECT_EQ(run.requests[1].prefix_blocks, (std::vector<int64_t>{7, 8}));
  EXPECT_DOUBLE_EQ(run.times[0].ttft_s(), 0.4);
  EXPECT_DOUBLE_EQ(run.times[0].e2e_s(), 0.9);
  EXPECT_DOUBLE_EQ(run.end_s(), 3);
}

TEST_F(VllmRunFolder, schedules_as_its_release_does_or_as_its_arguments_say) {
  write_file(folder_ / "requests.csv", std::string(header) + "0,40,3,2.0,2.1,2.5,3.0\n");
  const auto read = [&](const std::string& arguments, const std::string& more) {
    write_file(folder_ / "meta.json",
               R"({"model": "M", "gpu": "G", "engine_kwargs": {)" + arguments + "}" + more + "}");
    return read_vllm_run(folder_);
  };
  EXPECT_EQ(read("", "").scheduling.async_scheduling, true) << "0.19 where nothing is said";
  EXPECT_EQ(read("", "").flags.engine, "vllm-0.19");
  const VllmRun old = read(R"("async_scheduling": null)", R"(, "vllm_version": "0.11.0")");
  EXPECT_EQ(old.scheduling.async_scheduling, false);
  EXPECT_EQ(old.stack, "vllm-0.11");
  EXPECT_EQ(read(R"("async_scheduling": true)", R"(, "vllm_version": "0.11.0")").scheduling.async_scheduling, true);
  EXPECT_EQ(read("", R"(, "vllm_version": "0.21.1")").flags.engine, "vllm-0.21.1");
  EXPECT_EQ(read(R"("long_prefill_token_threshold": 512)", "").scheduling.long_prefill_token_threshold, 512);
  const std::string drafts = R"("speculative_config": {"method": "ngram", "num_speculative_tokens": 3})";
  EXPECT_EQ(read(drafts, R"(, "acceptance_length": 2)").speculation->num_speculative_tokens, 3);
  EXPECT_THROW(read(drafts, ""), InputError) << "how many were accepted is not said";
  EXPECT_THROW(read(drafts, R"(, "acceptance_length": 5)"), InputError);
  EXPECT_THROW(read(R"("tensor_paralel_size": 2)", ""), InputError);
}

TEST_F(VllmRunFolder, has_prefix_blocks_of_the_workloads_size) {
  write_file(folder_ / "requests.csv", std::string(header) + "0,1500,3,2.0,2.1,2.5,3.0\n");
  for (const auto& [column, tokens] : {std::pair("prefix_block_ids_16", 16), {"block_ids_512", 512}}) {
    write_file(root_ / "workload_x.csv",
               std::string("request_id,arrival_s,input_tokens,output_tokens,") + column + "\n0,1,1500,3,7 8\n");
    EXPECT_EQ(read_vllm_run(folder_).requests[0].prefix_block_tokens, tokens);
  }
}

TEST_F(VllmRunFolder, shares_no_prefix_without_a_workload_beside_it) {
  write_file(folder_ / "requests.csv", std::string(header) + "0,40,3,2.0,2.1,2.5,3.0\n");
  EXPECT_TRUE(read_vllm_run(folder_).requests[0].prefix_blocks.empty());
}

TEST_F(VllmRunFolder, without_requests_or_with_a_broken_row_is_refused) {
  write_file(folder_ / "requests.csv", header);
  EXPECT_THROW(read_vllm_run(folder_), InputError);
  write_file(folder_ / "requests.csv", std::string(header) + "0,40,3,2.0,-1,2.5,3.0\n");
  EXPECT_THROW(read_vllm_run(folder_), InputError);
}

}  // namespace foretoken::vllm_run_test
