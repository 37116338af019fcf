// A rank's Chakra trace, recorded with durations, as a profiled step.
#pragma once

#include <filesystem>
#include <string>

#include "compose/profile/chakra_writer.h"
#include "compose/profile/trace.h"
#include "network/chakra/chakra.h"

namespace foretoken {

struct ChakraStep {
  ProfiledStep step;     // kernels and messages; operators and sizes are not among what such traces say
  ImportedChakra graph;  // what waits for what: nodes in an order in which they can run, numbered by it
};

inline constexpr int64_t most_job_ranks = 1 << 20;

// `ranks`: of the job, for collectives that name no group; 0 = not known. InputError, with file and node, for a trace
// that waits for itself or for what it does not have, for communication without a duration, and for negative times and
// sizes.
ChakraStep chakra_step(const ChakraTrace& trace, const std::string& source, int64_t ranks);
ChakraStep read_chakra_step(const std::filesystem::path& file, int64_t ranks);

}  // namespace foretoken
