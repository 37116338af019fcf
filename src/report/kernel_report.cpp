#include "report/kernel_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/table.h"

namespace foretoken {

namespace {

std::string tier_text(const KernelEstimate& estimate) {
  switch (estimate.tier) {
    case Tier::measured:
      return estimate.inside_envelope ? "a sweep on this device, inside the sizes it measured"
                                      : "a sweep on this device, outside the sizes it measured";
    case Tier::sibling:
      return "a sweep on a device of the same generation, carried over by the spec sheets";
    case Tier::cross:
      return "measurements of other devices, ported by the spec sheet";
    case Tier::best:
    case Tier::roofline:
      break;
  }
  return "the roofline alone: no measurements apply here";
}

}  // namespace

std::string kernel_text(const KernelFamily& family, GivenParameters given, const KernelEstimate& estimate,
                        const Device& device) {
  std::string call = family.name;
  for (const auto& [name, value] : given) call += fmt::format(" {}={}", name, value);
  const Work& work = estimate.work;
  const double intensity = work.flops.value() / work.bytes().value();
  std::string text = fmt::format("{} on {}\n  time       {}, confidence: {}\n", call, device.title,
                                 interval_text(estimate.seconds), confidence_name(estimate.seconds.kind));
  text += fmt::format("  rests on   {}\n", tier_text(estimate));
  text += fmt::format("  bound by   {}\n", estimate.bound == Bound::compute ? "compute" : "memory");
  text += fmt::format("  compute    {}: {} in {}", duration_text(estimate.compute.value()),
                      rate_text(work.flops.value(), "FLOP"), dtype_name(work.math));
  if (const auto peak = device.peak_or_fallback(work.math))
    text += fmt::format(" at {}", rate_text(peak->value(), "FLOP/s"));
  if (estimate.waves > 0) {
    text += fmt::format("; {:.3g} waves of tiles, {:.0f}% of the slots filled", estimate.waves,
                        100 * estimate.wave_efficiency);
  }
  text += fmt::format("\n  memory     {}: weights {}, other reads {}, writes {}",
                      duration_text(estimate.memory.value()), bytes_text(work.weights_read.value()),
                      bytes_text(work.activations_read.value()), bytes_text(work.written.value()));
  if (device.memory_bandwidth) text += fmt::format(" at {}", rate_text(device.memory_bandwidth->value.value(), "B/s"));
  text += fmt::format("\n  intensity  {:.3g} FLOP/byte\n", intensity);
  return wrap_lines(text, 100, 13);
}

Json kernel_json(const KernelFamily& family, GivenParameters given, const KernelEstimate& estimate,
                 const Device& device) {
  Json parameters = Json::object();
  for (const auto& [name, value] : given) parameters.set(name, value);
  return Json::object(
      {{"family", family.name}, {"device", device.name}, {"parameters", parameters}, {"estimate", to_json(estimate)}});
}

}  // namespace foretoken
