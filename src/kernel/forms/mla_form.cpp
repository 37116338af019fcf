#include "kernel/forms/mla_form.h"

#include "base/error.h"
#include "kernel/forms/tile_pass.h"

namespace foretoken {
namespace mla_form {
namespace {

const LatentAttentionShape& shape_of(const FormCall& call) {
  const auto* shape = std::get_if<LatentAttentionShape>(&call.shape);
  ensure(shape != nullptr, "the latent-attention form is asked about latent attention");
  return *shape;
}

float feature_log(double x) {
  return static_cast<float>(quick_log2(std::max(x, 1e-9)));
}

// Kernels with warp specialisation exist where multiplies are asynchronous.
std::vector<std::string> effects_of(const DeviceTraits& device, const LatentAttentionShape& shape) {
  return {"common", device.asynchronous ? "family asynchronous" : "family synchronous",
          is_fp8(shape.kv_dtype) ? "cache fp8" : "cache bf16"};
}

// ---- prefill -------------------------------------------------------------------------------------------------------

TilePass tile_pass_of(const LatentAttentionShape& shape, const DeviceTraits& device) {
  const bool async = device.asynchronous;
  const auto batch = static_cast<double>(shape.batch), heads = static_cast<double>(shape.heads);
  const auto q_len = static_cast<double>(shape.q_len), kv_len = static_cast<double>(shape.kv_len);
  const auto key_dim = static_cast<double>(shape.nope_dim + shape.rope_dim),
             value_dim = static_cast<double>(shape.value_dim);
  const auto latent = static_cast<double>(shape.latent_dim + shape.rope_dim);
  const double element = bytes_per_element(shape.dtype), cached = bytes_per_element(shape.kv_dtype);
  const int64_t rows = async ? 128 : 64, keys = async ? 128 : 64;
  TilePass pass;
  // Keys chosen by an indexer are as many as those of a window.
  const int64_t window = shape.top_k > 0 && shape.top_k < shape.kv_len ? shape.top_k : 0;
  pass.walk = walk_tiles(
      {.q_len = shape.q_len, .kv_len = shape.kv_len, .window = window, .tile_rows = rows, .tile_keys = keys});
  pass.problems = batch * heads;
  pass.tile_rows = static_cast<double>(rows);
  pass.tile_pairs = static_cast<double>(rows * keys);
  pass.pair_flops = 2 * (key_dim + value_dim);
  pass.head_dim = key_dim;
  pass.overlap = async ? Overlap::asynchronous : Overlap::synchronous;
  pass.math = shape.dtype;
  pass.fp8_cache = is_fp8(shape.kv_dtype);
  pass.traffic = batch * heads * (q_len + kv_len) * (key_dim + value_dim) * element;
  // Rotary embedding of the queries and of the latent, and the write of the latent.
  pass.write_rows = batch * q_len;
  pass.write_bytes =
      batch * q_len * (heads * static_cast<double>(shape.rope_dim) * 2 * element + latent * (element + cached));
  return pass;
}

class MlaPrefillForm : public Form {
 public:
  std::string_view name() const override { return "mla_prefill"; }
  std::span<const FormConstant> constants() const override { return tile_pass_constants(); }
  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    return effects_of(device, shape_of(call));
  }
  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    return static_cast<uint64_t>(shape_of(call).kv_dtype);
  }
  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    choice = 0;
    return tile_pass_times(tile_pass_of(shape_of(call), device), device, constants).total;
  }
  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int /*choice*/) const override {
    const TilePass pass = tile_pass_of(shape_of(call), device);
    return explain_tile_pass(pass, tile_pass_times(pass, device, constants), device, constants);
  }
  size_t feature_count() const override { return tile_pass_feature_count; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int /*choice*/,
                std::span<float> out) const override {
    const LatentAttentionShape& shape = shape_of(call);
    const TilePass pass = tile_pass_of(shape, device);
    tile_pass_features(pass, tile_pass_times(pass, device, constants), 1, static_cast<double>(shape.q_len),
                       static_cast<double>(shape.kv_len), 0, out);
  }
};

// ---- decode --------------------------------------------------------------------------------------------------------

