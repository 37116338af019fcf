// What a pipeline has to do: chunks of layers with their times, and kinds of tasks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// Seconds of one micro-batch through one chunk of layers. The backward pass is split into gradients of the inputs, for
// which the stage before waits, and of the weights, for which no other stage does.
struct ChunkTimes {
  double forward = 0, backward_input = 0, backward_weight = 0;
  double sum() const { return forward + backward_input + backward_weight; }
};

struct PipelineWork {
  int64_t stages = 1, virtual_stages = 1, micro_batches = 1;
  std::vector<ChunkTimes> chunks;              // stages * virtual_stages, in the order a micro-batch passes them
  double send_forward = 0, send_backward = 0;  // seconds until another stage has it; the sender is free meanwhile
  int64_t micro_batch_group = 0;               // interleaved: micro-batches of one chunk in a row; 0 = stages
  double overlapped_pair = 1;  // dualpipe: seconds of a forward and a backward run together, over the sum of both
};

enum class PipelineTaskKind : uint8_t { forward, backward, backward_input, backward_weight };  // backward = both
std::string_view pipeline_task_name(PipelineTaskKind kind);

enum class TaskPairing : uint8_t { alone, with_next, with_previous };  // a pair starts and ends together

std::vector<std::string> pipeline_schedule_names();

}  // namespace foretoken
