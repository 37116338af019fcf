#include "kernel/forms/gemm_form.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernel/forms/form_math.h"
#include "kernel/forms/gemm_tiles.h"
#include "kernel/forms/matmul_tile.h"

namespace foretoken {
namespace gemm_form {
namespace {

enum Constant {
  floor_cycles,
  floor_seconds,
  slab_cycles,
  compute_share,
  edge,
  load_rate,
  cache_rate,
  dram_share_of_peak,
  cache_share,
  first_store_rate,
  store_rate,
  tile_cycles,
  reread,
  reread_share,
  split_cycles,
  quantizer_cycles,
  quantizer_seconds,
  quantizer_rate,
  quantizer_row_cycles,
  quantizer_dram_share,
  fp4_quantizer_cycles,
  fp4_quantizer_rate,
  fp4_quantizer_row_cycles,
  constant_count,
};

constexpr FormConstant table[constant_count] = {
    {"floor_cycles", 4280, 500, 30000, "clocks of an empty call: launch and drain"},
    {"floor_seconds", 0.4e-6, 0.02e-6, 5e-6, "part of that which does not follow the clock, seconds"},
    {"slab_cycles", 320, 30, 3000, "clocks of one tile's step along 128 bytes of k"},
    {"compute_share", 0.92, 0.2, 1, "of the dense peak that a large tile sustains"},
    {"edge", 6.5, 0.5, 60, "rows and columns of a tile lost to its edge"},
    {"load_rate", 134, 10, 1000, "bytes per clock from L2 into one processor"},
    {"cache_rate", 8, 0.5, 60, "bytes per clock and processor that stream out of L2, beside DRAM"},
    {"dram_share_of_peak", 0.85, 0.3, 1, "of the spec bandwidth"},
    {"cache_share", 0.6, 0.1, 2, "bytes, over the size of L2, of which half miss"},
    {"first_store_rate", 12, 1, 100, "bytes per clock at which a tile's results are stored, first wave"},
    {"store_rate", 14, 1, 200, "the same for later waves"},
    {"tile_cycles", 180, 5, 3000, "clocks between waves of 128x128 tiles"},
    {"reread", 1.9, 0.2, 10, "operands read again from DRAM by later waves, over the least a square of tiles needs"},
    {"reread_share", 0.52, 0.1, 3, "bytes of the smaller operand, over L2, of which half are read again"},
    {"split_cycles", 3520, 300, 20000, "clocks of joining a k that is split over processors"},
    {"quantizer_cycles", 3300, 300, 20000, "clocks of an empty quantization of x"},
    {"quantizer_seconds", 0.3e-6, 0.02e-6, 5e-6, "part of that which does not follow the clock, seconds"},
    {"quantizer_rate", 9, 0.5, 100, "bytes per clock and processor that quantization moves"},
    {"quantizer_row_cycles", 1700, 20, 10000, "clocks per row of x on one processor: a block of threads per token"},
    {"quantizer_dram_share", 0.85, 0.2, 1, "of the spec bandwidth, quantizing"},
    {"fp4_quantizer_cycles", 5800, 300, 20000, "quantizer_cycles to nvfp4: block scales are written in tile order"},
    {"fp4_quantizer_rate", 30, 2, 200, "quantizer_rate to nvfp4"},
    {"fp4_quantizer_row_cycles", 280, 10, 5000, "quantizer_row_cycles to nvfp4: vectorized, several rows at once"},
};

constexpr double split_seconds = 0.3e-6;

// Rows of 16-bit operands or results that do not start on 16 bytes (n or k no multiple of 8) are fetched in pieces: by
// older kernels without bulk copies where pieces of 4 bytes are left, value by value where n or k is odd. The limits
// are of instructions, so that they are counted in clocks of a processor. Read off 90 of 180 matrix multiplies in bf16
// on an H200; no other GPU was measured.
struct Alignment {
  double flops_per_cycle = 0;  // of a processor; 0 = no limit
  double bytes_per_cycle = 0;
  double slab = 1;  // times slab_cycles
};
constexpr Alignment in_pieces{.flops_per_cycle = 1020, .bytes_per_cycle = 11, .slab = 2.8};
constexpr Alignment by_value{.flops_per_cycle = 490, .bytes_per_cycle = 3.9, .slab = 4.4};
constexpr double misaligned_half_width = 0.45;

// Of PyTorch's own multiplies: engines and training frameworks pad what they multiply.
bool is_misaligned(const FormCall& call) {
  const auto* gemm = std::get_if<GemmShape>(&call.shape);
  if (gemm == nullptr || !call.variant.starts_with("torch_linear")) return false;
  const GemmShape& shape = *gemm;
  const bool is_16_bit = shape.scheme == Scheme::bf16 || shape.scheme == Scheme::fp16;
  return is_16_bit && (shape.n % 8 != 0 || shape.k % 8 != 0);
}

Alignment alignment_of(const FormCall& call, const GemmShape& shape) {
  if (!is_misaligned(call)) return {};
  // A single row is multiplied by another kernel, whose threads walk rows of the weights.
  const bool is_odd = shape.n % 2 != 0 || shape.k % 2 != 0;
  return is_odd && shape.m > 1 ? by_value : in_pieces;
}

// Sizes and limits of a call that do not depend on the tile.
struct Problem {
  double m = 1, n = 1, k = 1, batch = 1;
  double weight_bytes = 2, operand_bytes = 2;  // per element; the second: of the wider operand
  double activation_bytes = 2;
  double weights = 0, inputs = 0, outputs = 0;  // bytes
  TileCosts costs;
  double inverse_processors = 1;
  double dram_bytes = 0, reread_share = 0, inverse_dram_rate = 1, cache_seconds = 0, miss = 0;
  double quantizer = 0;  // seconds
  GemmDispatch dispatch;
};

struct Times {
  MatmulLimits limits;
  double waves = 0;
  double stores = 0, split = 0;
  double total() const { return overlapped(limits) + stores + split; }
};

class GemmForm : public Form {
 public:
  explicit GemmForm(Caches caches) : caches_(caches) {}

