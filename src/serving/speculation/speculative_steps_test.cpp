#include "serving/speculation/speculative_steps.h"

#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::speculative_steps_test {

// Remembers what it was asked for.
class RecordedSteps final : public StepTimes {
 public:
  explicit RecordedSteps(double seconds) : seconds_(seconds) {}
  Estimate step_seconds(const StepBatch& batch) override {
    asked.push_back(batch);
    return exactly(seconds_);
  }
  std::vector<StepBatch> asked;

 private:
  double seconds_;
};

Speculation chain(int64_t drafts) {
  return {.draft_tokens = drafts, .verified_tokens = drafts, .acceptance = Acceptance::constant(0.5, drafts)};
}

const StepBatch decodes{
    .decodes = 4, .decode_context_tokens = 400, .longest_decode_context = 130, .drafted_tokens = 12, .prompts = {}};

TEST(SpeculativeSteps, a_step_takes_verification_and_drafting) {
  for (const char* method : {"draft_model", "eagle", "eagle3", "mtp"}) {
    RecordedSteps target(1), network(0.1);
    const auto steps =
        speculative_steps(target, {.method = &draft_method(method), .network = &network, .speculation = chain(3)});
    EXPECT_DOUBLE_EQ(steps->step_seconds(decodes).value, 1.3) << method;
    ASSERT_EQ(network.asked.size(), 2U);
    EXPECT_EQ(network.asked[0].new_tokens(), decodes.new_tokens());  // the first pass follows the target
    EXPECT_EQ(network.asked[0].sampled_tokens(), 4);
    EXPECT_EQ(network.asked[1].new_tokens(), 4);  // the others one token each
  }
}

TEST(SpeculativeSteps, heads_run_once_for_each_draft) {
  RecordedSteps target(1), network(0.1);
  const auto steps =
      speculative_steps(target, {.method = &draft_method("medusa"), .network = &network, .speculation = chain(3)});
  EXPECT_DOUBLE_EQ(steps->step_seconds(decodes).value, 1.3);
  EXPECT_EQ(network.asked.back().new_tokens(), 4);
}

TEST(SpeculativeSteps, a_search_for_n_grams_takes_longer_in_longer_texts) {
  RecordedSteps target(1);
  const auto steps = speculative_steps(target, {.method = &draft_method("ngram"), .speculation = chain(3)});
  StepBatch longer = decodes;
  longer.decode_context_tokens *= 1000;
  EXPECT_GT(steps->step_seconds(decodes).value, 1);
  EXPECT_GT(steps->step_seconds(longer).value, steps->step_seconds(decodes).value);
}

TEST(SpeculativeSteps, a_prompt_is_read_by_the_drafter_and_drafts_when_it_ends) {
  RecordedSteps target(1), network(0.1);
  const auto steps =
      speculative_steps(target, {.method = &draft_method("eagle"), .network = &network, .speculation = chain(3)});
  PromptChunk chunk{.new_tokens = 500, .context_tokens = 0, .yields_token = false};
  EXPECT_DOUBLE_EQ(steps->step_seconds({.prompts = {&chunk, 1}}).value, 1.1);
  chunk.yields_token = true;
  EXPECT_DOUBLE_EQ(steps->step_seconds({.prompts = {&chunk, 1}}).value, 1.3);
  EXPECT_EQ(network.asked.back().decode_context_tokens, 500);
}

TEST(SpeculativeSteps, nothing_is_drafted_above_a_number_of_sequences) {
  RecordedSteps target(1), network(0.1);
  Speculation few = chain(3);
  few.most_sequences = 3;
  const auto steps =
      speculative_steps(target, {.method = &draft_method("mtp"), .network = &network, .speculation = few});
  StepBatch plain = decodes;
  plain.drafted_tokens = 0;
  EXPECT_DOUBLE_EQ(steps->step_seconds(plain).value, 1);
}

TEST(SpeculativeSteps, a_tree_has_several_tokens_in_each_pass) {
  RecordedSteps target(1), network(0.1);
  Speculation tree = chain(3);
  tree.verified_tokens = 12;
  const auto steps =
      speculative_steps(target, {.method = &draft_method("eagle"), .network = &network, .speculation = tree});
  steps->step_seconds(decodes);
  EXPECT_EQ(network.asked.back().new_tokens(), 4 * 4);
}

TEST(SpeculativeSteps, a_bounded_draft_context_is_never_exceeded) {
  RecordedSteps target(1), network(0.1);
  Speculation bounded = chain(3);
  bounded.draft_context = 50;
  const auto steps =
      speculative_steps(target, {.method = &draft_method("eagle"), .network = &network, .speculation = bounded});
  steps->step_seconds(decodes);
  for (const StepBatch& pass : network.asked) {
    EXPECT_EQ(pass.decode_context_tokens, 200);
    EXPECT_EQ(pass.longest_decode_context, 50);
  }
}

TEST(SpeculativeSteps, a_block_is_drafted_in_one_pass) {
  for (const char* method : {"dspark", "dflash"}) {
    for (const int64_t drafts : {1, 5}) {
      RecordedSteps target(1), network(0.1);
      const auto steps = speculative_steps(
          target, {.method = &draft_method(method), .network = &network, .speculation = chain(drafts)});
      EXPECT_DOUBLE_EQ(steps->step_seconds(decodes).value, 1.1) << method;
      ASSERT_EQ(network.asked.size(), 1U);
      EXPECT_EQ(network.asked[0].new_tokens(), 4 * drafts) << "the tokens of the block of each sequence";
      EXPECT_EQ(network.asked[0].sampled_tokens(), 4 * drafts) << "the head runs on all of them";
    }
  }
}

}  // namespace foretoken::speculative_steps_test
