// --from: what people start servers with asks the same as the flags of foretoken.
#include <cstdlib>
#include <filesystem>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/csv.h"
#include "base/json.h"
#include "command_test.h"

namespace foretoken::launch_line_end_to_end_test {

using testing::HasSubstr;

class LaunchLineCommand : public CommandTest {};

std::string without_launch_line(const std::string& text) {
  const Json answer = parse_json(text, "answer");
  Json rest = Json::object();
  for (const auto& [key, value] : answer.members()) {
    if (key != "launch_line") rest.set(key, value);
  }
  return rest.dump();
}

TEST_F(LaunchLineCommand, a_launch_line_serves_as_the_flags_do) {
  const std::string load = " --device h100_sxm --request-rate 2 --num-prompts 20 --no-intervals --json";
  const Outcome from = run_foretoken(
      "serve --from 'vllm serve meta-llama/Llama-3.1-8B-Instruct -tp 2 --max-num-seqs 8 --port 1 --odd'" + load);
  const Outcome flags = run_foretoken("serve --model meta-llama/Llama-3.1-8B-Instruct -tp 2 --max-num-seqs 8" + load);
  ASSERT_EQ(from.status, 0) << from.err;
  EXPECT_EQ(without_launch_line(from.out), without_launch_line(flags.out));
  const Json answer = parse_json(from.out, "answer");
  const JsonView read = JsonView(answer, "answer").at("launch_line");
  EXPECT_EQ(read.at("unknown").items().at(0).string(), "--odd");
  EXPECT_EQ(read.at("without_effect").items().at(0).string(), "--port");
}

TEST_F(LaunchLineCommand, a_file_and_typed_flags_go_together) {
  const std::string file = write("deployment.yaml", "model: Llama-3.1-8B\ntensor-parallel-size: 4\nmax-num-seqs: 16\n");
  const Outcome printed =
      run_foretoken("serve --from @" + file + " --device h100_sxm -tp 2 --request-rate 1 --print-spec");
  EXPECT_THAT(printed.out, HasSubstr("\"tensor_parallel_size\": 2")) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("\"max_num_seqs\": 16"));
  const Outcome step = run_foretoken("step --from @" + file + " --device h100_sxm");
  EXPECT_EQ(step.status, 0) << step.err;
  EXPECT_THAT(step.out, HasSubstr("read from the launch line: "));
}

TEST_F(LaunchLineCommand, the_file_of_a_plan_asks_about_the_layout_that_won) {
  const std::string question =
      "plan serve --model Llama-3.1-8B --hardware h100_sxm:2 --slo ttft:500,tpot:50 --engines vllm --quick -tp 2 "
      "--quantizations config --no-disaggregate --kv-cache-dtype fp8 --json ";
  for (const char* kind : {"kubernetes", "compose", "dynamo", "llm-d"}) {
    const std::string file = path(std::string(kind) + ".yaml");
    const Outcome plan = run_foretoken(question + "--launch " + kind + " --launch-out " + file);
    ASSERT_EQ(plan.status, 0) << plan.err;
    const Outcome asked = run_foretoken("serve --request-rate 1 --print-spec --from @" + file);
    ASSERT_EQ(asked.status, 0) << kind << asked.err;
    EXPECT_THAT(asked.out, HasSubstr("\"device\": \"h100_sxm\"")) << kind;
    EXPECT_THAT(asked.out, HasSubstr("\"tensor_parallel_size\": 2")) << kind;
    EXPECT_THAT(asked.out, HasSubstr("\"kv_cache_dtype\": \"fp8\"")) << kind;
    EXPECT_THAT(asked.out, HasSubstr("Llama-3.1-8B")) << kind;
  }
  EXPECT_THAT(run_foretoken(question + "--launch kubernetes").out, HasSubstr("kind: Deployment"));
  expect_refused(run_foretoken(question + "--launch-out " + path("file.yaml")), "--launch lines");
  expect_refused(run_foretoken(question + "--launch kubernetes --launch-out"), "expected a value after --launch-out");
  expect_refused(run_foretoken(question + "--time-limit 3"), "--quick");
  expect_refused(run_foretoken(question + "--launch nomad"), "kubernetes");
}

