#include "kernel/forms/eager_form.h"

#include <gtest/gtest.h>

#include "kernel/evaluate.h"
#include "kernel/test_support.h"

namespace foretoken::eager_form_test {

using namespace test_support;

TEST(EagerForm, only_the_variant_eager_and_its_operations_are_timed_with_events) {
  EXPECT_TRUE(is_event_timed("eager"));
  EXPECT_TRUE(is_event_timed("eager tanh"));
  EXPECT_FALSE(is_event_timed(""));
  EXPECT_FALSE(is_event_timed("eagerly"));
  EXPECT_FALSE(is_event_timed("torch_add"));
}

TEST(EagerForm, events_add_at_least_the_gap_before_and_at_most_both_gaps) {
  for (const FormKind& kind : form_kinds()) {
    if (!kind.fp32) continue;
    RandomStream random(1, kind.name);
    const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
    const std::vector<double> constants = start_constants(*form);
    const size_t own = constants.size();
    const double before = constants[own - 3], after = constants[own - 2];
    for (int i = 0; i < 200; ++i) {
      FormCall call = random_call(kind, random);
      call.variant.clear();
      const double kernel = form_seconds(*form, call, traits_named("v100_pcie"), constants);
      call.variant = "eager";
      const double timed = form_seconds(*form, call, traits_named("v100_pcie"), constants);
      // A soft maximum of two like times is up to 2^(1/6) of one.
      ASSERT_GE(timed, before + std::max(kernel, after) * (1 - 1e-9));
      ASSERT_LE(timed, before + std::max(kernel, after) * 1.13);
    }
  }
}

TEST(EagerForm, linear_layers_and_batches_are_measured_apart_and_only_eager_alone_is_another_machines) {
  const std::unique_ptr<Form> gemm = make_gemm_fp32_form(Caches::benchmark);
  const DeviceTraits traits = traits_named("v100_pcie");
  FormCall call{.shape = GemmShape{.m = 64, .n = 64, .k = 64, .scheme = Scheme::fp32}, .variant = {}};
  EXPECT_EQ(gemm->usual_variant(call, traits), "eager linear");
  std::get<GemmShape>(call.shape).batch = 8;
  EXPECT_EQ(gemm->usual_variant(call, traits), "eager bmm");
  EXPECT_FALSE(gemm->is_of_another_machine(call));
  call.variant = "eager bmm";
  EXPECT_FALSE(gemm->is_of_another_machine(call));
  call.variant = "eager";
  EXPECT_TRUE(gemm->is_of_another_machine(call));
  for (const size_t constant : gemm->machine_constants())
    EXPECT_TRUE(gemm->constants()[constant].name.starts_with("gap_"));
  EXPECT_EQ(gemm->machine_constants().size(), 2u);
}

TEST(EagerForm, a_lower_power_limit_slows_long_multiplies_and_nothing_else) {
  const std::unique_ptr<Form> gemm = make_gemm_fp32_form(Caches::benchmark);
  const std::vector<double> constants = start_constants(*gemm);
  DeviceTraits traits = traits_named("a100_pcie");
  DeviceTraits capped = traits;
  capped.power = traits.power / 4;
  const FormCall large{.shape = GemmShape{.m = 8192, .n = 8192, .k = 8192, .scheme = Scheme::fp32}, .variant = {}};
  EXPECT_GT(form_seconds(*gemm, large, capped, constants), 1.5 * form_seconds(*gemm, large, traits, constants));
  const FormCall thin{.shape = GemmShape{.m = 1, .n = 64, .k = 64, .scheme = Scheme::fp32}, .variant = {}};
  EXPECT_NEAR(form_seconds(*gemm, thin, capped, constants), form_seconds(*gemm, thin, traits, constants), 1e-9);
  const std::unique_ptr<Form> eager = form_named("eager").make(Caches::benchmark);
  const std::vector<double> start = start_constants(*eager);
  const FormCall add{.shape = ElementwiseShape{.elements = 1 << 26, .inputs = 2, .dtype = DType::fp32}, .variant = {}};
  EXPECT_EQ(form_seconds(*eager, add, capped, start), form_seconds(*eager, add, traits, start));
}

TEST(EagerForm, a_correction_of_event_times_counts_for_the_kernel_by_its_share_of_them) {
  const std::unique_ptr<Form> form = form_named("eager").make(Caches::benchmark);
  const std::vector<double> constants = start_constants(*form);
  const DeviceTraits traits = traits_named("v100_pcie");
  const auto share = [&](int64_t elements, const char* variant) {
    const FormCall call{.shape = ElementwiseShape{.elements = elements, .dtype = DType::fp32}, .variant = variant};
    int choice = -1;
    form->seconds(call, traits, constants, choice);
    return form->residual_share(call, traits, constants, choice);
  };
  EXPECT_LT(share(1, ""), 0.2);
  EXPECT_GT(share(int64_t{1} << 30, ""), 0.95);
  EXPECT_EQ(share(1, "eager"), 1);
}

TEST(EagerForm, softmax_of_long_rows_passes_over_them_again) {
  const std::unique_ptr<Form> form = form_named("eager").make(Caches::benchmark);
  const std::vector<double> constants = start_constants(*form);
  const auto per_element = [&](int64_t width) {
    const int64_t rows = (int64_t{1} << 28) / width;
    const FormCall call{.shape = SoftmaxShape{.rows = rows, .width = width, .dtype = DType::fp32}, .variant = {}};
    return form_seconds(*form, call, traits_named("v100_pcie"), constants);
  };
  EXPECT_GT(per_element(2048), 1.05 * per_element(1024));
  // 16384 values of 80 processors' rows no longer stay in 6 MB.
  EXPECT_GT(per_element(16384), 1.4 * per_element(1024));
}

}  // namespace foretoken::eager_form_test
