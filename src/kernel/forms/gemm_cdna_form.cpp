#include "kernel/forms/gemm_cdna_form.h"

#include <cmath>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "kernel/forms/cdna.h"
#include "kernel/forms/matmul_tile.h"

namespace foretoken {
namespace gemm_cdna_form {
namespace {

enum Constant {
  floor_cycles,
  rate_share,
  load_rate,
  fabric_rate,
  wave_seconds,
  store_rate,
  quantized,
  dram_share_of_peak,
  processor_bandwidth,
  power,
  split_seconds,
  step_seconds,
  constant_count,
};

constexpr FormConstant table[constant_count] = {
    {"floor_cycles", 3500, 500, 40000, "clocks of an empty call"},
    {"rate_share", 1.15, 0.3, 3, "of the best multiply's rate that an endless tile sustains"},
    {"load_rate", 130, 5, 2000, "bytes per clock into one compute unit, at the clock that multiplies leave"},
    {"fabric_rate", 32e12, 2e12, 1e15,
     "bytes per second into all compute units: caches of the dies and Infinity Fabric"},
    {"wave_seconds", 0.8e-6, 0.05e-6, 20e-6, "between two waves of tiles: first loads on their way"},
    {"store_rate", 64, 5, 1000, "bytes of results per clock of one compute unit, at that clock"},
    {"quantized", 0.15, 0.005, 1, "of a full wave that an empty slot of the last one costs"},
    {"dram_share_of_peak", 1.0, 0.2, 3, "of the spec bandwidth; above 1: the memory-side cache serves part"},
    {"processor_bandwidth", 40e9, 4e9, 600e9, "bytes per second that one compute unit draws from memory"},
    {"power", 1.3, 1, 8, "how well multiplies and memory hide one another: 1 = not at all"},
    {"split_seconds", 5e-6, 0.2e-6, 40e-6, "to join parts of k"},
    {"step_seconds", 0.1e-6, 0.001e-6, 2e-6, "of a step of 128 bytes along k that waits for its operands"},
};

// Tiles of the kernels of a format, smallest first: Composable Kernel's, assembly and FlyDSL (csrc/ck_gemm_*,
// csrc/cktile_gemm_*, hsa/*/*gemm*/*.csv and aiter/ops/flydsl of ROCm/aiter, commit e4048607a5); where a list is a
// whole grid of rows and columns, part of it. A format has the same list on all generations, although CDNA 3 lacks the
// largest tile of fp8 in blocks: a device's rate is that of its best multiply, and what an endless tile makes of that
// rate ports only between lists that end in the same tile.
constexpr MatmulTile wide_tiles[] = {{16, 16},   {16, 32},   {16, 64},   {16, 128}, {32, 16},  {32, 32},
                                     {32, 64},   {32, 128},  {48, 64},   {64, 64},  {64, 96},  {64, 128},
                                     {80, 64},   {96, 64},   {96, 128},  {128, 64}, {128, 96}, {128, 128},
                                     {128, 256}, {192, 256}, {256, 128}, {256, 256}};
constexpr MatmulTile fp8_tiles[] = {{16, 32},   {16, 64},   {16, 128},  {16, 256},  {32, 64},   {32, 128},  {32, 192},
                                    {32, 256},  {48, 64},   {48, 128},  {64, 64},   {64, 128},  {64, 192},  {64, 256},
                                    {80, 64},   {80, 128},  {96, 64},   {96, 128},  {96, 192},  {96, 256},  {112, 128},
                                    {112, 256}, {128, 64},  {128, 128}, {128, 192}, {128, 256}, {160, 128}, {160, 192},
                                    {160, 256}, {192, 128}, {192, 256}, {224, 256}, {256, 128}, {256, 192}, {256, 256}};
constexpr MatmulTile fp8_block_tiles[] = {{16, 64},  {16, 128}, {16, 256}, {32, 64},   {32, 128},
                                          {32, 256}, {48, 128}, {64, 64},  {64, 128},  {64, 256},
                                          {80, 128}, {96, 128}, {128, 64}, {128, 128}, {192, 256}};
constexpr MatmulTile int8_tiles[] = {{16, 16},   {16, 32},   {16, 64},   {16, 128},  {16, 256},  {32, 16},
                                     {32, 64},   {32, 128},  {32, 256},  {48, 128},  {64, 32},   {64, 64},
                                     {64, 128},  {64, 256},  {80, 128},  {96, 128},  {112, 256}, {128, 64},
                                     {128, 128}, {128, 160}, {128, 192}, {128, 256}, {160, 128}, {224, 256},
                                     {256, 64},  {256, 128}, {256, 160}, {256, 224}, {256, 256}};
constexpr MatmulTile fp4_tiles[] = {{32, 128},  {32, 256},  {32, 512},  {64, 128},  {64, 256},  {64, 512},
                                    {64, 1024}, {96, 128},  {96, 256},  {96, 512},  {128, 128}, {128, 256},
                                    {128, 384}, {128, 512}, {160, 128}, {160, 256}, {160, 384}, {192, 128},
                                    {192, 256}, {224, 128}, {224, 256}, {256, 128}, {256, 256}};

std::span<const MatmulTile> tiles_of(Scheme scheme) {
  if (scheme == Scheme::fp8) return fp8_tiles;
  if (scheme == Scheme::fp8_block) return fp8_block_tiles;
  if (scheme == Scheme::int8) return int8_tiles;
  return facts(scheme).math == DType::fp4 ? std::span<const MatmulTile>(fp4_tiles) : wide_tiles;
}

constexpr double splits[] = {1, 2, 4, 8, 16};
constexpr int split_count = static_cast<int>(std::size(splits));
constexpr double least_depth_of_part = 128;
constexpr double largest_split_area = 128 * 128;
// Bytes of a row of the activations that a tile takes in one step along k.
constexpr double step_bytes = 128;
// Tiles of 128 by 128 or larger have a compute unit to themselves; of small ones up to four share it, and one works
// while others wait.
constexpr double alone_area = 128 * 128, most_resident = 4;

struct Problem {
  CdnaMachine machine;
  std::span<const MatmulTile> tiles;
  double m = 1, n = 1, k = 1, batch = 1;
  double operands = 0, outputs = 0;  // bytes
  double store = 0;                  // seconds of a result out of one compute unit
  double floor = 0, cast = 0;        // seconds
};

struct Times {
  double tiles = 0, waves = 0;
  double compute = 0, load = 0, latency = 0, store = 0, memory = 0, split = 0;
  // Steps along k wait for one another; multiplies and loads of a step hide in that wait, or it in them.
  double tile_work() const { return std::sqrt((compute + load) * (compute + load) + latency * latency) + store; }
};

const MatmulTile& tile_of(const Problem& p, int choice) {
  return p.tiles[static_cast<size_t>(choice / split_count)];
}

const GemmShape& gemm_of(const FormCall& call) {
  const auto* shape = std::get_if<GemmShape>(&call.shape);
  ensure(shape != nullptr, "the gemm form is asked about a gemm");
  return *shape;
}

Times times(const Problem& p, std::span<const double> c, int choice) {
  const double rows = tile_of(p, choice).rows, columns = tile_of(p, choice).columns;
  const double parts = splits[choice % split_count];
  const double depth = p.k / parts;
  const CdnaWaves grid = p.machine.waves(std::ceil(p.m / rows) * std::ceil(p.n / columns) * p.batch * parts);
  Times t{.tiles = grid.tiles, .waves = grid.waves};
  // Loads and multiplies of a tile take turns at its edges: what is loaded for a multiply shrinks with the tile.
  t.compute = grid.waves * rows * columns * depth * p.machine.multiply;
  t.load = p.machine.load_seconds(grid.waves, rows, columns, depth);
  t.store = grid.waves * (p.machine.wave + rows * columns * p.store);
  const double resident = std::clamp(alone_area / (rows * columns), 1.0, most_resident);
  t.latency = std::max(grid.waves / resident, 1.0) * depth * p.machine.activation_bytes / step_bytes * c[step_seconds];
  // Parts of k are written in fp32 and read again.
  const double bytes = p.operands + p.outputs * (parts > 1 ? 1 + 2 * parts : 1);
  t.memory = p.machine.memory_seconds(bytes, grid.tiles);
  t.split = parts > 1 ? c[split_seconds] : 0;
  return t;
}

double overlapped_seconds(const Problem& p, const Times& t) {
  return soft_maximum(t.tile_work(), t.memory, p.machine.power) + t.split;
}

double least_seconds(const Problem& p, std::span<const double> c, int& choice) {
  double best = std::numeric_limits<double>::infinity();
  const double tallest = 2 * std::max<double>(p.m, p.tiles.front().rows);  // from there on tiles are only emptier
  for (int tile = 0; tile < static_cast<int>(p.tiles.size()); ++tile) {
    const auto [rows, columns] = p.tiles[static_cast<size_t>(tile)];
    if (rows >= tallest) break;
    const double area = static_cast<double>(rows) * columns;
    for (int split = 0; split < split_count; ++split) {
      if (split > 0 && (area > largest_split_area || p.k < least_depth_of_part * splits[split])) break;
      const int candidate = tile * split_count + split;
      const Times t = times(p, c, candidate);
      if (std::max(t.tile_work(), t.memory) + t.split >= best) continue;
      const double total = overlapped_seconds(p, t);
      if (total >= best) continue;
      best = total;
      choice = candidate;
    }
  }
  return best;
}

class GemmCdnaForm : public Form {
 public:
  explicit GemmCdnaForm(Caches caches) : caches_(caches) {}
  std::string_view name() const override { return "gemm_cdna"; }
  std::span<const FormConstant> constants() const override { return table; }

