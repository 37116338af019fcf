#include "plan/serving/traffic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "serving/load/closed_loop.h"
#include "serving/load/listed_source.h"

namespace foretoken {
namespace {

// The prompt's first blocks that came before, until one is new. `seen`: a set or a map of blocks.
template <typename Blocks>
std::span<const int64_t> known_blocks(const Request& request, const Blocks& seen) {
  const auto first_new = std::find_if_not(request.prefix_blocks.begin(), request.prefix_blocks.end(),
                                          [&](int64_t block) { return seen.contains(block); });
  return {request.prefix_blocks.begin(), first_new};
}

int64_t fresh_tokens_of(const Request& request, std::span<const int64_t> known) {
  return std::max<int64_t>(1, request.input_tokens - std::ssize(known) * request.prefix_block_tokens);
}

// Counts a block as known if any earlier prompt had it: never less than a cache could find.
TrafficLengths lengths_of(const std::vector<Request>& requests) {
  TrafficLengths lengths;
  std::unordered_set<int32_t> adapters;
  std::unordered_map<int64_t, bool> is_shared;  // of the blocks that came before
  for (const Request& request : requests) {
    const std::span<const int64_t> known = known_blocks(request, is_shared);
    for (const int64_t block : known) {
      bool& shared = is_shared[block];
      if (!shared) lengths.shared_tokens += request.prefix_block_tokens;
      shared = true;
    }
    for (const int64_t block : request.prefix_blocks) is_shared.emplace(block, false);
    const int64_t fresh = fresh_tokens_of(request, known);
    if (request.adapter >= 0) adapters.insert(request.adapter);
    lengths.mean_input += static_cast<double>(request.input_tokens);
    lengths.mean_fresh_input += static_cast<double>(fresh);
    lengths.mean_output += static_cast<double>(request.output_tokens);
    lengths.fresh_inputs.push_back(fresh);
    lengths.outputs.push_back(request.output_tokens);
    lengths.totals.push_back(request.input_tokens + request.output_tokens);
    if (request.output_tokens > 1) {
      lengths.mean_contexts.push_back(request.input_tokens + request.output_tokens / 2);
    }
  }
  lengths.adapters = static_cast<int64_t>(adapters.size());
  const auto count = static_cast<double>(requests.size());
  lengths.mean_input /= count;
  lengths.mean_fresh_input /= count;
  lengths.mean_output /= count;
  for (std::vector<int64_t>* all : {&lengths.fresh_inputs, &lengths.outputs, &lengths.totals, &lengths.mean_contexts}) {
    std::sort(all->begin(), all->end());
  }
  return lengths;
}

// How far these values are from `all`, in rising order, as logarithms.
double distance_of_values(std::span<const double> some, const std::vector<double>& all) {
  std::vector<double> own(some.begin(), some.end());
  std::sort(own.begin(), own.end());
  const auto at = [](const std::vector<double>& sorted, double percentile) {
    return std::max(1.0, sorted[static_cast<size_t>(percentile / 100 * static_cast<double>(sorted.size() - 1))]);
  };
  double distance = 0;
  for (const double percentile : {50.0, 90.0, 95.0, 99.0}) {
    distance += std::abs(portable_log(at(own, percentile) / at(all, percentile)));
  }
  return distance;
}

// Of each request: its prompt and what is left of those before it, where one prompt is computed after the other and
// this share of the time. A few long prompts that come close to others delay many requests, which their lengths alone
// do not tell.
std::vector<double> tokens_until_answered(const std::vector<Request>& requests, double load) {
  double tokens = 0;
  for (const Request& request : requests) tokens += static_cast<double>(request.input_tokens);
  const double tokens_per_picosecond = tokens / load / static_cast<double>(requests.back().arrival);
  std::vector<double> until;
  until.reserve(requests.size());
  double left = 0;
  Picoseconds now = 0;
  for (const Request& request : requests) {
    left = std::max(0.0, left - static_cast<double>(request.arrival - now) * tokens_per_picosecond);
    now = request.arrival;
    left += static_cast<double>(request.input_tokens);
    until.push_back(left);
  }
  return until;
}

// Seconds between the first and the last request of each conversation, of all together. Sessions with higher numbers
// are those of agents, which conversations wait for.
double pauses_of_all(const std::vector<Request>& requests, int64_t conversations) {
  std::map<int64_t, std::pair<Picoseconds, Picoseconds>> spans;  // first and last, by session
  for (const Request& request : requests) {
    if (request.session < 0 || request.session >= conversations) continue;
    spans.emplace(request.session, std::pair(request.arrival, request.arrival)).first->second.second = request.arrival;
  }
  double sum = 0;
  for (const auto& [session, span] : spans) sum += to_seconds(span.second - span.first).value();
  return sum;
}

int64_t usual_start_of(const std::vector<Request>& requests) {
  constexpr size_t few = 200, many = 1000, step = 200;
  if (requests.size() < 2 * many) return 0;
  std::vector<double> lengths;
  lengths.reserve(requests.size());
  for (const Request& request : requests) lengths.push_back(static_cast<double>(request.input_tokens));
  // Loads at which engines are usually within limits of the TTFT.
  const std::vector<std::vector<double>> measures = {lengths, tokens_until_answered(requests, 0.25),
                                                     tokens_until_answered(requests, 0.5)};
  std::vector<std::vector<double>> usual = measures;
  for (std::vector<double>& all : usual) std::sort(all.begin(), all.end());
  size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t start = 0; start + many <= requests.size(); start += step) {
    double distance = 0;
    for (size_t i = 0; i < measures.size(); ++i) {
      const std::span<const double> listed(measures[i]);
      distance += distance_of_values(listed.subspan(start, few), usual[i]) +
                  distance_of_values(listed.subspan(start, many), usual[i]);
    }
    if (distance >= least) continue;
    least = distance;
    best = start;
  }
  return static_cast<int64_t>(best);
}

}  // namespace

