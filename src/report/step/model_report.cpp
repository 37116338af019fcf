#include "report/step/model_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "model/weights.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string mixer_text(const Mixer& mixer) {
  struct Describe {
    std::string operator()(std::monostate /*none*/) const { return ""; }
    std::string operator()(const Attention& a) const {
      std::string text = fmt::format("attention {} heads, {} KV heads, dim {}", a.heads, a.kv_heads, a.head_dim);
      if (a.window > 0) text += fmt::format(", window {}", a.window);
      return text;
    }
    std::string operator()(const LatentAttention& a) const {
      return fmt::format("latent attention {} heads, latent {} + {}{}", a.heads, a.latent_dim, a.rope_dim,
                         a.indexer ? fmt::format(", top {} keys", a.indexer->top_k) : "");
    }
    std::string operator()(const CompressedAttention& a) const {
      return fmt::format(
          "compressed attention {} heads, dim {}, {}", a.heads, a.head_dim,
          a.ratio > 0 ? fmt::format("{} to 1, window {}", a.ratio, a.window) : fmt::format("window {}", a.window));
    }
    std::string operator()(const GatedDelta& d) const {
      return fmt::format("{} {} key heads, {} value heads, dim {} x {}", d.per_channel_gate ? "KDA" : "gated delta net",
                         d.key_heads, d.value_heads, d.key_dim, d.value_dim);
    }
    std::string operator()(const Lightning& l) const {
      return fmt::format("lightning attention {} heads, dim {}", l.heads, l.head_dim);
    }
    std::string operator()(const Mamba2& m) const {
      return fmt::format("mamba2 {} heads, dim {}, state {}", m.heads, m.head_dim, m.state);
    }
    std::string operator()(const ShortConvolution& c) const {
      return fmt::format("short convolution of {} channels, {} taps", c.width, c.kernel);
    }
  };
  return std::visit(Describe{}, mixer);
}

std::string feed_forward_text(const FeedForward& feed_forward) {
  struct Describe {
    std::string operator()(std::monostate /*none*/) const { return ""; }
    std::string operator()(const Mlp& mlp) const {
      return fmt::format("MLP {}{}", mlp.width, mlp.gated ? " gated" : "");
    }
    std::string operator()(const Moe& moe) const {
      std::string text = fmt::format("{} of {} experts of {}", moe.top_k, moe.experts, moe.width);
      if (moe.shared_width > 0) text += fmt::format(" + shared {}", moe.shared_width);
      if (moe.dense_width > 0) text += fmt::format(" + dense {}", moe.dense_width);
      return text;
    }
  };
  return std::visit(Describe{}, feed_forward);
}

std::string layer_text(const Layer& layer) {
  std::string text = mixer_text(layer.mixer);
  if (layer.cross_attention) text += (text.empty() ? "" : "; ") + std::string("cross attention");
  const std::string feed_forward = feed_forward_text(layer.feed_forward);
  if (!feed_forward.empty()) text += (text.empty() ? "" : "; ") + feed_forward;
  return text;
}

struct LayerKind {
  std::string text;
  int count = 0;
};

// Kinds of layer in the order in which they first appear.
std::vector<LayerKind> layer_kinds(const std::vector<Layer>& layers) {
  std::vector<LayerKind> kinds;
  for (const Layer& layer : layers) {
    const std::string text = layer_text(layer);
    bool known = false;
    for (LayerKind& kind : kinds) {
      if (kind.text != text) continue;
      ++kind.count;
      known = true;
    }
    if (!known) kinds.push_back({.text = text, .count = 1});
  }
  return kinds;
}

std::string stack_text(const char* title, const std::vector<Layer>& layers) {
  std::string text;
  for (const LayerKind& kind : layer_kinds(layers))
    text += fmt::format("  {:<12} {:>3} x {}\n", title, kind.count, kind.text);
  return text;
}

Json layers_json(const std::vector<Layer>& layers) {
  Json list = Json::array();
  for (const LayerKind& kind : layer_kinds(layers))
    list.push(Json::object({{"count", kind.count}, {"layer", kind.text}}));
  return list;
}

std::string scheme_text(const Model& model) {
  const std::string linear(facts(model.scheme).name);
  return model.expert_scheme == model.scheme ? linear
                                             : fmt::format("{}, experts {}", linear, facts(model.expert_scheme).name);
}

}  // namespace

std::string model_list_text(const std::vector<DescribedModel>& models) {
  Table table({{"model", Table::Align::left, true},
               {"layers"},
               {"params"},
               {"active"},
               {"KV/token"},
               {"format", Table::Align::left}});
  for (const DescribedModel& described : models) {
    const Model& model = described.model;
    const ParameterCount count = count_parameters(model);
    table.add({model.name, fmt::format("{}", model.encoder_layers.size() + model.layers.size()),
               count_text(count.total), count_text(count.active),
               bytes_text(kv_bytes_per_token(model, model.kv_cache_dtype()).value()), scheme_text(model)});
  }
  return table.text();
}