  std::vector<std::string> effects(const FormCall& call, const DeviceTraits& /*device*/) const override {
    return {"common", cdna_class(gemm_of(call).scheme)};
  }
  std::string_view usual_variant(const FormCall& /*call*/, const DeviceTraits& /*device*/) const override {
    return aiter_kernel;
  }
  std::vector<std::string_view> known_variants() const override { return {aiter_kernel}; }
  std::optional<uint64_t> kind_key(const FormCall& call) const override {
    return static_cast<uint64_t>(gemm_of(call).scheme);
  }

  double seconds(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                 int& choice) const override {
    const Problem p = pose(call, device, constants);
    const double before = p.floor + p.cast;
    if (choice >= 0) return before + overlapped_seconds(p, times(p, constants, choice));
    return before + least_seconds(p, constants, choice);
  }

  std::vector<Explained> explain(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                                 int choice) const override {
    using enum Explained::Kind;
    const Problem p = pose(call, device, constants);
    const Times t = times(p, constants, choice);
    const MatmulTile tile = tile_of(p, choice);
    std::vector<Explained> lines = {
        {fact, "tile_rows", static_cast<double>(tile.rows), "", "rows of x that one compute unit multiplies at a time"},
        {fact, "tile_columns", static_cast<double>(tile.columns), "", "columns of y, the same"},
        {fact, "split_k", splits[choice % split_count], "", "compute units that share the k of one tile"},
        {fact, "waves", t.tiles / device.processors, "", "tiles over compute units"},
        {fact, "multiply_tflops", p.machine.tflops(), "", "TFLOP/s of an endless tile"},
        {part, "launch", p.floor, "s", "launch and drain of an empty call"},
    };
    if (p.cast > 0) lines.push_back({part, "quantize", p.cast, "s", "activations cast before the multiply"});
    lines.push_back({part, "multiply", overlapped_seconds(p, t) - t.split, "s", "tiles and memory, partly at once"});
    if (t.split > 0) lines.push_back({part, "join_split_k", t.split, "s", "partial sums joined"});
    lines.push_back({limit, "matrix_units", t.compute, "s", "multiplies at the rate of large tiles, in waves"});
    lines.push_back({limit, "loads", t.load, "s", "operands loaded into the compute units"});
    lines.push_back({limit, "step_latency", t.latency, "s", "steps along k that wait for one another"});
    lines.push_back({limit, "stores", t.store, "s", "starts of tiles, and their results written"});
    lines.push_back({limit, "memory", t.memory, "s", "operands and results from and to memory"});
    return lines;
  }

