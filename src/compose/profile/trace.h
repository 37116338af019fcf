// A PyTorch profiler trace (Kineto's Chrome JSON) -> kernels in the order they ran, each with the operator that
// launched it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compose/profile/message.h"

namespace foretoken {

struct ProfiledOperator {
  std::string name;  // aten::linear, triton_poi_fused_..., ...
  int64_t thread = 0;
  double start_us = 0, us = 0;
  std::vector<std::vector<int64_t>> dims;  // of its tensors, those of lists one by one; empty without record_shapes
  std::vector<std::string> types;          // of its inputs as PyTorch names them: c10::BFloat16, float, TensorList, ...
};

struct ProfiledKernel {
  std::string name;
  double start_us = 0, us = 0;
  std::optional<double> launched_us;  // when the host called; nothing when the trace does not say
  // Index of the outermost operator around the launch, wrappers of compiled regions and of autograd aside.
  std::optional<size_t> call;
  int64_t stream = 0;
  std::optional<ProfiledMessage> message;  // of a communication kernel, where PyTorch noted it
  bool copies = false;                     // a copy or fill of the driver, not a kernel
  bool backward = false;                   // launched by autograd's engine
};

struct ProfiledStep {
  std::string source;
  std::string device;  // as the driver names it; empty when the trace does not say
  std::vector<ProfiledOperator> operators;
  std::vector<ProfiledKernel> kernels;  // by start on the device
  bool graph = false;                   // a CUDA graph was launched
  std::optional<int64_t> rank;          // of a distributed job, where the trace says
  int64_t ranks = 0;                    // of that job; 0 = the trace does not say
};

// InputError with line and path for anything that is no such trace; at most 512 MiB and 40 million values.
ProfiledStep read_profile(const std::filesystem::path& file);
ProfiledStep parse_profile(std::string_view text, const std::string& source);

// For each kernel the host's time from the launch before it to its own, less what the profiler itself takes; nothing
// where a launch is not known. With record_shapes the profiler takes 4 us for each operator it records: add, silu,
// linear and layer_norm under it on an H200 host against data/measured/h200_sxm/launch.csv.
std::vector<std::optional<double>> host_intervals_us(const ProfiledStep& step);

}  // namespace foretoken
