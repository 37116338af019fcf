#include "serving/stages/sample_groups.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serving/load/lengths.h"
#include "serving/load/prompt_blocks.h"

namespace foretoken {
namespace {

// Adds the record of one more sample.
void join(RequestRecord& all, const RequestRecord& one) {
  all.preemptions += one.preemptions;
  all.output_tokens += one.output_tokens;
  all.outputs += one.outputs;
  all.shortened = all.shortened || one.shortened;
  all.streaming += one.last_token - one.first_token;
  all.thinking_tokens += one.thinking_tokens;
  all.queued = std::min(all.queued, one.queued);
  all.scheduled = std::min(all.scheduled, one.scheduled);
  all.first_token = std::min(all.first_token, one.first_token);
  all.last_token = std::max(all.last_token, one.last_token);
  if (one.answered > 0) all.answered = all.answered > 0 ? std::min(all.answered, one.answered) : one.answered;
  if (one.outcome == RequestOutcome::rejected) {
    all.outcome = one.outcome;
    all.rejection = one.rejection;
  }
}

}  // namespace

SampleGroups::SampleGroups(const SampleSettings& settings, uint64_t seed, RequestEnds& source, RunObserver& observer)
    : settings_(settings), source_(&source), observer_(&observer), lengths_(seed, "sample lengths") {
  ensure(settings.count >= 1, "a request has an output");
}

void SampleGroups::accept(Request&& request, Picoseconds now) {
  describe_whole_prompt(request);
  const LengthRange range = range_around(request.output_tokens, settings_.spread, 1);
  groups_[request.id] = {};
  for (int64_t i = 0; i < settings_.count; ++i) {
    Request sample = request;
    sample.id = request.id * settings_.count + i;
    sample.follows = i > 0;
    if (settings_.spread > 0 && request.output_tokens > 0) {
      sample.output_tokens =
          range.least + static_cast<int64_t>(lengths_.below(static_cast<uint64_t>(range.most - range.least + 1)));
    }
    engines_->accept(std::move(sample), now);
  }
}

void SampleGroups::request_ended(const RequestRecord& record) {
  const auto found = groups_.find(record.id / settings_.count);
  ensure(found != groups_.end(), "a sample that ends belongs to a request");
  Group& group = found->second;
  if (group.recorded++ == 0) {
    group.record = record;
    group.record.id = found->first;
    group.record.streaming = record.last_token - record.first_token;
  } else {
    if (record.id % settings_.count == 0) group.record.cached_tokens = record.cached_tokens;
    join(group.record, record);
  }
  if (group.recorded < settings_.count) return;
  ++(group.record.outcome == RequestOutcome::completed ? completed_ : rejected_);
  observer_->request_ended(group.record);
}

void SampleGroups::sample_ended(int64_t id, Picoseconds when) {
  const auto found = groups_.find(id / settings_.count);
  ensure(found != groups_.end(), "a sample that ends belongs to a request");
  if (++found->second.told < settings_.count) return;
  const bool completed = found->second.record.outcome == RequestOutcome::completed;
  const int64_t request = found->first;
  groups_.erase(found);
  completed ? source_->ended(request, when) : source_->rejected(request, when);
}

void SampleGroups::request_stepped(const RequestStep& own, const StepRecord& step) {
  RequestStep of_request = own;
  of_request.request = own.request / settings_.count;
  observer_->request_stepped(of_request, step);
}

}  // namespace foretoken
