#include "serving/simulation/replica.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/error.h"

namespace foretoken {
namespace {

size_t steps_in_flight(const ReplicaConfig& config) {
  const SchedulerOptions& options = config.options;
  if (options.pipeline_stages > 1) return static_cast<size_t>(options.pipeline_stages);
  return options.async_scheduling && scheduler_kind(config.scheduler).schedules_ahead ? 2 : 1;
}

SchedulerOptions options_for(const ReplicaConfig& config, const SimulationConfig& run, ReplicaTiers* tiers) {
  SchedulerOptions options = config.options;
  options.speculation.seed = run.seed;
  options.quiet_decodes = run.repeat_decodes && config.stream_interval == 1;  // else each sends at steps of its own
  options.lower_tiers = tiers;
  return options;
}

// Gaps between tokens, equal ones counted together. Without an observer, none.
class GapCounter {
 public:
  explicit GapCounter(RunObserver* observer) : observer_(observer) {}
  ~GapCounter() { flush(); }
  GapCounter(const GapCounter&) = delete;
  GapCounter& operator=(const GapCounter&) = delete;

  void add(Picoseconds gap, int64_t count) {
    if (observer_ == nullptr || count == 0) return;
    if (gap != gap_) flush();
    gap_ = gap;
    count_ += count;
  }

