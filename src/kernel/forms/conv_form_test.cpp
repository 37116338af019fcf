#include "kernel/forms/conv_form.h"

#include <gtest/gtest.h>

#include "kernel/test_support.h"

namespace foretoken::conv_form_test {

using namespace test_support;

double seconds(const ConvShape& shape) {
  const std::unique_ptr<Form> form = make_conv_fp32_form(Caches::benchmark);
  const std::vector<double> constants = start_constants(*form);
  return form_seconds(*form, {.shape = shape, .variant = {}}, traits_named("v100_pcie"), constants);
}

ConvShape square(int64_t kernel) {
  return {.batch = 32,
          .in_channels = 256,
          .out_channels = 256,
          .height = 56,
          .width = 56,
          .kernel_height = kernel,
          .kernel_width = kernel,
          .padding = kernel / 2,
          .scheme = Scheme::fp32};
}

TEST(ConvForm, winograd_makes_a_3x3_kernel_cheaper_per_multiply_than_a_5x5_one) {
  EXPECT_LT(seconds(square(3)) / 9, 0.85 * seconds(square(5)) / 25);
}

TEST(ConvForm, more_images_channels_or_pixels_are_never_faster) {
  RandomStream random(1, "conv");
  for (int i = 0; i < 200; ++i) {
    const auto size = [&](uint64_t most) { return static_cast<int64_t>(1 + random.below(most)); };
    ConvShape shape{.batch = size(64),
                    .in_channels = size(512),
                    .out_channels = size(512),
                    .height = 8 + size(64),
                    .width = 8 + size(64),
                    .kernel_height = 3,
                    .kernel_width = 3,
                    .padding = 1,
                    .scheme = Scheme::fp32};
    const double base = seconds(shape);
    ConvShape larger = shape;
    larger.batch *= 2;
    EXPECT_GE(seconds(larger), base * 0.999);
    larger = shape;
    larger.in_channels *= 2;
    EXPECT_GE(seconds(larger), base * 0.999);
    larger = shape;
    larger.out_channels *= 2;
    EXPECT_GE(seconds(larger), base * 0.999);
  }
}

}  // namespace foretoken::conv_form_test
