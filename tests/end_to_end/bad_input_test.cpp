// Wrong input ends with exit status 2 and a message a person can act on; never with a crash or a made-up answer.
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "command_test.h"

namespace foretoken::bad_input_test {

namespace fs = std::filesystem;

class BadInput : public CommandTest {
 protected:
  static Outcome step_with_model(const std::string& model) {
    return run_foretoken({"step", "--model", model, "--device", "h100_sxm", "--batch", "1", "--context-len", "128"});
  }
};

const char* const small_llama =
    R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 2,
        "num_attention_heads": 8, "vocab_size": 1000, "max_position_embeddings": 2048})";

std::string small_llama_with(const std::string& key, const std::string& value) {
  std::string text = small_llama;
  const size_t at = text.find("\"" + key + "\": ");
  const size_t begin = at + key.size() + 4;
  return text.replace(begin, text.find_first_of(",}", begin) - begin, value);
}

TEST_F(BadInput, a_calibration_that_cannot_be_read_is_found_by_check_data) {
  write("library/kernels/calibrations/gemm.json", R"({"kind": "form calibration", "version": 99})");
  const Outcome run = run_foretoken({"check", "data", "--dir", path("library")});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.out.find("gemm.json"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("newer foretoken"), std::string::npos) << run.out;
}

TEST_F(BadInput, a_trace_that_shows_no_layers_makes_no_stack) {
  const auto import = [&](const std::string& text) {
    const std::string trace = write("trace.json", text);
    return run_foretoken({"import", "profile", trace, "--as-stack", "mine", "--out", path("mine.json")});
  };
  expect_refused(import("{"), "trace.json");
  expect_refused(import(R"({"traceEvents": []})"), "ProfilerActivity.CUDA");
  expect_refused(import(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 0, "dur": 1}]})"),
                 "ProfilerActivity.CPU");
  EXPECT_FALSE(fs::exists(path("mine.json")));
}

TEST_F(BadInput, what_a_search_is_offered_says_why_it_is_refused) {
  const std::string plan = "plan serve --quick --model Llama-3.1-8B --traffic chat --hardware ";
  expect_refused(run_foretoken(plan + "1xepyc_9654"), "a device whose memory size is known (memory_gb in its file)");
  expect_refused(run_foretoken(plan + "1xh100 --price 48/day"), "a price per hour: write $2/h");
  expect_refused(run_foretoken(plan + "1xh100 --hardware 1xl4 --price 2/h"), "--hardware offers several");
  expect_refused(run_foretoken("step --model Llama-3.1-8B --device 8xH100"), "--tensor-parallel-size 8");
  expect_refused(run_foretoken("collective --cluster h100_ib_rail --bytes 1K,1M"), "--sizes 1K:1G takes a range");
}

TEST_F(BadInput, names_are_shown_as_they_were_typed) {
  expect_refused(run_foretoken("observe --url localhost:1 --num-prompts 1"), "--url: localhost:1 expected");
  expect_refused(run_foretoken("plan serve --model Llama-3.1-8B --slo ttft:500 --hardware rtx4090:"),
                 "--hardware: rtx4090: expected");
  expect_refused(run_foretoken("help"), "did you mean --help?");
}

TEST_F(BadInput, a_sound_config_is_accepted) {
  EXPECT_EQ(step_with_model(write("config.json", small_llama)).status, 0);
  EXPECT_EQ(step_with_model(folder_.string()).status, 0) << "a directory that holds a config.json";
}

TEST_F(BadInput, a_missing_file_is_named) {
  expect_refused(step_with_model(path("nowhere/config.json")), "nowhere/config.json");
}

TEST_F(BadInput, a_wrong_type_is_shown_with_its_place) {
  expect_refused(step_with_model(write("c.json", small_llama_with("hidden_size", "\"big\""))), "hidden_size = \"big\"");
}

TEST_F(BadInput, negative_zero_and_absurd_sizes_are_refused) {
  for (const std::string value :
       {"-512", "0", "1e30", "1000000000000000000000000000000", "4096.5", "[1]", "null", "true"}) {
    expect_refused(step_with_model(write("c.json", small_llama_with("hidden_size", value))), "hidden_size");
  }
}

