// DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1): micro-batches enter at both ends, so stage i holds chunks i
// and p - 1 - i. The order and its steps are those of deepseek-ai/DualPipe, dualpipe.py. Even micro-batches start on
// stage 0, odd ones on the last.
#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "training/schedule/kinds/list.h"

namespace foretoken {
namespace {

std::string why_not_dualpipe(const PipelineWork& work) {
  if (std::string why = why_not_virtual_stages(work, 1); !why.empty()) return why;
  if (work.stages % 2 != 0) return fmt::format("this schedule needs an even number of stages, not {}", work.stages);
  if (work.micro_batches % 2 != 0 || work.micro_batches < 2 * work.stages) {
    return fmt::format("{} micro-batches: expected an even number, at least two for each of the {} stages",
                       work.micro_batches, work.stages);
  }
  return {};
}

int64_t stage_from_either_end(const PipelineWork& work, int64_t chunk, int64_t copy) {
  return copy == 0 ? chunk : work.stages - 1 - chunk;
}

// The tasks of one stage. `near` micro-batches come from the end of the pipeline that is nearer to it.
class DualpipeStage {
 public:
  DualpipeStage(const PipelineWork& work, int64_t stage)
      : stages_(work.stages), stage_(stage), near_parity_(stage < work.stages / 2 ? 0 : 1) {}

  std::vector<PipelineTask> tasks(int64_t micro_batches) {
    const int64_t depth = std::min(stage_, stages_ - 1 - stage_), to_middle = stages_ / 2 - depth - 1;
    repeat(2 * to_middle, [&] { forward(near); });
    repeat(depth + 1, [&] {
      forward(near);
      forward(far);
    });
    repeat(to_middle, [&] {
      backward_input(far);
      weight();
      forward(far);
    });
    bool together = to_middle > 0;  // the innermost stages do their first two one after the other: a shorter bubble
    repeat(micro_batches / 2 - stages_ + depth + 1, [&] {
      forward_and_backward(near, far, together);
      forward_and_backward(far, near);
      together = true;
    });
    repeat(to_middle, [&] {
      backward(far);
      forward_and_backward(far, near);
    });
    // The second half of the last backwards leave their weight gradients for the bubble.
    for (int64_t i = 0; i < 2 * (depth + 1); ++i) {
      const int64_t direction = i % 2 == 0 ? far : near;
      if (i <= depth) {
        backward(direction);
      } else {
        backward_input(direction);
      }
    }
    repeat(to_middle, [&] {
      weight();
      backward_input(near);
    });
    while (!late_weights_.empty()) weight();
    return std::move(list_);
  }

 private:
  static constexpr int64_t near = 0, far = 1;

  template <typename Step>
  static void repeat(int64_t times, Step step) {
    for (int64_t i = 0; i < times; ++i) step();
  }

  PipelineTask task(PipelineTaskKind kind, int64_t direction, int64_t number) const {
    const int64_t parity = direction == near ? near_parity_ : 1 - near_parity_;
    return pipeline_task(kind, parity == 0 ? stage_ : stages_ - 1 - stage_, 2 * number + parity);
  }

  void forward(int64_t direction) {
    list_.push_back(task(PipelineTaskKind::forward, direction, forwards_[direction]++));
  }
  void backward(int64_t direction) {
    list_.push_back(task(PipelineTaskKind::backward, direction, backwards_[direction]++));
  }
  void forward_and_backward(int64_t forward_direction, int64_t backward_direction, bool together = true) {
    forward(forward_direction);
    if (together) list_.back().pairing = TaskPairing::with_next;
    backward(backward_direction);
    if (together) list_.back().pairing = TaskPairing::with_previous;
  }
  void backward_input(int64_t direction) {
    const int64_t number = backwards_[direction]++;
    list_.push_back(task(PipelineTaskKind::backward_input, direction, number));
    late_weights_.push_back(task(PipelineTaskKind::backward_weight, direction, number));
  }
  void weight() {
    list_.push_back(late_weights_.front());
    late_weights_.pop_front();
  }

  int64_t stages_ = 0, stage_ = 0, near_parity_ = 0;
  int64_t forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::vector<PipelineTask> list_;
  std::deque<PipelineTask> late_weights_;
};

StageTasks dualpipe_tasks(const PipelineWork& work) {
  StageTasks tasks;
  for (int64_t stage = 0; stage < work.stages; ++stage) {
    tasks.push_back(DualpipeStage(work, stage).tasks(work.micro_batches));
  }
  return tasks;
}

// (p/2 - 1)(FB + B - 3W) with B the whole backward and FB a pair run together (table 2 of the report). It holds for
// forwards as long as input gradients, and weight gradients not longer.
std::optional<double> dualpipe_bubble(const PipelineWork& work, const ChunkTimes& times) {
  if (times.forward != times.backward_input || times.backward_weight > times.forward) return std::nullopt;
  const double backward = times.backward_input + times.backward_weight;
  const double pair = work.overlapped_pair * (times.forward + backward);
  const int64_t waits = work.stages / 2 - 1;
  return static_cast<double>(waits) * (pair + backward - 3 * times.backward_weight);
}

}  // namespace

PipelineKind dualpipe_schedule() {
  return {.name = "dualpipe",
          .summary = "DualPipe: micro-batches enter from both ends; twice the weights",
          .why_not = why_not_dualpipe,
          .tasks = dualpipe_tasks,
          .stage_of = stage_from_either_end,
          .model_copies = 2,
          .cycle = [](const PipelineWork&) -> int64_t { return 2; },
          .even_bubble = dualpipe_bubble,
          .splits_backward = true,
          .overlaps_pairs = true};
}

}  // namespace foretoken
