// Max-min fair shares of links, kept up to date while flows come and go.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network/topology/topology.h"

namespace foretoken {

// What a flow puts on a link: `weight` bytes/s for each byte/s of the flow's level.
struct LinkLoad {
  LinkIndex link = 0;
  double weight = 0;
};

// Progressive filling: the levels of all flows rise together, and a flow stops where one of its links is full.
// Only flows that compete with those that came or went, directly or through others, are looked at again. Two flows
// compete on a link only if it could not carry all its flows at their best, the level each would have alone.
class FairSharing {
 public:
  explicit FairSharing(std::span<const Link> links);

  // `loads` must outlive the flow, name each link once and have weights above zero; at least one.
  // Numbers of removed flows are used again.
  int32_t add(std::span<const LinkLoad> loads);
  void remove(int32_t number);

  // Works out the levels after any number of add() and remove(); returns the flows whose level is another than before,
  // ascending. The span is good until the next call.
  std::span<const int32_t> settle();

  double level(int32_t flow) const { return levels_[static_cast<size_t>(flow)]; }
  double rate_on(LinkIndex link) const;  // bytes/s

 private:
  struct Flow {
    std::span<const LinkLoad> loads;
    std::vector<int32_t> places;  // of loads[i] among the members of its link
  };
  struct Member {
    int32_t flow = 0;
    int32_t load = 0;  // of the flow's loads
    double weight = 0;
  };
  struct SharedLink {
    double capacity = 0;
    double wanted = 0;  // by all members at their best
    int64_t visit = 0;
    std::vector<Member> members;
  };

  void change_wanted(LinkIndex index, double wanted);
  void collect_component(int32_t first);
  void fill();
  void fix(int32_t number, double level);
  double level_where_full(const SharedLink& link, bool& any_rising) const;
  void check_capacities() const;

  std::vector<SharedLink> links_;
  std::vector<uint8_t> contended_;  // by link; apart, because most links a search meets are not
  std::vector<Flow> flows_;
  // Of each flow, apart: walks over the members of links read one of these, and thousands of flows fit in the cache.
  std::vector<double> bests_;     // the level it has alone
  std::vector<double> levels_;    // the level it has
  std::vector<uint8_t> fixed_;    // during filling: its level is known
  std::vector<int64_t> visit_;    // the last search that met it
  std::vector<int32_t> free_;     // numbers to use again
  std::vector<int32_t> touched_;  // flows to look at in the next settle()
  std::vector<int32_t> changed_;
  std::vector<int32_t> component_flows_;
  std::vector<LinkIndex> component_links_;
  int64_t visits_ = 0;
};

}  // namespace foretoken
