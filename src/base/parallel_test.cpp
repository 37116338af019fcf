#include "base/parallel.h"

#include <atomic>
#include <stdexcept>

#include <gtest/gtest.h>

namespace foretoken::parallel_test {

TEST(Parallel, every_thread_does_the_work_once) {
  for (const unsigned threads : {1U, 2U, 7U}) {
    std::atomic<unsigned> calls = 0;
    run_on_threads(threads, [&] { ++calls; });
    EXPECT_EQ(calls, threads);
  }
}

TEST(Parallel, every_number_is_worked_on_once_however_many_threads_there_are) {
  for (const unsigned threads : {0U, 1U, 3U, 50U}) {
    for (const size_t count : {0, 1, 20}) {
      std::vector<std::atomic<int>> calls(count);
      for_each_on_threads(threads, count, [&](size_t i) { ++calls[i]; });
      for (const std::atomic<int>& one : calls) EXPECT_EQ(one, 1);
    }
  }
}

TEST(Parallel, an_exception_of_any_thread_arrives_after_all_have_ended) {
  std::atomic<int> calls = 0;
  EXPECT_THROW(run_on_threads(4,
                              [&] {
                                if (++calls == 3) throw std::runtime_error("third");
                              }),
               std::runtime_error);
  EXPECT_EQ(calls, 4);
}

}  // namespace foretoken::parallel_test
