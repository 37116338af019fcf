#include "app/page/work_pool.h"

#include <future>

#include <gtest/gtest.h>

#include "app/cli/output/progress.h"

namespace foretoken::work_pool_test {

// Waits for the result of one piece of work; progress goes to `progress`.
std::string result_of(WorkPool& pool, uint64_t id, std::vector<std::string>* progress = nullptr) {
  while (true) {
    for (const WorkNews& news : pool.take_news()) {
      if (news.id != id) continue;
      if (news.is_result) return news.text;
      if (progress != nullptr) progress->push_back(news.text);
    }
    std::this_thread::yield();
  }
}

std::string work_until_stopped() {
  while (true) check_still_wanted();
}

TEST(WorkPool, tells_progress_and_then_the_result) {
  WorkPool pool({.threads = 1});
  ASSERT_TRUE(pool.submit(
      7, [] { return show_progress("half"), "done"; }, ""));
  std::vector<std::string> progress;
  EXPECT_EQ(result_of(pool, 7, &progress), "done");
  EXPECT_EQ(progress, std::vector<std::string>{"half"});
  EXPECT_TRUE(pool.is_idle());
}

TEST(WorkPool, work_that_takes_too_long_ends) {
  WorkPool pool({.threads = 1, .most_time = std::chrono::milliseconds(20)});
  ASSERT_TRUE(pool.submit(1, work_until_stopped, "too late"));
  EXPECT_EQ(result_of(pool, 1), "too late");
}

TEST(WorkPool, cancelled_work_ends_without_news_and_makes_room) {
  WorkPool pool({.threads = 1});
  std::promise<void> begun;
  ASSERT_TRUE(pool.submit(
      1, [&] { return begun.set_value(), work_until_stopped(); }, "too late"));
  begun.get_future().wait();
  ASSERT_TRUE(pool.submit(
      2, [] { return "second"; }, ""));
  pool.cancel(1);
  EXPECT_EQ(result_of(pool, 2), "second");
  EXPECT_TRUE(pool.is_idle());
}

TEST(WorkPool, work_that_waits_says_so_and_is_dropped_when_nobody_wants_it) {
  WorkPool pool({.threads = 1});
  std::promise<void> begun;
  ASSERT_TRUE(pool.submit(
      1, [&] { return begun.set_value(), work_until_stopped(); }, ""));
  begun.get_future().wait();
  bool ran = false;
  ASSERT_TRUE(pool.submit(
      2, [&] { return ran = true, "second"; }, ""));
  const std::vector<WorkNews> news = pool.take_news();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(news.front().id, 2U);
  EXPECT_EQ(news.front().text, "waiting for 1 asked before");
  pool.cancel(2);
  pool.cancel(1);
  ASSERT_TRUE(pool.submit(
      3, [] { return "third"; }, ""));
  EXPECT_EQ(result_of(pool, 3), "third");
  EXPECT_FALSE(ran);
}

TEST(WorkPool, threads_that_work_for_another_end_with_it) {
  WorkPool pool({.threads = 1, .most_time = std::chrono::milliseconds(20)});
  const auto on_another_thread = [] {
    bool ended = false;
    const std::function<void()> check = wanted_check();
    std::thread([&] {
      try {
        while (true) check();
      } catch (...) {
        ended = true;
      }
    }).join();
    return ended ? "ended" : "";
  };
  ASSERT_TRUE(pool.submit(1, on_another_thread, "too late"));
  EXPECT_EQ(result_of(pool, 1), "ended");
}

TEST(WorkPool, more_than_the_queue_holds_is_refused) {
  WorkPool pool({.threads = 1, .most_waiting = 1});
  std::promise<void> begun;
  ASSERT_TRUE(pool.submit(
      1, [&] { return begun.set_value(), work_until_stopped(); }, ""));
  begun.get_future().wait();
  EXPECT_TRUE(pool.submit(
      2, [] { return ""; }, ""));
  EXPECT_FALSE(pool.submit(
      3, [] { return ""; }, ""));
}

TEST(WorkPool, its_end_stops_what_runs) {
  std::promise<void> begun;
  WorkPool pool({.threads = 1});
  ASSERT_TRUE(pool.submit(
      1, [&] { return begun.set_value(), work_until_stopped(); }, ""));
  begun.get_future().wait();
}

}  // namespace foretoken::work_pool_test
