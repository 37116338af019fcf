// What a profiled kernel does, from its name and the operator that launched it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/number_format.h"
#include "compose/profile/trace.h"

namespace foretoken {

enum class KernelRole {
  multiply,     // a matrix multiply, or a kernel that finishes one (split-K reduction)
  attention,    //
  elementwise,  // `variant` says which: torch_add, torch_cat, ...
  compiled,     // by torch.compile: does the work of a whole operator
  normalize,    // one kernel for a whole norm
  activate,     // one kernel for a whole activation other than silu and gelu on one input
  softmax,      //
  embed,        // rows of a table
  sample,       // argmax, top-k, sort
  communicate,  // between GPUs: NCCL, DeepEP
  driver,       // a copy or fill of the driver
  unknown,
};
std::string_view kernel_role_name(KernelRole role);

struct KernelClass {
  KernelRole role = KernelRole::unknown;
  std::string variant;   // of the kernel layer; empty = none
  int64_t elements = 0;  // elementwise: of the largest tensor, of the result for a concatenation
  int inputs = 0, outputs = 0;
  std::optional<DType> dtype;  // of the first input
};

// `call` may be null: then the kernel's name alone decides.
KernelClass classify_kernel(const ProfiledKernel& kernel, const ProfiledOperator* call);

// Columns and inner size of a multiply, from the sizes its operator was called with.
struct MultiplySize {
  int64_t n = 0, k = 0;
};
std::optional<MultiplySize> multiply_size(const ProfiledOperator& call);

std::optional<DType> torch_dtype(const std::string& name);

}  // namespace foretoken
