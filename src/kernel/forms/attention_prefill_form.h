// Attention of many new tokens at once, causal (prefill) or bidirectional (encoder), and its backward pass.
#pragma once

#include <memory>

#include "kernel/forms/form.h"
#include "kernel/forms/tile_pass.h"

namespace foretoken {

// One call as a tile pass. Where the kernel packs a group, its query heads are rows of the same tiles.
// With cold `keys`, those of the context come from DRAM; the new ones were just written.
TilePass attention_tile_pass(const AttentionShape& shape, const AttentionVariant& variant, Caches keys);

// Effects of a form made of tile passes: kernels that overlap in the same way resemble one another.
std::vector<std::string> tile_pass_effects(const AttentionVariant& variant);

std::unique_ptr<Form> make_attention_prefill_form();
std::unique_ptr<Form> make_attention_encoder_form();
std::unique_ptr<Form> make_attention_backward_form();

}  // namespace foretoken
