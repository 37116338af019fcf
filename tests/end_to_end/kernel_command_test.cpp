// What `foretoken kernel` says of one prediction, and the files it writes.
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/json.h"
#include "command_test.h"

namespace foretoken::kernel_command_test {

namespace fs = std::filesystem;

class KernelCommand : public testing::Test {
 protected:
  KernelCommand() : folder_(fs::temp_directory_path() / ("foretoken_kernel_command_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~KernelCommand() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return path(name);
  }
  static std::string content_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  static Json json_of(const std::string& line) {
    const Outcome run = run_foretoken(line + " --json");
    EXPECT_EQ(run.status, 0) << line << "\n" << run.err;
    return parse_json(run.out, line);
  }

  fs::path folder_;
};

void expect_mentions(const Outcome& run, const std::string& text) {
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find(text), std::string::npos) << "should mention: " << text << "\n" << run.out;
}

TEST_F(KernelCommand, weights_of_few_bits_are_multiplied_no_faster_than_whole_ones) {
  const auto seconds = [](const std::string& device, const std::string& rows, const std::string& format) {
    return json_of("kernel gemm --device " + device + " --n 57344 --k 8192 --m " + rows + " --dtype " + format)
        .find("estimate")
        ->find("seconds")
        ->find("value")
        ->number();
  };
  for (const std::string device : {"b200_sxm", "a100_sxm", "rtx_4090", "mi300x"}) {
    for (const std::string format : {"int4_wo", "int8_wo"}) {
      EXPECT_GE(seconds(device, "8192", format), 0.999 * seconds(device, "8192", "bf16")) << device << " " << format;
      EXPECT_LT(seconds(device, "8", format), seconds(device, "8", "bf16")) << device << " " << format;
    }
  }
}

// Measured for TensorRT-LLM's kernels alone, which lose less: the interval reaches from nothing to 1.4 times.
TEST_F(KernelCommand, large_multiplies_of_packed_weights_are_slower_where_marlin_was_not_measured) {
  const auto seconds = [](const std::string& device, const std::string& more) {
    const Json json = json_of("kernel gemm --device " + device + " --m 8192 --n 57344 --k 8192 --dtype " + more);
    const Json& estimate = *json.find("estimate")->find("seconds");
    return std::array{estimate.find("low")->number(), estimate.find("value")->number(),
                      estimate.find("high")->number()};
  };
  for (const std::string device : {"a100_sxm", "a10g", "h100_sxm"}) {
    const double wide = seconds(device, "bf16")[1];
    const auto [low, value, high] = seconds(device, "int8_wo");
    EXPECT_GE(value, 1.199 * wide) << device;
    EXPECT_LE(low, 1.001 * wide) << device;
    EXPECT_GE(high, 1.399 * wide) << device;
  }
  EXPECT_LT(seconds("a100_sxm", "int8_wo --kernel woq")[1], 1.1 * seconds("a100_sxm", "bf16")[1]);
}

TEST_F(KernelCommand, a_family_that_nobody_measured_there_is_derated_and_not_the_bare_roofline) {
  for (const std::string line :
       {"kernel linattn_mamba2 --device h200_sxm --phase decode --batch 1 --seq-len 1 --heads 16 --head-dim 64 "
        "--groups 1 --d-state 256",
        "kernel linattn_lightning --device b200_sxm --phase decode --batch 8 --seq-len 1 --k-heads 8 --v-heads 8"}) {
    const Json json = json_of(line);
    const Json& seconds = *json.find("estimate")->find("seconds");
    EXPECT_GT(seconds.find("value")->number(), 1e-6) << line;  // no kernel starts and ends in less
    EXPECT_LT(seconds.find("high")->number(), 20 * seconds.find("low")->number()) << line;
  }
}

TEST_F(KernelCommand, the_parts_and_the_correction_make_up_the_time) {
  for (const std::string line :
       {"kernel gemm --device h100_sxm --m 4096 --n 8192 --k 8192",
        "kernel moe --device b200_sxm --tokens 64 --hidden 4096 --inter 1024 --topk 8 --experts 128",
        "kernel attention_prefill --device l40s --batch 1 --heads 32 --kv-heads 8 --q-len 1024 --kv-len 1024",
        "kernel attention_decode --device rtx_3090 --batch 8 --heads 32 --kv-heads 8 --kv-len 4096",
        "kernel mla_decode --device gb200 --batch 64 --heads 16 --kv-len 4096",
        "kernel norm --device h200_sxm --rows 4096 --width 8192"}) {
    const Json json = json_of(line);
    double sum = 0;
    for (const Json& entry : json.find("explanation")->items()) {
      if (entry.find("kind")->string() == "part") sum += entry.find("value")->number();
    }
    const double value = json.find("estimate")->find("seconds")->find("value")->number();
    EXPECT_NEAR(sum * json.find("correction")->number(), value, 1e-9 * value) << line;
    EXPECT_FALSE(json.find("envelope")->items().empty()) << line;
  }
}

TEST_F(KernelCommand, says_where_engines_run_a_tuned_kernel_instead) {
  const std::string sizes = " --tokens 64 --hidden 4096 --inter 14336 --topk 2 --experts 8";
  expect_mentions(run_foretoken("kernel moe --device h200_sxm --dtype fp8" + sizes), "--dtype fp8_block");
  for (const std::string line : {"kernel moe --device h200_sxm --dtype fp8_block", "kernel moe --device h200_sxm",
                                 "kernel moe --device mi300x --dtype fp8"}) {
    const Outcome run = run_foretoken(line + sizes);
    EXPECT_EQ(run.out.find("without tuning"), std::string::npos) << run.out;
  }
}

TEST_F(KernelCommand, says_what_the_interval_rests_on_and_which_size_left_the_sweep) {
  const std::string sizes = " --n 8192 --k 8192";
  expect_mentions(run_foretoken("kernel gemm --device h100_sxm --m 4096" + sizes), "held-out rows");
  expect_mentions(run_foretoken("kernel gemm --device h100_sxm --tier cross --m 4096" + sizes), "withheld generations");
  expect_mentions(run_foretoken("kernel gemm --device gaudi3 --m 4096" + sizes), "roofline");
  expect_mentions(run_foretoken("kernel gemm --device mi300x --dtype fp8_block --m 4096" + sizes), "held-out rows");
  expect_mentions(run_foretoken("kernel gemm --device h100_sxm --m 4m" + sizes), "times the largest measured");
}

TEST_F(KernelCommand, sizes_take_suffixes) {
  const auto seconds = [](const std::string& m) {
    return json_of("kernel gemm --device h100_sxm --n 8192 --k 8192 --m " + m).find("estimate")->dump();
  };
  EXPECT_EQ(seconds("4k"), seconds("4000"));
  EXPECT_EQ(seconds("4K"), seconds("4096"));
  EXPECT_NE(seconds("4k"), seconds("4K"));
  for (const std::string wrong : {"4kk", "k", "0.5", "0k", "2g", "4 k"}) {
    expect_refused(run_foretoken({"kernel", "gemm", "--device", "h100_sxm", "--m", wrong, "--n", "8", "--k", "8"}),
                   "--m");
  }
}

TEST_F(KernelCommand, a_number_format_the_device_lacks_is_refused_or_says_what_it_falls_back_to) {
  const std::string gemm = " --m 64 --n 4096 --k 4096 --dtype ";
  expect_refused(run_foretoken("kernel gemm --device h100_sxm" + gemm + "nvfp4"), "or int4_wo");
  expect_refused(run_foretoken("kernel gemm --device a100_sxm" + gemm + "fp4"), "a100_sxm supports");
  expect_refused(run_foretoken("kernel gemm --device v100_sxm" + gemm + "fp8"), "v100_sxm supports (fp32, fp16)");
  expect_mentions(run_foretoken("kernel gemm --device h100_sxm" + gemm + "int4_wo"), "in bf16");
  expect_mentions(run_foretoken("kernel gemm --device v100_sxm" + gemm + "bf16"), "the fp16 rate");
  EXPECT_EQ(run_foretoken("kernel gemm --device h100_sxm" + gemm + "fp8").out.find("does not"), std::string::npos);
  expect_refused(run_foretoken("kernel gemm --device h100_sxm" + gemm + "fp9"), "did you mean fp8");
  expect_refused(run_foretoken("kernel gemm --device mi355x" + gemm + "nvfp4"), "w4a4_mxfp4");
  EXPECT_EQ(run_foretoken("kernel gemm --device mi355x" + gemm + "w4a4_mxfp4").status, 0);
  for (const std::string line : {"step --device mi355x --batch 1 --model nvidia/Llama-3.1-8B-Instruct-NVFP4",
                                 "image --model flux.1-dev --device mi355x --quantization nvfp4",
                                 "plan serve --quick --model Llama-3.1-8B --hardware 1xMI355X --traffic chat "
                                 "--quantizations nvfp4"}) {
    expect_refused(run_foretoken(line), "w4a4_mxfp4");
  }
  expect_refused(run_foretoken("train --model Llama-3.1-8B --device mi355x --devices 8 --precision nvfp4"), "bf16");
}

TEST_F(KernelCommand, unknown_devices_and_implementations_are_refused_with_the_nearest) {
  const std::string sizes = " --m 64 --n 4096 --k 4096";
  expect_refused(run_foretoken("kernel gemm --device h100_sxn" + sizes), "did you mean h100_sxm");
  expect_refused(run_foretoken("kernel gemm --device h100_sxm --kernel torch_liner" + sizes),
                 "did you mean torch_linear");
  expect_refused(run_foretoken("kernel norm --device h200_sxm --rows 64 --width 64 --kernel tritn"),
                 "did you mean triton");
  expect_mentions(run_foretoken("kernel gemm --device h100_sxm --kernel Torch_Linear" + sizes), "torch_linear");
}

TEST_F(KernelCommand, zero_and_absurd_sizes_are_refused) {
  for (const std::string m : {"0", "-4", "1e10", "nan", "1e30", "4.5", ""}) {
    expect_refused(run_foretoken({"kernel", "gemm", "--device", "h100_sxm", "--m", m, "--n", "8", "--k", "8"}), "--m");
  }
  expect_refused(run_foretoken("kernel gemm --device h100_sxm --m 1g --n 1g --k 1g"), "of data");
  expect_mentions(run_foretoken("kernel gemm --device h100_sxm --m 1m --n 1m --k 64"), "do not fit");
}

TEST_F(KernelCommand, plots_one_kernel_with_the_measured_rows_of_a_folder) {
  write("rows/h100_sxm/gemm.csv",
        "kernel,dtype,m,n,k,latency_us\ntorch_linear,bf16,64,4096,4096,17\ntorch_linear,bf16,4096,4096,4096,230\n");
  const Outcome run = run_foretoken({"kernel", "gemm", "--device", "h100_sxm", "--m", "128", "--n", "4096", "--k",
                                     "4096", "--data", path("rows"), "--plot", path("one.svg")});
  expect_mentions(run, "nearest measured rows");
  const std::string svg = content_of(path("one.svg"));
  EXPECT_TRUE(svg.starts_with("<svg"));
  EXPECT_NE(svg.find("measured (2 rows)"), std::string::npos);
  EXPECT_NE(svg.find("DRAM"), std::string::npos);
}

TEST_F(KernelCommand, plots_the_rows_of_a_csv) {
  const std::string csv = write("shapes.csv", "m,n,k\n1,4096,4096\n16,4096,4096\n4096,4096,4096\n");
  const Outcome run =
      run_foretoken({"kernel", "gemm", "--device", "l40s", "--csv", csv, "--plot", path("many.svg"), "--json"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(parse_json(run.out, "csv").find("rows")->items().size(), 3u);
  EXPECT_NE(content_of(path("many.svg")).find("3 kernels"), std::string::npos);
}

TEST_F(KernelCommand, sizes_beside_a_csv_and_a_csv_without_rows_to_price_are_refused) {
  const std::string csv = write("shapes.csv", "m,n,k\n1,4096,4096\n");
  expect_refused(run_foretoken({"kernel", "gemm", "--device", "h100_sxm", "--csv", csv, "--dtype", "fp8"}), "--dtype");
  expect_refused(run_foretoken({"kernel", "gemm", "--device", "h100_sxm", "--m", "1", "--n", "1", "--k", "1", "--out",
                                path("one.csv")}),
                 "needs --csv");
}

TEST_F(KernelCommand, a_format_that_the_device_lacks_is_refused_with_its_row_of_a_csv) {
  const std::string csv = write("formats.csv", "m,n,k,dtype\n16,4096,4096,bf16\n16,4096,4096,nvfp4\n");
  const Outcome run = run_foretoken({"kernel", "gemm", "--device", "l4", "--csv", csv});
  expect_refused(run, "row 2, column dtype = nvfp4");
  expect_refused(run, "expected a format that l4 supports");
}

TEST_F(KernelCommand, an_indexer_that_chooses_keys_shortens_a_prompt_of_latent_attention) {
  const auto seconds = [](const std::string& more) {
    const Json json =
        json_of("kernel mla_prefill --device h200_sxm --batch 1 --heads 16 --q-len 32768 --kv-len 32768" + more);
    return json.find("estimate")->find("seconds")->find("value")->number();
  };
  EXPECT_LT(seconds(" --top-k 2048"), 0.4 * seconds(""));
  EXPECT_EQ(seconds(" --top-k 32768"), seconds(""));
}

TEST_F(KernelCommand, a_plot_that_cannot_be_made_is_refused) {
  const std::string gemm = "kernel gemm --device h100_sxm --m 64 --n 64 --k 64";
  expect_refused(run_foretoken(gemm + " --plot " + path("no/such/folder/x.svg")), "no/such/folder");
  expect_refused(run_foretoken(gemm + " --data " + path("nowhere")), "nowhere");
  expect_refused(run_foretoken("kernel kv_write --device h100_sxm --tokens 64 --values 2048 --plot " + path("x.svg")),
                 "roofline");
}

TEST_F(KernelCommand, a_port_map_is_drawn_from_ones_own_rows) {
  std::string rows = "kernel,dtype,m,n,k,latency_us\n";
  for (int i = 0; i < 30; ++i) rows += "torch_linear,bf16,8192,8192," + std::to_string(4096 + 64 * i) + ",1000\n";
  write("rows/h100_sxm/gemm.csv", rows);
  write("rows/l40s/gemm.csv", rows);
  const Outcome run =
      run_foretoken({"validate", "kernels", "--data", path("rows"), "--port-map", path("map.svg"), "--json"});
  EXPECT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "port map");
  ASSERT_EQ(json.find("port_map")->items().size(), 1u);
  EXPECT_EQ(json.find("port_map")->items()[0].find("devices")->items().size(), 2u);
  EXPECT_NE(content_of(path("map.svg")).find("gemm (2)"), std::string::npos);
  expect_refused(run_foretoken({"validate", "kernels", "--data", path("rows"), "--port-map", path("no/map.svg")}),
                 "no/map.svg");
}

TEST_F(KernelCommand, the_tier_flag_stands_under_a_heading_of_its_own) {
  const std::string help = run_foretoken("step --help-all").out;
  const size_t parallelism = help.find("Parallelism"), prediction = help.find("Prediction"), tier = help.find("--tier");
  ASSERT_NE(prediction, std::string::npos);
  EXPECT_LT(parallelism, prediction);
  EXPECT_LT(prediction, tier);
  EXPECT_EQ(help.substr(prediction, tier - prediction).find("--tensor-parallel-size"), std::string::npos);
}

}  // namespace foretoken::kernel_command_test
