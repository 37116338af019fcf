#include "kernel/forms/attention_mixed_form.h"

#include <array>

#include "base/error.h"
#include "kernel/forms/attention_prefill_form.h"
#include "kernel/forms/tile_pass.h"

namespace foretoken {
namespace attention_mixed_form {
namespace {

enum Constant {
  resident_tiles = tile_pass::constant_count,
  empty_tile,
  constant_count,
};

const std::array<FormConstant, constant_count>& table() {
  static const std::array<FormConstant, constant_count> constants = [] {
    std::array<FormConstant, constant_count> all{};
    std::copy(tile_pass_constants().begin(), tile_pass_constants().end(), all.begin());
    all[resident_tiles] = {"resident_tiles", 2, 0.5, 8, "tiles that a processor works on at the same time"};
    all[empty_tile] = {
        "empty_tile", 0.05e-6, 1e-9, 2e-6,
        "seconds a processor spends on a tile without queries: a decode has as many as the longest chunk"};
    return all;
  }();
  return constants;
}

// A batch as one pass, and what else sets its time.
struct MixedPass {
  TilePass pass;
  AttentionShape widest;            // heads and sizes that all parts share
  double decode_tiles = 0;          // of all tiles
  double decode_blocks = 0;         // key blocks that decodes walk
  double empty_tiles = 0;           // launched for decodes, without a query
  double sequences = 0, group = 1;  // query heads that read the same keys one after the other
  double key_bytes = 0;             // K and V of the whole batch, once
  double q_len = 0, kv_len = 0;     // of the longest chunk
};

AttentionShape prompt_like(AttentionShape call) {
  call.phase = AttentionPhase::prefill;
  return call;
}

MixedPass mixed_pass(std::span<const AttentionShape> calls, int64_t longest_decode, const AttentionVariant& variant,
                     Caches keys_are) {
  MixedPass mixed;
  ensure(!calls.empty(), "a batch holds at least one sequence");
  double tiles = 0, blocks = 0, most = 0;
  double prompt_tiles_per_head = 0;
  for (const AttentionShape& call : calls) {
    const bool decode = call.phase == AttentionPhase::decode;
    const TilePass part = attention_tile_pass(prompt_like(call), variant, keys_are);
    const double count = part.problems * part.walk.tiles;
    if (tiles == 0) mixed.pass = part;
    tiles += count;
    blocks += count * part.walk.mean_blocks;
    most = std::max(most, part.walk.most_blocks);
    if (decode) {
      mixed.decode_tiles += count;
      mixed.decode_blocks += count * part.walk.mean_blocks;
      AttentionShape longest = prompt_like(call);
      longest.batch = 1;
      longest.kv_len = std::max(longest_decode, call.kv_len);
      most = std::max(most, attention_tile_pass(longest, variant, keys_are).walk.most_blocks);
      mixed.empty_tiles += part.problems * std::max(0.0, prompt_tiles_per_head - 1);
    } else {
      prompt_tiles_per_head = std::max(prompt_tiles_per_head, part.walk.tiles);
      mixed.q_len = std::max(mixed.q_len, static_cast<double>(call.q_len));
      mixed.kv_len = std::max(mixed.kv_len, static_cast<double>(seen_keys(call)));
    }
    const int64_t value_dim = call.value_dim > 0 ? call.value_dim : call.head_dim;
    mixed.key_bytes += static_cast<double>(call.batch * call.kv_heads * seen_keys(call) * (call.head_dim + value_dim)) *
                       bytes_per_element(call.kv_dtype);
    mixed.sequences += static_cast<double>(call.batch);
    if (&call == calls.data()) continue;
    mixed.pass.traffic += part.traffic;
    mixed.pass.cold_bytes += part.cold_bytes;
    mixed.pass.write_rows += part.write_rows;
    mixed.pass.write_bytes += part.write_bytes;
    mixed.pass.cast_bytes += part.cast_bytes;
  }
  mixed.widest = calls.front();
  mixed.group =
      variant.packs_heads ? 1 : static_cast<double>(mixed.widest.heads) / static_cast<double>(mixed.widest.kv_heads);
  mixed.pass.problems = 1;
  mixed.pass.walk = {.tiles = tiles, .mean_blocks = blocks / tiles, .most_blocks = most};
  return mixed;
}

struct Times {
  TilePass whole;  // with the keys that are read again
  TilePassTimes pass;
  double reads = 1;  // of every key from memory
  double empty = 0;
  double total = 0;
};

// Tiles run sequence by sequence, then head by head (FlashAttention 2 launches a grid of tiles x sequences x heads).
// The query heads of a group read the same keys: together where their tiles are on the processors at the same time,
// else after one head of the whole batch has passed through L2.
Times mixed_times(const MixedPass& mixed, const DeviceTraits& device, std::span<const double> c) {
  Times t;
  TilePass pass = mixed.pass;
  if (mixed.group > 1) {
    const double together = std::clamp(device.processors * c[resident_tiles] / mixed.sequences, 1.0, mixed.group);
    const double between = mixed.key_bytes / static_cast<double>(mixed.widest.kv_heads);
    const double lost = dram_share(between, c[tile_pass::cache_share] * device.cache, 4);
    t.reads = 1 + (mixed.group / together - 1) * lost;
    pass.traffic += (t.reads - 1) * mixed.key_bytes;
    pass.cold_bytes += (t.reads - 1) * mixed.key_bytes;
  }
  t.whole = pass;
  t.pass = tile_pass_times(pass, device, c.first(tile_pass::constant_count));
  t.empty = c[empty_tile] * mixed.empty_tiles / device.processors;
  t.total = t.pass.total + t.empty;
  return t;
}

class AttentionMixedForm : public Form {
 public:
  std::string_view name() const override { return "attention_mixed"; }
  std::span<const FormConstant> constants() const override { return table(); }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    return tile_pass_effects(variant_of(call, device));
  }

