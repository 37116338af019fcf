#include "serving/requests/event_loop.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace foretoken {

void EventLoop::add(Component& component) {
  const auto place = std::upper_bound(components_.begin(), components_.end(), component.order(),
                                      [](EventOrder order, const Component* other) { return order < other->order(); });
  components_.insert(place, &component);
}

void EventLoop::run() {
  while (true) {
    Component* first = nullptr;
    Picoseconds next = end_of_time;
    bool goes_on = false;
    for (Component* component : components_) {
      const Picoseconds when = component->next_event(now_);
      goes_on = goes_on || (when < end_of_time && component->order() != EventOrder::changes);
      if (when >= next) continue;
      next = when;
      first = component;
    }
    if (!goes_on && !any_waits()) return;
    ensure(first != nullptr && next >= now_, "time goes on while there is something to do");
    now_ = next;
    first->advance(now_);
  }
}

bool EventLoop::any_waits() const {
  return std::any_of(components_.begin(), components_.end(),
                     [](const Component* component) { return component->waits_for_change(); });
}

Picoseconds RequestArrivals::next_event(Picoseconds now) {
  const Picoseconds arrival = source_->next_arrival().value_or(end_of_time);
  if (arrival >= now) return arrival;
  throw InputError(
      {.source = "request",
       .path = "arrival",
       .value = std::to_string(arrival) + " ps",
       .expected = "an arrival not before " + std::to_string(now) + " ps, because arrivals cannot go back in time"});
}

}  // namespace foretoken
