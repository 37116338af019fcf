// foretoken train opened to its kernels, and foretoken step --phase train as one piece of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"

namespace foretoken::train_composition_test {

using testing::AllOf;
using testing::HasSubstr;

Json answer_of(const std::string& line) {
  const Outcome run = run_foretoken(line + " --json");
  EXPECT_TRUE(run.status == 0 || run.status == 3) << line << "\n" << run.err;  // 3: not enough memory
  return parse_json(run.out.empty() ? "{}" : run.out, line);
}

// One device, one micro-batch, nothing recomputed: no traffic, and the optimizer apart.
TEST(TrainComposition, device_time_of_one_micro_batch_is_the_training_step_of_the_same_stack) {
  for (const char* stack : {"megatron-bridge-26.08", "llm-foundry"}) {
    for (const char* model : {"Llama-3.1-8B", "Mixtral-8x7B"}) {
      const std::string both = std::string(" --model ") + model + " --stack " + stack;
      const Json train =
          answer_of("train --cluster h100_ib_rail --devices 1 --seq-length 4096 --global-batch-size 1" + both);
      const Json step = answer_of("step --device h100_sxm --phase train --input-len 4096" + both);
      const JsonView parts = JsonView(train, "train").at("parts_seconds"), gap = JsonView(step, "step").at("gap");
      double compute = 0;
      for (const char* part : {"linear", "attention", "experts", "passes"}) compute += parts.at(part).number();
      EXPECT_NEAR(gap.at("kernels_seconds").number(), compute, 1e-9 * compute) << both;
      EXPECT_NEAR(gap.at("host_stall_seconds").number(), parts.at("host").number(), 1e-9 * compute) << both;
      EXPECT_EQ(gap.at("communication_seconds").number(), 0) << both;
      const JsonView seconds = JsonView(step, "step").at("seconds");
      EXPECT_NEAR(seconds.at("value").number(), compute + parts.at("host").number(), 1e-9 * compute) << both;
      double operators = 0;
      for (const JsonView& one : JsonView(step, "step").at("stages").items().front().at("operators").items()) {
        operators += one.at("seconds").at("value").number();
      }
      EXPECT_NEAR(operators, compute, 1e-9 * compute) << both;
    }
  }
}

TEST(TrainComposition, answer_opens_to_parts_and_kernels_with_intervals_and_confidence) {
  const std::string line =
      "train --model Llama-3.1-70B --cluster h100_ib_rail --devices 64 -tp 4 -pp 8 --sequence-parallel "
      "--use-distributed-optimizer --seq-length 8192 --global-batch-size 128";
  const Json json = answer_of(line);
  const JsonView root(json, "train");
  double parts = 0, compute = 0, kernels = 0;
  for (const auto& [name, part] : root.at("parts").members()) {
    const double value = part.at("value").number();
    EXPECT_EQ(value, root.at("parts_seconds").at(name).number()) << name;
    parts += value;
    if (!part.has("low")) continue;
    EXPECT_LT(part.at("low").number(), value) << name;
    EXPECT_GT(part.at("high").number(), value) << name;
    EXPECT_FALSE(part.at("confidence").string().empty()) << name;
  }
  for (const char* name : {"linear", "attention", "passes", "tensor", "bubble", "data"}) {
    EXPECT_TRUE(root.at("parts").at(name).has("low")) << name;
  }
  for (const char* name : {"host", "optimizer", "step"}) EXPECT_FALSE(root.at("parts").at(name).has("low")) << name;
  EXPECT_NEAR(parts, root.at("seconds").at("value").number(), 1e-9 * parts);
  for (const char* name : {"linear", "attention", "passes"}) compute += root.at("parts").at(name).at("value").number();
  for (const JsonView& family : root.at("kernels").items()) {
    kernels += family.at("seconds").at("value").number();
    EXPECT_LE(family.at("seconds").at("low").number(), family.at("seconds").at("value").number());
  }
  EXPECT_NEAR(kernels, compute, 1e-9 * compute);

  const JsonView seconds = root.at("seconds"), basis = root.at("interval_basis");
  const double value = seconds.at("value").number();
  EXPECT_LE(seconds.at("low").number(), value * basis.at("stack_low").number() * (1 + 1e-12));
  EXPECT_GE(seconds.at("high").number(), value * basis.at("stack_high").number() * (1 - 1e-12));
  EXPECT_EQ(seconds.at("confidence").string(), basis.at("kernels_confidence").string());
  EXPECT_THAT(run_foretoken(line).out, AllOf(HasSubstr("90% interval"), HasSubstr("published runs of"),
                                             HasSubstr("errors of kernels and network alone")));
}

// The spec sheet alone is less certain than the kernels of published runs.
TEST(TrainComposition, interval_is_wider_where_kernels_are_known_by_their_sheet_only) {
  const std::string line = "train --model Llama-3.1-8B --cluster h100_ib_rail --devices 8 --global-batch-size 16";
  const auto ratio = [](const Json& json) {
    const JsonView seconds = JsonView(json, "train").at("seconds");
    return seconds.at("high").number() / seconds.at("value").number();
  };
  const Json measured = answer_of(line), sheet = answer_of(line + " --tier roofline");
  EXPECT_GT(ratio(sheet), 1.2 * ratio(measured));
  EXPECT_EQ(JsonView(sheet, "train").at("seconds").at("confidence").string(), "roofline");
}

TEST(TrainComposition, step_of_a_training_stack_refuses_what_the_stack_decides) {
  const std::string line =
      "step --model Llama-3.1-8B --device h100_sxm --phase train --input-len 2048 --stack megatron-bridge-26.08 ";
  for (const char* flags : {"--dispatch eager", "--sustained"}) {
    const Outcome run = run_foretoken(line + flags);
    EXPECT_EQ(run.status, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr("training stack")) << flags;
  }
  EXPECT_EQ(run_foretoken("step --model Llama-3.1-8B --device h100_sxm --phase prefill --stack llm-foundry").status, 2);
}

}  // namespace foretoken::train_composition_test
