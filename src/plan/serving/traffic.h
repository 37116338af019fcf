// The requests that a service must answer, whose rate is left open.
#pragma once

#include <cstdint>
#include <memory>
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

// A fixed list of requests: every rate has the same prompts and outputs in the same order, sooner or later. So two
// rates differ in nothing else, and capacity is found by bisection.
class Traffic {
 public:
  // `requests` in order of arrival, at least two, not all at once.
  explicit Traffic(std::vector<Request> requests);

  // Takes requests from a source that does not wait for answers, at most so many.
  static std::vector<Request> taken_from(RequestSource& source, int64_t most);

  std::string key() const;  // names the requests where results are kept: a digest of all of them
  int64_t size() const { return static_cast<int64_t>(requests_.size()); }
  double own_rate() const { return own_rate_; }  // requests/s, as they came
  const TrafficLengths& lengths() const { return lengths_; }

  // So many of them at this rate, from the one numbered `first`. Where they are fewer, they come again, with prompts
  // that nobody had before.
  std::unique_ptr<RequestSource> at_rate(double rate, int64_t count, int64_t first = 0) const;
  // The requests of a day at `scale` times these rates, which change `speed`
  // times as fast: it is as much shorter. Where nobody comes in the last part
  // of the day, one request comes at its very end, so that runs last a day.
  std::unique_ptr<RequestSource> over_day(const DayRates& day, double scale, double speed) const;
  // Where to begin so that the next few hundred requests, and the next thousand, are as long as all of them are: the
  // longest prompts of so few decide whether limits at high percentiles can be kept at all.
  int64_t usual_start() const { return usual_start_; }
  // Tokens of these prompts that none before begins with; at least one of each.
  int64_t fresh_tokens(int64_t count, int64_t first = 0) const;

 private:
  double lap_picoseconds() const;          // from the first request to the first of the
                                           // next lap, as they came
  Request numbered(int64_t number) const;  // with prompts and sessions of its
                                           // lap's own; the arrival as it came

  std::vector<Request> requests_;
  double own_rate_ = 1;
  int64_t most_block_ = 0, most_session_ = 0, usual_start_ = 0;
  TrafficLengths lengths_;
};

}  // namespace foretoken
