// What a profiled kernel was asked to do, where its operator's sizes say it.
#pragma once

#include <optional>
#include <string>

#include "compose/profile/kernel_class.h"
#include "model/shapes.h"

namespace foretoken {

struct ProfiledShape {
  KernelShape shape;
  std::string variant;  // of the kernel layer; empty = none
};

// Nothing where the trace has no sizes (record_shapes=False, CUDA graphs) or the kernel is none that can be described.
// `call` may be null.
std::optional<ProfiledShape> shape_of_kernel(const ProfiledKernel& kernel, const ProfiledOperator* call,
                                             const KernelClass& kind);

}  // namespace foretoken
