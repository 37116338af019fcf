#include "network/astra_compatible/astra_events.h"

#include <deque>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "base/units.h"

namespace foretoken {
namespace {

class RingEvents {
 public:
  RingEvents(CollectiveKind kind, const AstraDimension& dimension, std::span<const int64_t> chunks, int64_t active,
             const AstraEndpoint& endpoint)
      : dimension_(dimension), endpoint_(endpoint), free_(active) {
    links_.resize(dimension.topology == AstraTopology::network_switch ? 2 : 1);  // into the switch, and out of it
    const int64_t npus = dimension.npus;
    int64_t steps = npus - 1;
    if (kind == CollectiveKind::all_reduce) steps = 2 * (npus - 1);
    if (kind == CollectiveKind::all_to_all) steps = npus * (npus - 1) / 2;
    const bool reduces = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
    for (const int64_t bytes : chunks) {
      chunks_.push_back({.message = kind == CollectiveKind::all_gather ? bytes : bytes / npus,
                         .steps = steps,
                         .reductions = reduces ? npus - 1 : 0});
    }
  }

  int64_t run() {
    start_chunks();
    while (!events_.empty()) {
      const auto [time, order, kind, index] = events_.top();
      events_.pop();
      now_ = time;
      switch (kind) {
        case What::link_free:
          release(index);
          break;
        case What::message_there:
          pass_on(index);
          break;
        case What::message_taken:
          take(index);
          break;
        case What::chunk_ready:
          send(0, index);
          break;
        case What::step_done:
          next_step(index);
          break;
      }
    }
    return now_;
  }

 private:
  enum class What { link_free, message_there, message_taken, chunk_ready, step_done };
  using Event = std::tuple<int64_t, int64_t, What, size_t>;  // when, order of insertion, and of which link or chunk
  struct Link {
    bool busy = false;
    std::deque<size_t> waiting;  // chunks
  };
  struct Chunk {
    int64_t message = 0, steps = 0, reductions = 0;
    size_t hop = 0;
  };

  void in(int64_t delay, What what, size_t index) { events_.emplace(now_ + delay, ++inserted_, what, index); }

  void start_chunks() {
    for (; free_ > 0 && next_ < chunks_.size(); --free_, ++next_) in(endpoint_.delay_ns, What::chunk_ready, next_);
  }

  void send(size_t hop, size_t chunk) {
    chunks_[chunk].hop = hop;
    Link& link = links_[hop];
    if (link.busy) {
      link.waiting.push_back(chunk);
    } else {
      transmit(hop, chunk);
    }
  }

  void transmit(size_t hop, size_t chunk) {
    links_[hop].busy = true;
    const double wire_ns = static_cast<double>(chunks_[chunk].message) / (dimension_.bandwidth_gib_per_s * gibi / giga);
    in(static_cast<int64_t>(dimension_.latency_ns + wire_ns), What::message_there, chunk);
    in(static_cast<int64_t>(wire_ns), What::link_free, hop);
  }

  void release(size_t hop) {
    Link& link = links_[hop];
    link.busy = false;
    if (link.waiting.empty()) return;
    const size_t chunk = link.waiting.front();
    link.waiting.pop_front();
    transmit(hop, chunk);
  }

  void pass_on(size_t chunk) {
    const size_t next = chunks_[chunk].hop + 1;
    if (next < links_.size()) {
      send(next, chunk);
    } else {
      in(endpoint_.delay_ns, What::message_taken, chunk);
    }
  }

  void take(size_t chunk) {
    Chunk& one = chunks_[chunk];
    --one.steps;
    if (one.reductions == 0) return next_step(chunk);
    --one.reductions;
    // Two reads and a write.
    const auto access = static_cast<int64_t>(static_cast<double>(one.message) / endpoint_.local_memory_gb_per_s);
    in(3 * access, What::step_done, chunk);
  }

  void next_step(size_t chunk) {
    if (chunks_[chunk].steps > 0) return send(0, chunk);
    ++free_;
    start_chunks();
  }

  const AstraDimension& dimension_;
  const AstraEndpoint& endpoint_;
  std::vector<Link> links_;
  std::vector<Chunk> chunks_;
  size_t next_ = 0;  // chunk to start
  int64_t free_ = 1, now_ = 0, inserted_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

int64_t astra_ring_nanoseconds(CollectiveKind kind, const AstraDimension& dimension, std::span<const int64_t> chunks,
                               int64_t active, const AstraEndpoint& endpoint) {
  return dimension.npus == 1 ? 0 : RingEvents(kind, dimension, chunks, active, endpoint).run();
}

}  // namespace foretoken
