// Timeloop's architectures, v0.3 (subtree and local) and v0.4 (a list of nodes with tags), as levels.
#pragma once

#include <string>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/formats/timeloop_attributes.h"
#include "accelerator/formats/timeloop_directive.h"
#include "base/json.h"

namespace foretoken {

// How a storage level keeps the metadata of compressed tensors, in bits; 0: not given.
struct TimeloopMetadata {
  std::string level;
  int word_bits = 0, access_bits = 0;
};

struct TimeloopArchitecture {
  Architecture architecture;
  std::vector<TimeloopDirective> constraints;  // those inside nodes of v0.4
  Json sparse_targets = Json::array();         // the same of sparse_optimizations, as that section's targets
  std::vector<TimeloopMetadata> metadata;      // of levels that give it
  std::vector<std::string> notes;              // attributes nobody here uses
};

// Buffers beside each other (several in one `local`, or in a !Parallel node) become levels in the order of the file, as
// Timeloop has it. A container of v0.4 that fans out becomes a network level with its name, for spatial loops to name.
// `variables` are those of the section of that name. InputError for what cannot be one chain of levels.
TimeloopArchitecture read_timeloop_architecture(const JsonView& view, const TimeloopAttributes& variables);

}  // namespace foretoken
