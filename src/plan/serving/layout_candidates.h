// What closed forms leave of the layouts of a part, before any is simulated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/serving/layout_space.h"
#include "plan/serving/search_result.h"

namespace foretoken {

// Layouts that are searched together, with what closed forms say of them: all of one device, or all on two kinds of
// devices.
struct SearchedPart {
  const HardwareChoice* hardware = nullptr;  // null = two kinds of devices
  LayoutSpace space;
  std::vector<LayoutJudgement> judgements;
};

struct LayoutCandidate {
  const ServingLayout* layout = nullptr;
  double bound = 0;                // by closed form
  double most_requests_per_s = 0;  // at least what it can serve: the bound, and what others of its kind taught
  LoadShape shape;
  std::string group;        // the same but for limits
  std::string kind;         // the same but for the numbers of replicas
  std::string family;       // the same but for both
  std::string plain_group;  // the group without host memory below the caches, of layouts that have some
  std::vector<int64_t> filled_blocks;
  bool stands_for_group = false;
  std::optional<PlanPoint> point;
};

// One for all layouts that differ only in limits that no run reaches. What is ruled out or merged, and what a device
// and engine may reach, is counted in `result`. Candidates point to the part's layouts.
std::vector<LayoutCandidate> layout_candidates(const ServingQuestion& question, const SearchedPart& part,
                                               ServingSearchResult& result);

// The entry of a layout's device and engine; null where it is on two kinds of devices.
TriedEngine* tried_with(ServingSearchResult& result, const ServingLayout& layout);

// Of the same engines in other numbers: how many times as much as the other a layout does at least, and at most.
struct Multiple {
  double least = 1, most = 1;
};
Multiple multiple_of(const ServingLayout& layout, const ServingLayout& other);

}  // namespace foretoken