TEST_F(BadInput, nan_is_not_json) {
  expect_refused(step_with_model(write("c.json", small_llama_with("hidden_size", "NaN"))), "valid JSON");
}

TEST_F(BadInput, an_empty_file_and_a_truncated_one_are_refused) {
  expect_refused(step_with_model(write("c.json", "")), "empty");
  expect_refused(run_foretoken("study " + write("study.yaml", "")), "an empty file");
  expect_refused(run_foretoken("import run " + write("results.json", "")), "an empty file");
  expect_refused(run_foretoken("train --device h100_sxm --config " + write("train.yaml", "")), "an empty file");
  expect_refused(run_foretoken("port --to h200_sxm " + write("trace.json", "")), "empty");
  expect_refused(step_with_model(write("c.json", std::string(small_llama).substr(0, 60))), "valid JSON");
}

TEST_F(BadInput, deep_nesting_is_refused) {
  expect_refused(step_with_model(write("c.json", std::string(1'000'000, '['))), "nested levels");
}

TEST_F(BadInput, a_config_of_two_gigabytes_is_refused_without_reading_it) {
  const std::string file = write("huge.json", "{");
  fs::resize_file(file, 2'000'000'000);  // sparse: takes no room
  expect_refused(step_with_model(file), "2000000000 bytes");
}

TEST_F(BadInput, a_directory_without_a_config_is_refused) {
  fs::create_directories(folder_ / "empty");
  expect_refused(step_with_model(path("empty")), "config.json");
}

TEST_F(BadInput, an_unknown_family_lists_what_it_lacks) {
  expect_refused(step_with_model(write("c.json", R"({"model_type": "lama", "hidden_size": 512})")),
                 "num_hidden_layers");
}

TEST_F(BadInput, an_unknown_model_device_flag_or_command_suggests_the_nearest) {
  expect_refused(step_with_model("Llama-3.1-8C"), "did you mean");
  expect_refused(run_foretoken("step --model Llama-3.1-8B --device h100_sxn"), "h100_sxm");
  expect_refused(run_foretoken("step --modle Llama-3.1-8B --device h100_sxm"), "did you mean --model");
  expect_refused(run_foretoken("stepp"), "did you mean step");
  expect_refused(run_foretoken("kernel gem --device h100_sxm"), "did you mean gemm");
  expect_refused(run_foretoken("step --model Llama-3.1-8B --device h100_sxm --phase decod"), "did you mean decode");
  expect_refused(run_foretoken("step --model Llama-3.1-8B --device h100_sxm -q fp9"), "did you mean fp8");
}

TEST_F(BadInput, a_missing_flag_is_named) {
  expect_refused(run_foretoken("step --device h100_sxm"), "--model");
  expect_refused(run_foretoken("kernel gemm --device h100_sxm --n 8 --k 8"), "--m");
  expect_refused(run_foretoken("kernel"), "gemm");
}

TEST_F(BadInput, a_flag_out_of_range_says_what_is_allowed) {
  for (const std::string batch : {"0", "-1", "nan", "1e30", "2.5", "many", ""}) {
    expect_refused(run_foretoken({"step", "--model", "Llama-3.1-8B", "--device", "h100_sxm", "--batch", batch}),
                   "--batch");
  }
}

TEST_F(BadInput, a_plan_that_does_not_fit_the_model_is_refused) {
  expect_refused(run_foretoken("step --model Llama-3.1-8B --device h100_sxm -tp 7"), "--tensor-parallel-size");
  expect_refused(run_foretoken("step --model Llama-3.1-8B --device h100_sxm -pp 1000"), "--pipeline-parallel-size");
}

TEST_F(BadInput, device_files_are_checked) {
  const auto with_device = [](const std::string& file) {
    return run_foretoken({"kernel", "gemm", "--device", file, "--m", "1", "--n", "1", "--k", "1"});
  };
  expect_refused(with_device(path("nothing.json")), "nothing.json");
  expect_refused(with_device(write("d.json", "{}")), "d.json");
  expect_refused(with_device(write("d.json", "[1,2")), "valid JSON");
  expect_refused(with_device(folder_.string() + "/"), folder_.filename().string());
}

TEST_F(BadInput, measurement_folders_are_checked) {
  const auto validate = [&] { return run_foretoken({"validate", "kernels", "--data", folder_.string()}); };
  expect_refused(run_foretoken({"validate", "kernels", "--data", path("nowhere")}), "nowhere");
  expect_refused(validate(), folder_.filename().string());
  write("h100_sxm/gemm.csv", "");
  expect_refused(validate(), "header line");
  write("h100_sxm/gemm.csv", "kernel,dtype,m,n,k\n");
  expect_refused(validate(), "latency_us");
  write("h100_sxm/gemm.csv", "kernel,dtype,m,n,k,latency_us\nx,bf16,1,2\n");
  expect_refused(validate(), "4 cells");
  write("h100_sxm/gemm.csv", "kernel,dtype,m,n,k,latency_us\nx,bf16,1,2,nan,3\n");
  expect_refused(validate(), "column k");
  write("h100_sxm/gemm.csv", "kernel,dtype,m,n,k,latency_us\nx,bf16,1,2,3,NaN\n");
  expect_refused(validate(), "latency_us");
}

TEST_F(BadInput, tables_of_collectives_are_checked) {
  const auto validate = [&] { return run_foretoken({"validate", "collectives", "--data", folder_.string()}); };
  expect_refused(run_foretoken({"validate", "collectives", "--data", path("nowhere.csv")}), "nowhere.csv");
  expect_refused(validate(), "a table of collectives");
  write("nccl.csv", "a,b\n1,2\n");
  expect_refused(validate(), "a table of collectives");
  const std::string header = "system,ccl,version,collective,dtype,gpus,bytes,latency_us\n";
  write("nccl.csv", header + "h100_sxm,nccl,2.27.3,all_reduce,half,0,1024,5\n");
  expect_refused(validate(), "column gpus");
  write("nccl.csv", header + "h100_sxm,nccl,2.27.3,all_reduce,half,8,1024,nan\n");
  expect_refused(validate(), "latency_us");
  write("nccl.csv", header + "h100_sxm,nccl,2.27.3,all_reduce,half,8,1024,16\nx100,nccl,2,all_reduce,half,8,1024,5\n");
  const Outcome skipped = validate();
  EXPECT_EQ(skipped.status, 0) << skipped.err;
  EXPECT_NE(skipped.out.find("skipped 1"), std::string::npos) << skipped.out;
  write("networks/nccl.json", "{}");
  expect_refused(
      run_foretoken({"validate", "collectives", "--data", path("nccl.csv"), "--calibration", path("networks")}),
      "nccl.json");
}

TEST_F(BadInput, a_truncated_gzip_is_refused) {
  std::string text = "kernel,dtype,m,n,k,latency_us\n";
  for (int i = 1; i < 2000; ++i)
    text += "x,bf16," + std::to_string(i) + "," + std::to_string(i * 7 % 911 + 1) + ",64,3.5\n";
  fs::create_directories(folder_ / "h100_sxm");
  const std::string file = path("h100_sxm/gemm.csv.gz");
  gzFile out = gzopen(file.c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  EXPECT_EQ(run_foretoken({"validate", "kernels", "--data", folder_.string()}).status, 0);
  fs::resize_file(file, fs::file_size(file) / 2);
  expect_refused(run_foretoken({"validate", "kernels", "--data", folder_.string()}), "ends too early");
}

TEST_F(BadInput, an_output_file_that_cannot_be_written_is_refused) {
  write("h100_sxm/gemm.csv", "kernel,dtype,m,n,k,latency_us\nx,bf16,1,2,3,4\n");
  expect_refused(
      run_foretoken({"validate", "kernels", "--data", folder_.string(), "--out", path("no/such/folder/x.csv")}),
      "existing folder");
}

TEST_F(BadInput, a_search_of_training_plans_that_finds_none_says_why) {
  const auto search = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plan",      "train",        "--model",   "Llama-3.1-405B",
                                          "--cluster", "h100_ib_rail", "--devices", "8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_foretoken(arguments);
  };
  const Outcome too_large = search({"--global-batch-size", "8"});
  EXPECT_EQ(too_large.status, 3) << "the question is fine, the answer is no";
  EXPECT_NE(too_large.out.find("The plan that needs the least memory"), std::string::npos) << too_large.out;
  expect_refused(search({"--global-batch-size", "8", "-tp", "3"}),
                 "no plan on 8 devices divides evenly with --global-batch-size 8");
  expect_refused(search({}), "--global-batch-size");
  expect_refused(search({"--global-batch-size", "8", "--recompute-num-layers", "3"}), "--recompute-num-layers");
}

TEST_F(BadInput, experts_that_do_not_divide_may_be_copied) {
  const std::string step = "step --model DeepSeek-R1 --device h100_sxm --batch 8 --context-len 100 ";
  expect_refused(run_foretoken(step + "-dp 72 -ep 72"), "set --num-redundant-experts to 32, because 288 experts");
  const Outcome copied = run_foretoken(step + "-dp 72 -ep 72 --num-redundant-experts 32");
  EXPECT_EQ(copied.status, 0) << copied.err;
}

// As a script writes it between two blanks.
TEST_F(BadInput, an_empty_word_is_shown_in_quotes) {
  const std::vector<std::string> line = {"serve", "--model", "Llama-3.1-8B", "--device", "h100_sxm", ""};
  expect_refused(run_foretoken(line), "foretoken serve: \"\" expected no further argument");
  expect_refused(run_foretoken(std::vector<std::string>{"plan", ""}), "foretoken plan: \"\" expected one of");
}

TEST_F(BadInput, devices_are_looked_at_before_lengths) {
  const Outcome run = run_foretoken("train --model Llama-3.1-8B --device h100_sxm --seq-length 8k --devices 8 -cp 3");
  expect_refused(run, "--devices: 8 expected a multiple of 3");
  EXPECT_EQ(run.err.find("nearest"), std::string::npos) << run.err;
  expect_refused(run_foretoken("train --model Llama-3.1-8B --device h100_sxm --seq-length 8k --devices 6 -cp 3"),
                 "nearest: 7998");
}

TEST_F(BadInput, a_megatron_line_without_a_vocabulary_says_which_argument_is_missing) {
  const std::string line =
      "python pretrain_gpt.py --num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 4096 "
      "--micro-batch-size 1 --global-batch-size 64 --use-flash-attn";
  const std::string machine = " --device h100_sxm --devices 8";
  const Outcome missing = run_foretoken("train --config '" + line + "'" + machine);
  expect_refused(missing, "its vocabulary is missing; add --vocab-size");
  EXPECT_EQ(missing.err.find("dropout"), std::string::npos) << missing.err;
  const Outcome complete = run_foretoken("train --config '" + line + " --vocab-size 32000'" + machine);
  EXPECT_EQ(complete.status, 0) << complete.err;
  EXPECT_EQ(complete.out.find("use-flash-attn"), std::string::npos) << complete.out;
}

TEST_F(BadInput, names_that_mean_something_else_are_understood) {
  expect_refused(run_foretoken("collective --cluster gb200_nvl72 --bytes 1M"),
                 "gb200_nvl72, which is a node expected a cluster");
  expect_refused(run_foretoken("collective --cluster gb200_nvl72 --bytes 1M"), "did you mean --node gb200_nvl72?");
  expect_refused(run_foretoken("profile gpu"), "did you mean cuda?");
  expect_refused(run_foretoken("kernel gemm --device h100_sxm --m 8 --n 8 --k 8 -q nvfp4"), "did you mean --dtype?");
  expect_refused(run_foretoken("train --model Llama-3.1-8B --device h100_sxm --devices 8 --precision nvfp4"),
                 "the formats that NVIDIA H100");
  const std::string speculate = "speculate --model Llama-3.1-8B --device h100_sxm ";
  expect_refused(
      run_foretoken(speculate + R"(--speculative-config '{"method": "eagel3", "num_speculative_tokens": 2}')"),
      "did you mean eagle3?");
  expect_refused(run_foretoken(speculate), "not given expected the draft method");
  const Outcome large = run_foretoken("collective --node hgx_h100 --op all_reduce --bytes 1T");
  EXPECT_EQ(large.status, 0) << large.err;
}

TEST_F(BadInput, one_file_of_any_kind_can_be_checked) {
  expect_refused(run_foretoken("check " + write("own.json", "{}")), "did you mean file ");
  expect_refused(run_foretoken("check file " + path("own.json")), "a file of no known kind");
  const auto accepted = [](const std::string& file, const std::string& kind) {
    const Outcome run = run_foretoken("check file " + file);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.out.find("no problems; it is a " + kind), std::string::npos) << run.out;
  };
  accepted(write("config.json", small_llama), "model config");
  expect_refused(run_foretoken("check file " + write("bad.json", small_llama_with("hidden_size", "\"x\""))),
                 "hidden_size");
  accepted(write("spec.json", R"({"command": "step", "model": "Llama-3.1-8B", "device": "h100_sxm"})"), "question");
  expect_refused(run_foretoken("check file " + write("spec.json", R"({"command": "step", "modle": "x"})")), "modle");
  accepted(FORETOKEN_SOURCE_DIR "/data/training/stacks/torchtitan.json", "training stack");
  accepted(FORETOKEN_SOURCE_DIR "/data/stacks/vllm.json", "stack");
}

