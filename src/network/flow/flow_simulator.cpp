#include "network/flow/flow_simulator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/error.h"
#include "network/flow/fair_sharing.h"
#include "network/flow/routed_plan.h"

namespace foretoken {
namespace {

constexpr double most_lost_share = 1e-9;

struct PreparedPlan {
  RoutedPlan plan;
  bool once = false;  // forgotten when its only job has ended
};

enum class JobPhase { before_start, latency, moving };

// One run of a plan, in one phase of one of its stages.
struct Job {
  JobNumber number = 0;
  PlanNumber plan = 0;
  size_t stage = 0;
  int32_t flow = -1;  // while moving
  double left = 0;    // bytes of the largest transfer, at time `since`
  double level = 0;   // bytes/s of it
  Picoseconds since = 0;
  int64_t event = -1;  // the only one that still counts
  JobPhase phase = JobPhase::before_start;
};

struct Event {
  Picoseconds time = 0;
  int64_t number = 0;  // ties: first come, first served
  int32_t job = 0;     // place among the running jobs

  bool operator>(const Event& other) const { return std::pair(time, number) > std::pair(other.time, other.number); }
};

double seconds_between(Picoseconds from, Picoseconds to) {
  return to_seconds(to - from).value();
}

}  // namespace

struct FlowSimulator::State {
  State(const Topology& topology, FlowOptions with)
      : options(with), router(topology, with.routing), sharing(topology.links()) {
    if (options.record_link_use) recorded_rate.resize(topology.links().size());
  }

  Job& job_at(int32_t place) { return jobs[static_cast<size_t>(place)]; }
  const RoutedPlan& plan_of(const Job& job) const { return plans[static_cast<size_t>(job.plan)].plan; }

  int32_t take_place() {
    if (free_places.empty()) {
      free_places.push_back(static_cast<int32_t>(jobs.size()));
      jobs.emplace_back();
    }
    const int32_t place = free_places.back();
    free_places.pop_back();
    return place;
  }

  PlanNumber keep(RoutedPlan plan, bool once) {
    ++plans_routed;
    if (free_plans.empty()) {
      free_plans.push_back(static_cast<PlanNumber>(plans.size()));
      plans.emplace_back();
    }
    const PlanNumber number = free_plans.back();
    free_plans.pop_back();
    plans[static_cast<size_t>(number)] = {.plan = std::move(plan), .once = once};
    return number;
  }

  void schedule(int32_t place, Picoseconds time) {
    job_at(place).event = event_count;
    events.push_back({time, event_count++, place});
    std::push_heap(events.begin(), events.end(), std::greater<>());
  }

  bool is_stale(const Event& event) { return job_at(event.job).event != event.number; }

  Event pop_event() {
    std::pop_heap(events.begin(), events.end(), std::greater<>());
    const Event event = events.back();
    events.pop_back();
    return event;
  }

  // Every change of rates leaves an event behind that no longer counts.
  void drop_stale_events() {
    constexpr size_t few = 1000;
    if (events.size() > few + 4 * jobs.size()) {
      std::erase_if(events, [&](const Event& event) { return is_stale(event); });
      std::make_heap(events.begin(), events.end(), std::greater<>());
    }
    while (!events.empty() && is_stale(events.front())) pop_event();
  }

  void enter_stage(int32_t place) {
    Job& job = job_at(place);
    const RoutedPlan& plan = plan_of(job);
    if (job.stage == plan.stages.size()) return finish(place);
    job.phase = JobPhase::latency;
    schedule(place, later(now, to_picoseconds(plan.stages[job.stage].latency)));
  }

  void begin_moving(int32_t place) {
    Job& job = job_at(place);
    const RoutedStage& stage = plan_of(job).stages[job.stage];
    if (stage.loads.empty()) return leave_stage(place);
    job.phase = JobPhase::moving;
    job.flow = sharing.add(stage.loads);
    job.left = stage.largest_transfer;
    job.level = 0;
    job.since = now;
    job.event = -1;  // scheduled when the rates are known
    if (moving.size() <= static_cast<size_t>(job.flow)) moving.resize(static_cast<size_t>(job.flow) + 1);
    moving[static_cast<size_t>(job.flow)] = place;
    note_links(stage);
  }

  void end_moving(int32_t place) {
    const Job& job = job_at(place);
    const RoutedStage& stage = plan_of(job).stages[job.stage];
    // The end was rounded to a picosecond.
    const double lost = job.left - job.level * seconds_between(job.since, now);
    ensure(std::abs(lost) <= most_lost_share * stage.largest_transfer + 2 * job.level / picoseconds_per_second,
           "all bytes that were sent are received when a stage ends");
    sharing.remove(job.flow);
    note_links(stage);
    leave_stage(place);
  }

  void leave_stage(int32_t place) {
    ++job_at(place).stage;
    enter_stage(place);
  }

