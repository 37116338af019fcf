#include "kernel/forms/moe_form.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernel/forms/form_math.h"
#include "kernel/forms/matmul_tile.h"
#include "kernel/forms/moe_kernels.h"

namespace foretoken {
namespace moe_form {
namespace {

enum Constant {
  launch_cycles,
  growth_cycles,
  floor_seconds,
  expert_cycles,
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
  ragged_factor,
  stage_rate,
  stage_dram_share,
  constant_count,
};

constexpr FormConstant table[constant_count] = {
    {"launch_cycles", 4800, 500, 30000, "clocks of one kernel of the call"},
    {"growth_cycles", 120, 5, 2000, "more of that for each doubling of (token, expert) pairs: sorting, wider grids"},
    {"floor_seconds", 3e-6, 0.1e-6, 40e-6, "seconds of a call that do not follow the clock"},
    {"expert_cycles", 90, 1, 3000, "clocks per active expert"},
    {"slab_cycles", 320, 30, 3000, "clocks of one tile's step along 128 bytes of k"},
    {"compute_share", 0.71, 0.1, 1, "of the dense peak that a large tile sustains"},
    {"edge", 9, 0.5, 60, "rows and columns of a tile lost to its edge"},
    {"load_rate", 134, 10, 1000, "bytes per clock from L2 into one processor"},
    {"cache_rate", 8, 0.5, 60, "bytes per clock and processor that stream out of L2, beside DRAM"},
    {"dram_share_of_peak", 0.93, 0.2, 1, "of the spec bandwidth"},
    {"cache_share", 0.77, 0.1, 3, "bytes of weights, over the size of L2, of which half miss"},
    {"first_store_rate", 12, 1, 100, "bytes per clock at which a tile's results are stored, first wave"},
    {"store_rate", 14, 1, 200, "the same for later waves"},
    {"tile_cycles", 260, 5, 5000, "clocks between waves of 128x128 tiles"},
    {"ragged_factor", 1.6, 0.8, 20,
     "slowdown of reading where a rank's width of an expert is not a multiple of 16 values"},
    {"stage_rate", 7.4, 0.5, 60, "bytes per clock and processor of permutation, activation and reduction"},
    {"stage_dram_share", 0.78, 0.2, 1, "of the spec bandwidth, in those stages"},
};

constexpr int row_choices[] = {8, 16, 32, 64, 128, 256};
constexpr int column_choices[] = {16, 64, 128, 256};
constexpr double inverse_columns[] = {1.0 / 16, 1.0 / 64, 1.0 / 128, 1.0 / 256};
constexpr int column_count = 4;

// One grouped multiply.
struct Multiply {
  double columns = 1, depth = 1;
  double weights = 0, traffic = 0;  // bytes; the second: with inputs and outputs
  double slabs = 1;                 // steps of 128 bytes along the depth
  double dram_seconds = 0, cache_seconds = 0;
};

struct Problem {
  const MoeKernel* kernel = nullptr;
  ExpertGroups groups;
  Multiply first, second;
  double weight_bytes = 2, activation_bytes = 2, operand_bytes = 2;
  double miss = 0, ragged = 1, inverse_processors = 1;
  TileCosts costs;
  double stages = 0, floor = 0;  // seconds
};

struct Times {
  MatmulLimits limits;
  double waves = 0, stores = 0, slowdown = 1;
  double total() const { return overlapped(limits) * slowdown + stores; }
};

const MoeShape& shape_of(const FormCall& call) {
  const auto* shape = std::get_if<MoeShape>(&call.shape);
  ensure(shape != nullptr, "the expert form is asked about experts");
  return *shape;
}

// What permutation, activation and reduction move beside the multiplies. `pairs`: (token, expert) pairs of this rank.
double stage_bytes(const MoeShape& shape, const MoeKernel& kernel, double pairs) {
  const auto hidden = static_cast<double>(shape.hidden), tokens = static_cast<double>(shape.tokens);
  const double inter = static_cast<double>(shape.inter) / static_cast<double>(shape.tp);
  const double gates = shape.gated ? 2 : 1;
  if (kernel.receives) return pairs * inter * (2 * gates + facts(shape.scheme).activation_bytes);
  // Scales of blocks need whole rows, so that blocks of fp8 are activated by a kernel of their own.
  if (kernel.fuses_stages && shape.scheme != Scheme::fp8_block) return 2 * hidden * (pairs + tokens);
  const double rows = kernel.touches_all_rows ? std::max(pairs, tokens * static_cast<double>(shape.top_k)) : pairs;
  return rows * (2 * inter * (gates + 1) + 4 * hidden) + 4 * tokens * hidden;
}

Problem pose(const FormCall& call, const DeviceTraits& device, std::span<const double> c) {
  const MoeShape& shape = shape_of(call);
  const SchemeFacts& scheme = facts(shape.scheme);
  Problem p;
  p.kernel = &moe_kernel(call.variant, shape, device);
  p.groups = expert_groups(shape, *p.kernel);
  p.weight_bytes = scheme.weight_bytes;
  p.activation_bytes = scheme.activation_bytes;
  p.operand_bytes = std::max(p.weight_bytes, p.activation_bytes);
  const auto hidden = static_cast<double>(shape.hidden), tokens = static_cast<double>(shape.tokens);
  const double inter = static_cast<double>(shape.inter) / static_cast<double>(shape.tp);
  const double gates = shape.gated ? 2 : 1;
  const auto multiply = [&](double columns, double depth) {
    Multiply part{.columns = columns, .depth = depth};
    part.weights = p.groups.active * columns * depth * p.weight_bytes;
    part.traffic = part.weights + p.groups.pairs * (depth * p.activation_bytes + columns * 2);
    part.slabs = std::ceil(depth * p.operand_bytes / 128);
    return part;
  };
  p.first = multiply(gates * inter, hidden);
  p.second = multiply(hidden, inter);
  // Efficiency rows/(rows+edge) columns/(columns+edge): a tile costs as if it were that much larger.
  const double second_per_cycle = 1 / device.clock;
  const double peak = device.peak[static_cast<size_t>(scheme.math)] * std::min(c[compute_share], 1.0);
  p.costs = {.edge = c[edge],
             .multiply = 2 * device.processors / peak,
             .byte = second_per_cycle / c[load_rate],
             .slab = second_per_cycle * c[slab_cycles],
             .first_store = 2 * second_per_cycle / c[first_store_rate],
             .store = second_per_cycle * (2 / c[store_rate] + c[tile_cycles] / 16384)};
  const double cache = device.cache * c[cache_share], cycles = device.processors * device.clock;
  const double dram_rate = device.bandwidth * std::min(c[dram_share_of_peak], 1.0);
  p.inverse_processors = 1 / device.processors;
  p.miss = miss_share(p.first.weights + p.second.weights, cache);
  for (Multiply* part : {&p.first, &p.second}) {
    part->dram_seconds = part->traffic * p.miss / dram_rate;
    part->cache_seconds = part->traffic / (cycles * c[cache_rate] + dram_rate);
  }
  if (p.kernel->needs_alignment && shape.inter / shape.tp % 16 != 0) p.ragged = c[ragged_factor];

  const double bytes = stage_bytes(shape, *p.kernel, p.groups.pairs);
  p.stages = std::max(bytes / (c[stage_rate] * cycles),
                      bytes * miss_share(bytes, cache) / (device.bandwidth * std::min(c[stage_dram_share], 1.0)));
  const double sorted = p.kernel->receives ? p.groups.pairs : tokens * static_cast<double>(shape.top_k);
  const double doublings = quick_log2(1 + sorted);
  p.floor = c[floor_seconds] + (p.kernel->launches * (c[launch_cycles] + c[growth_cycles] * doublings) +
                                p.groups.active * c[expert_cycles]) /
                                   device.clock;
  return p;
}

// `column`: which of column_choices.
Times times(const Problem& p, const Multiply& part, double rows, double row_tiles, int column) {
  const double columns = column_choices[column];
  const double area = rows * columns;
  const double depth = part.slabs * 128 / p.operand_bytes;
  Times t;
  t.waves = row_tiles * std::ceil(part.columns * inverse_columns[column]) * p.inverse_processors;
  const double whole = std::ceil(t.waves);
  t.slowdown = p.ragged;
  t.limits.compute = whole * (rows + p.costs.edge) * (columns + p.costs.edge) * depth * p.costs.multiply;
  t.limits.load = whole * (rows * p.activation_bytes + columns * p.weight_bytes) * depth * p.costs.byte;
  t.limits.latency = p.kernel->lone_tiles ? whole * part.slabs * p.costs.slab + t.limits.compute + t.limits.load
                                          : part.slabs * p.costs.slab * std::max(1.0, whole * latency_share(area));
  t.limits.dram = part.dram_seconds;
  t.limits.cache = part.cache_seconds;
  t.stores = area * (p.costs.first_store + (whole - 1) * p.costs.store);
  return t;
}

class MoeForm : public Form {
 public:
  std::string_view name() const override { return "moe"; }
  std::span<const FormConstant> constants() const override { return table; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& device) const override {
    const MoeShape& shape = shape_of(call);
    std::vector<std::string> names = {"common"};
    if (device.asynchronous) names.emplace_back("asynchronous");
    if (device.stacked_memory) names.emplace_back("stacked memory");
    names.push_back("kernel " + std::string(moe_kernel(call.variant, shape, device).family));
    const Scheme scheme = shape.scheme == Scheme::fp16 ? Scheme::bf16 : shape.scheme;
    names.push_back("class " + std::string(facts(scheme).name));
    return names;
  }

