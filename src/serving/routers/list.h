// One make_ function per kind; list.cpp names them.
#pragma once

#include <memory>

#include "serving/scheduling/router.h"

namespace foretoken {

std::unique_ptr<RequestRouter> make_round_robin(uint64_t seed);
std::unique_ptr<RequestRouter> make_random(uint64_t seed);
std::unique_ptr<RequestRouter> make_power_of_two(uint64_t seed);
std::unique_ptr<RequestRouter> make_least_outstanding(uint64_t seed);
std::unique_ptr<RequestRouter> make_join_shortest_queue(uint64_t seed);
std::unique_ptr<RequestRouter> make_vidur_lor(uint64_t seed);
std::unique_ptr<RequestRouter> make_data_parallel(uint64_t seed);
std::unique_ptr<RequestRouter> make_prefix_aware(uint64_t seed);
std::unique_ptr<RequestRouter> make_session_sticky(uint64_t seed);

// The replica with the least of `cost`, the first among equals.
size_t least_loaded(std::span<const ReplicaLoad> replicas, int64_t (*cost)(const ReplicaLoad&));
int64_t outstanding_requests(const ReplicaLoad& load);

}  // namespace foretoken
