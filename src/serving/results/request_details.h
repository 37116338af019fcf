// Every request of a run with the times of its tokens, kept: for results that list them all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "serving/requests/request.h"
#include "serving/requests/run_parts.h"

namespace foretoken {

struct RequestDetail {
  // `count` gaps of this length between successive tokens.
  struct Gaps {
    Picoseconds gap = 0;
    int64_t count = 0;
  };
  RequestRecord record;
  std::vector<Gaps> gaps;  // in order: output tokens - 1 in all
};

// InputError beyond `most_tokens` output tokens in all: such a run does not belong into memory.
class RequestDetails : public RunObserver {
 public:
  explicit RequestDetails(int64_t most_tokens = 10'000'000) : most_tokens_(most_tokens) {}

  bool watches(int64_t /*request*/) const override { return true; }
  void request_stepped(const RequestStep& own, const StepRecord& step) override;
  void request_interrupted(int64_t request) override { open_.erase(request); }
  void request_ended(const RequestRecord& record) override;
  void add_parts(RunParts& parts) const override { parts.add(RunPart::request_details); }

  std::vector<RequestDetail> by_id() const;

 private:
  struct Open {
    Picoseconds last_token = -1;
    std::vector<RequestDetail::Gaps> gaps;
  };
  static void add(Open& open, Picoseconds gap, int64_t count);

  int64_t most_tokens_, tokens_ = 0;
  std::unordered_map<int64_t, Open> open_;  // never iterated
  std::vector<RequestDetail> ended_;
};

}  // namespace foretoken