Json model_list_json(const std::vector<DescribedModel>& models) {
  Json list = Json::array();
  for (const DescribedModel& described : models) list.push(model_json(described));
  return list;
}

namespace {

// Layers that look at a window or keep compressed keys stop growing as the rest does.
std::string cache_text(const Model& model) {
  const DType dtype = model.kv_cache_dtype();
  const double first = kv_bytes_per_token(model, dtype).value();
  std::string text = fmt::format("  KV cache     {} for a token in {}", bytes_text(first), dtype_name(dtype));
  const int64_t most = model.max_positions, half = most / 2;
  const double longest = most > 0 ? cache_bytes(model, most, dtype).value() : 0;
  if (half > 0) {
    const double later = (longest - cache_bytes(model, half, dtype).value()) / static_cast<double>(most - half);
    if (later < 0.99 * first) text += fmt::format(", {} for each one late in a long sequence", bytes_text(later));
  }
  if (state_bytes(model).value() > 0)
    text += fmt::format("; state {} for a sequence", bytes_text(state_bytes(model).value()));
  text += "\n";
  if (most > 0) text += fmt::format("               {} for a sequence of {} tokens\n", bytes_text(longest), most);
  return text;
}

}  // namespace

std::string model_text(const DescribedModel& described) {
  const Model& model = described.model;
  const ParameterCount count = count_parameters(model);
  std::string text = fmt::format("{} ({})\n", model.name, model.family);
  text +=
      fmt::format("  parameters   {}{}", count_text(count.total),
                  count.active < count.total ? fmt::format(", {} active for a token", count_text(count.active)) : "");
  if (described.entry && described.entry->published_parameters) {
    const double published = *described.entry->published_parameters;
    text += fmt::format("; published {} ({:+.1f}%)", count_text(published), 100 * (count.total / published - 1));
  }
  text += fmt::format("\n  width        {}, vocabulary {}, {} positions{}\n", model.hidden, model.vocabulary,
                      model.max_positions, model.tied_embeddings ? ", tied embeddings" : "");
  text += stack_text("encoder", model.encoder_layers) +
          stack_text(model.encoder_layers.empty() ? "layers" : "decoder", model.layers);
  text += stack_text("draft", model.draft_layers);
  text += fmt::format("  format       {}; weights {}\n", scheme_text(model), bytes_text(weight_bytes(model).value()));
  text += cache_text(model);
  for (const std::string& note : model.notes) text += fmt::format("  note         {}\n", note);
  if (described.entry) {
    text += fmt::format("  source       {} ({})\n", described.entry->source, described.entry->checked);
    if (!described.entry->aliases.empty())
      text += fmt::format("  also called  {}\n", fmt::join(described.entry->aliases, ", "));
  }
  return wrap_lines(text, page_width(), 15);
}

Json model_json(const DescribedModel& described) {
  const Model& model = described.model;
  const ParameterCount count = count_parameters(model);
  Json notes = Json::array();
  for (const std::string& note : model.notes) notes.push(note);
  Json result = Json::object({{"name", model.name},
                              {"family", model.family},
                              {"hidden", model.hidden},
                              {"vocabulary", model.vocabulary},
                              {"max_positions", model.max_positions},
                              {"parameters", count.total},
                              {"active_parameters", count.active},
                              {"draft_parameters", count.draft},
                              {"weight_bytes", weight_bytes(model).value()},
                              {"kv_bytes_per_token", kv_bytes_per_token(model, model.kv_cache_dtype()).value()},
                              {"state_bytes", state_bytes(model).value()},
                              {"dtype", dtype_name(model.dtype)},
                              {"scheme", facts(model.scheme).name},
                              {"expert_scheme", facts(model.expert_scheme).name},
                              {"encoder_layers", layers_json(model.encoder_layers)},
                              {"layers", layers_json(model.layers)},
                              {"draft_layers", layers_json(model.draft_layers)},
                              {"notes", notes}});
  if (described.entry) {
    const ModelEntry& entry = *described.entry;
    Json aliases = Json::array();
    for (const std::string& alias : entry.aliases) aliases.push(alias);
    result.set("aliases", std::move(aliases));
    result.set("source", entry.source);
    result.set("checked", entry.checked);
    result.set("published_parameters", entry.published_parameters ? Json(*entry.published_parameters) : Json());
    result.set("published_active_parameters", entry.published_active ? Json(*entry.published_active) : Json());
  }
  return result;
}

}  // namespace foretoken
