// When speculative decoding pays, for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "serving/speculation/speculation_tradeoff.h"

namespace foretoken {

struct SpeculationReport {
  std::string model, device, method;
  Speculation speculation;
  struct Context {
    int64_t tokens = 0;
    std::vector<SpeculationPoint> points;
    std::optional<int64_t> break_even;           // nothing: it pays at every batch looked at
    std::optional<int64_t> earliest_break_even;  // the same at the low end of the speed-up's interval
    int64_t largest_batch = 0;                   // looked at
    bool memory_ends_here = false;               // larger ones were asked for and do not fit
  };
  std::vector<Context> contexts;
};

// What is assumed of drafts whose acceptance nobody gave; empty where it was given.
std::string assumed_acceptance_note(const Speculation& speculation);

std::string speculation_text(const SpeculationReport& report);
// Why there is no answer: no batch that was asked for fits in memory; empty where one does.
std::string speculation_failure(const SpeculationReport& report);
Json speculation_json(const SpeculationReport& report);

}  // namespace foretoken
