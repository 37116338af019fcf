#include "serving/results/request_details.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {

void RequestDetails::add(Open& open, Picoseconds gap, int64_t count) {
  if (count == 0) return;
  if (!open.gaps.empty() && open.gaps.back().gap == gap) {
    open.gaps.back().count += count;
  } else {
    open.gaps.push_back({.gap = gap, .count = count});
  }
}

void RequestDetails::request_stepped(const RequestStep& own, const StepRecord& step) {
  if (own.sent == 0) return;
  Open& open = open_[own.request];
  // Equal steps share their time evenly.
  const Picoseconds first = step.begin + (step.end - step.begin) / step.repeats + own.sending;
  if (open.last_token >= 0) add(open, first - open.last_token, 1);
  open.last_token = step.end + own.last_sending;
  if (step.repeats > 1) add(open, (open.last_token - first) / (step.repeats - 1), step.repeats - 1);
}

void RequestDetails::request_ended(const RequestRecord& record) {
  if (record.outcome == RequestOutcome::completed) tokens_ += record.output_tokens;
  if (tokens_ > most_tokens_) {
    throw InputError({.field = "save_detailed",
                      .value = fmt::format("a run of more than {} output tokens", most_tokens_),
                      .expected = "a shorter run ({num_prompts}), or {out_requests}, which has no limit"});
  }
  const auto open = open_.find(record.id);
  ended_.push_back({.record = record,
                    .gaps = open == open_.end() ? std::vector<RequestDetail::Gaps>{} : std::move(open->second.gaps)});
  if (open != open_.end()) open_.erase(open);
}

std::vector<RequestDetail> RequestDetails::by_id() const {
  std::vector<RequestDetail> sorted = ended_;
  std::sort(sorted.begin(), sorted.end(),
            [](const RequestDetail& a, const RequestDetail& b) { return a.record.id < b.record.id; });
  return sorted;
}

}  // namespace foretoken
