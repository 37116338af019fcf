// Time of a linear layer y[m,n] = x[m,k] W[n,k]^T, quantization of x included.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_gemm_form(Caches caches);

}  // namespace foretoken
