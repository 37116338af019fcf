// What every command promises: --json prints one document and nothing else, text fits 100 columns, and the same command
// prints the same bytes.
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "base/json.h"
#include "run.h"

namespace foretoken::output_contract_test {

const std::vector<std::string>& commands() {
  static const std::vector<std::string> lines = {
      "plan serve --model Llama-3.1-8B --hardware h100_sxm:1 --slo ttft:500,tpot:50 --engines vllm --max-num-seqs 16 "
      "--max-num-batched-tokens 0 -pp 1 --most-simulated 2 --finalists 1",
      "devices",
      "devices h100_sxm",
      "devices hgx_h100",
      "devices h100_ib_rail",
      "devices tpu_v5e",
      "models",
      "models Llama-3.1-8B",
      "models DeepSeek-V3",
      "kernel gemm --device h100_sxm --m 128 --n 4096 --k 4096",
      "kernel gemm --device h200_sxm --m 4m --n 8192 --k 8192",
      "kernel moe --device rtx_3090 --tokens 64 --hidden 4096 --inter 1024 --topk 8 --experts 128 --dtype int4_wo",
      "kernel attention_prefill --device gb200 --batch 1 --heads 32 --kv-heads 8 --q-len 4096 --kv-len 4096",
      "kernel norm --device h200_sxm --rows 4096 --width 8192",
      "kernel conv --device a100_sxm --in-channels 64 --out-channels 64 --height 56 --width 56 --kernel-h 3 "
      "--kernel-w 3",
      "step --model Llama-3.1-8B --device h100_sxm --phase prefill --input-len 512",
      "step --model Mixtral-8x7B-v0.1 --device h100_sxm --phase decode --batch 8 --context-len 512 -tp 2 --roofline",
      "step --model Llama-3.1-8B --device h100_sxm --phase train --input-len 512 -pp 2",
      "plan train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 --global-batch-size 32",
      "plan accel --arch eyeriss_v1 --conv 16x32x14x14x3 --evaluations 12 --tries 100 --final-tries 500 --compare",
      "train --model Llama-3.1-8B --cluster h100_ib_rail --devices 16 -tp 2 -pp 2 --global-batch-size 32 "
      "--train-tokens 1T",
      "rlhf --model Llama-3.1-8B --cluster h100_ib_rail --devices 16 --sharding parameters --global-batch-size 32",
      "serve --model Llama-3.1-8B --device h100_sxm --num-prompts 20 --request-rate 4 --goodput ttft:500",
      "serve --model Llama-3.1-8B --device h100_sxm --num-prompts 20 --request-rate 4 --prefill-pool count=1 "
      "--decode-pool "
      "count=1",
      "speculate --model Llama-3.1-8B --device h100_sxm --batch-sizes 1:8 --speculative-config "
      "'{\"method\": \"ngram\", \"num_speculative_tokens\": 3, \"acceptance_rate\": 0.5}'",
      "systolic --array 16x16 --gemm 64x64x64",
      "systolic --array 16x16 --network alexnet --cores 8",
      "systolic --chip tpu_v3 --network resnet50",
      "dataflow --network alexnet --l1 512",
      "dataflow --conv 16x32x14x14x3",
      "chip --chip eyeriss_v1 --network vgg16 --batch 3",
      "chip --nvdla 2048,512,20 --network mobilenet_v2",
      "check data",
  };
  return lines;
}

// What a command printed when it was first asked.
const Outcome& text_of(const std::string& line) {
  static std::map<std::string, Outcome> known;
  const auto [entry, is_new] = known.try_emplace(line);
  if (is_new) entry->second = run_foretoken(line);
  return entry->second;
}

TEST(OutputContract, json_is_one_document_and_nothing_else) {
  for (const std::string& line : commands()) {
    const Outcome run = run_foretoken(line + " --json");
    EXPECT_EQ(run.status, 0) << line << "\n" << run.err;
    EXPECT_EQ(run.err, "") << line;
    EXPECT_NO_THROW(parse_json(run.out, line)) << line;
  }
}

TEST(OutputContract, text_fits_100_columns) {
  for (const std::string& line : commands()) {
    const Outcome& run = text_of(line);
    EXPECT_EQ(run.status, 0) << line << "\n" << run.err;
    std::istringstream lines(run.out);
    for (std::string text; std::getline(lines, text);) EXPECT_LE(text.size(), 100u) << line << "\n" << text;
  }
}

TEST(OutputContract, the_same_command_prints_the_same_bytes) {
  for (const std::string& line : commands()) EXPECT_EQ(run_foretoken(line).out, text_of(line).out) << line;
}

TEST(OutputContract, help_succeeds_everywhere_and_names_json) {
  EXPECT_NE(run_foretoken("--help").out.find("--json"), std::string::npos);
  for (const std::string command :
       {"demo", "devices", "models", "kernel", "kernel gemm", "step", "train", "rlhf", "plan", "plan serve",
        "plan train", "plan accel", "validate", "fit", "check", "systolic", "dataflow", "chip"}) {
    const Outcome run = run_foretoken(command + " --help");
    EXPECT_EQ(run.status, 0) << command;
    EXPECT_NE(run.out.find("Usage"), std::string::npos) << command;
  }
}

// 0 an answer, 3 an answer that says no (in full; see verdict_test.cpp), 2 wrong input: nothing on standard output.
TEST(OutputContract, the_exit_status_tells_an_answer_from_a_no_and_from_wrong_input) {
  const std::string serve = "serve --num-prompts 2 --random-output-len 4 --device h100_sxm --model ";
  EXPECT_EQ(run_foretoken(serve + "Llama-3.1-8B").status, 0);
  const Outcome no = run_foretoken(serve + "Llama-3.1-70B --json");
  EXPECT_EQ(no.status, 3);
  EXPECT_EQ(no.err, "");
  EXPECT_NE(parse_json(no.out, "serve").find("failure"), nullptr);
  const Outcome wrong = run_foretoken(serve + "Llama-9 --json");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.out, "");
}

TEST(OutputContract, an_estimate_lies_in_its_interval) {
  const Outcome run =
      run_foretoken("step --model Llama-3.1-70B --device h100_sxm -tp 8 --batch 64 --context-len 2048 --json");
  const Json document = parse_json(run.out, "step");
  const JsonView seconds = JsonView(document, "step").at("seconds");
  EXPECT_LE(seconds.at("low").number(), seconds.at("value").number());
  EXPECT_GE(seconds.at("high").number(), seconds.at("value").number());
}

}  // namespace foretoken::output_contract_test
