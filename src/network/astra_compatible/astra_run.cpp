#include "network/astra_compatible/astra_run.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <queue>
#include <tuple>

#include <fmt/format.h>

#include "base/range.h"
#include "base/text.h"
#include "network/astra_compatible/astra_events.h"
#include "network/astra_compatible/astra_phase.h"
#include "network/transfer/refusal.h"

namespace foretoken {
namespace {

struct PhaseOfRun {
  CollectiveKind kind;
  size_t dimension;
};

// All-reduce scatters upwards, reduces on the last dimension and gathers downwards.
std::vector<PhaseOfRun> phases_of(CollectiveKind kind, size_t dimensions) {
  std::vector<PhaseOfRun> phases;
  if (kind == CollectiveKind::all_gather) {
    for (size_t d = dimensions; d-- > 0;) phases.push_back({kind, d});
    return phases;
  }
  if (kind != CollectiveKind::all_reduce) {
    for (size_t d = 0; d < dimensions; ++d) phases.push_back({kind, d});
    return phases;
  }
  for (size_t d = 0; d + 1 < dimensions; ++d) phases.push_back({CollectiveKind::reduce_scatter, d});
  phases.push_back({CollectiveKind::all_reduce, dimensions - 1});
  for (size_t d = dimensions - 1; d-- > 0;) phases.push_back({CollectiveKind::all_gather, d});
  return phases;
}

// Chunks of bytes/splits, at least one byte per NPU (all-gather excepted); the last one takes what is left.
std::vector<int64_t> chunks_of(const AstraRun& run, int64_t npus) {
  int64_t size = run.bytes / run.splits;
  if (run.kind != CollectiveKind::all_gather) size = std::max(size, npus);
  std::vector<int64_t> chunks;
  for (int64_t left = run.bytes; left > 0; left -= size) chunks.push_back(std::min(size, left));
  return chunks;
}

// Each dimension runs `active` chunks at a time, first come, first served.
class ChunkQueues {
 public:
  ChunkQueues(const std::vector<PhaseOfRun>& phases, size_t dimensions, int64_t active)
      : phases_(phases), free_(dimensions, active), waiting_(dimensions) {}

  // durations[chunk][phase] -> when the last chunk has walked all phases.
  int64_t finish(const std::vector<std::vector<int64_t>>& durations) {
    for (size_t chunk = 0; chunk < durations.size(); ++chunk) arrive({chunk, 0}, 0, durations);
    int64_t now = 0;
    while (!events_.empty()) {
      const auto [time, order, visit] = events_.top();
      events_.pop();
      now = time;
      const size_t dimension = phases_[visit.phase].dimension;
      ++free_[dimension];
      if (!waiting_[dimension].empty()) {
        const Visit next = waiting_[dimension].front();
        waiting_[dimension].pop_front();
        arrive(next, now, durations);
      }
      if (visit.phase + 1 < phases_.size()) arrive({visit.chunk, visit.phase + 1}, now, durations);
    }
    return now;
  }

 private:
  struct Visit {
    size_t chunk = 0, phase = 0;
    auto operator<=>(const Visit&) const = default;
  };
  using Event = std::tuple<int64_t, int64_t, Visit>;  // when, order of insertion, which phase of which chunk ends

  void arrive(Visit visit, int64_t now, const std::vector<std::vector<int64_t>>& durations) {
    const size_t dimension = phases_[visit.phase].dimension;
    if (free_[dimension] == 0) {
      waiting_[dimension].push_back(visit);
      return;
    }
    --free_[dimension];
    events_.emplace(now + durations[visit.chunk][visit.phase], ++inserted_, visit);
  }