TEST_F(BadInput, a_graph_of_no_sample_and_a_name_that_is_like_no_other_are_refused) {
  expect_refused(
      run_foretoken("edge --onnx " FORETOKEN_SOURCE_DIR "/data/edge/networks/mobilenet_v2.onnx --bind batch=0"),
      "--bind: 0");
  EXPECT_NE(run_foretoken("devices dgx_h100").out.find("hgx_h100"), std::string::npos) << "an alias of a node";
  const Outcome nothing_like_it = run_foretoken("devices nope");
  EXPECT_EQ(nothing_like_it.status, 2);
  EXPECT_EQ(nothing_like_it.err.find("did you mean"), std::string::npos) << nothing_like_it.err;
}

TEST_F(BadInput, few_timings_are_said_and_none_are_refused) {
  const std::string header = "ops,latency_ms\n";
  const std::string adapt = "adapt --space nasbench201 --advise 1 --samples ";
  expect_refused(run_foretoken(adapt + write("none.csv", header)),
                 "a header without rows expected a row for each timed architecture");
  const Outcome few = run_foretoken(adapt + write("two.csv", header + "333333,25.60\n210341,9.61\n"));
  EXPECT_EQ(few.status, 0) << few.err;
  EXPECT_NE(in_one_line(few.out).find("Only 2 timings were given"), std::string::npos) << few.out;
}

TEST_F(BadInput, names_in_braces_are_shown_as_they_were_written) {
  expect_refused(run_foretoken("serve --model Llama-3.1-8B --device h100_sxm --request-rate '{rate}'"), " {rate}");
  expect_refused(run_foretoken("step --model '{model}' --device h100_sxm"), " {model}");
  expect_refused(run_foretoken("step --spec " + write("spec.json", R"({"command": "step", "{modle}": 1})")), "{modle}");
  fs::create_directories(path("data/hardware/devices"));
  fs::create_directories(path("data/models"));
  write("data/hardware/devices/x.json", R"({"{max_model_len}": 1})");
  EXPECT_NE(run_foretoken("check data --dir " + path("data")).out.find("{max_model_len}"), std::string::npos);
  expect_refused(run_foretoken("serve --from 'vllm serve {model} --max-num-seqs {seats}' --device h100_sxm"),
                 "{seats}");
}

}  // namespace foretoken::bad_input_test
