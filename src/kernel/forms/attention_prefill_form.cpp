#include "kernel/forms/attention_prefill_form.h"

#include "base/error.h"
#include "kernel/forms/tile_pass.h"

namespace foretoken {
namespace attention_prefill_form {
namespace {

// The context that a tile pass walks. Under a window, one key more before the queries can mean one block less to a
// tile, by where blocks begin: such a call counts like one whose queries begin at the border of a block.
int64_t walked_keys(const AttentionShape& shape, int64_t window, int64_t tile_keys) {
  const int64_t seen = seen_keys(shape);
  if (window == 0 || seen <= shape.q_len) return seen;
  return shape.q_len + (seen - shape.q_len + tile_keys - 1) / tile_keys * tile_keys;
}

}  // namespace
}  // namespace attention_prefill_form

TilePass attention_tile_pass(const AttentionShape& shape, const AttentionVariant& variant, Caches keys_are) {
  const bool encoder = shape.phase == AttentionPhase::encoder;
  const int64_t group = std::max<int64_t>(1, shape.heads / shape.kv_heads);
  const bool backward = shape.pass == Pass::backward;
  const int64_t packed = variant.packs_heads && !encoder && !backward ? group : 1;
  const bool planned = variant.plans_tiles && !encoder && !backward;
  const AttentionTile tile = encoder ? AttentionTile{.rows = variant.encoder_rows, .keys = variant.encoder_keys}
                                     : prefill_tile(shape, variant, packed);
  const int64_t rows = tile.rows, keys = tile.keys;
  const int64_t padding = encoder ? variant.encoder_padding : 1;
  const int64_t value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
  const auto padded = [&](int64_t dim) {
    const int64_t blocks = (dim + padding - 1) / padding;
    return static_cast<double>(blocks * padding);
  };
  const auto batch = static_cast<double>(shape.batch), heads = static_cast<double>(shape.heads);
  const auto kv_heads = static_cast<double>(shape.kv_heads);
  const int64_t window = encoder || shape.window >= shape.kv_len ? 0 : shape.window;
  const auto q_len = static_cast<double>(shape.q_len);
  const auto seen = static_cast<double>(encoder ? shape.kv_len : seen_keys(shape));
  const auto dims = static_cast<double>(shape.head_dim + value_dim);
  const double element = bytes_per_element(shape.dtype), cached = bytes_per_element(shape.kv_dtype);

  TilePass pass;
  pass.walk = walk_tiles({.q_len = shape.q_len,
                          .kv_len = encoder ? shape.kv_len : attention_prefill_form::walked_keys(shape, window, keys),
                          .rows_per_token = packed,
                          .window = window,
                          .causal = shape.causal && !encoder,
                          .tile_rows = rows,
                          .tile_keys = keys});
  pass.problems = batch * heads / static_cast<double>(packed);
  pass.tile_rows = static_cast<double>(rows);
  pass.tile_pairs = static_cast<double>(rows * keys);
  pass.pair_flops = 2 * (padded(shape.head_dim) + padded(value_dim));
  pass.head_dim = static_cast<double>(shape.head_dim);
  pass.overlap = variant.overlap;
  pass.fp8_cache = is_fp8(shape.kv_dtype);
  const bool fp8_multiply = multiplies_in_fp8(shape, variant);
  pass.math = fp8_multiply && !variant.transposes_values ? DType::fp8 : shape.dtype;
  pass.widens_fp8 = pass.fp8_cache && !fp8_multiply;
  pass.traffic = batch * dims * (heads * q_len * element + kv_heads * seen * cached);
  if (keys_are == Caches::cold) pass.cold_bytes = batch * dims * kv_heads * (seen - q_len) * cached;
  if (shape.writes_kv) {
    pass.write_rows = batch * q_len;
    pass.write_bytes = batch * q_len * kv_heads * dims * (element + cached);
  }
  if (fp8_multiply) pass.cast_bytes = batch * q_len * heads * static_cast<double>(shape.head_dim) * (element + 1);
  pass.launches = variant.extra_launches - (shape.writes_kv || encoder ? 0 : 1);
  pass.kv_heads = kv_heads;
  if (planned) {
    pass.planned_keys = static_cast<double>(window > 0 ? std::min(shape.kv_len, window + rows) : shape.kv_len);
    pass.merged_rows = batch * q_len * heads;
  }
  if (backward) {
    // Five products for the two of the forward pass (scores again, then the gradients of V, of the probabilities, of Q
    // and of K), in tiles of keys that walk the queries: the same mask, mirrored. Outputs and their gradients are read
    // too, a gradient is written for all that was read. Kernels before and after reduce the outputs and cast dQ
    // (FlashAttention-2, arXiv 2307.08691, algorithm 2).
    pass.pair_flops *= 2.5;
    pass.traffic *= 2;
    pass.launches += 2;
  }
  return pass;
}

std::vector<std::string> tile_pass_effects(const AttentionVariant& variant) {
  static constexpr std::string_view families[] = {"synchronous", "asynchronous", "generic"};
  return {"common", "family " + std::string(families[static_cast<size_t>(variant.overlap)]),
          "kernel " + std::string(variant.kernel)};
}

namespace attention_prefill_form {
namespace {

class AttentionPrefillForm : public Form {
 public:
  explicit AttentionPrefillForm(std::string_view name) : name_(name) {}

