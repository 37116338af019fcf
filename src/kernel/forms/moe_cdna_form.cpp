#include "kernel/forms/moe_cdna_form.h"

#include <cmath>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "kernel/forms/cdna.h"
#include "kernel/forms/moe_kernels.h"

namespace foretoken {
namespace moe_cdna_form {
namespace {

enum Constant {
  floor_cycles,
  rate_share,
  load_rate,
  fabric_rate,
  wave_seconds,
  quantized,
  dram_share_of_peak,
  processor_bandwidth,
  power,
  result_traffic,
  constant_count,
};

constexpr FormConstant table[constant_count] = {
    {"floor_cycles", 20000, 1000, 150000, "clocks of one kernel of the call with next to no work"},
    {"rate_share", 0.9, 0.1, 3, "of the best multiply's rate that an endless tile sustains"},
    {"load_rate", 130, 5, 2000, "bytes per clock into one compute unit, at the clock that multiplies leave"},
    {"fabric_rate", 32e12, 2e12, 1e15,
     "bytes per second into all compute units: caches of the dies and Infinity Fabric"},
    {"wave_seconds", 0.8e-6, 0.05e-6, 20e-6, "between two waves of tiles: first loads on their way"},
    {"quantized", 0.23, 0.005, 1, "of a full wave that an empty slot of the last one costs"},
    {"dram_share_of_peak", 0.8, 0.2, 2, "of the spec bandwidth"},
    {"processor_bandwidth", 40e9, 4e9, 600e9, "bytes per second that one compute unit draws from memory"},
    {"power", 2, 1, 10, "how well multiplies and memory hide one another: 1 = not at all"},
    {"result_traffic", 4, 0.5, 30, "bytes moved for each byte of result: atomics, weighted sums"},
};

constexpr double row_choices[] = {16, 32, 64, 128, 256};
constexpr int row_count = static_cast<int>(std::size(row_choices));
constexpr double column_choices[] = {64, 128, 256};
constexpr int column_count = static_cast<int>(std::size(column_choices));

constexpr std::string_view one_kernel = "aiter_1stage", two_kernels = "aiter_2stages";

// One of the two grouped multiplies.
struct Multiply {
  double columns = 1, depth = 1;
  double bytes = 0;
};

struct Problem {
  CdnaMachine machine;
  ExpertGroups groups;
  Multiply up, down;
  double kernels = 2;
  double floor = 0, before = 0;  // seconds: of the kernels, and of what precedes them
};

struct Times {
  double tiles = 0, waves = 0;
  double compute = 0, load = 0, memory = 0;
  double tile_work() const { return compute + load; }
};

const MoeShape& experts_of(const FormCall& call) {
  const auto* shape = std::get_if<MoeShape>(&call.shape);
  ensure(shape != nullptr, "the expert form is asked about experts");
  return *shape;
}

// What aiter runs where its tables do not say: block scales have one kernel, the other formats two.
std::string_view usual_kernel(const MoeShape& shape) {
  return shape.scheme == Scheme::fp8_block ? one_kernel : two_kernels;
}

Times times(const Problem& p, const Multiply& part, double rows, double row_tiles, double columns) {
  const CdnaMachine& machine = p.machine;
  const CdnaWaves grid = machine.waves(row_tiles * std::ceil(part.columns / columns));
  Times t{.tiles = grid.tiles, .waves = grid.waves};
  t.compute = grid.waves * (rows * columns * part.depth * machine.multiply + machine.wave);
  t.load = machine.load_seconds(grid.waves, rows, columns, part.depth);
  t.memory = machine.memory_seconds(part.bytes, grid.tiles);
  return t;
}

double overlapped_seconds(const Problem& p, const Times& t) {
  return soft_maximum(t.tile_work(), t.memory, p.machine.power);
}

struct Chosen {
  double rows = 16, row_tiles = 1;
  Times up, down;
};
Chosen chosen(const Problem& p, int choice) {
  Chosen c{.rows = row_choices[choice / (column_count * column_count)]};
  c.row_tiles = p.groups.tiles(c.rows);
  c.up = times(p, p.up, c.rows, c.row_tiles, column_choices[choice / column_count % column_count]);
  c.down = times(p, p.down, c.rows, c.row_tiles, column_choices[choice % column_count]);
  return c;
}

double least_seconds(const Problem& p, int& choice) {
  double best = std::numeric_limits<double>::infinity(), previous_tiles = -1;
  for (int r = 0; r < row_count; ++r) {
    const double rows = row_choices[r], row_tiles = p.groups.tiles(rows);
    if (row_tiles == previous_tiles) break;  // taller tiles would only be emptier
    previous_tiles = row_tiles;
    int columns[2] = {0, 0};
    double sum = 0;
    for (int part = 0; part < 2 && sum < best; ++part) {
      double least = std::numeric_limits<double>::infinity();
      for (int column = 0; column < column_count; ++column) {
        const Times t = times(p, part == 0 ? p.up : p.down, rows, row_tiles, column_choices[column]);
        if (std::max(t.tile_work(), t.memory) >= least) continue;
        const double total = overlapped_seconds(p, t);
        if (total >= least) continue;
        least = total;
        columns[part] = column;
      }
      sum += least;
    }
    if (sum >= best) continue;
    best = sum;
    choice = (r * column_count + columns[0]) * column_count + columns[1];
  }
  return best;
}

class MoeCdnaForm : public Form {
 public:
  explicit MoeCdnaForm(Caches caches) : caches_(caches) {}
  std::string_view name() const override { return "moe_cdna"; }
  std::span<const FormConstant> constants() const override { return table; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& /*device*/) const override {
    return {"common", cdna_class(experts_of(call).scheme), "kernel " + std::string(kernel_of(call))};
  }
  std::string_view usual_variant(const FormCall& call, const DeviceTraits& /*device*/) const override {
    return usual_kernel(experts_of(call));
  }
  std::vector<std::string_view> known_variants() const override {
    return {one_kernel, two_kernels, "aiter_1stage_mxfp8", "aiter_2stages_mxfp8"};
  }
  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    const MoeShape& shape = experts_of(call);
    return static_cast<uint64_t>(shape.scheme) << 1U | (shape.gated ? 1U : 0U);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    const Problem p = pose(call, device, constants);
    if (choice < 0) return p.floor + p.before + least_seconds(p, choice);
    const Chosen c = chosen(p, choice);
    return p.floor + p.before + overlapped_seconds(p, c.up) + overlapped_seconds(p, c.down);
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int choice) const override {
    using enum Explained::Kind;
    const Problem p = pose(call, device, constants);
    const Chosen c = chosen(p, choice);
    return {
        {fact, "active_experts", p.groups.active, "", "experts of this rank that get a token"},
        {fact, "tokens_per_expert", p.groups.pairs / p.groups.active, "", "of those, on average"},
        {fact, "tile_rows", c.rows, "", "tokens of one expert that a compute unit multiplies at a time"},
        {fact, "rows_filled", p.groups.pairs / (c.rows * c.row_tiles), "share", "of the rows of all tiles"},
        {fact, "first_waves", c.up.tiles / device.processors, "", "tiles over compute units, first multiply"},
        {fact, "second_waves", c.down.tiles / device.processors, "", "the same, second multiply"},
        {fact, "multiply_tflops", p.machine.tflops(), "", "TFLOP/s of an endless tile"},
        {part, "launch", p.floor + p.before, "s", "launches; sorting and casts where they are part of the call"},
        {part, "first_multiply", overlapped_seconds(p, c.up), "s", "gate and up projections"},
        {part, "second_multiply", overlapped_seconds(p, c.down), "s", "down projection"},
        {limit, "matrix_units", c.up.compute + c.down.compute, "s", "multiplies at the rate of large tiles, in waves"},
        {limit, "loads", c.up.load + c.down.load, "s", "operands loaded into the compute units"},
        {limit, "memory", c.up.memory + c.down.memory, "s", "weights, tokens and results"},
    };
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
    return p.floor + p.before + least;
  }

