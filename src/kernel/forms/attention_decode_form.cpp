#include "kernel/forms/attention_decode_form.h"

#include "base/error.h"
#include "kernel/forms/attention_variants.h"
#include "kernel/forms/form_math.h"

namespace foretoken {
namespace attention_decode_form {
namespace {

enum Constant {
  floor_cycles,
  launch_cycles,
  join_cycles,
  tile_overhead,
  overhead_share,
  least_rows,
  matmul_excess,
  fp8_excess,
  wide_excess,
  exponential_excess,
  stream_rate,
  bulk_stream_rate,
  block_latency,
  width_growth,
  split_fill,
  split_keys,
  dram_slowdown,
  cache_rate,
  cache_share,
  join_power,
  write_rate,
  constant_count,
};

constexpr FormConstant table[constant_count] = {
    {"floor_cycles", 13000, 2000, 60000, "clocks of an empty call, cache write included"},
    {"launch_cycles", 4200, 1000, 12000, "clocks of one more kernel in the graph"},
    {"join_cycles", 4600, 200, 12000, "clocks of joining partial results"},
    {"tile_overhead", 2.7e-6, 0.1e-6, 12e-6, "seconds to start and finish a part; latency, not clocks"},
    {"overhead_share", 0.7, 0.05, 1.5, "share of that which parts beside it on the processor do not hide"},
    {"least_rows", 10.5, 1, 64, "query rows that cost no less than this many"},
    {"matmul_excess", 1, 0.5, 8, "matrix multiplies: time over time at the dense peak"},
    {"fp8_excess", 1.4, 0.7, 4, "more of that in fp8"},
    {"wide_excess", 4.7, 0.7, 12, "more of that where head_dim > 256"},
    {"exponential_excess", 1, 0.2, 5, "exponentials: time over time at the special-function rate"},
    {"stream_rate", 16, 4, 80, "bytes per clock that one processor draws by itself"},
    {"bulk_stream_rate", 65, 8, 200, "the same where a copy engine fetches"},
    {"block_latency", 0.2e-6, 0.02e-6, 1e-6, "least seconds per 64 keys of one part"},
    {"width_growth", 1.32, 1, 2, "growth of overhead and latency for each doubling of head_dim"},
    {"split_fill", 1.4, 0.2, 6, "parts per processor that splitting aims at"},
    {"split_keys", 103, 16, 600, "fewest keys of a part"},
    {"dram_slowdown", 1.13, 1, 1.6, "DRAM: time over time at the spec bandwidth"},
    {"cache_rate", 16, 2, 60, "bytes per clock and processor from L2"},
    {"cache_share", 1.1, 0.3, 4, "bytes, over the size of L2, of which half miss"},
    {"join_power", 1.46, 1, 6, "how far the longest part, all parts and memory hide one another"},
    {"write_rate", 3.6, 0.5, 40, "bytes per clock and processor of the cache write"},
};

// Whether the query heads of a group go one by one through the vector units.
bool is_vector(const AttentionShape& shape, const AttentionVariant& variant) {
  return variant.widest_group > 0 && shape.heads > variant.widest_group * shape.kv_heads;
}

// Rows that the tiles of a kernel multiply for `rows` of queries; what is not known is `least`.
double multiplied_rows(const AttentionShape& shape, const AttentionVariant& variant, double rows, double least) {
  const auto whole = [rows](double tile) { return std::ceil(rows / tile) * tile; };
  switch (variant.decode_tiles) {
    case DecodeTiles::planned:
      return whole(static_cast<double>(planned_tile_rows(static_cast<int64_t>(rows), shape.head_dim)));
    case DecodeTiles::flash_2:
    case DecodeTiles::flash_4:
      return whole(64);
    case DecodeTiles::flash_3:  // one group of warps multiplies where queries are few and heads narrow
      if (rows <= 64 && shape.head_dim <= 128) return 64;
      return whole(shape.head_dim <= 64 ? 192 : 128);
    case DecodeTiles::generated:  // up to 16 rows take the place of columns (SwapsMmaAb)
      return whole(rows <= 8 ? 8 : rows <= 16 ? 16 : rows <= 64 ? 64 : 128);
    case DecodeTiles::fitted:
      break;
  }
  return std::max(rows, least);
}

// Keys of a step of FlashAttention 3 (tile_size_fwd_sm90, not causal): a part walks no fewer.
double flash_3_step(const AttentionShape& shape, double rows) {
  const bool local = shape.window > 0;
  if (is_fp8(shape.kv_dtype)) {
    if (shape.head_dim > 192) return local ? 64 : 128;
    return shape.head_dim > 64 && shape.head_dim <= 128 && rows <= 64 ? 96 : 160;
  }
  if (shape.head_dim > 192) return local ? 64 : 80;
  return shape.head_dim <= 64 ? 160 : shape.head_dim <= 128 ? 128 : 96;
}

// Keys that a block of such a kernel walks for `part_keys` of its own. A window begins somewhere within a step, so that
// one more has keys to see.
double flash_3_walk(const AttentionShape& shape, double rows, double part_keys) {
  const double step = flash_3_step(shape, rows), walked = std::max(part_keys, step);
  if (shape.window == 0 || shape.kv_len <= shape.window) return walked;
  return std::min(walked + step, std::ceil(static_cast<double>(shape.kv_len) / step) * step);
}

bool has_fixed_parts(const AttentionShape& shape, const AttentionVariant& variant) {
  return variant.graph_parts == GraphParts::always && shape.batch * shape.q_len <= graph_tokens;
}

// One block after the other on a processor that each of them fills: whole rounds where contexts are not split.
double rounds_of_blocks(double problems, double parts, double processors) {
  return std::max(problems * parts / processors, problems > processors ? std::ceil(problems / processors) : 0);
}

struct Times {
  double problems = 0, parts = 1, keys = 0, rows = 1;
  double compute = 0, stream = 0;  // seconds per key
  double longest = 0, balanced = 0, memory = 0, dram_share = 0;
  double floor = 0, write = 0, total = 0;
  bool fp8_multiply = false;
};

Times decode_times(const AttentionShape& shape, const AttentionVariant& variant, const DeviceTraits& device,
                   std::span<const double> c, Caches keys_are) {
  Times t;
  const double clock = device.clock, processors = device.processors;
  const auto batch = static_cast<double>(shape.batch), heads = static_cast<double>(shape.heads);
  const auto kv_heads = static_cast<double>(shape.kv_heads), head_dim = static_cast<double>(shape.head_dim);
  const double group = std::max(1.0, heads / kv_heads);
  const double element = bytes_per_element(shape.dtype), cached = bytes_per_element(shape.kv_dtype);
  // FlashAttention 2 packs the heads of a group, and only then splits, where there is a group and no window
  // (mha_fwd_kvcache: seqlenq_ngroups_swapped); packing several sequences and heads costs two transposes.
  const bool classic = variant.kernel == "fa2";
  const bool vector = is_vector(shape, variant);
  const bool packed = classic ? group > 1 && shape.window == 0 : !vector;
  double launches = variant.extra_launches;
  if (classic && packed && shape.batch > 1 && shape.kv_heads > 1) launches += 2;
  if (!shape.writes_kv) launches -= 1;

  t.keys = static_cast<double>(shape.window > 0 ? std::min(shape.kv_len, shape.window) : shape.kv_len);
  const auto q_len = static_cast<double>(shape.q_len);  // above one: drafted tokens to verify
  t.rows = (packed ? group : 1) * q_len;
  t.problems = batch * (packed ? kv_heads : heads);
  const double block = !classic ? c[split_keys] : head_dim <= 64 ? 256 : head_dim <= 128 ? 128 : 64;
  if (packed || variant.splits_any)
    t.parts = std::max(1.0, std::min(processors * c[split_fill] / t.problems, t.keys / block));
  const bool fixed_parts = has_fixed_parts(shape, variant);
  if (fixed_parts) t.parts = graph_parts;
  if (variant.graph_parts == GraphParts::most) t.parts = std::min(t.parts, graph_parts);
  double busy_parts = t.parts;
  if (variant.overlap == Overlap::generic && shape.window > 0) {
    // vLLM's Triton kernel splits the whole context; of its segments only those that the window touches have work.
    constexpr double segments = 16;
    busy_parts = std::max(1.0, std::min(t.parts, segments * t.keys / static_cast<double>(shape.kv_len)));
  }

  t.fp8_multiply = multiplies_in_fp8(shape, variant);
  const bool in_fp8 = t.fp8_multiply && !variant.transposes_values;
  const double peak = variant.overlap == Overlap::generic || vector
                          ? 1024 * clock * processors
                          : device.peak[static_cast<size_t>(in_fp8 ? DType::fp8 : shape.dtype)];
  double matmul = 4 * head_dim / (peak / processors) * c[matmul_excess];
  if (in_fp8) matmul *= c[fp8_excess];
  if (head_dim > 256) matmul *= c[wide_excess];
  const double exponential = c[exponential_excess] / (device.exponentials_per_clock * clock);
  // Where tiles are known, so is what asynchronous kernels hide: multiplies behind exponentials, both behind loads.
  const bool hides = variant.overlap == Overlap::asynchronous && variant.decode_tiles != DecodeTiles::fitted;
  constexpr double hidden_power = 2.5;
  t.compute = multiplied_rows(shape, variant, t.rows, c[least_rows]) *
              (hides ? soft_maximum(matmul, exponential, hidden_power) : matmul + exponential);
  const bool bulk = variant.overlap == Overlap::asynchronous;
  t.stream = 2 * head_dim * cached / (c[bulk ? bulk_stream_rate : stream_rate] * clock);
  // FlashAttention 2 keeps keys times head_dim of a block constant.
  const double growth = classic ? 1 : quick_exp2(quick_log2(c[width_growth]) * quick_log2(head_dim / 128));
  const double overhead = c[tile_overhead] * growth * (1 + 0.05 * quick_log2(t.rows));
  // Of a fixed number of parts, those that have keys have no fewer than a step of them.
  const double part_keys = t.keys / t.parts, longest_keys = std::max(t.keys / busy_parts, fixed_parts ? 64.0 : 0);
  t.longest = overhead + longest_keys * std::max({t.compute, t.stream, c[block_latency] / 64 * growth});
  // Streaming is left out here: it would count the memory time twice.
  t.balanced = t.problems * t.parts / processors * (c[overhead_share] * overhead + part_keys * t.compute);

  double traffic = batch * 2 * head_dim * (kv_heads * t.keys * cached + heads * q_len * element);
  if (fixed_parts)
    traffic += batch * heads * q_len * t.parts * head_dim * 2 * 4;  // fp32, written and read to be joined
  t.dram_share = keys_are == Caches::cold ? 1 : dram_share(traffic, c[cache_share] * device.cache, 4);
  t.memory = mixed_memory_seconds(traffic, t.dram_share, device.bandwidth / c[dram_slowdown],
                                  c[cache_rate] * processors * clock);
  if (shape.writes_kv)
    t.write = batch * q_len * kv_heads * 2 * head_dim * (element + cached) / (c[write_rate] * processors * clock);
  const double joined = t.parts > 1 ? c[join_cycles] * (variant.reduces_in_kernel ? 0.3 : 1) : 0;
  t.floor = (floor_clocks(c[floor_cycles], c[launch_cycles], launches + (t.fp8_multiply ? 0.5 : 0)) + joined) / clock;
  const double join = c[join_power] * (hides ? 2 : 1);
  if (variant.fills_processor) {
    // Nothing runs beside a block on its processor: while it starts and ends, neither does its memory.
    const double rounds = rounds_of_blocks(t.problems, t.parts, processors);
    const double started = std::max(1.0, rounds) * overhead;
    const double walked = fixed_parts ? std::max(t.keys, 64.0) / t.parts : flash_3_walk(shape, t.rows, part_keys);
    t.balanced = started + rounds * walked * t.compute;
    t.total = t.floor + started + soft_maximum(t.longest - overhead, t.balanced - started, t.memory, join) + t.write;
    return t;
  }
  t.total = t.floor + soft_maximum(t.longest, t.balanced, t.memory, join) + t.write;
  return t;
}

// Decodes of unequal length, at their mean. Where no context is split, the longest one walks on alone, at the pace of
// one processor: what that adds. (Checked on decode batches of two GPUs and three models, docs/accuracy.md.)
double longest_alone(const MixedAttentionShape& shape, const Times& t, const DeviceTraits& device) {
  // FlashAttention splits below 0.8 waves of two tiles per processor (num_splits_heuristic).
  constexpr double waves_without_split = 1.6;
  if (t.problems < waves_without_split * device.processors) return 0;
  return std::max(0.0, static_cast<double>(shape.longest_decode) - shape.mean_decode()) * t.stream;
}

class AttentionDecodeForm : public Form {
 public:
  std::string_view name() const override { return "attention_decode"; }
  std::span<const FormConstant> constants() const override { return table; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    const AttentionVariant& variant = attention_variant(call.variant, shape_of(call), device);
    if (is_vector(shape_of(call), variant)) return {"common", "family vector"};
    return {"common", "family " + std::string(family_of(variant)), "kernel " + std::string(variant.kernel)};
  }

