#include "kernel/edge/edge_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/test_support.h"

namespace foretoken::edge_kernel_test {

using namespace test_support;
using testing::HasSubstr;

EdgeKernel parsed(std::string_view kind, std::string_view parameters) {
  return parse_edge_kernel(kind, parameters, "sweep.csv", 7);
}

TEST(EdgeKernel, written_and_read_back_it_is_the_same) {
  const std::pair<const char*, const char*> kernels[] = {
      {"conv", "ic=24;oc=192;h=112;oh=56;k=3;s=2;act=swish"},
      {"conv", "ic=24;oc=192;h=112;oh=56;k=3;s=2;act=none;w=80;ow=40;kw=1;g=4;b=2"},
      {"dwconv", "ic=24;oc=24;h=112;oh=56;k=3;s=2;act=relu"},
      {"linear", "m=16;k=768;n=1280"},
      {"bmm", "b=6;m=128;k=32;n=128"},
      {"maxpool", "n=23328;o=5408;k=2"},
      {"layernorm", "n=12288;r=32"},
      {"transpose", "n=131072;t=1"},
      {"traffic", "n=1000;o=10"},
      {"null", ""},
  };
  for (const auto& [kind, parameters] : kernels) {
    const EdgeKernel kernel = parsed(kind, parameters);
    EXPECT_EQ(edge_kind_name(kernel.kind), kind);
    EXPECT_EQ(edge_parameters(kernel), parameters);
  }
}

TEST(EdgeKernel, a_convolution_with_a_group_per_channel_is_depthwise) {
  EXPECT_EQ(edge_convolution({.groups = 8, .in_channels = 8, .out_channels = 8}).kind, EdgeKernelKind::depthwise);
  EXPECT_EQ(edge_convolution({.groups = 4, .in_channels = 8, .out_channels = 8}).kind, EdgeKernelKind::convolution);
  EXPECT_EQ(edge_convolution({.in_channels = 1, .out_channels = 1}).kind, EdgeKernelKind::convolution);
}

TEST(EdgeKernel, a_convolution_without_a_window_works_like_the_product_it_is) {
  const Work convolution = edge_work(parsed("conv", "ic=64;oc=96;h=10;oh=10;k=1;s=1"));
  const Work product = edge_work(parsed("linear", "m=100;k=64;n=96"));
  EXPECT_EQ(convolution.flops, product.flops);
  EXPECT_EQ(convolution.bytes(), product.bytes());
}

TEST(EdgeKernel, groups_divide_the_work_of_a_convolution) {
  const Work whole = edge_work(parsed("conv", "ic=64;oc=96;h=10;oh=10;k=3;s=1"));
  const Work grouped = edge_work(parsed("conv", "ic=64;oc=96;h=10;oh=10;k=3;s=1;g=4"));
  EXPECT_EQ(grouped.flops * 4, whole.flops);
  EXPECT_EQ(grouped.weights_read * 4, whole.weights_read);
}

TEST(EdgeKernel, what_is_wrong_is_said_with_its_place) {
  const auto problem = [](const char* kind, const char* parameters) {
    return problem_of([&] { parsed(kind, parameters); });
  };
  EXPECT_EQ(problem("con", "").suggestion, "conv");
  EXPECT_EQ(problem("con", "").line, 7);
  EXPECT_THAT(problem("linear", "m=1;k=2").expected, HasSubstr("a value for n"));
  EXPECT_THAT(problem("linear", "m=0;k=2;n=3").value, HasSubstr("m=0"));
  EXPECT_THAT(problem("linear", "m=1;k=2;n=99999999999999").value, HasSubstr("n=9"));
  EXPECT_THAT(problem("linear", "m=1;k=2;n=3;n=4").expected, HasSubstr("once"));
  EXPECT_THAT(problem("linear", "m=1;k=2;n=3;z=4").value, HasSubstr("z"));
  EXPECT_THAT(problem("gelu", "n").expected, HasSubstr("key=value"));
  EXPECT_THAT(problem("conv", "ic=1;oc=1;h=1;oh=1;k=1;s=1;act=tanh").expected, HasSubstr("swish"));
}

}  // namespace foretoken::edge_kernel_test
