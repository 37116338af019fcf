// From an engine's flags to a replica that can be simulated.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "compose/serving_memory.h"
#include "compose/stack.h"
#include "serving/simulation/disaggregation.h"
#include "serving/simulation/simulation_config.h"

namespace foretoken {

// That of its scheduler and stack: vllm-0.19 -> vllm.
std::string_view engine_family(std::string_view engine);

// The software stack and the scheduler of an engine, by its release where its name has one ("vllm-0.12").
std::string usual_stack(std::string_view engine, bool drafts = false);
std::string usual_scheduler(std::string_view engine);
bool schedules_ahead(std::string_view engine);  // whether that release does where nobody says otherwise

// The engine would not start: the model, or one sequence of --max-model-len beside it, does not fit the device.
class EngineDoesNotFit : public InputError {
 public:
  explicit EngineDoesNotFit(ServingMemory memory);
  const ServingMemory& memory() const { return memory_; }

 private:
  ServingMemory memory_;
};

// Every choice of the engine for this memory. EngineDoesNotFit when it would not start; InputError when a size that
// was given for the cache is too small.
SchedulerOptions scheduler_options(const ServingMemory& memory, const ParallelPlan& plan);

// Of an encoder: every token reads all others, so that a prompt is never cut nor found in a cache, and nothing is kept
// of it. Blocks never run out.
SchedulerOptions without_cache(SchedulerOptions options);

// The stack with the graphs that the engine captures: sizes up to twice the tokens of a step of decodes, of which each
// has `decode_tokens` with its drafts; none when it runs eagerly.
Stack engine_stack(Stack stack, const EngineFlags& resolved_flags, int64_t decode_tokens = 1);

// What stands before the engine's queue. Offline, with all requests at once and no limit on those in flight, a program
// calls the engine itself.
FrontCosts engine_front(const Stack& stack, bool offline);

// Data-parallel ranks that share no experts are engines of their own: the plan of one of them, and their number.
struct EngineRanks {
  ParallelPlan plan;
  int64_t engines = 1;
};
EngineRanks engine_ranks(ParallelPlan plan);

// An engine before anybody knows how long its steps take.
struct EngineSetup {
  ServingMemory memory;
  Stack stack;           // with the graphs it captures
  ReplicaConfig config;  // its scheduler, sizes and front; step times are still to come
};
struct EngineSettings {
  std::string scheduler;      // a kind
  int64_t decode_tokens = 1;  // of each decode in a step: more with drafts
  bool offline = false;       // requests do not come through a server
};
// `plan` of one engine; `stack` before it captures graphs. InputError when it would not start.
EngineSetup set_up_engine(ServingMemory memory, const ParallelPlan& plan, Stack stack, const EngineSettings& settings);

// Devices of one engine, all of whose ranks count.
int64_t engine_devices(const ParallelPlan& plan);

// How requests are spread where nobody says: over data-parallel ranks as the engine's own balancer does.
std::string usual_router(std::string_view engine, int64_t data_parallel_ranks);

// Who gives the client its first token where pools are apart and nobody says.
FirstToken usual_first_token(std::string_view engine);

}  // namespace foretoken
