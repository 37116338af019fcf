#include "serving/speculation/draft_method.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {
namespace {

// EAGLE-3 heads choose among the commonest tokens (draft_vocab_size of the published heads).
constexpr int64_t eagle3_vocabulary = 32'000;

Model with_layers(Model model, std::vector<Layer> layers) {
  model.layers = std::move(layers);
  model.draft_layers.clear();
  return model;
}

Model own_model(const Model& /*target*/, const std::optional<Model>& draft) {
  if (!draft) {
    throw InputError({.field = "speculative_config",
                      .path = "model",
                      .expected = "the draft model: a built-in name or a config.json"});
  }
  return *draft;
}

// One decoder layer behind a projection of hidden state and embedding (Li et al., EAGLE, ICML 2024): like the target's
// dense layers unless its config is given.
Model eagle_head(const Model& target, const std::optional<Model>& draft) {
  if (draft) {
    Model head = *draft;
    if (!head.layers.empty()) head.layers.front().draft_projection = true;
    return head;
  }
  for (const Layer& layer : target.layers) {
    if (!std::holds_alternative<Mlp>(layer.feed_forward)) continue;
    Layer head = layer;
    head.draft_projection = true;
    return with_layers(target, {head});
  }
  throw InputError({.field = "speculative_config",
                    .path = "model",
                    .expected = "the config.json of the head: the target has no dense layer to go by"});
}

Model eagle3_head(const Model& target, const std::optional<Model>& draft) {
  Model head = eagle_head(target, draft);
  if (!draft) head.vocabulary = std::min(head.vocabulary, eagle3_vocabulary);
  return head;
}

// The layer for multi-token prediction that was trained with the target.
Model prediction_layer(const Model& target, const std::optional<Model>& draft) {
  if (draft) return *draft;
  if (target.draft_layers.empty()) {
    throw InputError({.field = "speculative_config",
                      .path = "method",
                      .value = "mtp",
                      .expected = "a model with layers for multi-token prediction: " + target.name + " has none"});
  }
  return with_layers(target, {target.draft_layers.front()});
}

// A residual block of one matrix and a head of its own (Cai et al., Medusa, ICML 2024). Half the width up and down
// again has the bytes and FLOPs of that matrix.
Model medusa_head(const Model& target, const std::optional<Model>& /*draft*/) {
  Model head = with_layers(
      target, {{.mixer = {}, .feed_forward = Mlp{.width = std::max<int64_t>(1, target.hidden / 2), .gated = false}}});
  head.layers.front().norms = 0;
  head.tied_embeddings = false;
  return head;
}

// Add your line here; the name is what users type.
constexpr DraftMethod methods[] = {
    {"draft_model", "a smaller model", true, false, false, own_model},
    {"eagle", "one layer on the target's hidden states, the target's head", true, true, true, eagle_head},
    {"eagle3", "the same with a small vocabulary of its own", true, true, true, eagle3_head},
    {"mtp", "the layer for multi-token prediction that the target was trained with", true, true, true,
     prediction_layer},
    {"medusa", "a head for each position on the target's last hidden state", false, false, false, medusa_head},
    {"ngram", "tokens that followed the same words before; on the host", false, true, false, nullptr},
};

}  // namespace

std::span<const DraftMethod> draft_methods() {
  return methods;
}

std::vector<std::string> draft_method_names() {
  std::vector<std::string> names;
  for (const DraftMethod& method : methods) names.emplace_back(method.name);
  return names;
}

const DraftMethod& draft_method(std::string_view name) {
  const std::string_view wanted = name.ends_with("_mtp") ? "mtp" : name;
  for (const DraftMethod& method : methods) {
    if (method.name == wanted) return method;
  }
  const std::vector<std::string> names = draft_method_names();
  throw InputError({.field = "speculative_config",
                    .path = "method",
                    .value = printable(name),
                    .expected = "a method of speculative decoding",
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
