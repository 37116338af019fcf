#include "kernel/forms/memory_form.h"

#include "base/error.h"
#include "kernel/forms/form_math.h"
#include "model/work.h"

namespace foretoken {
namespace memory_form {
namespace {

enum Constant {
  floor_cycles,
  row_overhead,
  row_rate,
  serial_rate,
  dram_slowdown,
  cache_rate,
  cache_share,
  cache_sharpness,
  join_power,
  constant_count
};

constexpr FormConstant table[constant_count] = {
    {"floor_cycles", 3940, 1000, 100000, "clocks of an empty kernel"},
    {"row_overhead", 80e-9, 1e-9, 3e-6, "seconds a processor spends on a row beside its bytes; latency, not clocks"},
    {"row_rate", 40, 0.3, 200, "bytes per clock that one processor moves"},
    {"serial_rate", 22, 1, 100, "bytes per clock of a single row"},
    {"dram_slowdown", 1.15, 1, 2, "DRAM: time over time at the spec bandwidth"},
    {"cache_rate", 18, 2, 80, "bytes per clock and processor from L2"},
    {"cache_share", 1.15, 0.3, 4, "bytes, over the size of L2, of which half miss"},
    {"cache_sharpness", 12, 2, 24, "how suddenly the cache overflows"},
    {"join_power", 3, 1, 24, "how far rows and memory hide one another"},
};

// A call as rows of bytes.
struct RowTraffic {
  double rows = 1, row_bytes = 0;
  std::string_view operation;
  double reread = 0;  // bytes that a kernel before the rows' own draws from L2
};

struct TrafficOf {
  const DeviceTraits& device;

  RowTraffic operator()(const QuantizeShape& s) const { return {as_double(s.m), as_double(s.k) * 3, "quantize"}; }
  RowTraffic operator()(const NormShape& s) const {
    const double element = bytes_per_element(s.dtype);
    return {as_double(s.rows), as_double(s.width) * element * (s.adds_residual ? 4 : 2),
            s.layer_norm ? "layer_norm" : "rms_norm"};
  }
  RowTraffic operator()(const RopeShape& s) const {
    return {as_double(s.tokens), as_double((s.heads + s.kv_heads) * s.rotary_dim) * bytes_per_element(s.dtype) * 2,
            "rope"};
  }
  RowTraffic operator()(const ActivationShape& s) const {
    return {as_double(s.rows), as_double(s.width) * bytes_per_element(s.dtype) * (s.gated ? 3 : 2), "activation"};
  }
  RowTraffic operator()(const SoftmaxShape& s) const {
    return {as_double(s.rows), as_double(s.width) * bytes_per_element(s.dtype) * 2, "softmax"};
  }
  RowTraffic operator()(const EmbeddingShape& s) const {
    return {as_double(s.tokens), as_double(s.width) * bytes_per_element(s.dtype) * 2, "embedding"};
  }
  RowTraffic operator()(const KvWriteShape& s) const {
    return {as_double(s.tokens),
            as_double(s.values_per_token) * (bytes_per_element(s.dtype) + bytes_per_element(s.kv_dtype)), "kv_write"};
  }
  RowTraffic operator()(const SamplingShape& s) const {
    // A sort passes over the logits several times; the effect of its operation tells how often.
    return {as_double(s.rows), as_double(s.vocabulary) * bytes_per_element(s.dtype), s.greedy ? "arg_max" : "sort"};
  }
  RowTraffic operator()(const HyperConnectionShape& s) const {
    // The mixing weights are small and read once, not by every row.
    const Work work = count_work(s);
    const double rows = as_double(s.tokens * s.sites);
    return {rows, (work.activations_read + work.written).value() / rows, s.post ? "mhc_post" : "mhc_pre",
            projection_bytes(s, work)};
  }
  RowTraffic operator()(const ElementwiseShape& s) const {
    // Element-wise kernels have no rows of their own: blocks of 1024 elements.
    constexpr double block = 1024;
    return {as_double(s.elements) / block, block * as_double(s.inputs + s.outputs) * bytes_per_element(s.dtype),
            "elementwise"};
  }
  // Where DeepGEMM has no kernel, vLLM projects with one of TileLang's: each block reads all weights for one token, or
  // for two of many (_tilelang_hc_prenorm_gemm in vllm/model_executor/kernels/mhc/tilelang.py).
  double projection_bytes(const HyperConnectionShape& s, const Work& work) const {
    constexpr int64_t many = 1024;
    if (s.post || device.asynchronous) return 0;
    return work.weights_read.value() * as_double(s.tokens) / (s.tokens >= many ? 2 : 1);
  }
  template <class Other>
  RowTraffic operator()(const Other&) const {
    ensure(false, "the memory form is asked about a memory-bound kernel");
    return {};
  }
};

struct Times {
  double bytes = 0, dram_share = 0, memory = 0, waves = 0, rows = 0, serial = 0, floor = 0, projection = 0, total = 0;
};

Times memory_times(const RowTraffic& call, const DeviceTraits& device, std::span<const double> c) {
  Times t;
  const double clock = device.clock, processors = device.processors;
  t.bytes = call.rows * call.row_bytes;
  t.dram_share = dram_share(t.bytes, c[cache_share] * device.cache, c[cache_sharpness]);
  t.memory = mixed_memory_seconds(t.bytes, t.dram_share, device.bandwidth / c[dram_slowdown],
                                  c[cache_rate] * processors * clock);
  t.waves = call.rows / processors;
  t.rows = t.waves * (c[row_overhead] + call.row_bytes / (c[row_rate] * clock));
  t.serial = call.row_bytes / (c[serial_rate] * clock);
  t.floor = c[floor_cycles] / clock;
  t.projection = call.reread / (c[cache_rate] * processors * clock);
  t.total = t.floor + soft_maximum(t.memory, t.rows, t.serial, c[join_power]);
  if (t.projection > 0) t.total = t.floor + soft_maximum(t.total - t.floor, t.projection, c[join_power]);
  return t;
}

class MemoryForm : public Form {
 public:
  std::string_view name() const override { return "memory"; }
  std::span<const FormConstant> constants() const override { return table; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    std::vector<std::string> names = {"common", kernel_effect(call, device)};
    if (!call.variant.empty()) names.push_back("kernel " + call.variant);
    return names;
  }

