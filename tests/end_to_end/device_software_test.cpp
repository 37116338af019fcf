// What each device can run, and what answers say of devices that are known by their sheets alone.
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"
#include "compose/serving_engine.h"
#include "run.h"

namespace foretoken::device_software_test {

class DeviceSoftware : public CommandTest {};

TEST_F(DeviceSoftware, an_engine_that_cannot_run_there_is_refused_with_those_that_can) {
  const Outcome amd =
      run_foretoken("serve --model Llama-3.1-8B --device mi300x --engine trtllm --request-rate 1 --num-prompts 2");
  EXPECT_EQ(amd.status, 2);
  const std::string message = in_one_line(amd.err);
  EXPECT_NE(message.find("vllm"), std::string::npos) << message;
  EXPECT_NE(message.find("sglang"), std::string::npos) << message;
  EXPECT_NE(message.find("NVIDIA GPUs since Ampere"), std::string::npos) << message;
  const Outcome old = run_foretoken("serve --model Llama-3.2-1B --device p100 --request-rate 1 --num-prompts 2");
  EXPECT_EQ(old.status, 2);
  EXPECT_NE(in_one_line(old.err).find("llama.cpp"), std::string::npos) << old.err;
}

// So that a version of an engine is one entry of the table.
TEST_F(DeviceSoftware, an_engine_of_the_table_is_known_wherever_one_is_asked_for) {
  const std::string schema = run_foretoken("schema serve").out;
  for (const EngineKind& kind : engine_kinds()) {
    const std::string name(kind.name);
    EXPECT_NE(schema.find('"' + name + '"'), std::string::npos) << name;
    for (const char* line : {"serve --model Llama-3.1-8B --device h100_sxm --request-rate 2 --num-prompts 4 --engine ",
                             "step --model Llama-3.1-8B --device h100_sxm --memory --engine ",
                             "plan serve --model Llama-3.1-8B --hardware h100_sxm:1 --slo ttft:500,tpot:50 --quick "
                             "--launch compose --engines "}) {
      const Outcome run = run_foretoken(line + name);
      EXPECT_EQ(run.status, 0) << line << name << "\n" << run.err;
    }
  }
}

TEST_F(DeviceSoftware, a_plugin_is_named_and_so_is_a_sheet) {
  const Outcome run = run_foretoken(
      "serve --model Llama-3.1-8B --device tpu_v6e --request-rate 1 --num-prompts 4 --max-model-len 4096 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json json = parse_json(run.out, "serve");
  std::string notes;
  for (const Json& note : json.find("device_notes")->items()) notes += note.string() + "\n";
  EXPECT_NE(notes.find("tpu-inference"), std::string::npos) << notes;
  EXPECT_NE(notes.find("spec sheet only"), std::string::npos) << notes;
  EXPECT_EQ(json.find("sheet_only_devices")->items().front().string(), "tpu_v6e");
}

TEST_F(DeviceSoftware, a_step_says_that_no_engine_runs_there_and_that_its_cache_is_empty) {
  const auto notes_of = [](const std::string& flags) {
    const Outcome run = run_foretoken("step --model Qwen2.5-0.5B --json --device " + flags);
    EXPECT_EQ(run.status, 0) << run.err;
    std::string notes;
    const Json answer = parse_json(run.out, "step");
    for (const Json& note : answer.find("device_notes")->items()) notes += note.string() + "\n";
    return notes;
  };
  const std::string old = notes_of("p100 -q fp16"), recent = notes_of("h100_sxm --context-len 1024");
  EXPECT_NE(old.find("No serving engine that foretoken simulates runs on"), std::string::npos) << old;
  EXPECT_NE(old.find("--context-len was not given"), std::string::npos) << old;
  EXPECT_EQ(recent, "");
}

TEST_F(DeviceSoftware, training_says_when_only_a_sheet_is_known) {
  const std::string cluster =
      write("trn2_cluster.json", R"({"name": "trn2_cluster", "title": "one node", "node": "trn2_48xlarge",
      "node_count": 1, "fabric": {"kind": "fat_tree", "technology": "EFA",
      "nic_bandwidth_gb_per_s": {"value": 25, "source": "test"}, "oversubscription": {"value": 1, "source": "test"},
      "nodes_per_leaf": {"value": 8, "source": "test"}}})");
  const Outcome run =
      run_foretoken({"train", "--model", "Llama-3.1-8B", "--cluster", cluster, "--devices", "16", "-tp", "4",
                     "--micro-batch-size", "1", "--global-batch-size", "64", "--seq-length", "2048", "--json"});
  ASSERT_NE(run.status, 2) << run.err;
  const Json json = parse_json(run.out, "train");
  EXPECT_EQ(json.find("sheet_only_devices")->items().front().string(), "trainium2");
}

TEST_F(DeviceSoftware, devices_list_what_runs_on_them) {
  const Json device = parse_json(run_foretoken("devices gaudi3 --json").out, "device");
  EXPECT_EQ(device.find("software")->items().front().find("name")->string(), "vllm");
  EXPECT_EQ(device.find("software")->items().front().find("needs")->string(), "the vllm-gaudi plugin");
  EXPECT_NE(run_foretoken("devices m3_ultra").out.find("mlx-lm"), std::string::npos);
}

TEST_F(DeviceSoftware, steps_and_kernels_say_how_much_of_the_device_they_use) {
  const Json step = parse_json(
      run_foretoken("step --model Llama-3.1-8B --device h100_sxm --batch 1 --context-len 128 --json").out, "step");
  EXPECT_GT(step.find("mbu")->number(), 0.4);
  EXPECT_LE(step.find("mbu")->number(), 1);
  EXPECT_LT(step.find("mfu")->number(), 0.05);
  const Json gemm = parse_json(
      run_foretoken("kernel gemm --device b200_sxm --dtype fp8 --m 8192 --n 8192 --k 8192 --json").out, "gemm");
  EXPECT_GT(gemm.find("mfu")->number(), 0.3);
  EXPECT_LE(gemm.find("mfu")->number(), 1);
  EXPECT_LT(gemm.find("mbu")->number(), 0.5);
}

TEST_F(DeviceSoftware, no_kernel_draws_more_than_the_limit_of_its_board) {
  for (const char* line : {"kernel gemm --device b200_sxm --dtype fp8 --m 8192 --n 8192 --k 8192 --json",
                           "kernel gemm --device h100_sxm --m 8192 --n 8192 --k 8192 --sustained --json",
                           "kernel gemm --device rtx_pro_6000_max_q --m 8192 --n 8192 --k 8192 --json"}) {
    const Json answer = parse_json(run_foretoken(line).out, "kernel");
    const double limit =
        parse_json(run_foretoken("devices " + answer.find("device")->string() + " --json").out, "device")
            .find("facts")
            ->find("power_limit_w")
            ->find("value")
            ->number();
    EXPECT_LE(answer.find("power")->find("burst")->find("watts")->find("value")->number(), limit) << line;
  }
}

TEST(CalibrationFlag, a_folder_replaces_the_calibrations_of_every_command) {
  const std::string shipped = std::string(FORETOKEN_SOURCE_DIR) + "/data/kernels/calibrations";
  for (const char* line : {"kernel gemm --device h100_sxm --m 512 --n 4096 --k 4096",
                           "step --model Llama-3.1-8B --device h100_sxm --batch 8 --context-len 1000",
                           "serve --model Llama-3.2-1B --device h100_sxm --request-rate 2 --num-prompts 4",
                           "plan hardware --model Llama-3.2-1B --device h100_sxm --batch 8 --context-len 1000",
                           "train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 --sharding parameters "
                           "--global-batch-size 128"}) {
    const Outcome usual = run_foretoken(line);
    const Outcome asked = run_foretoken(std::string(line) + " --calibration " + shipped);
    ASSERT_EQ(usual.status, 0) << line << usual.err;
    EXPECT_EQ(asked.out, usual.out) << line;
    const Outcome none = run_foretoken(std::string(line) + " --calibration no/such/folder");
    EXPECT_EQ(none.status, 2) << line;
    EXPECT_NE(none.err.find("--calibration"), std::string::npos) << none.err;
  }
}

}  // namespace foretoken::device_software_test
