// A profiled step of one rank -> a Chakra execution trace.
#pragma once

#include <string>
#include <vector>

#include "compose/profile/trace.h"
#include "network/chakra/chakra.h"

namespace foretoken {

struct ImportedChakra {
  ChakraTrace trace;
  std::vector<uint64_t> kernel_nodes;  // the node of each kernel of the step
  std::vector<std::string> notes;      // what was found, and what could not be told
};

// One node for each kernel and copy, with its recorded time, and one of the host for each launch. A node waits for
//   its launch, which waits for the launch before it;
//   the kernel before it on its stream;
//   (communication) the last other kernel that was launched before it, if that had ended: torch.distributed lets its
//     stream wait for the one that calls it;
//   (other kernels) a communication kernel that ended between the moment the kernel could have started and the moment
//     it did, else a kernel of another stream, launched before it, that ended then: what it seems to have waited for.
//     Profiler traces do not say so themselves.
// What is left of the time before a kernel started (launch latency, gaps of the device, delays that nothing explains)
// is a node of its own, so that a replay on the same links takes what was recorded. A host that launched nothing for
// milliseconds, until the last kernel that it had launched was over, waited for that kernel.
// InputError for an NCCL kernel of which PyTorch did not note what it moves.
ImportedChakra chakra_from_profile(const ProfiledStep& step);

}  // namespace foretoken
