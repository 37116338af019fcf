// A pipeline's timeline as Chakra execution traces, one for each stage: for other simulators, and for foretoken replay.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "network/chakra/chakra.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken {

// Of one micro-batch between two stages.
struct PipelineMessageBytes {
  double forward = 0, backward = 0;
};

// One trace for each stage, which is its rank. One compute node for each event (one for two that run together), behind
// the one before it on the stage; a receive before and a send behind it where the neighbouring chunk lies on another
// stage. A replay in which messages take the work's seconds ends when the timeline does.
std::vector<ChakraTrace> pipeline_chakra(std::string_view schedule, const PipelineWork& work,
                                         const PipelineTimeline& timeline, const PipelineMessageBytes& bytes);

}  // namespace foretoken
