// Where drafted tokens come from: the methods of speculative decoding, by vLLM's names, or by SGLang's where only that
// has them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace foretoken {

struct DraftMethod {
  std::string_view name;  // what users type
  std::string_view summary;
  // Its network runs over every token of the target's step and keeps a cache of its own; later passes read that.
  bool follows_target;
  // The embedding and the head are the target's: only the layers take memory.
  bool shares_embedding;
  // Without a model from the user, its network is one layer like the target's.
  bool can_copy_target;
  // The network of one pass; null: drafts come from the host. `draft` is the model that the user named, or nothing.
  // InputError where the target has no such layers, or a model must be named.
  Model (*network)(const Model& target, const std::optional<Model>& draft);
  // One pass of the network drafts all tokens together; so many where nobody says. 0 = one token with each pass.
  int64_t block_drafts = 0;

  // The network reads a cache of its own.
  bool keeps_cache() const { return follows_target || block_drafts > 0; }
};

std::span<const DraftMethod> draft_methods();
std::vector<std::string> draft_method_names();
// Also vLLM's names of single models' methods (deepseek_mtp, glm4_moe_mtp, ...), and names in capitals, as SGLang
// writes them. InputError suggests the nearest.
const DraftMethod& draft_method(std::string_view name);

}  // namespace foretoken
