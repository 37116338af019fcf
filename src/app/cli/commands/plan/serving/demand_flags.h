// Who asks: the requests that a service is planned for and the limits on their latency.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/flags/load_flags.h"
#include "app/cli/flags/lora_flags.h"
#include "app/cli/grammar/options.h"
#include "library/library.h"
#include "plan/serving/latency_slo.h"
#include "plan/serving/traffic.h"

namespace foretoken {

struct DemandFlags {
  const Options* options = nullptr;
  std::string traffic;  // a use by name; empty = none
  std::vector<std::string> slos;
  int64_t users = 0;
  double user_pause_s = 10;
  LoadFlags load;  // declared by whoever has these flags, below the other ones

  void declare(Options& all);
  void check_use() const;
  // With the lengths of the use that is named, as far as flags do not say others, and the rate of the users.
  LoadFlags load_of_use(const Library& library) const;
  std::vector<LatencySlo> limits(const Library& library) const;
  // What was assumed, in sentences.
  std::vector<std::string> use_assumptions(const Library& library) const;
  std::vector<std::string> user_assumptions(double answer_s) const;

  // Of the users, where each waits so long for an answer; of three digits.
  double rate_of_users(double answer_s) const;
  // Half of what the limits allow: what is assumed until it is known how fast the service is.
  double assumed_answer_seconds(const Library& library, double output_tokens) const;
};

// Requests for every rate: arrivals are stretched afterwards. Of conversations, every run draws its own.
Traffic planned_traffic(const LoadFlags& load, const AdapterLoadFlags& adapters);

}  // namespace foretoken
