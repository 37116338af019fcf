#include "report/training/training_stack_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/test_machine.h"

namespace foretoken::training_stack_report_test {

using testing::AllOf;
using testing::HasSubstr;

TEST(TrainingStackReport, shows_what_a_stack_can_do_and_every_constant) {
  const TrainingStack stack = training_test::shipped_stack("torchtitan");
  EXPECT_THAT(training_stack_text(stack), AllOf(HasSubstr("zb-v"), HasSubstr("passes_factor"), HasSubstr("assumed")));
  const Json json = training_stack_json(stack);
  EXPECT_EQ(json.find("name")->string(), "torchtitan");
  EXPECT_EQ(json.find("constants")->find("passes_factor")->number(), 1);
  EXPECT_EQ(json.find("constants")->members().size(), static_cast<size_t>(training_constant_count));
}

TEST(TrainingStackReport, names_the_kernels_of_a_stack) {
  const TrainingStack eager = training_test::shipped_stack("transformers");
  EXPECT_THAT(training_stack_text(eager), AllOf(HasSubstr("kernels     hf-eager, hf-eager-autocast with fp32 weights"),
                                                HasSubstr("hf-eager-adapters")));
  const Json json = training_stack_json(eager);
  EXPECT_EQ(json.find("kernels")->string(), "hf-eager");
  EXPECT_EQ(json.find("adapter_kernels")->string(), "hf-eager-adapters");
  const TrainingStack fused = training_test::shipped_stack("megatron-2021");
  EXPECT_THAT(training_stack_text(fused), HasSubstr("kernels     one for each operator"));
  EXPECT_EQ(training_stack_json(fused).find("kernels"), nullptr);
}

TEST(TrainingStackReport, lists_all_by_name) {
  const std::vector<TrainingStack> stacks = {training_test::shipped_stack("deepspeed"), training_test::plain_stack()};
  EXPECT_THAT(training_stack_list_text(stacks), AllOf(HasSubstr("deepspeed"), HasSubstr("made up")));
  EXPECT_EQ(training_stack_list_json(stacks).items().size(), 2U);
  const StackOrigin& origin = stacks.front().origin;
  EXPECT_THAT(training_stack_list_text(stacks), HasSubstr(origin.fitted_on));
  EXPECT_EQ(training_stack_list_json(stacks).items()[0].find("software")->string(), origin.software);
  EXPECT_THAT(training_stack_text(stacks.front()),
              HasSubstr("last fitted or changed " + origin.fitted_on + ", for PyTorch"));
  EXPECT_EQ(training_stack_text(stacks.back()).find("numbers"), std::string::npos);
}

}  // namespace foretoken::training_stack_report_test
