#include "app/cli/commands/serve/energy_runs.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "app/cli/output/progress.h"
#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// Nothing where there are several kinds of devices, or nobody is known to lend them.
std::optional<RentedWork> rent_of(const ServingPage& page, const Library& library) {
  const std::vector<ReplicaSummary>& replicas = page.report.replicas;
  const bool is_one_kind = std::all_of(replicas.begin(), replicas.end(), [&](const ReplicaSummary& replica) {
    return replica.device == page.device.name;
  });
  const MaybeFact<double> rent = library.rent_usd_per_hour(page.device);
  if (!rent || !is_one_kind) return std::nullopt;
  return RentedWork{.device = page.device.title,
                    .devices = page.report.devices(),
                    .usd_per_device_hour = rent->value,
                    .price_source = rent->source,
                    .tokens_per_second = page.report.run.metrics.output_throughput,
                    .tokens = "output tokens"};
}

}  // namespace

std::vector<ClockTrial> try_clocks(const ServeFlags& flags, ReplicaFlags replica, const Library& library) {
  if (!flags.goals.goals().any()) {
    throw InputError(
        {.source = "--gpu-clock", .value = "auto", .expected = "--goodput with the latencies that requests must meet"});
  }
  const Device device = library.hardware().device(replica.model.device);
  std::vector<ClockTrial> trials;
  for (const double mhz : clocks_to_try(PowerFlags::top_mhz(device))) {
    show_progress(fmt::format("clock of {:.0f} MHz", mhz));
    replica.power.clock = number_text(mhz);
    std::vector<ReplicaGroup> groups = flags.groups(library, replica);
    StageList stages;
    ServingRunRequest request = flags.request_for(flags.load, groups, stages, library);
    request.step_bounds = false;
    EnergyMeter meter = energy_meter(groups);
    request.observers.push_back(&meter);
    const ServingRun run = run_serving(request);
    trials.push_back({mhz, run.metrics, flags.energy.report(meter, groups, run, library).account});
  }
  return trials;
}

void add_page_energy(ServingPage& page, const ServeFlags& flags, ReplicaFlags replica,
                     const std::vector<ReplicaGroup>& groups, const Library& library) {
  const bool is_known = std::all_of(groups.begin(), groups.end(), [&](const ReplicaGroup& group) {
    return library.power_model(group.models.kernels.device()).has_value();
  });
  if (!is_known || !flags.parts(false).accepts(RunPart::energy)) {
    page.energy_remark = is_known ? "Energy is not reported for this kind of run."
                                  : "The power of these devices is not known, so their energy is not reported.";
    page.rent = rent_of(page, library);
    return;
  }
  show_progress("energy");
  replica.metered = true;
  std::vector<ReplicaGroup> metered = flags.groups_for_load(library, replica, {});
  StageList stages;
  ServingRunRequest request = flags.request_for(flags.load, metered, stages, library);
  request.step_bounds = page.report.run.has_intervals();
  EnergyMeter meter = energy_meter(metered);
  request.observers.push_back(&meter);
  const ServingRun run = run_serving(request);
  page.energy = flags.energy.report(meter, metered, run, library);
  page.energy_remark = fmt::format(
      "GPUs are assumed continuously busy, as with --energy: at their power limit, steps are slower than on a cool "
      "GPU. The run takes {:.4g} s instead of {:.4g} s.",
      run.metrics.duration_s, page.report.run.metrics.duration_s);
}

}  // namespace foretoken
