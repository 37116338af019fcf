// Where the time of a run went, by kind of step, and what the typical step of each kind was.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "model/step.h"
#include "serving/requests/request.h"

namespace foretoken {

// Steps with prompts alone, decodes alone, or both: StepPhase::prefill, decode and mixed.
struct StepShare {
  StepPhase phase = StepPhase::decode;
  int64_t steps = 0;
  double seconds = 0;
  double prefill_tokens = 0, decode_tokens = 0;  // of all steps
  double prompts = 0, prompt_context_tokens = 0;
  double decode_context_tokens = 0;  // of all decodes of all steps

  // The step of mean size; `steps` is above zero.
  StepRequest typical() const;
};

// Steps of nearly the same size: each size within a factor of 1.4.
struct StepClass {
  StepShare share;
  std::vector<double> slice_seconds;  // of the run's slices (StepMix::slice_seconds), those after the last left out
};

class StepMix : public RunObserver {
 public:
  StepMix() = default;
  // Of these replicas alone, up to `end`.
  StepMix(int32_t first_replica, int32_t end) : first_replica_(first_replica), end_replica_(end) {}
  void step_ran(const StepRecord& step) override;
  const std::array<StepShare, 3>& shares() const { return shares_; }
  double busy_seconds() const;

  // All steps, by kind and size: few hundred whatever the run. By kind, then size.
  std::vector<StepClass> classes() const;
  // The run is cut into up to 64 equal slices of so many seconds.
  double slice_seconds() const { return slice_seconds_; }

 private:
  using SizeKey = std::array<int32_t, 5>;
  void add_time(StepClass& one, double begin, double end);

  int32_t first_replica_ = 0, end_replica_ = std::numeric_limits<int32_t>::max();
  std::array<StepShare, 3> shares_ = {StepShare{.phase = StepPhase::prefill}, StepShare{.phase = StepPhase::decode},
                                      StepShare{.phase = StepPhase::mixed}};
  std::map<SizeKey, StepClass> classes_;
  double slice_seconds_ = 1.0 / 64;
};

}  // namespace foretoken