  std::string_view name() const override { return "gemm"; }
  std::span<const FormConstant> constants() const override { return table; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    const GemmShape& shape = shape_of(call);
    std::vector<std::string> names = {"common"};
    if (device.asynchronous) names.emplace_back("asynchronous");
    if (device.stacked_memory) names.emplace_back("stacked memory");
    const Scheme scheme = shape.scheme == Scheme::fp16 ? Scheme::bf16 : shape.scheme;
    names.push_back("class " + std::string(facts(scheme).name));
    const GemmKernel kernel = gemm_kernel(call.variant, shape.scheme);
    if (kernel == GemmKernel::trtllm) names.push_back("kernel trtllm " + std::string(facts(scheme).name));
    return names;
  }

  std::vector<std::string_view> known_variants() const override { return gemm_variant_names(); }

  std::string measured_as(const FormCall& call) const override {
    const bool wants_cold = caches_ == Caches::cold && !call.variant.empty() && !call.variant.ends_with(cold_suffix);
    return wants_cold ? call.variant + std::string(cold_suffix) : call.variant;
  }

  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    return static_cast<uint64_t>(shape_of(call).scheme);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    const Problem problem = pose(call, device, constants);
    if (choice >= 0) return around(problem, device, constants) + times(problem, device, constants, choice).total();
    return around(problem, device, constants) + least_seconds(problem, device, constants, choice);
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int choice) const override {
    using enum Explained::Kind;
    const Problem p = pose(call, device, constants);
    const Times t = times(p, device, constants, choice);
    const auto [rows, columns] = matmul_tiles[choice / gemm_split_count];
    std::vector<Explained> lines = {
        {fact, "tile_rows", static_cast<double>(rows), "", "rows of x that one processor multiplies at a time"},
        {fact, "tile_columns", static_cast<double>(columns), "", "columns of y, the same"},
        {fact, "split_k", static_cast<double>(gemm_splits[choice % gemm_split_count]), "",
         "processors that share the k of one tile"},
        {fact, "waves", t.waves, "", "tiles over processors"},
        {fact, "last_wave_filled", t.waves / std::ceil(t.waves), "share", "of the slots of all waves that hold a tile"},
        {fact, "dram_traffic_share", p.dram_bytes / (p.weights + p.inputs + p.outputs), "share",
         "of the operands and results that DRAM serves; L2 serves the rest"},
        {fact, "l2_rate", (p.weights + p.inputs + p.outputs) / p.cache_seconds, "B/s",
         "at which all of it streams through L2"},
        {part, "launch", launch_seconds(device, constants), "s", "launch and drain of an empty call"},
    };
    if (p.quantizer > 0) lines.push_back({part, "quantize", p.quantizer, "s", "activations cast before the multiply"});
    lines.push_back({part, "multiply", overlapped(t.limits), "s", "main loop over k; the slowest limit dominates"});
    lines.push_back({part, "store", t.stores, "s", "results written, tile after tile"});
    if (t.split > 0) lines.push_back({part, "join_split_k", t.split, "s", "partial sums joined"});
    explain_limits(t.limits, lines);
    return lines;
  }

