#include "kernel/power.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/portable_math.h"
#include "kernel/forms/attention_variants.h"
#include "kernel/forms/call.h"

namespace foretoken {
namespace {

constexpr PowerConstantFacts facts_table[power_constant_count] = {
    {"flop_joules", 0.9e-12, 0.05e-12, 50e-12, "J per FLOP of the multiply units in 16 bits, at the top clock"},
    {"fp8_flop_joules", 0.5e-12, 0.02e-12, 50e-12, "the same in 8 bits"},
    {"vector_flop_joules", 15e-12, 0.5e-12, 200e-12, "J per FLOP of the vector units"},
    {"byte_joules", 105e-12, 5e-12, 2000e-12, "J per byte of DRAM traffic, with what it causes on chip"},
    {"padded_byte_joules", 60e-12, 1e-12, 2000e-12, "more per byte in decode attention that pads to whole tiles"},
    {"byte_chip_share", 0.5, 0.01, 1, "of byte_joules which is on chip and follows the clock"},
    {"busy_watts", 500, 10, 5000, "W of processors at work, neither multiplying nor streaming"},
    {"attention_watts", 500, 10, 5000, "the same in attention: exponentials"},
    {"clock_exponent", 1.3, 0.2, 4, "energy on chip goes with the clock to this power"},
    {"burst_limit", 1.45, 1, 4, "electrical limit over the board's limit: holds at once"},
    {"overlap_power", 1.5, 1, 12, "how far on-chip time and DRAM time hide one another"},
    {"launch_seconds", 2e-6, 0.1e-6, 10e-6, "s of a call in which the board is nearly idle"},
    {"streaming_share", 0.94, 0.5, 1, "of the DRAM bandwidth on the sheet that a copy reaches"},
};

constexpr double least_clock_share = 0.1;
constexpr double least_fitted_clock_share = 0.64;  // 1,275 of 1,980 MHz (data/measured/h200_sxm/sustained_more.csv)
constexpr double reading_noise = 0.015;            // of a board's power, between two passes of the same kernel

// Where `watts`, which rises with the clock, crosses the limit between two clocks, by the Illinois method (Dowell and
// Jarratt, BIT 1971); nothing where it does not converge.
template <class WattsAtClock>
std::optional<double> clock_at(const WattsAtClock& watts, double limit, double low, double high, double at_high) {
  constexpr int most_steps = 40;
  constexpr double converged = 1e-13;
  double under = watts(low) - limit, over = at_high - limit, before = low;
  if (under >= 0) return low;
  int last = 0;  // the end that moved: the other one's value is halved, so that it moves too
  for (int i = 0; i < most_steps; ++i) {
    const double next = (low * over - high * under) / (over - under);
    const double value = watts(next) - limit;
    if (value > 0) {
      high = next;
      over = value;
      if (last > 0) under /= 2;
      last = 1;
    } else {
      low = next;
      under = value;
      if (last < 0) over /= 2;
      last = -1;
    }
    if (value == 0 || std::abs(next - before) < converged) return next;
    before = next;
  }
  return std::nullopt;
}

// The largest clock share up to `most` at which `watts` stays within the limit; watts rises with the clock. Halving
// gives the same bits whatever is known of the crossing, which only spares most of its steps.
template <class WattsAtClock>
double clock_within(const WattsAtClock& watts, double limit, double most) {
  const double wanted = watts(most);
  if (wanted <= limit) return most;
  double low = least_clock_share, high = most;
  const std::optional<double> crossing = clock_at(watts, limit, low, high, wanted);
  constexpr int halvings = 36;
  constexpr double sure = 1e-12;
  for (int i = 0; i < halvings; ++i) {
    const double middle = 0.5 * (low + high);
    const bool is_clear = crossing && std::abs(middle - *crossing) > sure;
    ((is_clear ? middle > *crossing : watts(middle) > limit) ? high : low) = middle;
  }
  return low;
}

}  // namespace

std::span<const PowerConstantFacts> power_constant_facts() {
  return facts_table;
}

Activity activity_of(const KernelShape& shape, std::string_view variant, const Device& device) {
  if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    if (attention->phase == AttentionPhase::encoder || attention->q_len > 1) return Activity::attention;
    const AttentionVariant& kernel = attention_variant(variant, *attention, traits_of(device).traits);
    return kernel.overlap == Overlap::synchronous ? Activity::padded_decode : Activity::decode;
  }
  if (const auto* latent = std::get_if<LatentAttentionShape>(&shape)) {
    return latent->phase == AttentionPhase::decode ? Activity::decode : Activity::attention;
  }
  const bool multiplies = std::holds_alternative<GemmShape>(shape) || std::holds_alternative<MoeShape>(shape) ||
                          std::holds_alternative<LatentProjectionShape>(shape) ||
                          std::holds_alternative<LinearAttentionShape>(shape) ||
                          std::holds_alternative<ConvShape>(shape);
  return multiplies ? Activity::multiply : Activity::vector;
}