 private:
  void flush() {
    if (count_ > 0) observer_->token_gaps(gap_, count_);
    count_ = 0;
  }
  RunObserver* observer_;
  Picoseconds gap_ = 0;
  int64_t count_ = 0;
};

// When clients see what a step has made: its entries, and ranks that go on as they are, each at once, in the order in
// which their pieces are sent. `goes_on`: nobody asks when its piece of one token is seen. `tokens` says how many an
// entry's piece holds; one without a piece is told the step's end.
template <class GoesOn, class Tokens, class OfEntry, class OfRank>
void send_pieces(Frontend& front, const Batch& batch, Picoseconds made, const GoesOn& goes_on, const Tokens& tokens,
                 const OfEntry& of_entry, const OfRank& of_rank) {
  const auto send = [&](const BatchEntry& entry) {
    if (goes_on(entry)) {
      front.sent(1, made);
      return;
    }
    const int64_t sent = tokens(entry);
    of_entry(entry, sent, sent > 0 ? front.sent(1, made) : made);
  };
  const std::span<const BatchEntry> entries = batch.entries();
  size_t next = 0;
  for (const Batch::QuietPart& part : batch.quiet_parts()) {
    for (; next < part.place; ++next) send(entries[next]);
    QuietDecodes& decodes = *part.decodes;
    if (decodes.settled) {
      for (const BatchEntry& entry : decodes.entries) send(entry);
    } else {
      of_rank(decodes, front.sent(static_cast<int64_t>(decodes.entries.size()), made));
    }
  }
  for (; next < entries.size(); ++next) send(entries[next]);
}

}  // namespace

Replica::Replica(int32_t index, const ReplicaConfig& config, const SimulationConfig& run, RunObserver& observer,
                 KvTiers* tiers)
    : index_(index),
      tiers_(tiers == nullptr ? std::nullopt
                              : std::make_optional<ReplicaTiers>(*tiers, static_cast<size_t>(index), *config.times)),
      options_(options_for(config, run, tiers_ ? &*tiers_ : nullptr)),
      times_(config.times),
      bound_(run.bound),
      receive_interval_(config.receive_interval),
      stream_interval_(config.stream_interval),
      repeat_decodes_(run.repeat_decodes),
      keeps_cache_(config.keeps_cache),
      observer_(&observer),
      gap_observer_(run.token_gaps ? &observer : nullptr),
      scheduler_name_(config.scheduler),
      scheduler_(make_scheduler(scheduler_name_, options_)),
      longest_prompt_(config.only_decodes ? std::numeric_limits<int64_t>::max() : scheduler_->longest_prompt()),
      adapters_(config.adapters),
      most_in_flight_(steps_in_flight(config)),
      schedules_on_arrival_(scheduler_kind(scheduler_name_).schedules_on_arrival),
      front_(config.front),
      stage_free_(static_cast<size_t>(options_.pipeline_stages)),
      stage_seconds_(stage_free_.size()) {
  ensure(times_ != nullptr, "a replica has step times");
  ensure(options_.policy != QueuePolicy::deadline || !options_.ttft_goals.empty(), "deadlines come from goals");
  ensure(!keeps_cache_ || !front_.sends_pieces(), "a worker that hands its prompts over sends no answers");
}
Replica::~Replica() = default;

// When the engine next reads what has arrived, while a run is planned: at the end of the step that runs now.
Picoseconds Replica::next_reading(Picoseconds now) const {
  const Step& run = in_flight_.back();
  if (now <= run.begin) return in_flight_.size() > 1 ? in_flight_.front().end : run.begin;
  const int64_t ended = steps_until(run, now);
  if (ended > run.steps_ahead) return run.end;
  return run.begin + duration(times_->decode_run_seconds(run.batch.step(), ended));
}

std::optional<Picoseconds> Replica::next_event() const {
  std::optional<Picoseconds> next = next_engine_event();
  if (!on_the_way_.empty()) next = std::min(on_the_way_.front().through, next.value_or(end_of_time));
  if (!loading_.empty()) next = std::min(loading_.begin()->first, next.value_or(end_of_time));
  if (!on_the_way_back_.empty()) {
    next = std::min(on_the_way_back_.front().record.last_token, next.value_or(end_of_time));
  }
  return next;
}

std::optional<Picoseconds> Replica::next_engine_event() const {
  if (in_flight_.empty()) return wakes_;
  const Step& first = in_flight_.front();
  return std::min(wakes_.value_or(end_of_time), first.steps_ahead > 0 ? first.last_begin : first.end);
}

void Replica::advance(Picoseconds now) {
  if (tiers_) tiers_->set_time(now);
  if (!on_the_way_back_.empty() && on_the_way_back_.front().record.last_token <= now) {
    tell_end(on_the_way_back_.front().record);
    on_the_way_back_.pop_front();
    return;
  }
  // What gets through when a step ends is read with it.
  if (!on_the_way_.empty() && on_the_way_.front().through <= now) {
    Sequence& sequence = *on_the_way_.front().sequence;
    on_the_way_.pop_front();
    enter(sequence, now);
    return;
  }
  if (!loading_.empty() && loading_.begin()->first <= now) {
    Sequence& sequence = *loading_.begin()->second;
    loading_.erase(loading_.begin());
    hand_in(sequence, now);
    return;
  }
  bool reads = true;
  const bool wakes = wakes_.has_value();
  wakes_.reset();
  if (in_flight_.empty()) {
    unread_steps_ = 0;
  } else if (wakes && in_flight_.front().end > now) {
    // A stage is free for what has arrived.
  } else if (Step& first = in_flight_.front(); first.steps_ahead > 0) {
    reads = reads_after(first.steps_ahead);
    finish_run(first, now);
  } else {
    reads = reads_after(first.batch.only_decodes() ? 1 : steps_to_reading(1));
    finish_step(first);
    first.batch.clear();
    spare_batches_.push_back(std::move(first.batch));
    in_flight_.pop_front();
  }
  if (reads) read_arrivals(now);
  for (Sequence* sequence : received_) scheduler_->receive(*sequence);
  received_.clear();
  shed_late(now);
  start_steps(now);
  if (!in_flight_.empty() || inbox_.empty()) return;
  unread_steps_ = 0;  // with nothing to run it reads at once
  read_arrivals(now);
  shed_late(now);
  start_steps(now);
}

bool Replica::reads_after(int64_t decode_steps) {
  unread_steps_ = (unread_steps_ + decode_steps) % receive_interval_;
  return unread_steps_ == 0;
}

int64_t Replica::steps_to_reading(int64_t decode_steps) const {
  const int64_t beyond = (unread_steps_ + decode_steps) % receive_interval_;
  return decode_steps + (beyond == 0 ? 0 : receive_interval_ - beyond);
}

void Replica::start_steps(Picoseconds now) {
  while (in_flight_.size() < most_in_flight_) {
    if (!in_flight_.empty() && in_flight_.back().steps_ahead > 0) return;
    Step step;
    if (!spare_batches_.empty()) {
      step.batch = std::move(spare_batches_.back());
      spare_batches_.pop_back();
    }
    scheduler_->schedule(step.batch);
    if (tiers_) {
      for (const ReplicaTiers::Apart& one : tiers_->take_apart()) loading_.emplace(one.until, one.sequence);
    }
    if (step.batch.empty()) {
      spare_batches_.push_back(std::move(step.batch));
      ensure(!in_flight_.empty() || !outside_.empty() || !loading_.empty() ||
                 scheduler_->load().waiting + scheduler_->load().running == 0,
             "an idle engine has nothing to do, or waits for cache to move");
      return;
    }
    ++totals_.decisions;
    place(step, now);
    in_flight_.push_back(std::move(step));
  }
}

// Gives a step, or a run of equal ones, its time behind those in flight.
void Replica::place(Step& step, Picoseconds now) {
  const bool runs_behind = !in_flight_.empty();
  step.begin = std::max(now, stage_free_.front());
  if (tiers_) step.begin = tiers_->earliest_begin(step.begin);
  for (const uint32_t place : step.batch.changing()) {
    const BatchEntry& entry = step.batch.entries()[place];
    Sequence& sequence = *entry.sequence;
    if (sequence.promised > entry.yields) continue;  // it has run before
    if (sequence.record.scheduled < 0) sequence.record.scheduled = step.begin;
  }
  if (!step.batch.adapters().empty()) step.adapter_loads = adapters_.use(step.batch.adapters());
  const Picoseconds loading = step.adapter_loads.time;
  const bool tells_pieces = stream_interval_ > 1 && watched_ > 0;  // which come at other steps for each sequence
  if (repeat_decodes_ && !tells_pieces && options_.pipeline_stages == 1 && step.batch.only_decodes() && loading == 0) {
    const bool others_end = runs_behind && in_flight_.back().batch.ends_sequence();
    int64_t repeats = others_end ? 0 : scheduler_->repeats(step.batch);
    if (!inbox_.empty()) {  // until these are read
      const auto before = static_cast<int64_t>(in_flight_.size());
      repeats = std::min(repeats, steps_to_reading(before + 1) - before);
    }
    if (repeats > 0) {
      plan_run(step, repeats);
      return;
    }
  }
  Picoseconds through = loading;
  if (stage_free_.size() == 1) {
    through += duration(times_->step_seconds(step.batch.step()));
  } else {
    times_->stage_seconds(step.batch.step(), stage_seconds_);
    for (const Estimate& stage : stage_seconds_) through += duration(stage);
  }
  const Picoseconds computed = tiers_ ? tiers_->end(step.begin, through) : step.begin + through;
  if (stage_free_.size() == 1) {
    step.end = stage_free_.front() = computed;
    return;
  }
  // Each stage takes steps in their order, once it has done the one before. Adapters are loaded by all at once.
  step.end = computed - through + loading;
  for (size_t i = 0; i < stage_free_.size(); ++i) {
    step.end = std::max(step.end, stage_free_[i]) + duration(stage_seconds_[i]);
    stage_free_[i] = step.end;
  }
}

void Replica::plan_run(Step& step, int64_t steps_ahead) {
  step.steps_ahead = steps_ahead;
  const StepBatch first = step.batch.step();
  step.last_begin = step.begin;
  if (steps_ahead > 0) step.last_begin += duration(times_->decode_run_seconds(first, steps_ahead));
  step.end = step.last_begin + duration(times_->step_seconds(grown(first, steps_ahead)));
  stage_free_.front() = step.end;
}

// A request has arrived that may change what runs: the run goes on only until the engine has read it.
void Replica::shorten_run(Picoseconds now) {
  Step& run = in_flight_.back();
  const int64_t ended = steps_to_reading(now <= run.begin ? 0 : steps_until(run, now));
  const int64_t steps_ahead = most_in_flight_ > 1 ? ended : std::max<int64_t>(0, ended - 1);
  if (steps_ahead >= run.steps_ahead) return;
  plan_run(run, steps_ahead);
  // The times of a run and of its steps one by one differ by a little: what runs now has not ended.
  run.end = stage_free_.front() = std::max(run.end, now);
  // Nothing is chosen when the last step starts, so that may lie in the past.
  if (steps_ahead > 0 && run.last_begin <= now && most_in_flight_ == 1) {
    reads_after(steps_ahead);
    finish_run(run, run.last_begin);
  }
}

// Those of a run that ended before now; the others stay planned.
void Replica::finish_ended_steps(Picoseconds now) {
  if (in_flight_.empty() || in_flight_.back().steps_ahead == 0 || now <= in_flight_.back().begin) return;
  Step& run = in_flight_.back();
  const int64_t ended = steps_until(run, now) - 1, others = run.steps_ahead - ended;
  if (ended == 0) return;
  reads_after(ended);
  plan_run(run, ended);
  finish_run(run, run.last_begin);
  plan_run(run, others);
  // The times of a run and of its parts differ by a little: what runs now has not ended.
  run.last_begin = std::max(run.last_begin, now);
  run.end = stage_free_.front() = std::max(run.end, run.last_begin);
}

// Steps of the run that have ended when the engine reads what arrives at `when`.
int64_t Replica::steps_until(const Step& run, Picoseconds when) const {
  const StepBatch first = run.batch.step();
  int64_t before = 0, after = run.steps_ahead;  // `before` steps end before `when`, `after` steps do not
  Picoseconds before_end = run.begin, after_end = run.last_begin;
  if (after_end < when) return run.steps_ahead + 1;
  while (after - before > 1) {
    const double share = static_cast<double>(when - before_end) / static_cast<double>(after_end - before_end);
    const auto guess = before + static_cast<int64_t>(share * static_cast<double>(after - before));
    const int64_t middle = std::clamp(guess, before + 1, after - 1);
    const Picoseconds end = run.begin + duration(times_->decode_run_seconds(first, middle));
    if (end < when) {
      before = middle;
      before_end = end;
    } else {
      after = middle;
      after_end = end;
    }
  }
  return after;
}

// The last step of a run starts: all before it have ended.
void Replica::finish_run(Step& run, Picoseconds now) {
  const int64_t steps = run.steps_ahead;
  report(run, run.begin, now, steps);
  const Picoseconds step_time = (now - run.begin) / steps;
  stream_interval_ == 1 ? send_equal_run(run, steps, step_time, now) : send_run(run, steps, step_time);
  scheduler_->repeat(run.batch, steps);
  totals_.steps += steps;
  run.begin = now;
  run.steps_ahead = 0;
}

// A piece of every sequence at the end of each step.
void Replica::send_equal_run(const Step& run, int64_t steps, Picoseconds step_time, Picoseconds now) {
  const Picoseconds first_end = run.begin + step_time;
  const std::span<const BatchEntry> entries = run.batch.entries();
  const auto pieces = static_cast<int64_t>(entries.size());
  const Frontend::Sent sent = front_.sent(pieces, steps, first_end, now);
  const bool streams = front_.sends_pieces() && steps > 1;
  const Picoseconds each = streams ? (sent.last - sent.first) / (steps - 1) : step_time;
  GapCounter gaps(gap_observer_);
  Picoseconds before_last = pieces * front_.piece();  // of the pieces of one step
  for (const BatchEntry& entry : entries) {
    before_last -= front_.piece();
    if (gap_observer_ == nullptr && entry.sequence->plain) continue;  // more tokens come
    const Picoseconds first_seen = sent.first - before_last;
    RequestRecord& record = entry.sequence->record;
    gaps.add(first_seen - record.last_token, 1);
    if (entry.sequence->request.thinking_tokens > 0) note_answer(*entry.sequence, steps, first_seen, each);
    record.last_token = sent.last - before_last;
  }
  gaps.add(each, (steps - 1) * pieces);
}

// A piece of a sequence whenever it has tokens enough: the same sequences at the same places of each interval.
void Replica::send_run(const Step& run, int64_t steps, Picoseconds step_time) {
  struct Next {
    int64_t step = 0;  // of the run, from 1: at the end of which its next piece is sent
    Sequence* sequence = nullptr;
  };
  std::vector<Next> next;
  for (const BatchEntry& entry : run.batch.entries()) {
    Sequence& sequence = *entry.sequence;
    const int64_t step = std::max<int64_t>(1, sequence.sent + stream_interval_ - sequence.produced);
    if (step <= steps) next.push_back({step, &sequence});
  }
  std::stable_sort(next.begin(), next.end(), [](const Next& a, const Next& b) { return a.step < b.step; });
  GapCounter gaps(gap_observer_);
  for (int64_t before = 0; before < steps; before += stream_interval_) {
    for (const Next& one : next) {
      const int64_t step = before + one.step;
      if (step > steps) break;
      const Picoseconds seen = front_.sent(1, run.begin + step * step_time);
      Sequence& sequence = *one.sequence;
      RequestRecord& record = sequence.record;
      gaps.add(seen - record.last_token, 1);
      record.last_token = seen;
      sequence.sent = sequence.produced + step;
      if (record.thinking_tokens > 0 && record.answered == 0 && sequence.sent > record.thinking_tokens) {
        record.answered = seen;
      }
    }
  }
}

int64_t Replica::tokens_to_send(const BatchEntry& entry) const {
  const Sequence& sequence = *entry.sequence;
  if (entry.yields == 0 || sequence.cancelled) return 0;
  if (stream_interval_ == 1) return entry.yields;
  const int64_t made = sequence.produced + entry.yields, unsent = made - sequence.sent;
  const bool is_due = sequence.sent == 0 || unsent >= stream_interval_ || made == sequence.request.output_tokens;
  return is_due ? unsent : 0;
}

void Replica::note_answer(Sequence& sequence, int64_t tokens, Picoseconds first, Picoseconds each) {
  const int64_t thinking = sequence.request.thinking_tokens, before = sequence.produced;
  if (before > thinking || before + tokens <= thinking) return;
  sequence.record.answered = first + (thinking - before) * each;
}

void Replica::finish_step(Step& step) {
  ++totals_.steps;
  report(step, step.begin, step.end, 1);
  GapCounter gaps(gap_observer_);
  const auto finish = [&](const BatchEntry& entry, int64_t sent, Picoseconds seen) {
    Sequence& sequence = *entry.sequence;
    --sequence.steps_in_flight;
    if (sequence.cancelled) {
      if (sequence.steps_in_flight == 0) free_place(sequence);
      return;
    }
    if (entry.yields == 0) return;
    if (entry.drafts.verified > 0) observer_->drafts_verified(entry.drafts.verified, entry.drafts.accepted);
    RequestRecord& record = sequence.record;
    if (sequence.produced == 0) {
      record.first_token = seen;
    } else if (sent > 0) {
      gaps.add(seen - record.last_token, 1);
    }
    sequence.produced += entry.yields;
    if (sent > 0) {
      record.last_token = seen;
      sequence.sent = sequence.produced;
      const bool answers = record.thinking_tokens > 0 && sequence.produced > record.thinking_tokens;
      if (answers && record.answered == 0) record.answered = seen;
    }
    if (sequence.produced == sequence.request.output_tokens) end_sequence(sequence);
  };
  const auto finish_rank = [&](QuietDecodes& decodes, Picoseconds seen) {
    if (decodes.ended++ > 0) {
      gaps.add(seen - decodes.last_token, static_cast<int64_t>(decodes.entries.size()));
    } else {
      for (const BatchEntry& entry : decodes.entries) gaps.add(seen - entry.sequence->record.last_token, 1);
    }
    decodes.last_token = seen;
  };
  // Most of all entries. Without gaps, only the first and the last token of a sequence are asked for.
  const bool tells_every_token = gap_observer_ != nullptr || stream_interval_ > 1;
  const auto goes_on = [&](const BatchEntry& entry) {
    Sequence& sequence = *entry.sequence;
    if (!entry.goes_on || tells_every_token || sequence.cancelled) return false;
    --sequence.steps_in_flight;
    ++sequence.produced;
    return true;
  };
  const auto tokens = [&](const BatchEntry& entry) { return tokens_to_send(entry); };
  send_pieces(front_, step.batch, step.end, goes_on, tokens, finish, finish_rank);
}

void Replica::report(const Step& step, Picoseconds begin, Picoseconds end, int64_t repeats) {
  const SchedulerLoad load = scheduler_->load();
  const StepRecord record{.replica = index_,
                          .begin = begin,
                          .end = end,
                          .repeats = repeats,
                          .prefill_tokens = step.batch.prefill_tokens(),
                          .prompts = step.batch.prompt_count(),
                          .prompt_context_tokens = step.batch.prompt_context_tokens(),
                          .decode_tokens = step.batch.decodes() - step.batch.idle_decodes(),
                          .idle_decodes = step.batch.idle_decodes(),
                          .decode_context_tokens = step.batch.decode_context_tokens(),
                          .drafted_tokens = step.batch.drafted_tokens(),
                          .accepted_tokens = step.batch.accepted_drafts(),
                          .running = load.running,
                          .waiting = load.waiting + static_cast<int64_t>(inbox_.size()),
                          .kv_blocks_used = load.blocks_used,
                          .kv_blocks_grown = repeats > 1 ? scheduler_->blocks_ahead(step.batch, repeats - 1) : 0,
                          .adapters = static_cast<int64_t>(step.batch.adapters().size()),
                          .adapter_loads = step.adapter_loads};
  observer_->step_ran(record);
  if (watched_ == 0) return;
  // The same pieces are sent when the step is finished.
  Frontend ahead = front_, run_ahead = front_;
  const Picoseconds first_end = begin + (end - begin) / repeats;
  auto left = static_cast<int64_t>(step.batch.entries().size());
  const Picoseconds run_sent = repeats > 1 ? run_ahead.sent(left, repeats, first_end, end).last : 0;
  const auto tell = [&](const BatchEntry& entry, int64_t sent, Picoseconds seen) {
    --left;
    if (!entry.sequence->watched) return;
    observer_->request_stepped(
        {.request = entry.sequence->request.id,
         .new_tokens = entry.new_tokens + entry.drafts.verified,
         .context_tokens = entry.context_tokens,
         .decodes = entry.decodes,
         .yields = entry.yields,
         .sent = sent,
         .sending = seen - first_end,
         .last_sending = repeats > 1 ? run_sent - left * front_.piece() - end : seen - first_end},
        record);
  };
  // Nobody watches those of ranks that go on as they are.
  const auto tokens = [&](const BatchEntry& entry) { return tokens_to_send(entry); };
  const auto none = [](const BatchEntry&) { return false; };
  send_pieces(ahead, step.batch, first_end, none, tokens, tell, [](const QuietDecodes&, Picoseconds) {});
}

ReplicaLoad Replica::load() const {
  const SchedulerLoad load = scheduler_->load();
  return {.replica = index_,
          .outstanding = outstanding_,
          .running = load.running,
          .waiting = load.waiting +
                     static_cast<int64_t>(on_the_way_.size() + inbox_.size() + loading_.size() + received_.size()),
          .blocks_used = load.blocks_used,
          .blocks = load.blocks};
}

void Replica::check_ended() const {
  const ReplicaLoad left = load();
  ensure(left.outstanding == 0 && left.running == 0 && left.waiting == 0, "every request that came in has ended");
  ensure(left.blocks_used == 0, "an engine without requests holds no blocks");
}

std::optional<StepBatch> Replica::running_step() const {
  if (in_flight_.empty()) return std::nullopt;
  return in_flight_.front().batch.step();
}

Picoseconds Replica::duration(const Estimate& seconds) const {
  const double value = at_bound(seconds, bound_);
  ensure(value >= 0 && value < 1e6, "a step takes a time");
  return std::max<Picoseconds>(1, to_picoseconds(Seconds(value)));
}

}  // namespace foretoken
