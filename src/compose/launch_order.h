// The order in which the launches of a step run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compose/lowering.h"

namespace foretoken {
namespace launch_order {

// The launches of one operator: [first, last).
struct LaunchGroup {
  size_t call = 0;
  size_t first = 0, last = 0;
  int64_t count = 1;
  int64_t due = 0;  // calls of it that the layers so far are owed, in shares of a layer
};

inline std::vector<LaunchGroup> groups_of(std::span<const Launch> launches, const std::vector<Operator>& operators) {
  std::vector<LaunchGroup> groups;
  for (size_t i = 0; i < launches.size(); ++i) {
    if (groups.empty() || groups.back().call != launches[i].call) {
      groups.push_back({.call = launches[i].call, .first = i, .last = i, .count = operators[launches[i].call].count});
    }
    groups.back().last = i + 1;
  }
  return groups;
}

// One pass over the layers: groups [first, last) of the same pass.
template <class Visit>
void each_in_segment(std::span<LaunchGroup> groups, const Visit& visit) {
  int64_t layers = 1;
  for (const LaunchGroup& group : groups) layers = std::max(layers, group.count);
  if (layers == 1) {
    for (const LaunchGroup& group : groups) visit(group);
    return;
  }
  const auto often = [](const LaunchGroup& group) { return group.count > 1; };
  const auto first = std::find_if(groups.begin(), groups.end(), often);
  const auto last = std::find_if(groups.rbegin(), groups.rend(), often).base();
  for (auto group = groups.begin(); group != first; ++group) visit(*group);
  for (int64_t layer = 0; layer < layers; ++layer) {
    // An operator that only some layers have is spread evenly over them. Counted, since a division for each takes
    // longer than all else here.
    for (auto group = first; group != last; ++group) {
      group->due += group->count;
      if (group->due < layers) continue;
      group->due -= layers;
      visit(*group);
    }
  }
  for (auto group = last; group != groups.end(); ++group) visit(*group);
}

}  // namespace launch_order

// Operators of one pass run layer by layer; those called once come before or after the layers. Visits every launch of a
// step in that order: (index of the launch, first of its operator's call). A template: thousands of launches make up a
// step, and steps are estimated by the thousand.
template <class Visit>
void each_launch_in_order(std::span<const Launch> launches, const std::vector<Operator>& operators,
                          const Visit& visit) {
  std::vector<launch_order::LaunchGroup> groups = launch_order::groups_of(launches, operators);
  std::vector<int64_t> times(launches.size());  // in one call of the operator
  for (const launch_order::LaunchGroup& group : groups) {
    if (group.count == 0) continue;
    for (size_t i = group.first; i < group.last; ++i) times[i] = launches[i].count / group.count;
  }
  const auto visit_group = [&](const launch_order::LaunchGroup& group) {
    bool first = true;
    for (size_t i = group.first; i < group.last; ++i) {
      for (int64_t k = 0; k < times[i]; ++k) {
        visit(i, first);
        first = false;
      }
    }
  };
  size_t start = 0;
  while (start < groups.size()) {
    size_t end = start;
    const Pass pass = operators[groups[start].call].pass;
    while (end < groups.size() && operators[groups[end].call].pass == pass) ++end;
    launch_order::each_in_segment(std::span<launch_order::LaunchGroup>(groups).subspan(start, end - start),
                                  visit_group);
    start = end;
  }
}

}  // namespace foretoken
