// A GPU that nobody has seen yet is one JSON file and no code: of a generation that foretoken does not know, it is
// declared to be like one that it knows, and every answer says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"
#include "run.h"

namespace foretoken::new_device_test {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* like_sentence = "NVIDIA R200 288 GB is taken to be like NVIDIA B200 SXM 180 GB";

class NewDevice : public CommandTest {
 protected:
  // `generation`: the lines that say whose kernels it runs.
  std::string r200(const std::string& generation) const {
    return write("r200.json", R"({
      "name": "r200",
      "title": "NVIDIA R200 288 GB",
      "vendor": "NVIDIA",
      "kind": "gpu",
      "architecture": "Rubin",
      )" + generation + R"(
      "processors": {"value": 224, "source": "made up"},
      "boost_clock_mhz": {"value": 2100, "source": "made up"},
      "last_level_cache_mib": {"value": 192, "source": "made up"},
      "memory_type": {"value": "hbm4", "source": "made up"},
      "memory_gb": {"value": 288, "source": "made up"},
      "memory_bandwidth_gb_per_s": {"value": 20000, "source": "made up"},
      "power_limit_w": {"value": 1800, "source": "made up"},
      "link_bandwidth_gb_per_s": {"value": 1800, "source": "made up"},
      "host_bandwidth_gb_per_s": {"value": 256, "source": "made up"},
      "dense_peak_tflops": {
        "fp32": {"value": 130, "source": "made up"},
        "bf16": {"value": 4000, "source": "made up"},
        "fp8": {"value": 8000, "source": "made up"},
        "fp4": {"value": 25000, "source": "made up"}
      }
    })");
  }
  std::string like_b200() const { return r200(R"("instruction_set": "sm_140", "like": "b200_sxm",)"); }

  static Json answer(const std::string& line) {
    const Outcome run = run_foretoken(line + " --json");
    EXPECT_EQ(run.status, 0) << line << "\n" << run.err;
    return parse_json(run.out, line);
  }
  static std::vector<std::string> notes(const Json& document, const char* key) {
    std::vector<std::string> list;
    for (const JsonView& item : JsonView(document, "answer").at(key).items()) list.push_back(item.string());
    return list;
  }
  // High end of the interval over its low end.
  static double spread(const JsonView& estimate) {
    EXPECT_GT(estimate.at("low").number(), 0);
    return estimate.at("high").number() / estimate.at("low").number();
  }
  // Of a step, or of a kernel.
  static JsonView seconds(const Json& document) {
    const JsonView answer(document, "answer");
    return answer.has("estimate") ? answer.at("estimate").at("seconds") : answer.at("seconds");
  }
  static void expect_faster_and_less_sure(const Json& fresh, const Json& known) {
    EXPECT_LT(seconds(fresh).at("value").number(), seconds(known).at("value").number());
    EXPECT_GT(spread(seconds(fresh)), spread(seconds(known)));
  }
};

TEST_F(NewDevice, a_kernel_is_predicted_with_a_wider_interval_and_a_note) {
  const std::string device = like_b200();
  for (const char* kernel : {"gemm --m 4096 --n 8192 --k 8192", "gemm --m 64 --n 8192 --k 8192 --dtype fp8",
                             "attention_decode --batch 64 --heads 32 --kv-heads 8 --kv-len 4096"}) {
    for (const char* tier : {"best", "cross"}) {
      const std::string line = std::string("kernel ") + kernel + " --tier " + tier + " --device ";
      const Json fresh = answer(line + device), known = answer(line + "b200_sxm");
      SCOPED_TRACE(line);
      expect_faster_and_less_sure(fresh, known);
      EXPECT_THAT(notes(fresh, "notes"), Contains(HasSubstr(like_sentence))) << line;
    }
  }
  const Outcome shown = run_foretoken("kernel gemm --m 64 --n 8192 --k 8192 --device " + device);
  EXPECT_THAT(in_one_line(shown.out), HasSubstr(like_sentence));
}

