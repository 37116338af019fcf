// An engine that serves one request at a time, each in one step, is a queue whose mean wait is known.
#include <functional>

#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::queueing_test {

constexpr double seconds_per_token = 1e-6;

struct Queue {
  double mean_wait = 0;              // seconds, from arrival to the start of service
  double service = 0, service2 = 0;  // first and second moment of the service time
};

// `tokens` draws the length of a prompt: its service time in microseconds.
Queue serve(double rate, const std::function<double(RandomStream&)>& tokens) {
  constexpr int64_t count = 100'000;
  RandomStream arrivals(11, "arrivals"), lengths(11, "lengths");
  std::vector<Request> requests;
  Queue queue;
  double now = 0;
  for (int64_t i = 0; i < count; ++i) {
    now += arrivals.exponential(1 / rate);
    const auto length = std::max<int64_t>(1, static_cast<int64_t>(tokens(lengths)));
    requests.push_back({.id = i, .arrival = to_picoseconds(Seconds(now)), .input_tokens = length, .output_tokens = 1});
    const double service = static_cast<double>(length) * seconds_per_token;
    queue.service += service / count;
    queue.service2 += service * service / count;
  }
  LinearTimes times({.step = 0, .token = seconds_per_token, .context_token = 0});
  ListedRequests source(std::move(requests));
  RecordedRun run;
  const SchedulerOptions one_at_a_time{.max_num_seqs = 1, .num_gpu_blocks = 10'000, .block_size = 1024};
  simulate({.replicas = {{.scheduler = "static", .options = one_at_a_time, .times = &times}}}, source, run);
  for (const RequestRecord& record : run.requests)
    queue.mean_wait += to_seconds(record.scheduled - record.arrival).value() / count;
  return queue;
}

// Pollaczek-Khinchine: W = rate E[S^2] / (2 (1 - load)).
double expected_wait(const Queue& queue, double rate) {
  return rate * queue.service2 / (2 * (1 - rate * queue.service));
}

TEST(Queueing, exponential_service_waits_as_in_m_m_1) {
  for (const double load : {0.3, 0.7}) {
    const double rate = load / 0.01;
    const Queue queue = serve(rate, [](RandomStream& stream) { return stream.exponential(10'000); });
    EXPECT_NEAR(queue.mean_wait / (load * 0.01 / (1 - load)), 1, 0.05) << load;
  }
}

TEST(Queueing, fixed_service_waits_as_in_m_d_1) {
  for (const double load : {0.3, 0.7}) {
    const double rate = load / 0.01;
    const Queue queue = serve(rate, [](RandomStream&) { return 10'000.0; });
    EXPECT_NEAR(queue.mean_wait / (load * 0.01 / (2 * (1 - load))), 1, 0.03) << load;
  }
}

TEST(Queueing, mixed_service_waits_as_in_m_g_1) {
  const auto short_or_long = [](RandomStream& stream) { return stream.uniform() < 0.9 ? 2'000.0 : 80'000.0; };
  for (const double rate : {30.0, 65.0}) {
    const Queue queue = serve(rate, short_or_long);
    EXPECT_NEAR(queue.mean_wait / expected_wait(queue, rate), 1, 0.05) << rate;
  }
}

TEST(Queueing, a_load_near_zero_gives_the_unloaded_latency) {
  LinearTimes times({});
  std::vector<Request> requests = random_requests(5, 200, 0.001, 500, 50);
  for (const SchedulerKind& kind : scheduler_kinds()) {
    ListedRequests source(requests);
    RecordedRun run;
    simulate(
        {.replicas = {{.scheduler = std::string(kind.name), .options = {.num_gpu_blocks = 1000}, .times = &times}}},
        source, run);
    for (const RequestRecord& record : run.requests) {
      ListedRequests alone({requests[static_cast<size_t>(record.id)]});
      RecordedRun lone;
      simulate(
          {.replicas = {{.scheduler = std::string(kind.name), .options = {.num_gpu_blocks = 1000}, .times = &times}}},
          alone, lone);
      EXPECT_EQ(record.last_token, lone.requests.front().last_token) << kind.name << " " << record.id;
    }
  }
}

}  // namespace foretoken::queueing_test
