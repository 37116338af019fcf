#include "app/cli/flags/energy_flags.h"

#include <algorithm>
#include <array>

namespace foretoken {

void EnergyFlags::declare(Options& options) {
  options.heading("Energy and cost");
  options.flag("--energy", energy,
               "Also report power, energy, cost and emissions of the run, with GPUs assumed continuously busy "
               "(--sustained). Any flag below, --power-limit or --gpu-clock turns this on");
  options.number("--host-power", host_watts, {.least = -1, .most = 100'000},
                 "Power of the rest of the node per GPU, in W; -1 = from the node's rating, otherwise 44% of the GPU's "
                 "power limit");
  options.number("--psu-efficiency", rates.supply_efficiency, {.least = 0.5, .most = 1},
                 "Efficiency of the power supplies (the default is 80 PLUS Titanium)");
  options.number("--pue", rates.pue, {.least = 1, .most = 5},
                 "Power usage effectiveness: energy of the data center divided by that of its computers (the default "
                 "is the mean of 2023)");
  options.number("--carbon-intensity", rates.carbon_g_per_kwh, {.least = 0, .most = 5000},
                 "Carbon intensity of the grid, in g CO2e per kWh (the default is the world mean of 2024)");
  options.money("--gpu-price,--price", gpu_price, {.least = -1, .most = 10'000},
                "Rent in USD per GPU-hour; -1 = a public list price (data/prices/rent.json)");
  options.money("--electricity-price", rates.electricity_usd_per_kwh, {.least = 0, .most = 100},
                "Electricity price in USD per kWh, added to the rent; leave it at 0 if the rent includes electricity");
}

bool EnergyFlags::wanted(const Options& options) const {
  constexpr std::array flags = {"--host-power", "--psu-efficiency", "--pue",       "--carbon-intensity",
                                "--gpu-price",  "--power-limit",    "--gpu-clock", "--electricity-price"};
  return energy || std::any_of(flags.begin(), flags.end(), [&](const char* flag) { return options.was_given(flag); });
}

MeteredBoards EnergyFlags::boards_of(const ReplicaGroup& group, const Library& library) const {
  const Device& device = group.models.kernels.device();
  MeteredBoards boards =
      metered_boards(device, library.node_of(device, group.placement), *group.models.power, rates.supply_efficiency);
  boards.replicas = group.count;
  boards.boards_each = group.cache_devices();
  if (host_watts >= 0) boards.host_watts = host_watts;
  if (gpu_price >= 0) {
    boards.usd_per_hour = gpu_price;
    boards.price_source = "--gpu-price";
  } else if (const MaybeFact<double> rent = library.rent_usd_per_hour(device)) {
    boards.usd_per_hour = rent->value;
    boards.price_source = rent->source;
  }
  return boards;
}

EnergyReport EnergyFlags::report(const EnergyMeter& meter, const std::vector<ReplicaGroup>& groups,
                                 const ServingRun& run, const Library& library) const {
  EnergyReport report{.boards = {}, .rates = rates, .account = {}};
  for (const ReplicaGroup& group : groups) report.boards.push_back(boards_of(group, library));
  const Headline seconds = run.headline([](const ServingMetrics& metrics) { return metrics.duration_s; });
  const double least = 0.01 * seconds.value;  // seeds that differ widely would have none
  report.account = energy_account(meter, report.boards, rates, run.metrics,
                                  {.value = seconds.value, .low = std::max(least, seconds.low), .high = seconds.high});
  return report;
}

EnergyMeter energy_meter(const std::vector<ReplicaGroup>& groups) {
  std::vector<StepWatts> watts;
  for (const ReplicaGroup& group : groups) {
    watts.insert(watts.end(), static_cast<size_t>(group.count),
                 watts_of_replica(*group.sustained_grid, group.config.options.lock_step_ranks));
  }
  return EnergyMeter(std::move(watts));
}

}  // namespace foretoken