enum Constant {
  floor_cycles,
  join_cycles,
  part_overhead,
  least_rows,
  matmul_excess,
  split_fill,
  split_keys,
  walk_cycles,
  fp8_walk,
  wave_rounding,
  dram_slowdown,
  cache_rate,
  cache_share,
  join_power,
  constant_count,
};

constexpr FormConstant decode_table[constant_count] = {
    {"floor_cycles", 20000, 3000, 80000, "clocks of an empty call"},
    {"join_cycles", 4600, 200, 20000, "clocks of joining partial results"},
    {"part_overhead", 6.5e-6, 0.3e-6, 20e-6, "seconds to start and finish a part"},
    {"least_rows", 18, 1, 128, "query heads that cost no less than this many"},
    {"matmul_excess", 0.9, 0.3, 8, "matrix multiplies: time over time at the dense peak"},
    {"split_fill", 1, 0.2, 4, "parts per processor that splitting aims at"},
    {"split_keys", 150, 16, 1000, "fewest keys of a part"},
    {"walk_cycles", 170, 30, 600, "clocks per key of a block that walks the whole context"},
    {"fp8_walk", 0.75, 0.4, 1.5, "the same with an fp8 cache, over that"},
    {"wave_rounding", 0.8, 0.1, 1.2, "share of the partly filled last wave that is lost"},
    {"dram_slowdown", 1.15, 1, 1.8, "DRAM: time over time at the spec bandwidth"},
    {"cache_rate", 16, 2, 60, "bytes per clock and processor from L2"},
    {"cache_share", 1.1, 0.3, 4, "bytes, over the size of L2, of which half miss"},
    {"join_power", 1.5, 1, 6, "how far the longest part, all parts and memory hide one another"},
};

// Prompts of a sparse layer: every query has keys of its own, so that a tile holds the heads of one query alone, padded
// to 64 (SGLang and vLLM with FlashMLA's sparse kernel). FlashMLA states 640 TFLOP/s on H800 and 1,450 on B200: 1.55
// times as long as at the peak.
constexpr double sparse_excess = 1.55, sparse_tile_rows = 64;
constexpr int64_t most_drafted = 16;  // beyond it, tokens are a prompt's

bool is_sparse_prompt(const LatentAttentionShape& shape) {
  return shape.top_k > 0 && shape.q_len > most_drafted;
}

struct DecodeTimes {
  double problems = 0, parts = 1, keys = 0, longest = 0, balanced = 0, memory = 0, dram_share = 0, floor = 0, total = 0;
};

DecodeTimes decode_times(const LatentAttentionShape& shape, const DeviceTraits& device, std::span<const double> c) {
  DecodeTimes t;
  const double clock = device.clock, processors = device.processors;
  const auto batch = static_cast<double>(shape.batch);
  const auto rows = static_cast<double>(shape.heads * shape.q_len);  // q_len above one: drafted tokens to verify
  const auto latent = static_cast<double>(shape.latent_dim), rope = static_cast<double>(shape.rope_dim);
  const double element = bytes_per_element(shape.dtype), cached = bytes_per_element(shape.kv_dtype);
  const bool fp8 = is_fp8(shape.kv_dtype);
  t.keys = static_cast<double>(shape.top_k > 0 ? std::min(shape.kv_len, shape.top_k) : shape.kv_len);
  double walk = 0;  // seconds per key of one part
  const bool apart = is_sparse_prompt(shape);
  if (apart) {
    t.problems =
        batch * static_cast<double>(shape.q_len) * ceil_ratio(static_cast<double>(shape.heads), sparse_tile_rows);
    walk = 2 * (2 * latent + rope) * sparse_tile_rows * sparse_excess /
           (device.peak[static_cast<size_t>(shape.dtype)] / processors);
  } else if (device.asynchronous) {
    t.problems = batch * ceil_ratio(rows, 128);
    t.parts = std::max(1.0, std::min(c[split_fill] * processors / t.problems, t.keys / c[split_keys]));
    const double flops = 2 * (2 * latent + rope) * std::max(std::min(rows, 128.0), c[least_rows]);
    walk = flops / (device.peak[static_cast<size_t>(shape.dtype)] / processors) * c[matmul_excess];
  } else {
    // TensorRT-LLM's kernel for other GPUs does not split: a block walks the whole context of 64 heads.
    t.problems = batch * ceil_ratio(rows, 64);
    walk = c[walk_cycles] * (fp8 ? c[fp8_walk] : 1) / clock;
  }
  // Persistent blocks go from query to query.
  const double part = (apart ? 0 : c[part_overhead]) + t.keys / t.parts * walk;
  const double waves = t.problems * t.parts / processors;
  t.longest = part;
  t.balanced = waves * part * (1 + c[wave_rounding] * (std::ceil(waves) / waves - 1));
  const double traffic = batch * ((latent + rope) * t.keys * cached + rows * (2 * latent + rope) * element);
  t.dram_share = dram_share(traffic, c[cache_share] * device.cache, 4);
  t.memory = mixed_memory_seconds(traffic, t.dram_share, device.bandwidth / c[dram_slowdown],
                                  c[cache_rate] * processors * clock);
  t.floor = (c[floor_cycles] + (t.parts > 1 ? c[join_cycles] : 0)) / clock;
  t.total = t.floor + soft_maximum(std::max(t.longest, t.balanced), t.memory, c[join_power]);
  return t;
}

