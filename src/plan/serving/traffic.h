// The requests that a service must answer, whose rate is left open.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/serving/day_rates.h"
#include "serving/requests/request.h"

namespace foretoken {

// What closed forms need to know of the requests, in rising order of each.
struct TrafficLengths {
  double mean_input = 0, mean_output = 0;
  double mean_fresh_input = 0;         // of the prompt, what no earlier one began with
  int64_t shared_tokens = 0;           // of different prefixes that several prompts begin with
  int64_t adapters = 0;                // different ones that are asked for
  std::vector<int64_t> fresh_inputs;   // of each request
  std::vector<int64_t> mean_contexts;  // prompt and half the output, of those
                                       // with more than one token
  std::vector<int64_t> outputs;
  std::vector<int64_t> totals;  // prompt and output

  // The value that a share of `percentile` stays within; `sorted` is one of the above.
  static int64_t at_percentile(const std::vector<int64_t>& sorted, double percentile);
};

// Requests that wait for the answers to others: when they come depends on how a run goes, so that every run draws its
// own.
struct Conversations {
  // So many that begin at this rate.
  std::function<LoadMaker(double per_s, int64_t count)> begun;
  uint64_t seed = 0;  // of the first part of the traffic; the next ones have those that follow
};

// A fixed list of requests: every rate has the same prompts and outputs in the same order, sooner or later. So two
// rates differ in nothing else, and capacity is found by bisection. Conversations are drawn with the same seeds at
// every rate.
class Traffic {
 public:
  // `requests` in order of arrival, at least two, not all at once.
  explicit Traffic(std::vector<Request> requests);
  // `drawn`: all requests of so many of these conversations, as they come where answers take no time.
  Traffic(std::vector<Request> drawn, int64_t drawn_conversations, Conversations conversations);

  // Takes requests from a source, at most so many; where some wait for answers, these take no time.
  static std::vector<Request> taken_from(RequestSource& source, int64_t most);

  std::string key() const;  // names the requests where results are kept: a digest of all of them
  int64_t size() const { return static_cast<int64_t>(requests_.size()); }
  double own_rate() const { return own_rate_; }  // requests/s, as they came
  const TrafficLengths& lengths() const { return lengths_; }

  bool has_conversations() const { return conversations_.has_value(); }
  // Of a conversation, in the mean: how many there are, and how long nobody waits for an answer. 1 and 0 of requests
  // that stand alone.
  double requests_each() const { return requests_each_; }
  double pauses_s() const { return pauses_s_; }

  // About so many requests at this rate for a run: part 0 begins at the usual start, or has the first seed.
  std::unique_ptr<RequestSource> part_at_rate(double rate, int64_t count, int64_t part) const;
  // So many requests for a run, of which `limit` are in flight: the next is sent when one ends. Part 0 begins at the
  // first request.
  std::unique_ptr<RequestSource> part_in_flight(int64_t limit, int64_t count, int64_t part) const;
  // Tokens of the prompts of such a part that none before begins with; of conversations, as many as usual.
  double fresh_tokens_of_part(int64_t count, int64_t part) const;
  // How many conversations a part with about so many requests has, and how many requests these are.
  int64_t conversations_of(int64_t count) const;
  int64_t whole_conversations(int64_t count) const;

  // So many of them at this rate, from the one numbered `first`. Where they are fewer, they come again, with prompts
  // that nobody had before.
  std::unique_ptr<RequestSource> at_rate(double rate, int64_t count, int64_t first = 0) const;
  // The requests of a day at `scale` times these rates, which change `speed`
  // times as fast: it is as much shorter. Where nobody comes in the last part
  // of the day, one request comes at its very end, so that runs last a day.
  std::unique_ptr<RequestSource> over_day(const DayRates& day, double scale, double speed) const;
  // Where to begin so that the next few hundred requests, and the next thousand, are as long as all of them are, and
  // come as close after long ones: the longest prompts of so few, and those that wait behind them, decide whether
  // limits at high percentiles can be kept at all.
  int64_t usual_start() const { return usual_start_; }
  // Tokens of these prompts that none before begins with; at least one of each.
  int64_t fresh_tokens(int64_t count, int64_t first = 0) const;

 private:
  double lap_picoseconds() const;          // from the first request to the first of the
                                           // next lap, as they came
  Request numbered(int64_t number) const;  // with prompts and sessions of its
                                           // lap's own; the arrival as it came

  std::vector<Request> requests_;
  std::optional<Conversations> conversations_;
  double own_rate_ = 1, requests_each_ = 1, pauses_s_ = 0;
  int64_t most_block_ = 0, most_session_ = 0, usual_start_ = 0;
  TrafficLengths lengths_;
};

}  // namespace foretoken
