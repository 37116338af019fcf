// Micro-batches through pipeline stages: who computes what when. A schedule (kinds/) orders the work of each stage; the
// orders are then run exactly, every task as early as its stage is free and its data are there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "training/schedule/pipeline_work.h"

namespace foretoken {

struct PipelineRun {
  // Until the next iteration can start: when the last stage has ended or, for schedules whose optimizer step waits for
  // no other stage (ZB-H2, ZB-V), the longest time between the first start and the last end of one stage.
  double seconds = 0;
  // One number for each stage.
  std::vector<double> busy;
  std::vector<double> first_start, last_end;
  // When the stage begins to complete the gradients of the first of its chunks: they may be reduced from here on.
  std::vector<double> last_backward_start;
  std::vector<int64_t> most_in_flight;  // chunks with a forward done whose backward_input is not
};

struct PipelineEvent {
  int64_t stage = 0, chunk = 0, micro_batch = 0;
  PipelineTaskKind kind = PipelineTaskKind::forward;
  TaskPairing pairing = TaskPairing::alone;  // a pair is shown one after the other, in what it takes together
  double start = 0, seconds = 0;
};

struct PipelineTimeline {
  int64_t micro_batches = 0;          // that were run: fewer than asked for where there would be too many events
  std::vector<PipelineEvent> events;  // by stage, then by time
};

// Why the schedule cannot run so many stages, virtual stages and micro-batches; empty = it can. `chunks` need not be
// filled. Throws InputError on an unknown name, as all functions here do.
std::string why_not(std::string_view schedule, const PipelineWork& work);

// Takes no longer for many micro-batches than for some: once all stages repeat, the rest is extrapolated exactly.
// Seconds are rounded to 2^-34 of the longest task, so that times of repeating tasks can be compared for equality.
PipelineRun run_pipeline(std::string_view schedule, const PipelineWork& work);

// As many micro-batches as make no more than `most_events`, or the fewest that the schedule can run.
PipelineTimeline pipeline_events(std::string_view schedule, const PipelineWork& work, int64_t most_events = 100'000);

// The stage that holds the chunk. DualPipe's odd micro-batches come from the other end.
int64_t stage_of_chunk(std::string_view schedule, const PipelineWork& work, int64_t chunk, int64_t micro_batch = 0);

// How many times the stages together hold the model's weights: DualPipe 2, all others 1.
int64_t model_copies(std::string_view schedule);

}  // namespace foretoken
