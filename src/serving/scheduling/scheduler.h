// What a serving engine decides: which requests run in the next step. One kind per file in schedulers/.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compose/cache_layout.h"
#include "serving/scheduling/sequence.h"

namespace foretoken {

class ReplicaTiers;

enum class QueuePolicy : uint8_t {
  fcfs,
  priority,
  deadline  // least slack to the TTFT goal first; requests that can no longer meet theirs are shed
};

// Every choice made; compose/serving_engine.h has the engines' defaults by device. Names as in vLLM.
struct SchedulerOptions {
  int64_t max_num_batched_tokens = 2048;
  int64_t max_num_seqs = 256;
  int64_t max_model_len = 0;   // tokens of prompt and output together; 0 = no limit
  int64_t num_gpu_blocks = 0;  // as the engine reports them
  int64_t block_size = 16;
  QueuePolicy policy = QueuePolicy::fcfs;
  std::vector<Picoseconds> ttft_goals = {};  // deadline: by priority, the last for all that follow
  bool enable_chunked_prefill = true;
  bool enable_prefix_caching = true;
  bool async_scheduling = true;  // the next step is chosen while one runs, by kinds that can
  bool scheduler_reserve_full_isl = true;
  int64_t long_prefill_token_threshold = 0;  // 0 = off
  std::optional<double> watermark;           // share of the blocks kept free when a request is admitted; nothing = the
                                             // kind's own
  // TensorRT-LLM: prompts wait beside running sequences, at most so many steps (0 = off), until the step would hold
  // this share of max_num_batched_tokens.
  int64_t batch_wait_timeout_iters = 0;
  double batch_wait_max_tokens_ratio = 0;
  int64_t pipeline_stages = 1;
  int64_t max_loras = 0;         // different adapters of running sequences; 0 = no limit
  Speculation speculation = {};  // its seed is the run's
  // Data-parallel ranks that share experts and so take every step together, each with its own queue and blocks: all
  // counts above are those of one rank. `rank_router` chooses the rank of a request.
  int64_t lock_step_ranks = 1;
  std::string rank_router = "round_robin";
  bool prompts_stop_ranks = false;  // in a step in which one rank computes prompts the others decode nothing
  // Kinds of layers that share the blocks: windows, recurrent states. Empty = one kind that keeps every token.
  std::vector<CacheGroup> cache_groups = {};
  ReplicaTiers* lower_tiers = nullptr;  // of the replica; not owned
  bool quiet_decodes = false;           // sequences may lag behind their steps until `settle`
};

// What routers and reports see of an engine.
struct SchedulerLoad {
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t blocks_used = 0;
  int64_t blocks = 0;
};

// Owns the queues and the KV cache of one replica, not the sequences: those stay where they are until `release`.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // The longest sequence that can run alone: more can never be served.
  virtual int64_t capacity_tokens() const = 0;
  // The longest prompt that it takes, whatever its cache holds.
  virtual int64_t longest_prompt() const { return std::numeric_limits<int64_t>::max(); }

  virtual void add(Sequence& sequence) = 0;

  // Chooses the next step: fills `batch` (given empty; left so when nothing can run), takes cache for it and counts its
  // tokens as computed (Batch::add). Steps chosen before may still be running.
  virtual void schedule(Batch& batch) = 0;
  // The same in two parts, by kinds whose steps hold prompts or decodes alone: the second is asked for only where the
  // first chose nothing.
  virtual void schedule_prompts(Batch& batch) { schedule(batch); }
  virtual void schedule_decodes(Batch& /*batch*/) {}

  // How many times more `batch`, just chosen, would be chosen again if nothing arrived and no step before it ended a
  // sequence. 0 is always right; more is faster.
  virtual int64_t repeats(const Batch& /*batch*/) const { return 0; }
  // It was: the same step `count` times more.
  virtual void repeat(Batch& /*batch*/, int64_t /*count*/) {}
  // Brings all sequences up to date: before anyone but the scheduler reads them (sequence.h, QuietDecodes).
  virtual void settle() {}
  // False where one more request at the end of the queue would not change `repeats`.
  virtual bool arrival_matters() const { return true; }

  // A waiting sequence without any step yet whose latest start has passed, where the policy sheds it; else nothing.
  virtual Sequence* first_late(Picoseconds /*now*/) const { return nullptr; }

  // The sequence has its last token, or is shed: take back what it holds, wherever it is.
  virtual void release(Sequence& sequence) = 0;

  // Prompts that are computed elsewhere (simulation/separate_pools.h).
  // It has its last token, but its cache stays until `release`.
  virtual void set_aside(Sequence& sequence) = 0;
  // Takes blocks for its whole prompt; what is found here counts as computed. False, and nothing happens, when fewer
  // than `spare` blocks would be left.
  virtual bool expect(Sequence& sequence, int64_t spare) = 0;
  // The rest of it has arrived: it decodes from the next step that has room for it.
  virtual void receive(Sequence& sequence) = 0;
  // Blocks that `batch` takes when it runs so many times more.
  virtual int64_t blocks_ahead(const Batch& batch, int64_t steps) const = 0;

  virtual SchedulerLoad load() const = 0;
};

// Choices of SchedulerOptions that only some kinds read. All read the watermark and the sizes.
struct OptionsRead {
  bool policy = false;
  bool chunked_prefill = false;
  bool prefix_caching = false;
  bool reserve_full_isl = false;
  bool long_prefill_threshold = false;
  bool batch_wait = false;
  bool loads_apart = false;      // requests that wait for what tiers below hold keep no step waiting
  bool waits_for_loads = false;  // a step begins once all that its requests read from tiers below is there
  bool adapters = false;
};

struct SchedulerKind {
  std::string_view name;  // what users type
  std::string_view summary;
  bool schedules_ahead;  // can choose a step while the one before it runs
  OptionsRead reads;
  std::unique_ptr<Scheduler> (*make)(const SchedulerOptions&);
  // A request that comes while fewer steps than pipeline stages run is seen at once; else when the next of them ends.
  bool schedules_on_arrival = false;
  bool cuts_prompts = true;  // chunked prefill, by kinds that read it, where nobody says
};
std::span<const SchedulerKind> scheduler_kinds();
std::vector<std::string> scheduler_names();
const SchedulerKind& scheduler_kind(std::string_view name);  // InputError suggests the nearest
// Of one engine: of that kind, or of several ranks of that kind in lock step.
std::unique_ptr<Scheduler> make_scheduler(std::string_view kind, const SchedulerOptions& options);

}  // namespace foretoken