TEST_F(LaunchLineCommand, data_parallel_attention_divides_experts_where_the_model_has_some) {
  const auto read = [](const std::string& model, const std::string& more = "") {
    const Outcome run = run_foretoken(
        "step --device h100_sxm --batch 4 --context-len 100 --json --from 'python3 -m sglang.launch_server --tp 2 --dp "
        "2 --enable-dp-attention --model-path " +
        model + "'" + more);
    EXPECT_EQ(run.status, 0) << run.err;
    const Json answer = parse_json(run.out, "answer");
    return JsonView(answer, "answer").at("launch_line").at("fields").has("expert_parallel_size");
  };
  EXPECT_FALSE(read("meta-llama/Llama-3.1-8B-Instruct")) << "a dense model";
  EXPECT_TRUE(read("Qwen/Qwen3-30B-A3B"));
  EXPECT_TRUE(read("MODEL", " --model Qwen3-30B-A3B")) << "the model that was typed";
}

TEST_F(LaunchLineCommand, what_cannot_be_meant_is_refused) {
  expect_refused(run_foretoken("serve --from 'python train.py' --device h100_sxm"), "vllm serve MODEL");
  expect_refused(run_foretoken("serve --from '' --device h100_sxm"), "--from: empty");
  expect_refused(run_foretoken("serve --from @" + write("none.sh", "") + " --device h100_sxm"), "none.sh: empty");
  expect_refused(run_foretoken("kernel gemm --from 'vllm serve Llama-3.1-8B'"), "plan serve");
  expect_refused(run_foretoken("serve --from 'vllm serve Llama-3.1-8B -tp x' --device h100_sxm"), "whole number");
}

TEST_F(LaunchLineCommand, formats_given_at_load_are_simulated_and_others_need_a_quantized_checkpoint) {
  const auto step = [](const std::string& line) {
    return run_foretoken("step --device h100_sxm --batch 4 --context-len 100 --from '" + line + "'");
  };
  const Outcome loaded = step("vllm serve meta-llama/Llama-3.3-70B-Instruct --quantization bitsandbytes -tp 2");
  EXPECT_THAT(in_one_line(loaded.out), HasSubstr("quantization int4_wo")) << loaded.err;
  EXPECT_THAT(in_one_line(loaded.out), HasSubstr("bitsandbytes' own kernels are slower"));
  const std::string sglang = "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct ";
  EXPECT_THAT(in_one_line(step(sglang + "--torchao-config int4wo-128").out), HasSubstr("quantization int4_wo"));
  EXPECT_THAT(in_one_line(step(sglang + "--torchao-config int8dq").out), HasSubstr("quantization int8 "));
  for (const char* format : {"awq", "gptq_marlin", "compressed-tensors"}) {
    const std::string flag = std::string("--quantization ") + format;
    expect_refused(step("vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 2 " + flag), flag);
    expect_refused(step("vllm serve meta-llama/Llama-3.3-70B-Instruct -tp 2 " + flag), "is not quantized");
  }
  const Outcome quantized = step("vllm serve Qwen/Qwen2.5-7B-Instruct-AWQ --quantization awq");
  EXPECT_EQ(quantized.status, 0) << quantized.err;
  EXPECT_THAT(in_one_line(quantized.out), HasSubstr("--quantization awq (the checkpoint's own format is used)"));
}

TEST_F(LaunchLineCommand, says_which_entries_cover_a_release) {
  const std::string image = "docker run --gpus all vllm/vllm-openai:";
  const std::string flags = " --model meta-llama/Llama-3.1-8B-Instruct";
  const auto step = [&](const std::string& version) {
    return in_one_line(
        run_foretoken("step --device h100_sxm --batch 4 --context-len 100 --from '" + image + version + flags + "'")
            .out);
  };
  EXPECT_THAT(step("v0.12.0"), HasSubstr("vLLM 0.12.0 is simulated with the memory rules of engine vllm-0.19 and the "
                                         "stack that covers this release."));
  EXPECT_THAT(step("latest"), testing::Not(HasSubstr("memory rules of engine")));
  EXPECT_THAT(step("v0.31.0"), HasSubstr("vLLM 0.31.0 is newer than the runs that foretoken was fitted to"));
  EXPECT_THAT(step("v0.12.0"), testing::Not(HasSubstr("is newer")));
}

