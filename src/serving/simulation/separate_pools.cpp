#include "serving/simulation/separate_pools.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "serving/simulation/engines.h"
#include "serving/simulation/fleet_control.h"
#include "serving/simulation/kv_transfers.h"
#include "serving/simulation/placement.h"

namespace foretoken {
namespace {

// What prefill workers do, without the ends of their part of each request.
class PrefillObserver final : public RunObserver {
 public:
  explicit PrefillObserver(RunObserver& observer) : observer_(&observer) {}
  void request_ended(const RequestRecord& record) override { ended.push_back(record); }
  void step_ran(const StepRecord& step) override { observer_->step_ran(step); }
  bool watches(int64_t request) const override { return observer_->watches(request); }
  void request_stepped(const RequestStep& own, const StepRecord& step) override {
    observer_->request_stepped(own, step);
  }

  std::vector<RequestRecord> ended;  // prompts computed since they were last taken

 private:
  RunObserver* observer_;
};

class SeparatePools final : public Site, public Component, public EngineListener, public FleetListener {
 public:
  SeparatePools(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer)
      : Component(EventOrder::transfers),
        settings_(*config.disaggregation),
        ends_(&ends),
        observer_(&observer),
        prefill_observer_(observer),
        prefill_count_(settings_.prefill_replicas),
        engines_(config, *this),
        replicas_(engines_.replicas()),
        transfers_(settings_.ports),
        queues_(config.replicas.size()) {
    ensure(prefill_count_ > 0 && prefill_count_ < config.replicas.size(), "both pools have a replica");
    ensure(settings_.ports.size() == config.replicas.size(), "every replica has a port");
    for (size_t i = 0; i < config.replicas.size(); ++i) {
      const bool prefills = i < prefill_count_;
      ReplicaConfig replica = config.replicas[i];
      replica.keeps_cache = prefills;
      replica.only_decodes = !prefills;
      if (prefills) replica.front.piece = Seconds(0);  // decode workers send the answers
      engines_.add(replica, prefills ? static_cast<RunObserver&>(prefill_observer_) : observer, prefills);
    }
    prefill_.emplace(router_kind(config.router).make(config.seed), replicas_, 0, prefill_count_);
    decode_.emplace(router_kind(settings_.decode_router).make(config.seed + 1), replicas_, prefill_count_,
                    replicas_.size() - prefill_count_);
    if (config.fleet) {
      control_.emplace(*config.fleet, config.seed, replicas_, std::vector<Placement*>{&*prefill_, &*decode_}, *this);
    }
  }

  void join(EventLoop& loop) override {
    loop.add(*this);
    if (control_) loop.add(*control_);
    loop.add(engines_);
  }

  void accept(Request&& request, Picoseconds now) override {
    now_ = now;
    if (request.pooled) refuse_pooled();
    Request prompt = request;
    prompt.output_tokens = std::min<int64_t>(1, request.output_tokens);
    const size_t chosen = prefill_->choose(prompt);
    request.follows = false;  // of samples that share a prompt each may decode elsewhere
    if (const Rejection why = rejection(prompt, replicas_[chosen], request); why != Rejection::none) {
      observer_->request_ended({.id = request.id,
                                .outcome = RequestOutcome::rejected,
                                .rejection = why,
                                .priority = request.priority,
                                .input_tokens = request.input_tokens,
                                .output_tokens = request.output_tokens,
                                .arrival = request.arrival});
      ++rejected_;
      ends_->rejected(request.id, now_);
      return;
    }
    if (control_) control_->arrived(prefill_pool, request);
    on_the_way_.emplace(request.id, Handover{.request = std::move(request)});
    replicas_[chosen].arrive(std::move(prompt), now_);
    note(chosen);
  }

  SimulationTotals final_totals(Picoseconds now) override {
    ensure(on_the_way_.empty(), "every prompt that was computed has reached a decode worker");
    SimulationTotals sum;
    sum.rejected = rejected_;
    sum.kv_tiers = engines_.kv_tier_usage();
    for (size_t i = 0; i < replicas_.size(); ++i) {
      const SimulationTotals& part = replicas_[i].totals();
      if (i >= prefill_count_) {  // their records go on from those of the prompts
        sum.completed += part.completed;
        sum.preemptions += part.preemptions;
      }
      sum.steps += part.steps;
      sum.decisions += part.decisions;
      sum.end = std::max(sum.end, part.end);
      const ReplicaLoad load = replicas_[i].load();
      ensure(load.outstanding == 0 && load.waiting == 0, "every request that came in has ended");
      ensure(load.blocks_used == 0, "an engine without requests holds no blocks");
    }
    if (control_) sum.fleet = control_->totals(now);
    return sum;
  }

 private:
  static constexpr size_t prefill_pool = 0, decode_pool = 1;  // of a fleet

  // A request whose prompt is computed, on its way to a decode worker.
  struct Handover {
    Request request;
    RequestRecord record;  // of its prompt
    size_t decoder = 0;
  };

  // Of transfers.
  Picoseconds next_event(Picoseconds /*now*/) override { return transfers_.next_event(); }
  void advance(Picoseconds now) override {
    now_ = now;
    const std::span<const JobNumber> ended = transfers_.advance(now);
    // Copied: what follows may start others.
    for (const JobNumber job : std::vector<JobNumber>(ended.begin(), ended.end())) receive(job);
  }

