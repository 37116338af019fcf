// What collectives between nodes take beyond NCCL's cost model, and how far clusters differ: learned from published
// runs of nccl-tests and rccl-tests on 18 InfiniBand and RoCE clusters of 2 to 12 nodes (docs/accuracy/network.md).
#pragma once

#include "network/closed_form.h"

namespace foretoken {

enum class SentBy { collective, sends_and_receives };

// They take longer to start; and a buffer of middle size fills its pipeline, for as long as a part of its messages.
ClosedForm as_clusters_run_it(ClosedForm model, SentBy by);

// Times the prediction that runs took, by the share of it that is bytes on links: 98% of those that the constants were
// chosen on, 76% of others. Sends to more ranks than were measured are less sure.
struct ClusterSpread {
  double low = 1, high = 1;
};
ClusterSpread cluster_spread(const ClosedForm& predicted, const GroupShape& shape, SentBy by);

}  // namespace foretoken
