// Add your line here; the name is what users type.
#include "serving/routers/list.h"

#include "base/error.h"

namespace foretoken {
namespace {

constexpr RouterKind listed_routers[] = {
    {"round_robin", "each replica in turn", make_round_robin},
    {"random", "a random replica, all equally likely", make_random},
    {"least_outstanding", "the replica with the fewest unfinished requests", make_least_outstanding},
    {"join_shortest_queue", "the replica with the fewest waiting requests", make_join_shortest_queue},
    {"power_of_two", "the less loaded of two replicas picked at random", make_power_of_two},
    {"data_parallel", "the replica with the lowest 4 x waiting + running, as vLLM balances its data-parallel ranks",
     make_data_parallel, true},
    {"vidur_lor", "the first replica with the fewest waiting requests, as in VIDUR's least-outstanding router (lor)",
     make_vidur_lor},
    {"prefix_aware", "the replica that has seen more than half of the prompt, unless it is overloaded",
     make_prefix_aware},
    {"session_sticky", "all requests of a session to the same replica; new sessions to the least loaded one",
     make_session_sticky},
};

}  // namespace

std::span<const RouterKind> router_kinds() {
  return listed_routers;
}

std::vector<std::string> router_names() {
  std::vector<std::string> names;
  for (const RouterKind& kind : listed_routers) names.emplace_back(kind.name);
  return names;
}

const RouterKind& router_kind(std::string_view name) {
  for (const RouterKind& kind : listed_routers) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string> names = router_names();
  throw InputError({.field = "router",
                    .value = std::string(name),
                    .expected = "the name of a router",
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
