// Time of a fused expert MLP as one rank sees it: two grouped multiplies with permutation, activation and reduction
// around them.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_moe_form();

}  // namespace foretoken
