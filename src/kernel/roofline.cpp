#include "kernel/roofline.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

struct Tile {
  double rows, columns;
};
// Output tiles of the GEMM libraries (cuBLAS, CUTLASS), largest first so that a tie goes to the larger.
constexpr Tile tiles[] = {{256, 256}, {256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128},
                          {64, 64},   {64, 32},   {32, 128},  {32, 64},   {16, 128}, {16, 64}};
struct KSplit {
  double parts, share;
};
constexpr KSplit k_splits[] = {{1, 1},       {2, 0.5},   {3, 1.0 / 3},   {4, 0.25},
                               {6, 1.0 / 6}, {8, 0.125}, {16, 1.0 / 16}, {32, 1.0 / 32}};
constexpr double least_k_of_a_split = 64;
constexpr double attention_tile_rows = 64;  // the smallest among flash-attention kernels

double number(int64_t count) {
  return static_cast<double>(count);
}

// A flash-attention kernel gives each processor a tile of query rows of one head, or of the heads that share a KV head.
TileGrid attention_grid(double batch, double heads, double kv_heads, double q_len) {
  const double apart = heads * std::ceil(q_len / attention_tile_rows);
  const double packed = kv_heads * std::ceil(q_len * (heads / kv_heads) / attention_tile_rows);
  return {.row_tiles = batch * std::min(apart, packed)};
}

struct GridOf {
  std::optional<TileGrid> operator()(const GemmShape& s) const {
    return TileGrid{.groups = number(s.batch), .m = number(s.m), .n = number(s.n), .k = number(s.k), .splits_k = true};
  }
  std::optional<TileGrid> operator()(const LatentProjectionShape& s) const {
    return TileGrid{.groups = number(s.heads),
                    .m = number(s.tokens),
                    .n = number(s.post ? s.head_dim : s.latent_dim),
                    .k = number(s.post ? s.latent_dim : s.head_dim),
                    .splits_k = true};
  }
  std::optional<TileGrid> operator()(const ConvShape& s) const {
    if (s.groups > 1) return std::nullopt;  // grouped and depthwise kernels do not tile like a GEMM
    const double out = number(convolved_size(s.height, s.kernel_height, s.stride, s.padding, s.dilation)) *
                       number(convolved_size(s.width, s.kernel_width, s.stride, s.padding, s.dilation));
    return TileGrid{.m = number(s.batch) * out,
                    .n = number(s.out_channels),
                    .k = number(s.in_channels) * number(s.kernel_height) * number(s.kernel_width),
                    .splits_k = true};
  }
  std::optional<TileGrid> operator()(const AttentionShape& s) const {
    if (s.phase == AttentionPhase::decode || s.pass == Pass::backward) return std::nullopt;  // these split the keys
    return attention_grid(number(s.batch), number(s.heads), number(s.kv_heads), number(s.q_len));
  }
  std::optional<TileGrid> operator()(const LatentAttentionShape& s) const {
    if (s.phase == AttentionPhase::decode || s.pass == Pass::backward) return std::nullopt;
    return attention_grid(number(s.batch), number(s.heads), number(s.heads), number(s.q_len));
  }
  template <class Other>
  std::optional<TileGrid> operator()(const Other&) const {
    return std::nullopt;
  }
};

// Experts: rows are spread over the active ones, each filling tiles of its own. Two multiplies, one after the other.
WaveStretch expert_stretch(const MoeShape& s, int processors) {
  const ExpertLoad load = expert_load(s);
  if (load.pairs <= 0) return {};
  const double width = number(s.inter) / number(s.tp), hidden = number(s.hidden);
  const double up = s.gated ? 2 : 1;
  const TileGrid first{.groups = load.active_experts,
                       .m = load.pairs / load.active_experts,
                       .n = up * width,
                       .k = hidden,
                       .unequal = true};
  const TileGrid second{
      .groups = load.active_experts, .m = load.pairs / load.active_experts, .n = hidden, .k = width, .unequal = true};
  const WaveStretch a = wave_stretch(first, processors), b = wave_stretch(second, processors);
  return {.stretch = (up * a.stretch + b.stretch) / (up + 1), .waves = a.waves + b.waves};
}

