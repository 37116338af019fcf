// Attention of many new tokens at once, causal (prefill) or bidirectional (encoder).
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_attention_prefill_form();
std::unique_ptr<Form> make_attention_encoder_form();

}  // namespace foretoken
