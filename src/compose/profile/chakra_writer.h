// A profiled step of one rank -> a Chakra execution trace.
#pragma once

#include <string>
#include <vector>

#include "compose/profile/trace.h"
#include "network/chakra/chakra.h"

namespace foretoken {

struct ImportedChakra {
  ChakraTrace trace;
  std::vector<std::string> notes;  // what was found, and what could not be told
};

// One node for each kernel and copy, with its recorded time, and one of the host for each launch. A node waits for
//   its launch, which waits for the launch before it;
//   the kernel before it on its stream;
//   (communication) the last other kernel that was launched before it, if that had ended: torch.distributed lets its
//     stream wait for the one that calls it;
//   (other kernels) a communication kernel that ended between the moment the kernel could have started and the moment
//     it did: what it seems to have waited for. Profiler traces do not say so themselves.
// InputError for an NCCL kernel of which PyTorch did not note what it moves.
ImportedChakra chakra_from_profile(const ProfiledStep& step);

}  // namespace foretoken
