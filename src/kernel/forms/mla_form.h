// Multi-head latent attention: prefill with expanded K and V per head, decode on the cached latent (absorbed form).
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_mla_prefill_form();
std::unique_ptr<Form> make_mla_decode_form();

}  // namespace foretoken
