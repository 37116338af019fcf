// Which replica a request goes to. One kind per file in routers/.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

// What a router sees of a replica when a request arrives.
struct ReplicaLoad {
  int32_t replica = 0;      // its number in the run
  int64_t outstanding = 0;  // requests sent there that have not ended
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t blocks_used = 0;
  int64_t blocks = 0;
};

class RequestRouter {
 public:
  virtual ~RequestRouter() = default;
  // Index into `replicas`: those that can serve the request, never none. Which these are may differ from call to call.
  virtual size_t choose(const Request& request, std::span<const ReplicaLoad> replicas) = 0;
};

struct RouterKind {
  std::string_view name;  // what users type
  std::string_view summary;
  std::unique_ptr<RequestRouter> (*make)(uint64_t seed);
  bool within_server = false;  // it chooses among the ranks of one server, else among servers
};
std::span<const RouterKind> router_kinds();
std::vector<std::string> router_names();
const RouterKind& router_kind(std::string_view name);  // InputError suggests the nearest

}  // namespace foretoken