WaveStretch stretch_of(const KernelShape& shape, int processors) {
  if (const MoeShape* moe = std::get_if<MoeShape>(&shape)) {
    return moe->pass == Pass::forward ? expert_stretch(*moe, processors) : WaveStretch{};
  }
  const std::optional<TileGrid> grid = std::visit(GridOf{}, shape);
  return grid ? wave_stretch(*grid, processors) : WaveStretch{};
}

// Such a device multiplies single rows as fast as whole tiles. Sheets of processors without matrix units list fp32
// alone.
bool lacks_matrix_units(const Device& device) {
  const auto peak = [&](DType type) {
    const auto& known = device.dense_peak[static_cast<size_t>(type)];
    return known ? known->value.value() : 0.0;
  };
  const double half = std::max(peak(DType::fp16), peak(DType::bf16)), whole = peak(DType::fp32);
  return whole > 0 && half <= whole && (half > 0 || device.kind == DeviceKind::cpu);
}

}  // namespace

WaveStretch wave_stretch(const TileGrid& grid, int processors) {
  if (processors <= 0) return {};
  const double slots = processors;
  if (grid.row_tiles > 0) {
    const double waves = grid.row_tiles / slots;
    return {.stretch = std::ceil(waves) / waves, .waves = waves};
  }
  const double ideal = grid.groups * grid.m * grid.n;
  if (!(ideal > 0)) return {};
  const double inverse_slots = 1 / slots;
  WaveStretch best{.stretch = INFINITY};
  for (const Tile& tile : tiles) {
    const double row_tiles = grid.unequal ? std::max(grid.groups, std::ceil(grid.groups * grid.m / tile.rows))
                                          : grid.groups * std::ceil(grid.m / tile.rows);
    const double count = row_tiles * std::ceil(grid.n / tile.columns);
    // However k is split: whole waves hold at least all tiles.
    if (count * tile.rows * tile.columns >= best.stretch * ideal) continue;
    const double whole_wave = slots * tile.rows * tile.columns / ideal;
    for (const auto [parts, share] : k_splits) {
      if (parts > 1 && (!grid.splits_k || grid.k < least_k_of_a_split * parts)) break;
      const double waves = count * parts * inverse_slots;
      const double stretch = std::ceil(waves) * whole_wave * share;
      if (stretch < best.stretch) best = {.stretch = stretch, .waves = waves};
      if (waves > 64) break;  // finer cuts of so many waves gain less than 2%
    }
  }
  best.stretch = std::max(1.0, best.stretch);
  return best;
}

Roofline roofline(const KernelShape& shape, const Work& work, const Device& device) {
  ensure(device.memory_bandwidth.has_value(), "a predictor refuses devices without memory bandwidth");
  Roofline result{.memory = work.bytes() / device.memory_bandwidth->value};
  const std::optional<FlopsPerSecond> peak = device.peak_or_fallback(work.math);
  if (!peak) {
    // Vector work is bound by memory on every device we know; a multiply without a peak cannot be bounded at all.
    if (work.math == DType::fp32 && family_name(shape) != "gemm" && family_name(shape) != "conv") return result;
    if (work.flops.value() == 0) return result;
    throw InputError({.source = device.name,
                      .path = "peak FLOP/s",
                      .value = std::string(dtype_name(work.math)),
                      .expected = fmt::format("a dtype this device can multiply in, for {}", family_name(shape))});
  }
  const bool has_tiles = device.processors && !lacks_matrix_units(device);
  const WaveStretch wave = stretch_of(shape, has_tiles ? device.processors->value : 0);
  result.compute = work.flops / *peak * wave.stretch;
  result.waves = wave.waves;
  result.wave_efficiency = 1 / wave.stretch;
  return result;
}

}  // namespace foretoken
