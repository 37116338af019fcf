#include "accelerator/row_stationary/power_fit.h"

#include "accelerator/row_stationary/estimate.h"
#include "base/error.h"

namespace foretoken {

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

}  // namespace foretoken
