// Devices that are known by their spec sheets alone: answers derate them and say so, and plans do not let them win by
// what nobody knows. Plans name every device and engine that was asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "command_test.h"
#include "run.h"

namespace foretoken::sheet_devices_test {

using testing::HasSubstr;
using testing::Not;

constexpr const char* sheet_sentence =
    "Gaudi 3 128 GB is known from its spec sheet only: its kernels are not calibrated";

class SheetDevices : public CommandTest {
 protected:
  static Json answer(const std::string& line) {
    const Outcome run = run_foretoken(line + " --json");
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, line);
  }
  static std::vector<std::string> texts(const Json& document, const char* key) {
    std::vector<std::string> list;
    for (const JsonView& item : JsonView(document, "answer").at(key).items()) list.push_back(item.string());
    return list;
  }
  static double seconds(const Json& document, const char* end) {
    return JsonView(document, "answer").at("seconds").at(end).number();
  }
  // Few layouts of engines that hold few requests, so that a search takes a moment.
  static std::string plan(const std::string& flags) {
    return "plan serve --model Llama-3.1-8B --slo ttft:500,tpot:50 --quantizations config --kv-cache-dtype auto -pp 1 "
           "--max-num-seqs 16 --max-num-batched-tokens 0 --no-disaggregate --dataset-name lognormal --random-input-len "
           "512 --random-output-len 64 --num-prompts 1500 --most-simulated 6 --finalists 2 " +
           flags;
  }
};

TEST_F(SheetDevices, a_step_on_a_sheet_is_derated_and_says_so) {
  const std::string step = "step --model Llama-3.1-8B --batch 32 --context-len 2048 --device ";
  EXPECT_THAT(in_one_line(run_foretoken(step + "gaudi3").out), HasSubstr(sheet_sentence));
  const Json sheet = answer(step + "gaudi3"), bound = answer(step + "gaudi3 --tier roofline");
  EXPECT_EQ(texts(sheet, "sheet_only_devices"), std::vector<std::string>{"gaudi3"});
  EXPECT_GT(seconds(sheet, "value"), 1.2 * seconds(bound, "value"));
  EXPECT_LT(seconds(sheet, "high"), 5 * seconds(sheet, "value"));
  EXPECT_THAT(in_one_line(run_foretoken(step + "gaudi3 --tier roofline").out), HasSubstr("roofline bounds"));

  const Json measured = answer(step + "h100_sxm");
  EXPECT_THAT(texts(measured, "sheet_only_devices"), testing::IsEmpty());
  EXPECT_THAT(texts(measured, "device_notes"), testing::IsEmpty());
}

TEST_F(SheetDevices, a_serving_run_says_what_its_steps_rest_on) {
  const std::string serve = "serve --model Llama-3.1-8B --request-rate 2 --num-prompts 20 --device ";
  EXPECT_THAT(in_one_line(run_foretoken(serve + "gaudi3").out),
              HasSubstr("sources: none of a typical step's time comes from kernels measured on this device"));
  const Json measured = answer(serve + "h100_sxm");
  const JsonView sources = JsonView(measured, "answer").at("replica_groups").items().front().at("sources");
  EXPECT_GT(sources.at("measured").number(), 0.9);
  EXPECT_NEAR(sources.at("measured").number() + sources.at("other_devices").number() + sources.at("sheets").number(), 1,
              1e-9);
}

TEST_F(SheetDevices, every_sheet_only_device_is_slower_than_its_bound) {
  for (const char* device : {"gaudi2", "gaudi3", "tpu_v5e", "tpu_v7", "trainium2", "m3_ultra"}) {
    const std::string step = std::string("step --model Llama-3.1-8B --batch 8 --context-len 512 --device ") + device;
    const Json sheet = answer(step);
    EXPECT_EQ(texts(sheet, "sheet_only_devices"), std::vector<std::string>{device});
    EXPECT_GT(seconds(sheet, "low"), 0);
    EXPECT_GT(seconds(sheet, "value"), seconds(answer(step + " --tier roofline"), "value")) << device;
  }
}

