#include "plan/store/shared_work.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/parallel.h"

namespace foretoken {
namespace {

// Between two looks at what other processes hold: longer while nothing changes, so that hundreds of workers at the end
// of a round do not keep a server busy.
constexpr std::chrono::milliseconds first_pause{5}, longest_pause{160};

// Keys of one look: enough for many workers to find a free one, few enough for one message.
constexpr size_t most_asked = 128;

enum class Piece : uint8_t {
  open,   // not known here
  taken,  // a thread of this process works it out
  known
};

class SharedWork {
 public:
  SharedWork(ResultStore& store, std::span<const std::string> keys, std::function<bool(size_t index)> helps_with)
      : store_(store),
        keys_(keys),
        helps_with_(std::move(helps_with)),
        pieces_(keys.size(), Piece::open),
        results_(keys.size()) {}

  // Until nothing is left that this thread could do.
  void work_through(const std::function<std::string(size_t index)>& work) {
    auto pause = first_pause;
    size_t known_before = 0;
    while (true) {
      size_t from = 0;
      while (const std::optional<size_t> mine = claimed_from(from)) work_out(*mine, work);
      const auto [open, known] = counts();
      if (open == 0) return;
      if (const std::optional<size_t> other = helped_one()) {
        work_out(*other, work);
        continue;
      }
      pause = known == known_before ? std::min(longest_pause, 2 * pause) : first_pause;
      known_before = known;
      std::this_thread::sleep_for(pause);
    }
  }

  std::vector<std::string> results() && { return std::move(results_); }

 private:
  void work_out(size_t i, const std::function<std::string(size_t index)>& work) {
    std::string result = work(i);
    store_.finish(keys_[i], result);
    put(i, std::move(result));
  }

  // One that another process holds and no thread helps with here.
  std::optional<size_t> helped_one() {
    if (!helps_with_) return std::nullopt;
    const std::lock_guard lock(guard_);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i] != Piece::open || !helps_with_(i)) continue;
      pieces_[i] = Piece::taken;
      return i;
    }
    return std::nullopt;
  }

  // A piece to work out, of those at `from` or later, which goes past what is known or held by others.
  std::optional<size_t> claimed_from(size_t& from) {
    while (from < keys_.size()) {
      std::vector<size_t> places;
      std::vector<std::string> asked;
      const size_t next = choose(from, places, asked);
      if (places.empty()) return std::nullopt;
      // Not under the guard: it asks a disk or a server. Another thread may ask about the same keys; the store gives
      // each to one of us.
      StoreClaim found = store_.claim(asked);
      for (auto& [place, result] : found.done) put(places[place], std::move(result));
      if (found.mine) {
        const std::lock_guard lock(guard_);
        pieces_[places[*found.mine]] = Piece::taken;
        return places[*found.mine];
      }
      from = next;
    }
    return std::nullopt;
  }

  // Open pieces at `from` or later; returns the place behind the last of them.
  size_t choose(size_t from, std::vector<size_t>& places, std::vector<std::string>& asked) {
    const std::lock_guard lock(guard_);
    size_t i = from;
    for (; i < keys_.size() && places.size() < most_asked; ++i) {
      if (pieces_[i] != Piece::open) continue;
      places.push_back(i);
      asked.push_back(keys_[i]);
    }
    return i;
  }

  void put(size_t i, std::string result) {
    const std::lock_guard lock(guard_);
    pieces_[i] = Piece::known;
    results_[i] = std::move(result);
  }

  // Pieces that others hold, and pieces that are known.
  std::pair<size_t, size_t> counts() {
    const std::lock_guard lock(guard_);
    return {std::count(pieces_.begin(), pieces_.end(), Piece::open),
            std::count(pieces_.begin(), pieces_.end(), Piece::known)};
  }

  ResultStore& store_;
  std::span<const std::string> keys_;
  std::function<bool(size_t index)> helps_with_;
  std::mutex guard_;  // of what follows
  std::vector<Piece> pieces_;
  std::vector<std::string> results_;
};

}  // namespace

std::vector<std::string> shared_results(ResultStore& store, std::span<const std::string> keys, unsigned threads,
                                        const std::function<std::string(unsigned thread, size_t index)>& work,
                                        std::function<bool(size_t index)> helps_with) {
  SharedWork shared(store, keys, std::move(helps_with));
  std::atomic<unsigned> next_thread = 0;
  run_on_threads(std::max(1U, threads), [&] {
    const unsigned thread = next_thread++;
    shared.work_through([&](size_t index) { return work(thread, index); });
  });
  return std::move(shared).results();
}

}  // namespace foretoken
