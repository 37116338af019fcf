// Rows of SGLang's cookbook: drafters and limits in columns of their own.
#include <gtest/gtest.h>

#include "base/file.h"
#include "library/library.h"
#include "validate/serving/serving_case_test_support.h"
#include "validate/serving/serving_specs.h"

namespace foretoken::cookbook_rows_test {

namespace fs = std::filesystem;
using serving_case_test::ServingCases;

class CookbookRows : public ServingCases {
 protected:
  std::optional<ServingCase> cookbook(const std::string& model, const std::string& lengths, const std::string& flags,
                                      const std::string& drafts, const std::string& extra = "",
                                      const std::string& ranks = "1,4,4,4") {
    write_file(
        file_,
        "source,gpu,model,engine,weight_dtype,tp,num_gpus,dp,ep,mode,isl,osl,length_spec,concurrency,num_requests,"
        "engine_flags,tpot_ms,tpot_stat,spec_method,spec_steps,spec_draft_tokens,accept_length,extra\n"
        "SGLang cookbook,H200-SXM-141GB," +
            model + ",sglang,fp8," + ranks + ",agg,8192,1024,\"" + lengths + "\",64,128,\"" + flags + "\",20,median," +
            drafts + ",\"" + extra + "\"\n");
    ServingCaseReader reader(file_, hardware_, facts_);
    EXPECT_TRUE(reader.next());
    return reader.read(why_);
  }
};

const std::string fixed_lengths = "fixed, random tokens, EOS ignored";

TEST_F(CookbookRows, limits_of_one_rank_become_those_that_the_engine_is_told) {
  const auto point =
      cookbook("GLM-5", fixed_lengths,
               "sglang; expert exchange deepep; chunked-prefill-size 4096 a rank (16384 in the command); "
               "max-running-requests 32 a rank (128 in the command)",
               ",,,");
  ASSERT_TRUE(point) << why_;
  EXPECT_EQ(point->pool.plan.data, 4);
  EXPECT_EQ(point->pool.plan.exchange, ExpertExchange::all_to_all);
  EXPECT_EQ(point->flags.max_num_batched_tokens, 16384);
  EXPECT_EQ(point->flags.max_num_seqs, 128);
  EXPECT_EQ(point->load.input_range->least, 8192);
}

TEST_F(CookbookRows, lengths_from_one_to_a_nominal_are_uniform) {
  const auto point = cookbook("GLM-5",
                              "random tokens, lengths of each request uniform in 1..8000 (input) and 1..1000 "
                              "(output): --random-range-ratio 0; isl and osl are the means of the run",
                              "sglang", ",,,");
  ASSERT_TRUE(point) << why_;
  EXPECT_EQ(point->load.input_range->least, 1);
  EXPECT_EQ(point->load.input_range->most, 8000);
  EXPECT_EQ(point->load.output_range->most, 1000);
  EXPECT_EQ(point->flags.max_model_len, 9256);
  const auto table = cookbook("deepseek-ai/DeepSeek-V4-Flash", fixed_lengths, "sglang", ",,,");
  ASSERT_TRUE(table) << why_;
  EXPECT_EQ(table->load.input_range->least, 1) << "fixed lengths do not add up there";
  EXPECT_EQ(cookbook("deepseek-ai/DeepSeek-V4-Pro-0813", fixed_lengths, "sglang", ",,,")->load.input_range->least,
            8192);
}

TEST_F(CookbookRows, conversations_have_lengths_around_their_means) {
  const auto point = cookbook("GLM-5", "ShareGPT conversations (the default of the load generator)", "sglang", ",,,");
  ASSERT_TRUE(point) << why_;
  EXPECT_EQ(point->load.dataset, Dataset::lognormal);
  EXPECT_EQ(point->load.input_law->mean, 8192);
  EXPECT_EQ(point->load.max_concurrency, 64);
}

TEST_F(CookbookRows, drafters_are_read_from_their_columns) {
  const std::string mtp_flags = "sglang; MTP speculative decoding, 3 draft tokens (NEXTN 3-1-4)";
  const auto measured = cookbook("GLM-5", fixed_lengths, mtp_flags, "NEXTN,3,4,3.12");
  ASSERT_TRUE(measured) << why_;
  EXPECT_EQ(measured->draft_method, "mtp");
  EXPECT_EQ(measured->drafts, 3);
  EXPECT_EQ(measured->acceptance_length, 3.12);
  EXPECT_FALSE(measured->acceptance_is_forced);
  EXPECT_TRUE(cookbook("GLM-5", fixed_lengths, mtp_flags, "NEXTN,3,4,3.5",
                       "acceptance length pinned by SGLANG_SIMULATE_ACC_LEN")
                  ->acceptance_is_forced);
  EXPECT_EQ(measured->load.texts, PromptTexts::random);
  EXPECT_EQ(measured->stack, "sglang");
  const auto of_april = cookbook("mistralai/Mistral-Medium-3.5-128B", fixed_lengths, mtp_flags, "NEXTN,3,4,1.7");
  ASSERT_TRUE(of_april) << why_;
  EXPECT_EQ(of_april->stack, "sglang-0.5.10") << "drafts were not overlapped then";
  EXPECT_EQ(cookbook("mistralai/Mistral-Medium-3.5-128B", fixed_lengths, "sglang", ",,,")->stack, "sglang");
  const auto block = cookbook("deepseek-ai/DeepSeek-V4-Flash-0731", fixed_lengths, "sglang; DSPARK", "DSPARK,,,");
  ASSERT_TRUE(block) << why_;
  EXPECT_EQ(block->draft_method, "dspark");
  EXPECT_EQ(block->drafts, 5) << "as the checkpoint has it";
  EXPECT_EQ(cookbook("GLM-5", fixed_lengths, "sglang", "DFLASH,1,16,")->drafts, 15);
  EXPECT_FALSE(cookbook("GLM-5", fixed_lengths, "sglang", "EAGLE,,,"));
}

TEST_F(CookbookRows, rows_that_contradict_themselves_are_left_out_with_the_reason) {
  EXPECT_FALSE(cookbook("GLM-5", fixed_lengths, "sglang", ",,,", "doubtful: TPOT grows with the prompt; note"));
  EXPECT_NE(why_.find("TPOT grows with the prompt"), std::string::npos);
  EXPECT_FALSE(cookbook("GLM-5", fixed_lengths, "sglang", ",,,", "concurrency x time does not add up (1.68)"));
  EXPECT_NE(why_.find("does not match the concurrency"), std::string::npos);
  EXPECT_FALSE(cookbook("GLM-5", fixed_lengths, "sglang", ",,,", "p99 TTFT 7 s; WIP study"));
  EXPECT_NE(why_.find("unfinished study"), std::string::npos);
}

TEST_F(CookbookRows, an_acceptance_that_the_row_does_not_give_is_unknown) {
  const Library library{fs::path(FORETOKEN_SOURCE_DIR "/data")};
  ServingSpecMaker maker(library, std::nullopt, {});
  const std::string flags = "sglang; MTP speculative decoding, 3 draft tokens";
  const auto drafted = [&](const std::string& drafts) {
    auto point = cookbook("GLM-5", fixed_lengths, flags, drafts, "", "8,8,1,1");
    EXPECT_TRUE(point) << why_;
    maker.open(*point);
    return maker.specs(*point).engine.speculation.value();
  };
  EXPECT_EQ(drafted("NEXTN,3,4,").unknown_acceptance.size(), 2U);
  const SpeculativeConfig given = drafted("NEXTN,3,4,3.48");
  EXPECT_TRUE(given.unknown_acceptance.empty());
  EXPECT_NEAR(given.acceptance->expected_tokens(3), 3.48, 1e-9);
}

}  // namespace foretoken::cookbook_rows_test
