// Several outputs of one prompt: each is a sequence of its own inside the engine, and the request ends with the last.
#pragma once

#include <cstdint>
#include <map>

#include "base/random.h"
#include "serving/requests/event_loop.h"
#include "serving/requests/request.h"

namespace foretoken {

struct SampleSettings {
  int64_t count = 1;  // outputs of each request; 1 = as it is
  double spread = 0;  // their lengths are uniform within this share of the request's, 0 to 1
};

// Stands between the requests, the engines and those who watch them. As in vLLM V1 (v1/engine/parallel_sampling.py)
// the samples are requests to one engine that find each other's prompt in its prefix cache: full blocks are shared, the
// tokens behind them are computed by each. Their records become one: first token of the first, last token of the last,
// all tokens; cached are those that the first sample found. A request fails where one of its samples does.
class SampleGroups final : public RequestTaker, public RequestEnds, public RunObserver {
 public:
  // `source` is told when requests end, `observer` what becomes of them.
  SampleGroups(const SampleSettings& settings, uint64_t seed, RequestEnds& source, RunObserver& observer);
  // Where samples go; before the first request.
  void feed(RequestTaker& engines) { engines_ = &engines; }

  void accept(Request&& request, Picoseconds now) override;
  void ended(int64_t id, Picoseconds when) override { sample_ended(id, when); }
  void rejected(int64_t id, Picoseconds when) override { sample_ended(id, when); }

  void request_ended(const RequestRecord& record) override;
  void step_ran(const StepRecord& step) override { observer_->step_ran(step); }
  void token_gaps(Picoseconds gap, int64_t count) override { observer_->token_gaps(gap, count); }
  bool watches(int64_t request) const override { return observer_->watches(request / settings_.count); }
  void request_stepped(const RequestStep& own, const StepRecord& step) override;
  void drafts_verified(int64_t drafts, int64_t accepted) override { observer_->drafts_verified(drafts, accepted); }

  int64_t completed() const { return completed_; }
  int64_t rejected_requests() const { return rejected_; }

 private:
  struct Group {
    RequestRecord record;  // of the samples that have ended
    int64_t recorded = 0;  // samples in it
    int64_t told = 0;      // samples that the source was told of
  };

  void sample_ended(int64_t id, Picoseconds when);

  SampleSettings settings_;
  RequestEnds* source_;
  RequestTaker* engines_ = nullptr;
  RunObserver* observer_;
  RandomStream lengths_;
  std::map<int64_t, Group> groups_;  // by request, while a sample of it runs
  int64_t completed_ = 0, rejected_ = 0;
};

}  // namespace foretoken
