// What the calls of one kind share on one device, worked out once: summing effects by name takes longer than the rest
// of a prediction.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

struct CallKind {
  uint64_t key = 0;  // Form::kind_key
  std::string variant;

  // Natural constants; empty where there is no calibration.
  std::vector<double> cross;     // of a device nobody measured
  std::vector<double> known;     // with what is known about this one
  double unseen_half_width = 0;  // unseen_kernel_half_width
  struct Sweep {
    std::string group;
    float group_number = 0;
    std::vector<double> constants;
    std::vector<std::pair<float, float>> ranges;  // of the raw features that were measured
  };
  std::optional<Sweep> sweep;  // nothing where the group was not swept
};

// Grows only, and many threads may read and add at the same time without waiting for one another.
class CallKinds {
 public:
  CallKinds() = default;
  ~CallKinds();
  CallKinds(const CallKinds&) = delete;
  CallKinds& operator=(const CallKinds&) = delete;

  const CallKind* find(uint64_t key, std::string_view variant) const;  // null if it is not kept
  // Keeps it and says where, or null when there are too many already (a file with a new variant in every row).
  const CallKind* keep(CallKind kind);

 private:
  struct Node;
  static constexpr size_t most = 4096;
  std::array<std::atomic<Node*>, 64> buckets_{};
  std::atomic<size_t> count_ = 0;
};

}  // namespace foretoken
