// How old facts are that change with the world: prices, and calibrations of software that goes on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

struct DatedFact {
  std::string what;  // h100_sxm
  std::string date;  // 2026-03 or 2026-03-14; empty = nobody says
};

// Of all prices in data/prices/rent.json, by device.
std::vector<DatedFact> rent_dates(const std::filesystem::path& path);

// Whole months from one date to another (years and months count, days do not); nothing where one is no date.
std::optional<int> months_between(std::string_view date, std::string_view today);

// Facts without a date, and those at least `most_months` old on that day.
std::vector<DatedFact> aged_facts(const std::vector<DatedFact>& facts, std::string_view today, int most_months);

}  // namespace foretoken
