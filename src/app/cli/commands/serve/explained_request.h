// `serve --explain-request`: the life of one request of the run.
#pragma once

#include <vector>

#include "app/cli/commands/serve/serve_flags.h"
#include "app/cli/grammar/command.h"
#include "serving/results/request_life.h"

namespace foretoken {

// The number of the request to explain, -1 = none; one at a percentile is found by a run of its own.
int64_t explained_request(const ServeFlags& flags, const ServingRunRequest& request);

// InputError where the run had no such request.
void add_life(Answer& answer, const std::vector<ReplicaGroup>& groups, const RequestLife& life);

}  // namespace foretoken
