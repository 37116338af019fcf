// Decode steps of one model on one device, one after the other, fast: for simulators that ask for millions of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/estimate.h"
#include "compose/step_estimate.h"

namespace foretoken {

// The same answers as estimate_step() for decode steps that run as one graph. What does not depend on the context is
// kept for each batch size. Not thread-safe: one for each thread.
class DecodeSteps {
 public:
  // The stack must run decode steps as a graph (or fused); one pipeline stage.
  DecodeSteps(Model model, ParallelPlan plan, KernelPredictor predictor, Stack stack);
  ~DecodeSteps();

  // Seconds of a step of `batch` sequences with `context_len` tokens in the cache of each.
  Estimate seconds(int64_t batch, int64_t context_len);

 private:
  struct Prepared;
  const Prepared& prepared(int64_t batch);

  Model model_;
  ParallelPlan plan_;
  KernelPredictor predictor_;
  Stack stack_;
  std::map<int64_t, std::unique_ptr<Prepared>> by_batch_;
  KernelSum kernels_;  // scratch
};

}  // namespace foretoken
