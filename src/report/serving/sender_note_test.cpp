#include "report/serving/sender_note.h"

#include <gtest/gtest.h>

namespace foretoken::sender_note_test {

constexpr Seconds piece{50e-6};  // 20,000 tokens/s

ServingMetrics made(double peak, int64_t tokens) {
  ServingMetrics metrics;
  metrics.duration_s = 10;
  metrics.output_tokens = tokens;
  metrics.peak_output_tokens_per_s = peak;
  return metrics;
}

TEST(SenderNote, is_given_where_engines_make_more_tokens_than_are_sent) {
  EXPECT_NE(sender_note("sglang", piece, 1, 1, made(30'000, 150'000)).find("at most 20000 tokens/s"),
            std::string::npos);
  EXPECT_EQ(sender_note("sglang", piece, 10, 1, made(30'000, 150'000)), "") << "ten tokens in a piece";
  EXPECT_EQ(sender_note("sglang", piece, 1, 2, made(30'000, 150'000)), "") << "two servers send twice as many";
  EXPECT_EQ(sender_note("sglang", piece, 1, 1, made(15'000, 150'000)), "");
  EXPECT_EQ(sender_note("sglang", piece, 1, 1, made(30'000, 20'000)), "") << "one busy second";
  EXPECT_EQ(sender_note("vllm", Seconds{0}, 1, 1, made(30'000, 150'000)), "");
}

}  // namespace foretoken::sender_note_test
