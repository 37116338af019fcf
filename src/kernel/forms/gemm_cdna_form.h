// Linear layers on AMD's CDNA GPUs, with the kernels that its tuner picks (aiter: Composable Kernel, assembly,
// hipBLASLt, Triton).
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_gemm_cdna_form(Caches caches);

}  // namespace foretoken