  std::string_view usual_variant(const FormCall& call, const DeviceTraits& device) const override {
    return moe_kernel({}, shape_of(call), device).name;
  }

  std::vector<std::string_view> known_variants() const override { return moe_kernel_names(); }

  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    const MoeShape& shape = shape_of(call);
    return static_cast<uint64_t>(shape.scheme) << 2U | (shape.ep > 1 ? 2U : 0U) | (shape.gated ? 1U : 0U);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    const Problem p = pose(call, device, constants);
    const double around = p.floor + p.stages;
    if (choice < 0) return around + least_seconds(p, choice);
    const double rows = row_choices[choice / (column_count * column_count)], row_tiles = p.groups.tiles(rows);
    return around + times(p, p.first, rows, row_tiles, choice / column_count % column_count).total() +
           times(p, p.second, rows, row_tiles, choice % column_count).total();
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int choice) const override {
    using enum Explained::Kind;
    const Problem p = pose(call, device, constants);
    const double rows = row_choices[choice / (column_count * column_count)], row_tiles = p.groups.tiles(rows);
    const double first_columns = column_choices[choice / column_count % column_count];
    const double second_columns = column_choices[choice % column_count];
    const Times a = times(p, p.first, rows, row_tiles, choice / column_count % column_count);
    const Times b = times(p, p.second, rows, row_tiles, choice % column_count);
    std::vector<Explained> lines = {
        {fact, "active_experts", p.groups.active, "", "experts of this rank that get a token"},
        {fact, "tokens_per_expert", p.groups.pairs / p.groups.active, "", "of those, on average"},
        {fact, "tile_rows", rows, "", "tokens of one expert that a processor multiplies at a time"},
        {fact, "first_tile_columns", first_columns, "", "columns of the first multiply, the same"},
        {fact, "second_tile_columns", second_columns, "", "columns of the second"},
        {fact, "rows_filled", p.groups.pairs / (rows * row_tiles), "share",
         "of the rows of all tiles that hold a token"},
        {fact, "first_waves", a.waves, "", "tiles over processors, first multiply"},
        {fact, "second_waves", b.waves, "", "tiles over processors, second multiply"},
        {fact, "dram_traffic_share", p.miss, "share", "of the traffic that DRAM serves; L2 serves the rest"},
        {fact, "l2_rate", p.first.traffic / p.first.cache_seconds, "B/s", "at which all of it streams through L2"},
        {part, "launch", p.floor, "s", "launches, sorting tokens by expert, setting experts up"},
        {part, "first_multiply", a.total(), "s", "gate and up projections, with their stores"},
        {part, "second_multiply", b.total(), "s", "down projection, with its stores"},
        {part, "permute_and_reduce", p.stages, "s", "permutation, activation and reduction around the multiplies"},
    };
    const MatmulLimits &x = a.limits, &y = b.limits;
    const MatmulLimits both{.compute = p.ragged * (x.compute + y.compute),
                            .load = p.ragged * (x.load + y.load),
                            .latency = p.ragged * (x.latency + y.latency),
                            .dram = p.ragged * (x.dram + y.dram),
                            .cache = p.ragged * (x.cache + y.cache)};
    explain_limits(both, lines);
    return lines;
  }

