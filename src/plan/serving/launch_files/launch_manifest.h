// A layout as a file that starts it: for Kubernetes, Docker Compose, NVIDIA Dynamo, llm-d or KServe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/serving/serving_question.h"

namespace foretoken {

std::vector<std::string> manifest_names();  // "kubernetes", "compose", "dynamo", "llm-d", "kserve"

// YAML, which serving/engine/launch_line.h reads back as the layout. `max_model_len` as planned_model_len() gives it.
// InputError where files of that name cannot express the layout: `value` is a sentence that says why, `expected` one
// that says what to do instead.
std::string launch_manifest(std::string_view name, const ServingQuestion& question, const ServingLayout& layout,
                            int64_t max_model_len);

}  // namespace foretoken
