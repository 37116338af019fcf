// The two constants of a row-stationary chip that no paper prints: energy of an effective MAC and idle power.
#include <gtest/gtest.h>

#include <span>

#include "accelerator/row_stationary/estimate.h"
#include "accelerator/row_stationary/test_support.h"
#include "base/error.h"
#include "base/statistics.h"

namespace foretoken::row_stationary_power_fit_test {

const std::filesystem::path power_test_data = FORETOKEN_SOURCE_DIR "/data";

struct RowStationaryPower {
  Joules effective_mac_energy;
  Watts idle_power;
};

// Least squares of the relative error of power over `rows` (two or more that differ in their rate of effective MACs),
// with the energy of the buffer as the chip states it.
RowStationaryPower fit_row_stationary_power(const RowStationaryChip& chip, std::span<const PublishedConvLayer> rows) {
  // power = mac_energy * mac_rate + idle + buffer_power; divided by power, the two unknowns solve 2 x 2 equations.
  double rate_rate = 0, rate_one = 0, one_one = 0, rate_target = 0, one_target = 0;
  for (const PublishedConvLayer& row : rows) {
    const RowStationaryResult result = estimate_row_stationary(chip, row.layer);
    const double power = row.power.value();
    const double rate = row.layer.macs() * (1 - row.layer.ifmap_zero_share) / result.total.value() / power;
    const double one = 1 / power;
    const double target = 1 - (result.energy.buffer / result.total).value() / power;
    rate_rate += rate * rate;
    rate_one += rate * one;
    one_one += one * one;
    rate_target += rate * target;
    one_target += one * target;
  }
  const double determinant = rate_rate * one_one - rate_one * rate_one;
  ensure(determinant > 0, "two constants need two rows of different rates");
  return {.effective_mac_energy = Joules((rate_target * one_one - one_target * rate_one) / determinant),
          .idle_power = Watts((one_target * rate_rate - rate_target * rate_one) / determinant)};
}

TEST(RowStationaryPowerFit, the_shipped_constants_are_the_fit_to_alexnet) {
  const RowStationaryChip chip = eyeriss_v1(power_test_data);
  const RowStationaryPower fit = fit_row_stationary_power(chip, eyeriss_layers("alexnet"));
  EXPECT_NEAR(fit.effective_mac_energy / chip.effective_mac_energy, 1, 1e-3);
  EXPECT_NEAR(fit.idle_power / chip.idle_power, 1, 1e-3);
}

TEST(RowStationaryPowerFit, a_layer_left_out_of_the_fit_is_predicted_within_a_tenth) {
  const std::vector<PublishedConvLayer> rows = eyeriss_layers("alexnet");
  for (size_t left_out = 0; left_out < rows.size(); ++left_out) {
    std::vector<PublishedConvLayer> others = rows;
    others.erase(others.begin() + static_cast<ptrdiff_t>(left_out));
    RowStationaryChip chip = eyeriss_v1(power_test_data);
    const RowStationaryPower fit = fit_row_stationary_power(chip, others);
    chip.effective_mac_energy = fit.effective_mac_energy;
    chip.idle_power = fit.idle_power;
    const Watts predicted = estimate_row_stationary(chip, rows[left_out].layer).power();
    EXPECT_NEAR(predicted / rows[left_out].power, 1, 0.1) << rows[left_out].layer.name;
  }
}

TEST(RowStationaryPowerFit, constants_that_made_the_rows_are_found_again) {
  RowStationaryChip chip = eyeriss_v1(power_test_data);
  chip.effective_mac_energy = Joules(3e-12);
  chip.idle_power = Watts(0.05);
  std::vector<PublishedConvLayer> rows = eyeriss_layers("alexnet");
  for (PublishedConvLayer& row : rows) row.power = estimate_row_stationary(chip, row.layer).power();
  const RowStationaryPower fit = fit_row_stationary_power(chip, rows);
  EXPECT_NEAR(fit.effective_mac_energy.value(), 3e-12, 1e-18);
  EXPECT_NEAR(fit.idle_power.value(), 0.05, 1e-9);
}

}  // namespace foretoken::row_stationary_power_fit_test