  size_t feature_count() const override { return 20; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                std::span<float> out) const override {
    fill_features(pose(call, device, constants), device, choice, out);
  }

  double seconds_and_features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                              int& choice, std::span<float> out) const override {
    choice = -1;
    const Problem p = pose(call, device, constants);
    const double least = least_seconds(p, choice);
    fill_features(p, device, choice, out);
    return p.floor + p.stages + least;
  }

 private:
  // Of both multiplies with the best tiles, which are returned in `choice`.
  static double least_seconds(const Problem& p, int& choice) {
    double best = std::numeric_limits<double>::infinity();
    double previous_tiles = -1;
    for (int r = 0; r < static_cast<int>(std::size(row_choices)); ++r) {
      const double rows = row_choices[r];
      if (rows < p.kernel->least_rows || rows > p.kernel->most_rows) continue;
      const double row_tiles = p.groups.tiles(rows);
      if (row_tiles == previous_tiles) break;  // taller tiles would only be emptier
      previous_tiles = row_tiles;
      int chosen[2] = {0, 0};
      double sum = 0;
      for (int part = 0; part < 2 && sum < best; ++part) {
        double least = std::numeric_limits<double>::infinity();
        for (int column = 0; column < column_count; ++column) {
          if (column_choices[column] < p.kernel->least_columns || column_choices[column] > p.kernel->most_columns)
            continue;
          const Times t = times(p, part == 0 ? p.first : p.second, rows, row_tiles, column);
          if (t.limits.largest() * t.slowdown + t.stores >= least) continue;
          const double total = t.total();
          if (total >= least) continue;
          least = total;
          chosen[part] = column;
        }
        sum += least;
      }
      if (sum >= best) continue;
      best = sum;
      choice = (r * column_count + chosen[0]) * column_count + chosen[1];
    }
    return best;
  }

