// How long the tasks of a pipeline take, on a grid of 2^-34 of the longest one: sums of up to 2^19 such times are
// exact, so that times of repeating tasks can be compared for equality.
#pragma once

#include <array>
#include <vector>

#include "training/schedule/pipeline_kind.h"

namespace foretoken {

class TaskSeconds {
 public:
  explicit TaskSeconds(const PipelineWork& work);

  // Each of two that run together takes its part of the pair's seconds.
  double of(const PipelineTask& task) const {
    const PerKind& alone_or_paired =
        seconds_[static_cast<size_t>(task.chunk)][task.pairing == TaskPairing::alone ? 0 : 1];
    return alone_or_paired[static_cast<size_t>(task.kind)];
  }
  double send_forward() const { return send_forward_; }
  double send_backward() const { return send_backward_; }

 private:
  using PerKind = std::array<double, 4>;
  std::vector<std::array<PerKind, 2>> seconds_;  // by chunk: alone, and in a pair
  double send_forward_ = 0, send_backward_ = 0;
};

}  // namespace foretoken