  std::string_view name() const override { return name_; }
  std::span<const FormConstant> constants() const override { return tile_pass_constants(); }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    return tile_pass_effects(attention_variant(call.variant, shape_of(call), device));
  }

  std::string_view usual_variant(const FormCall& call, const DeviceTraits& device) const override {
    return attention_variant({}, shape_of(call), device).name;
  }

  std::vector<std::string_view> known_variants() const override { return attention_variant_names(); }

  std::optional<uint64_t> kind_key(const FormCall& call) const override { return attention_kind_key(shape_of(call)); }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    choice = 0;
    const AttentionShape& shape = shape_of(call);
    return tile_pass_times(attention_tile_pass(shape, attention_variant(call.variant, shape, device), call.keys),
                           device, constants)
        .total;
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int /*choice*/) const override {
    const AttentionShape& shape = shape_of(call);
    const TilePass pass = attention_tile_pass(shape, attention_variant(call.variant, shape, device), call.keys);
    return explain_tile_pass(pass, tile_pass_times(pass, device, constants), device, constants);
  }

  size_t feature_count() const override { return tile_pass_feature_count; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                std::span<float> out) const override {
    seconds_and_features(call, device, constants, choice, out);
  }

  double seconds_and_features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                              int& choice, std::span<float> out) const override {
    choice = 0;
    const AttentionShape& shape = shape_of(call);
    const TilePass pass = attention_tile_pass(shape, attention_variant(call.variant, shape, device), call.keys);
    const TilePassTimes times = tile_pass_times(pass, device, constants);
    tile_pass_features(pass, times, static_cast<double>(shape.heads) / static_cast<double>(shape.kv_heads),
                       static_cast<double>(shape.q_len), static_cast<double>(seen_keys(shape)),
                       static_cast<double>(shape.window), out);
    return times.total;
  }

 private:
  static const AttentionShape& shape_of(const FormCall& call) {
    const auto* shape = std::get_if<AttentionShape>(&call.shape);
    ensure(shape != nullptr, "the attention form is asked about attention");
    return *shape;
  }

  std::string_view name_;
};

}  // namespace
}  // namespace attention_prefill_form

std::unique_ptr<Form> make_attention_prefill_form() {
  return std::make_unique<attention_prefill_form::AttentionPrefillForm>("attention_prefill");
}
std::unique_ptr<Form> make_attention_encoder_form() {
  return std::make_unique<attention_prefill_form::AttentionPrefillForm>("attention_encoder");
}
std::unique_ptr<Form> make_attention_backward_form() {
  return std::make_unique<attention_prefill_form::AttentionPrefillForm>("attention_backward");
}

}  // namespace foretoken
