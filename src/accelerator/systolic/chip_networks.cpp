#include "accelerator/systolic/chip_networks.h"

#include <array>

#include "base/error.h"

namespace foretoken {
namespace {

struct ResnetDepth {
  int64_t layers;
  std::array<int64_t, 4> blocks;
  bool bottleneck;
};

constexpr std::array resnet_depths = {ResnetDepth{18, {2, 2, 2, 2}, false}, ResnetDepth{34, {3, 4, 6, 3}, false},
                                      ResnetDepth{50, {3, 4, 6, 3}, true}, ResnetDepth{101, {3, 4, 23, 3}, true},
                                      ResnetDepth{152, {3, 8, 36, 3}, true}};

class ResnetBuilder {
 public:
  explicit ResnetBuilder(int64_t batch) : batch_(batch), side_(224), channels_(3) {
    work_.matrix_words = static_cast<double>(batch_ * channels_ * side_ * side_);
  }

  ChipWork build(const ResnetDepth& depth) {
    convolve(64, 7, 2, 3);
    side_ /= 2;
    work_.simple_operations += 9.0 * elements();  // maximum over 3 x 3
    const int64_t expansion = depth.bottleneck ? 4 : 1;
    for (size_t stage = 0; stage < depth.blocks.size(); ++stage) {
      const int64_t width = int64_t{64} << stage;
      for (int64_t block = 0; block < depth.blocks[stage]; ++block) {
        const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
        if (block == 0 && (stride > 1 || channels_ != width * expansion)) add_shortcut(width * expansion, stride);
        if (depth.bottleneck) {
          convolve(width, 1, 1, 0);
          convolve(width, 3, stride, 1);
          convolve(width * expansion, 1, 1, 0);
        } else {
          convolve(width, 3, stride, 1);
          convolve(width, 3, 1, 1);
        }
        work_.simple_operations += elements();  // the residual
      }
    }
    work_.simple_operations += elements();  // the average
    work_.products.push_back({.rows = batch_, .depth = channels_, .columns = 1000});
    work_.matrix_words += static_cast<double>(channels_ * 1000 + batch_ * 1000);
    return work_;
  }

 private:
  double elements() const { return static_cast<double>(batch_ * side_ * side_ * channels_); }

  ArrayProduct add_convolution(int64_t output_channels, int64_t kernel, int64_t stride, int64_t padding) {
    const ArrayProduct product = convolution_product({.batch = batch_,
                                                      .height = side_,
                                                      .width = side_,
                                                      .input_channels = channels_,
                                                      .output_channels = output_channels,
                                                      .kernel = kernel,
                                                      .stride = stride,
                                                      .padding = padding});
    work_.products.push_back(product);
    work_.matrix_words += static_cast<double>(kernel * kernel * channels_ * output_channels);
    // Scale, shift and rectify.
    work_.simple_operations += 3.0 * static_cast<double>(product.rows * output_channels);
    return product;
  }
  void add_shortcut(int64_t output_channels, int64_t stride) { add_convolution(output_channels, 1, stride, 0); }
  void convolve(int64_t output_channels, int64_t kernel, int64_t stride, int64_t padding) {
    add_convolution(output_channels, kernel, stride, padding);
    side_ = (side_ + 2 * padding - kernel) / stride + 1;
    channels_ = output_channels;
  }

  int64_t batch_;
  int64_t side_;
  int64_t channels_;
  ChipWork work_;
};

}  // namespace

ChipWork resnet_work(int64_t layers, int64_t batch) {
  for (const ResnetDepth& depth : resnet_depths) {
    if (depth.layers == layers) return ResnetBuilder(batch).build(depth);
  }
  throw InputError({.path = "resnet", .value = std::to_string(layers), .expected = "18, 34, 50, 101 or 152 layers"});
}

ChipWork bert_block_work(int64_t hidden, int64_t heads, int64_t sequence) {
  if (heads < 1 || hidden % heads != 0) {
    throw InputError({.path = "heads", .value = std::to_string(heads), .expected = "a divisor of the hidden size"});
  }
  const int64_t feed_forward = 4 * hidden;
  const double states = static_cast<double>(sequence) * static_cast<double>(hidden);
  ChipWork work = attention_work(heads, sequence, hidden / heads);
  work.products.push_back({.rows = sequence, .depth = hidden, .columns = hidden, .repeats = 4});
  work.products.push_back({.rows = sequence, .depth = hidden, .columns = feed_forward});
  work.products.push_back({.rows = sequence, .depth = feed_forward, .columns = hidden});
  work.matrix_words = 12.0 * static_cast<double>(hidden) * static_cast<double>(hidden);
  work.vector_words = 2 * states;  // into the block and out of it
  work.transcendental_elements += 4 * states;
  work.layernorm_elements = 2 * states;
  work.simple_operations = 2 * states;  // residuals
  return work;
}

}  // namespace foretoken