// All calls of one kernel of a mix.
struct PowerModel::Part {
  double seconds = 0;                       // at burst speed
  double chip_share = 0, dram_share = 0;    // of seconds^overlap: what adds up, the first follows the clock
  double chip_joules = 0, dram_joules = 0;  // at the top clock
  double burst_clock = 1;                   // share of the top clock that the electrical limit leaves
};

PowerModel::PowerModel(const Device& device, PowerCalibration calibration, bool measured)
    : calibration_(std::move(calibration)), measured_(measured) {
  limit_watts_ = device.power_limit->value.value();
  set_watts_ = limit_watts_;
  bandwidth_ = device.memory_bandwidth->value.value();
  clock_hertz_ = device.boost_clock ? device.boost_clock->value.value() : 0;
  for (int type = 0; type < dtype_count; ++type) {
    const auto peak = device.peak_or_fallback(static_cast<DType>(type));
    peak_[static_cast<size_t>(type)] = peak ? peak->value() : 0;
  }
}

std::optional<PowerModel> PowerModel::make(const Device& device, std::span<const PowerCalibration> calibrations) {
  if (!device.power_limit || !device.memory_bandwidth || calibrations.empty()) return std::nullopt;
  for (const PowerCalibration& own : calibrations) {
    if (own.device == device.name) return PowerModel(device, own, true);
  }
  // With several boards measured, the one nearest in power limit stands for the rest.
  const double limit = device.power_limit->value.value();
  const auto distance = [&](const PowerCalibration& other) {
    return std::abs(portable_log(other.limit_watts / limit));
  };
  PowerCalibration ported = *std::min_element(calibrations.begin(), calibrations.end(),
                                              [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  const auto peak = [&](DType type) {
    const auto found = device.peak_or_fallback(type);
    return found ? found->value() : 0.0;
  };
  const auto alike = [](double one, double other) { return std::abs(one - other) < 0.02 * other; };
  // What a FLOP takes is up to the chip: a board with the chip that was measured wants as much at any limit, and takes
  // as much at once. Another chip is taken to be made for its limit, idle power for the same share of it.
  const bool same_chip = alike(peak(DType::bf16), ported.peak_16) && alike(peak(DType::fp8), ported.peak_8);
  const double budget = same_chip ? 1 : limit / ported.limit_watts;
  if (same_chip) ported.constants[burst_limit] *= ported.limit_watts / limit;
  const auto half_way = [&](PowerConstant constant, double own_rate, double other_rate) {
    if (own_rate > 0 && other_rate > 0) ported.constants[constant] *= std::sqrt(budget * other_rate / own_rate);
  };
  half_way(byte_joules, device.memory_bandwidth->value.value(), ported.bandwidth);
  half_way(flop_joules, peak(DType::bf16), ported.peak_16);
  half_way(fp8_flop_joules, peak(DType::fp8), ported.peak_8);
  half_way(padded_byte_joules, device.memory_bandwidth->value.value(), ported.bandwidth);
  half_way(vector_flop_joules, peak(DType::bf16), ported.peak_16);
  for (const PowerConstant watts : {busy_watts, attention_watts}) ported.constants[watts] *= budget;
  ported.idle_watts *= budget;
  // Nobody has checked this on a second board: a statement of doubt, not a fit.
  constexpr double ported_watts = 0.35, ported_slowdown = 0.2;
  ported.watts_half_width = portable_hypot(ported.watts_half_width, ported_watts);
  ported.slowdown_half_width = portable_hypot(ported.slowdown_half_width, ported_slowdown);
  return PowerModel(device, std::move(ported), false);
}

PowerModel PowerModel::capped(const PowerCaps& caps) const {
  PowerModel result = *this;
  if (caps.limit_watts) {
    ensure(*caps.limit_watts > 0, "a power limit is above zero");
    result.set_watts_ = std::min(set_watts_, *caps.limit_watts);
  }
  if (caps.clock_hertz) {
    ensure(*caps.clock_hertz > 0 && clock_hertz_ > 0, "a clock cap needs a clock");
    result.most_clock_share_ = std::clamp(*caps.clock_hertz / clock_hertz_, least_clock_share, most_clock_share_);
  }
  return result;
}

double PowerModel::flop_energy(DType math) const {
  const PowerConstants& c = calibration_.constants;
  const double peak_16 = peak_[static_cast<size_t>(DType::bf16)], peak_8 = peak_[static_cast<size_t>(DType::fp8)];
  const double peak = peak_[static_cast<size_t>(math)];
  const auto at_same_power = [&](double joules, double other_peak) {
    return peak > 0 && other_peak > 0 ? joules * other_peak / peak : joules;
  };
  switch (math) {
    case DType::bf16:
    case DType::fp16:
      return c[flop_joules];
    case DType::fp8:
    case DType::int8:
      return c[fp8_flop_joules];
    case DType::fp4:
    case DType::int4:
      return at_same_power(c[fp8_flop_joules], peak_8);
    case DType::tf32:
      return at_same_power(c[flop_joules], peak_16);
    case DType::fp32:
    case DType::fp64:
      // Vector units at their peak are taken to draw half of what the tensor units at theirs would.
      return 0.5 * at_same_power(c[flop_joules], peak_16);
  }
  return c[flop_joules];
}

PowerModel::Part PowerModel::part_of(const BusyKernel& kernel) const {
  ensure(kernel.burst_seconds.value() > 0 && kernel.calls > 0, "a kernel of a mix takes time");
  const PowerConstants& c = calibration_.constants;
  const double seconds = kernel.burst_seconds.value();
  const double flops = kernel.work.flops.value(), bytes = kernel.work.bytes().value();
  constexpr double nearly_all = 0.995;  // a kernel that streams all the time still has some on-chip time
  const double dram = std::min(bytes / (bandwidth_ * c[streaming_share]), nearly_all * seconds);
  const bool is_vector = kernel.activity == Activity::vector;
  const double peak = peak_[static_cast<size_t>(kernel.work.math)];
  const double multiply = peak > 0 && !is_vector ? flops / peak : 0;
  constexpr double launch_most = 0.8;
  const bool attends = kernel.activity != Activity::multiply && !is_vector;
  const bool padded = kernel.activity == Activity::padded_decode;
  // FlashAttention 2 decodes in three launches: rearrange the heads, attend in parts, join.
  const double launches = padded ? 3 : 1;
  const double launch = std::min(launches * c[launch_seconds], launch_most * seconds);
  const double busy = std::max(0.0, seconds - launch - dram - multiply);
  const double on_chip = (is_vector ? c[vector_flop_joules] : flop_energy(kernel.work.math)) * flops +
                         (padded ? c[padded_byte_joules] * bytes : 0) +
                         c[attends ? attention_watts : busy_watts] * busy;
  const double moved = c[byte_joules] * bytes;

  // On-chip time is what DRAM time leaves over, and no less than the multiplies; padded decode is bound by both.
  const double dram_power = portable_pow(dram / seconds, c[overlap_power]);
  double chip_power = std::max(1 - dram_power, portable_pow(std::min(multiply / seconds, 1.0), c[overlap_power]));
  if (padded) chip_power = 1;
  Part part;
  part.seconds = seconds * kernel.calls;
  part.chip_share = chip_power / (chip_power + dram_power);
  part.dram_share = dram_power / (chip_power + dram_power);
  part.chip_joules = (on_chip + c[byte_chip_share] * moved) * kernel.calls;
  part.dram_joules = (1 - c[byte_chip_share]) * moved * kernel.calls;
  const auto watts = [&](double clock) {
    return calibration_.idle_watts +
           (part.chip_joules * portable_pow(clock, c[clock_exponent]) + part.dram_joules) / part.seconds;
  };
  part.burst_clock = clock_within(watts, limit_watts_ * c[burst_limit], 1);
  return part;
}

BurstPower PowerModel::burst(std::span<const BusyKernel> mix) const {
  double joules = 0, seconds = 0;
  for (const BusyKernel& kernel : mix) {
    const Part part = part_of(kernel);
    joules += part.chip_joules * portable_pow(part.burst_clock, calibration_.constants[clock_exponent]) +
              part.dram_joules + calibration_.idle_watts * part.seconds;
    seconds += part.seconds;
  }
  ensure(seconds > 0, "a mix has kernels");
  const double factor = portable_exp(calibration_.watts_half_width);
  const Confidence kind = measured_ ? Confidence::interpolated : Confidence::extrapolated;
  const Estimate energy{.value = joules, .low = joules / factor, .high = joules * factor, .kind = kind};
  return {.watts = scaled(energy, 1 / seconds), .joules = energy};
}

SustainedPower PowerModel::sustained(std::span<const BusyKernel> mix, Seconds idle_seconds) const {
  const PowerConstants& c = calibration_.constants;
  std::vector<Part> parts;
  double burst_seconds = idle_seconds.value();
  for (const BusyKernel& kernel : mix) {
    parts.push_back(part_of(kernel));
    burst_seconds += parts.back().seconds;
  }
  ensure(burst_seconds > 0, "a mix takes time");
  const double inverse_overlap = 1 / c[overlap_power];
  struct OnePass {
    double seconds = 0, joules = 0;
  };
  // One pass at a share of the top clock; a kernel that the electrical limit holds lower stays there.
  const auto pass_at = [&](double clock) {
    OnePass pass{.seconds = idle_seconds.value()};
    for (const Part& part : parts) {
      const double own = std::min(clock, part.burst_clock);
      const double stretch = part.burst_clock / own;
      const double longer = part.dram_share + part.chip_share * portable_pow(stretch, c[overlap_power]);
      pass.seconds += stretch == 1 ? part.seconds : part.seconds * portable_pow(longer, inverse_overlap);
      pass.joules += part.chip_joules * portable_pow(own, c[clock_exponent]) + part.dram_joules;
    }
    pass.joules += calibration_.idle_watts * pass.seconds;
    return pass;
  };
  const auto watts_at = [&](double clock) {
    const OnePass pass = pass_at(clock);
    return pass.joules / pass.seconds;
  };
  double most = least_clock_share;  // the clock of a burst: that of its fastest kernel
  for (const Part& part : parts) most = std::max(most, part.burst_clock);
  if (parts.empty()) most = 1;
  most = std::min(most, most_clock_share_);

  const double held = set_watts_ * calibration_.limit_share;
  const OnePass unlimited = pass_at(most);
  SustainedPower result;
  result.slowdown_of_clock_cap = std::max(1.0, unlimited.seconds / burst_seconds);
  result.wanted_watts = unlimited.joules / unlimited.seconds;
  result.limited = result.wanted_watts > held;
  result.clock_share = clock_within(watts_at, held, most);
  result.clock = Hertz(clock_hertz_ * result.clock_share);
  const OnePass pass = pass_at(result.clock_share);
  const double watts = pass.joules / pass.seconds;
  const double factor = portable_exp(calibration_.watts_half_width);
  const bool fitted = measured_ && result.clock_share >= least_fitted_clock_share;
  const Confidence kind = fitted ? Confidence::interpolated : Confidence::extrapolated;
  // The limit holds whatever the doubt about what the kernels want.
  const double low = std::min({watts, held, result.wanted_watts / factor}) * (1 - reading_noise);
  const double wanted_high = std::max(watts, std::min(held, result.wanted_watts * factor)) * (1 + reading_noise);
  const double high = std::max(watts, std::min(wanted_high, set_watts_));
  result.watts = {.value = watts, .low = low, .high = high, .kind = kind};
  result.joules = scaled(result.watts, pass.seconds);
  const double slowdown = std::max(1.0, pass.seconds / burst_seconds);
  // Not cut off at 1: two timings of the same burst differ too.
  const double doubt = std::min(calibration_.slowdown_half_width, 0.5 * slowdown);
  result.slowdown = {.value = slowdown, .low = slowdown - doubt, .high = slowdown + doubt, .kind = kind};
  return result;
}

KernelPower kernel_power(const PowerModel& model, const Work& work, Activity activity, const Estimate& burst_seconds) {
  const BusyKernel kernel{.work = work, .burst_seconds = Seconds(burst_seconds.value), .activity = activity};
  KernelPower result{.burst = model.burst({&kernel, 1}),
                     .burst_seconds = burst_seconds,
                     .sustained = model.sustained({&kernel, 1}),
                     .sustained_seconds = {}};
  result.sustained_seconds = product_of_independent(burst_seconds, result.sustained.slowdown);
  result.sustained.joules = product_of_independent(result.sustained.watts, result.sustained_seconds);
  Estimate& watts = result.burst.watts;
  if (watts.value > model.limit_watts()) {
    result.burst = {.watts = result.sustained.watts, .joules = result.sustained.joules};
    result.burst_seconds = result.sustained_seconds;
    result.burst_limited = true;
    return result;
  }
  watts.high = std::min(watts.high, model.limit_watts());
  result.burst.joules = product_of_independent(watts, burst_seconds);
  return result;
}

}  // namespace foretoken
