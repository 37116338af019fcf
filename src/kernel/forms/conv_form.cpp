#include "kernel/forms/conv_form.h"

#include <limits>

#include "base/error.h"
#include "kernel/forms/eager_form.h"
#include "kernel/forms/form_math.h"
#include "kernel/forms/matmul_tile.h"
#include "model/work.h"

namespace foretoken {
namespace conv_form {
namespace {

enum Constant {
  floor_cycles,
  compute_share,
  edge,
  slab_cycles,
  gather_rate,
  dram_slowdown,
  cache_rate,
  winograd_share,
  transform_passes,
  constant_count
};

constexpr FormConstant table[constant_count] = {
    {"floor_cycles", 6000, 2000, 60000, "clocks of an empty call"},
    {"compute_share", 0.75, 0.1, 1, "of the fp32 peak that a large tile sustains"},
    {"edge", 8, 0.5, 100, "rows and columns of a tile lost to its edge"},
    {"slab_cycles", 700, 50, 10000, "clocks of one tile's step along 32 values of the reduction"},
    {"gather_rate", 40, 2, 500, "bytes of unrolled input per clock that one processor gathers"},
    {"dram_slowdown", 1.3, 1, 4, "DRAM: time over time at the spec bandwidth"},
    {"cache_rate", 20, 2, 200, "bytes per clock and processor from L2"},
    {"winograd_share", 0.5, 0.05, 1, "of the 2.25 times fewer multiplies of a 3x3 kernel that time gains from"},
    {"transform_passes", 3, 0.3, 20, "times that transformed images pass through memory"},
};

struct Algorithm {
  double compute = 0, latency = 0, gather = 0, memory = 0, waves = 0, total = 0;
};

// Multiplies of [pixels, reduction] x [reduction, channels]; the input is unrolled on the way.
struct Problem {
  double pixels = 1, channels = 1, reduction = 1, groups = 1;
  double bytes = 0, image_bytes = 0;
  bool winograd = false;
};

constexpr MatmulTile conv_tiles[] = {{32, 32}, {64, 32}, {64, 64}, {128, 32}, {128, 64}, {128, 128}};
constexpr int conv_tile_count = static_cast<int>(std::size(conv_tiles));

Problem pose(const FormCall& call) {
  const auto* s = std::get_if<ConvShape>(&call.shape);
  ensure(s != nullptr, "the conv form is asked about a convolution");
  const Work work = count_work(call.shape);
  const double rows = as_double(convolved_size(s->height, s->kernel_height, s->stride, s->padding, s->dilation));
  const double columns = as_double(convolved_size(s->width, s->kernel_width, s->stride, s->padding, s->dilation));
  Problem p;
  p.groups = as_double(s->groups);
  p.pixels = as_double(s->batch) * rows * columns;
  p.channels = as_double(s->out_channels) / p.groups;
  p.reduction = as_double(s->in_channels) / p.groups * as_double(s->kernel_height * s->kernel_width);
  p.bytes = work.bytes().value();
  p.image_bytes = (work.activations_read + work.written).value();
  p.winograd = s->kernel_height == 3 && s->kernel_width == 3 && s->stride == 1 && s->dilation == 1 && s->groups == 1;
  return p;
}

Algorithm run(const Problem& p, const DeviceTraits& device, std::span<const double> c, const MatmulTile& tile,
              bool winograd) {
  // Winograd F(2x2, 3x3): 16 multiplies for 36, at the price of transforming images and results
  // (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, section 4.1).
  const double fewer = winograd ? 1 / (1 + 1.25 * std::min(1.0, c[winograd_share])) : 1;
  const double rows = tile.rows, columns = tile.columns;
  Algorithm a;
  a.waves = ceil_ratio(p.pixels, rows) * ceil_ratio(p.channels, columns) * p.groups / device.processors;
  const double whole = std::ceil(a.waves), slabs = ceil_ratio(p.reduction, 32);
  const double peak = device.peak[static_cast<size_t>(DType::fp32)] * std::min(1.0, c[compute_share]);
  a.compute = fewer * whole * (rows + c[edge]) * (columns + c[edge]) * slabs * 32 * 2 * device.processors / peak;
  a.latency = fewer * slabs * c[slab_cycles] / device.clock * std::max(1.0, whole * latency_share(rows * columns));
  a.gather = whole * 4 * (rows + columns) * slabs * 32 / (c[gather_rate] * device.clock);
  const double share = dram_share(p.bytes, device.cache, 4);
  const double rate = device.bandwidth / c[dram_slowdown],
               from_cache = c[cache_rate] * device.processors * device.clock;
  a.memory = mixed_memory_seconds(p.bytes, share, rate, from_cache);
  if (winograd) a.memory += mixed_memory_seconds(p.image_bytes * c[transform_passes], share, rate, from_cache);
  a.total = soft_maximum(a.compute, std::max(a.latency, a.gather), a.memory, 3);
  return a;
}

class ConvForm : public Form {
 public:
  std::string_view name() const override { return "conv"; }
  std::span<const FormConstant> constants() const override { return table; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    std::vector<std::string> names = {"common"};
    if (device.stacked_memory) names.emplace_back("stacked memory");
    const auto* s = std::get_if<ConvShape>(&call.shape);
    if (s != nullptr && s->kernel_height == 1 && s->kernel_width == 1) names.emplace_back("kernel 1x1");
    return names;
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    const Problem p = pose(call);
    const double floor = constants[floor_cycles] / device.clock;
    if (choice >= 0) return floor + chosen(p, device, constants, choice).total;
    double best = std::numeric_limits<double>::infinity();
    for (int candidate = 0; candidate < conv_tile_count * (p.winograd ? 2 : 1); ++candidate) {
      const double total = chosen(p, device, constants, candidate).total;
      if (total >= best) continue;
      best = total;
      choice = candidate;
    }
    return floor + best;
  }

  size_t feature_count() const override { return 13; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                std::span<float> out) const override {
    const Problem p = pose(call);
    const Algorithm a = chosen(p, device, constants, choice);
    const MatmulTile& tile = conv_tiles[choice % conv_tile_count];
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-6))); };
    size_t i = 0;
    for (const double limit : {a.compute, a.latency, a.gather, a.memory}) out[i++] = log(limit / a.total);
    out[i++] = log(a.waves);
    out[i++] = static_cast<float>(a.waves / std::ceil(a.waves));
    out[i++] = static_cast<float>(choice);
    out[i++] = log(p.bytes / device.cache);
    out[i++] = static_cast<float>(p.pixels / (tile.rows * ceil_ratio(p.pixels, tile.rows)));
    out[i++] = static_cast<float>(p.channels / (tile.columns * ceil_ratio(p.channels, tile.columns)));
    out[i++] = log(p.reduction);
    out[i++] = log(p.pixels / device.processors);
    out[i++] = log(p.channels);
  }

 private:
  static Algorithm chosen(const Problem& p, const DeviceTraits& device, std::span<const double> c, int choice) {
    return run(p, device, c, conv_tiles[choice % conv_tile_count], choice >= conv_tile_count);
  }
};

}  // namespace
}  // namespace conv_form

std::unique_ptr<Form> make_conv_fp32_form(Caches /*caches*/) {
  return make_eager_form(std::make_unique<conv_form::ConvForm>(), "conv_fp32");
}

}  // namespace foretoken
