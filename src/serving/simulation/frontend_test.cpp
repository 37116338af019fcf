#include "serving/simulation/frontend.h"

#include <gtest/gtest.h>

#include "serving/load/closed_loop.h"
#include "serving/results/observer_list.h"
#include "serving/results/request_details.h"
#include "serving/simulation/replica.h"
#include "serving/test_support.h"

namespace foretoken::frontend_test {

constexpr Picoseconds millisecond = one_second / 1000;
const FrontCosts costs{.latency = Seconds(0.008), .request = Seconds(0.001), .token = Seconds(1e-6)};

std::vector<Request> sent(const std::vector<double>& at) {
  std::vector<Request> requests;
  for (const double when : at) {
    requests.push_back({.id = static_cast<int64_t>(requests.size()),
                        .arrival = to_picoseconds(Seconds(when)),
                        .input_tokens = 1000,
                        .output_tokens = 1,
                        .prefix_blocks = {}});
  }
  return requests;
}

std::vector<RequestRecord> serve(std::unique_ptr<RequestSource> source, const std::vector<FrontCosts>& fronts) {
  LinearTimes times({.step = 1e-6, .token = 0, .context_token = 0});
  SimulationConfig config;
  for (const FrontCosts& front : fronts) {
    config.replicas.push_back({.options = {.num_gpu_blocks = 1000}, .times = &times, .front = front});
  }
  RecordedRun run;
  simulate(config, *source, run);
  return run.sorted();
}

std::unique_ptr<RequestSource> listed(std::vector<Request> requests) {
  return std::make_unique<ListedRequests>(std::move(requests));
}

TEST(Frontend, requests_sent_together_reach_the_engine_one_after_the_other) {
  const auto records = serve(listed(sent({0, 0, 0, 1})), {costs});
  const int64_t expected[] = {10, 12, 14, 1010};  // 2 ms of work each, then 8 ms
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].queued, expected[i] * millisecond);
    EXPECT_EQ(records[i].arrival, i < 3 ? 0 : one_second) << "the client's clock starts when it sends";
  }
}

TEST(Frontend, each_replica_has_its_own) {
  const auto records = serve(listed(sent({0, 0, 0, 0})), {costs, costs});
  for (const RequestRecord& record : records) {
    EXPECT_EQ(record.queued, (record.id < 2 ? 10 : 12) * millisecond) << record.id;
  }
}

TEST(Frontend, that_of_one_replica_may_differ_from_that_of_another) {
  const auto records = serve(listed(sent({0, 0})), {costs, {}});
  EXPECT_EQ(records[0].queued, 10 * millisecond);
  EXPECT_EQ(records[1].queued, 0);
}

TEST(Frontend, a_client_sends_its_next_request_when_its_answer_ends) {
  const auto records = serve(closed_loop(listed(sent({0, 0, 0, 0})), 2), {costs});
  EXPECT_EQ(records[2].arrival, records[0].last_token);
  EXPECT_EQ(records[3].arrival, records[1].last_token);
  EXPECT_EQ(records[2].queued, records[2].arrival + 10 * millisecond);
  EXPECT_EQ(records[3].queued, records[2].queued + 2 * millisecond) << "one after the other here too";
}

TEST(Frontend, load_aware_routers_know_of_requests_that_are_on_their_way) {
  for (const char* router : {"least_outstanding", "join_shortest_queue", "data_parallel"}) {
    LinearTimes times({});
    SimulationConfig config{.router = router};
    config.replicas.assign(4, {.options = {.num_gpu_blocks = 1000}, .times = &times, .front = costs});
    ListedRequests source(sent({0, 0, 0, 0}));
    RecordedRun run;
    simulate(config, source, run);
    for (const RequestRecord& record : run.sorted()) EXPECT_EQ(record.replica, record.id) << router;
  }
}

