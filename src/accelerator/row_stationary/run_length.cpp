#include "accelerator/row_stationary/run_length.h"

#include "base/error.h"

namespace foretoken {

double run_length_ratio(double zero_share) {
  ensure(zero_share >= 0 && zero_share <= 1, "a share lies between 0 and 1");
  constexpr double bits_per_pair = 64.0 / 3, bits_per_value = 16;
  constexpr int values_of_longest_pair = 32;
  // (1 - z) / (1 - z^32) = 1 / (1 + z + ... + z^31), which is safe at z = 1.
  double sum = 0;
  for (int i = 0; i < values_of_longest_pair; ++i) sum = sum * zero_share + 1;
  return bits_per_pair / bits_per_value / sum;
}

}  // namespace foretoken
