// Estimates of kernels that were asked for before.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kernel/kernel.h"
#include "model/shapes.h"

namespace foretoken {

// Of one predictor. Safe to use from many threads. Holds some thousands of calls; when full it starts again from none.
class EstimateMemory {
 public:
  std::optional<KernelEstimate> find(const KernelShape& shape, std::string_view variant) const;
  void keep(const KernelShape& shape, std::string_view variant, const KernelEstimate& estimate);

  static constexpr size_t most_kept = 16384;

 private:
  struct Call {
    KernelShape shape;
    std::string variant;
  };
  struct CallView {
    const KernelShape& shape;
    std::string_view variant;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Call& call) const { return (*this)(CallView{call.shape, call.variant}); }
    size_t operator()(const CallView& call) const;
  };
  struct Equal {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return a.variant == b.variant && a.shape == b.shape;
    }
  };
  mutable std::mutex mutex_;
  std::unordered_map<Call, KernelEstimate, Hash, Equal> kept_;
};

}  // namespace foretoken
