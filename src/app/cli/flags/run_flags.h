// Measured runs, and the deployment that served them: flags of `serve`, and what run.json says of itself.
#pragma once

#include <string>
#include <vector>

#include "app/cli/flags/replica_flags.h"
#include "validate/deployment/run_case.h"

namespace foretoken {

struct RunFlags {
  ReplicaFlags replica;

  void declare(Options& options);
  // Flags that were typed go before fields of run.json's `deployment`, those before its `model`, `device`, `engine` and
  // `engine_version`. InputError where nobody names a model and a device.
  RunCase read(const std::string& folder, const Library& library) const;

 private:
  const Options* options_ = nullptr;
};

}  // namespace foretoken
