#include "base/rounding.h"

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {

double rounded_to_digits(double value, int digits) {
  return parse_number(fmt::format("{:.{}g}", value, digits)).value_or(value);
}

}  // namespace foretoken
