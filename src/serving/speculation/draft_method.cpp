#include "serving/speculation/draft_method.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

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
                    .expected = "the config.json of the draft head: the target has no dense layer to derive it from"});
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
                      .expected = "a model with multi-token prediction layers: " + target.name + " has none"});
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

// Layers that guess the tokens of a block at once from the target's hidden states, which a projection hands over. Like
// the target's own layers for prediction, or its dense ones, unless the config of a drafter is given.
Model block_network(const Model& target, const std::optional<Model>& draft, size_t layers, bool prefers_prediction) {
  if (draft) {
    Model network = *draft;
    if (!network.layers.empty()) network.layers.front().draft_projection = true;
    return network;
  }
  std::optional<Layer> like;
  if (prefers_prediction && !target.draft_layers.empty()) {
    like = target.draft_layers.front();
  } else {
    const auto dense = std::find_if(target.layers.begin(), target.layers.end(),
                                    [](const Layer& layer) { return std::holds_alternative<Mlp>(layer.feed_forward); });
    if (dense != target.layers.end()) like = *dense;
  }
  if (!like) {
    throw InputError({.field = "speculative_config",
                      .path = "model",
                      .expected = "the config.json of the drafter: the target has no dense layer to derive it from"});
  }
  like->draft_projection = false;
  std::vector<Layer> stages(layers, *like);
  stages.front().draft_projection = true;
  return with_layers(target, std::move(stages));
}

// SGLang, models/deepseek_v4_dspark.py: three stages (dspark_target_layer_ids of the checkpoints that bundle them),
// then the target's head. Its correction of each token by the one before it (markov_head) is not counted.
Model dspark_stages(const Model& target, const std::optional<Model>& draft) {
  return block_network(target, draft, 3, true);
}

// SGLang, speculative/dflash_worker_v2.py: the published drafters have five dense layers.
Model dflash_drafter(const Model& target, const std::optional<Model>& draft) {
  return block_network(target, draft, 5, false);
}

// SGLang: DEFAULT_DSPARK_GAMMA, and DFLASH's block of 16, whose first token is known.
constexpr int64_t dspark_drafts = 7, dflash_drafts = 15;

// Add your line here; the name is what users type.
constexpr DraftMethod methods[] = {
    {"draft_model", "a smaller model", true, false, false, own_model},
    {"eagle", "one layer on the target's hidden states, with the target's head", true, true, true, eagle_head},
    {"eagle3", "like eagle, with a small vocabulary of its own", true, true, true, eagle3_head},
    {"mtp", "the multi-token prediction layer that the target was trained with", true, true, true, prediction_layer},
    {"medusa", "one head per position on the target's last hidden state", false, false, false, medusa_head},
    {"dspark", "a block of tokens in one pass of three layers on the target's hidden states (SGLang)", false, true,
     true, dspark_stages, dspark_drafts},
    {"dflash", "like dspark, with a dense drafter of five layers (SGLang)", false, true, true, dflash_drafter,
     dflash_drafts},
    {"ngram", "tokens that followed the same n-gram earlier in the sequence, looked up on the host", false, true, false,
     nullptr},
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
  std::string wanted = lower_case(name);
  if (wanted.ends_with("_mtp")) wanted = "mtp";
  for (const DraftMethod& method : methods) {
    if (method.name == wanted) return method;
  }
  const std::vector<std::string> names = draft_method_names();
  throw InputError({.field = "speculative_config",
                    .path = "method",
                    .value = printable(name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