TEST_F(SheetDevices, a_run_and_a_comparison_say_so) {
  const std::string serve = "serve --model Llama-3.1-8B --device gaudi3 --request-rate 2 --num-prompts 20";
  EXPECT_THAT(in_one_line(run_foretoken(serve).out), HasSubstr(sheet_sentence));
  EXPECT_EQ(texts(answer(serve), "sheet_only_devices"), std::vector<std::string>{"gaudi3"});
  const std::string compare =
      "compare --first \"step --model Llama-3.1-8B --device h100_sxm\" --second \"--device gaudi3\"";
  EXPECT_THAT(in_one_line(run_foretoken(compare).out), HasSubstr(sheet_sentence));
  EXPECT_THAT(texts(answer(compare), "device_notes"), testing::Contains(HasSubstr(sheet_sentence)));
}

TEST_F(SheetDevices, what_a_step_hangs_on_says_so) {
  const std::string line = "plan hardware --model Llama-3.1-8B --device gaudi3";
  EXPECT_THAT(in_one_line(run_foretoken(line).out), HasSubstr(sheet_sentence));
  EXPECT_EQ(texts(answer(line), "sheet_only_devices"), std::vector<std::string>{"gaudi3"});
}

TEST_F(SheetDevices, a_plan_ranks_them_by_the_slow_end_beside_measured_ones) {
  const std::string flags = "--hardware h100_sxm:1,gaudi3:1 --price gaudi3=2 --engines vllm --objective capacity";
  const Json document = answer(plan(flags));
  const JsonView view(document, "plan");
  EXPECT_TRUE(view.at("ranked_by_slow_end").boolean());
  EXPECT_EQ(texts(document, "sheet_only_devices"), std::vector<std::string>{"gaudi3"});
  std::map<std::string, double> ranked;
  for (const JsonView& point : view.at("points").items()) {
    const std::string device = point.at("device").string();
    const char* end = device == "gaudi3" ? "low" : "value";
    ranked[device] = std::max(ranked[device], point.at("capacity_requests_per_s").at(end).number());
  }
  const bool sheet_is_better = ranked["gaudi3"] > ranked["h100_sxm"];
  EXPECT_EQ(view.at("winner").at("device").string(), sheet_is_better ? "gaudi3" : "h100_sxm");
  const std::string text = in_one_line(run_foretoken(plan(flags)).out);
  EXPECT_THAT(text, HasSubstr(sheet_sentence));
  EXPECT_THAT(text, HasSubstr("ranked by the slow end"));

  // The same where nothing else is on offer.
  const Json alone = answer(plan("--hardware gaudi3:1 --price gaudi3=2 --engines vllm --objective capacity"));
  EXPECT_TRUE(JsonView(alone, "plan").at("ranked_by_slow_end").boolean());
  const auto row_of = [](const Json& from, size_t place) {
    return JsonView(from, "plan").at("by_device_and_engine").items().at(place).at("answer");
  };
  for (const char* field : {"key", "effort"}) {
    EXPECT_EQ(row_of(alone, 0).at(field).string(), row_of(document, 1).at(field).string());
  }
  EXPECT_EQ(row_of(alone, 0).at("capacity_requests_per_s").at("value").number(),
            row_of(document, 1).at("capacity_requests_per_s").at("value").number());
  EXPECT_EQ(texts(alone, "sheet_only_devices"), std::vector<std::string>{"gaudi3"});
}

TEST_F(SheetDevices, a_plan_has_a_row_for_every_device_and_says_what_comes_from_sheets) {
  const auto rows_of = [&](const std::string& lengths) {
    const Json document = answer(
        "plan serve --quick --model Llama-3.1-8B --hardware h100_sxm:1,h200_sxm:1,b200_sxm:1,mi300x:1,mi355x:1 "
        "--slo ttft:5000,tpot:100 --num-prompts 200 --engines vllm " +
        lengths);
    std::map<std::string, double> sheet_shares;
    const JsonView plan(document, "plan");
    for (const JsonView& row : plan.at("by_device_and_engine").items()) {
      EXPECT_FALSE(row.at("rests_on").string().empty());
      sheet_shares[row.at("device").string()] = row.at("sheet_share").number();
    }
    EXPECT_EQ(sheet_shares.size(), 5U);
    EXPECT_LT(sheet_shares["h100_sxm"], 0.1);
    return std::pair(sheet_shares["mi300x"], plan.at("ranked_by_slow_end").boolean());
  };
  const auto [brief, by_slow_end] = rows_of("--random-input-len 512 --random-output-len 64");
  EXPECT_LT(brief, 1.0 / 3);
  EXPECT_FALSE(by_slow_end);
  const auto [lengthy, by_slow_end_too] = rows_of("--random-input-len 24000 --random-output-len 200");
  EXPECT_GT(lengthy, 1.0 / 3) << "attention was not measured there";
  EXPECT_TRUE(by_slow_end_too);
}