  const std::vector<PhaseOfRun>& phases_;
  std::vector<int64_t> free_;
  std::vector<std::deque<Visit>> waiting_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int64_t inserted_ = 0;
};

constexpr Refusal refuse_run{"ASTRA-sim run"};

void check_number(std::string path, double value, Range<double> allowed) {
  if (!allowed.holds(value)) refuse_run(std::move(path), number_text(value), range_text(allowed));
}

// Within these limits no sum of nanoseconds overflows.
void check(const AstraRun& run) {
  if (run.dimensions.empty()) refuse_run("dims", "none", "at least one dimension");
  double npus = 1;
  for (const AstraDimension& dimension : run.dimensions) {
    npus *= static_cast<double>(dimension.npus);
    check_number("dims", static_cast<double>(dimension.npus), {.least = 1, .most = 131'072});
    check_number("bandwidth", dimension.bandwidth_gib_per_s, {.least = 0.01, .most = 1e6});
    check_number("latency", dimension.latency_ns, {.least = 0, .most = 1e8});
    if (dimension.algorithm == AstraAlgorithm::halving_doubling &&
        !std::has_single_bit(static_cast<uint64_t>(dimension.npus))) {
      refuse_run("dims", fmt::format("{}", dimension.npus),
                 "a power of two: on any other count ASTRA-sim's halving-doubling ends without a result");
    }
  }
  check_number("dims (all NPUs)", npus, {.least = 1, .most = 131'072});
  check_number("splits", static_cast<double>(run.splits), {.least = 1, .most = 1e6});
  check_number("bytes", static_cast<double>(run.bytes), {.least = static_cast<double>(run.splits), .most = 0x1p40});
  check_number("active", static_cast<double>(run.active), {.least = 1, .most = 1e9});
  check_number("endpoint_delay", static_cast<double>(run.endpoint_ns), {.least = 0, .most = 1e8});
  check_number("local_mem_bw", run.local_memory_gb_per_s, {.least = 1, .most = 1e6});
  switch (run.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return;
    default:
      refuse_run("collective", std::string(collective_kind_name(run.kind)),
                 "all_reduce, all_gather, reduce_scatter or all_to_all: ASTRA-sim charges 1 ns for any other");
  }
}

}  // namespace

AstraTime astra_time(const AstraRun& run) {
  check(run);
  int64_t npus = 1;
  for (const AstraDimension& dimension : run.dimensions) npus *= dimension.npus;
  if (run.queues > 1) return {.no_closed_form = "several queues per dimension"};

  const std::vector<PhaseOfRun> phases = phases_of(run.kind, run.dimensions.size());
  const std::vector<int64_t> chunks = chunks_of(run, npus);
  const AstraEndpoint endpoint{.delay_ns = run.endpoint_ns,
                               .local_memory_gb_per_s = run.local_memory_gb_per_s,
                               .congestion_aware = run.congestion_aware};
  if (run.congestion_aware && std::min<int64_t>(run.active, static_cast<int64_t>(chunks.size())) > 1) {
    const bool is_one_ring = run.dimensions.size() == 1 && run.dimensions.front().algorithm == AstraAlgorithm::ring;
    if (!is_one_ring) return {.no_closed_form = "several chunks at once share congested links, and not in one ring"};
    return {.nanoseconds = astra_ring_nanoseconds(run.kind, run.dimensions.front(), chunks, run.active, endpoint)};
  }
  std::vector<std::vector<int64_t>> durations;
  for (const int64_t chunk : chunks) {
    int64_t bytes = chunk;
    std::vector<int64_t>& of_chunk = durations.emplace_back();
    for (const PhaseOfRun& phase : phases) {
      const AstraDimension& dimension = run.dimensions[phase.dimension];
      const AstraTime time = astra_phase_time(phase.kind, dimension, bytes, endpoint);
      if (!time.nanoseconds) return time;
      of_chunk.push_back(*time.nanoseconds);
      if (phase.kind == CollectiveKind::reduce_scatter) bytes /= dimension.npus;
      if (phase.kind == CollectiveKind::all_gather) bytes *= dimension.npus;
    }
  }
  return {.nanoseconds = ChunkQueues(phases, run.dimensions.size(), run.active).finish(durations)};
}

}  // namespace foretoken