  size_t feature_count() const override { return 27; }
  void features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants, int choice,
                std::span<float> out) const override {
    fill_features(pose(call, device, constants), device, constants, choice, out);
  }
  double seconds_and_features(const FormCall& call, const DeviceTraits& device, std::span<const double> constants,
                              int& choice, std::span<float> out) const override {
    choice = -1;
    const Problem p = pose(call, device, constants);
    const double least = least_seconds(p, constants, choice);
    fill_features(p, device, constants, choice, out);
    return p.floor + p.cast + least;
  }

 private:
  Problem pose(const FormCall& call, const DeviceTraits& device, std::span<const double> c) const {
    const GemmShape& shape = gemm_of(call);
    const SchemeFacts& scheme = facts(shape.scheme);
    const CdnaConstants machine{.rate_share = c[rate_share],
                                .load_rate = c[load_rate],
                                .fabric_rate = c[fabric_rate],
                                .wave_seconds = c[wave_seconds],
                                .quantized = c[quantized],
                                .dram_share_of_peak = c[dram_share_of_peak],
                                .processor_bandwidth = c[processor_bandwidth],
                                .power = c[power]};
    Problem p{.machine = cdna_machine(machine, device, shape.scheme, caches_),
              .tiles = tiles_of(shape.scheme),
              .m = as_double(shape.m),
              .n = as_double(shape.n),
              .k = as_double(shape.k),
              .batch = as_double(shape.batch)};
    p.operands = p.batch * p.k * (p.m * scheme.activation_bytes + p.n * scheme.weight_bytes);
    p.outputs = p.batch * p.m * p.n * bytes_per_element(scheme.result);
    p.store = bytes_per_element(scheme.result) / (c[store_rate] * loaded_clock(device, scheme.math));
    p.floor = c[floor_cycles] / device.clock;
    // Measurements name the kernel and time it alone.
    if (scheme.quantizes_activations && !call.variant.starts_with(aiter_kernel))
      p.cast = cast_seconds(p.batch * p.m * p.k, scheme.activation_bytes, device);
    return p;
  }

