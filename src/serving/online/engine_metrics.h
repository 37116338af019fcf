// Counters and histograms of an online run, engine by engine: what vLLM's server counts (vllm/v1/metrics/loggers.py).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serving/online/histogram.h"
#include "serving/requests/request.h"

namespace foretoken {

enum class FinishReason : uint8_t { stop, length, abort, error };
inline constexpr size_t finish_reasons = 4;
std::string_view finish_reason_text(FinishReason reason);

struct EngineCounts {
  explicit EngineCounts(int64_t max_model_len);

  int64_t prompt_tokens = 0, generation_tokens = 0, preemptions = 0;
  int64_t queried_tokens = 0, cached_tokens = 0;   // of prompts, in the prefix cache
  std::array<int64_t, finish_reasons> ended = {};  // by FinishReason
  // Seconds of simulated time.
  Histogram ttft, itl, tpot, e2el, queue, inference, prefill, decode;
  // Tokens.
  Histogram prompt, generation, max_tokens, computed_prompt, step;
};

// Knows every request of the run from `submitted` to its end.
class EngineMetrics final : public RunObserver {
 public:
  // max_model_len: the last bound of histograms of tokens.
  EngineMetrics(size_t engines, int64_t max_model_len);

  // Before the request arrives. `reason`: why it will end, if it does.
  void submitted(const Request& request, int64_t max_tokens, FinishReason reason);
  void cancelled(int64_t id);

  void step_ran(const StepRecord& step) override;
  bool watches(int64_t /*request*/) const override { return true; }
  void request_stepped(const RequestStep& own, const StepRecord& step) override;
  void request_ended(const RequestRecord& record) override;

  const std::vector<EngineCounts>& engines() const { return engines_; }

 private:
  struct InFlight {
    Picoseconds arrival = 0, last_token = 0;
    int64_t input_tokens = 0, max_tokens = 0, tokens_out = 0;
    int32_t engine = 0;
    bool started = false, pooled = false;
    FinishReason reason = FinishReason::stop;
  };

  std::vector<EngineCounts> engines_;
  std::unordered_map<int64_t, InFlight> in_flight_;
};

}  // namespace foretoken
