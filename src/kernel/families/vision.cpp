// Convolution and pooling of images.
#include "kernel/families/list.h"
#include "kernel/families/parameters.h"
#include "model/work.h"

namespace foretoken {
namespace vision {
namespace {

enum ConvParameter {
  conv_dtype,
  batch,
  in_channels,
  out_channels,
  height,
  width,
  kernel_h,
  kernel_w,
  stride,
  padding,
  dilation,
  groups
};

std::optional<Misfit> conv_misfit(KernelValues v) {
  if (count(v[in_channels]) % count(v[groups]) != 0 || count(v[out_channels]) % count(v[groups]) != 0) {
    return Misfit{groups, "a divisor of in_channels and out_channels"};
  }
  const auto fits = [&](ConvParameter size, ConvParameter kernel) {
    return convolved_size(count(v[size]), count(v[kernel]), count(v[stride]), count(v[padding]), count(v[dilation])) >
           0;
  };
  if (!fits(height, kernel_h)) return Misfit{kernel_h, "a kernel no larger than the padded image"};
  if (!fits(width, kernel_w)) return Misfit{kernel_w, "a kernel no larger than the padded image"};
  return std::nullopt;
}

KernelShape conv_shape(KernelValues v) {
  return ConvShape{.batch = count(v[batch]),
                   .in_channels = count(v[in_channels]),
                   .out_channels = count(v[out_channels]),
                   .height = count(v[height]),
                   .width = count(v[width]),
                   .kernel_height = count(v[kernel_h]),
                   .kernel_width = count(v[kernel_w]),
                   .stride = count(v[stride]),
                   .padding = count(v[padding]),
                   .dilation = count(v[dilation]),
                   .groups = count(v[groups]),
                   .scheme = scheme(v[conv_dtype])};
}

}  // namespace
}  // namespace vision

KernelFamily conv_family() {
  return {
      .name = "conv",
      .summary = "two-dimensional convolution, grouped or depthwise too",
      .parameters = {scheme_parameter("dtype", "how weights and activations are stored and multiplied"),
                     size_parameter_or("batch", "images", "1"), size_parameter("in_channels", "input channels", "64"),
                     size_parameter("out_channels", "output channels", "128"),
                     size_parameter("height", "input height", "56"), size_parameter("width", "input width", "56"),
                     size_parameter_or("kernel_h", "kernel height", "3"),
                     size_parameter_or("kernel_w", "kernel width", "3"), size_parameter_or("stride", "step", "1"),
                     size_parameter_or("padding", "zeros on each side", "0", 0),
                     size_parameter_or("dilation", "spacing of taps", "1"),
                     size_parameter_or("groups", "channel groups", "1")},
      .shape = vision::conv_shape,
      .misfit = vision::conv_misfit};
}

KernelFamily pool_family() {
  return {
      .name = "pool",
      .summary = "average or maximum pooling",
      .parameters = {dtype_parameter("dtype", "of input and output", DType::bf16),
                     size_parameter_or("batch", "images", "1"), size_parameter("channels", "channels", "64"),
                     size_parameter("height", "input height", "112"), size_parameter("width", "input width", "112"),
                     size_parameter_or("size", "side of the window", "2"), size_parameter_or("stride", "step", "2")},
      .shape = [](KernelValues v) -> KernelShape {
        return PoolShape{.batch = count(v[1]),
                         .channels = count(v[2]),
                         .height = count(v[3]),
                         .width = count(v[4]),
                         .kernel = count(v[5]),
                         .stride = count(v[6]),
                         .dtype = dtype(v[0])};
      },
      .misfit = [](KernelValues v) -> std::optional<Misfit> {
        if (v[5] > v[3] || v[5] > v[4]) return Misfit{5, "a window no larger than the image"};
        return std::nullopt;
      }};
}

}  // namespace foretoken