  void changed(size_t replica, Picoseconds now) override {
    now_ = now;
    note(replica);
  }
  void began_to_serve(size_t /*replica*/, Picoseconds /*now*/) override {}
  void stopped(size_t replica, std::vector<Replica::Interrupted>&& interrupted, Picoseconds now) override {
    ensure(interrupted.empty(), "workers of pools stop when they have nothing left");
    now_ = now;
    note(replica);
  }
  int64_t held(size_t pool) const override {
    int64_t count = 0;
    if (pool == decode_pool) {
      for (const std::deque<int64_t>& queue : queues_) count += static_cast<int64_t>(queue.size());
    }
    return count;
  }

  static void refuse_pooled() {
    RunParts parts;
    parts.add(RunPart::separate_pools);
    parts.add(RunPart::pooled_requests);
    parts.check();
  }

  // Why a request cannot be served: by this prefill worker, or by any decode worker.
  Rejection rejection(const Request& prompt, const Replica& prefill, const Request& request) const {
    Rejection why = prefill.rejection(prompt);
    if (why != Rejection::none) return why;
    for (size_t i = prefill_count_; i < replicas_.size(); ++i) {
      why = replicas_[i].rejection(request);
      if (why == Rejection::none) break;
    }
    return why;
  }

  // Takes up what changed at a replica.
  void note(size_t index) {
    engines_.touch(index);
    placement_of(index).note(index);
    const std::vector<Replica::Ended> ended = replicas_[index].take_ended();
    if (index >= prefill_count_) {
      for (const Replica::Ended& one : ended) one.tell(*ends_);
      reserve_waiting(index);
    } else {
      for (const RequestRecord& record : std::exchange(prefill_observer_.ended, {})) hand_over(record);
    }
    if (control_) control_->settle(index, !queues_[index].empty(), now_);
  }

  Placement& placement_of(size_t index) { return index < prefill_count_ ? *prefill_ : *decode_; }

  void hand_over(const RequestRecord& prompt) {
    Handover& handover = on_the_way_.at(prompt.id);
    handover.record = prompt;
    if (control_) control_->arrived(decode_pool, handover.request);
    handover.decoder = decode_->choose(handover.request);
    queues_[handover.decoder].push_back(prompt.id);
    reserve_waiting(handover.decoder);
  }

  // Requests whose blocks are free at a decode worker begin to move there, in order.
  void reserve_waiting(size_t decoder) {
    std::deque<int64_t>& queue = queues_[decoder];
    while (!queue.empty()) {
      Handover& handover = on_the_way_.at(queue.front());
      const std::optional<int64_t> missing = replicas_[decoder].expect(handover.request, handover.record, now_);
      engines_.touch(decoder);
      if (!missing) return;
      queue.pop_front();
      decode_->note(decoder);
      const double bytes = bytes_left(handover, *missing);
      const JobNumber job = transfers_.start(static_cast<size_t>(handover.record.replica), decoder, bytes, now_);
      moving_.emplace(job, handover.request.id);
    }
  }

  double bytes_left(const Handover& handover, int64_t tokens) const {
    const double bytes = static_cast<double>(tokens) * settings_.kv_bytes_per_token;
    const bool at_once = handover.record.last_token == now_;  // else nobody was there to send it to
    if (settings_.overlapped_layers == 0 || !at_once) return bytes;
    const auto from = static_cast<size_t>(handover.record.replica);
    const double bandwidth =
        std::min(settings_.ports[from].bandwidth.value(), settings_.ports[handover.decoder].bandwidth.value());
    const double sent = bandwidth * to_seconds(now_ - handover.record.scheduled).value();
    return std::max(bytes / static_cast<double>(settings_.overlapped_layers), bytes - sent);
  }

  void receive(JobNumber job) {
    const auto moved = moving_.find(job);
    ensure(moved != moving_.end(), "a transfer that ends was started");
    const auto found = on_the_way_.find(moved->second);
    const Handover& handover = found->second;
    const size_t decoder = handover.decoder;
    const auto prefill = static_cast<size_t>(handover.record.replica);
    replicas_[prefill].let_go(handover.request.id, now_);
    replicas_[decoder].receive(handover.request.id, settings_.first_token == FirstToken::transfer, now_);
    on_the_way_.erase(found);
    moving_.erase(moved);
    note(prefill);
    note(decoder);
  }

  const Disaggregation& settings_;
  RequestEnds* ends_;
  RunObserver* observer_;
  PrefillObserver prefill_observer_;
  size_t prefill_count_;
  Engines engines_;
  std::deque<Replica>& replicas_;  // of them, prefill workers first
  KvTransfers transfers_;
  std::optional<Placement> prefill_, decode_;  // over these
  std::optional<FleetControl> control_;        // where workers come and go
  std::vector<std::deque<int64_t>> queues_;    // by decode worker: requests that wait for blocks there
  std::map<int64_t, Handover> on_the_way_;     // by request
  std::map<JobNumber, int64_t> moving_;        // requests by transfer
  int64_t rejected_ = 0;
  Picoseconds now_ = 0;
};

}  // namespace

std::unique_ptr<Site> make_separate_pools(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer) {
  return std::make_unique<SeparatePools>(config, ends, observer);
}

}  // namespace foretoken
