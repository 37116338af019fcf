#include "report/parts/energy_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr std::string_view step_kind_names[step_kinds] = {"prefill", "decode", "mixed"};

std::string line(std::string_view label, const Estimate& value, double unit = 1) {
  return fmt::format("{:<34} {:>10.4g}   90% interval {:.4g} to {:.4g}\n", label, value.value / unit, value.low / unit,
                     value.high / unit);
}

// Where the boards' energy went: steps with prompts alone, decodes alone or both, and idle power.
std::string shares_text(const EnergyAccount& account) {
  const double all = account.board_joules.value;
  const auto percent = [&](double joules) { return 100 * joules / all; };
  return fmt::format(
      "  of which {:.0f}% in prefill-only steps, {:.0f}% in decode-only steps, {:.0f}% in mixed steps, {:.0f}% idle "
      "power\n",
      percent(account.steps_joules[0].value), percent(account.steps_joules[1].value),
      percent(account.steps_joules[2].value), percent(account.idle_joules.value));
}

Json boards_json(const MeteredBoards& boards) {
  return Json::object({{"device", boards.device},
                       {"replicas", boards.replicas},
                       {"boards_each", boards.boards_each},
                       {"idle_watts", boards.idle_watts},
                       {"limit_watts", boards.limit_watts},
                       {"host_watts", boards.host_watts},
                       {"usd_per_hour", boards.usd_per_hour ? Json(*boards.usd_per_hour) : Json()},
                       {"price_source", boards.price_source}});
}

Json optional_json(const std::optional<Estimate>& value) {
  return value ? to_json(*value) : Json();
}

}  // namespace

std::string energy_assumptions(const EnergyReport& report) {
  std::string text = fmt::format("Assumed: power supply efficiency {:g}, PUE {:g}, {:g} g CO2e per kWh",
                                 report.rates.supply_efficiency, report.rates.pue, report.rates.carbon_g_per_kwh);
  if (report.rates.electricity_usd_per_kwh > 0) {
    text += fmt::format(", {:g} USD per kWh", report.rates.electricity_usd_per_kwh);
  }
  text += ".\n";
  for (const MeteredBoards& boards : report.boards) {
    text += fmt::format("{}: host {:.0f} W per board, ", boards.device, boards.host_watts);
    text += boards.usd_per_hour ? fmt::format("{:g} USD per hour ({}).\n", *boards.usd_per_hour, boards.price_source)
                                : "no known price (set {gpu_price}).\n";
  }
  text += "Intervals cover board power and run time; host, facility and prices are taken as given.\n";
  return text;
}

std::string energy_text(const EnergyReport& report) {
  const EnergyAccount& account = report.account;
  if (account.board_joules.value == 0) return "Energy and cost: no request ran\n";
  std::string text = fmt::format("Energy and cost ({}, confidence: {})\n", counted(account.boards, "board"),
                                 confidence_name(account.board_joules.kind));
  text += line("Boards (kJ)", account.board_joules, 1e3);
  text += shares_text(account);
  text += line("Mean power of all boards (W)", account.mean_board_watts);
  text += fmt::format("{:<34} {:>10.4g}   of limits of {:.4g}\n", "Peak second (W)", account.peak_board_watts,
                      account.limit_watts);
  text += line("Boards, J per output token", account.board_joules_per_output_token);
  text += line("Facility (kWh)", account.kwh);
  text += line("Facility, J per output token", account.facility_joules_per_output_token);
  text += line("Facility, J per request", account.facility_joules_per_request);
  text += line("g CO2e per 1,000 tokens", account.carbon_g_per_thousand_tokens);
  if (account.usd) {
    text += line("USD", *account.usd);
    text += line("USD per million tokens", *account.usd_per_million_tokens);
    text += line("USD per million output tokens", *account.usd_per_million_output_tokens);
  }
  return text + wrap_lines(energy_assumptions(report), page_width(), 2);
}

