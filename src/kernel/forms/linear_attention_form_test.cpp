#include "kernel/forms/linear_attention_form.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernel/forms/list.h"
#include "kernel/test_support.h"
#include "model/work.h"

namespace foretoken::linear_attention_form_test {

using namespace test_support;

double seconds(const KernelShape& shape, const DeviceTraits& device, const std::string& variant = {}) {
  static const std::unique_ptr<Form> form = make_linear_attention_form();
  static const std::vector<double> constants = start_constants(*form);
  return form_seconds(*form, {.shape = shape, .variant = variant}, device, constants);
}

// Every kind of call the form knows.
std::vector<LinearAttentionShape> calls_of(int64_t batch, int64_t seq_len) {
  std::vector<LinearAttentionShape> calls;
  for (const LinearAttentionKind kind :
       {LinearAttentionKind::gdn, LinearAttentionKind::kda, LinearAttentionKind::mamba2}) {
    for (const LinearAttentionStage stage : {LinearAttentionStage::convolution, LinearAttentionStage::recurrence}) {
      for (const bool decode : {false, true}) {
        const LinearAttentionShape shape{.kind = kind,
                                         .stage = stage,
                                         .decode = decode,
                                         .batch = batch,
                                         .seq_len = decode ? 1 : seq_len,
                                         .key_heads = 16,
                                         .value_heads = 32};
        if (linear_attention_is_known(shape)) calls.push_back(shape);
      }
    }
  }
  return calls;
}

TEST(LinearAttentionForm, more_sequences_are_never_faster) {
  for (const Device& device : complete_gpus()) {
    const DeviceTraits traits = traits_of(device).traits;
    std::vector<double> before(calls_of(1, 1024).size(), 0.0);
    for (int64_t batch = 1; batch < 5000; batch += 1 + batch / 4) {
      const std::vector<LinearAttentionShape> calls = calls_of(batch, 1024);
      for (size_t i = 0; i < calls.size(); ++i) {
        const double now = seconds(calls[i], traits);
        ASSERT_GE(now, before[i] * (1 - 3e-4)) << device.name << " " << family_name(calls[i]) << " " << batch;
        before[i] = now;
      }
    }
  }
}

TEST(LinearAttentionForm, longer_sequences_are_never_faster_where_they_are_read_eight_tokens_at_a_time) {
  const DeviceTraits traits = traits_named("h100_sxm");
  std::vector<double> before(calls_of(4, 8).size(), 0.0);
  for (int64_t length = 8; length < 100'000; length += 8 * (1 + length / 40)) {
    const std::vector<LinearAttentionShape> calls = calls_of(4, length);
    for (size_t i = 0; i < calls.size(); ++i) {
      const double now = seconds(calls[i], traits);
      ASSERT_GE(now, before[i] * (1 - 3e-4)) << family_name(calls[i]) << " " << length;
      before[i] = now;
    }
  }
}

TEST(LinearAttentionForm, a_fused_recurrence_costs_whole_waves_of_heads) {
  const DeviceTraits traits = traits_named("h100_sxm");
  const auto fused = [&](int64_t heads) {
    return seconds(LinearAttentionShape{.batch = 1, .seq_len = 16384, .key_heads = 1, .value_heads = heads}, traits,
                   "chunk_gated_delta_rule_flashinfer");
  };
  const auto processors = static_cast<int64_t>(traits.processors);
  EXPECT_GT(fused(processors + 1), 1.5 * fused(processors));
  EXPECT_LT(fused(2 * processors), 1.2 * fused(processors + 1));
}

TEST(LinearAttentionForm, a_decode_of_many_sequences_is_the_traffic_of_its_state) {
  for (const char* device : {"a100_sxm", "h100_sxm", "b200_sxm", "l40s"}) {
    const DeviceTraits traits = traits_named(device);
    const LinearAttentionShape shape{.decode = true, .batch = 2048, .key_heads = 16, .value_heads = 32};
    const double ideal = count_work(shape).bytes().value() / traits.bandwidth;
    EXPECT_GT(seconds(shape, traits), ideal) << device;
    EXPECT_LT(seconds(shape, traits), 1.5 * ideal) << device;
  }
}

TEST(LinearAttentionForm, a_state_that_fits_in_the_cache_is_rewritten_there) {
  const DeviceTraits traits = traits_named("l40s");  // 96 MB of L2
  const auto of_batch = [&](int64_t batch) {
    return seconds(LinearAttentionShape{.decode = true, .batch = batch, .key_heads = 16, .value_heads = 32}, traits);
  };
  EXPECT_GT(of_batch(128), 10 * of_batch(16));
}

TEST(LinearAttentionForm, recurrences_that_nobody_measured_have_no_form) {
  const LinearAttentionShape mamba{.kind = LinearAttentionKind::mamba2};
  EXPECT_EQ(form_family(mamba), "");
  LinearAttentionShape convolution = mamba;
  convolution.stage = LinearAttentionStage::convolution;
  EXPECT_EQ(form_family(convolution), "linattn_mamba2");
  convolution.kind = LinearAttentionKind::lightning;
  EXPECT_EQ(form_family(convolution), "");
  EXPECT_EQ(form_family(LinearAttentionShape{}), "linattn_gdn");
}

TEST(LinearAttentionForm, a_multiply_is_none_of_its_business) {
  EXPECT_THROW(seconds(GemmShape{}, traits_named("h100_sxm")), InternalError);
}

}  // namespace foretoken::linear_attention_form_test
