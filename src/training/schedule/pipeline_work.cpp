#include "training/schedule/pipeline_work.h"

namespace foretoken {

std::string_view pipeline_task_name(PipelineTaskKind kind) {
  switch (kind) {
    case PipelineTaskKind::forward:
      return "forward";
    case PipelineTaskKind::backward:
      return "backward";
    case PipelineTaskKind::backward_input:
      return "input gradients";
    case PipelineTaskKind::backward_weight:
      break;
  }
  return "weight gradients";
}

}  // namespace foretoken