  void finish(int32_t place) {
    Job& job = job_at(place);
    job.event = -1;
    done.push_back(job.number);
    PreparedPlan& plan = plans[static_cast<size_t>(job.plan)];
    if (plan.once) {
      plan.plan = {};
      free_plans.push_back(job.plan);
    }
    free_places.push_back(place);
    --jobs_left;
  }

  void handle(const Event& event) {
    switch (job_at(event.job).phase) {
      case JobPhase::before_start:
        return enter_stage(event.job);
      case JobPhase::latency:
        return begin_moving(event.job);
      case JobPhase::moving:
        return end_moving(event.job);
    }
  }

  // New rates after what happened at this moment.
  void settle() {
    for (const int32_t flow : sharing.settle()) {
      const int32_t place = moving[static_cast<size_t>(flow)];
      Job& job = job_at(place);
      job.left = std::max(0.0, job.left - job.level * seconds_between(job.since, now));
      job.level = sharing.level(flow);
      job.since = now;
      schedule(place, later(now, to_picoseconds(Seconds(job.left / job.level))));
      note_links(plan_of(job).stages[job.stage]);
    }
    record_links();
  }

  void note_links(const RoutedStage& stage) {
    if (!options.record_link_use) return;
    for (const LinkLoad& load : stage.loads) noted_links.push_back(load.link);
  }

  void record_links() {
    std::sort(noted_links.begin(), noted_links.end());
    noted_links.erase(std::unique(noted_links.begin(), noted_links.end()), noted_links.end());
    for (const LinkIndex link : noted_links) {
      double& recorded = recorded_rate[static_cast<size_t>(link)];
      const double rate = sharing.rate_on(link);
      if (rate == recorded) continue;
      recorded = rate;
      link_use.push_back({now, link, BytesPerSecond(rate)});
    }
    noted_links.clear();
  }

  FlowOptions options;
  PlanRouter router;
  FairSharing sharing;
  std::vector<PreparedPlan> plans;
  std::vector<PlanNumber> free_plans;  // places of plans that ran once, to be used again
  uint64_t plans_routed = 0;           // numbers flows for ECMP: those of two plans differ, whatever their places

  Picoseconds now = 0;
  int64_t event_count = 0;
  std::vector<Event> events;  // a heap, the next first
  std::vector<Job> jobs;      // running; places are used again
  std::vector<int32_t> free_places;
  std::vector<int32_t> moving;  // by number of the flow: the place of its job
  JobNumber jobs_started = 0;
  int64_t jobs_left = 0;
  std::vector<JobNumber> done;

  std::vector<double> recorded_rate;  // by link
  std::vector<LinkIndex> noted_links;
  std::vector<LinkUse> link_use;
};

FlowSimulator::FlowSimulator(const Topology& topology, FlowOptions options)
    : state_(std::make_unique<State>(topology, options)) {}
FlowSimulator::~FlowSimulator() = default;
FlowSimulator::FlowSimulator(FlowSimulator&&) noexcept = default;
FlowSimulator& FlowSimulator::operator=(FlowSimulator&&) noexcept = default;

PlanNumber FlowSimulator::prepare(const TransferPlan& plan) {
  return state_->keep(state_->router.route(plan, state_->plans_routed), false);
}

JobNumber FlowSimulator::start(const TransferPlan& plan, Picoseconds at) {
  return start(state_->keep(state_->router.route(plan, state_->plans_routed), true), at);
}

JobNumber FlowSimulator::start(PlanNumber plan, Picoseconds at) {
  State& state = *state_;
  ensure(at >= state.now, "time never goes back: a job starts now or later");
  ensure(plan >= 0 && plan < std::ssize(state.plans), "a job runs a prepared plan");
  const int32_t place = state.take_place();
  const JobNumber number = state.jobs_started++;
  state.job_at(place) = {.number = number, .plan = plan};
  ++state.jobs_left;
  state.schedule(place, later(at, to_picoseconds(state.plan_of(state.job_at(place)).start)));
  return number;
}

std::span<const JobNumber> FlowSimulator::advance(Picoseconds limit) {
  State& state = *state_;
  ensure(limit >= state.now, "time never goes back");
  state.done.clear();
  while (state.done.empty()) {
    const Picoseconds next = next_event();
    if (next > limit || next == end_of_time) {
      if (limit != end_of_time) state.now = limit;
      break;
    }
    state.now = next;
    while (!state.events.empty() && state.events.front().time == state.now) {
      const Event event = state.pop_event();
      if (!state.is_stale(event)) state.handle(event);
    }
  }
  std::sort(state.done.begin(), state.done.end());
  return state.done;
}

Picoseconds FlowSimulator::next_event() {
  state_->settle();
  state_->drop_stale_events();
  return state_->events.empty() ? end_of_time : state_->events.front().time;
}

Picoseconds FlowSimulator::now() const {
  return state_->now;
}

int64_t FlowSimulator::jobs_left() const {
  return state_->jobs_left;
}

std::span<const LinkUse> FlowSimulator::link_use() const {
  return state_->link_use;
}

}  // namespace foretoken
