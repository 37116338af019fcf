#include "model/model.h"

#include <algorithm>

namespace foretoken {

bool Model::has_experts() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const Layer& layer) { return std::holds_alternative<Moe>(layer.feed_forward); });
}

bool Model::is_encoder_only() const {
  bool mixes = false;
  for (const Layer& layer : layers) {
    if (std::holds_alternative<std::monostate>(layer.mixer)) continue;
    const auto* attention = std::get_if<Attention>(&layer.mixer);
    if (attention == nullptr || attention->causal) return false;
    mixes = true;
  }
  return mixes;
}

bool Model::has_latent_attention() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const Layer& layer) { return std::holds_alternative<LatentAttention>(layer.mixer); });
}

bool Model::has_compressed_attention() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const Layer& layer) { return std::holds_alternative<CompressedAttention>(layer.mixer); });
}

bool Model::is_quantized() const {
  const Scheme plain = plain_scheme(dtype);
  return scheme != plain || expert_scheme != plain;
}

}  // namespace foretoken
