#include "kernel/explain.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/portable_math.h"
#include "kernel/calibration.h"
#include "kernel/evaluate.h"
#include "kernel/forms/call.h"
#include "kernel/variants.h"

namespace foretoken {
namespace {

// "20 to 100 us", the bin that half-widths were taken from.
std::string bin_text(double seconds) {
  const size_t bin = HalfWidths::bin(seconds);
  if (bin + 1 == std::size(HalfWidths::edges_us)) return fmt::format("{:g} us and more", HalfWidths::edges_us[bin]);
  return fmt::format("{:g} to {:g} us", HalfWidths::edges_us[bin], HalfWidths::edges_us[bin + 1]);
}

double mean_of(const std::map<std::string, double>& by_device) {
  double sum = 0;
  for (const auto& [device, value] : by_device) sum += value;
  return by_device.empty() ? 0 : sum / static_cast<double>(by_device.size());
}

IntervalOrigin learned_origin(const KernelEstimate& estimate, const LearnedBasis& basis) {
  const std::string bin = bin_text(estimate.seconds.value);
  if (basis.sweep == nullptr) {
    const FormCalibration& cross = *basis.cross;
    if (cross.withheld_mape.empty()) {
      return {.basis = "assumed",
              .reading = "this kernel was measured on one GPU only, so nothing says how well it carries over",
              .measurements = cross.source,
              .fitted_on = cross.fitted_on,
              .mape = 0};
    }
    return {.basis = "withheld generations",
            .reading = fmt::format("90% of |log error| on kernels of {} of {} GPUs whose whole generation was withheld "
                                   "from the fit",
                                   bin, cross.withheld_mape.size()),
            .measurements = cross.source,
            .fitted_on = cross.fitted_on,
            .mape = mean_of(cross.withheld_mape)};
  }
  const DeviceCalibration& sweep = *basis.sweep;
  IntervalOrigin origin{.basis = "held-out rows",
                        .reading = fmt::format("90% of |log error| on kernels of {} among a fifth of the {} rows of "
                                               "{} that was held out of the fit",
                                               bin, sweep.rows, sweep.device),
                        .measurements = sweep.source,
                        .fitted_on = sweep.fitted_on,
                        .mape = sweep.held_out_mape};
  if (!estimate.inside_envelope) origin.reading += "; half as wide again outside the sizes measured";
  if (estimate.tier == Tier::sibling) {
    origin.basis = "sibling";
    if (basis.cross != nullptr && basis.cross->sibling_half_widths) {
      origin.reading = fmt::format(
          "90% of |log error| on kernels of {} where measured devices of one generation were "
          "predicted with each other's sweep; joined with what the two spec sheets leave open",
          bin);
      origin.mape = 0;  // that of the sweep's own rows says nothing here
    } else {
      origin.reading += "; joined with a third of the doubt about an unseen generation";
    }
  }
  return origin;
}

IntervalOrigin roofline_origin(const KernelPredictor& predictor, const KernelShape& shape, double seconds) {
  const RooflineIntervals& intervals = predictor.intervals();
  const IntervalFactors factors = intervals.factors(family_name(shape), seconds);
  IntervalOrigin origin{.basis = "roofline", .measurements = intervals.source, .fitted_on = intervals.fitted_on};
  origin.reading = factors.rows > 0
                       ? fmt::format("measured over roofline of {:.0f} rows of {} and of this size, on {} devices",
                                     factors.rows, family_name(shape), intervals.devices.size())
                       : fmt::format("the widest of the families that were measured: {} was not", family_name(shape));
  return origin;
}

IntervalOrigin derated_origin(const SheetDerates& derates, const KernelShape& shape) {
  const FamilyDerates& family = derates.of(derate_group(shape));
  return {.basis = "derated sheet",
          .reading = fmt::format("this family reaches {:.0f}% of the peak ({:.0f} to {:.0f}%) and {:.0f}% of the "
                                 "bandwidth ({:.0f} to {:.0f}%) on {} measured devices, and takes {:.1f} us at least",
                                 100 * family.middle.compute_share, 100 * family.slow.compute_share,
                                 100 * family.fast.compute_share, 100 * family.middle.memory_share,
                                 100 * family.slow.memory_share, 100 * family.fast.memory_share, derates.devices.size(),
                                 family.middle.floor_us),
          .measurements = derates.source,
          .fitted_on = derates.fitted_on};
}

using Ranges = std::vector<std::pair<float, float>>;

// Of the sweep that answered; where none did, the widest of all sweeps with the same formats.
Ranges measured_ranges(const LearnedBasis& basis, const std::filesystem::path& calibrations) {
  if (basis.sweep != nullptr) {
    const auto found = basis.sweep->ranges.find(basis.group);
    return found == basis.sweep->ranges.end() ? Ranges{} : found->second;
  }
  Ranges widest;
  for (const DeviceCalibration& sweep : all_sweeps(calibrations, basis.form->name())) {
    for (const auto& [group, ranges] : sweep.ranges) {
      if (!has_formats(group, basis.call)) continue;
      if (widest.empty()) widest = ranges;
      for (size_t i = 0; i < widest.size() && i < ranges.size(); ++i) {
        widest[i].first = std::min(widest[i].first, ranges[i].first);
        widest[i].second = std::max(widest[i].second, ranges[i].second);
      }
    }
  }
  return widest;
}

std::vector<EnvelopeSize> envelope_of(const LearnedBasis& basis, const std::filesystem::path& calibrations) {
  std::vector<EnvelopeSize> envelope;
  const Ranges ranges = measured_ranges(basis, calibrations);
  const std::vector<NamedSize> sizes = named_sizes(basis.call.shape);
  const auto raw = raw_features(basis.call);
  for (size_t i = 0; i < sizes.size() && i < ranges.size(); ++i) {
    const auto [least, most] = ranges[i];
    // Bounds are kept as 32-bit logarithms: back to the whole number they came from.
    const auto size = [&](float bound) {
      if (!sizes[i].is_logarithmic) return static_cast<double>(bound);
      const double value = portable_pow(2, static_cast<double>(bound));
      return bound < 0 ? 0 : value < 1e5 ? std::round(value) : value;
    };
    EnvelopeSize entry{.name = sizes[i].name, .value = sizes[i].value, .least = size(least), .most = size(most)};
    // What the prediction decided stands, whatever the rounding.
    if (raw[i] >= least) entry.least = std::min(entry.least, entry.value);
    if (raw[i] <= most) entry.most = std::max(entry.most, entry.value);
    envelope.push_back(entry);
  }
  return envelope;
}

}  // namespace

KernelExplanation explain_kernel(const KernelPredictor& predictor, const KernelShape& shape, std::string_view variant,
                                 const std::filesystem::path& calibrations) {
  LearnedBasis basis;
  KernelExplanation result{.estimate = predictor.estimate(shape, variant, &basis), .variant = std::string(variant)};
  const KernelEstimate& estimate = result.estimate;
  result.roofline_seconds = std::max(estimate.compute, estimate.memory).value();
  result.efficiency = result.roofline_seconds / estimate.seconds.value;
  if (estimate.tier == Tier::mapped) {
    result.interval = {.basis = "models of chips", .reading = "How far such models lie from the chips they describe."};
    return result;
  }
  if (basis.form == nullptr && estimate.tier != Tier::roofline) {
    result.form = "attention_prefill and attention_decode";
    result.interval = {.basis = "sum", .reading = "A prefill and a decode, two launches: their intervals added."};
    return result;
  }
  if (estimate.derated) {
    result.interval = derated_origin(*predictor.derates(), shape);
    return result;
  }
  if (basis.form == nullptr) {
    result.interval = roofline_origin(predictor, shape, result.roofline_seconds);
    return result;
  }
  result.form = basis.form->name();
  if (basis.sweep != nullptr) {
    result.swept_device = basis.sweep->device;
    result.variant = group_variant(basis.group, basis.call);
  }
  if (result.variant.empty()) result.variant = basis.form->usual_variant(basis.call, basis.traits);
  result.lines = explain_form(*basis.form, basis.call, basis.traits, basis.log_constants);
  for (const Explained& line : result.lines) {
    if (line.kind == Explained::Kind::part) result.form_seconds += line.value;
  }
  if (result.form_seconds > 0) result.correction = estimate.seconds.value / result.form_seconds;
  result.held_at_bound = estimate.seconds.value <= estimate.seconds.low;
  result.interval = learned_origin(estimate, basis);
  result.envelope = envelope_of(basis, calibrations);
  return result;
}

}  // namespace foretoken
