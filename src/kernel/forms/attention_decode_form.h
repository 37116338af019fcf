// Attention of one new token per sequence over a long cache: packed heads, contexts split over processors.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

std::unique_ptr<Form> make_attention_decode_form();

}  // namespace foretoken
