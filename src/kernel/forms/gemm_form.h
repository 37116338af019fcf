// Time of a linear layer y[m,n] = x[m,k] W[n,k]^T, quantization of x included.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_gemm_form(Caches caches);

// Half-width of the logarithm (90%) of what is assumed about a call beside what was fitted: rows that do not start on
// 16 bytes (n or k no multiple of 8, in 16 bits). 0 for all other calls.
double assumed_half_width(const FormCall& call);

}  // namespace foretoken