  // The trees have seen no such rows.
  double residual_share(const FormCall& call, const DeviceTraits& /*device*/, std::span<const double> /*constants*/,
                        int /*choice*/) const override {
    return is_misaligned(call) ? 0 : 1;
  }

  size_t feature_count() const override { return 20; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                std::span<float> out) const override {
    fill_features(pose(call, device, constants), device, constants, choice, out);
  }

  double seconds_and_features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                              int& choice, std::span<float> out) const override {
    choice = -1;
    const Problem problem = pose(call, device, constants);
    const double least = least_seconds(problem, device, constants, choice);
    fill_features(problem, device, constants, choice, out);
    return around(problem, device, constants) + least;
  }

 private:
  static double launch_seconds(const DeviceTraits& device, std::span<const double> c) {
    return c[floor_cycles] / device.clock + c[floor_seconds];
  }

  // Launch and quantization, whatever the tile.
  static double around(const Problem& p, const DeviceTraits& device, std::span<const double> c) {
    return launch_seconds(device, c) + p.quantizer;
  }

  // Of the best tile and split, which is returned in `choice`.
  static double least_seconds(const Problem& problem, const DeviceTraits& device, std::span<const double> constants,
                              int& choice) {
    double best = std::numeric_limits<double>::infinity();
    const auto consider = [&](int tile, int split) {
      const int candidate = tile * gemm_split_count + split;
      const Times t = times(problem, device, constants, candidate);
      const double rest = t.stores + t.split;
      if (t.limits.largest() + rest >= best) return;
      const double total = overlapped(t.limits) + rest;
      if (total >= best) return;
      best = total;
      choice = candidate;
    };
    if (problem.dispatch.tile >= 0) {
      consider(problem.dispatch.tile, 0);
      return best;
    }
    for (int tile = 0; tile < matmul_tile_count; ++tile) {
      const auto [rows, columns, inverse_rows, inverse_columns] = matmul_tile_sides[static_cast<size_t>(tile)];
      if (rows > 16 && rows > 2 * problem.m && !problem.dispatch.any_rows) continue;
      if (rows == 256 && columns == 256 && !problem.dispatch.largest_tile) continue;
      const double waves = std::ceil(problem.m * inverse_rows) * std::ceil(problem.n * inverse_columns) *
                           problem.batch * problem.inverse_processors;
      consider(tile, 0);
      if (!problem.dispatch.splits || waves > 1) continue;
      for (int split = 1; split < gemm_split_count; ++split) {
        if (problem.k < 256 * gemm_splits[split] || waves * gemm_splits[split - 1] > 2) break;
        consider(tile, split);
      }
    }
    return best;
  }

