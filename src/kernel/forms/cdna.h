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

// Constants that all CDNA forms fit.
struct CdnaConstants {
  double rate_share = 1, load_rate = 1, fabric_rate = 1, wave_seconds = 0, quantized = 1;
  double dram_share_of_peak = 1, processor_bandwidth = 1, power = 1;
};

// What the work of a tile costs on a device, in one format.
struct CdnaMachine {
  double processors = 1;
  double weight_bytes = 2, activation_bytes = 2;
  double multiply = 0;             // seconds of one multiply-add on one compute unit
  double load = 0;                 // seconds of a byte into one
  double dram = 0, processor = 0;  // B/s of all, and of one
  double wave = 0, quantized = 0, power = 1;

  CdnaWaves waves(double tiles) const { return cdna_waves(tiles, processors, quantized); }
  double load_seconds(double waves, double rows, double columns, double depth) const {
    return waves * (rows * activation_bytes + columns * weight_bytes) * depth * load;
  }
  double memory_seconds(double bytes, double tiles) const {
    return bytes / std::min(dram, processor * std::min(tiles, processors));
  }
  double tflops() const { return 2e-12 * processors / multiply; }
};

inline CdnaMachine cdna_machine(const CdnaConstants& c, const DeviceTraits& device, Scheme scheme, Caches caches) {
  const SchemeFacts& format = facts(scheme);
  CdnaMachine machine{.processors = device.processors,
                      .weight_bytes = format.weight_bytes,
                      .activation_bytes = format.activation_bytes,
                      .processor = c.processor_bandwidth,
                      .wave = c.wave_seconds,
                      .quantized = c.quantized,
                      .power = c.power};
  machine.multiply = 2 * device.processors / (saturated_rate(device, scheme) * c.rate_share);
  machine.load = 1 / (c.load_rate * loaded_clock(device, format.math)) + device.processors / c.fabric_rate;
  // In a model other layers ran since: nothing but DRAM serves weights.
  machine.dram =
      device.bandwidth * (caches == Caches::cold ? std::min(c.dram_share_of_peak, 1.0) : c.dram_share_of_peak);
  return machine;
}

inline std::string cdna_class(Scheme scheme) {
  return "class " + std::string(facts(scheme == Scheme::fp16 ? Scheme::bf16 : scheme).name);
}

}  // namespace foretoken
