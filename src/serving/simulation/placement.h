// Which replica of a pool gets a request: the router chooses among those that could ever serve it.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "serving/scheduling/router.h"
#include "serving/simulation/replica.h"

namespace foretoken {

// One that must refuse is always idle: offered, it would draw every request that comes.
class Placement {
 public:
  // Of `count` replicas from `first` on; `replicas` outlives this.
  Placement(std::unique_ptr<RequestRouter> router, const std::deque<Replica>& replicas, size_t first, size_t count);

  // Index into `replicas`; that of the first of the pool where none can serve the request, which says why.
  size_t choose(const Request& request);
  // To be told of every change at a replica of the pool.
  void note(size_t replica);
  // Whether requests may go there now; at first to all. Where no replica that could serve a request is shown, `choose`
  // gives one that is not.
  void show(size_t replica, bool shown);

 private:
  size_t choose_new(const Request& request);

  std::unique_ptr<RequestRouter> router_;
  const std::deque<Replica>* replicas_;
  size_t first_;
  size_t last_ = 0;  // chosen
  std::vector<ReplicaLoad> loads_;
  std::vector<bool> shown_;
  size_t hidden_ = 0;  // of them
  bool alike_ = true;  // what one must refuse all must
  std::vector<ReplicaLoad> offered_;
};

}  // namespace foretoken
