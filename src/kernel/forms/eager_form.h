// What an eager framework and the board add to the kernels of a form: the host's gap around a call that is timed with
// events, and the power limit under long fp32 multiplies.
#pragma once

#include <memory>
#include <string_view>

#include "kernel/forms/form.h"

namespace foretoken {

// The variant of a framework's own kernel, timed alone.
inline constexpr std::string_view framework_kernel = "eager-kernel";
// Whether a variant says that a framework ran the call: framework_kernel, or timed with events.
bool is_framework_kernel(std::string_view variant);

// Whether a call's variant says that it was timed with events around a call of the framework: "eager", "eager tanh".
// Such a time is before + max(kernel, after): the host reaches the launch `before` the kernel can start, and records
// the second event `after` it has launched. A kernel's own time holds neither.
bool is_event_timed(std::string_view variant);

// `kernel` with the constants gap_before, gap_after and picojoules_per_flop behind its own. Effects are the kernel's
// and "amd", "batched" and "host <operation>".
std::unique_ptr<Form> make_eager_form(std::unique_ptr<Form> kernel, std::string_view name);

// Linear layers and batches of multiplies in plain fp32 (no TF32): cuBLAS sgemm, rocBLAS on the matrix units.
std::unique_ptr<Form> make_gemm_fp32_form(Caches caches);

}  // namespace foretoken
