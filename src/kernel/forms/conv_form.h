// Convolutions in plain fp32, as a library picks the fastest of its algorithms.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_conv_fp32_form(Caches caches);

}  // namespace foretoken
