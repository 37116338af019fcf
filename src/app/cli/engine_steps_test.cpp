#include "app/cli/engine_steps.h"

#include <gtest/gtest.h>

#include "app/cli/grammar/command_line.h"
#include "base/error.h"

namespace foretoken::engine_steps_test {

Json engine() {
  return Json::object({{"model", "Llama-3.1-8B"}, {"device", "h100_sxm"}, {"engine", "vllm"}});
}

TEST(EngineSteps, TakeAsLongAsTheStepCommandSays) {
  const Library library = Library::open();
  EngineSteps steps(engine(), "test", library);
  const Answer answer = answer_command(
      {"step", "--model", "Llama-3.1-8B", "--device", "h100_sxm", "--batch", "64", "--context-len", "2000"}, library);
  const double seconds = JsonView(answer.json, "step").at("seconds").at("value").number();
  const Estimate time =
      steps.seconds({.decodes = 64, .decode_context_tokens = 64 * 2000, .longest_decode_context = 2000});
  EXPECT_NEAR(time.value, seconds, 0.01 * seconds);
  EXPECT_LT(time.low, time.value);
  EXPECT_GT(time.high, time.value);
}

TEST(EngineSteps, GrowWithPromptsAndContexts) {
  EngineSteps steps(engine(), "test", Library::open());
  const PromptChunk prompt{.new_tokens = 512};
  const auto seconds = [&](int64_t context, bool with_prompt) {
    StepBatch batch{.decodes = 32, .decode_context_tokens = 32 * context, .longest_decode_context = context};
    if (with_prompt) batch.prompts = {&prompt, 1};
    return steps.seconds(batch).value;
  };
  EXPECT_GT(seconds(8000, false), seconds(500, false));
  EXPECT_GT(seconds(500, true), seconds(500, false));
}

TEST(EngineSteps, RefusesWhatMakesNoSense) {
  const Library library = Library::open();
  EngineSteps steps(engine(), "test", library);
  EXPECT_THROW(steps.seconds({}), InputError);
  EXPECT_THROW(steps.seconds({.decodes = -1}), InputError);
  EXPECT_THROW(steps.seconds({.decodes = 2, .decode_context_tokens = 10, .longest_decode_context = 11}), InputError);
  Json unknown = engine();
  unknown.set("modle", "x");
  try {
    EngineSteps(unknown, "question", library);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("modle"), std::string::npos);
    EXPECT_EQ(error.problem().suggestion, "model");
    EXPECT_EQ(error.problem().expected.find("schema engine"), std::string::npos) << "there is no such schema";
    EXPECT_NE(error.problem().expected.find("foretoken schema endpoint"), std::string::npos);
  }
  Json large = engine();
  large.set("model", "Llama-3.1-405B");
  EXPECT_THROW(EngineSteps(large, "question", library), InputError);
}

}  // namespace foretoken::engine_steps_test
