// One engine at work: its scheduler, the steps in flight, and what comes out of them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "serving/requests/request.h"
#include "serving/scheduling/router.h"
#include "serving/simulation/frontend.h"
#include "serving/simulation/simulation_config.h"
#include "serving/tiers/replica_tiers.h"

namespace foretoken {

// An engine reads new requests only between steps. One that schedules ahead chooses step n + 1 when step n starts, so
// a request that arrives during n comes into n + 2 at the earliest. Pipeline stages each hold a step of their own.
class Replica {
 public:
  // `tiers` of the run are below its cache; null = none.
  Replica(int32_t index, const ReplicaConfig& config, const SimulationConfig& run, RunObserver& observer,
          KvTiers* tiers = nullptr);
  ~Replica();

  // A client sends it here: the engine has it when it is through the front. Requests with the same `body`, sent at one
  // instant, get through together; -1 = alone.
  void arrive(Request&& request, Picoseconds now, int64_t body = -1);

  // Why a request could not be served here even alone; none = it can run.
  Rejection rejection(const Request& request) const;
  // All that this depends on.
  struct Limits {
    int64_t max_model_len = 0;  // 0 = none
    int64_t capacity_tokens = 0;
    int64_t longest_prompt = 0;
    bool operator==(const Limits&) const = default;
  };
  Limits limits() const {
    return {.max_model_len = options_.max_model_len,
            .capacity_tokens = scheduler_->capacity_tokens(),
            .longest_prompt = longest_prompt_};
  }

  // Ends a request that was not served here.
  void reject(const Request& request, Rejection why, Picoseconds now);

  // A request that was here when the engine stopped.
  struct Interrupted {
    Request request;
    int64_t tokens_out = 0;
  };
  // Everything stops: steps that have not ended, requests, the cache. Requests in order of arrival; a new engine with
  // the same settings is in its place.
  std::vector<Interrupted> shut_down(Picoseconds now);

  // The client has gone: the request ends here without a record. Its blocks are free at once, as in vLLM, and steps
  // that it is part of go on. False when it is not here. Only without repeat_decodes and tiers.
  bool cancel(int64_t id);

  // Pools (separate_pools.h). Of a worker that keeps its cache: a request's has been moved.
  void let_go(int64_t id, Picoseconds now);
  // Takes blocks for a prompt that was computed elsewhere, whose record goes on here. The tokens that must move: those
  // not found in the prefix cache; nothing while too few blocks are free.
  std::optional<int64_t> expect(const Request& request, const RequestRecord& prompt, Picoseconds now);
  // It has arrived, and its first token with it or not.
  void receive(int64_t id, bool with_token, Picoseconds now);

  // When something changes here next; nothing while it is idle.
  std::optional<Picoseconds> next_event() const;
  // Handles it; `now` is that time.
  void advance(Picoseconds now);

  // Requests that ended since the last call, in order.
  struct Ended {
    int64_t id = 0;
    Picoseconds when = 0;
    RequestOutcome outcome = RequestOutcome::completed;
    void tell(RequestEnds& ends) const {
      outcome == RequestOutcome::completed ? ends.ended(id, when) : ends.rejected(id, when);
    }
  };
  std::vector<Ended> take_ended();

  ReplicaLoad load() const;
  // Nothing is here, nor cache that is to move.
  bool idle() const { return outstanding_ == 0 && outside_.empty(); }
  // Of the run's end: every request that came in has ended.
  void check_ended() const;
  // The step that runs now, or the first of a run of equal ones; nothing while it is idle.
  std::optional<StepBatch> running_step() const;
  const SimulationTotals& totals() const { return totals_; }

 private:
  struct Step {
    Batch batch;
    Picoseconds begin = 0;
    Picoseconds end = 0;      // of a single step; of a run unknown until its last step starts
    int64_t steps_ahead = 0;  // equal steps to run before the last one
    Picoseconds last_begin = 0;
    AdapterLoads adapter_loads;  // before its first kernel
  };

  // A request whose last pieces no client has seen yet.
  struct Answered {
    Request request;
    RequestRecord record;
  };

