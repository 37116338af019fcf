#include "network/flow/fair_sharing.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "base/error.h"

namespace foretoken {
namespace {

// Rounding in sums of many flows; a link is not contended by less, and never above its rate by more than the second.
constexpr double rounding = 1e-12;
constexpr double most_excess = 1e-9;

}  // namespace

FairSharing::FairSharing(std::span<const Link> links) : links_(links.size()), contended_(links.size()) {
  for (size_t i = 0; i < links.size(); ++i) links_[i].capacity = links[i].bandwidth.value();
}

void FairSharing::change_wanted(LinkIndex index, double wanted) {
  SharedLink& link = links_[static_cast<size_t>(index)];
  link.wanted = wanted;
  contended_[static_cast<size_t>(index)] = wanted > link.capacity * (1 + rounding);
}

int32_t FairSharing::add(std::span<const LinkLoad> loads) {
  ensure(!loads.empty(), "a flow crosses at least one link");
  if (free_.empty()) {
    free_.push_back(static_cast<int32_t>(flows_.size()));
    flows_.emplace_back();
    bests_.push_back(0);
    levels_.push_back(0);
    fixed_.push_back(0);
    visit_.push_back(0);
  }
  const int32_t number = free_.back();
  free_.pop_back();
  Flow& flow = flows_[static_cast<size_t>(number)];
  flow.loads = loads;
  levels_[static_cast<size_t>(number)] = 0;
  double best = std::numeric_limits<double>::infinity();
  for (const LinkLoad& load : loads) {
    best = std::min(best, links_[static_cast<size_t>(load.link)].capacity / load.weight);
  }
  bests_[static_cast<size_t>(number)] = best;
  flow.places.resize(loads.size());
  for (size_t i = 0; i < loads.size(); ++i) {
    SharedLink& link = links_[static_cast<size_t>(loads[i].link)];
    flow.places[i] = static_cast<int32_t>(link.members.size());
    link.members.push_back({number, static_cast<int32_t>(i), loads[i].weight});
    change_wanted(loads[i].link, link.wanted + best * loads[i].weight);
  }
  touched_.push_back(number);
  return number;
}

void FairSharing::remove(int32_t number) {
  Flow& flow = flows_[static_cast<size_t>(number)];
  const double best = bests_[static_cast<size_t>(number)];
  for (size_t i = 0; i < flow.loads.size(); ++i) {
    SharedLink& link = links_[static_cast<size_t>(flow.loads[i].link)];
    const auto place = static_cast<size_t>(flow.places[i]);
    link.members[place] = link.members.back();
    link.members.pop_back();
    if (place < link.members.size()) {
      const Member& moved = link.members[place];
      flows_[static_cast<size_t>(moved.flow)].places[static_cast<size_t>(moved.load)] = static_cast<int32_t>(place);
    }
    if (contended_[static_cast<size_t>(flow.loads[i].link)]) {
      for (const Member& member : link.members) touched_.push_back(member.flow);
    }
    // Starting again from zero keeps rounding from piling up.
    change_wanted(flow.loads[i].link, link.members.empty() ? 0 : link.wanted - best * flow.loads[i].weight);
  }
  flow.loads = {};
  free_.push_back(number);
}

// Flows that compete with the first, directly or through others, and the links on which they do.
void FairSharing::collect_component(int32_t first) {
  component_flows_ = {first};
  component_links_.clear();
  visit_[static_cast<size_t>(first)] = visits_;
  for (size_t next = 0; next < component_flows_.size(); ++next) {
    for (const LinkLoad& load : flows_[static_cast<size_t>(component_flows_[next])].loads) {
      if (!contended_[static_cast<size_t>(load.link)]) continue;
      SharedLink& link = links_[static_cast<size_t>(load.link)];
      if (link.visit == visits_) continue;
      link.visit = visits_;
      component_links_.push_back(load.link);
      for (const Member& member : link.members) {
        int64_t& visit = visit_[static_cast<size_t>(member.flow)];
        if (visit == visits_) continue;
        visit = visits_;
        component_flows_.push_back(member.flow);
      }
    }
  }
}

void FairSharing::fix(int32_t number, double level) {
  fixed_[static_cast<size_t>(number)] = 1;
  double& known = levels_[static_cast<size_t>(number)];
  if (known == level) return;
  known = level;
  changed_.push_back(number);
}

double FairSharing::level_where_full(const SharedLink& link, bool& any_rising) const {
  double left = link.capacity, rising = 0;
  any_rising = false;
  for (const Member& member : link.members) {
    const auto flow = static_cast<size_t>(member.flow);
    if (fixed_[flow]) {
      left -= levels_[flow] * member.weight;
    } else {
      rising += member.weight;
      any_rising = true;
    }
  }
  return any_rising ? left / rising : 0;
}

void FairSharing::fill() {
  for (const int32_t flow : component_flows_) fixed_[static_cast<size_t>(flow)] = 0;
  size_t rising = component_flows_.size();
  // Most flows are stopped by a link, so few of them are ever asked for in order: a heap, not a sort.
  const auto later = [&](int32_t a, int32_t b) {
    return std::pair(bests_[static_cast<size_t>(a)], a) > std::pair(bests_[static_cast<size_t>(b)], b);
  };
  std::vector<int32_t>& by_best = component_flows_;
  std::make_heap(by_best.begin(), by_best.end(), later);

  // The level at which a link is full only rises while flows are fixed, so an old one is a lower bound.
  using FullAt = std::pair<double, LinkIndex>;
  std::vector<FullAt> first_levels;
  first_levels.reserve(component_links_.size());
  bool any_rising = false;
  for (const LinkIndex link : component_links_) {
    first_levels.emplace_back(level_where_full(links_[static_cast<size_t>(link)], any_rising), link);
  }
  std::priority_queue<FullAt, std::vector<FullAt>, std::greater<>> next_full({}, std::move(first_levels));

  while (rising > 0) {
    const int32_t flow = by_best.front();
    const double best = bests_[static_cast<size_t>(flow)];
    const bool is_fixed = fixed_[static_cast<size_t>(flow)] != 0;
    if (is_fixed || next_full.empty() || best <= next_full.top().first) {
      if (!is_fixed) {
        fix(flow, best);
        --rising;
      }
      std::pop_heap(by_best.begin(), by_best.end(), later);
      by_best.pop_back();
      continue;
    }
    const auto [bound, number] = next_full.top();
    next_full.pop();
    const SharedLink& link = links_[static_cast<size_t>(number)];
    const double full = std::max(bound, level_where_full(link, any_rising));
    if (!any_rising) continue;
    if (full > bound) {
      next_full.push({full, number});
      continue;
    }
    for (const Member& member : link.members) {
      if (fixed_[static_cast<size_t>(member.flow)]) continue;
      fix(member.flow, full);
      --rising;
    }
  }
}

void FairSharing::check_capacities() const {
  for (const LinkIndex link : component_links_) {
    ensure(rate_on(link) <= links_[static_cast<size_t>(link)].capacity * (1 + most_excess),
           "no link carries more than its rate");
  }
}

std::span<const int32_t> FairSharing::settle() {
  changed_.clear();
  ++visits_;
  for (const int32_t flow : touched_) {
    const auto touched = static_cast<size_t>(flow);
    if (flows_[touched].loads.empty() || visit_[touched] == visits_)
      continue;  // gone, or in a component already filled
    collect_component(flow);
    fill();
    check_capacities();
  }
  touched_.clear();
  std::sort(changed_.begin(), changed_.end());
  return changed_;
}

double FairSharing::rate_on(LinkIndex link) const {
  double rate = 0;
  for (const Member& member : links_[static_cast<size_t>(link)].members) {
    rate += levels_[static_cast<size_t>(member.flow)] * member.weight;
  }
  return rate;
}

}  // namespace foretoken
