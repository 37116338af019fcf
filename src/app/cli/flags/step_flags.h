// The flags that describe a model step; shared by every command that runs one. vLLM's names where it has them.
#pragma once

#include <string>

#include "app/cli/flags/model_flags.h"
#include "app/cli/flags/placement_flags.h"
#include "app/cli/grammar/options.h"
#include "model/step.h"

namespace foretoken {

struct StepFlags : ModelFlags {
  std::string phase = "decode";
  std::string routing = "usual";
  PlacementFlags placement;
  StepRequest request{.batch = 1, .input_len = 1024, .context_len = 0};

  void declare(Options& options);

  StepRequest step_request() const;
};

}  // namespace foretoken
