#include "network/between_nodes.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"

namespace foretoken {

namespace {

// Long rings hide more of their messages (SimAI's curves of 128 nodes), hence the most.
// Fitted with every source left out in turn: mean error 15%, against 36% of the bare model.
constexpr Seconds collective_start = microseconds(10), most_filling = microseconds(50);
constexpr double filling = 0.8, collective_bytes = 1.05;

// Chosen with those rows in view, not fitted. Small sends take 15 us (B200); all-to-alls reach 85 to 97% of the cards
// of most clusters (GH200, H100, B300, MI355X; 2 to 16 nodes).
constexpr Seconds send_start = microseconds(3);
constexpr double sent_bytes = 1.1;

}  // namespace

ClosedForm as_clusters_run_it(ClosedForm model, SentBy by) {
  const bool is_collective = by == SentBy::collective;
  model.start += is_collective ? collective_start : send_start;
  const double on_links = (is_collective ? collective_bytes : sent_bytes) * model.wire.value();
  const double waiting = std::min(model.start + model.latency, most_filling).value();
  model.wire = Seconds(on_links + filling * std::sqrt(waiting * on_links));
  return model;
}

ClusterSpread cluster_spread(const ClosedForm& predicted, const GroupShape& shape, SentBy by) {
  const double share = predicted.total() > Seconds(0) ? predicted.wire / predicted.total() : 0;
  // Few bytes: clouds differ in the latency of their networks. Many: in what their cards reach.
  const double of_bytes = std::clamp((share - 0.5) / 0.4, 0.0, 1.0);
  ClusterSpread spread{.low = 0.6 + 0.15 * of_bytes, .high = 2 - 0.5 * of_bytes};
  // Beyond the nodes that were measured, and between racks that are one domain each, runs were up to 3 times slower.
  constexpr double nodes_measured = 16;
  constexpr int64_t members_measured = 16;
  constexpr double ranks_of_sends = 16;
  spread.high *= portable_pow(std::max(1.0, static_cast<double>(shape.nodes) / nodes_measured), 0.2);
  if (shape.most_per_node > members_measured) spread.high *= 2;
  if (by == SentBy::sends_and_receives) {
    const double beyond = std::max(1.0, static_cast<double>(shape.ranks) / ranks_of_sends);
    spread.low *= portable_pow(beyond, -0.2 * (1 - of_bytes));
    spread.high *= portable_pow(beyond, 0.2 * (1 - of_bytes));
  }
  return spread;
}

}  // namespace foretoken
