// The flags of several outputs for one prompt, and of requests without any.
#pragma once

#include <cstdint>
#include <string>

#include "app/cli/grammar/options.h"
#include "serving/serving_run.h"

namespace foretoken {

struct SamplingFlags {
  int64_t outputs = 1, beam_width = 1;
  double spread = 0;
  std::string task = "generate";

  void declare(Options& options);
  // InputError for flags that do not go together.
  void check_use(const Options& options) const;
  bool pools() const { return task != "generate"; }
  SampleSettings settings() const;
  // The load with what these flags change.
  LoadMaker changed(LoadMaker load) const;
};

}  // namespace foretoken
