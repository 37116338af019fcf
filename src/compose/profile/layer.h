// The repeating layer in a profiled step, its kernels sorted by the model's operators.
#pragma once

#include <vector>

#include "compose/profile/kernel_class.h"
#include "compose/profile/trace.h"
#include "model/step.h"

namespace foretoken {

// Kernels of one operator of one layer, and the host's time from the launch before them to their last launch.
struct LayerPart {
  std::vector<size_t> kernels;  // indices into the step's
  double host_us = 0;           // median over the layers
};

struct ProfiledLayer {
  StepPhase phase = StepPhase::prefill;
  size_t layers = 0;  // that the trace holds
  int64_t batch = 0, q_len = 0, kv_len = 0, heads = 0, kv_heads = 0, head_dim = 0, hidden = 0, inter = 0;
  std::optional<DType> dtype;
  std::vector<KernelClass> classes;              // of all kernels of the step
  std::vector<std::optional<double>> intervals;  // host_intervals_us() of the step

  LayerPart start;  // before the first layer's norm: embedding, positions, masks
  LayerPart output_projection, post_attention_norm, feed_in, activation, feed_out, input_norm, qkv, rotary, cache,
      attention;
  std::vector<MultiplySize> qkv_sizes;  // one for each multiply
  size_t feed_in_multiplies = 0;        // 1: gate and up are one, or there is no gate
};

// A layer runs from behind one attention to the end of the next; multiplies are told apart by their sizes, so the trace
// needs two layers and record_shapes=True. InputError says what is missing. Only the forward pass is read.
ProfiledLayer find_layer(const ProfiledStep& step);

}  // namespace foretoken
