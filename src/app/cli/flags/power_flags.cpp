#include "app/cli/flags/power_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// Boards refuse to go lower: nvidia-smi shows 200 W of 700 for an H100 and 210 MHz of 1,980.
constexpr double least_limit_share = 0.25, least_clock_share = 0.1;

}  // namespace

void PowerFlags::declare(Options& options) {
  options.heading("Power and clocks");
  options.number(
      "--power-limit", limit_watts, {.least = 0, .most = 5000},
      "Power limit of each GPU in W (nvidia-smi -pl); 0 = the default limit of the GPU. Any other value, even "
      "the default limit, turns on --energy, which assumes that GPUs are continuously busy");
  options.text("--gpu-clock", clock,
               "Maximum GPU clock in MHz (nvidia-smi -lgc); auto = the clock with the lowest energy that meets "
               "--goodput. Any value turns on --energy [the boost clock]");
}

double PowerFlags::top_mhz(const Device& device) {
  if (device.boost_clock) return device.boost_clock->value.value() / mega;
  throw InputError({.source = "--gpu-clock",
                    .path = device.name,
                    .value = "no clock is known",
                    .expected = "a device whose file gives boost_clock_mhz"});
}

PowerModel PowerFlags::capped(const PowerModel& board, const Device& device) const {
  PowerCaps caps;
  if (limit_watts > 0) {
    const double least = least_limit_share * board.limit_watts();
    if (limit_watts < least) {
      throw InputError({.source = "--power-limit",
                        .value = number_text(limit_watts),
                        .expected = fmt::format("at least {:.0f} W: {} has a limit of {:.0f} W", least, device.name,
                                                board.limit_watts())});
    }
    caps.limit_watts = limit_watts;
  }
  if (!clock.empty()) {
    const double top = top_mhz(device);
    const std::optional<double> mhz = parse_number(clock);
    if (!mhz || *mhz < least_clock_share * top) {
      throw InputError(
          {.source = "--gpu-clock",
           .value = printable(clock),
           .expected = fmt::format("at least {:.0f} MHz ({} reaches {:.0f} MHz), or auto (for the whole run only)",
                                   least_clock_share * top, device.name, top)});
    }
    caps.clock_hertz = *mhz * mega;
  }
  return board.capped(caps);
}

}  // namespace foretoken
