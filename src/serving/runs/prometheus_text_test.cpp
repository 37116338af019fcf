#include "serving/runs/prometheus_text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::prometheus_text_test {

TEST(PrometheusText, engines_of_one_server_are_added_up) {
  const auto sample = parse_prometheus_text(
      "# HELP vllm:num_requests_running Requests\n# TYPE vllm:num_requests_running gauge\n"
      "vllm:num_requests_running{engine=\"0\",model_name=\"a } b\"} 3.0\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"a } b\"} 4.0\n"
      "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.25\n"
      "vllm:prompt_tokens_total{engine=\"0\"} 1.234e+06 1700000000000\nother_metric 5\n");
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->running, 7);
  EXPECT_EQ(sample->kv_usage, 0.375);
  EXPECT_EQ(sample->prompt_tokens, 1'234'000);
  EXPECT_FALSE(sample->waiting);
}

TEST(PrometheusText, sglang_has_names_of_its_own) {
  const std::string text =
      "# x\nsglang:num_running_reqs{} 2\nsglang:num_queue_reqs 9\nsglang:token_usage{a=\"b\"} 0.1\n";
  const auto sample = parse_prometheus_text(text);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->waiting, 9);
  EXPECT_EQ(prometheus_engine(text), "sglang");
}

TEST(PrometheusText, other_texts_hold_no_sample) {
  EXPECT_FALSE(parse_prometheus_text("<html>not found</html>"));
  EXPECT_FALSE(parse_prometheus_text(""));
  EXPECT_THROW(parse_prometheus_text("vllm:num_requests_running{a=\"b\"} many\n"), InputError);
}

}  // namespace foretoken::prometheus_text_test
