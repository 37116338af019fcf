// How requests come into an engine, wait, and leave it.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "serving/simulation/replica.h"

namespace foretoken {

void Replica::arrive(Request&& request, Picoseconds now, int64_t body) {
  if (const Rejection why = rejection(request); why != Rejection::none) {
    reject(request, why, now);
    return;
  }
  ++outstanding_;
  Sequence& sequence = new_sequence(cut(std::move(request)));
  if (front_.takes_time()) {
    const Picoseconds through = front_.through(sequence.request.input_tokens, now);
    for (auto one = on_the_way_.rbegin(); body >= 0 && one != on_the_way_.rend() && one->body == body; ++one) {
      one->through = through;
    }
    on_the_way_.push_back({&sequence, through, body});
  } else {
    enter(sequence, now);
  }
}

// The engine has it, and reads it when it can.
void Replica::enter(Sequence& sequence, Picoseconds now) {
  if (tiers_) tiers_->set_time(now);
  inbox_.push_back(&sequence);
  if (in_flight_.empty() || (schedules_on_arrival_ && in_flight_.size() < most_in_flight_)) {
    wakes_ = now;
  } else if (in_flight_.back().steps_ahead > 0) {
    if (scheduler_->arrival_matters() || receive_interval_ > 1) {
      shorten_run(now);
    } else {
      read_arrivals(next_reading(now));
    }
  }
}

Request Replica::cut(Request&& request) const {
  if (options_.max_model_len > 0 && !request.pooled) {
    const int64_t room = options_.max_model_len - request.input_tokens;
    request.shortened = request.shortened || room < request.output_tokens;
    request.output_tokens = std::min(request.output_tokens, room);
  }
  return std::move(request);
}

Sequence& Replica::new_sequence(Request&& request) {
  if (spare_sequences_.empty()) spare_sequences_.push_back(&sequences_.emplace_back());
  Sequence& sequence = *spare_sequences_.back();
  spare_sequences_.pop_back();
  sequence.begin(std::move(request));
  sequence.latest_start = latest_start(sequence.request);
  if (!adapters_.has_slots()) sequence.request.adapter = -1;  // the model alone answers
  sequence.record.replica = index_;
  sequence.watched = observer_->watches(sequence.request.id);
  watched_ += sequence.watched ? 1 : 0;
  return sequence;
}

void Replica::free_place(Sequence& sequence) {
  sequence.spare = true;
  spare_sequences_.push_back(&sequence);
}

bool Replica::cancel(int64_t id) {
  ensure(!repeat_decodes_ && !tiers_, "only steps that are decided one by one, without tiers, can lose a request");
  const auto found = std::find_if(sequences_.begin(), sequences_.end(), [&](const Sequence& sequence) {
    return sequence.request.id == id && !sequence.spare && !sequence.cancelled;
  });
  if (found == sequences_.end()) return forget_answer(id);
  Sequence& sequence = *found;
  const auto is_it = [&](const OnTheWay& one) { return one.sequence == &sequence; };
  if (std::erase_if(on_the_way_, is_it) == 0 && std::erase(inbox_, &sequence) == 0) scheduler_->release(sequence);
  --outstanding_;
  watched_ -= sequence.watched ? 1 : 0;
  sequence.watched = false;
  if (sequence.steps_in_flight > 0) {
    sequence.cancelled = true;
  } else {
    free_place(sequence);
  }
  return true;
}

// The engine has done all of it, and its last pieces are still to be sent.
bool Replica::forget_answer(int64_t id) {
  const auto is_it = [&](const Answered& one) { return one.record.id == id; };
  if (std::erase_if(on_the_way_back_, is_it) == 0) return false;
  --outstanding_;
  return true;
}

void Replica::let_go(int64_t id, Picoseconds now) {
  const auto found = outside_.find(id);
  ensure(found != outside_.end(), "what is let go was kept");
  scheduler_->release(*found->second);
  free_place(*found->second);
  outside_.erase(found);
  if (in_flight_.empty()) wakes_ = now;
}

std::optional<int64_t> Replica::expect(const Request& request, const RequestRecord& prompt, Picoseconds now) {
  const auto run_needs = [&]() -> int64_t {
    if (in_flight_.empty() || in_flight_.back().steps_ahead == 0) return 0;
    return scheduler_->blocks_ahead(in_flight_.back().batch, in_flight_.back().steps_ahead);
  };
  Sequence& sequence = new_sequence(cut(Request(request)));
  bool expected = scheduler_->expect(sequence, run_needs());
  if (!expected && run_needs() > 0) {  // equal steps that are planned hold what it needs: fewer of them
    shorten_run(now);
    expected = scheduler_->expect(sequence, run_needs());
  }
  if (!expected) {
    watched_ -= sequence.watched ? 1 : 0;
    free_place(sequence);
    return std::nullopt;
  }
  const int32_t replica = sequence.record.replica;
  sequence.record = prompt;
  sequence.record.replica = replica;
  sequence.record.output_tokens = sequence.request.output_tokens;
  sequence.record.shortened = sequence.request.shortened;
  outside_.emplace(request.id, &sequence);
  ++outstanding_;
  return request.input_tokens - sequence.computed;
}

void Replica::receive(int64_t id, bool with_token, Picoseconds now) {
  const auto found = outside_.find(id);
  ensure(found != outside_.end(), "a prompt arrives that was expected");
  Sequence& sequence = *found->second;
  outside_.erase(found);
  // Without the token the prompt's last one is computed again, as a decode.
  sequence.computed = sequence.prompt_end = sequence.request.input_tokens - (with_token ? 0 : 1);
  if (with_token) {
    sequence.promised = sequence.produced = sequence.sent = 1;
    if (front_.sends_pieces()) finish_ended_steps(now);  // their pieces are sent before this one
    sequence.record.first_token = sequence.record.last_token = front_.sent(1, now);
    if (sequence.request.output_tokens == 1) {
      end_sequence(sequence);
      return;
    }
  }
  hand_in(sequence, now);
}

// Its prompt, or what it loaded of it, is in the cache: the engine goes on with it when it can.
void Replica::hand_in(Sequence& sequence, Picoseconds now) {
  received_.push_back(&sequence);
  if (in_flight_.empty()) {
    wakes_ = now;
  } else if (in_flight_.back().steps_ahead > 0) {
    shorten_run(now);
  }
}

Rejection Replica::rejection(const Request& request) const {
  if (request.input_tokens < 1) return Rejection::no_input;
  if (request.output_tokens < 1) return Rejection::no_output;
  if (request.input_tokens > longest_prompt_) return Rejection::beyond_step;
  int64_t most = request.input_tokens + request.output_tokens;
  if (options_.max_model_len > 0) {
    const int64_t least_output = request.pooled ? 0 : 1;
    if (request.input_tokens + least_output > options_.max_model_len) return Rejection::beyond_model_length;
    most = std::min(most, options_.max_model_len);
  }
  // The last token is not kept.
  return most - 1 <= scheduler_->capacity_tokens() ? Rejection::none : Rejection::beyond_kv_cache;
}

void Replica::reject(const Request& request, Rejection why, Picoseconds now) {
  observer_->request_ended({.id = request.id,
                            .outcome = RequestOutcome::rejected,
                            .rejection = why,
                            .replica = index_,
                            .priority = request.priority,
                            .input_tokens = request.input_tokens,
                            .output_tokens = request.output_tokens,
                            .arrival = request.arrival});
  ended_.push_back({.id = request.id, .when = now, .outcome = RequestOutcome::rejected});
  ++totals_.rejected;
}

std::vector<Replica::Interrupted> Replica::shut_down(Picoseconds now) {
  finish_ended_steps(now);
  scheduler_->settle();
  std::vector<Interrupted> interrupted;
  for (Answered& answered : on_the_way_back_) {  // the process that sends them stops too
    observer_->request_interrupted(answered.record.id);
    interrupted.push_back({.request = std::move(answered.request), .tokens_out = answered.record.output_tokens});
  }
  on_the_way_back_.clear();
  for (Sequence& sequence : sequences_) {
    if (sequence.spare || sequence.cancelled) continue;
    observer_->request_interrupted(sequence.request.id);
    interrupted.push_back({.request = std::move(sequence.request), .tokens_out = sequence.produced});
  }
  std::sort(interrupted.begin(), interrupted.end(), [](const Interrupted& a, const Interrupted& b) {
    return std::tuple(a.request.arrival, a.request.id) < std::tuple(b.request.arrival, b.request.id);
  });
  scheduler_ = make_scheduler(scheduler_name_, options_);
  front_.restart();
  on_the_way_.clear();
  in_flight_.clear();
  std::fill(stage_free_.begin(), stage_free_.end(), 0);
  sequences_.clear();
  spare_sequences_.clear();
  inbox_.clear();
  received_.clear();
  outside_.clear();
  wakes_.reset();
  outstanding_ = watched_ = unread_steps_ = 0;
  return interrupted;
}

void Replica::read_arrivals(Picoseconds now) {
  for (Sequence* sequence : inbox_) {
    sequence->record.queued = now;
    scheduler_->add(*sequence);
  }
  inbox_.clear();
}

// Behind a step in flight, a prompt shares a step that takes about as long.
void Replica::shed_late(Picoseconds now) {
  Picoseconds start = now;
  if (!in_flight_.empty()) start = 2 * in_flight_.back().end - in_flight_.back().begin;
  while (Sequence* const late = scheduler_->first_late(start)) {
    scheduler_->release(*late);
    reject(late->request, Rejection::shed, now);
    --outstanding_;
    watched_ -= late->watched ? 1 : 0;
    free_place(*late);
  }
}

// Its goal less the time of its prompt alone.
Picoseconds Replica::latest_start(const Request& request) const {
  if (options_.policy != QueuePolicy::deadline) return end_of_time;
  const Picoseconds goal = options_.ttft_goals[place_by_priority(request.priority, options_.ttft_goals.size())];
  const PromptChunk prompt{.new_tokens = request.input_tokens};
  return request.arrival + goal - duration(times_->step_seconds({.prompts = {&prompt, 1}}));
}

void Replica::end_sequence(Sequence& sequence) {
  ensure(sequence.steps_in_flight == 0, "a sequence ends with its last step");
  RequestRecord record = sequence.record;
  record.output_tokens = sequence.request.pooled ? 0 : sequence.produced;
  watched_ -= sequence.watched ? 1 : 0;
  if (keeps_cache_) {
    scheduler_->set_aside(sequence);
    outside_.emplace(record.id, &sequence);
  } else {
    scheduler_->release(sequence);
    free_place(sequence);
  }
  if (front_.sends_pieces()) {
    on_the_way_back_.push_back({.request = std::move(sequence.request), .record = record});
  } else {
    tell_end(record);
  }
}

// The client has its last piece.
void Replica::tell_end(const RequestRecord& record) {
  observer_->request_ended(record);
  ended_.push_back({.id = record.id, .when = record.last_token});
  --outstanding_;
  ++totals_.completed;
  totals_.preemptions += record.preemptions;
  totals_.end = std::max(totals_.end, record.last_token);
}

std::vector<Replica::Ended> Replica::take_ended() {
  return std::exchange(ended_, {});
}

}  // namespace foretoken
