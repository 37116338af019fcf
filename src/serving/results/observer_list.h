// Several observers of one run, told in this order.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

class ObserverList final : public RunObserver {
 public:
  explicit ObserverList(std::vector<RunObserver*> all) : all_(std::move(all)) {}
  void request_ended(const RequestRecord& record) override {
    for (RunObserver* one : all_) one->request_ended(record);
  }
  void step_ran(const StepRecord& step) override {
    for (RunObserver* one : all_) one->step_ran(step);
  }
  void token_gaps(Picoseconds gap, int64_t count) override {
    for (RunObserver* one : all_) one->token_gaps(gap, count);
  }
  bool watches(int64_t request) const override {
    return std::any_of(all_.begin(), all_.end(), [&](const RunObserver* one) { return one->watches(request); });
  }
  void request_stepped(const RequestStep& own, const StepRecord& step) override {
    for (RunObserver* one : all_) one->request_stepped(own, step);
  }
  void request_interrupted(int64_t request) override {
    for (RunObserver* one : all_) one->request_interrupted(request);
  }
  void drafts_verified(int64_t drafts, int64_t accepted) override {
    for (RunObserver* one : all_) one->drafts_verified(drafts, accepted);
  }
  void add_parts(RunParts& parts) const override {
    for (const RunObserver* one : all_) one->add_parts(parts);
  }

 private:
  std::vector<RunObserver*> all_;
};

}  // namespace foretoken