Json energy_json(const EnergyReport& report) {
  const EnergyAccount& account = report.account;
  Json steps = Json::object();
  for (size_t i = 0; i < step_kinds; ++i) steps.set(std::string(step_kind_names[i]), to_json(account.steps_joules[i]));
  Json replicas = Json::array();
  for (const double joules : account.joules_of_replica) replicas.push(joules);
  Json boards = Json::array();
  for (const MeteredBoards& group : report.boards) boards.push(boards_json(group));
  return Json::object({{"boards", account.boards},
                       {"board_groups", std::move(boards)},
                       {"board_joules", to_json(account.board_joules)},
                       {"steps_joules_above_idle", std::move(steps)},
                       {"idle_joules", to_json(account.idle_joules)},
                       {"replica_joules", std::move(replicas)},
                       {"mean_board_watts", to_json(account.mean_board_watts)},
                       {"peak_board_watts", account.peak_board_watts},
                       {"limit_watts", account.limit_watts},
                       {"host_joules", to_json(account.host_joules)},
                       {"facility_joules", to_json(account.facility_joules)},
                       {"kwh", to_json(account.kwh)},
                       {"board_joules_per_output_token", to_json(account.board_joules_per_output_token)},
                       {"facility_joules_per_output_token", to_json(account.facility_joules_per_output_token)},
                       {"facility_joules_per_request", to_json(account.facility_joules_per_request)},
                       {"carbon_g", to_json(account.carbon_g)},
                       {"carbon_g_per_thousand_tokens", to_json(account.carbon_g_per_thousand_tokens)},
                       {"usd", optional_json(account.usd)},
                       {"usd_per_million_tokens", optional_json(account.usd_per_million_tokens)},
                       {"usd_per_million_output_tokens", optional_json(account.usd_per_million_output_tokens)},
                       {"psu_efficiency", report.rates.supply_efficiency},
                       {"pue", report.rates.pue},
                       {"carbon_g_per_kwh", report.rates.carbon_g_per_kwh},
                       {"electricity_usd_per_kwh", report.rates.electricity_usd_per_kwh}});
}

std::string clock_search_text(std::span<const ClockTrial> trials) {
  Table table({{"MHz"},
               {"good %"},
               {"mean TTFT (ms)"},
               {"mean TPOT (ms)"},
               {"boards (W)"},
               {"boards, J/token"},
               {"facility, J/token"},
               {"", Table::Align::left}});
  const size_t best = best_clock(trials);
  for (size_t i = 0; i < trials.size(); ++i) {
    const ClockTrial& trial = trials[i];
    table.add({fmt::format("{:.0f}", trial.mhz), fmt::format("{:.1f}", 100 * trial.good_share()),
               fmt::format("{:.2f}", trial.metrics.ttft.mean_ms), fmt::format("{:.2f}", trial.metrics.tpot.mean_ms),
               fmt::format("{:.0f}", trial.energy.mean_board_watts.value),
               fmt::format("{:.4g}", trial.energy.board_joules_per_output_token.value),
               fmt::format("{:.4g}", trial.energy.facility_joules_per_output_token.value), i == best ? "<- best" : ""});
  }
  const double saved = 1 - trials[best].energy.facility_joules.value / trials.front().energy.facility_joules.value;
  std::string text = "Clocks tried (the run above uses the best one)\n" + table.text();
  text += trials[best].meets_goals()
              ? fmt::format("It uses {:.1f}% less energy than the top clock, and 99% of requests meet their goals.\n",
                            100 * saved)
              : "No clock lets 99% of requests meet their goals.\n";
  return text;
}

Json clock_search_json(std::span<const ClockTrial> trials) {
  Json all = Json::array();
  for (const ClockTrial& trial : trials) {
    all.push(Json::object({{"mhz", trial.mhz},
                           {"good_share", trial.good_share()},
                           {"mean_ttft_ms", trial.metrics.ttft.mean_ms},
                           {"mean_tpot_ms", trial.metrics.tpot.mean_ms},
                           {"mean_board_watts", trial.energy.mean_board_watts.value},
                           {"board_joules_per_output_token", trial.energy.board_joules_per_output_token.value},
                           {"facility_joules_per_output_token", trial.energy.facility_joules_per_output_token.value}}));
  }
  const ClockTrial& best = trials[best_clock(trials)];
  return Json::object({{"best_mhz", best.mhz}, {"meets_goals", best.meets_goals()}, {"trials", std::move(all)}});
}

}  // namespace foretoken
