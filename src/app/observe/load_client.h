// Sends the requests of a load to an OpenAI-compatible server at their times, in one thread, and measures the answers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "app/observe/server_address.h"
#include "serving/requests/request.h"
#include "serving/runs/measured_run.h"

namespace foretoken {

struct ClientProgress {
  int64_t sent = 0, completed = 0, failed = 0, in_flight = 0;
  double seconds = 0;
};

struct LoadClientSettings {
  ServerAddress server;
  bool chat = false;  // /v1/chat/completions, else /v1/completions
  std::string model;
  std::string api_key;                     // empty = none
  std::filesystem::path authorities = {};  // of TLS, beside the system's (client_stream.h)
  bool ignore_eos = true;                  // outputs have the length that was asked for
  uint64_t seed = 0;
  int64_t warmups = 0;        // requests before the run that are not counted
  int64_t most_open = 1024;   // connections; further requests wait
  double most_seconds = 600;  // then what still runs is cancelled
  double request_timeout_s = 600;
  int64_t retries = 0;            // of requests that were refused or lost before their first token
  double metrics_interval_s = 1;  // between samples of /metrics; 0 = none
  bool stop_at_signals = false;   // SIGINT and SIGTERM end the run with what it has
  std::function<void(const ClientProgress&)> progress = {};  // about once a second
};

// The name of the first model that the server lists. InputError where it cannot be asked.
std::string served_model(const LoadClientSettings& settings);

// Requests, samples and notes of the run; what was asked for is the caller's to add. Times are from the first arrival
// of the load. InputError where the server cannot be reached at all.
MeasuredRun run_load(const LoadClientSettings& settings, const LoadMaker& load);

}  // namespace foretoken