TEST_F(NewDevice, a_step_is_predicted_with_a_wider_interval_and_a_note) {
  const std::string device = like_b200();
  for (const char* plan : {"", " -tp 8"}) {
    const std::string line =
        std::string("step --model Llama-3.1-70B --batch 64 --context-len 2048") + plan + " --device ";
    const Json fresh = answer(line + device), known = answer(line + "b200_sxm");
    expect_faster_and_less_sure(fresh, known);
    EXPECT_THAT(notes(fresh, "device_notes"), Contains(HasSubstr(like_sentence)));
    EXPECT_THAT(in_one_line(run_foretoken(line + device).out), HasSubstr(like_sentence));
  }
}

TEST_F(NewDevice, a_serving_run_and_a_plan_are_predicted_with_a_note) {
  const std::string device = like_b200();
  const std::string serve = "serve --model Llama-3.1-8B --request-rate 8 --num-prompts 40 --device ";
  const Json fresh = answer(serve + device), known = answer(serve + "b200_sxm");
  EXPECT_EQ(fresh.find("completed")->integer(), 40);
  EXPECT_THAT(notes(fresh, "device_notes"), Contains(HasSubstr(like_sentence)));
  const auto tpot = [](const Json& json) { return spread(JsonView(json, "run").at("intervals").at("mean_tpot_ms")); };
  EXPECT_GT(tpot(fresh), tpot(known));
  const Json plan = answer("plan hardware --model Llama-3.1-8B --device " + device);
  EXPECT_THAT(notes(plan, "device_notes"), Contains(HasSubstr(like_sentence)));
}

TEST_F(NewDevice, training_on_nodes_of_it_is_predicted_with_a_note) {
  like_b200();
  const std::string node = write("box.json", R"({
    "name": "box", "title": "Eight R200", "device": "r200.json", "device_count": 8,
    "fabric": {"kind": "nvswitch", "bandwidth_gb_per_s": {"value": 1800, "source": "made up"}},
    "network_cards": {"count": {"value": 8, "source": "made up"}, "bandwidth_gb_per_s": {"value": 100, "source": "made up"}}
  })");
  const std::string cluster = write("farm.json", R"({
    "name": "farm", "title": "Farm", "node": "box.json", "node_count": 2,
    "fabric": {"kind": "fat_tree", "technology": "InfiniBand", "nic_bandwidth_gb_per_s": {"value": 100, "source": "s"},
               "oversubscription": {"value": 1, "source": "s"}, "nodes_per_leaf": {"value": 2, "source": "s"}}
  })");
  const Json train =
      answer("train --model Llama-3.1-8B --cluster " + cluster + " --devices 16 -tp 2 --global-batch-size 64");
  EXPECT_THAT(notes(train, "notes"), Contains(HasSubstr(like_sentence)));
  const Json rlhf = answer("rlhf --model Llama-3.1-8B --cluster " + cluster + " --devices 16 --sharding parameters");
  EXPECT_GT(rlhf.find("seconds")->number(), 0);
  const Json collective = answer("collective --node " + node + " --op all_reduce --bytes 64M");
  EXPECT_THAT(notes(collective, "device_notes"), Contains(HasSubstr(like_sentence)));
}

TEST_F(NewDevice, an_unknown_generation_without_a_likeness_is_refused) {
  const std::string device = r200(R"("instruction_set": "sm_140",)");
  for (const char* line : {"kernel gemm --m 64 --n 64 --k 64 --device ", "step --model Llama-3.1-8B --device ",
                           "serve --model Llama-3.1-8B --request-rate 1 --device ", "devices "}) {
    const Outcome run = run_foretoken(line + device);
    expect_refused(run, "\"like\": \"b200_sxm\"");
    EXPECT_THAT(run.err, HasSubstr("instruction_set = \"sm_140\""));
    EXPECT_THAT(run.err, HasSubstr("sm_100"));
  }
  expect_refused(run_foretoken("devices " + r200(R"("instruction_set": "sm_140", "like": "b20_sxm",)")),
                 "did you mean b200_sxm?");
}

TEST_F(NewDevice, without_an_instruction_set_it_is_known_by_its_sheet) {
  const Json step = answer("step --model Llama-3.1-8B --device " + r200(""));
  EXPECT_THAT(notes(step, "device_notes"), Contains(HasSubstr("is known from its spec sheet only")));
  EXPECT_THAT(notes(step, "device_notes"), testing::Not(Contains(HasSubstr("taken to be like"))));
}

}  // namespace foretoken::new_device_test
