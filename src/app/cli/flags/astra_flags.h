// The flags of --astra-compatible; the words are those of ASTRA-sim's own files.
#pragma once

#include <string>

#include "app/cli/grammar/options.h"
#include "network/astra_compatible/conformance.h"

namespace foretoken {

struct AstraFlags {
  static constexpr const char* heading = "ASTRA-sim's arithmetic";
  bool wanted = false;
  AstraRunText text{.bandwidth = "50", .latency = "500", .algorithm = ""};
  AstraRun run{.splits = 4, .endpoint_ns = 10, .local_memory_gb_per_s = 1600};

  void declare(Options& options);

  // Topology and algorithm come from the command's own flags.
  AstraRun run_of(CollectiveKind kind, int64_t bytes, const std::string& topology, const std::string& algorithm) const;
};

}  // namespace foretoken
