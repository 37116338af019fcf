// Reads what people start servers with (a command of vLLM, SGLang or TensorRT-LLM, docker run, files of Kubernetes,
// Docker Compose, Dynamo or llm-d) as a question about them.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "serving/engine/launched_server.h"

namespace foretoken {

struct LaunchLine {
  Json fields;  // of `foretoken schema serve`: those of the engines, the replicas and, where files name them, the GPU
  LaunchRemarks remarks;
};

// `source` names the text in errors. InputError where nothing in it starts an engine.
LaunchLine read_launch_line(std::string_view text, const std::string& source, const ReadLaunchFile& read_file = {},
                            const ExpertsOfModel& experts_of = {});

}  // namespace foretoken
