#include "kernel/forms/linear_attention_form.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "kernel/forms/form_math.h"
#include "model/work.h"

namespace foretoken {
namespace linear_attention_form {
namespace {

enum Constant {
  floor_cycles,
  item_cycles,
  step_cycles,
  serial_cycles,
  parallel_cycles,
  host_seconds,
  sequence_seconds,
  listing_seconds,
  ragged,
  traffic,
  dram_slowdown,
  cache_rate,
  cache_share,
  cache_sharpness,
  join_power,
  constant_count
};

// The first ones are factors on what the method usually takes (MethodFacts).
constexpr FormConstant table[constant_count] = {
    {"floor", 1, 0.1, 10, "clocks of an empty call, over the method's usual"},
    {"item", 1, 0.05, 20, "clocks of a processor per block of threads beside its steps, over the usual"},
    {"step", 1, 0.05, 20, "clocks of a processor per step of a block, over the usual"},
    {"serial", 1, 0.05, 20, "clocks of a step that nothing else hides, over the usual"},
    {"parallel", 1, 0.02, 50, "clocks of a processor per step whose order is free, over the usual"},
    {"host", 1, 0.1, 10, "seconds of the host per call, over the usual; only calls that no graph replays"},
    {"sequence", 1, 0.1, 10, "seconds of the host per sequence, over the usual"},
    {"listing", 1, 0.1, 10, "seconds of the host per eight tokens of a sequence, over the usual"},
    {"ragged", 1.3, 1, 4, "clocks of a block whose sequence is no multiple of eight tokens, over those of one that is"},
    {"traffic", 1, 0.2, 10, "bytes moved, over what the method needs"},
    {"dram_slowdown", 1.15, 1, 2, "DRAM: time over time at the spec bandwidth"},
    {"cache_rate", 18, 2, 80, "bytes per clock and processor from L2"},
    {"cache_share", 0.9, 0.2, 4, "bytes, over the size of L2, of which half miss"},
    {"cache_sharpness", 6, 1.5, 24, "how suddenly the cache overflows"},
    {"join_power", 3, 1, 24, "how far steps and memory hide one another"},
};

// How a kernel goes about it.
enum class Method { convolve_tokens, convolve_channels, convolve_from_host, update, decode, fused, chunked, count };

// Clocks, of a processor unless it says otherwise, and traffic over the least bytes. Typical of the GPUs looked at; the
// constants above say by how much a kernel or device differs.
struct MethodFacts {
  std::string_view name;
  double floor, item, step, serial, parallel;
  double traffic;
};
constexpr MethodFacts facts_of_methods[static_cast<size_t>(Method::count)] = {
    // Triton (vLLM): a block takes 8 tokens of 256 channels and reads the 3 tokens before them again.
    {"convolve tokens", 3500, 100, 110, 450, 0, 1.19},
    // CUDA (causal-conv1d, TensorRT-LLM, SGLang): a block takes one channel of one sequence, 1024 tokens a step.
    {"convolve channels", 7000, 150, 50, 500, 0, 1},
    // The same, but the host lists the blocks of tokens in every call, and no graph hides it.
    {"convolve from host", 3500, 100, 110, 450, 0, 1.19},
    // One token per sequence: the window is shifted in place.
    {"update", 3500, 200, 0, 0, 0, 1},
    {"decode", 7500, 800, 0, 0, 0, 1},
    // One block per sequence and head walks its chunks.
    {"fused", 8000, 12000, 5500, 100, 500, 1},
    // A kernel per product of the chunk; only the state is carried from chunk to chunk.
    {"chunked", 45000, 1500, 500, 1500, 2500, 6},
};

constexpr double host_usual = 420e-6, sequence_usual = 2.5e-6, listing_usual = 0.15e-6;
constexpr double token_block = 8, channel_block = 256, channel_step = 1024;

// One name, two kernels: vLLM's, and the CUDA one that TensorRT-LLM (Mamba-2) and SGLang (measured on Ampere) run.
bool convolves_in_cuda(const LinearAttentionShape& shape, const DeviceTraits& device) {
  return shape.stage == LinearAttentionStage::convolution &&
         (shape.kind == LinearAttentionKind::mamba2 || device.generation->convolves_in_cuda);
}

Method method_of(const LinearAttentionShape& shape, std::string_view variant, const DeviceTraits& device) {
  if (shape.stage == LinearAttentionStage::convolution) {
    if (shape.decode) return Method::update;
    if (variant == "causal_conv1d_fn_qkv3") return Method::convolve_from_host;
    return convolves_in_cuda(shape, device) ? Method::convolve_channels : Method::convolve_tokens;
  }
  if (shape.decode) return Method::decode;
  if (variant.starts_with("chunk_") && variant.ends_with("flashinfer")) return Method::fused;
  if (variant.starts_with("flashkda")) return Method::fused;
  if (variant.starts_with("chunk_")) return Method::chunked;
  return device.asynchronous || (shape.kind == LinearAttentionKind::kda && device.generation->fuses_kda)
             ? Method::fused
             : Method::chunked;
}

// What vLLM runs, by the names of its measurements.
std::string_view usual_kernel(const LinearAttentionShape& shape, const DeviceTraits& device) {
  const bool kda = shape.kind == LinearAttentionKind::kda;
  if (shape.stage == LinearAttentionStage::convolution) {
    if (shape.decode) return "causal_conv1d_update";
    return kda ? "causal_conv1d_fn_qkv3" : "causal_conv1d_fn";
  }
  if (shape.decode) {
    return kda ? "fused_recurrent_kda_packed_decode" : "fused_recurrent_gated_delta_rule_packed_decode";
  }
  if (method_of(shape, {}, device) == Method::fused) return kda ? "flashkda_fwd" : "chunk_gated_delta_rule_flashinfer";
  return kda ? "chunk_kda_with_fused_gate" : "chunk_gated_delta_rule_triton";
}

// A call as blocks of threads that take steps.
struct Blocks {
  Method method = Method::decode;
  double blocks = 1, steps = 1;  // steps of each block
  double step_size = 1;          // over the step that the usual clocks are of
  double sequences = 1, token_blocks = 0;
  bool ragged = false;  // sequences that cannot be read eight tokens at a time
  double bytes = 0;     // least traffic
  double footprint = 0;
};

Blocks blocks_of(const LinearAttentionShape& s, std::string_view variant, const DeviceTraits& device) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const double batch = number(s.batch), length = number(s.seq_len);
  const double key = number(s.key_dim), value = number(s.value_dim), heads = number(s.value_heads);
  const double channels = 2 * number(s.key_heads) * key + heads * value;
  Blocks b{.method = method_of(s, variant, device)};
  b.sequences = batch;
  b.token_blocks = batch * ceil_ratio(length, token_block);
  b.ragged = s.seq_len % 8 != 0;
  b.bytes = count_work(s).bytes().value();
  b.footprint = b.bytes;
  switch (b.method) {
    case Method::convolve_tokens:
    case Method::convolve_from_host:
      b.blocks = b.token_blocks * ceil_ratio(channels, channel_block);
      b.steps = std::min(length, token_block);
      break;
    case Method::convolve_channels:
      b.blocks = batch * channels;
      b.steps = ceil_ratio(length, channel_step);
      break;
    case Method::update:
      b.blocks = batch * ceil_ratio(channels, channel_block);
      // The window of earlier tokens is read and written in the same place.
      b.footprint -= bytes_per_element(s.dtype) * batch * channels * number(s.conv_kernel - 1);
      break;
    case Method::decode:
      b.blocks = batch * heads;
      b.step_size = key * value / 16384;
      b.footprint -= 4 * batch * heads * key * value;  // so is the state
      break;
    case Method::fused:
    case Method::chunked:
    case Method::count:
      b.blocks = batch * heads;
      b.steps = ceil_ratio(length, number(std::max<int64_t>(1, s.chunk)));
      b.step_size = key * value / 16384;
      break;
  }
  return b;
}

struct Times {
  double waves = 0, dram_share = 0, memory = 0, steps = 0, serial = 0, parallel = 0, floor = 0, total = 0;
};

Times times_of(const Blocks& b, const DeviceTraits& device, std::span<const double> c) {
  const MethodFacts& usual = facts_of_methods[static_cast<size_t>(b.method)];
  const double second = 1 / device.clock;
  Times t;
  t.waves = b.blocks / device.processors;
  // A fused block fills its processor: the last wave costs as much as a full one.
  const double waves = b.method == Method::fused ? std::ceil(t.waves) : t.waves;
  const double step = usual.step * c[step_cycles] * b.steps * b.step_size;
  const double one = (usual.item * c[item_cycles] * b.step_size + step) * (b.ragged ? c[ragged] : 1);
  t.steps = waves * one * second;
  t.serial = usual.serial * c[serial_cycles] * b.steps * b.step_size * second;
  t.parallel = t.waves * usual.parallel * c[parallel_cycles] * b.steps * b.step_size * second;
  t.dram_share = dram_share(b.footprint, c[cache_share] * device.cache, c[cache_sharpness]);
  t.memory =
      mixed_memory_seconds(usual.traffic * c[traffic] * b.bytes, t.dram_share, device.bandwidth / c[dram_slowdown],
                           c[cache_rate] * device.processors * device.clock);
  t.floor = usual.floor * c[floor_cycles] * second;
  if (b.method == Method::convolve_from_host) {
    t.floor += host_usual * c[host_seconds] + sequence_usual * c[sequence_seconds] * b.sequences +
               listing_usual * c[listing_seconds] * b.token_blocks;
  }
  t.total = t.floor + soft_maximum(t.memory, t.steps + t.parallel, t.serial, c[join_power]);
  return t;
}

class LinearAttentionForm : public Form {
 public:
  std::string_view name() const override { return "linear_attention"; }
  std::span<const FormConstant> constants() const override { return table; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    const LinearAttentionShape& shape = shape_of(call);
    const Method method = method_of(shape, call.variant, device);
    const std::string_view kernel = call.variant.empty() ? usual_kernel(shape, device) : call.variant;
    const std::string_view origin = convolves_in_cuda(shape, device) ? "cuda" : family_name(shape);
    return {"common", "family " + std::string(facts_of_methods[static_cast<size_t>(method)].name),
            fmt::format("kernel {} {}", origin, kernel)};
  }