int64_t TrafficLengths::at_percentile(const std::vector<int64_t>& sorted, double percentile) {
  if (sorted.empty()) return 0;
  const auto place = static_cast<size_t>(percentile / 100 * static_cast<double>(sorted.size() - 1));
  return sorted[std::min(place, sorted.size() - 1)];
}

std::vector<Request> Traffic::taken_from(RequestSource& source, int64_t most) {
  std::vector<Request> requests;
  while (static_cast<int64_t>(requests.size()) < most && source.next_arrival()) {
    requests.push_back(source.next());
    source.ended(requests.back().id, requests.back().arrival);
  }
  return requests;
}

Traffic::Traffic(std::vector<Request> requests) : requests_(std::move(requests)) {
  if (requests_.size() < 2 || requests_.back().arrival <= requests_.front().arrival) {
    throw InputError({.source = "traffic",
                      .value = requests_.size() < 2 ? "fewer than two requests" : "all requests at once",
                      .expected = "requests that arrive one after the other"});
  }
  const Picoseconds begin = requests_.front().arrival;
  for (Request& request : requests_) {
    request.arrival -= begin;
    most_session_ = std::max(most_session_, request.session);
    for (const int64_t block : request.prefix_blocks) most_block_ = std::max(most_block_, block);
  }
  own_rate_ = static_cast<double>(requests_.size() - 1) / to_seconds(requests_.back().arrival).value();
  lengths_ = lengths_of(requests_);
  usual_start_ = usual_start_of(requests_);
}

Traffic::Traffic(std::vector<Request> drawn, int64_t drawn_conversations, Conversations conversations)
    : Traffic(std::move(drawn)) {
  ensure(drawn_conversations > 0, "conversations are drawn whole");
  const auto count = static_cast<double>(drawn_conversations);
  conversations_ = std::move(conversations);
  requests_each_ = static_cast<double>(size()) / count;
  pauses_s_ = pauses_of_all(requests_, drawn_conversations) / count;
}

std::string Traffic::key() const {
  // FNV-1a, 64 bits.
  uint64_t digest = 14695981039346656037ULL;
  const auto mix = [&](int64_t value) { digest = (digest ^ static_cast<uint64_t>(value)) * 1099511628211ULL; };
  for (const Request& request : requests_) {
    for (const int64_t value : {request.arrival, request.input_tokens, request.output_tokens}) mix(value);
    for (const int64_t block : request.prefix_blocks) mix(block);
    if (request.adapter >= 0) mix(-2 - int64_t{request.adapter});
  }
  return fmt::format("{} requests {:016x}{}", requests_.size(), digest,
                     conversations_ ? fmt::format(" in conversations, seed {}", conversations_->seed) : "");
}

int64_t Traffic::conversations_of(int64_t count) const {
  return std::max<int64_t>(1, std::llround(static_cast<double>(count) / requests_each_));
}

int64_t Traffic::whole_conversations(int64_t count) const {
  if (!conversations_) return count;
  return std::llround(static_cast<double>(conversations_of(count)) * requests_each_);
}