TEST_F(SheetDevices, amds_gpus_are_none_but_say_where_attention_is_most_of_a_step) {
  const std::string step = "step --model Llama-3.1-8B --batch 32 --device mi300x --context-len ";
  const Json brief = answer(step + "512"), lengthy = answer(step + "32768");
  EXPECT_THAT(texts(brief, "sheet_only_devices"), testing::IsEmpty());
  EXPECT_THAT(texts(brief, "device_notes"), testing::IsEmpty());
  EXPECT_THAT(texts(lengthy, "sheet_only_devices"), testing::IsEmpty());
  EXPECT_THAT(texts(lengthy, "device_notes"), testing::Contains(HasSubstr("were not measured on AMD Instinct MI300X")));
  EXPECT_LT(seconds(lengthy, "high"), 2.1 * seconds(lengthy, "value"));
  EXPECT_GT(seconds(lengthy, "low"), seconds(lengthy, "value") / 2.1);
}

TEST_F(SheetDevices, a_plan_has_a_row_for_every_device_and_engine) {
  const std::string flags =
      "--hardware h100_sxm:1,l40s:1,t4:1 --price t4=0.3 --engines vllm,sglang --html " + path("plan.html");
  const Json document = answer(plan(flags));
  const std::string text = in_one_line(run_foretoken(plan(flags)).out);
  const std::string page = in_one_line(read_file(path("plan.html"), 1U << 24U));
  const std::vector<JsonView> rows = JsonView(document, "plan").at("by_device_and_engine").items();
  ASSERT_EQ(rows.size(), 6U);
  for (const JsonView& row : rows) {
    const bool has_best = row.find("best").has_value();  // null reads as absent
    EXPECT_NE(has_best, row.find("reason").has_value()) << row.at("device").string();
    if (has_best) continue;
    EXPECT_FALSE(row.at("reason").string().empty());
    const std::string named = row.at("engine").string() + " on " + row.at("device").string() + ": ";
    EXPECT_THAT(text, HasSubstr(named));
    EXPECT_THAT(page, HasSubstr(named));
  }
  EXPECT_THAT(text, HasSubstr("t4"));
}

TEST_F(SheetDevices, tensor_parallelism_beyond_a_node_is_told) {
  const std::string step = "step --model DeepSeek-V3 --device h100_sxm --batch 8 --context-len 512 -tp ";
  EXPECT_THAT(in_one_line(run_foretoken(step + "16").out), HasSubstr("16 ranks span 2 nodes of 8"));
  EXPECT_THAT(texts(answer(step + "16"), "device_notes"), testing::Contains(HasSubstr("16 ranks span 2 nodes")));
  EXPECT_THAT(run_foretoken(step + "8").out, Not(HasSubstr("span")));
  const Outcome serve = run_foretoken(
      "serve --model Llama-3.1-405B --device h100_sxm -tp 16 --max-model-len 4096 --request-rate 1 --num-prompts 3");
  EXPECT_THAT(in_one_line(serve.out), HasSubstr("16 ranks span 2 nodes of 8")) << serve.err;
}

TEST_F(SheetDevices, a_plan_names_the_rule_that_leaves_a_tensor_size_out) {
  const std::string none = in_one_line(run_foretoken(plan("--hardware h100_sxm:16 --engines vllm -tp 12")).out);
  EXPECT_THAT(none,
              HasSubstr("tensor parallelism across nodes must use whole nodes, and nodes of h100_sxm have 8 GPUs"));
  EXPECT_THAT(none, Not(HasSubstr("heads")));
  const std::string some = in_one_line(run_foretoken(plan("--hardware h100_sxm:8 --engines vllm -tp 8,16")).out);
  EXPECT_THAT(some, HasSubstr("TP16 was not tried on h100_sxm: --hardware offers only 8 x h100_sxm"));
}

}  // namespace foretoken::sheet_devices_test
