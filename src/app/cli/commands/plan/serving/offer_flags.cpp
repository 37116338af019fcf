#include "app/cli/commands/plan/serving/offer_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/cli/grammar/device_count.h"
#include "app/cli/grammar/money.h"
#include "base/error.h"
#include "base/text.h"

namespace foretoken {

void OfferFlags::declare(Options& options) {
  options.list("--hardware", hardware,
               "Available devices and their number, for example h100_sxm:8,a100_sxm:16 or 8xH100; a device without a "
               "number means up to one node of it",
               true);
  options.list("--price,--gpu-price", prices,
               "Rent of one device per hour, for example h100_sxm=2.5 or 'h100_sxm=$1.9/h'; with one kind of device "
               "also $1.9/h [a public list price]");
  options.text("--budget", budget_text, "Maximum cost of the service, for example $28/h, $500/day or $20k/month");
  options.money("--budget-usd-hour", budget_usd_per_hour, {.least = 0, .most = 1e9},
                "Maximum cost in USD per hour; 0 = no limit");
}

std::optional<double> OfferFlags::budget() const {
  if (budget_text.empty()) return budget_usd_per_hour > 0 ? std::optional(budget_usd_per_hour) : std::nullopt;
  const std::optional<double> usd = parse_usd_per_time(budget_text);
  // A month's budget that is taken for an hour's limits nothing.
  const bool says_time = budget_text.find('/') != std::string::npos;
  if (!usd || *usd <= 0 || *usd > 1e9 || budget_usd_per_hour > 0 || !says_time) {
    throw InputError(
        {.source = "--budget",
         .value = printable(budget_text),
         .expected = budget_usd_per_hour > 0
                         ? "either --budget or --budget-usd-hour, not both"
                         : "an amount above 0 USD per hour, day or month, for example $28/h or $20k/month"});
  }
  return usd;
}

std::vector<OfferFlags::DevicePrice> OfferFlags::device_prices(const Library& library) const {
  std::vector<DevicePrice> named;
  for (const std::string& text : prices) {
    const bool names_no_device = text.find('=') == std::string::npos;
    if (names_no_device && hardware.size() > 1 && parse_usd_per_hour(text)) {
      throw InputError({.source = "--price",
                        .value = printable(text),
                        .expected = "a price for each kind of device, because --hardware offers several: "
                                    "h100_sxm=1.9,a100_sxm=1.2"});
    }
    if (names_no_device && parse_usd_per_time(text) && !parse_usd_per_hour(text)) {
      throw InputError({.source = "--price",
                        .value = printable(text),
                        .expected = fmt::format("a price per hour: write ${:.3g}/h", *parse_usd_per_time(text))});
    }
    const bool is_of_all = hardware.size() == 1 && text.find('=') == std::string::npos && parse_usd_per_hour(text);
    const auto [device, amount] = is_of_all
                                      ? std::pair(device_and_count(hardware.front(), library.hardware()).first, text)
                                      : named_value("--price", text, '=', "DEVICE=USD, as in h100_sxm=2.5");
    const std::optional<double> usd = parse_usd_per_hour(amount);
    if (!usd || *usd < 1e-6 || *usd > 1e6) {
      throw InputError({.source = "--price",
                        .value = printable(text),
                        .expected = "a price above 0 USD per hour, for example h100_sxm=2.5 or h100_sxm=$1.9/h"});
    }
    named.emplace_back(library.hardware().device(device).name, *usd);
  }
  for (const auto& [name, usd] : named) {
    const bool offered = std::any_of(hardware.begin(), hardware.end(), [&, priced = name](const std::string& text) {
      return library.hardware().device(device_and_count(text, library.hardware()).first).name == priced;
    });
    if (!offered) {
      throw InputError({.source = "--price", .value = name, .expected = "a device that --hardware offers"});
    }
  }
  return named;
}

std::vector<HardwareChoice> OfferFlags::choices(const Library& library, Tier tier,
                                                const PlacementSpec& placement) const {
  const std::vector<DevicePrice> priced = device_prices(library);
  std::vector<HardwareChoice> all;
  for (const std::string& text : hardware) {
    const auto [device, count] = device_and_count(text, library.hardware());
    const int64_t devices = parse_size("--hardware", count, device_counts);
    all.push_back(hardware_choice(library, device, devices, std::nullopt, tier, placement));
    const bool twice = std::any_of(all.begin(), all.end() - 1, [&](const HardwareChoice& one) {
      return one.device.name == all.back().device.name;
    });
    if (twice) throw InputError({.source = "--hardware", .value = printable(text), .expected = "each device once"});
    for (const auto& [name, usd] : priced) {
      if (name == all.back().device.name) all.back().usd_per_hour = usd;
    }
  }
  return all;
}

std::vector<std::string> OfferFlags::count_notes(const Library& library) const {
  std::vector<std::string> notes;
  for (const std::string& text : hardware) {
    if (!has_no_count(text, library.hardware())) continue;
    const auto [device, count] = device_and_count(text, library.hardware());
    notes.push_back(
        fmt::format("{{hardware}} {0} has no number: up to {1} x {0} (one node) are tried. Write {0}:2 for 2.",
                    printable(device), count));
  }
  return notes;
}

std::map<std::string, std::string> OfferFlags::device_files(const Library& library) const {
  std::map<std::string, std::string> files;
  for (const std::string& text : hardware) {
    const std::string device = device_and_count(text, library.hardware()).first;
    if (HardwareCatalogue::is_path(device)) files.emplace(library.hardware().device(device).name, device);
  }
  return files;
}

std::vector<std::string> price_notes(const ServingQuestion& asked) {
  std::vector<std::string> names;
  for (const HardwareChoice& one : asked.hardware) {
    if (!one.usd_per_hour) names.push_back(one.device.name);
  }
  if (names.empty() || (asked.hardware.size() == 1 && !asked.budget_usd_per_hour)) return {};
  const bool none_has_price = names.size() == asked.hardware.size();
  const std::string whose = names.size() == 1 ? "its" : "their";
  std::vector<std::string> fates;
  if (asked.money_decides() && !none_has_price) {
    fates.push_back(fmt::format("{} layouts are ranked after those of devices with a price", whose));
  } else if (asked.objective != PlanObjective::capacity) {
    fates.emplace_back("layouts are ranked by their number of GPUs");
  }
  if (asked.budget_usd_per_hour) fates.push_back(fmt::format("the budget does not limit {} number", whose));
  if (fates.empty()) fates.push_back(fmt::format("{} costs are not shown", whose));
  const std::string fate = fmt::format("so {}", fmt::join(fates, " and "));
  return {fmt::format("No rental price is known for {}, {}. Give a price: --price {}=USD.", fmt::join(names, ", "),
                      fate, names.front())};
}

}  // namespace foretoken