std::unique_ptr<RequestSource> Traffic::part_at_rate(double rate, int64_t count, int64_t part) const {
  if (!conversations_) return at_rate(rate, count, usual_start_ + part * count);
  return conversations_->begun(rate / requests_each_,
                               conversations_of(count))(conversations_->seed + static_cast<uint64_t>(part));
}

std::unique_ptr<RequestSource> Traffic::part_in_flight(int64_t limit, int64_t count, int64_t part) const {
  std::vector<Request> chosen;
  chosen.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    chosen.push_back(numbered(part * count + i));
    chosen.back().id = i;
    chosen.back().arrival = 0;
  }
  return closed_loop(std::make_unique<ReplayedRequests>(std::move(chosen)), limit);
}

double Traffic::fresh_tokens_of_part(int64_t count, int64_t part) const {
  if (conversations_) return lengths_.mean_fresh_input * static_cast<double>(count);
  return static_cast<double>(fresh_tokens(count, usual_start_ + part * count));
}

int64_t Traffic::fresh_tokens(int64_t count, int64_t first) const {
  std::unordered_set<int64_t> seen;
  int64_t fresh = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = (first + i) % size();
    if (place == 0) seen.clear();  // those of another lap are other prompts
    const Request& request = requests_[static_cast<size_t>(place)];
    fresh += fresh_tokens_of(request, known_blocks(request, seen));
    seen.insert(request.prefix_blocks.begin(), request.prefix_blocks.end());
  }
  return fresh;
}

double Traffic::lap_picoseconds() const {
  return static_cast<double>(requests_.back().arrival) * static_cast<double>(size()) / static_cast<double>(size() - 1);
}

Request Traffic::numbered(int64_t number) const {
  const int64_t lap = number / size();
  Request request = requests_[static_cast<size_t>(number % size())];
  if (request.session >= 0) request.session += lap * (most_session_ + 1);
  for (int64_t& block : request.prefix_blocks) block += lap * (most_block_ + 1);
  return request;
}

std::unique_ptr<RequestSource> Traffic::at_rate(double rate, int64_t count, int64_t first) const {
  ensure(rate > 0 && count > 0 && first >= 0, "traffic has a rate and requests");
  const double stretch = own_rate_ / rate;
  const double lap_length = lap_picoseconds();
  const int64_t begin_number = first % size();
  const auto begin = static_cast<double>(requests_[static_cast<size_t>(begin_number)].arrival);
  std::vector<Request> chosen;
  chosen.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    Request request = numbered(begin_number + i);
    const auto lap = static_cast<double>((begin_number + i) / size());
    request.id = i;
    request.arrival = std::llround((static_cast<double>(request.arrival) + lap * lap_length - begin) * stretch);
    chosen.push_back(std::move(request));
  }
  return std::make_unique<ReplayedRequests>(std::move(chosen));
}

std::unique_ptr<RequestSource> Traffic::over_day(const DayRates& day, double scale, double speed) const {
  // Each request comes when the day has brought as many as had come before it at the traffic's own rate.
  class DayRequests final : public ListedSource {
   public:
    DayRequests(const Traffic& traffic, const DayRates& day, double scale, double speed)
        : traffic_(traffic), day_(day), scale_(scale), speed_(speed) {}

   protected:
    std::optional<Request> read() override {
      Request request = traffic_.numbered(next_);
      // A lap brings as many as it has; its time may be too long for picoseconds.
      const auto laps_before = static_cast<double>(next_ / traffic_.size() * traffic_.size());
      const double wanted = laps_before + to_seconds(request.arrival).value() * traffic_.own_rate();
      const double part_s = day_.part_seconds() / speed_;
      while (part_ < day_.requests_per_s.size()) {
        const double rate = day_.requests_per_s[part_] * scale_;
        if (brought_ + rate * part_s >= wanted && rate > 0) {
          return at(std::move(request), (static_cast<double>(part_) * part_s) + (wanted - brought_) / rate);
        }
        brought_ += rate * part_s;
        ++part_;
      }
      const double end_s = seconds_of_day / speed_;
      if (last_s_ >= end_s - part_s) return std::nullopt;
      return at(std::move(request), end_s);
    }

   private:
    Request at(Request request, double second) {
      last_s_ = second;
      request.id = next_++;
      request.arrival = to_picoseconds(Seconds(second));
      return request;
    }

    const Traffic& traffic_;
    DayRates day_;
    double scale_, speed_;
    int64_t next_ = 0;
    size_t part_ = 0;
    double brought_ = 0;  // by the parts before
    double last_s_ = 0;   // when the last one came
  };
  return std::make_unique<DayRequests>(*this, day, scale, speed);
}

}  // namespace foretoken