TEST(Frontend, pieces_of_answers_are_sent_one_after_the_other) {
  Frontend front({.piece = Seconds(0.001)});
  EXPECT_EQ(front.sent(1, 0), millisecond);
  EXPECT_EQ(front.sent(3, 0), 4 * millisecond);
  EXPECT_EQ(front.sent(1, 10 * millisecond), 11 * millisecond) << "it was free";
  // Two pieces every millisecond are more than it can send, one every two milliseconds are not.
  const Frontend::Sent many = front.sent(2, 10, 12 * millisecond, 21 * millisecond);
  EXPECT_EQ(many.first, 14 * millisecond);
  EXPECT_EQ(many.last, 32 * millisecond);
  const Frontend::Sent few = front.sent(1, 20, 34 * millisecond, 72 * millisecond);
  EXPECT_EQ(few.first, 35 * millisecond);
  EXPECT_EQ(few.last, 73 * millisecond);
  front.restart();
  EXPECT_EQ(front.sent(1, 0), millisecond);
}

// A hundred clients, and steps of 1 ms: at most 50,000 tokens/s could be sent where a piece takes 20 us.
TEST(Frontend, steps_that_make_more_pieces_than_it_can_send_make_clients_wait) {
  const auto run_with = [](double piece_seconds, bool repeats) {
    LinearTimes times({.step = 1e-3, .token = 0, .context_token = 0});
    SimulationConfig config;
    config.replicas.push_back({.options = {.max_num_seqs = 1000, .num_gpu_blocks = 100'000},
                               .times = &times,
                               .front = {.piece = Seconds(piece_seconds)}});
    config.repeat_decodes = repeats;
    std::vector<Request> requests = sent(std::vector<double>(1000, 0.0));
    for (Request& request : requests) request.output_tokens = 100;
    const std::unique_ptr<RequestSource> source = closed_loop(listed(std::move(requests)), 100);
    RecordedRun run;
    simulate(config, *source, run);
    return run.sorted();
  };
  const auto tokens_per_second = [](const std::vector<RequestRecord>& records) {
    Picoseconds end = 0;
    for (const RequestRecord& record : records) end = std::max(end, record.last_token);
    return 100'000 / to_seconds(end).value();
  };
  const auto mean_ttft = [](const std::vector<RequestRecord>& records) {
    double sum = 0;
    for (const RequestRecord& record : records) sum += to_seconds(record.ttft()).value();
    return sum / static_cast<double>(records.size());
  };
  for (const bool repeats : {false, true}) {
    const auto free = run_with(0, repeats), light = run_with(5e-6, repeats), full = run_with(20e-6, repeats);
    EXPECT_NEAR(tokens_per_second(light) / tokens_per_second(free), 1, 0.02);
    EXPECT_NEAR(tokens_per_second(full), 50'000, 2500);
    EXPECT_GT(mean_ttft(full), 5 * mean_ttft(light));
    // Little's law: what clients see lasts as long as a hundred are in flight.
    double sum = 0;
    for (const RequestRecord& record : full) sum += to_seconds(record.e2el()).value();
    EXPECT_NEAR(sum / 1000 * tokens_per_second(full) / 100, 100, 8);
  }
}

// What a hundred clients see of steps of 1 ms where a piece takes 20 us to send.
struct SeenRun {
  RecordedRun told;
  RequestDetails details{1'000'000};
};
void run_with_slow_sender(bool repeats, int64_t thinking_tokens, SeenRun& seen, int64_t stream_interval = 1) {
  LinearTimes times({.step = 1e-3, .token = 0, .context_token = 0});
  SimulationConfig config;
  config.replicas.push_back({.options = {.max_num_seqs = 1000, .num_gpu_blocks = 100'000},
                             .times = &times,
                             .front = {.piece = Seconds(20e-6)},
                             .stream_interval = stream_interval});
  config.repeat_decodes = repeats;
  std::vector<Request> requests = sent(std::vector<double>(300, 0.0));
  for (Request& request : requests) {
    request.output_tokens = 100;
    request.thinking_tokens = thinking_tokens;
  }
  const std::unique_ptr<RequestSource> source = closed_loop(listed(std::move(requests)), 100);
  ObserverList all({&seen.told, &seen.details});
  simulate(config, *source, all);
}

TEST(Frontend, gaps_between_tokens_are_those_that_clients_see) {
  for (const bool repeats : {false, true}) {
    SeenRun seen;
    run_with_slow_sender(repeats, 0, seen);
    Picoseconds decoding = 0;
    for (const RequestRecord& record : seen.told.requests) decoding += record.last_token - record.first_token;
    EXPECT_EQ(seen.told.gaps, 300 * 99);
    EXPECT_NEAR(static_cast<double>(seen.told.gap_time) / static_cast<double>(decoding), 1, 1e-6) << repeats;
    EXPECT_GT(decoding / (300 * 99), 3 * millisecond / 2) << "a hundred tokens take 2 ms to send, a step 1 ms";
    for (const RequestDetail& detail : seen.details.by_id()) {
      Picoseconds sum = 0;
      for (const RequestDetail::Gaps& gaps : detail.gaps) {
        EXPECT_GE(gaps.gap, 0);
        sum += gaps.gap * gaps.count;
      }
      const Picoseconds own = detail.record.last_token - detail.record.first_token;
      EXPECT_NEAR(static_cast<double>(sum) / static_cast<double>(own), 1, 1e-6) << detail.record.id;
    }
  }
}

TEST(Frontend, an_answer_behind_thinking_begins_when_the_client_sees_it) {
  for (const bool repeats : {false, true}) {
    SeenRun seen;
    run_with_slow_sender(repeats, 40, seen);
    for (const RequestDetail& detail : seen.details.by_id()) {
      Picoseconds answered = detail.record.first_token;
      int64_t left = 40;
      for (const RequestDetail::Gaps& gaps : detail.gaps) {
        const int64_t taken = std::min(left, gaps.count);
        answered += taken * gaps.gap;
        left -= taken;
      }
      EXPECT_NEAR(to_seconds(detail.record.answered - answered).value(), 0, 1e-9) << detail.record.id << ' ' << repeats;
    }
  }
}

// One request of 100 tokens, one a millisecond; nothing is sent by a process of its own.
RecordedRun run_in_pieces(int64_t stream_interval, bool repeats, int64_t thinking_tokens = 0) {
  LinearTimes times({.step = 1e-3, .token = 0, .context_token = 0});
  SimulationConfig config;
  config.replicas.push_back({.options = {.num_gpu_blocks = 1000}, .times = &times, .stream_interval = stream_interval});
  config.repeat_decodes = repeats;
  std::vector<Request> requests = sent({0});
  requests.front().output_tokens = 100;
  requests.front().thinking_tokens = thinking_tokens;
  ListedRequests source(std::move(requests));
  RecordedRun run;
  simulate(config, source, run);
  return run;
}

TEST(Frontend, answers_come_in_pieces_the_first_of_one_token) {
  for (const bool repeats : {false, true}) {
    const RecordedRun each = run_in_pieces(1, repeats), tens = run_in_pieces(10, repeats);
    const RequestRecord &one = each.requests.front(), &ten = tens.requests.front();
    EXPECT_EQ(ten.first_token, one.first_token) << "the first token is sent at once";
    EXPECT_EQ(ten.last_token, one.last_token) << "and so is what is left at the end";
    EXPECT_EQ(ten.tpot(), one.tpot());
    EXPECT_EQ(each.gaps, 99);
    EXPECT_EQ(tens.gaps, 10) << "after tokens 11, 21, ..., 91 and 100";
    EXPECT_EQ(tens.gap_time, ten.last_token - ten.first_token);
    EXPECT_EQ(run_in_pieces(1000, repeats).gaps, 1) << "the others at the end";
  }
}

TEST(Frontend, an_answer_behind_thinking_begins_with_the_piece_that_holds_it) {
  for (const bool repeats : {false, true}) {
    const RequestRecord thinks = run_in_pieces(10, repeats, 45).requests.front();
    EXPECT_NEAR(to_seconds(thinks.answered - thinks.first_token).value(), 0.050, 1e-6)
        << "token 46 comes with token 51";
  }
}

TEST(Frontend, larger_pieces_lift_the_limit_of_the_process_that_sends_them) {
  for (const bool repeats : {false, true}) {
    SeenRun each, tens;
    run_with_slow_sender(repeats, 0, each);
    run_with_slow_sender(repeats, 0, tens, 10);
    const auto mean_tpot = [](const SeenRun& run) {
      double sum = 0;
      for (const RequestRecord& record : run.told.requests) sum += to_seconds(record.tpot()).value();
      return sum / static_cast<double>(run.told.requests.size());
    };
    EXPECT_GT(mean_tpot(each), 1.5e-3) << "a hundred tokens take 2 ms to send, a step 1 ms";
    EXPECT_LT(mean_tpot(tens), 1.1e-3) << "a hundred pieces are sent in ten steps";
    Picoseconds decoding = 0;
    for (const RequestRecord& record : tens.told.requests) decoding += record.last_token - record.first_token;
    EXPECT_NEAR(static_cast<double>(tens.told.gap_time) / static_cast<double>(decoding), 1, 1e-6);
    for (const RequestDetail& detail : tens.details.by_id()) {
      int64_t pieces = 0;
      for (const RequestDetail::Gaps& gaps : detail.gaps) pieces += gaps.count;
      EXPECT_EQ(pieces, 10) << detail.record.id;
    }
  }
}

// Nobody watches these requests, so that equal steps are advanced at once.
TEST(Frontend, pieces_of_equal_steps_are_sent_as_those_of_steps_one_by_one) {
  const auto ends = [](bool repeats) {
    LinearTimes times({.step = 1e-3, .token = 0, .context_token = 0});
    SimulationConfig config;
    config.replicas.push_back({.options = {.max_num_seqs = 30, .num_gpu_blocks = 100'000},
                               .times = &times,
                               .front = {.piece = Seconds(300e-6)},
                               .stream_interval = 7});
    config.repeat_decodes = repeats;
    std::vector<Request> requests = sent(std::vector<double>(90, 0.0));
    for (Request& request : requests) request.output_tokens = 40 + 3 * request.id;
    RecordedRun run;
    const std::unique_ptr<RequestSource> source = closed_loop(listed(std::move(requests)), 30);
    simulate(config, *source, run);
    return run;
  };
  const RecordedRun one_by_one = ends(false), at_once = ends(true);
  EXPECT_EQ(at_once.gaps, one_by_one.gaps);
  const auto expected = one_by_one.sorted(), found = at_once.sorted();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(to_seconds(found[i].first_token - expected[i].first_token).value(), 0, 1e-6) << i;
    EXPECT_NEAR(to_seconds(found[i].last_token - expected[i].last_token).value(), 0, 1e-6) << i;
  }
}

TEST(Frontend, a_replica_that_stops_loses_answers_that_were_not_sent) {
  LinearTimes times({.step = 1e-3, .token = 0, .context_token = 0});
  const SimulationConfig run;
  RecordedRun told;
  Replica replica(0, {.options = {.num_gpu_blocks = 1000}, .times = &times, .front = {.piece = Seconds(0.1)}}, run,
                  told);
  for (Request& request : sent({0, 0})) replica.arrive(std::move(request), 0);
  while (*replica.next_event() < one_second / 10) replica.advance(*replica.next_event());
  EXPECT_TRUE(told.requests.empty()) << "both have ended, and the first piece takes 100 ms";
  const std::vector<Replica::Interrupted> lost = replica.shut_down(one_second / 10);
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_EQ(lost[1].request.id, 1);
  EXPECT_EQ(lost[1].request.input_tokens, 1000);
  EXPECT_EQ(lost[1].tokens_out, 1);
  EXPECT_TRUE(told.requests.empty());
  EXPECT_TRUE(replica.idle());
}

TEST(Frontend, costs_nothing_where_it_has_no_costs) {
  EXPECT_FALSE(Frontend({}).takes_time());
  EXPECT_EQ(serve(listed(sent({0.5})), {{}}).front().queued, one_second / 2);
}

}  // namespace foretoken::frontend_test
