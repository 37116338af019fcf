#include "serving/requests/request.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace foretoken {

std::string_view rejection_text(Rejection why) {
  switch (why) {
    case Rejection::none:
      return "";
    case Rejection::no_input:
      return "no input tokens";
    case Rejection::no_output:
      return "no output tokens";
    case Rejection::beyond_model_length:
      return "prompt of {max_model_len} or more";
    case Rejection::beyond_kv_cache:
      return "more tokens than the KV cache holds";
    case Rejection::beyond_step:
      return "a prompt longer than {max_num_batched_tokens} ({enable_chunked_prefill} would split it)";
    case Rejection::too_many:
      return "too many requests at their replica";
    case Rejection::predicted_late:
      return "a predicted TTFT beyond the limit";
    case Rejection::shed:
      return "a TTFT goal out of reach in the queue";
    case Rejection::lost:
      return "a replica that failed";
  }
  throw InternalError("every rejection has a text");
}

size_t place_by_priority(int32_t priority, size_t count) {
  return std::min(static_cast<size_t>(std::max(priority, 0)), count - 1);
}

}  // namespace foretoken
