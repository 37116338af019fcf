// One serving engine as its users set it up: what a launch line says. What is not said is as the engine does it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/simulated_time.h"
#include "compose/serving_engine.h"
#include "hardware/device.h"
#include "kernel/power.h"
#include "model/model.h"
#include "model/step.h"
#include "network/rank_places.h"
#include "serving/lora/lora_engine.h"
#include "serving/scheduling/scheduler.h"
#include "serving/speculation/block_diffusion.h"
#include "serving/speculation/speculative_config.h"
#include "serving/steps/attention_ffn_steps.h"

namespace foretoken {

// What a scheduler is told. Names as in vLLM, or in TensorRT-LLM where only that has it.
struct SchedulingChoices {
  QueuePolicy policy = QueuePolicy::fcfs;
  std::vector<Picoseconds> ttft_goals = {};         // deadline: by priority, the last for all that follow
  std::optional<bool> enable_chunked_prefill = {};  // nothing = as the engine does
  bool enable_prefix_caching = true;
  std::optional<bool> async_scheduling = {};  // nothing = as the release does it
  bool scheduler_reserve_full_isl = true;
  int64_t long_prefill_token_threshold = 0;  // 0 = no limit
  int64_t batch_wait_timeout_iters = 0;
  double batch_wait_max_tokens_ratio = 0;
  std::optional<double> watermark = {};  // nothing = the scheduler's own
};

// Where step times come from: our own kernels, or somebody's tables.
struct StepSource {
  std::string op_tables = {};     // folder of operators measured in an engine (op_tables.h)
  std::string vidur_tables = {};  // folder of VIDUR's look-up tables

  bool is_measured() const { return !op_tables.empty() || !vidur_tables.empty(); }
};

enum class BoardState : uint8_t {
  cool,      // as kernels are measured
  metered,   // the same, and what the boards draw is known
  held_busy  // at its power limit, which lengthens steps; what the boards draw is known
};

struct EngineSpec {
  Model model;  // in the number formats that it runs in
  Device device;
  ParallelPlan plan = {};        // of one server; data-parallel ranks that share no experts are engines of their own
  PlacementSpec placement = {};  // node or cluster, links, and how ranks lie on it
  EngineFlags flags = {};        // engine, memory, limits, type of the KV cache
  int64_t replicas = 1;          // equal servers
  std::string stack = {};        // software that runs the steps; empty = the engine's
  std::string scheduler = {};    // empty = the engine's
  SchedulingChoices scheduling = {};
  std::optional<SpeculativeConfig> speculation = {};
  std::optional<Model> draft_model = {};  // that the speculative config names
  BlockDiffusion diffusion = {};
  std::optional<LoraSettings> lora = {};
  std::optional<FfnPool> ffn = {};  // whose devices have the feed-forward layers
  StepSource steps = {};
  BoardState boards = BoardState::cool;
  RemediesSought remedies = RemediesSought::yes;  // in the report of one that does not start
  std::optional<PowerModel> power = {};           // of a board with caps; nothing = the device's own
  int64_t receive_interval = 1;                   // decode steps from one reading of new requests to the next (SGLang)
  int64_t stream_interval = 1;                    // tokens in a piece of an answer, but for the first and the last
  bool two_batch_overlap = false;                 // experts on other ranks: one half computes while the other travels
  bool offline = false;                           // requests do not come through a server (engine_setup.h)
};

}  // namespace foretoken
