#include "kernel/forms/eager_memory_form.h"

#include "base/error.h"
#include "kernel/forms/eager_form.h"
#include "kernel/forms/form_math.h"

namespace foretoken {
namespace eager_memory_form {
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
  rows_in_flight,
  compute_share,
  join_power,
  constant_count
};

constexpr FormConstant table[constant_count] = {
    // Event timings cannot tell it from the gap before the kernel: held near what bare kernels take.
    {"floor_cycles", 3900, 3000, 5000, "clocks of an empty kernel"},
    {"row_overhead", 80e-9, 0.1e-9, 3e-6, "seconds a processor spends on a row beside its bytes; latency, not clocks"},
    {"row_rate", 40, 2, 400, "bytes per clock that one processor moves"},
    {"serial_rate", 22, 1, 200, "bytes per clock of a single row"},
    {"dram_slowdown", 1.2, 1, 2, "DRAM: time over time at the spec bandwidth"},
    {"cache_rate", 18, 2, 120, "bytes per clock and processor from L2"},
    {"cache_share", 0.9, 0.2, 4, "bytes, over the size of L2, of which half miss"},
    {"cache_sharpness", 4, 1, 24, "how suddenly the cache overflows"},
    {"rows_in_flight", 4, 0.2, 40, "rows per processor between two passes over a row: they crowd L2"},
    {"compute_share", 0.5, 0.05, 1, "of the fp32 peak, where arithmetic bounds"},
    {"join_power", 3, 1, 12, "how far rows, memory and arithmetic hide one another"},
};

// A call as rows of bytes.
struct RowTraffic {
  double rows = 1, read = 0, written = 0;  // bytes of a row, once
  double further_passes = 0;               // over what was read
  double flops = 0;                        // of a row
  std::string_view operation;
};

// PyTorch (aten/src/ATen/native/cuda): a block passes over a long row for the maximum, for the sum and for the result
// of a softmax. Layer norm passes twice: moments, result.
struct TrafficOf {
  RowTraffic operator()(const NormShape& s) const {
    const double bytes = as_double(s.width) * bytes_per_element(s.dtype) * (s.adds_residual ? 2 : 1);
    return {.rows = as_double(s.rows),
            .read = bytes,
            .written = bytes,
            .further_passes = 1,
            .operation = s.layer_norm ? "layer_norm" : "rms_norm"};
  }
  RowTraffic operator()(const SoftmaxShape& s) const {
    const double bytes = as_double(s.width) * bytes_per_element(s.dtype);
    const bool in_registers = s.width <= longest_warp_softmax;
    return {.rows = as_double(s.rows),
            .read = bytes,
            .written = bytes,
            .further_passes = in_registers ? 0.0 : 2.0,
            .operation = in_registers ? "softmax in registers" : "softmax"};
  }
  RowTraffic operator()(const ActivationShape& s) const {
    return flat(as_double(s.rows) * as_double(s.width), s.gated ? 2 : 1, 1, 1, bytes_per_element(s.dtype));
  }
  RowTraffic operator()(const ElementwiseShape& s) const {
    return flat(as_double(s.elements), as_double(s.inputs), as_double(s.outputs), s.flops_per_element,
                bytes_per_element(s.dtype));
  }
  template <class Other>
  RowTraffic operator()(const Other&) const {
    ensure(false, "the eager form is asked about a kernel over rows or elements");
    return {};
  }

 private:
  // No rows of their own: blocks of 1024 elements.
  static RowTraffic flat(double elements, double inputs, double outputs, double flops, double element_bytes) {
    constexpr double block = 1024;
    return {.rows = elements / block,
            .read = block * inputs * element_bytes,
            .written = block * outputs * element_bytes,
            .flops = block * flops,
            .operation = "elementwise"};
  }
};

struct Times {
  double bytes = 0, row_bytes = 0, dram_share = 0, reread_share = 0;
  double memory = 0, waves = 0, rows = 0, serial = 0, compute = 0, floor = 0, total = 0;
};

Times times_of(const RowTraffic& call, const DeviceTraits& device, std::span<const double> c) {
  Times t;
  const double clock = device.clock, processors = device.processors;
  const double dram_rate = device.bandwidth / c[dram_slowdown], from_cache = c[cache_rate] * processors * clock;
  t.row_bytes = call.read + call.written;
  t.bytes = call.rows * t.row_bytes;
  t.dram_share = dram_share(t.bytes, c[cache_share] * device.cache, c[cache_sharpness]);
  t.memory = mixed_memory_seconds(t.bytes, t.dram_share, dram_rate, from_cache);
  if (call.further_passes > 0) {
    const double again = call.further_passes * call.rows * call.read;
    const double between = std::min(t.bytes, c[rows_in_flight] * processors * t.row_bytes);
    t.reread_share = dram_share(between, c[cache_share] * device.cache, 2);
    t.memory += mixed_memory_seconds(again, t.reread_share, dram_rate, from_cache);
  }
  t.waves = call.rows / processors;
  const double moved = t.row_bytes + call.further_passes * call.read;
  t.rows = t.waves * (c[row_overhead] + moved / (c[row_rate] * clock));
  t.serial = moved / (c[serial_rate] * clock);
  t.compute =
      call.rows * call.flops / (device.peak[static_cast<size_t>(DType::fp32)] * std::min(1.0, c[compute_share]));
  t.floor = c[floor_cycles] / clock;
  t.total = t.floor + soft_maximum(t.memory, std::max(t.rows, t.compute), t.serial, c[join_power]);
  return t;
}

class EagerMemoryForm : public Form {
 public:
  std::string_view name() const override { return "eager memory"; }
  std::span<const FormConstant> constants() const override { return table; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    std::vector<std::string> names = {"common"};
    if (device.stacked_memory) names.emplace_back("stacked memory");
    names.push_back("operation " + std::string(std::visit(TrafficOf{}, call.shape).operation));
    return names;
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    choice = 0;
    return times_of(std::visit(TrafficOf{}, call.shape), device, constants).total;
  }

  size_t feature_count() const override { return 12; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int /*choice*/,
                std::span<float> out) const override {
    const RowTraffic traffic = std::visit(TrafficOf{}, call.shape);
    const Times t = times_of(traffic, device, constants);
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-9))); };
    size_t i = 0;
    out[i++] = log(t.waves);
    out[i++] = log(t.memory / t.rows);
    out[i++] = log(t.serial / t.rows);
    out[i++] = log(t.compute / t.rows);
    out[i++] = static_cast<float>(t.floor / t.total);
    out[i++] = static_cast<float>(t.dram_share);
    out[i++] = static_cast<float>(t.reread_share);
    out[i++] = log(t.bytes / device.cache);
    out[i++] = log(t.row_bytes);
    out[i++] = log(traffic.rows);
    out[i++] = static_cast<float>(traffic.further_passes);
    out[i++] = std::fmod(traffic.read, 16) != 0 ? 1.0F : 0.0F;  // rows that do not start on 16 bytes
  }
};

}  // namespace
}  // namespace eager_memory_form

std::unique_ptr<Form> make_eager_memory_form(Caches /*caches*/) {
  return make_eager_form(std::make_unique<eager_memory_form::EagerMemoryForm>(), "eager");
}

}  // namespace foretoken