  std::string_view usual_variant(const FormCall& call, const DeviceTraits& device) const override {
    return attention_variant({}, shape_of(call), device).name;
  }

  std::vector<std::string_view> known_variants() const override { return attention_variant_names(); }

  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    const bool unequal = std::holds_alternative<MixedAttentionShape>(call.shape);
    return attention_kind_key(shape_of(call)) << 1U | (unequal ? 1U : 0U);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    choice = 0;
    const AttentionShape shape = shape_of(call);
    const Times t = decode_times(shape, attention_variant(call.variant, shape, device), device, constants, call.keys);
    return total_seconds(call, t, device);
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int /*choice*/) const override {
    using enum Explained::Kind;
    const AttentionShape shape = shape_of(call);
    const Times t = decode_times(shape, attention_variant(call.variant, shape, device), device, constants, call.keys);
    std::vector<Explained> lines = {
        {fact, "query_rows", t.rows, "", "query heads that share the keys of a part"},
        {fact, "split_keys", t.parts, "", "parts that one sequence's keys are split into"},
        {fact, "keys_per_part", t.keys / t.parts, "", "keys that one processor walks"},
        {fact, "waves", t.problems * t.parts / device.processors, "", "parts over processors"},
        {fact, "dram_traffic_share", t.dram_share, "share", "of the traffic that DRAM serves; L2 serves the rest"},
        {fact, "l2_rate", device.processors * device.clock * constants[cache_rate], "B/s", "at which L2 serves it"},
        {part, "launch", t.floor, "s", "launches, and joining the parts where keys are split"},
        {part, "attention", t.total - t.floor - t.write, "s", "the walk over the keys; its limits hide one another"},
    };
    if (t.write > 0) lines.push_back({part, "cache_write", t.write, "s", "new keys and values appended to the cache"});
    if (const auto* unequal = std::get_if<MixedAttentionShape>(&call.shape))
      lines.push_back(
          {part, "longest_decode", longest_alone(*unequal, t, device), "s", "the longest one walking alone"});
    lines.push_back({limit, "longest_part", t.longest, "s", "one part from start to end"});
    lines.push_back({limit, "all_parts", t.balanced, "s", "work of all parts, evenly spread"});
    lines.push_back({limit, "memory", t.memory, "s", "keys and values from DRAM and L2"});
    return lines;
  }

