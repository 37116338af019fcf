// A search over serving layouts with the facts that ship; the same for every front end.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/library.h"
#include "plan/serving/serving_search.h"
#include "report/page/serving_plan_page.h"

namespace foretoken {

// Of a device of the library or a user's file, by the name that was typed. The price is that of the library where none
// is given.
HardwareChoice hardware_choice(const Library& library, const std::string& device, int64_t most_devices,
                               std::optional<double> usd_per_hour, Tier tier = Tier::best);

struct ServingPlanner {
  const Library& library;
  ServingQuestion question;
  Traffic traffic;
  std::map<std::string, std::string> device_files = {};  // of devices that users described, by their names
  std::vector<std::string> other_files = {};             // of users, or their folders, that the question is read from
  Tier tier = Tier::best;
  SearchLimits limits = {};
  unsigned threads = 1;
  std::filesystem::path store = {};  // where results are kept and shared; empty = nowhere
  std::function<void(const std::string&)> tell = {};
  std::function<void()> check_wanted = {};  // called often, on any thread; throws where the search need not go on

  ServingSearchResult search() const;
  // One run of the layout, long enough to be looked at, as a Chrome trace.
  Json trace(const ServingLayout& layout, double rate) const;
  // Runs at length: at this rate with intervals, and at shares of the layout's capacity.
  ShownLayout show(const ServingLayout& layout, double rate, double capacity) const;

 private:
  ServingFacts facts() const;
  std::string facts_name() const;  // the same for facts with the same content
};

}  // namespace foretoken
