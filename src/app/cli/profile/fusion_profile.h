// Which operators a runtime on this machine fuses: test models are written, a runner times them.
#pragma once

#include <string>

#include "app/cli/grammar/command.h"

namespace foretoken {

struct FusionProfileRequest {
  std::string runner;          // command; empty = the script for ONNX Runtime in Node.js
  std::string out = "fusion";  // folder for the models and fusion.json
  std::string device;          // name of the processor; empty = as the machine calls it
  std::string runtime;         // name of the runtime; empty = as the runner says
  int64_t rounds = 15;         // samples of each model in a pass
  int64_t passes = 4;
  double noise_percent = 2;
  double minutes = 10;  // for one pass
};

Answer profile_fusion(const FusionProfileRequest& request, const Library& library);

}  // namespace foretoken