  static void fill_features(const Problem& p, const DeviceTraits& device, std::span<const double> constants, int choice,
                            std::span<float> out) {
    const Times t = times(p, device, constants, choice);
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-6))); };
    const auto [rows, columns] = matmul_tiles[choice / gemm_split_count];
    const double total = t.total() + around(p, device, constants);
    const double slab = 128 / p.operand_bytes;
    size_t i = 0;
    for (const double limit : {t.limits.compute, t.limits.load, t.limits.latency, t.limits.dram, t.limits.cache,
                               t.stores, t.split, p.quantizer}) {
      out[i++] = log(std::max(limit / total, 1e-3));
    }
    out[i++] = log(t.waves);
    out[i++] = static_cast<float>(t.waves / std::ceil(t.waves));
    out[i++] = log(rows);
    out[i++] = log(columns);
    out[i++] = log(gemm_splits[choice % gemm_split_count]);
    out[i++] = static_cast<float>(p.miss);
    out[i++] = log((p.weights + p.inputs + p.outputs) / device.cache);
    out[i++] = static_cast<float>(p.m / (rows * ceil_ratio(p.m, rows)));
    out[i++] = static_cast<float>(p.n / (columns * ceil_ratio(p.n, columns)));
    out[i++] = static_cast<float>(p.k / (slab * ceil_ratio(p.k, slab)));
    // A row that does not start on 16 bytes cannot be fetched in one piece.
    const auto ragged = [](double bytes) { return std::floor(bytes / 16) * 16 != bytes ? 1.0F : 0.0F; };
    out[i++] = ragged(p.k * p.activation_bytes) + ragged(p.n * 2);
    out[i++] = log(p.m / device.processors);
  }

  static const GemmShape& shape_of(const FormCall& call) {
    const auto* shape = std::get_if<GemmShape>(&call.shape);
    ensure(shape != nullptr, "the gemm form is asked about a gemm");
    return *shape;
  }

  Problem pose(const FormCall& call, const DeviceTraits& device, std::span<const double> c) const {
    const GemmShape& shape = shape_of(call);
    const SchemeFacts& scheme = facts(shape.scheme);
    Problem p;
    p.m = static_cast<double>(shape.m);
    p.n = static_cast<double>(shape.n);
    p.k = static_cast<double>(shape.k);
    p.batch = static_cast<double>(shape.batch);
    p.weight_bytes = scheme.weight_bytes;
    p.activation_bytes = scheme.activation_bytes;
    p.operand_bytes = std::max(p.weight_bytes, p.activation_bytes);
    p.weights = p.batch * p.n * p.k * p.weight_bytes;
    p.inputs = p.batch * p.m * p.k * p.activation_bytes;
    p.outputs = p.batch * p.m * p.n * bytes_per_element(scheme.result);
    p.inverse_processors = 1 / device.processors;
    // Efficiency rows/(rows+edge) columns/(columns+edge): a tile costs as if it were that much larger.
    const double second_per_cycle = 1 / device.clock;
    const double peak = device.peak[static_cast<size_t>(scheme.math)] * std::min(c[compute_share], 1.0);
    const Alignment alignment = alignment_of(call, shape);
    const double all_cycles = device.processors * device.clock;
    const double most_flops = alignment.flops_per_cycle > 0 ? alignment.flops_per_cycle * all_cycles
                                                            : std::numeric_limits<double>::infinity();
    p.costs = {.edge = c[edge],
               .multiply = 2 * device.processors / std::min(peak, most_flops),
               .byte = second_per_cycle / c[load_rate],
               .slab = second_per_cycle * c[slab_cycles] * alignment.slab,
               .first_store = 2 * second_per_cycle / c[first_store_rate],
               .store = second_per_cycle * (2 / c[store_rate] + c[tile_cycles] / 16384)};
    p.dispatch = gemm_dispatch(gemm_kernel(call.variant, shape.scheme), shape, *device.generation);

    const double cache = device.cache * c[cache_share], all = p.weights + p.inputs + p.outputs;
    const double dram_rate = device.bandwidth * std::min(c[dram_share_of_peak], 1.0);
    p.inverse_dram_rate = 1 / dram_rate;
    if (caches_ == Caches::cold || call.variant.ends_with(cold_suffix)) {
      p.miss = miss_share(all, cache);
      p.dram_bytes = p.weights + (p.inputs + p.outputs) * p.miss;
    } else {
      const double copies = shape.scheme == Scheme::nvfp4 || shape.scheme == Scheme::fp32 ? 1 : 6;
      p.miss = miss_share(all + (copies - 1) * p.weights, cache);
      p.dram_bytes = all * p.miss;
    }
    p.reread_share = miss_share(std::min(p.weights, p.inputs), device.cache * c[reread_share]);
    p.cache_seconds = all / (all_cycles * c[cache_rate] + dram_rate);
    if (alignment.bytes_per_cycle > 0)
      p.cache_seconds = std::max(p.cache_seconds, all / (all_cycles * alignment.bytes_per_cycle));

    if (scheme.quantizes_activations && p.dispatch.quantizes) {
      const double values = p.batch * p.m * p.k, bytes = values * (2 + std::min(1.0, p.activation_bytes));
      const double rows = std::max(1.0, p.batch * p.m / device.processors);
      const bool fp4 = shape.scheme == Scheme::nvfp4;
      const double on_chip = (bytes / (c[fp4 ? fp4_quantizer_rate : quantizer_rate] * device.processors) +
                              rows * c[fp4 ? fp4_quantizer_row_cycles : quantizer_row_cycles]) /
                             device.clock;
      const double from_dram =
          bytes * miss_share(bytes, cache) / (device.bandwidth * std::min(c[quantizer_dram_share], 1.0));
      p.quantizer = c[fp4 ? fp4_quantizer_cycles : quantizer_cycles] / device.clock + c[quantizer_seconds] +
                    std::max(on_chip, from_dram);
    }
    return p;
  }

  static Times times(const Problem& p, const DeviceTraits& device, std::span<const double> c, int choice) {
    const auto [rows, columns, inverse_rows, inverse_columns] =
        matmul_tile_sides[static_cast<size_t>(choice / gemm_split_count)];
    const double parts = gemm_splits[choice % gemm_split_count];
    const double area = rows * columns;
    const double slabs = std::ceil(p.k * p.operand_bytes / (128 * parts));
    const double depth = slabs * 128 / p.operand_bytes;
    const double waves =
        std::ceil(p.m * inverse_rows) * std::ceil(p.n * inverse_columns) * p.batch * parts * p.inverse_processors;
    const double whole = std::ceil(waves);
    Times t;
    t.waves = waves;
    // Efficiency rows/(rows+edge) columns/(columns+edge): a tile costs as if it were that much larger.
    t.limits.compute = whole * (rows + p.costs.edge) * (columns + p.costs.edge) * depth * p.costs.multiply;
    t.limits.load = whole * (rows * p.activation_bytes + columns * p.weight_bytes) * depth * p.costs.byte;
    t.limits.latency = slabs * p.costs.slab * std::max(1.0, whole * latency_share(area));
    double dram = p.dram_bytes;
    if (p.reread_share > 1e-4) {
      // Tiles of a wave form a square at best: they read 2 sqrt(processors area) k values.
      const double read = 2 * waves * p.k * p.operand_bytes * c[reread] * std::sqrt(device.processors * area);
      dram += p.reread_share * std::max(0.0, read - p.weights - p.inputs);
    }
    t.limits.dram = dram * p.inverse_dram_rate;
    t.limits.cache = p.cache_seconds;
    t.stores = area * (p.costs.first_store + (whole - 1) * p.costs.store);
    if (parts > 1) {
      t.split =
          split_seconds +
          (c[split_cycles] + 4 * p.batch * p.m * p.n * parts / (device.processors * c[cache_rate])) / device.clock;
    }
    return t;
  }

  Caches caches_;
};

}  // namespace
}  // namespace gemm_form

double assumed_half_width(const FormCall& call) {
  return gemm_form::is_misaligned(call) ? gemm_form::misaligned_half_width : 0;
}

std::unique_ptr<Form> make_gemm_form(Caches caches) {
  return std::make_unique<gemm_form::GemmForm>(caches);
}

}  // namespace foretoken
