#include "serving/request.h"

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
      return "prompt of --max-model-len or more";
    case Rejection::beyond_kv_cache:
      return "more tokens than the KV cache holds";
  }
  throw InternalError("every rejection has a text");
}

void check_arrival(Picoseconds arrival, Picoseconds now) {
  if (arrival >= now) return;
  throw InputError({.source = "request",
                    .path = "arrival",
                    .value = std::to_string(arrival) + " ps",
                    .expected = "not before " + std::to_string(now) + " ps: arrivals never go back in time"});
}

}  // namespace foretoken
