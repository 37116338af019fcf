// One function per space; each is defined in the file of its name.
#pragma once

#include "kernel/fewshot/architecture_space.h"

namespace foretoken {

ArchitectureSpace nasbench201_space();
ArchitectureSpace fbnet_space();
ArchitectureSpace ofa_space();
ArchitectureSpace hat_space();

}  // namespace foretoken
