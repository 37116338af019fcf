#include "training/schedule/closed_form.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/error.h"
#include "training/schedule/pipeline_kind.h"

namespace foretoken {
namespace {

// Of one stage, over all its chunks.
struct PipelineStageLoad {
  double before = std::numeric_limits<double>::infinity();  // soonest start of its first forward
  double after = std::numeric_limits<double>::infinity();   // least time from its last backward to the end
  ChunkTimes work;                                          // of all micro-batches
};

// Adds the chunks of one copy of the model, through which so many micro-batches pass. Returns the seconds of one that
// has all stages to itself.
double add_copy(const PipelineKind& kind, const PipelineWork& work, int64_t copy, double micro_batches,
                std::vector<PipelineStageLoad>& loads) {
  double forwards = 0, backwards = 0;
  int64_t previous = -1;
  for (size_t chunk = 0; chunk < work.chunks.size(); ++chunk) {
    const int64_t stage = kind.stage_of(work, static_cast<int64_t>(chunk), copy);
    if (previous >= 0 && stage != previous) {
      forwards += work.send_forward;
      backwards += work.send_backward;
    }
    previous = stage;
    const ChunkTimes& times = work.chunks[chunk];
    PipelineStageLoad& load = loads[static_cast<size_t>(stage)];
    load.before = std::min(load.before, forwards);
    load.after = std::min(load.after, backwards);
    load.work.forward += micro_batches * times.forward;
    load.work.backward_input += micro_batches * times.backward_input;
    load.work.backward_weight += micro_batches * times.backward_weight;
    forwards += times.forward;
    backwards += times.backward_input + (kind.splits_backward ? 0 : times.backward_weight);
  }
  return forwards + backwards;
}

// A line of machines, each with the same time for every piece, has its first piece out after all of them and then one
// whenever the slowest is done; GPipe is two such lines, forward and backward.
double slowest_twice(const std::vector<PipelineStageLoad>& loads) {
  double forward = 0, backward = 0;
  for (const PipelineStageLoad& load : loads) {
    forward = std::max(forward, load.work.forward);
    backward = std::max(backward, load.work.backward_input + load.work.backward_weight);
  }
  return forward + backward;
}

}  // namespace

std::optional<double> even_bubble_seconds(std::string_view schedule, const PipelineWork& work) {
  ensure(!work.chunks.empty(), "a pipeline has chunks");
  return pipeline_kind(schedule).even_bubble(work, work.chunks.front());
}

double pipeline_seconds_bound(std::string_view schedule, const PipelineWork& work) {
  const PipelineKind& kind = pipeline_kind(schedule);
  std::vector<PipelineStageLoad> loads(static_cast<size_t>(work.stages));
  const auto micro_batches = static_cast<double>(work.micro_batches);
  double bound = 0;
  const double share = kind.overlaps_pairs ? std::min(1.0, work.overlapped_pair) : 1;
  for (int64_t copy = 0; copy < kind.model_copies; ++copy) {
    bound = share * add_copy(kind, work, copy, micro_batches / static_cast<double>(kind.model_copies), loads);
  }
  if (kind.all_forward_first) return bound + slowest_twice(loads) * (micro_batches - 1) / micro_batches;
  for (const PipelineStageLoad& load : loads) {
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
