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

TEST(StepCommand, the_largest_captured_graph_follows_the_flag) {
  const auto step = [](const std::string& flags) {
    return in_one_line(run_foretoken("step --model Llama-3.1-8B --device h100_sxm --context-len 512 " + flags).out);
  };
  const std::string too_large = step("--batch 600");
  EXPECT_THAT(too_large, HasSubstr("vllm (eager)"));
  EXPECT_THAT(too_large, HasSubstr("larger than the largest captured CUDA graph (512 sequences)"));
  EXPECT_THAT(too_large, HasSubstr("set --max-cudagraph-capture-size"));
  const std::string captured = step("--batch 600 --max-cudagraph-capture-size 1024");
  EXPECT_THAT(captured, HasSubstr("vllm (graph)"));
  EXPECT_THAT(captured, Not(HasSubstr("captured CUDA graph")));
  EXPECT_THAT(step("--batch 100 --max-cudagraph-capture-size 64"), HasSubstr("CUDA graph (64 sequences)"));
  EXPECT_THAT(step("--batch 300 --engine sglang"), HasSubstr("sglang (eager)"));
  EXPECT_THAT(step("--batch 300 --engine sglang --cuda-graph-max-bs 512"), HasSubstr("sglang (graph)"));
  EXPECT_THAT(step("--batch 600 --enforce-eager"), Not(HasSubstr("captured CUDA graph")));
}

TEST(StepCommand, a_device_without_a_known_memory_size_runs_steps) {
  const std::string step = "step --model Llama-3.1-8B --device epyc_9654 --batch 2 --context-len 100";
  const Outcome usual = run_foretoken(step);
  EXPECT_EQ(usual.status, 0) << usual.err;
  EXPECT_THAT(in_one_line(run_foretoken(step + " --max-cudagraph-capture-size 1").out),
              HasSubstr("captured CUDA graph (1 sequence)"));
}

TEST(StepCommand, the_sibling_of_a_measured_device_is_another_device) {
  const auto step = [](const std::string& device) {
    return run_foretoken("step --model Llama-3.1-8B --context-len 1024 --tier sibling --device " + device);
  };
  const std::string sources = in_one_line(step("h100_sxm").out);
  EXPECT_THAT(sources, HasSubstr("none of this time comes from kernels measured on this device"));
  EXPECT_THAT(sources, Not(HasSubstr("none from other devices")));
  const Outcome alone = step("b200_sxm");
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(in_one_line(alone.err), HasSubstr("no other GPU of the generation of NVIDIA B200"));
}

TEST(SpeculateCommand, shows_no_batch_that_does_not_fit_in_memory) {
  const std::string speculate =
      "speculate --model Llama-3.1-8B --device h100_sxm --speculative-config '{\"method\": \"eagle3\", "
      "\"num_speculative_tokens\": 3, \"acceptance_rate\": 0.7}' ";
  const std::string text = in_one_line(run_foretoken(speculate + "--batch-sizes 1:512 --context-len 32k").out);
  EXPECT_THAT(text, HasSubstr("do not fit in memory and are left out."));
  EXPECT_THAT(text, Not(HasSubstr("at every batch up to 512")));
  const Outcome none = run_foretoken(speculate + "--batch-sizes 512 --context-len 32k");
  EXPECT_NE(none.status, 0);
  EXPECT_THAT(in_one_line(none.out), HasSubstr("Out of memory"));
}

TEST(SpeculateCommand, says_from_which_batch_graphs_are_too_small_for_verification) {
  const auto speculate = [](const std::string& flags) {
    return in_one_line(run_foretoken("speculate --model Llama-3.1-8B --device h100_sxm --batch-sizes 64:256 "
                                     "--speculative-config '{\"method\": \"eagle3\", \"num_speculative_tokens\": "
                                     "3, \"acceptance_rate\": 0.7}' " +
                                     flags)
                           .out);
  };
  EXPECT_THAT(speculate(""), HasSubstr("from a batch of 129, it is larger than the largest captured CUDA graph (512 "
                                       "tokens)"));
  const std::string captured = speculate("--max-cudagraph-capture-size 1024");
  EXPECT_THAT(captured, HasSubstr("speed-up"));
  EXPECT_THAT(captured, Not(HasSubstr("captured CUDA graph")));
  EXPECT_THAT(speculate("--stack sglang"), Not(HasSubstr("captured CUDA graph"))) << "256 sequences of any drafts";
}

TEST(StepCommand, a_mixed_step_has_one_prompt_where_nobody_says) {
  const std::string step = "step --model Llama-3.1-8B --device h100_sxm --phase mixed --batch 16 --input-len 512";
  const Outcome usual = run_foretoken(step);
  EXPECT_EQ(usual.status, 0) << usual.err;
  EXPECT_EQ(usual.out, run_foretoken(step + " --prompts 1").out);
  EXPECT_EQ(run_foretoken(step + " --prompts 17").status, 2);
}

TEST(StepCommand, says_which_flags_its_phase_does_not_read) {
  const auto step = [](const std::string& flags) {
    return in_one_line(run_foretoken("step --model Llama-3.2-1B --device h100_sxm " + flags).out);
  };
  EXPECT_THAT(step("--context-len 512 --input-len 500"),
              HasSubstr("--input-len has no effect on a decode step: it belongs to --phase prefill, mixed, train."));
  EXPECT_THAT(step("--phase train --input-len 512 --context-len 512"),
              HasSubstr("--context-len has no effect on a train step: it belongs to --phase prefill, decode, mixed."));
  EXPECT_THAT(step("--phase prefill --prompts 2 --recompute"),
              HasSubstr("--recompute has no effect on a prefill step"));
  EXPECT_THAT(step("--phase mixed --batch 4 --prompts 2 --context-len 512 --input-len 512"),
              Not(HasSubstr("has no effect")));
}

TEST(StepCommand, says_which_balance_of_experts_it_assumes) {
  const auto step = [](const std::string& flags) {
    return in_one_line(
        run_foretoken("step --model DeepSeek-V3 --device h200_sxm --batch 16 --context-len 512 " + flags).out);
  };
  EXPECT_THAT(step("-tp 8"), HasSubstr("power law (exponent 1.2). To change this, set --routing or --expert-popu"));
  EXPECT_THAT(step("-dp 8 -ep 8 --all2all-backend deepep"), HasSubstr("Experts are assumed to be equally popular"));
  EXPECT_THAT(step("-tp 8 --routing balanced"), Not(HasSubstr("Experts are assumed")));
  EXPECT_THAT(step("-tp 8 --expert-popularity zipf:0.5"), Not(HasSubstr("Experts are assumed")));
}

}  // namespace foretoken::step_page_test