  static void fill_features(const Problem& p, const DeviceTraits& device, std::span<const double> constants, int choice,
                            std::span<float> out) {
    const Times t = times(p, constants, choice);
    const auto log = [](double x) { return static_cast<float>(quick_log2(std::max(x, 1e-6))); };
    const double total = p.floor + overlapped_seconds(p, t);
    size_t i = 0;
    for (const double part : {t.compute, t.load, t.latency, t.store, t.memory, p.floor})
      out[i++] = log(std::max(part / total, 1e-3));
    out[i++] = log(total);
    out[i++] = log(t.tile_work() / t.memory);
    out[i++] = log(t.waves);
    out[i++] = static_cast<float>(t.tiles / device.processors / std::ceil(t.tiles / device.processors));
    const double rows = tile_of(p, choice).rows, columns = tile_of(p, choice).columns;
    out[i++] = log(rows);
    out[i++] = log(columns);
    out[i++] = static_cast<float>(p.m / (rows * std::ceil(p.m / rows)));
    out[i++] = static_cast<float>(p.n / (columns * std::ceil(p.n / columns)));
    out[i++] = log(splits[choice % split_count]);
    for (const double side : {64.0, 128.0, 256.0}) {
      const double grid = std::ceil(p.m / side) * std::ceil(p.n / side) * p.batch / device.processors;
      out[i++] = log(grid);
      out[i++] = static_cast<float>(grid / std::ceil(grid));
      out[i++] = static_cast<float>(p.m / (side * std::ceil(p.m / side)));
    }
    out[i++] = static_cast<float>(p.n / (256 * std::ceil(p.n / 256)));
    out[i++] = static_cast<float>(p.k / (256 * std::ceil(p.k / 256)));
    out[i++] = log((p.operands + p.outputs) / device.cache);
  }

  Caches caches_;
};

}  // namespace
}  // namespace gemm_cdna_form

std::unique_ptr<Form> make_gemm_cdna_form(Caches caches) {
  return std::make_unique<gemm_cdna_form::GemmCdnaForm>(caches);
}

}  // namespace foretoken
