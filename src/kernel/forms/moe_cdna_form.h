// Fused expert layers on AMD's CDNA GPUs: aiter's grouped multiplies in one kernel or two.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_moe_cdna_form(Caches caches);

}  // namespace foretoken
