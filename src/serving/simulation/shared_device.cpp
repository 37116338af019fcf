#include "serving/simulation/shared_device.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "serving/colocation/model_swaps.h"
#include "serving/colocation/time_slices.h"
#include "serving/colocation/wall_times.h"
#include "serving/simulation/replica.h"

namespace foretoken {
namespace {

class SharedDevice final : public Site, private Component {
 public:
  SharedDevice(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer)
      : Component(EventOrder::engines), settings_(*config.colocation), run_(config), ends_(&ends) {
    ensure(settings_.engines.size() == config.replicas.size() && !config.replicas.empty(), "every engine has a share");
    // Turns are taken step by step.
    const bool alone = config.replicas.size() == 1;
    run_.repeat_decodes = config.repeat_decodes && (alone || settings_.sharing != Sharing::time_slicing);
    for (const ReplicaConfig& replica : config.replicas) {
      engines_.emplace_back(replica, run_, engines_.size(), observer);
    }
    if (settings_.sharing == Sharing::time_slicing) {
      slices_.emplace(engines_.size(), to_picoseconds(settings_.switch_time));
    } else if (settings_.sharing == Sharing::swap) {
      swaps_.emplace(settings_);
    }
  }

  void join(EventLoop& loop) override { loop.add(*this); }

  void accept(Request&& request, Picoseconds now) override {
    now_ = now;
    take_arrival(std::move(request));
    share_device();
  }

  SimulationTotals final_totals(Picoseconds /*now*/) override {
    SimulationTotals sum;
    for (Engine& engine : engines_) {
      sum.add(engine.ended);
      sum.add(engine.replica->totals());
      engine.replica->check_ended();
      engine.use.alone_s = engine.wall.alone_s;
      engine.use.busy_s = engine.wall.busy_s;
      sum.device_use.push_back(engine.use);
    }
    sum.end = last_end_;
    ensure(!swaps_ || swaps_->waiting() == 0, "every request reached its model");
    return sum;
  }

 private:
  struct OnTheWay {
    Request request;
    Picoseconds through = 0;
  };

  struct Engine {
    Engine(const ReplicaConfig& replica_config, const SimulationConfig& run, size_t replica_index,
           RunObserver& observer)
        : config(replica_config), index(static_cast<int32_t>(replica_index)), wall(observer), front(config.front) {
      config.front = {};
      start(run);
    }

    // With an empty cache.
    void start(const SimulationConfig& run) {
      if (replica) ended.add(replica->totals());
      replica.emplace(index, config, run, wall);
    }

    Picoseconds next_step() const {
      const std::optional<Picoseconds> next = replica->next_event();
      return next ? wall.clock.when(*next) : end_of_time;
    }
    Picoseconds next_through() const { return on_the_way.empty() ? end_of_time : on_the_way.front().through; }

    ReplicaConfig config;  // its front is this one's
    int32_t index;
    WallTimes wall;
    Frontend front;
    std::deque<OnTheWay> on_the_way;
    std::optional<Replica> replica;
    SimulationTotals ended;  // of replicas before it
    DeviceUse use;
  };

  Picoseconds next_event(Picoseconds now) override {
    Picoseconds next = end_of_time;
    for (const Engine& engine : engines_) next = std::min({next, engine.next_step(), engine.next_through()});
    if (slices_) next = std::min(next, slices_->next_event());
    if (swaps_) next = std::min(next, std::max(now, swaps_->next_event()));
    return next;
  }

  void advance(Picoseconds now) override {
    now_ = now;
    handle_event();
    share_device();
  }

  void take_arrival(Request&& request) {
    ensure(request.model >= 0 && static_cast<size_t>(request.model) < engines_.size(), "a request is for a model here");
    Engine& engine = engines_[static_cast<size_t>(request.model)];
    if (engine.replica->rejection(request) != Rejection::none || !engine.front.takes_time()) {
      reach(engine, std::move(request));
      return;
    }
    const Picoseconds through = engine.front.through(request.input_tokens, now_);
    engine.on_the_way.push_back({.request = std::move(request), .through = through});
  }

  // A request is through the front.
  void reach(Engine& engine, Request&& request) {
    if (swaps_ && engine.replica->rejection(request) == Rejection::none) {
      swaps_->arrive(std::move(request), now_);
    } else {
      enter(engine, std::move(request));
    }
  }

