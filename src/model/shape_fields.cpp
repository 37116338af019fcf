#include "model/shape_fields.h"

#include <cmath>
#include <type_traits>

namespace foretoken {
namespace {

// Calls `use(name, field)` for the sizes and switches of a shape. `Shape` is const or not.
struct EachField {
  template <class Shape, class Use>
  static void visit(Shape& s, const Use& use) {
    using Plain = std::remove_const_t<Shape>;
    if constexpr (std::is_same_v<Plain, GemmShape>) {
      use("m", s.m), use("n", s.n), use("k", s.k), use("batch", s.batch);
    } else if constexpr (std::is_same_v<Plain, AttentionShape>) {
      use("batch", s.batch), use("heads", s.heads), use("kv_heads", s.kv_heads), use("head_dim", s.head_dim);
      use("value_dim", s.value_dim), use("q_len", s.q_len), use("kv_len", s.kv_len), use("window", s.window);
      use("causal", s.causal), use("writes_kv", s.writes_kv);
    } else if constexpr (std::is_same_v<Plain, MixedAttentionShape>) {
      use("heads", s.heads), use("kv_heads", s.kv_heads), use("head_dim", s.head_dim), use("value_dim", s.value_dim);
      use("window", s.window), use("writes_kv", s.writes_kv);
    } else if constexpr (std::is_same_v<Plain, LatentAttentionShape>) {
      use("batch", s.batch), use("heads", s.heads), use("q_len", s.q_len), use("kv_len", s.kv_len);
      use("latent_dim", s.latent_dim), use("rope_dim", s.rope_dim), use("nope_dim", s.nope_dim);
      use("value_dim", s.value_dim), use("top_k", s.top_k);
    } else if constexpr (std::is_same_v<Plain, LatentProjectionShape>) {
      use("tokens", s.tokens), use("heads", s.heads), use("latent_dim", s.latent_dim), use("head_dim", s.head_dim);
    } else if constexpr (std::is_same_v<Plain, MoeShape>) {
      use("tokens", s.tokens), use("hidden", s.hidden), use("inter", s.inter), use("top_k", s.top_k);
      use("experts", s.experts), use("tp", s.tp), use("ep", s.ep), use("gated", s.gated);
    } else if constexpr (std::is_same_v<Plain, QuantizeShape>) {
      use("m", s.m), use("k", s.k);
    } else if constexpr (std::is_same_v<Plain, NormShape>) {
      use("rows", s.rows), use("width", s.width), use("layer_norm", s.layer_norm), use("residual", s.adds_residual);
    } else if constexpr (std::is_same_v<Plain, RopeShape>) {
      use("tokens", s.tokens), use("heads", s.heads), use("kv_heads", s.kv_heads), use("rotary_dim", s.rotary_dim);
    } else if constexpr (std::is_same_v<Plain, ActivationShape>) {
      use("rows", s.rows), use("width", s.width), use("gated", s.gated);
    } else if constexpr (std::is_same_v<Plain, ElementwiseShape>) {
      use("elements", s.elements), use("inputs", s.inputs), use("outputs", s.outputs);
      use("flops_per_element", s.flops_per_element);
    } else if constexpr (std::is_same_v<Plain, SoftmaxShape>) {
      use("rows", s.rows), use("width", s.width);
    } else if constexpr (std::is_same_v<Plain, EmbeddingShape>) {
      use("tokens", s.tokens), use("width", s.width);
    } else if constexpr (std::is_same_v<Plain, KvWriteShape>) {
      use("tokens", s.tokens), use("values", s.values_per_token);
    } else if constexpr (std::is_same_v<Plain, SamplingShape>) {
      use("rows", s.rows), use("vocabulary", s.vocabulary), use("greedy", s.greedy);
    } else if constexpr (std::is_same_v<Plain, CollectiveShape>) {
      use("ranks", s.ranks), use("bytes", s.bytes);
    }
  }
};

template <class Shape>
constexpr bool has_scheme = requires(Shape s) {
  s.scheme;
};
template <class Shape>
constexpr bool has_dtype = requires(Shape s) {
  s.dtype;
};

}  // namespace

std::vector<std::pair<std::string_view, double>> shape_fields(const KernelShape& shape) {
  std::vector<std::pair<std::string_view, double>> fields;
  const auto keep = [&](std::string_view name, const auto& field) {
    fields.emplace_back(name, static_cast<double>(field));
  };
  std::visit([&](const auto& one) { EachField::visit(one, keep); }, shape);
  return fields;
}

bool set_shape_field(KernelShape& shape, std::string_view name, double value) {
  bool found = false;
  const auto set = [&](std::string_view known, auto& field) {
    if (known != name) return;
    found = true;
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, bool>) {
      field = value != 0;
    } else if constexpr (std::is_same_v<Field, double>) {
      field = value;
    } else {
      field = static_cast<Field>(std::llround(value));
    }
  };
  std::visit([&](auto& one) { EachField::visit(one, set); }, shape);
  return found;
}

std::optional<DType> element_type(const KernelShape& shape) {
  return std::visit(
      [](const auto& one) -> std::optional<DType> {
        using Shape = std::remove_cvref_t<decltype(one)>;
        if constexpr (has_scheme<Shape>) {
          return facts(one.scheme).math == DType::fp32 || facts(one.scheme).math == DType::fp16 ? facts(one.scheme).math
                                                                                                : DType::bf16;
        } else if constexpr (has_dtype<Shape>) {
          return one.dtype;
        } else if constexpr (std::is_same_v<Shape, CollectiveShape>) {
          return std::nullopt;
        } else {
          return DType::bf16;
        }
      },
      shape);
}

bool set_element_type(KernelShape& shape, DType type) {
  return std::visit(
      [&](auto& one) {
        using Shape = std::remove_cvref_t<decltype(one)>;
        if constexpr (has_scheme<Shape>) {
          one.scheme = plain_scheme(type);
          return true;
        } else if constexpr (has_dtype<Shape>) {
          one.dtype = type;
          return true;
        } else {
          return false;
        }
      },
      shape);
}

std::optional<KernelShape> default_shape(std::string_view family) {
  const KernelShape known[] = {GemmShape{},
                               AttentionShape{},
                               AttentionShape{.phase = AttentionPhase::decode},
                               AttentionShape{.phase = AttentionPhase::encoder, .causal = false},
                               AttentionShape{.pass = Pass::backward},
                               QuantizeShape{},
                               NormShape{},
                               RopeShape{},
                               ActivationShape{},
                               ElementwiseShape{},
                               SoftmaxShape{},
                               EmbeddingShape{},
                               KvWriteShape{},
                               SamplingShape{},
                               MoeShape{}};
  for (const KernelShape& shape : known) {
    if (family_name(shape) == family) return shape;
  }
  return std::nullopt;
}

}  // namespace foretoken
