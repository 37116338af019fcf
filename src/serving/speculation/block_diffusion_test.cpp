// Diffusion language models: blocks of tokens denoised together.
#include "serving/speculation/block_diffusion.h"

#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::block_diffusion_test {

struct DiffusionRun {
  RecordedRun seen;
  SimulationTotals totals;
};

DiffusionRun run_with(const BlockDiffusion& diffusion, const std::vector<Request>& requests) {
  LinearTimes times({});
  ListedRequests source(requests);
  DiffusionRun run;
  const SchedulerOptions options{.max_num_seqs = 16, .num_gpu_blocks = 4000, .speculation = denoising(diffusion)};
  run.totals = simulate({.replicas = {{.options = options, .times = &times}}}, source, run.seen);
  return run;
}

TEST(BlockDiffusion, a_block_of_one_token_is_the_plain_run) {
  const std::vector<Request> requests = random_requests(1, 50, 30, 300, 60);
  const std::vector<RequestRecord> plain = run_with({}, requests).seen.sorted();
  const std::vector<RequestRecord> one = run_with({.block_tokens = 1, .steps = 1}, requests).seen.sorted();
  ASSERT_EQ(plain.size(), one.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(plain[i].last_token, one[i].last_token);
}

TEST(BlockDiffusion, all_tokens_come_out_for_any_block_and_steps) {
  const std::vector<Request> requests = random_requests(2, 50, 30, 300, 100);
  for (const BlockDiffusion diffusion : {BlockDiffusion{8, 8}, {32, 8}, {32, 1}, {64, 32}}) {
    const DiffusionRun run = run_with(diffusion, requests);
    ASSERT_EQ(run.totals.completed, 50);
    for (const RequestRecord& record : run.seen.requests) {
      EXPECT_EQ(record.output_tokens, requests[static_cast<size_t>(record.id)].output_tokens);
    }
  }
}

TEST(BlockDiffusion, a_step_computes_the_block_and_settles_its_share) {
  const int64_t output = 1 + 5 * 32;  // the first token comes with the prompt
  const std::vector<Request> alone = {{.id = 0, .arrival = 0, .input_tokens = 64, .output_tokens = output}};
  for (const int64_t steps : {1, 4, 8, 32}) {
    const DiffusionRun run = run_with({.block_tokens = 32, .steps = steps}, alone);
    EXPECT_EQ(run.totals.steps, 1 + 5 * steps) << "five blocks behind the prompt";
    const StepRecord& last = run.seen.steps.back();
    EXPECT_EQ(last.decode_tokens + last.drafted_tokens, 32);
  }
}

}  // namespace foretoken::block_diffusion_test
