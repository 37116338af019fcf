// ZB-V (Qi et al., arXiv 2401.10241, section 6): 2p chunks that go down the stages and back up, so that stage i holds
// chunks i and 2p - 1 - i and the loss is where the input is. No bubble when forward, input and weight gradients take
// the same time. The order is that of PyTorch's ScheduleZBVZeroBubble (torch/distributed/pipelining/schedules.py).
#include <algorithm>

#include "training/schedule/kinds/list.h"

namespace foretoken {
namespace {

// The tasks of one stage. `down` is its chunk on the way from the input, `up` the one on the way to the loss.
class FoldedStage {
 public:
  FoldedStage(const PipelineWork& work, int64_t stage)
      : stages_(work.stages),
        stage_(stage),
        micro_batches_(work.micro_batches),
        down_{.chunk = stage},
        up_{.chunk = 2 * work.stages - 1 - stage} {}

  std::vector<PipelineTask> tasks() {
    // The order needs so many to fill the pipeline. With fewer, those that do not exist are left out.
    const int64_t planned = std::max(micro_batches_, 2 * stages_ - 1);
    for (int64_t i = 0; i < 2 * (stages_ - stage_) - 1; ++i) forward(down_);
    for (int64_t i = 0; i < stage_; ++i) {
      forward(up_);
      forward(down_);
    }
    for (int64_t i = 0; i < stages_ - stage_; ++i) {
      forward(up_);
      backward_input(up_);
      weight(up_);
    }
    while (up_.forwards < planned) {
      if (down_.forwards < planned) forward(down_);
      backward_input(down_);
      weight(down_);
      forward(up_);
      backward_input(up_);
      weight(up_);
    }
    for (int64_t i = 0; i < stage_; ++i) {
      backward_input(down_);
      backward_input(up_);
    }
    for (int64_t i = 0; i < stages_ - stage_; ++i) {
      backward_input(down_);
      weight(down_);
    }
    while (up_.weights < planned) weight(up_);
    while (down_.weights < planned) weight(down_);
    return std::move(list_);
  }

 private:
  struct Chunk {
    int64_t chunk = 0, forwards = 0, backwards = 0, weights = 0;
  };

  void forward(Chunk& chunk) { add(PipelineTaskKind::forward, chunk.chunk, chunk.forwards++); }
  void backward_input(Chunk& chunk) { add(PipelineTaskKind::backward_input, chunk.chunk, chunk.backwards++); }
  void weight(Chunk& chunk) { add(PipelineTaskKind::backward_weight, chunk.chunk, chunk.weights++); }

  void add(PipelineTaskKind kind, int64_t chunk, int64_t micro_batch) {
    if (micro_batch < micro_batches_) list_.push_back(pipeline_task(kind, chunk, micro_batch));
  }

  int64_t stages_ = 0, stage_ = 0, micro_batches_ = 0;
  Chunk down_, up_;
  std::vector<PipelineTask> list_;
};

StageTasks zero_bubble_v_tasks(const PipelineWork& work) {
  StageTasks tasks;
  for (int64_t stage = 0; stage < work.stages; ++stage) tasks.push_back(FoldedStage(work, stage).tasks());
  return tasks;
}

// None when all three take the same; no formula is published for other times.
std::optional<double> zero_bubble_v_bubble(const PipelineWork& work, const ChunkTimes& times) {
  const bool even = times.forward == times.backward_input && times.forward == times.backward_weight;
  if (!even || work.micro_batches < 2 * work.stages - 1) return std::nullopt;
  return 0;
}

}  // namespace

PipelineKind zero_bubble_v_schedule() {
  return {.name = "zb-v",
          .summary = "ZB-V: two chunks per rank in a V shape; almost no bubble with the memory of 1F1B",
          .why_not = [](const PipelineWork& work) { return why_not_virtual_stages(work, 2); },
          .tasks = zero_bubble_v_tasks,
          .stage_of = folded_stage,
          .cycle = every_micro_batch,
          .even_bubble = zero_bubble_v_bubble,
          .splits_backward = true,
          .stages_end_apart = true};
}

}  // namespace foretoken
