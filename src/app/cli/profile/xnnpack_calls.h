// Kernels of XNNPACK, the library that TensorFlow Lite and PyTorch Mobile run on CPUs, as calls that a sweep can time.
#pragma once

#include "kernel/edge/cpu_sweep.h"

namespace foretoken {

// Whether this program was built with it: Debian's libxnnpack-dev and libpthreadpool-dev.
bool has_xnnpack();

// fp32, channels last. A batched product is run as one fully connected layer after the other, a
// concatenation as a copy, a scaled softmax as a softmax; an empty call is an addition of one element. InputError
// without XNNPACK.
// On `threads` threads, which the calls of one count share.
CpuCall xnnpack_call(const EdgeKernel& kernel, int threads = 1);

}  // namespace foretoken
