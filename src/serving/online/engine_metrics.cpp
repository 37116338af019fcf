#include "serving/online/engine_metrics.h"

#include "base/error.h"

namespace foretoken {
namespace {

constexpr double first_token_bounds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
                                         1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
constexpr double token_gap_bounds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                       0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
constexpr double latency_bounds[] = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                     30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
constexpr double step_token_bounds[] = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

// 1, 2, 5, 10, 20, ... up to `most`.
std::vector<double> one_two_five(int64_t most) {
  std::vector<double> bounds;
  for (int64_t power = 1; power <= most; power *= 10) {
    for (const int64_t step : {1, 2, 5}) {
      if (step * power <= most) bounds.push_back(static_cast<double>(step * power));
    }
  }
  return bounds;
}

double seconds(Picoseconds time) {
  return to_seconds(time).value();
}

}  // namespace

std::string_view finish_reason_text(FinishReason reason) {
  constexpr std::string_view texts[finish_reasons] = {"stop", "length", "abort", "error"};
  return texts[static_cast<size_t>(reason)];
}

EngineCounts::EngineCounts(int64_t max_model_len)
    : ttft(first_token_bounds),
      itl(token_gap_bounds),
      tpot(token_gap_bounds),
      e2el(latency_bounds),
      queue(latency_bounds),
      inference(latency_bounds),
      prefill(latency_bounds),
      decode(latency_bounds),
      prompt(one_two_five(max_model_len)),
      generation(prompt),
      max_tokens(prompt),
      computed_prompt(prompt),
      step(step_token_bounds) {}

EngineMetrics::EngineMetrics(size_t engines, int64_t max_model_len) : engines_(engines, EngineCounts(max_model_len)) {}

void EngineMetrics::submitted(const Request& request, int64_t max_tokens, FinishReason reason) {
  in_flight_[request.id] = {.arrival = request.arrival,
                            .input_tokens = request.input_tokens,
                            .max_tokens = max_tokens,
                            .pooled = request.pooled,
                            .reason = reason};
}

void EngineMetrics::cancelled(int64_t id) {
  const auto found = in_flight_.find(id);
  if (found == in_flight_.end()) return;
  ++engines_[static_cast<size_t>(found->second.engine)].ended[static_cast<size_t>(FinishReason::abort)];
  in_flight_.erase(found);
}

void EngineMetrics::step_ran(const StepRecord& step) {
  engines_[static_cast<size_t>(step.replica)].step.add(
      static_cast<double>(step.prefill_tokens + step.decode_tokens + step.drafted_tokens));
}

void EngineMetrics::request_stepped(const RequestStep& own, const StepRecord& step) {
  InFlight& request = in_flight_.at(own.request);
  EngineCounts& counts = engines_[static_cast<size_t>(step.replica)];
  if (!request.started) {
    request.started = true;
    request.engine = step.replica;
    counts.queried_tokens += request.input_tokens;
    counts.cached_tokens += own.context_tokens;  // before its first step: what the prefix cache had
  }
  if (!request.pooled) counts.generation_tokens += own.yields;
  if (own.sent == 0) return;
  const Picoseconds seen = step.end + own.sending;
  if (request.tokens_out == 0) {
    counts.prompt_tokens += request.input_tokens;
    counts.ttft.add(seconds(seen - request.arrival));
  } else {
    counts.itl.add(seconds(seen - request.last_token));
  }
  request.tokens_out += own.sent;
  request.last_token = seen;
}

void EngineMetrics::request_ended(const RequestRecord& record) {
  const auto found = in_flight_.find(record.id);
  ensure(found != in_flight_.end(), "a request ends that was submitted");
  const InFlight request = found->second;
  in_flight_.erase(found);
  EngineCounts& counts = engines_[static_cast<size_t>(record.replica)];
  if (record.outcome != RequestOutcome::completed) {
    ++counts.ended[static_cast<size_t>(FinishReason::error)];
    return;
  }
  ++counts.ended[static_cast<size_t>(request.reason)];
  counts.preemptions += record.preemptions;
  if (record.has_gaps()) counts.tpot.add(seconds(record.tpot()));
  counts.e2el.add(seconds(record.e2el()));
  counts.queue.add(seconds(record.scheduled - record.arrival));
  counts.inference.add(seconds(record.last_token - record.scheduled));
  counts.prefill.add(seconds(record.first_token - record.scheduled));
  counts.decode.add(seconds(record.last_token - record.first_token));
  counts.prompt.add(static_cast<double>(record.input_tokens));
  counts.generation.add(static_cast<double>(record.output_tokens));
  counts.max_tokens.add(static_cast<double>(request.max_tokens));
  counts.computed_prompt.add(static_cast<double>(record.input_tokens - record.cached_tokens));
}

}  // namespace foretoken
