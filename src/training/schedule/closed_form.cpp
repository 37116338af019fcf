#include "training/schedule/closed_form.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"
#include "training/schedule/pipeline_kind.h"

namespace foretoken {
namespace {

// Of one stage, over all its chunks and both directions of the pipeline.
struct StageLoad {
  double before = std::numeric_limits<double>::infinity();  // soonest start of its first forward
  double after = std::numeric_limits<double>::infinity();   // least time from its last backward to the end
  ChunkTimes work;                                          // of all micro-batches
};

// Adds the chunks as `micro_batches` micro-batches like number `example` pass them.
void add_direction(const PipelineKind& kind, const PipelineWork& work, int64_t example, double micro_batches,
                   std::vector<StageLoad>& loads) {
  double forwards = 0, backwards = 0;
  int64_t previous = -1;
  for (size_t chunk = 0; chunk < work.chunks.size(); ++chunk) {
    const int64_t stage = kind.stage_of(work, static_cast<int64_t>(chunk), example);
    if (previous >= 0 && stage != previous) {
      forwards += work.send_forward;
      backwards += work.send_backward;
    }
    previous = stage;
    const ChunkTimes& times = work.chunks[chunk];
    StageLoad& load = loads[static_cast<size_t>(stage)];
    load.before = std::min(load.before, forwards);
    load.after = std::min(load.after, backwards);
    load.work.forward += micro_batches * times.forward;
    load.work.backward_input += micro_batches * times.backward_input;
    load.work.backward_weight += micro_batches * times.backward_weight;
    forwards += times.forward;
    backwards += times.backward_input + (kind.splits_backward ? 0 : times.backward_weight);
  }
}

}  // namespace

std::optional<double> even_bubble_seconds(std::string_view schedule, const PipelineWork& work) {
  ensure(!work.chunks.empty(), "a pipeline has chunks");
  return pipeline_kind(schedule).even_bubble(work, work.chunks.front());
}

double pipeline_seconds_bound(std::string_view schedule, const PipelineWork& work) {
  const PipelineKind& kind = pipeline_kind(schedule);
  std::vector<StageLoad> loads(static_cast<size_t>(work.stages));
  const auto micro_batches = static_cast<double>(work.micro_batches);
  // Copies of the model stand for directions: even and odd micro-batches.
  for (int64_t direction = 0; direction < kind.model_copies; ++direction) {
    add_direction(kind, work, direction, micro_batches / static_cast<double>(kind.model_copies), loads);
  }
  const double share = std::min(1.0, work.overlapped_pair);
  double bound = 0;
  for (const StageLoad& load : loads) {
    const double all = share * load.work.sum();
    if (kind.stages_end_apart) {
      bound = std::max(bound, all);
    } else if (kind.splits_backward) {  // weight gradients may come last, for which nobody waits
      const double without_weights = share * (load.work.forward + load.work.backward_input);
      bound = std::max({bound, load.before + all, load.before + without_weights + load.after});
    } else {
      bound = std::max(bound, load.before + all + load.after);
    }
  }
  return bound;
}

}  // namespace foretoken
