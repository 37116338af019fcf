// Element-wise operations, activations, softmax and norms in fp32 as a framework's own kernels run them.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

// PyTorch's softmax keeps a row of up to this many elements in the registers of a warp
// (aten/src/ATen/native/cuda/PersistentSoftmax.cuh).
inline constexpr int64_t longest_warp_softmax = 1024;

std::unique_ptr<Form> make_eager_memory_form(Caches caches);

}  // namespace foretoken