 private:
  static std::string_view kernel_of(const FormCall& call) {
    const std::string_view named = call.variant;
    if (named.starts_with(one_kernel)) return one_kernel;
    return named.starts_with(two_kernels) ? two_kernels : usual_kernel(experts_of(call));
  }

  Problem pose(const FormCall& call, const DeviceTraits& device, std::span<const double> c) const {
    static constexpr MoeKernel kernel{.name = aiter_kernel, .family = aiter_kernel};
    const MoeShape& shape = experts_of(call);
    const SchemeFacts& scheme = facts(shape.scheme);
    const CdnaConstants machine{.rate_share = c[rate_share],
                                .load_rate = c[load_rate],
                                .fabric_rate = c[fabric_rate],
                                .wave_seconds = c[wave_seconds],
                                .quantized = c[quantized],
                                .dram_share_of_peak = c[dram_share_of_peak],
                                .processor_bandwidth = c[processor_bandwidth],
                                .power = c[power]};
    Problem p{.machine = cdna_machine(machine, device, shape.scheme, caches_), .groups = expert_groups(shape, kernel)};
    const double weight_bytes = scheme.weight_bytes, activation_bytes = scheme.activation_bytes;
    const double hidden = as_double(shape.hidden), inter = as_double(shape.inter) / as_double(shape.tp);
    const double gates = shape.gated ? 2 : 1, pairs = p.groups.pairs;
    const double tokens = std::min(as_double(shape.tokens), pairs);
    const double result = c[result_traffic];
    p.up = {.columns = gates * inter, .depth = hidden};
    p.up.bytes = p.groups.active * gates * inter * hidden * weight_bytes + tokens * hidden * activation_bytes +
                 result * pairs * inter * activation_bytes;
    p.down = {.columns = hidden, .depth = inter};
    p.down.bytes = p.groups.active * inter * hidden * weight_bytes + pairs * inter * activation_bytes +
                   result * pairs * hidden * 2;
    p.kernels = kernel_of(call) == one_kernel ? 1 : 2;
    p.floor = c[floor_cycles] / device.clock * p.kernels;
    // Measurements name the kernel and time it alone. An engine's call also sorts tokens by expert and casts them.
    if (!call.variant.starts_with(aiter_kernel)) {
      constexpr double sort_seconds = 5e-6;
      p.before += sort_seconds;
      if (scheme.quantizes_activations) {
        p.before += cast_seconds(tokens * hidden, activation_bytes, device);
        if (p.kernels > 1) p.before += cast_seconds(pairs * inter, activation_bytes, device);
      }
    }
    return p;
  }