  void enter(Engine& engine, Request&& request) {
    Picoseconds time = engine.wall.clock.engine_time(now_);
    if (const std::optional<Picoseconds> due = engine.replica->next_event()) time = std::min(time, *due);
    if (engine.replica->rejection(request) == Rejection::none) engine.wall.entered(request.id, time);
    engine.replica->arrive(std::move(request), time);
    tell_ended(engine);
  }

  void handle_event() {
    for (Engine& engine : engines_) {
      if (engine.next_through() <= now_) {
        Request request = std::move(engine.on_the_way.front().request);
        engine.on_the_way.pop_front();
        reach(engine, std::move(request));
        return;
      }
    }
    for (size_t i = 0; i < engines_.size(); ++i) {
      Engine& engine = engines_[i];
      if (engine.next_step() > now_) continue;
      const Picoseconds time = *engine.replica->next_event();
      engine.wall.clock.correct(time, now_);
      const bool ran = engine.replica->running_step().has_value();
      engine.replica->advance(time);
      if (slices_ && ran) slices_->step_ended();
      tell_ended(engine);
      return;
    }
  }

  // All that ended did now.
  void tell_ended(Engine& engine) {
    for (Replica::Ended ended : engine.replica->take_ended()) {
      ended.when = now_;
      if (ended.outcome == RequestOutcome::completed) last_end_ = now_;
      ended.tell(*ends_);
    }
  }

  // Sets the engines' rates for what runs now.
  void share_device() {
    switch (settings_.sharing) {
      case Sharing::time_slicing:
        take_turns();
        break;
      case Sharing::mps:
        run_together();
        break;
      case Sharing::mig:
        for (size_t i = 0; i < engines_.size(); ++i) {
          const std::optional<StepBatch> step = engines_[i].replica->running_step();
          const ColocatedEngine& own = settings_.engines[i];
          engines_[i].wall.clock.set_rate(step ? partition_rate(own.demands->of(*step), own.share) : 1, now_);
        }
        break;
      case Sharing::swap:
        swap_models();
        break;
    }
  }

  // Engines without a step in flight only wait for requests: their clocks go on.
  void take_turns() {
    for (size_t i = 0; i < engines_.size(); ++i) {
      slices_->set_busy(i, engines_[i].replica->running_step().has_value());
    }
    if (slices_->update(now_)) ++engines_[slices_->next_holder()].use.switches;
    for (size_t i = 0; i < engines_.size(); ++i) {
      const bool waits = engines_[i].replica->running_step().has_value() && slices_->holder() != i;
      engines_[i].wall.clock.set_rate(waits ? 0 : 1, now_);
    }
  }

  void run_together() {
    demands_.clear();
    shares_.clear();
    for (size_t i = 0; i < engines_.size(); ++i) {
      const std::optional<StepBatch> step = engines_[i].replica->running_step();
      demands_.push_back(step ? settings_.engines[i].demands->of(*step) : StepDemand{});
      shares_.push_back(settings_.engines[i].share);
    }
    const std::vector<double> rates = shared_rates(demands_, shares_);
    for (size_t i = 0; i < engines_.size(); ++i) {
      engines_[i].wall.clock.set_rate(engines_[i].replica->running_step() ? rates[i] : 1, now_);
    }
  }

  void swap_models() {
    const auto outstanding = [&] { return engines_[swaps_->awake()].replica->load().outstanding; };
    if (const std::optional<size_t> asleep = swaps_->update(now_, outstanding())) {
      engines_[*asleep].start(run_);
      engines_[*asleep].use.moved_bytes += settings_.engines[*asleep].bytes_out.value();
      DeviceUse& woken = engines_[swaps_->awake()].use;
      woken.moved_bytes += settings_.engines[swaps_->awake()].bytes_in.value();
      ++woken.switches;
    }
    for (Request& request : swaps_->take_ready()) enter(engines_[swaps_->awake()], std::move(request));
  }

  const Colocation& settings_;
  SimulationConfig run_;
  RequestEnds* ends_;
  std::deque<Engine> engines_;
  std::optional<TimeSlices> slices_;
  std::optional<ModelSwaps> swaps_;
  std::vector<StepDemand> demands_;  // scratch
  std::vector<DeviceShare> shares_;
  Picoseconds now_ = 0, last_end_ = 0;
};

}  // namespace

std::unique_ptr<Site> make_shared_device(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer) {
  return std::make_unique<SharedDevice>(config, ends, observer);
}

}  // namespace foretoken
