#include "app/cli/commands/plan/serving/day_flags.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/fleet/autoscaler.h"

namespace foretoken {
namespace {

// Not the one that never starts a replica.
std::vector<std::string> scaling_names() {
  std::vector<std::string> names = autoscaler_names();
  std::erase(names, "none");
  return names;
}

}  // namespace

void DayFlags::declare(Options& all) {
  options = &all;
  all.text("--day", day,
           "Also show the cost of a day, with replicas for its peak and with an autoscaler. Give a CSV file with the "
           "columns hour (0 to 24) and requests_per_s, or sine:0.5 for a rate that varies by 50% around "
           "--request-rate. The layout is chosen for the peak");
  all.choice("--autoscaler", chosen.autoscaler, scaling_names(),
             "With --day: how the number of replicas is chosen (see foretoken serve --help)");
  all.integer("--min-replicas", chosen.least_replicas, {.least = 1, .most = 100'000},
              "With --day: minimum number of replicas");
  all.number("--scale-utilization", chosen.utilization, {.least = 0.01, .most = 1},
             "With --day: target load of each replica, as a share of its capacity");
  all.number("--cold-start", cold_start_s, {.least = -1, .most = 1e6},
             "With --day: time until a new replica serves requests, in seconds; -1 = 60 s to provision, time to "
             "load the weights, and 40 s to start the engine");
}

void DayFlags::check_use() const {
  if (given()) return;
  options->refuse_without("--day", {"--autoscaler", "--min-replicas", "--scale-utilization", "--cold-start"});
}

void DayFlags::check_least_replicas(const ServingQuestion& question) const {
  int64_t most = 0;
  for (const HardwareChoice& one : question.hardware) most = std::max(most, one.most_devices);
  if (chosen.least_replicas <= most) return;
  throw InputError({.source = "--min-replicas",
                    .value = fmt::format("{}", chosen.least_replicas),
                    .expected = fmt::format("at most {}, the GPUs of one kind in --hardware", most)});
}

DayRates DayFlags::rates(const LoadFlags& load) const {
  constexpr std::string_view sine = "sine";
  constexpr double usual_swing = 0.5, most_swing = 0.99;
  if (!day.starts_with(sine) || (day.size() > sine.size() && day[sine.size()] != ':')) {
    if (!std::filesystem::exists(day)) {
      throw InputError({.source = "--day",
                        .value = printable(day),
                        .expected = "a CSV file or sine:SWING, for example sine:0.5; there is no file of this name"});
    }
    options->refuse({"--request-rate", "--users"}, {}, "--day FILE, because the file contains the rates");
    return read_day(day);
  }
  const std::string swing = day.size() > sine.size() ? day.substr(sine.size() + 1) : number_text(usual_swing);
  const double share = parse_listed_number("--day", swing, {.least = 0, .most = most_swing},
                                           "sine:SWING with a SWING from 0 to 0.99, for example sine:0.5");
  if (!std::isfinite(load.rate()) || load.rate() <= 0) {
    throw InputError(
        {.source = "--request-rate", .expected = "the mean rate of the day in requests/s (or --users) for --day sine"});
  }
  return sine_day(load.rate(), share);
}

DaySettings DayFlags::settings(const LoadFlags& load) const {
  DaySettings settings = chosen;
  settings.rates = rates(load);
  if (cold_start_s >= 0) settings.cold_start_s = cold_start_s;
  return settings;
}

}  // namespace foretoken