TEST_F(LaunchLineCommand, a_release_in_a_tag_is_the_engine_as_it_is_typed) {
  const std::string question = " --request-rate 1 --num-prompts 4 --device h100_sxm --json --no-intervals";
  const auto results = [&](const std::string& from) {
    const Outcome run = run_foretoken("serve " + from + question);
    EXPECT_EQ(run.status, 0) << run.err;
    const Json answer = parse_json(run.out, "answer");
    std::string kept;
    for (const auto& [key, value] : answer.members()) {
      if (key != "launch_line") kept += key + ": " + value.dump(0) + "\n";
    }
    return kept;
  };
  const std::string model = "meta-llama/Llama-3.1-8B-Instruct";
  const std::string vllm = results("--engine vllm-0.31.0 --model " + model);
  EXPECT_EQ(results("--from 'docker run vllm/vllm-openai:v0.31.0 --model " + model + "'"), vllm);
  EXPECT_THAT(vllm, HasSubstr("vLLM 0.31.0 is newer"));
  const std::string sglang = results("--engine sglang-0.7.0 --model " + model);
  EXPECT_EQ(results("--from 'docker run lmsysorg/sglang:v0.7.0-cu130 sglang serve --model-path " + model + "'"),
            sglang);
  EXPECT_THAT(sglang, HasSubstr("SGLang 0.7.0 is newer"));
  const std::string trtllm = results("--engine trtllm-1.4.0 --model " + model);
  EXPECT_EQ(results("--from 'docker run nvcr.io/nvidia/tensorrt-llm/release:1.4.0 trtllm-serve " + model + "'"),
            trtllm);
  EXPECT_THAT(trtllm, HasSubstr("TensorRT-LLM 1.4.0 is newer"));
}

TEST_F(LaunchLineCommand, async_scheduling_that_is_said_holds_for_every_release) {
  const std::string question =
      " --model meta-llama/Llama-3.1-8B-Instruct --device h100_sxm --request-rate 4 "
      "--num-prompts 60";
  const auto ttft = [&](const std::string& more) {
    const Outcome run = run_foretoken("serve --json --no-intervals " + more + question);
    EXPECT_EQ(run.status, 0) << run.err;
    const Json answer = parse_json(run.out, "answer");
    return JsonView(answer, "answer").at("mean_ttft_ms").number();
  };
  const auto from = [](const std::string& flag) {
    return "--from 'docker run vllm/vllm-openai:v0.10.2 --model meta-llama/Llama-3.1-8B-Instruct " + flag + "'";
  };
  const double plain = ttft("--engine vllm-0.10.2"), ahead = ttft("--engine vllm-0.10.2 --async-scheduling");
  EXPECT_NE(plain, ahead);
  EXPECT_EQ(ttft("--engine vllm-0.10.2 --no-async-scheduling"), plain);
  EXPECT_EQ(ttft("--engine vllm-0.19 --stack vllm-0.10 --async-scheduling"), ahead);
  EXPECT_EQ(ttft(from("")), plain);
  EXPECT_EQ(ttft(from("--async-scheduling")), ahead);
  EXPECT_EQ(ttft(from("--no-async-scheduling")), plain);
  EXPECT_EQ(ttft("--replica 'engine=vllm-0.10.2,async-scheduling'"), ahead);
  EXPECT_EQ(ttft("--engine vllm-0.19"), ttft("--engine vllm-0.19 --async-scheduling"));
  const auto written = [&](const std::string& more) {
    return run_foretoken("serve --print-spec --engine vllm-0.10.2 " + more + question).out;
  };
  EXPECT_THAT(written(""), testing::Not(HasSubstr("async_scheduling")));
  EXPECT_THAT(written("--async-scheduling"), HasSubstr("\"async_scheduling\": true"));
  EXPECT_THAT(written("--no-async-scheduling"), HasSubstr("\"async_scheduling\": false"));
  const auto again = [&](const std::string& more) {
    const Outcome run = run_foretoken("serve --json --no-intervals --spec " + write("question.json", written(more)));
    EXPECT_EQ(run.status, 0) << run.err;
    const Json answer = parse_json(run.out, "answer");
    return JsonView(answer, "answer").at("mean_ttft_ms").number();
  };
  EXPECT_EQ(again(""), plain);
  EXPECT_EQ(again("--async-scheduling"), ahead);
}

class LaunchLinesNeedsData : public CommandTest {};

// Lines that people really start servers with.
TEST_F(LaunchLinesNeedsData, each_that_a_cookbook_prints_is_served) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  CsvReader csv(std::filesystem::path(data) / "serving" / "cookbook.csv");
  const size_t gpu = csv.column("gpu"), line = csv.column("launch_command");
  std::set<std::pair<std::string, std::string>> published;
  while (csv.next()) {
    if (!csv.cell(line).empty()) published.emplace(csv.cell(gpu), csv.cell(line));
  }
  EXPECT_GT(published.size(), 50U);
  for (const auto& [device, text] : published) {
    const Outcome run = run_foretoken("serve --from @" + write("line.sh", text) + " --device '" + device +
                                      "' --request-rate 1 --num-prompts 1 --no-intervals --json");
    EXPECT_EQ(run.status, 0) << device << ": " << text << "\n" << run.err;
  }
}

}  // namespace foretoken::launch_line_end_to_end_test