  std::string_view usual_variant(const FormCall& call, const DeviceTraits& device) const override {
    return attention_variant({}, first_part(call), device).name;
  }

  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    const bool mixed = std::holds_alternative<MixedAttentionShape>(call.shape);
    return attention_kind_key(first_part(call)) << 1U | (mixed ? 1U : 0U);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    choice = 0;
    return mixed_times(pass_of(call, device), device, constants).total;
  }

  std::vector<std::string_view> known_variants() const override { return attention_variant_names(); }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int /*choice*/) const override {
    using enum Explained::Kind;
    const MixedPass mixed = pass_of(call, device);
    const Times t = mixed_times(mixed, device, constants);
    std::vector<Explained> lines =
        explain_tile_pass(t.whole, t.pass, device, constants.first(tile_pass::constant_count));
    lines.push_back({fact, "decode_tiles", mixed.decode_tiles, "", "tiles that hold one query each"});
    lines.push_back({fact, "reads_of_keys", t.reads, "", "how often a key comes from DRAM, cold or lost from L2"});
    if (t.empty > 0) lines.push_back({part, "empty_tiles", t.empty, "s", "tiles of decodes without a query"});
    return lines;
  }

  static constexpr size_t own_features = 6;
  size_t feature_count() const override { return tile_pass_feature_count + own_features; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int /*choice*/,
                std::span<float> out) const override {
    const MixedPass mixed = pass_of(call, device);
    const Times t = mixed_times(mixed, device, constants);
    tile_pass_features(mixed.pass, t.pass,
                       static_cast<double>(mixed.widest.heads) / static_cast<double>(mixed.widest.kv_heads),
                       std::max(mixed.q_len, 1.0), mixed.kv_len, static_cast<double>(mixed.widest.window),
                       out.first(tile_pass_feature_count));
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-9))); };
    const double tiles = mixed.pass.walk.tiles, blocks = tiles * mixed.pass.walk.mean_blocks;
    size_t i = tile_pass_feature_count;
    out[i++] = static_cast<float>(mixed.decode_tiles / tiles);
    out[i++] = static_cast<float>(mixed.decode_blocks / blocks);
    out[i++] = log(t.reads);
    out[i++] = log(mixed.key_bytes / device.cache);
    out[i++] = log(mixed.sequences / device.processors);
    out[i++] = log(t.empty / t.total);
  }

 private:
  // Its own family, or a prefill call.
  static AttentionShape first_part(const FormCall& call) {
    if (const auto* plain = std::get_if<AttentionShape>(&call.shape)) return *plain;
    const auto* mixed = std::get_if<MixedAttentionShape>(&call.shape);
    ensure(mixed != nullptr, "the attention form is asked about attention");
    return prompt_like(equal_parts(*mixed).calls[0]);
  }

  static const AttentionVariant& variant_of(const FormCall& call, const DeviceTraits& device) {
    return attention_variant(call.variant, first_part(call), device);
  }

  static MixedPass pass_of(const FormCall& call, const DeviceTraits& device) {
    const AttentionVariant& variant = variant_of(call, device);
    if (const auto* plain = std::get_if<AttentionShape>(&call.shape))
      return mixed_pass({plain, 1}, 0, variant, call.keys);
    const auto& shape = std::get<MixedAttentionShape>(call.shape);
    return mixed_pass(equal_parts(shape).all(), shape.longest_decode, variant, call.keys);
  }
};

}  // namespace
}  // namespace attention_mixed_form

std::unique_ptr<Form> make_attention_mixed_form() {
  return std::make_unique<attention_mixed_form::AttentionMixedForm>();
}

}  // namespace foretoken
