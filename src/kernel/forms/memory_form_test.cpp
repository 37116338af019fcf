#include "kernel/forms/memory_form.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernel/test_support.h"
#include "model/work.h"

namespace foretoken::memory_form_test {

using namespace test_support;

constexpr double left_out = 3e-4;  // of soft maxima

double seconds(const KernelShape& shape, const DeviceTraits& device) {
  static const std::unique_ptr<Form> form = make_memory_form();
  static const std::vector<double> constants = start_constants(*form);
  return form_seconds(*form, {.shape = shape, .variant = {}}, device, constants);
}

// Every kind of call with n rows.
std::vector<KernelShape> calls_of(int64_t n) {
  return {QuantizeShape{.m = n, .k = 4096},
          NormShape{.rows = n, .width = 4096},
          NormShape{.rows = n, .width = 4096, .layer_norm = true, .adds_residual = true},
          RopeShape{.tokens = n, .heads = 32, .kv_heads = 8},
          ActivationShape{.rows = n, .width = 8192},
          ActivationShape{.rows = n, .width = 8192, .gated = false},
          SoftmaxShape{.rows = n, .width = 2048},
          EmbeddingShape{.tokens = n, .width = 4096},
          KvWriteShape{.tokens = n, .values_per_token = 2048},
          KvWriteShape{.tokens = n, .values_per_token = 2048, .kv_dtype = DType::fp8},
          ElementwiseShape{.elements = 1000 * n, .inputs = 2},
          HyperConnectionShape{.tokens = n, .hidden = 1024},
          HyperConnectionShape{.post = true, .tokens = n, .hidden = 1024}};
}

TEST(MemoryForm, more_rows_are_never_faster) {
  for (const Device& device : complete_gpus()) {
    const DeviceTraits traits = traits_of(device).traits;
    std::vector<double> before(calls_of(1).size(), 0.0);
    for (int64_t n = 1; n < 2'000'000; n += 1 + n / 4) {
      const std::vector<KernelShape> calls = calls_of(n);
      for (size_t i = 0; i < calls.size(); ++i) {
        const double now = seconds(calls[i], traits);
        // TileLang's projection takes two tokens at a time from 1,024 on: the one call that gets faster.
        const bool changes_kernel = std::holds_alternative<HyperConnectionShape>(calls[i]) && !traits.asynchronous &&
                                    n >= 1024 && n - n / 4 < 1100;
        ASSERT_GE(now, before[i] * (changes_kernel ? 0.5 : 1 - left_out))
            << device.name << " " << family_name(calls[i]) << " " << n;
        before[i] = now;
      }
    }
  }
}

TEST(MemoryForm, bytes_are_those_the_work_counts) {
  // So many that DRAM decides: the form then is bytes over bandwidth times its slowdown.
  const DeviceTraits traits = traits_named("h100_sxm");
  const std::unique_ptr<Form> form = make_memory_form();
  const double slowdown = 1.15;
  for (const KernelShape& call : calls_of(10'000'000)) {
    const double ideal = count_work(call).bytes().value() / traits.bandwidth * slowdown;
    EXPECT_NEAR(seconds(call, traits) / ideal, 1, 0.25) << family_name(call);
  }
}

TEST(MemoryForm, small_calls_cost_the_floor) {
  for (const char* device : {"a100_sxm", "h100_sxm", "l40s"}) {
    const DeviceTraits traits = traits_named(device);
    for (const KernelShape& call : calls_of(1)) {
      EXPECT_GT(seconds(call, traits), 3940 / traits.clock) << family_name(call);
      EXPECT_LT(seconds(call, traits), 3 * 3940 / traits.clock) << family_name(call);
    }
  }
}

TEST(MemoryForm, without_deepgemm_every_token_reads_the_weights_of_a_hyper_connection_again) {
  const auto of_tokens = [](int64_t tokens, const char* device, bool post) {
    const HyperConnectionShape shape{.post = post, .tokens = tokens, .hidden = 7168};
    return seconds(shape, traits_named(device));
  };
  // 24 columns of 28,672 fp32 weights for each token, from L2; the rows alone are 1.3 GB of DRAM traffic or less.
  EXPECT_GT(of_tokens(800, "l40s", false), 5 * of_tokens(800, "l40s", true));
  EXPECT_LT(of_tokens(1024, "l40s", false), 0.75 * of_tokens(1023, "l40s", false)) << "two tokens at a time";
  EXPECT_LT(of_tokens(800, "h100_sxm", false), 3 * of_tokens(800, "h100_sxm", true)) << "DeepGEMM";
}

TEST(MemoryForm, a_multiply_is_none_of_its_business) {
  EXPECT_THROW(seconds(GemmShape{}, traits_named("h100_sxm")), InternalError);
}

}  // namespace foretoken::memory_form_test