class MlaDecodeForm : public Form {
 public:
  std::string_view name() const override { return "mla_decode"; }
  std::span<const FormConstant> constants() const override { return decode_table; }
  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    return effects_of(device, shape_of(call));
  }
  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    return static_cast<uint64_t>(shape_of(call).kv_dtype);
  }
  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    choice = 0;
    return decode_times(shape_of(call), device, constants).total;
  }
  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int /*choice*/) const override {
    using enum Explained::Kind;
    const DecodeTimes t = decode_times(shape_of(call), device, constants);
    return {
        {fact, "split_keys", t.parts, "", "parts that one sequence's keys are split into"},
        {fact, "keys_per_part", t.keys / t.parts, "", "keys that one processor walks"},
        {fact, "waves", t.problems * t.parts / device.processors, "", "parts over processors"},
        {fact, "dram_traffic_share", t.dram_share, "share", "of the traffic that DRAM serves; L2 serves the rest"},
        {fact, "l2_rate", device.processors * device.clock * constants[cache_rate], "B/s", "at which L2 serves it"},
        {part, "launch", t.floor, "s", "launches, and joining the parts where keys are split"},
        {part, "attention", t.total - t.floor, "s", "the walk over the keys; its limits hide one another"},
        {limit, "longest_part", t.longest, "s", "one part from start to end"},
        {limit, "all_parts", t.balanced, "s", "work of all parts, in whole waves"},
        {limit, "memory", t.memory, "s", "the cached latent from DRAM and L2"},
    };
  }
  size_t feature_count() const override { return 12; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int /*choice*/,
                std::span<float> out) const override {
    const LatentAttentionShape& shape = shape_of(call);
    const DecodeTimes t = decode_times(shape, device, constants);
    const double waves = t.problems * t.parts / device.processors;
    size_t i = 0;
    out[i++] = feature_log(t.problems / device.processors);
    out[i++] = static_cast<float>(std::ceil(waves) / waves);
    out[i++] = feature_log(t.parts);
    out[i++] = feature_log(t.keys / t.parts);
    out[i++] = feature_log(t.longest / t.balanced);
    out[i++] = feature_log(t.memory / std::max(t.longest, t.balanced));
    out[i++] = static_cast<float>(t.floor / t.total);
    out[i++] = static_cast<float>(t.dram_share);
    out[i++] = feature_log(static_cast<double>(shape.heads));
    out[i++] = feature_log(t.keys);
    out[i++] = device.asynchronous ? 1.0F : 0.0F;
    out[i++] = is_fp8(shape.kv_dtype) ? 1.0F : 0.0F;
  }
};

}  // namespace
}  // namespace mla_form

std::unique_ptr<Form> make_mla_prefill_form() {
  return std::make_unique<mla_form::MlaPrefillForm>();
}
std::unique_ptr<Form> make_mla_decode_form() {
  return std::make_unique<mla_form::MlaDecodeForm>();
}

}  // namespace foretoken
