// Routers that send what belongs together to one place, where its KV cache lies.
#include <algorithm>
#include <list>
#include <optional>
#include <unordered_map>

#include "serving/routers/list.h"
#include "serving/scheduling/block_chain.h"

namespace foretoken {
namespace {

// A replica with this many requests more than the least loaded one, and this many times as many, is passed over
// (SGLang router, defaults of balance-abs-threshold and balance-rel-threshold).
constexpr int64_t overload_requests = 32;
constexpr double overload_ratio = 1.1;
// That a router keeps in mind: a long trace must not fill the memory.
constexpr size_t most_known_blocks = 1 << 20;

// Where a replica stands among those offered.
std::optional<size_t> index_of(int32_t replica, std::span<const ReplicaLoad> offered) {
  for (size_t i = 0; i < offered.size(); ++i) {
    if (offered[i].replica == replica) return i;
  }
  return std::nullopt;
}

class SessionSticky final : public RequestRouter {
 public:
  size_t choose(const Request& request, std::span<const ReplicaLoad> replicas) override {
    const size_t least = least_loaded(replicas, outstanding_requests);
    if (request.session < 0) return least;
    const int32_t home = homes_.try_emplace(request.session, replicas[least].replica).first->second;
    if (const std::optional<size_t> there = index_of(home, replicas)) return *there;
    homes_[request.session] = replicas[least].replica;  // it has outgrown its home
    return least;
  }

 private:
  std::unordered_map<int64_t, int32_t> homes_;  // replicas; never iterated
};

// Follows only a match of more than half the prompt (SGLang router, default of cache-threshold): a system prompt that
// all share would send them all to one place.
class PrefixAware final : public RequestRouter {
 public:
  size_t choose(const Request& request, std::span<const ReplicaLoad> replicas) override {
    const size_t least = least_loaded(replicas, outstanding_requests);
    const std::optional<int32_t> home = longest_match(request);
    size_t chosen = home ? index_of(*home, replicas).value_or(least) : least;
    const auto fewest = static_cast<double>(replicas[least].outstanding);
    const auto there = static_cast<double>(replicas[chosen].outstanding);
    if (there > fewest + overload_requests && there > fewest * overload_ratio) chosen = least;
    remember(request, replicas[chosen].replica);
    return chosen;
  }

 private:
  // A prompt up to the end of a block (block_chain.h).
  using Prefix = uint64_t;
  static Prefix longer(Prefix prefix, int64_t block) { return chained(prefix, static_cast<uint64_t>(block)); }

  struct Home {
    int32_t replica = 0;
    std::list<Prefix>::iterator use;
  };

  // Blocks of a prompt lie where the last prompt with them went: the replica of the last one that is known.
  std::optional<int32_t> longest_match(const Request& request) const {
    std::optional<int32_t> match;
    int64_t tokens = 0;
    Prefix prefix = 0;
    for (const int64_t block : request.prefix_blocks) {
      prefix = longer(prefix, block);
      const auto home = homes_.find(prefix);
      if (home == homes_.end()) break;
      match = home->second.replica;
      tokens += request.prefix_block_tokens;
    }
    return 2 * tokens > request.input_tokens ? match : std::nullopt;
  }

  void remember(const Request& request, int32_t replica) {
    Prefix prefix = 0;
    for (const int64_t block : request.prefix_blocks) {
      prefix = longer(prefix, block);
      remember(prefix, replica);
    }
  }

  void remember(Prefix prefix, int32_t replica) {
    const auto [found, is_new] = homes_.try_emplace(prefix);
    found->second.replica = replica;
    if (!is_new) {
      uses_.splice(uses_.end(), uses_, found->second.use);
      return;
    }
    found->second.use = uses_.insert(uses_.end(), prefix);
    if (uses_.size() <= most_known_blocks) return;
    homes_.erase(uses_.front());
    uses_.pop_front();
  }

  std::unordered_map<Prefix, Home> homes_;  // never iterated
  std::list<Prefix> uses_;                  // the one not seen for longest first
};

}  // namespace

std::unique_ptr<RequestRouter> make_session_sticky(uint64_t) {
  return std::make_unique<SessionSticky>();
}

std::unique_ptr<RequestRouter> make_prefix_aware(uint64_t) {
  return std::make_unique<PrefixAware>();
}

}  // namespace foretoken
