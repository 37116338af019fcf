#include "serving/load/trace_date.h"

namespace foretoken {
namespace {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Exactly so many digits, of a number from `least` to `most`.
  std::optional<int64_t> digits(size_t count, int64_t least, int64_t most) {
    if (rest_.size() < count) return std::nullopt;
    int64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      const std::optional<int> digit = next_digit();
      if (!digit) return std::nullopt;
      value = value * 10 + *digit;
    }
    if (value < least || value > most) return std::nullopt;
    return value;
  }
  std::optional<int> next_digit() {
    if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') return std::nullopt;
    const int digit = rest_.front() - '0';
    rest_.remove_prefix(1);
    return digit;
  }

 private:
  std::string_view rest_;
};

// Days from 1970-01-01. H. Hinnant, "chrono-compatible low-level date algorithms" (days_from_civil).
int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = year / 400;  // years here are never negative
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

// "Z", "+00:00", "-07:00" or nothing, in seconds.
std::optional<int64_t> parse_offset(Cursor& cursor) {
  if (cursor.done() || cursor.take('Z')) return 0;
  const bool ahead = cursor.take('+');
  if (!ahead && !cursor.take('-')) return std::nullopt;
  const auto hours = cursor.digits(2, 0, 23);
  const bool has_colon = cursor.take(':');
  const auto minutes = hours && has_colon ? cursor.digits(2, 0, 59) : std::nullopt;
  if (!minutes) return std::nullopt;
  return (ahead ? 1 : -1) * (*hours * 3600 + *minutes * 60);
}

// ".6805900": picoseconds.
std::optional<int64_t> parse_fraction(Cursor& cursor) {
  if (!cursor.take('.')) return 0;
  int64_t value = 0, unit = 1'000'000'000'000;
  bool any = false;
  for (std::optional<int> digit = cursor.next_digit(); digit; digit = cursor.next_digit()) {
    any = true;
    unit /= 10;
    value += *digit * unit;
  }
  if (!any) return std::nullopt;
  return value;
}

}  // namespace

std::optional<DateTime> parse_date_time(std::string_view text) {
  Cursor cursor(text);
  const auto year = cursor.digits(4, 1, 9999);
  if (!year || !cursor.take('-')) return std::nullopt;
  const auto month = cursor.digits(2, 1, 12);
  if (!month || !cursor.take('-')) return std::nullopt;
  const auto day = cursor.digits(2, 1, 31);
  if (!day || (!cursor.take(' ') && !cursor.take('T'))) return std::nullopt;
  const auto hour = cursor.digits(2, 0, 23);
  if (!hour || !cursor.take(':')) return std::nullopt;
  const auto minute = cursor.digits(2, 0, 59);
  if (!minute || !cursor.take(':')) return std::nullopt;
  const auto second = cursor.digits(2, 0, 60);
  if (!second) return std::nullopt;
  const auto fraction = parse_fraction(cursor);
  if (!fraction) return std::nullopt;
  const auto offset = parse_offset(cursor);
  if (!offset || !cursor.done()) return std::nullopt;
  return DateTime{
      .seconds = days_since_1970(*year, *month, *day) * 86400 + *hour * 3600 + *minute * 60 + *second - *offset,
      .picoseconds = *fraction};
}

}  // namespace foretoken
