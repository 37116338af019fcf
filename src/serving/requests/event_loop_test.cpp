// Order of events, and when a run is over.
#include "serving/requests/event_loop.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/load/listed_source.h"

namespace foretoken::event_loop_test {

using testing::ElementsAre;

// Writes down its name at each of its times.
class Listed : public Component {
 public:
  Listed(EventOrder order, std::string name, std::vector<Picoseconds> times, std::vector<std::string>& log)
      : Component(order), name_(std::move(name)), times_(std::move(times)), log_(&log) {}
  Picoseconds next_event(Picoseconds /*now*/) override { return next_ < times_.size() ? times_[next_] : end_of_time; }
  void advance(Picoseconds now) override {
    EXPECT_EQ(now, times_[next_]);
    ++next_;
    log_->push_back(name_ + " " + std::to_string(now));
  }
  bool waits_for_change() const override { return waits; }
  bool waits = false;

 private:
  std::string name_;
  std::vector<Picoseconds> times_;
  std::vector<std::string>* log_;
  size_t next_ = 0;
};

class LoggedRequests final : public RequestTaker {
 public:
  explicit LoggedRequests(std::vector<std::string>& log) : log_(&log) {}
  void accept(Request&& request, Picoseconds now) override {
    log_->push_back("request " + std::to_string(request.id) + " at " + std::to_string(now));
  }

 private:
  std::vector<std::string>* log_;
};

TEST(EventLoop, events_come_in_order_of_time) {
  std::vector<std::string> log;
  Listed one(EventOrder::engines, "one", {5, 20}, log), other(EventOrder::transfers, "other", {10, 30}, log);
  EventLoop loop;
  loop.add(one);
  loop.add(other);
  loop.run();
  EXPECT_THAT(log, ElementsAre("one 5", "other 10", "one 20", "other 30"));
  EXPECT_EQ(loop.now(), 30);
}

TEST(EventLoop, those_of_one_instant_keep_their_order_whatever_was_added_first) {
  std::vector<std::string> log;
  Listed engines(EventOrder::engines, "engines", {7}, log), stages(EventOrder::stages, "stages", {7}, log),
      travel(EventOrder::travel, "travel", {7}, log), changes(EventOrder::changes, "changes", {7}, log),
      transfers(EventOrder::transfers, "transfers", {7}, log), more(EventOrder::travel, "more travel", {7}, log);
  ReplayedRequests source({{.id = 3, .arrival = 7}});
  LoggedRequests requests(log);
  RequestArrivals arrivals(source, requests);
  EventLoop loop;
  for (Component* component :
       std::initializer_list<Component*>{&engines, &arrivals, &stages, &travel, &changes, &transfers, &more}) {
    loop.add(*component);
  }
  loop.run();
  EXPECT_THAT(log, ElementsAre("transfers 7", "changes 7", "travel 7", "more travel 7", "stages 7", "request 3 at 7",
                               "engines 7"));
}

TEST(EventLoop, changes_alone_do_not_keep_a_run_going) {
  std::vector<std::string> log;
  Listed engines(EventOrder::engines, "engines", {10}, log),
      changes(EventOrder::changes, "changes", {4, 8, 12, 16}, log);
  EventLoop loop;
  loop.add(engines);
  loop.add(changes);
  loop.run();
  EXPECT_THAT(log, ElementsAre("changes 4", "changes 8", "engines 10"));
}

TEST(EventLoop, goes_on_while_requests_wait_for_a_change) {
  class Opens final : public Component {
   public:
    explicit Opens(Listed& held) : Component(EventOrder::changes), held_(&held) {}
    Picoseconds next_event(Picoseconds now) override { return now + 5; }
    void advance(Picoseconds now) override { held_->waits = now < 20; }

   private:
    Listed* held_;
  };
  std::vector<std::string> log;
  Listed held(EventOrder::travel, "held", {}, log);
  held.waits = true;
  Opens opens(held);
  EventLoop loop;
  loop.add(held);
  loop.add(opens);
  loop.run();
  EXPECT_EQ(loop.now(), 20);
}

TEST(EventLoop, arrivals_that_go_back_in_time_are_refused) {
  std::vector<std::string> log;
  ReplayedRequests source({{.id = 0, .arrival = 9}, {.id = 1, .arrival = 8}});
  LoggedRequests requests(log);
  RequestArrivals arrivals(source, requests);
  EventLoop loop;
  loop.add(arrivals);
  EXPECT_THROW(loop.run(), InputError);
  EXPECT_THAT(log, ElementsAre("request 0 at 9"));
}

}  // namespace foretoken::event_loop_test
