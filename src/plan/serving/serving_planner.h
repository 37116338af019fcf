// A search over serving layouts with the facts of the library; the same for every front end.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "library/library.h"
#include "plan/serving/day_plan.h"
#include "plan/serving/goal_seek.h"
#include "plan/serving/layout_explanation.h"
#include "plan/serving/serving_search.h"

namespace foretoken {

// Of a device of the library or a user's file, by the name that was typed. The price is that of the library where none
// is given.
HardwareChoice hardware_choice(const Library& library, const std::string& device, int64_t most_devices,
                               std::optional<double> usd_per_hour, Tier tier = Tier::best,
                               const PlacementSpec& placement = {});

// Share of the time of two typical steps on one device, a prompt and decodes of `context` tokens, that comes from the
// spec sheet. Nothing is known of what does not run there: 0.
double sheet_share(const Library& library, const Model& model, const HardwareChoice& choice, int64_t context,
                   Tier tier = Tier::best);

struct ServingPlanner {
  const Library& library;
  ServingQuestion question;
  Traffic traffic;
  std::map<std::string, std::string> device_files = {};  // of devices that users described, by their names
  std::vector<std::string> other_files = {};             // of users, or their folders, that the question is read from
  Tier tier = Tier::best;
  PlacementSpec placement = {};  // of every engine
  double host_factor = 1;        // as ServingFacts
  SearchLimits limits = {};
  unsigned threads = 1;
  int64_t processes = 0;   // that share the store; 0 = not known
  std::string store = {};  // where results are kept and shared: a file or postgresql://...; empty = nowhere
  std::function<void(const std::string&)> tell = {};
  std::function<void()> check_wanted = {};  // called often, on any thread; throws where the search need not go on

  ServingSearchResult search() const;
  ServingFacts facts() const;
  // Of the winner, or where the rate is too high for all, of what sustains most; also with measured devices of the
  // library that have a price.
  SoughtGoals seek(const ServingSearchResult& result) const;
  // Of the winner at the rate asked for, else at its capacity; nothing where nothing was simulated, or nobody waits.
  std::optional<LayoutExplanation> explain(const ServingSearchResult& result) const;
  // Requests that may always be in flight: the most of any of the best layouts, as a search for a rate found them.
  // Nothing where none keeps the limits, or nobody waits.
  struct MostInFlight {
    int64_t requests = 0;
    ServingLayout layout;
  };
  std::optional<MostInFlight> most_in_flight(const ServingSearchResult& result) const;
  // Of the best layouts; nothing where none serves what is asked, or nobody waits.
  std::optional<DayPlan> day(const ServingSearchResult& result, const DaySettings& settings) const;

 private:
  std::string facts_name() const;  // the same for facts with the same content
};

}  // namespace foretoken
