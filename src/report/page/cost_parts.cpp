#include "report/page/cost_parts.h"

#include <fmt/format.h>

namespace foretoken {

void add_rent(HtmlPage& page, const RentedWork& work) {
  const double usd_per_hour = static_cast<double>(work.devices) * work.usd_per_device_hour;
  std::vector<std::vector<std::string>> rows = {{"Rent per hour", fmt::format("{:.2f} USD", usd_per_hour)}};
  if (work.tokens_per_second > 0) {
    rows.push_back({fmt::format("Per million {}", work.tokens),
                    fmt::format("{:.3g} USD", usd_per_hour / 3600 / work.tokens_per_second * 1e6)});
  }
  page.table({"", "predicted"}, rows);
  page.paragraph(fmt::format("{} x {} at {:g} USD per hour each ({}).", work.devices, work.device,
                             work.usd_per_device_hour, work.price_source));
}

void add_energy(HtmlPage& page, const EnergyReport& report) {
  const EnergyAccount& account = report.account;
  if (account.board_joules.value == 0) return;
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* name, const Estimate& value, const char* unit, double scale = 1) {
    rows.push_back({name, fmt::format("{:.4g} {}", value.value / scale, unit), fmt::format("{:.4g}", value.low / scale),
                    fmt::format("{:.4g}", value.high / scale)});
  };
  add("Power of all boards, mean", account.mean_board_watts, "W");
  add("Boards, per output token", account.board_joules_per_output_token, "J");
  add("Facility, per output token", account.facility_joules_per_output_token, "J");
  add("Facility, per request", account.facility_joules_per_request, "J");
  add("Facility, the whole run", account.kwh, "kWh");
  add("CO2e per 1,000 tokens", account.carbon_g_per_thousand_tokens, "g");
  if (account.usd) {
    add("Cost of the run", *account.usd, "USD");
    add("Per million tokens, in and out", *account.usd_per_million_tokens, "USD");
    add("Per million output tokens", *account.usd_per_million_output_tokens, "USD");
  }
  page.table({"", "predicted", "low (90%)", "high"}, rows);
  page.paragraph(energy_assumptions(report));
}

}  // namespace foretoken