  std::string_view usual_variant(const FormCall& call, const DeviceTraits& device) const override {
    return usual_kernel(shape_of(call), device);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    choice = 0;
    return times_of(blocks_of(shape_of(call), call.variant, device), device, constants).total;
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int /*choice*/) const override {
    using enum Explained::Kind;
    const Blocks b = blocks_of(shape_of(call), call.variant, device);
    const Times t = times_of(b, device, constants);
    return {
        {fact, "blocks", b.blocks, "", "blocks of threads that each walk along a sequence"},
        {fact, "steps", b.steps, "", "steps of each block"},
        {fact, "waves", t.waves, "", "blocks over processors"},
        {fact, "dram_traffic_share", t.dram_share, "share", "of the traffic that DRAM serves; L2 serves the rest"},
        {part, "launch", t.floor, "s", "an empty call, with the host's share where no graph hides it"},
        {part, "walk", t.total - t.floor, "s", "steps and traffic; their limits hide one another"},
        {limit, "memory", t.memory, "s", "all bytes through DRAM and L2"},
        {limit, "processors", t.steps + t.parallel, "s", "the steps of all blocks on the processors"},
        {limit, "one_block", t.serial, "s", "a single block from start to end"},
    };
  }

  size_t feature_count() const override { return 11; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int /*choice*/,
                std::span<float> out) const override {
    const Blocks b = blocks_of(shape_of(call), call.variant, device);
    const Times t = times_of(b, device, constants);
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-9))); };
    size_t i = 0;
    out[i++] = static_cast<float>(b.method);
    out[i++] = log(t.waves);
    out[i++] = static_cast<float>(t.waves / std::ceil(t.waves));
    out[i++] = log(b.steps);
    out[i++] = log(std::max(t.memory / t.total, 1e-3));
    out[i++] = log(std::max(t.steps / t.total, 1e-3));
    out[i++] = log(std::max(t.serial / t.total, 1e-3));
    out[i++] = log(std::max(t.parallel / t.total, 1e-3));
    out[i++] = static_cast<float>(t.floor / t.total);
    out[i++] = static_cast<float>(t.dram_share);
    out[i++] = log(b.footprint / device.cache);
  }

 private:
  static const LinearAttentionShape& shape_of(const FormCall& call) {
    const auto* shape = std::get_if<LinearAttentionShape>(&call.shape);
    ensure(shape != nullptr, "the linear attention form is asked about linear attention");
    return *shape;
  }
};

}  // namespace
}  // namespace linear_attention_form

std::unique_ptr<Form> make_linear_attention_form() {
  return std::make_unique<linear_attention_form::LinearAttentionForm>();
}

bool linear_attention_is_known(const LinearAttentionShape& shape) {
  if (shape.kind == LinearAttentionKind::lightning) return false;
  return shape.stage == LinearAttentionStage::convolution || shape.kind != LinearAttentionKind::mamba2;
}

}  // namespace foretoken
