// Attention of prompt chunks and decodes in one launch: one set of tiles over all sequences.
#pragma once

#include <memory>

#include "kernel/forms/form.h"

namespace foretoken {

// Also takes a prefill call, as a batch without decodes: what ports between devices is learned from both.
std::unique_ptr<Form> make_attention_mixed_form();

}  // namespace foretoken
