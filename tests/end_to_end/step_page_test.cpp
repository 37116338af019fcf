// The page of a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "command_test.h"

namespace foretoken::step_page_test {

using testing::HasSubstr;
using testing::Not;

class StepPageCommand : public CommandTest {};

TEST_F(StepPageCommand, has_time_roofline_memory_energy_trust_and_the_command) {
  const std::string line =
      "step --model Llama-3.1-8B --device h100_sxm --batch 8 --context-len 1024 -tp 2 --html " + path("step.html");
  const Outcome run = run_foretoken(line);
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string html = read_file(path("step.html"), 1U << 24U);
  for (const char* part : {"a decode step of 8 sequences", "Where the time goes", "Roofline", "qkv_proj",
                           "Memory per device", "KV cache", "Energy and cost", "J of board energy per token",
                           "How far to trust it", "Collectives", "Model step", "foretoken step --model Llama-3.1-8B"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("Serving engine"))) << "no part of a single step";
  run_foretoken(line);
  EXPECT_EQ(read_file(path("step.html"), 1U << 24U), html);
}

TEST_F(StepPageCommand, one_rank_has_no_collectives) {
  const Outcome run =
      run_foretoken("step --model Llama-3.2-1B --device h100_sxm --phase train --batch 1 --input-len 512 --html " +
                    path("step.html"));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string html = read_file(path("step.html"), 1U << 24U);
  EXPECT_THAT(html, Not(HasSubstr("Collectives")));
  EXPECT_THAT(html, HasSubstr("gradients and optimizer"));
}

TEST(StepCommand, enforce_eager_launches_kernels_one_by_one) {
  const std::string step =
      "step --model Llama-3.1-8B --device h100_sxm --phase decode --batch 4 --context-len 512 --stack vllm";
  EXPECT_NE(run_foretoken(step).out.find("vllm (graph)"), std::string::npos);
  EXPECT_NE(run_foretoken(step + " --enforce-eager").out.find("vllm (eager)"), std::string::npos);
  EXPECT_EQ(run_foretoken(step + " --enforce-eager --dispatch graph").status, 2);
}

}  // namespace foretoken::step_page_test
