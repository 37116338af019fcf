#include "serving/energy/energy_account.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/units.h"

namespace foretoken {
namespace {

constexpr double joules_per_kwh = 3.6e6;

Estimate sum(const Estimate& a, const Estimate& b) {
  const std::array<Estimate, 2> parts = {a, b};
  return sum_of_correlated(parts);
}

Estimate per(const Estimate& total, int64_t count) {
  return count > 0 ? scaled(total, 1 / static_cast<double>(count)) : Estimate{};
}

}  // namespace

double host_watts_per_board(const Device& device, const std::optional<Node>& node, double supply_efficiency) {
  constexpr double drawn_of_rated = 8.4 / 10.2;
  constexpr double host_of_board_limit = 0.44;  // (8.4 kW x 0.96 - 8 x 700 W) / (8 x 700 W)
  ensure(device.power_limit.has_value(), "a metered board has a power limit");
  const double board = device.power_limit->value.value();
  if (!node || !node->power_limit) return host_of_board_limit * board;
  const double all = drawn_of_rated * node->power_limit->value.value() * supply_efficiency;
  return std::max(0.0, all / node->device_count - board);
}

MeteredBoards metered_boards(const Device& device, const std::optional<Node>& node, const PowerModel& power,
                             double supply_efficiency) {
  return {.device = device.name,
          .idle_watts = power.idle_watts(),
          .limit_watts = power.limit_watts(),
          .host_watts = host_watts_per_board(device, node, supply_efficiency),
          .usd_per_hour = std::nullopt,
          .price_source = ""};
}

EnergyAccount energy_account(const EnergyMeter& meter, const std::vector<MeteredBoards>& boards,
                             const FacilityRates& rates, const ServingMetrics& metrics, const Estimate& duration_s) {
  EnergyAccount account;
  double idle_watts = 0, host_watts = 0, usd_per_hour = 0;
  bool priced = true;
  for (const MeteredBoards& group : boards) {
    const auto count = static_cast<double>(group.boards());
    account.boards += group.boards();
    account.limit_watts += count * group.limit_watts;
    idle_watts += count * group.idle_watts;
    host_watts += count * group.host_watts;
    usd_per_hour += count * group.usd_per_hour.value_or(0);
    priced = priced && group.usd_per_hour.has_value();
    const double idle_each = static_cast<double>(group.boards_each) * group.idle_watts * duration_s.value;
    account.joules_of_replica.insert(account.joules_of_replica.end(), static_cast<size_t>(group.replicas), idle_each);
  }
  ensure(account.joules_of_replica.size() == meter.joules_of_replica().size(), "all replicas are metered");
  for (size_t i = 0; i < account.joules_of_replica.size(); ++i) {
    account.joules_of_replica[i] += meter.joules_of_replica()[i];
  }

  const double seconds = duration_s.value;
  if (seconds == 0) return account;
  ensure(idle_watts > 0 && duration_s.low > 0, "boards are on, and a run takes time");
  account.steps_joules = meter.joules();
  account.idle_joules = scaled(duration_s, idle_watts);
  account.host_joules = scaled(duration_s, host_watts);
  account.mean_board_watts = scaled(sum(sum_of_correlated(meter.joules()), exactly(idle_watts * seconds)), 1 / seconds);
  account.board_joules = product_of_independent(account.mean_board_watts, duration_s);
  account.facility_joules = scaled(sum(account.board_joules, account.host_joules), rates.pue / rates.supply_efficiency);
  account.peak_board_watts = std::max(account.mean_board_watts.value, meter.peak_watts() + idle_watts);

  const int64_t tokens = metrics.input_tokens + metrics.output_tokens;
  account.board_joules_per_output_token = per(account.board_joules, metrics.output_tokens);
  account.facility_joules_per_output_token = per(account.facility_joules, metrics.output_tokens);
  account.facility_joules_per_request = per(account.facility_joules, metrics.completed);
  account.kwh = scaled(account.facility_joules, 1 / joules_per_kwh);
  account.carbon_g = scaled(account.kwh, rates.carbon_g_per_kwh);
  account.carbon_g_per_thousand_tokens = scaled(per(account.carbon_g, tokens), 1e3);
  if (priced) {
    const Estimate rent = scaled(duration_s, usd_per_hour / seconds_per_hour);
    account.usd = sum(rent, scaled(account.kwh, rates.electricity_usd_per_kwh));
    account.usd_per_million_tokens = scaled(per(*account.usd, tokens), 1e6);
    account.usd_per_million_output_tokens = scaled(per(*account.usd, metrics.output_tokens), 1e6);
  }
  return account;
}

}  // namespace foretoken
