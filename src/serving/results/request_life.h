// One request from its arrival to its last token: when it waited, and for which steps it ran.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "serving/requests/request.h"
#include "serving/requests/run_parts.h"
#include "serving/results/step_mix.h"

namespace foretoken {

enum class LifePhase : uint8_t {
  queue,      // until its first step
  prefill,    // steps that compute its prompt
  recompute,  // steps that compute again what a preemption lost
  decode,     // steps that bring one token each
  pause       // between its steps: preempted, or the engine runs others
};
inline constexpr size_t life_phases = 5;
std::string_view life_phase_name(LifePhase phase);

// A time without change of phase. Those of a life follow each other without gaps.
struct LifePart {
  LifePhase phase = LifePhase::queue;
  Picoseconds begin = 0, end = 0;
  int64_t steps = 0;
  int64_t tokens = 0;         // that the request computed
  int64_t cached_tokens = 0;  // found in the prefix cache when the part began
};

class RequestLife : public RunObserver {
 public:
  explicit RequestLife(int64_t request) : request_(request) {}

  bool watches(int64_t request) const override { return request == request_; }
  void request_stepped(const RequestStep& own, const StepRecord& step) override;
  void request_ended(const RequestRecord& record) override;
  void add_parts(RunParts& parts) const override { parts.add(RunPart::request_life); }

  int64_t request() const { return request_; }
  bool has_ended() const { return has_ended_; }  // else the run has no such request
  const RequestRecord& record() const { return record_; }
  const std::vector<LifePart>& parts() const { return parts_; }
  const StepMix& steps() const { return steps_; }    // those it took part in, with all that ran in them
  std::array<LifePart, life_phases> totals() const;  // by phase; `begin` is that of the first such part, `end`
                                                     // comes as much later as all of them took

 private:
  int64_t request_;
  bool has_ended_ = false;
  RequestRecord record_;
  std::vector<LifePart> parts_;
  StepMix steps_;
  int64_t computed_ = 0;  // tokens in the cache after its last step
  bool lost_some_ = false;
};

}  // namespace foretoken