  size_t feature_count() const override { return 14; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                std::span<float> out) const override {
    seconds_and_features(call, device, constants, choice, out);
  }

  double seconds_and_features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                              int& choice, std::span<float> out) const override {
    choice = 0;
    const AttentionShape shape = shape_of(call);
    const AttentionVariant& variant = attention_variant(call.variant, shape, device);
    const Times t = decode_times(shape, variant, device, constants, call.keys);
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-9))); };
    const double waves = t.problems * t.parts / device.processors;
    size_t i = 0;
    out[i++] = log(t.problems / device.processors);
    out[i++] = static_cast<float>(std::ceil(waves) / waves);
    out[i++] = log(t.parts);
    out[i++] = log(t.keys / t.parts);
    out[i++] = log(t.longest / t.balanced);
    out[i++] = log(t.memory / std::max(t.longest, t.balanced));
    out[i++] = static_cast<float>(t.floor / t.total);
    out[i++] = static_cast<float>(t.write / t.total);
    out[i++] = log(t.stream / t.compute);
    out[i++] = static_cast<float>(t.dram_share);
    out[i++] = log(static_cast<double>(shape.head_dim));
    out[i++] = log(t.rows);
    out[i++] = shape.window > 0 ? log(t.keys / static_cast<double>(shape.window)) : -20.0F;
    out[i++] = is_fp8(shape.kv_dtype) ? 1.0F : 0.0F;
    return total_seconds(call, t, device);
  }

 private:
  static double total_seconds(const FormCall& call, const Times& t, const DeviceTraits& device) {
    const auto* unequal = std::get_if<MixedAttentionShape>(&call.shape);
    return t.total + (unequal != nullptr ? longest_alone(*unequal, t, device) : 0);
  }

  // Which kernels resemble one another here: the FlashAttention line, the FlashInfer and TensorRT-LLM line, and Triton.
  static std::string_view family_of(const AttentionVariant& variant) {
    if (variant.overlap == Overlap::generic) return "generic";
    return variant.kernel.substr(0, 2) == "fa" ? "flash" : "serving";
  }

  static AttentionShape shape_of(const FormCall& call) {
    if (const auto* unequal = std::get_if<MixedAttentionShape>(&call.shape)) return equal_decodes(*unequal);
    const auto* shape = std::get_if<AttentionShape>(&call.shape);
    ensure(shape != nullptr, "the attention form is asked about attention");
    return *shape;
  }
};

}  // namespace
}  // namespace attention_decode_form

std::unique_ptr<Form> make_attention_decode_form() {
  return std::make_unique<attention_decode_form::AttentionDecodeForm>();
}

}  // namespace foretoken
