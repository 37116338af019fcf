#include "report/parts/energy_report.h"

#include <gtest/gtest.h>

#include "base/simulated_time.h"

namespace foretoken::energy_report_test {

EnergyReport some_report(std::optional<double> usd_per_hour) {
  EnergyMeter meter({[](const SustainedGrid::Step&) { return exactly(300); }});
  meter.step_ran({.begin = 0, .end = to_picoseconds(Seconds(10)), .prefill_tokens = 5});
  EnergyReport report{.boards = {{.device = "some_gpu",
                                  .idle_watts = 100,
                                  .limit_watts = 700,
                                  .host_watts = 200,
                                  .usd_per_hour = usd_per_hour,
                                  .price_source = "a lender"}},
                      .rates = {.supply_efficiency = 1, .pue = 1.2},
                      .account = {}};
  const ServingMetrics metrics{.completed = 4, .input_tokens = 100, .output_tokens = 100};
  report.account = energy_account(meter, report.boards, report.rates, metrics, exactly(10));
  return report;
}

TEST(EnergyReport, tells_energy_cost_and_what_was_taken) {
  const std::string text = energy_text(some_report(36));
  for (const char* part : {"Boards (kJ)                                 4 ", "75% in prefill-only steps", "25% idle",
                           "J per output token", "72", "PUE 1.2", "some_gpu: host 200 W", "36 USD per hour (a lender)",
                           "USD per million output tokens", "1000"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(EnergyReport, without_a_price_it_says_how_to_give_one) {
  const EnergyReport report = some_report({});
  EXPECT_NE(energy_text(report).find("{gpu_price}"), std::string::npos);
  EXPECT_EQ(energy_json(report).find("usd")->kind(), Json::Kind::null);
}

TEST(EnergyReport, a_run_without_requests_has_none) {
  EnergyReport report = some_report(36);
  const EnergyMeter idle({[](const SustainedGrid::Step&) { return exactly(300); }});
  report.account = energy_account(idle, report.boards, report.rates, {}, exactly(0));
  EXPECT_EQ(energy_text(report), "Energy and cost: no request ran\n");
  EXPECT_EQ(energy_json(report).find("board_joules")->find("value")->number(), 0);
}

TEST(EnergyReport, json_has_the_same_numbers) {
  const Json json = energy_json(some_report(36));
  EXPECT_EQ(json.find("board_joules")->find("value")->number(), 4000);
  EXPECT_EQ(json.find("steps_joules_above_idle")->find("prefill")->find("value")->number(), 3000);
  EXPECT_EQ(json.find("idle_joules")->find("value")->number(), 1000);
  EXPECT_EQ(json.find("facility_joules")->find("value")->number(), 1.2 * (4000 + 2000));
  EXPECT_EQ(json.find("peak_board_watts")->number(), 400);
  EXPECT_EQ(json.find("board_groups")->items().front().find("device")->string(), "some_gpu");
}

}  // namespace foretoken::energy_report_test