  // How often an operation passes over its rows differs more than devices do.
  std::string kernel_effect(const FormCall& call, const DeviceTraits& device) const override {
    return "operation " + std::string(std::visit(TrafficOf{device}, call.shape).operation);
  }

  // What an engine runs: a fused kernel of its own, and PyTorch's where nobody writes one.
  std::string_view usual_variant(const FormCall& call, const DeviceTraits& /*device*/) const override {
    if (std::holds_alternative<ElementwiseShape>(call.shape)) return "torch_add";
    if (std::holds_alternative<SoftmaxShape>(call.shape)) return "torch_softmax";
    if (std::holds_alternative<EmbeddingShape>(call.shape)) return "torch_embedding";
    if (const auto* sampling = std::get_if<SamplingShape>(&call.shape)) {
      return sampling->greedy ? "torch_argmax" : "torch_top_p_sort";
    }
    return "triton";
  }

  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    const auto* norm = std::get_if<NormShape>(&call.shape);
    const auto* sampling = std::get_if<SamplingShape>(&call.shape);
    const auto* mixing = std::get_if<HyperConnectionShape>(&call.shape);
    const bool other = (norm != nullptr && norm->layer_norm) || (sampling != nullptr && sampling->greedy) ||
                       (mixing != nullptr && mixing->post);
    return static_cast<uint64_t>(call.shape.index()) << 1U | (other ? 1U : 0U);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    choice = 0;
    return memory_times(std::visit(TrafficOf{device}, call.shape), device, constants).total;
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int /*choice*/) const override {
    using enum Explained::Kind;
    const RowTraffic traffic = std::visit(TrafficOf{device}, call.shape);
    const Times t = memory_times(traffic, device, constants);
    std::vector<Explained> lines = {
        {fact, "rows", traffic.rows, "", "rows, each on one processor"},
        {fact, "row_bytes", traffic.row_bytes, "B", "read and written for each"},
        {fact, "waves", t.waves, "", "rows over processors"},
        {fact, "dram_traffic_share", t.dram_share, "share", "of the traffic that DRAM serves; L2 serves the rest"},
        {fact, "l2_rate", device.processors * device.clock * constants[cache_rate], "B/s", "at which L2 serves it"},
        {part, "launch", t.floor, "s", "an empty kernel"},
        {part, "move", t.total - t.floor, "s", "the rows; their limits hide one another"},
        {limit, "memory", t.memory, "s", "all bytes through DRAM and L2"},
        {limit, "processors", t.rows, "s", "rows handled by the processors, evenly spread"},
        {limit, "one_row", t.serial, "s", "a single row from start to end"},
    };
    if (t.projection > 0)
      lines.push_back({limit, "projection", t.projection, "s", "weights read from L2 for one or two tokens at a time"});
    return lines;
  }

  size_t feature_count() const override { return 9; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int /*choice*/,
                std::span<float> out) const override {
    const RowTraffic traffic = std::visit(TrafficOf{device}, call.shape);
    const Times t = memory_times(traffic, device, constants);
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-9))); };
    size_t i = 0;
    out[i++] = log(t.waves);
    out[i++] = static_cast<float>(std::ceil(t.waves) / t.waves);
    out[i++] = log(t.memory / t.rows);
    out[i++] = log(t.serial / t.rows);
    out[i++] = static_cast<float>(t.floor / t.total);
    out[i++] = static_cast<float>(t.dram_share);
    out[i++] = log(t.bytes / device.cache);
    out[i++] = log(traffic.row_bytes);
    out[i++] = log(traffic.rows);
  }
};

}  // namespace
}  // namespace memory_form

std::unique_ptr<Form> make_memory_form() {
  return std::make_unique<memory_form::MemoryForm>();
}

}  // namespace foretoken
