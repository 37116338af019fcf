// What the forms of AMD's CDNA GPUs share.
#pragma once

#include <algorithm>
#include <string>

#include "kernel/forms/form.h"
#include "kernel/forms/form_math.h"

namespace foretoken {

// Names of AMD's tuned kernels start with this; a call of no known kernel runs one of them.
inline constexpr std::string_view aiter_kernel = "aiter";

// The largest share of a format's peak, or of any format's, that one multiply was seen to reach. Where none was: about
// what MI300X, MI325X and MI355X reach.
inline double reached_share(const DeviceTraits& device, DType math) {
  double of_format = 0, of_any = 0;
  for (const SchemeFacts& scheme : all_schemes()) {
    const double reached = device.reached[static_cast<size_t>(scheme.scheme)];
    const double share = reached / std::max(device.peak[static_cast<size_t>(scheme.math)], 1.0);
    of_any = std::max(of_any, share);
    if (scheme.math == math) of_format = std::max(of_format, share);
  }
  constexpr double usual_share = 0.55;
  return of_format > 0 ? of_format : of_any > 0 ? of_any : usual_share;
}

// FLOP/s at which one large multiply runs.
inline double saturated_rate(const DeviceTraits& device, Scheme scheme) {
  constexpr double share_with_blocks = 0.8;  // of fp8 with plain scales, on MI300X and MI355X
  if (const double reached = device.reached[static_cast<size_t>(scheme)]; reached > 0) return reached;
  const DType math = facts(scheme).math;
  return device.peak[static_cast<size_t>(math)] * reached_share(device, math) *
         (scheme == Scheme::fp8_block ? share_with_blocks : 1);
}

// The clock that power leaves while the matrix units are at work: caches and stores slow down with them. Software
// reaches about nine tenths of what that clock allows (AMD, Measuring Max-Achievable FLOPs, part 2).
inline double loaded_clock(const DeviceTraits& device, DType math) {
  constexpr double software_share = 0.9;
  return device.clock * std::min(1.0, reached_share(device, math) / software_share);
}

// Seconds of the kernel that casts `values` of 16 bits before a multiply of narrower ones.
inline double cast_seconds(double values, double bytes_after, const DeviceTraits& device) {
  constexpr double floor = 2e-6, bandwidth_share = 0.7;
  return floor + values * (2 + bytes_after) / (device.bandwidth * bandwidth_share);
}

// Tiles over processors. A last wave that is not full costs part of a full one: its tiles have the caches and the power
// of the idle ones.
struct CdnaWaves {
  double tiles = 1, waves = 1;
};
inline CdnaWaves cdna_waves(double tiles, double processors, double quantized) {
  const double even = std::max(tiles / processors, 1.0);
  return {.tiles = tiles, .waves = even + (std::ceil(tiles / processors) - even) * quantized};
}

inline std::string cdna_class(Scheme scheme) {
  return "class " + std::string(facts(scheme == Scheme::fp16 ? Scheme::bf16 : scheme).name);
}

}  // namespace foretoken
