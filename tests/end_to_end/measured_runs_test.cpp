// foretoken validate serving --run: a measured run is simulated as it was laid out, or refused by name.
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/json.h"
#include "command_test.h"

namespace foretoken::measured_runs_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class MeasuredRuns : public CommandTest {
 protected:
  // One prompt of 100 tokens with 11 of output, or several at once.
  std::string run_folder(const std::string& model, const std::string& kwargs, const std::string& more = "",
                         int requests = 1) const {
    std::string rows = "request_id,input_tokens,output_tokens,arrival_client_s,queued_s,first_token_s,last_token_s\n";
    for (int i = 0; i < requests; ++i) rows += std::to_string(i) + ",100,11,0,0,0.05,0.15\n";
    write("run/meta.json", R"({"model": ")" + model + R"(", "engine_kwargs": {"max_model_len": 4096)" + kwargs +
                               R"(}, "gpu": "rtx_pro_6000_server")" + more + "}");
    write("run/requests.csv", rows);
    return "validate serving --run " + path("run");
  }
  std::string tables(const std::string& folder, const std::string& moe = "") const {
    write(folder + "/dense.csv",
          "layer,tokens,time_us\nembedding,1,1\nembedding,100,1\nqkv_proj,1,10\nqkv_proj,100,10\n"
          "gate_up_proj,1,20\ngate_up_proj,100,20\n");
    write(folder + "/per_sequence.csv", "layer,sequences,time_us\nlm_head,1,50\nlm_head,100,50\n");
    write(folder + "/attention.csv",
          "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,1,0,4\n0,0,1,1000,4\n0,0,9,0,4\n0,0,9,1000,4\n"
          "100,0,0,0,30\n100,0,1,0,30\n100,0,1,1000,30\n");
    if (!moe.empty()) write(folder + "/moe.csv", moe);
    return " --op-tables " + path("tables");
  }
  double tpot_ms(const std::string& command) const {
    const Outcome run = run_foretoken(command + " --out " + path("rows.csv"));
    EXPECT_EQ(run.status, 0) << run.err;
    CsvReader rows{std::filesystem::path(path("rows.csv"))};
    while (rows.next()) {
      if (rows.cell(rows.column("metric")) == "tpot_ms") return rows.number(rows.column("predicted"));
    }
    return 0;
  }
  static std::string notes(const std::string& command) {
    const Outcome run = run_foretoken(command + " --json");
    EXPECT_EQ(run.status, 0) << run.err;
    std::string all;
    const Json json = parse_json(run.out, "answer");
    for (const Json& note : json.find("notes")->items()) all += note.string() + "\n";
    return all;
  }
};

constexpr const char* one_expert_time =
    "tokens,activated_experts,time_us\n1,8,100\n1,64,100\n128,8,100\n128,64,100\n128,128,100\n";

TEST_F(MeasuredRuns, use_every_rank_that_the_run_had) {
  const std::string experts = tables("tables/tp1", one_expert_time);
  EXPECT_THAT(
      notes(run_folder("Qwen3-30B-A3B", R"(, "data_parallel_size": 2, "enable_expert_parallel": true)", "", 4) +
            experts),
      AllOf(HasSubstr("2 GPUs: tensor 1, pipeline 1, data 2, expert 2"), HasSubstr("2 data-parallel ranks share")));
  EXPECT_THAT(notes(run_folder("Llama-3.1-8B", R"(, "data_parallel_size": 2)", "", 4) + experts),
              HasSubstr("2 data-parallel ranks step on their own"));
}

TEST_F(MeasuredRuns, share_the_recorded_blocks_among_data_parallel_ranks) {
  const std::string experts = tables("tables/tp1");
  EXPECT_THAT(
      notes(run_folder("Llama-3.1-8B", R"(, "data_parallel_size": 2)", R"(, "kv_cache": {"num_gpu_blocks": 2000})") +
            experts),
      HasSubstr("1000 KV blocks (given), of each"));
}

TEST_F(MeasuredRuns, have_the_cache_format_and_memory_share_that_they_give) {
  const std::string steps = tables("tables/tp1");
  const auto blocks = [&](const std::string& kwargs) {
    const std::string all = notes(run_folder("Llama-3.1-8B", kwargs) + steps);
    const size_t end = all.find(" KV blocks");
    const size_t begin = all.rfind(' ', end - 1);
    return std::stod(all.substr(begin, end - begin));
  };
  const double usual = blocks("");
  EXPECT_NEAR(blocks(R"(, "kv_cache_dtype": "fp8")") / usual, 2, 0.05);
  EXPECT_NEAR(blocks(R"(, "kv_cache_dtype": "auto", "gpu_memory_utilization": 0.9)") / usual, 1, 0.05);
  EXPECT_LT(blocks(R"(, "gpu_memory_utilization": 0.5)"), 0.6 * usual);
}

TEST_F(MeasuredRuns, draft_and_launch_as_the_run_says) {
  const auto of = [&](const std::string& kwargs, const std::string& more = "") {
    return tpot_ms(run_folder("Llama-3.1-8B", kwargs, more));
  };
  const std::string drafts =
      R"(, "speculative_config": {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4)";
  const double alone = of("");
  const double drafted = of(drafts + R"(, "synthetic_acceptance_length": 2.5})");
  EXPECT_LT(drafted, 0.6 * alone);
  EXPECT_EQ(of(drafts + "}", R"(, "acceptance_length": 2.5)"), drafted);
  EXPECT_GT(of("", R"(, "vllm_version": "0.10.2")"), alone) << "older than asynchronous scheduling";
  EXPECT_EQ(of("", R"(, "vllm_version": "0.19.0")"), alone);
}

