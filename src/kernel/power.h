// Board power and clocks of kernels that run over and over. Benchmarks run cool; a service holds the board at its power
// limit, where the clock of the processors falls until the power fits.
//
//   power = idle + (energy of FLOPs + energy of bytes + busy power x time that is neither) / time
//
// with an energy per FLOP for the multiply units (by format) and for the vector units, and more per byte of KV cache
// where decode attention multiplies padded rows.
//
// What happens on the chip costs clock^exponent (the voltage falls with the clock), what happens in DRAM does not. With
// a lower clock, on-chip time stretches and DRAM time does not. Two limits: the electrical one at once, also in a
// short burst, and the board's after milliseconds.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "base/units.h"
#include "hardware/device.h"
#include "model/shapes.h"
#include "model/work.h"

namespace foretoken {

// How a kernel keeps the processors busy: multiply units, vector units, attention with its exponentials, and attention
// of single tokens, which some kernels pad to whole tiles (FlashAttention 2).
enum class Activity { multiply, vector, attention, decode, padded_decode };
// `variant` names the implementation; empty = what an engine would run on the device.
Activity activity_of(const KernelShape& shape, std::string_view variant, const Device& device);

// Some kernels of a mix, at burst speed.
struct BusyKernel {
  Work work;              // of one call
  Seconds burst_seconds;  // of one call, on a cool board
  Activity activity = Activity::multiply;
  double calls = 1;
};

// In the order of power_constant_facts(); all above zero.
enum PowerConstant {
  flop_joules,         // multiply units, 16 bits; a multiply-add counts two
  fp8_flop_joules,     // the same, 8 bits and less
  vector_flop_joules,  // vector units
  byte_joules,         // DRAM traffic, and what it causes on chip
  padded_byte_joules,  // more of that in padded decode attention
  byte_chip_share,     // of byte_joules which is on chip and follows the clock
  busy_watts,          // processors at work, neither multiplying nor streaming
  attention_watts,     // the same in attention
  clock_exponent,      // energy on chip ~ clock^this
  burst_limit,         // electrical limit over the board's
  overlap_power,       // how far on-chip time and DRAM time hide one another
  launch_seconds,      // of each call in which the board is nearly idle
  streaming_share,     // of the DRAM bandwidth on the sheet that a copy reaches
  power_constant_count,
};
using PowerConstants = std::array<double, power_constant_count>;

struct PowerConstantFacts {
  std::string_view name;
  double start, least, most;
  std::string_view reading;
};
std::span<const PowerConstantFacts> power_constant_facts();

// Fitted on sustained measurements of one board.
struct PowerCalibration {
  std::string device;
  std::string source, fitted_on;
  size_t rows = 0;
  // The board's sheet, by which the constants are carried over to others.
  double limit_watts = 0, bandwidth = 0, peak_16 = 0, peak_8 = 0;  // B/s, FLOP/s
  double idle_watts = 0;                                           // with a process alive and clocks up
  double limit_share = 1;                                          // of the board's limit that it holds on average
  PowerConstants constants{};
  double watts_half_width = 0;     // logarithm, 90% of rows left out of the fit
  double slowdown_half_width = 0;  // of the slowdown itself
};

std::string power_calibration_json(std::span<const PowerCalibration> calibrations);
// InputError for missing keys, values out of range or a newer version.
std::vector<PowerCalibration> parse_power_calibrations(std::string_view text, const std::string& source);
std::vector<PowerCalibration> read_power_calibrations(const std::filesystem::path& path);

struct BurstPower {
  Estimate watts;   // while it runs; may exceed the board's limit for a moment
  Estimate joules;  // of one pass
};

// A mix repeated without pause but `idle_seconds`.
struct SustainedPower {
  Estimate watts;                    // mean
  Estimate joules;                   // of one pass
  Estimate slowdown;                 // time of a pass over its time on a cool board, at least 1
  double slowdown_of_clock_cap = 1;  // the part of it that no pause takes back
  Hertz clock;                       // of the processors; 0 = not known
  double clock_share = 1;
  double wanted_watts = 0;  // at the clock of a burst, or the highest allowed
  bool limited = false;     // by the board's limit
};

// What an operator sets on a board (nvidia-smi -pl, -lgc); nothing = as it comes.
struct PowerCaps {
  std::optional<double> limit_watts, clock_hertz;
};

// Power of one device. Cheap to copy; const calls are safe from many threads.
class PowerModel {
 public:
  // The calibration of the device itself, else the nearest one carried over: half way (as logarithms) between the same
  // energy per operation and the same share of the board's power; intervals widen and say `extrapolated`. Nothing
  // where the sheet gives no power limit or bandwidth, or there is no calibration at all.
  static std::optional<PowerModel> make(const Device& device, std::span<const PowerCalibration> calibrations);

  BurstPower burst(std::span<const BusyKernel> mix) const;
  SustainedPower sustained(std::span<const BusyKernel> mix, Seconds idle_seconds = {}) const;

  // The same board with caps; those at or above what it does anyway change nothing. Bursts stay those of the board as
  // it comes: kernel times were measured there, and `sustained` says how much longer they take.
  PowerModel capped(const PowerCaps& caps) const;

  double limit_watts() const { return set_watts_; }
  double idle_watts() const { return calibration_.idle_watts; }
  const PowerCalibration& calibration() const { return calibration_; }
  bool is_measured() const { return measured_; }

 private:
  PowerModel(const Device& device, PowerCalibration calibration, bool measured);
  struct Part;
  Part part_of(const BusyKernel& kernel) const;
  double flop_energy(DType math) const;

  PowerCalibration calibration_;
  bool measured_ = false;
  double limit_watts_ = 0;
  double set_watts_ = 0;         // the limit as it is set
  double most_clock_share_ = 1;  // of the top clock
  double bandwidth_ = 0;
  double clock_hertz_ = 0;
  std::array<double, dtype_count> peak_{};
};

// One kernel: a single call, and held busy. No board draws more than its limit for longer than a moment: a call that
// would, on a cool board, is reported at the clock that the limit leaves, with the time and energy that go with it.
// joules = watts x seconds in both.
struct KernelPower {
  BurstPower burst;
  Estimate burst_seconds;      // of the call that `burst` describes
  bool burst_limited = false;  // by the board's limit: `burst` is `sustained`
  SustainedPower sustained;
  Estimate sustained_seconds;  // of one call, both doubts together
};
KernelPower kernel_power(const PowerModel& model, const Work& work, Activity activity, const Estimate& burst_seconds);

}  // namespace foretoken
