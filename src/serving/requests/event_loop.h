// The one event loop of serving runs: components that each know when something happens to them next.
#pragma once

#include <cstdint>
#include <vector>

#include "base/simulated_time.h"
#include "serving/requests/request.h"

namespace foretoken {

// Which of the events of one instant comes first.
enum class EventOrder : uint8_t {
  transfers,  // KV caches that reach another pool
  changes,    // of a fleet: replicas start, begin to serve, drain, fail
  travel,     // requests that reach another region
  stages,     // requests that leave what stands before the engines, and enter what stands behind it
  arrivals,   // of requests
  engines     // steps: what arrives when a step ends is read with it
};

// A part of a run. It knows nothing of the others but whom it hands requests to.
class Component {
 public:
  explicit Component(EventOrder order) : order_(order) {}
  virtual ~Component() = default;
  Component(const Component&) = delete;
  Component& operator=(const Component&) = delete;

  EventOrder order() const { return order_; }
  // When something happens here next, as things stand; never before `now`. end_of_time = nothing.
  virtual Picoseconds next_event(Picoseconds now) = 0;
  // It happens: `now` is that time.
  virtual void advance(Picoseconds now) = 0;
  // Whether it holds requests that wait for a change (EventOrder::changes).
  virtual bool waits_for_change() const { return false; }

 private:
  EventOrder order_;
};

// What requests can be handed to.
class RequestTaker {
 public:
  virtual ~RequestTaker() = default;
  virtual void accept(Request&& request, Picoseconds now) = 0;
};

// Events in order of time, those of one instant by EventOrder. Changes alone do not keep a run going: it ends
// when nothing else is to happen and nothing waits for them.
class EventLoop {
 public:
  void add(Component& component);  // outlives this; of equal order those added first go first
  void run();
  Picoseconds now() const { return now_; }  // of the last event

 private:
  bool any_waits() const;

  std::vector<Component*> components_;  // by order
  Picoseconds now_ = 0;
};

// Requests of a source, handed on when they arrive. InputError where arrivals go back in time.
class RequestArrivals final : public Component {
 public:
  RequestArrivals(RequestSource& source, RequestTaker& taker)
      : Component(EventOrder::arrivals), source_(&source), taker_(&taker) {}
  Picoseconds next_event(Picoseconds now) override;
  void advance(Picoseconds now) override { taker_->accept(source_->next(), now); }

 private:
  RequestSource* source_;
  RequestTaker* taker_;
};

}  // namespace foretoken