  static void fill_features(const Problem& p, const DeviceTraits& device, int choice, std::span<float> out) {
    const Chosen c = chosen(p, choice);
    const double total = p.floor + overlapped_seconds(p, c.up) + overlapped_seconds(p, c.down);
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-6))); };
    size_t i = 0;
    for (const double part :
         {c.up.compute + c.down.compute, c.up.load + c.down.load, c.up.memory + c.down.memory, p.floor})
      out[i++] = log(std::max(part / total, 1e-3));
    out[i++] = log(total);
    out[i++] = log((c.up.tile_work() + c.down.tile_work()) / (c.up.memory + c.down.memory));
    for (const Times* t : {&c.up, &c.down}) {
      const double waves = t->tiles / device.processors;
      out[i++] = log(waves);
      out[i++] = static_cast<float>(waves / std::ceil(waves));
    }
    out[i++] = static_cast<float>(choice);
    out[i++] = log(c.rows);
    out[i++] = static_cast<float>(p.groups.pairs / (c.rows * c.row_tiles));
    out[i++] = log(p.groups.active);
    out[i++] = log(p.groups.pairs / p.groups.active);
    out[i++] = log(p.groups.pairs);
    out[i++] = log(p.up.depth / p.down.depth);
    out[i++] = log((p.up.bytes + p.down.bytes) / device.cache);
    out[i++] = log(p.up.columns);
    out[i++] = log(p.down.columns * p.down.depth * p.groups.active);
  }

  Caches caches_;
};

}  // namespace
}  // namespace moe_cdna_form

std::unique_ptr<Form> make_moe_cdna_form(Caches caches) {
  return std::make_unique<moe_cdna_form::MoeCdnaForm>(caches);
}

}  // namespace foretoken
