// The devices on offer, what they cost and what may be spent.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "plan/serving/serving_planner.h"

namespace foretoken {

struct OfferFlags {
  std::vector<std::string> hardware, prices;
  std::string budget_text;
  double budget_usd_per_hour = 0;

  void declare(Options& options);
  std::vector<HardwareChoice> choices(const Library& library, Tier tier, const PlacementSpec& placement) const;
  std::map<std::string, std::string> device_files(const Library& library) const;  // by the device's name
  // How many are tried of devices that were named without a number, a sentence each.
  std::vector<std::string> count_notes(const Library& library) const;
  std::optional<double> budget() const;  // in USD an hour

 private:
  using DevicePrice = std::pair<std::string, double>;
  std::vector<DevicePrice> device_prices(const Library& library) const;
};

// What becomes of devices without a price where several are compared or a budget limits them, a sentence each.
std::vector<std::string> price_notes(const ServingQuestion& asked);

}  // namespace foretoken