  static void fill_features(const Problem& p, const DeviceTraits& device, int choice, std::span<float> out) {
    const double rows = row_choices[choice / (column_count * column_count)], row_tiles = p.groups.tiles(rows);
    const Times a = times(p, p.first, rows, row_tiles, choice / column_count % column_count);
    const Times b = times(p, p.second, rows, row_tiles, choice % column_count);
    const double total = a.total() + b.total() + p.floor + p.stages;
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-6))); };
    size_t i = 0;
    for (const double limit :
         {a.limits.compute + b.limits.compute, a.limits.load + b.limits.load, a.limits.latency + b.limits.latency,
          a.limits.dram + b.limits.dram, a.limits.cache + b.limits.cache, a.stores + b.stores, p.stages, p.floor}) {
      out[i++] = log(std::max(limit / total, 1e-3));
    }
    out[i++] = log(a.waves);
    out[i++] = static_cast<float>(a.waves / std::ceil(a.waves));
    out[i++] = log(b.waves);
    out[i++] = static_cast<float>(b.waves / std::ceil(b.waves));
    out[i++] = log(rows);
    out[i++] = log(column_choices[choice / column_count % column_count]);
    out[i++] = static_cast<float>(p.miss);
    out[i++] = log((p.first.weights + p.second.weights) / device.cache);
    out[i++] = static_cast<float>(p.groups.pairs / (rows * row_tiles));
    out[i++] = log(p.groups.active);
    out[i++] = log(p.groups.pairs / p.groups.active);
    out[i++] = log(p.first.depth / p.second.depth);
  }
};

}  // namespace
}  // namespace moe_form

std::unique_ptr<Form> make_moe_form() {
  return std::make_unique<moe_form::MoeForm>();
}

}  // namespace foretoken