TEST_F(MeasuredRuns, refuse_by_name_what_they_cannot_simulate) {
  const auto refused = [&](const std::string& model, const std::string& kwargs, const std::string& field) {
    expect_refused(run_foretoken(run_folder(model, kwargs)), field);
  };
  refused("Llama-3.1-8B", R"(, "speculative_config": {"method": "ngram", "num_speculative_tokens": 3})",
          "speculative_config");
  refused("Llama-3.1-8B", R"(, "decode_context_parallel_size": 2)", "decode_context_parallel_size");
  refused("Llama-3.1-8B", R"(, "kv_cache_dtype": "int3")", "kv_cache_dtype");
  refused("Llama-3.1-8B", R"(, "all2all_backend": "pigeon")", "all2all_backend");
  refused("Llama-3.1-8B", R"(, "quantization": "pebbles")", "quantization");
  refused("Llama-3.1-8B", R"(, "enable_expert_parallel": true, "tensor_parallel_size": 2)", "enable_expert_parallel");
  refused("Qwen3-30B-A3B", R"(, "data_parallel_size": 2)", "enable_expert_parallel");
  refused("Llama-3.1-8B", R"(, "new_switch": true)", "new_switch");
  refused("Llama-3.1-8B", R"(, "enable_prefix_cachin": true)", "did you mean enable_prefix_caching?");
  refused("Llama-3.1-8B", R"(, "enable_lora": true)", "enable_lora");
  EXPECT_THAT(
      notes(run_folder("Llama-3.1-8B", R"(, "attention_backend": "FLASH_ATTN", "seed": 42, "lora_slots": 0)") +
            tables("tables/tp1")),
      AllOf(HasSubstr("engine_kwargs.attention_backend was not used"), Not(HasSubstr("seed")), Not(HasSubstr("lora"))));
}

// 32 layers with two all-reduces and one after the embedding, two hops each; one hop for the logits.
TEST_F(MeasuredRuns, add_communication_over_the_given_link_to_tables_of_one_rank) {
  const std::string steps = tables("tables/tp2");
  const auto with_link = [&](const std::string& link) {
    return run_folder("Llama-3.1-8B", R"(, "tensor_parallel_size": 2)", R"(, "interconnect_given": )" + link) + steps;
  };
  const double still = tpot_ms(with_link(R"({"bandwidth_gb_s": 100000, "latency_us": 0})"));
  constexpr double hops = (2 * 32 + 1) * 2 + 1;
  EXPECT_NEAR(tpot_ms(with_link(R"({"bandwidth_gb_s": 100000, "latency_us": 10})")) - still, hops * 0.01, 0.001);
  EXPECT_NEAR(tpot_ms(with_link(R"({"link_bw": 100000, "link_latency": 10000})")) - still, hops * 0.01, 0.001);
  EXPECT_NEAR(tpot_ms(with_link(R"("PCIe, 100000 GB/s and 10 us")")) - still, hops * 0.01, 0.001);
  // One token of 4096 bf16 numbers, half of it twice around; all logits of the other half.
  const double sent = 65 * 8192.0 + 128256 / 2 * 2;
  EXPECT_NEAR(tpot_ms(with_link(R"({"bandwidth_gb_s": 1, "latency_us": 0})")) - still, sent / 1e9 * 1e3, 0.01);
  EXPECT_THAT(notes(with_link(R"({"bandwidth_gb_s": 15, "latency_us": 10})")),
              HasSubstr("rings over interconnect_given: 15 GB/s and 10 us"));
  EXPECT_THAT(notes(with_link(R"("a good cable")")), HasSubstr("interconnect_given was not used"));
}

TEST_F(MeasuredRuns, have_communication_without_a_given_link_too) {
  const std::string steps = tables("tables/tp2");
  const std::string two = R"(, "tensor_parallel_size": 2)";
  const double still = tpot_ms(
      run_folder("Llama-3.1-8B", two, R"(, "interconnect_given": {"bandwidth_gb_s": 100000, "latency_us": 0})") +
      steps);
  EXPECT_GT(tpot_ms(run_folder("Llama-3.1-8B", two) + steps), still + 0.3);
}

TEST_F(MeasuredRuns, read_the_experts_of_tables_or_refuse_tables_without_them) {
  const std::string none = tables("tables/tp1");
  expect_refused(run_foretoken(run_folder("Qwen3-30B-A3B", "") + none), "moe.csv");
  // 48 layers: qkv and attention of each, experts instead of gate and up; embedding and head.
  const double alone = 48 * (10 + 4) + 1 + 50;
  tables("tables/tp1", one_expert_time);
  EXPECT_NEAR(tpot_ms(run_folder("Qwen3-30B-A3B", "") + none), (alone + 48 * 100) / 1e3, 0.01);
  // Tables of a rank whose experts are cut do not speak for experts that are spread, those of a single rank do.
  tables("tables/tp2");
  expect_refused(run_foretoken(run_folder("Qwen3-30B-A3B", R"(, "tensor_parallel_size": 2)") + none), "moe.csv");
  const std::string no_link = R"(, "interconnect_given": {"bandwidth_gb_s": 100000, "latency_us": 0})";
  EXPECT_NEAR(
      tpot_ms(run_folder("Qwen3-30B-A3B", R"(, "tensor_parallel_size": 2, "enable_expert_parallel": true)", no_link) +
              none),
      (alone + 48 * 100) / 1e3, 0.01);
}

TEST_F(MeasuredRuns, of_serve_refuse_tables_without_experts) {
  const std::string command =
      "serve --model Qwen3-30B-A3B --device rtx_pro_6000_server --num-prompts 2 --random-input-len 90 "
      "--random-output-len 4" +
      tables("tables");
  expect_refused(run_foretoken(command), "moe.csv");
}

}  // namespace foretoken::measured_runs_test
