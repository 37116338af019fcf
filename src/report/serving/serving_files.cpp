#include "report/serving/serving_files.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/simulated_time.h"
#include "base/text.h"
#include "report/trace/chrome_trace.h"
#include "report/trace/trace_events.h"

namespace foretoken {
namespace {

constexpr double picoseconds_per_us = 1e6;

double us(Picoseconds time) {
  return static_cast<double>(time) / picoseconds_per_us;
}

std::string seconds_text(Picoseconds time) {
  return number_text(to_seconds(time).value());
}

std::string milliseconds_text(Picoseconds time) {
  return number_text(static_cast<double>(time) / 1e9);
}

}  // namespace

RequestCsv::RequestCsv(std::ostream& out, Worded worded) : out_(out), worded_(worded) {
  out_ << "id,outcome,replica,input_tokens,output_tokens,cached_tokens,preemptions,arrival_s,queued_s,scheduled_s,"
          "first_token_s,last_token_s,ttft_ms,tpot_ms,e2el_ms,priority,error\n";
}

void RequestCsv::request_ended(const RequestRecord& record) {
  const bool completed = record.outcome == RequestOutcome::completed;
  out_ << fmt::format("{},{},{},{},{},{},{},{}", record.id, completed ? "completed" : "rejected", record.replica,
                      record.input_tokens, record.output_tokens, record.cached_tokens, record.preemptions,
                      seconds_text(record.arrival));
  if (!completed) {
    out_ << fmt::format(",,,,,,,,{},{}\n", record.priority, worded_(rejection_text(record.rejection)));
    return;
  }
  out_ << fmt::format(",{},{},{},{},{},{},{},{},\n", seconds_text(record.queued), seconds_text(record.scheduled),
                      seconds_text(record.first_token), seconds_text(record.last_token),
                      milliseconds_text(record.ttft()), record.has_gaps() ? milliseconds_text(record.tpot()) : "",
                      milliseconds_text(record.e2el()), record.priority);
}

StepCsv::StepCsv(std::ostream& out) : out_(out) {
  out_ << "replica,begin_s,end_s,repeats,prefill_tokens,decode_tokens,running,waiting,kv_blocks_used,kv_blocks_grown\n";
}

void StepCsv::step_ran(const StepRecord& step) {
  out_ << fmt::format("{},{},{},{},{},{},{},{},{},{}\n", step.replica, seconds_text(step.begin), seconds_text(step.end),
                      step.repeats, step.prefill_tokens, step.decode_tokens, step.running, step.waiting,
                      step.kv_blocks_used, step.kv_blocks_grown);
}

bool RunTrace::has_room() {
  if (events_.items().size() < most_events_) return true;
  cut_ = true;
  return false;
}

// Requests of a replica are told in order of their ends: in a lane that was free when this one came, it overlaps with
// none. Of those, the one that was free last leaves the most room for others.
int64_t RunTrace::free_lane(const RequestRecord& record) {
  std::multimap<Picoseconds, int64_t>& lanes = lanes_by_end_[record.replica];
  const auto beyond = lanes.upper_bound(record.arrival);
  auto lane = static_cast<int64_t>(lanes.size());
  if (beyond != lanes.begin()) {
    const auto free = std::prev(beyond);
    lane = free->second;
    lanes.erase(free);
  }
  lanes.emplace(record.last_token, lane);
  return lane;
}

void RunTrace::request_ended(const RequestRecord& record) {
  if (record.outcome == RequestOutcome::rejected || !has_room()) return;
  const int64_t lane = free_lane(record);
  const auto add = [&](const char* part, Picoseconds begin, Picoseconds end) {
    events_.push(complete_event({.category = "request",
                                 .name = part,
                                 .process = record.replica,
                                 .track = 1 + lane,
                                 .begin_us = us(begin),
                                 .duration_us = us(end - begin)},
                                Json::object({{"request", record.id},
                                              {"input_tokens", record.input_tokens},
                                              {"output_tokens", record.output_tokens},
                                              {"cached_tokens", record.cached_tokens},
                                              {"preemptions", int64_t{record.preemptions}}})));
  };
  add("queue", record.arrival, record.scheduled);
  add("prefill", record.scheduled, record.first_token);
  add("decode", record.first_token, record.last_token);
}

void RunTrace::watch(const std::vector<double>& moments) {
  for (const double moment : moments) moments_.push_back(to_picoseconds(Seconds(moment)));
}

void RunTrace::add_kernels(const StepRecord& record, const StepEstimate& step, const Stack& stack) {
  const int64_t first_process = replicas_ + kernel_processes_;
  kernel_processes_ += static_cast<int64_t>(step.stages.size());
  add_step_events(kernels_, step, stack, 1, first_process,
                  fmt::format("replica {}, kernels at {:.6g} s, ", record.replica, to_seconds(record.begin).value()),
                  us(record.begin));
}

void RunTrace::step_ran(const StepRecord& step) {
  replicas_ = std::max(replicas_, step.replica + 1);
  for (const Picoseconds moment : moments_) {
    if (moment < step.begin || moment >= step.end) continue;
    StepRecord& one = watched_.emplace_back(step);
    // Of equal decode steps, the one of that moment: each adds a token to every context.
    const Picoseconds length = (step.end - step.begin) / step.repeats;
    const int64_t before = std::min((moment - step.begin) / std::max<Picoseconds>(1, length), step.repeats - 1);
    one.begin = step.begin + before * length;
    one.end = one.begin + length;
    one.decode_context_tokens += before * step.decode_tokens;
    one.repeats = 1;
  }
  if (!has_room()) return;
  events_.push(complete_event({.category = "step",
                               .name = step.prefill_tokens == 0  ? "decode"
                                       : step.decode_tokens == 0 ? "prefill"
                                                                 : "mixed",
                               .process = step.replica,
                               .track = 0,
                               .begin_us = us(step.begin),
                               .duration_us = us(step.end - step.begin)},
                              Json::object({{"repeats", step.repeats},
                                            {"prefill_tokens", step.prefill_tokens},
                                            {"decode_tokens", step.decode_tokens}})));
  events_.push(counter_event(step.replica, "requests", us(step.begin),
                             Json::object({{"running", step.running}, {"waiting", step.waiting}})));
  events_.push(counter_event(step.replica, "KV blocks", us(step.begin), Json::object({{"used", step.kv_blocks_used}})));
}

Json RunTrace::document() const {
  Json events = Json::array();
  for (int32_t replica = 0; replica < replicas_; ++replica) {
    events.push(process_name_event(replica, fmt::format("replica {}", replica)));
    events.push(track_name_event(replica, 0, "steps"));
  }
  for (const Json& event : events_.items()) events.push(event);
  for (const Json& event : kernels_.items()) events.push(event);
  return trace_document(std::move(events));
}

}  // namespace foretoken
