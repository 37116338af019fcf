// A load test of a real server as a client saw it: what is known of the deployment, the requests and their times.
// Whatever a tool does not tell stays empty; nothing is guessed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

enum class MeasuredStatus : uint8_t { completed, failed, timed_out, cancelled };

struct MeasuredRequest {
  double arrival_s = 0;                  // when the load wanted it sent, from the start of the run
  std::optional<double> sent_s;          // when the client sent it; nothing = at its arrival
  int64_t input_tokens = 0;              // of the prompt
  int64_t output_tokens = 0;             // that came back; of a load that was not measured: asked for
  std::optional<int64_t> cached_tokens;  // of the prompt, where the server tells
  std::optional<double> ttft_s, e2e_s;   // from sending to the first and the last token
  std::vector<double> gaps_s;            // between successive tokens (ITL), where they were recorded
  int64_t stage = 0;                     // index into `stages`
  int64_t session = -1;                  // requests of one conversation; -1 = none
  int32_t prefix_block_tokens = 0;       // tokens that one of `prefix_blocks` stands for
  std::vector<int64_t> prefix_blocks;    // as in Request
  MeasuredStatus status = MeasuredStatus::completed;
  std::string error;  // of one that did not complete
  int64_t retries = 0;

  double sent() const { return sent_s.value_or(arrival_s); }
  bool has_times() const { return status == MeasuredStatus::completed && ttft_s && e2e_s; }
  // Mean gap between tokens after the first; nothing for a single token.
  std::optional<double> tpot_s() const {
    if (!has_times() || output_tokens < 2) return std::nullopt;
    return (*e2e_s - *ttft_s) / static_cast<double>(output_tokens - 1);
  }
};

// What the server says of itself at one moment (`/metrics`). Counters grow from the server's start.
struct MetricsSample {
  double time_s = 0;                                   // from the start of the run
  std::optional<double> running, waiting;              // requests
  std::optional<double> kv_usage;                      // 0 to 1
  std::optional<double> prefix_queries, prefix_hits;   // tokens, counters
  std::optional<double> preemptions;                   // counter
  std::optional<double> prompt_tokens, output_tokens;  // counters
};

// A latency in seconds, as tools sum it up.
struct MeasuredLatency {
  std::optional<double> mean;
  std::map<double, double> percentiles;  // 50 -> the median

  bool is_empty() const { return !mean && percentiles.empty(); }
};

// What a tool says of all requests of a run, or of a stage.
struct MeasuredSummary {
  MeasuredLatency ttft, tpot, itl, e2e;
  std::optional<double> request_throughput, output_throughput, total_throughput;  // a second; tokens
  std::optional<int64_t> completed, failed;

  bool is_empty() const {
    return ttft.is_empty() && tpot.is_empty() && itl.is_empty() && e2e.is_empty() && !request_throughput &&
           !output_throughput && !total_throughput && !completed && !failed;
  }
};

// What the load generator was asked for.
struct MeasuredLoad {
  std::optional<double> request_rate;      // a second; infinity = all at once
  std::optional<double> burstiness;        // 1 = Poisson
  std::optional<int64_t> max_concurrency;  // most requests in flight
  std::optional<int64_t> num_prompts;
  std::optional<double> input_len, output_len;  // mean tokens
  std::string dataset;
};

// A part of a run with a load of its own. Stages follow each other.
struct MeasuredStage {
  double start_s = 0;
  std::optional<double> seconds;
  MeasuredLoad load;
  MeasuredSummary summary;  // as the tool gives it; empty = worked out of the requests
};

struct MeasuredRun {
  std::string name;                    // for reports: of the folder, or of the tool's file
  std::string tool, tool_version;      // that measured: "vllm bench serve"
  std::string engine, engine_version;  // that served: "vllm", "0.19.0"
  std::string model, device;           // as the tool names them
  std::string started;                 // date and time, as the tool writes it
  std::optional<double> seconds;       // from the first request sent to the last answer
  // The deployment as fields of `foretoken serve` (docs/specs.md), as far as they are known: {"model": ..., "device":
  // ..., "tensor_parallel_size": 4}. Not checked here.
  Json deployment = Json::object();
  MeasuredLoad load;
  MeasuredSummary summary;                // as the tool gives it; empty = worked out of the requests
  std::vector<MeasuredStage> stages;      // empty = the run is one
  std::vector<MeasuredRequest> requests;  // in order of arrival; empty = the tool gives only the summary
  std::vector<MetricsSample> samples;     // in order of time
  std::vector<std::string> notes;         // what a reader assumed or left out
};

// What a tool would print for the requests of a stage, or of all (-1). Empty where no request has times. Throughput
// counts from the first request sent to the last token.
MeasuredSummary summarize(const MeasuredRun& run, int64_t stage = -1);

std::string_view measured_status_name(MeasuredStatus status);
std::optional<MeasuredStatus> measured_status_from_name(std::string_view name);
std::vector<std::string> measured_status_names();

}  // namespace foretoken