  struct OnTheWay {
    Sequence* sequence = nullptr;
    Picoseconds through = 0;
    int64_t body = -1;
  };

  void enter(Sequence& sequence, Picoseconds now);
  void hand_in(Sequence& sequence, Picoseconds now);
  std::optional<Picoseconds> next_engine_event() const;
  Picoseconds next_reading(Picoseconds now) const;
  void read_arrivals(Picoseconds now);
  // `decode_steps` more have ended: true when new requests are read at this moment.
  bool reads_after(int64_t decode_steps);
  // The first reading after so many more decode steps, counted in such steps.
  int64_t steps_to_reading(int64_t decode_steps) const;
  // Ends waiting requests that cannot meet their TTFT goal any more.
  void shed_late(Picoseconds now);
  Picoseconds latest_start(const Request& request) const;
  void start_steps(Picoseconds now);
  void place(Step& step, Picoseconds now);
  void plan_run(Step& step, int64_t steps_ahead);
  void shorten_run(Picoseconds now);
  void finish_ended_steps(Picoseconds now);
  int64_t steps_until(const Step& run, Picoseconds when) const;
  void finish_run(Step& run, Picoseconds now);
  void send_equal_run(const Step& run, int64_t steps, Picoseconds step_time, Picoseconds now);
  void send_run(const Step& run, int64_t steps, Picoseconds step_time);
  void finish_step(Step& step);
  // Tokens of its answer that are sent when the step ends: all that were not, or none while they are too few.
  int64_t tokens_to_send(const BatchEntry& entry) const;
  // The next tokens of the sequence come out: one at `first`, then one after `each`. Its answer may begin among them.
  static void note_answer(Sequence& sequence, int64_t tokens, Picoseconds first, Picoseconds each);
  Request cut(Request&& request) const;  // its output, at max_model_len
  Sequence& new_sequence(Request&& request);
  void free_place(Sequence& sequence);
  void end_sequence(Sequence& sequence);
  bool forget_answer(int64_t id);
  void tell_end(const RequestRecord& record);
  void report(const Step& step, Picoseconds begin, Picoseconds end, int64_t repeats);
  Picoseconds duration(const Estimate& seconds) const;

  int32_t index_;
  std::optional<ReplicaTiers> tiers_;
  SchedulerOptions options_;
  StepTimes* times_;
  StepBound bound_;
  int64_t receive_interval_;
  int64_t stream_interval_;
  bool repeat_decodes_;
  bool keeps_cache_;
  RunObserver* observer_;
  RunObserver* gap_observer_;  // null = nobody asks for gaps between tokens
  std::string scheduler_name_;
  std::unique_ptr<Scheduler> scheduler_;
  int64_t longest_prompt_;  // that it takes
  AdapterCache adapters_;
  size_t most_in_flight_;
  bool schedules_on_arrival_;
  Frontend front_;
  std::deque<OnTheWay> on_the_way_;  // through the front, in this order
  std::deque<Step> in_flight_;       // the first runs, or leaves the pipeline next
  std::vector<Batch> spare_batches_;
  std::vector<Picoseconds> stage_free_;  // when each pipeline stage has done all that is in flight
  std::vector<Estimate> stage_seconds_;  // scratch
  std::deque<Sequence> sequences_;
  std::vector<Sequence*> spare_sequences_;
  int64_t unread_steps_ = 0;                       // decodes since new requests were read
  std::vector<Sequence*> inbox_;                   // through the front, not read yet
  std::vector<Sequence*> received_;                // prompts computed elsewhere, not read yet
  std::map<int64_t, Sequence*> outside_;           // by request: hold cache here, and are to move or to come
  std::multimap<Picoseconds, Sequence*> loading_;  // wait apart for tiers below, until then
  std::optional<Picoseconds> wakes_;               // an engine that waits reads all that arrives at one instant
  std::deque<Answered> on_the_way_back_;           // in the order in which clients have their last pieces
  std::vector<Ended> ended_;
  int64_t outstanding_ = 0;
  int64_t watched_ = 0;  // of them, by an observer
  SimulationTotals totals_;
};

}  // namespace foretoken
