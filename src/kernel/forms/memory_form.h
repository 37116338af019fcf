// Kernels that only move rows through memory: cast to fp8, norms, rotary embedding, activations, element-wise, cache
// writes.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_memory_form();

}  // namespace foretoken
