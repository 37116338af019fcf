// Gated delta net, KDA and the convolution of Mamba-2: blocks of threads that walk along a sequence, against the
// traffic they cause.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_linear_attention_form();

// The recurrences that were measured; of Mamba-2 and lightning attention only the convolution was.
bool linear_attention_is_known(const LinearAttentionShape& shape);

}  // namespace foretoken
