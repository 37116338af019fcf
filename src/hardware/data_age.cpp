#include "hardware/data_age.h"

#include "base/json.h"
#include "base/text.h"

namespace foretoken {
namespace {

struct YearMonth {
  int64_t year = 0, month = 0;
};

// Of 2026-03 and 2026-03-14.
std::optional<YearMonth> year_month(std::string_view date) {
  const std::vector<std::string_view> parts = split(date, "-");
  if (parts.size() < 2 || parts.size() > 3 || parts[0].size() != 4 || parts[1].size() != 2) return std::nullopt;
  const std::optional<int64_t> year = parse_integer(parts[0]), month = parse_integer(parts[1]);
  if (!year || !month || *year < 1970 || *month < 1 || *month > 12) return std::nullopt;
  if (parts.size() == 3) {
    const std::optional<int64_t> day = parse_integer(parts[2]);
    if (!day || *day < 1 || *day > 31) return std::nullopt;
  }
  return YearMonth{.year = *year, .month = *month};
}

}  // namespace

std::vector<DatedFact> rent_dates(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  const JsonView file(document, path.string());
  const std::optional<JsonView> dates = file.find("as_of");
  std::vector<DatedFact> facts;
  for (const auto& [device, entry] : file.at("usd_per_hour").members()) {
    const std::optional<JsonView> date = dates ? dates->find(device) : std::nullopt;
    facts.push_back({.what = device, .date = date ? date->string() : ""});
  }
  return facts;
}

std::optional<int> months_between(std::string_view date, std::string_view today) {
  const std::optional<YearMonth> then = year_month(date), now = year_month(today);
  if (!then || !now) return std::nullopt;
  return static_cast<int>(12 * (now->year - then->year) + now->month - then->month);
}

std::vector<DatedFact> aged_facts(const std::vector<DatedFact>& facts, std::string_view today, int most_months) {
  std::vector<DatedFact> aged;
  for (const DatedFact& fact : facts) {
    const std::optional<int> months = months_between(fact.date, today);
    if (!months || *months >= most_months) aged.push_back(fact);
  }
  return aged;
}

}  // namespace foretoken
