#include "serving/energy/energy_account.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "serving/test_support.h"

namespace foretoken::energy_account_test {

const HardwareCatalogue& hardware() {
  static const HardwareCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/hardware");
  return catalogue;
}

// Ten seconds of which half are steps of 400 W beyond idle.
EnergyMeter some_meter() {
  EnergyMeter meter({[](const SustainedGrid::Step&) {
    return Estimate{.value = 400, .low = 380, .high = 420, .kind = Confidence::interpolated};
  }});
  meter.step_ran({.begin = 0, .end = 5 * one_second, .decode_tokens = 1});
  return meter;
}

const ServingMetrics some_metrics{.completed = 10, .input_tokens = 1000, .output_tokens = 500};

MeteredBoards two_boards() {
  return {.device = "d",
          .replicas = 1,
          .boards_each = 2,
          .idle_watts = 100,
          .limit_watts = 700,
          .host_watts = 50,
          .usd_per_hour = 3.6,
          .price_source = "test"};
}

EnergyAccount account_of(const MeteredBoards& boards, const FacilityRates& rates, const Estimate& seconds) {
  return energy_account(some_meter(), {boards}, rates, some_metrics, seconds);
}

TEST(EnergyAccount, adds_steps_idle_power_host_supplies_and_facility) {
  const EnergyAccount account =
      account_of(two_boards(), {.supply_efficiency = 0.8, .pue = 1.5, .carbon_g_per_kwh = 360}, exactly(10));
  EXPECT_DOUBLE_EQ(account.board_joules.value, 400 * 5 + 2 * 100 * 10);
  EXPECT_DOUBLE_EQ(account.joules_of_replica.front(), account.board_joules.value);
  EXPECT_DOUBLE_EQ(account.host_joules.value, 2 * 50 * 10);
  EXPECT_DOUBLE_EQ(account.facility_joules.value, (4000 + 1000) / 0.8 * 1.5);
  EXPECT_DOUBLE_EQ(account.mean_board_watts.value, 400);
  EXPECT_DOUBLE_EQ(account.peak_board_watts, 600);
  EXPECT_DOUBLE_EQ(account.limit_watts, 1400);
  EXPECT_DOUBLE_EQ(account.facility_joules_per_output_token.value, 9375.0 / 500);
  EXPECT_DOUBLE_EQ(account.facility_joules_per_request.value, 9375.0 / 10);
  EXPECT_DOUBLE_EQ(account.carbon_g.value, 9375 / 3.6e6 * 360);
  EXPECT_DOUBLE_EQ(account.carbon_g_per_thousand_tokens.value, account.carbon_g.value / 1.5);
}

TEST(EnergyAccount, rent_is_paid_for_all_boards_and_electricity_on_top_of_it) {
  const EnergyAccount rented = account_of(two_boards(), {}, exactly(10));
  EXPECT_DOUBLE_EQ(rented.usd->value, 2 * 3.6 / 3600 * 10);
  EXPECT_DOUBLE_EQ(rented.usd_per_million_tokens->value, rented.usd->value * 1e6 / 1500);
  EXPECT_DOUBLE_EQ(rented.usd_per_million_output_tokens->value, rented.usd->value * 1e6 / 500);
  const EnergyAccount owned = account_of(two_boards(), {.electricity_usd_per_kwh = 0.2}, exactly(10));
  EXPECT_DOUBLE_EQ(owned.usd->value, rented.usd->value + 0.2 * owned.kwh.value);
  MeteredBoards unpriced = two_boards();
  unpriced.usd_per_hour.reset();
  EXPECT_FALSE(account_of(unpriced, {}, exactly(10)).usd);
}

TEST(EnergyAccount, doubts_about_power_and_time_both_count) {
  const Estimate seconds{.value = 10, .low = 9, .high = 11};
  const EnergyAccount sure = account_of(two_boards(), {}, exactly(10));
  const EnergyAccount unsure = account_of(two_boards(), {}, seconds);
  EXPECT_NEAR(sure.board_joules.low, 380 * 5 + 2000, 1e-9);
  EXPECT_NEAR(sure.board_joules.high, 420 * 5 + 2000, 1e-9);
  EXPECT_LT(unsure.board_joules.low, sure.board_joules.low);
  EXPECT_GT(unsure.board_joules.high, sure.board_joules.high);
  EXPECT_DOUBLE_EQ(unsure.board_joules.value, sure.board_joules.value);
  EXPECT_DOUBLE_EQ(unsure.usd->high, 1.1 * unsure.usd->value);
}

TEST(HostPower, of_an_h100_node_is_what_was_measured_at_the_wall) {
  const Device h100 = hardware().device("h100_sxm");
  const double watts = host_watts_per_board(h100, hardware().node_with(h100), 0.96);
  EXPECT_NEAR(8 * (watts + 700) / 0.96, 8400, 1);
}

TEST(HostPower, without_a_rated_node_it_is_that_nodes_share_of_the_boards_limit) {
  const Device l4 = hardware().device("l4");
  EXPECT_NEAR(host_watts_per_board(l4, std::nullopt, 0.96) / l4.power_limit->value.value(),
              host_watts_per_board(hardware().device("h100_sxm"), hardware().node("hgx_h100"), 0.96) / 700, 0.005);
}

}  // namespace foretoken::energy_account_test
