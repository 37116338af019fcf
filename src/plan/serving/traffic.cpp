#include "plan/serving/traffic.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/load/listed_source.h"

namespace foretoken {
namespace {

// Counts a block as known if any earlier prompt had it: never less than a cache could find.
TrafficLengths lengths_of(const std::vector<Request>& requests) {
  TrafficLengths lengths;
  std::set<int64_t> seen;
  for (const Request& request : requests) {
    int64_t known = 0;
    for (const int64_t block : request.prefix_blocks) {
      if (!seen.contains(block)) break;
      known += request.prefix_block_tokens;
    }
    for (const int64_t block : request.prefix_blocks) seen.insert(block);
    const int64_t fresh = std::max<int64_t>(1, request.input_tokens - known);
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
  const auto count = static_cast<double>(requests.size());
  lengths.mean_input /= count;
  lengths.mean_fresh_input /= count;
  lengths.mean_output /= count;
  for (std::vector<int64_t>* all : {&lengths.fresh_inputs, &lengths.outputs, &lengths.totals, &lengths.mean_contexts}) {
    std::sort(all->begin(), all->end());
  }
  return lengths;
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
}

std::string Traffic::key() const {
  // FNV-1a, 64 bits.
  uint64_t digest = 14695981039346656037ULL;
  const auto mix = [&](int64_t value) { digest = (digest ^ static_cast<uint64_t>(value)) * 1099511628211ULL; };
  for (const Request& request : requests_) {
    for (const int64_t value : {request.arrival, request.input_tokens, request.output_tokens}) mix(value);
    for (const int64_t block : request.prefix_blocks) mix(block);
  }
  return fmt::format("{} requests {:016x}", requests_.size(), digest);
}

std::unique_ptr<RequestSource> Traffic::at_rate(double rate, int64_t count, int64_t first) const {
  ensure(rate > 0 && count > 0 && first >= 0, "traffic has a rate and requests");
  const double stretch = own_rate_ / rate;
  const double lap_length =
      static_cast<double>(requests_.back().arrival) * static_cast<double>(size()) / static_cast<double>(size() - 1);
  const auto begin = static_cast<double>(requests_[static_cast<size_t>(first % size())].arrival);
  std::vector<Request> chosen;
  chosen.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t lap = (first % size() + i) / size();
    Request request = requests_[static_cast<size_t>((first + i) % size())];
    request.id = i;
    request.arrival =
        std::llround((static_cast<double>(request.arrival) + static_cast<double>(lap) * lap_length - begin) * stretch);
    if (request.session >= 0) request.session += lap * (most_session_ + 1);
    for (int64_t& block : request.prefix_blocks) block += lap * (most_block_ + 1);
    chosen.push_back(std::move(request));
  }
  return std::make_unique<ReplayedRequests>(std::move(chosen));
}

}  // namespace foretoken
