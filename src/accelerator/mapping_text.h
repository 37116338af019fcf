// A mapping for people: its loops, and what is wrong with it.
#pragma once

#include <string>
#include <vector>

#include "accelerator/mapping.h"

namespace foretoken {

// What is wrong with the mapping, one sentence each; empty when it can run.
std::vector<std::string> mapping_faults(const Mapping& mapping, const Architecture& architecture,
                                        const Problem& problem);

// As indented `for` loops, level by level.
std::string loop_nest_text(const Mapping& mapping, const Architecture& architecture, const Problem& problem);

}  // namespace foretoken
