#include "plan/store/shared_work.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include "base/parallel.h"

namespace foretoken {
namespace {

// Between two looks at what other processes hold.
constexpr std::chrono::milliseconds polling_pause{20};

enum class Piece : uint8_t {
  open,   // not known here
  taken,  // a thread of this process looks after it
  known
};

class SharedWork {
 public:
  SharedWork(ResultStore& store, std::span<const std::string> keys)
      : store_(store), keys_(keys), pieces_(keys.size(), Piece::open), results_(keys.size()) {}

  // Until nothing is left that this thread could do.
  void work_through(const std::function<std::string(size_t index)>& work) {
    bool others_hold = true;
    while (others_hold) {
      others_hold = false;
      for (size_t i = 0; i < keys_.size(); ++i) {
        if (!take(i)) continue;
        const std::optional<std::string> result = result_of(i, work);
        put(i, result);
        others_hold = others_hold || !result;
      }
      if (others_hold) std::this_thread::sleep_for(polling_pause);
    }
  }

  std::vector<std::string> results() && { return std::move(results_); }

 private:
  // Nothing while another process is at it.
  std::optional<std::string> result_of(size_t i, const std::function<std::string(size_t)>& work) {
    ResultStore::Claim claim = store_.claim(keys_[i]);
    if (claim.state == ResultStore::State::held) return std::nullopt;
    if (claim.state == ResultStore::State::done) return std::move(claim.result);
    std::string result = work(i);
    store_.finish(keys_[i], result);
    return result;
  }

  bool take(size_t i) {
    const std::lock_guard lock(guard_);
    if (pieces_[i] != Piece::open) return false;
    pieces_[i] = Piece::taken;
    return true;
  }

  void put(size_t i, const std::optional<std::string>& result) {
    const std::lock_guard lock(guard_);
    pieces_[i] = result ? Piece::known : Piece::open;
    if (result) results_[i] = *result;
  }

  ResultStore& store_;
  std::span<const std::string> keys_;
  std::mutex guard_;  // of what follows
  std::vector<Piece> pieces_;
  std::vector<std::string> results_;
};

}  // namespace

std::vector<std::string> shared_results(ResultStore& store, std::span<const std::string> keys, unsigned threads,
                                        const std::function<std::string(unsigned thread, size_t index)>& work) {
  SharedWork shared(store, keys);
  std::atomic<unsigned> next_thread = 0;
  run_on_threads(std::max(1U, threads), [&] {
    const unsigned thread = next_thread++;
    shared.work_through([&](size_t index) { return work(thread, index); });
  });
  return std::move(shared).results();
}

}  // namespace foretoken
