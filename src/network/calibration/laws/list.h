// The laws, one file each.
#pragma once

#include "network/calibration/law.h"

namespace foretoken {

const CommunicationLaw& nccl_law();
const CommunicationLaw& custom_all_reduce_law();
const CommunicationLaw& deepep_low_latency_law();
const CommunicationLaw& deepep_normal_law();
const CommunicationLaw& expert_all_to_all_law();

}  // namespace foretoken
