// A network mapped onto an accelerator, layer by layer, alone or in fused groups.
#pragma once

#include <span>
#include <string>

#include "accelerator/workload/fusion.h"
#include "accelerator/workload/network_map.h"
#include "accelerator/workload/vector_work.h"
#include "base/json.h"

namespace foretoken {

// What runs beside the array, by the rate of the design's vector unit. Without such work the text is empty.
struct VectorSummary {
  std::string text;
  Json json;
};
VectorSummary vector_summary(std::span<const VectorWork> work, const Architecture& architecture);

// What zeros leave of one operator.
Json sparse_json(const SparseEvaluation& result);

// With zeros, where the layers were searched with them.
std::string network_map_text(const NetworkMap& map, const Architecture& architecture);
Json network_map_json(const NetworkMap& map, const Architecture& architecture);
// layer,count,operations,cycles,utilization,energy_pj,outer_words,gap
std::string network_map_csv(const NetworkMap& map, const Architecture& architecture);

std::string fusion_text(const FusionResult& result, std::span<const AcceleratorLayer> layers,
                        const Architecture& architecture);
Json fusion_json(const FusionResult& result, std::span<const AcceleratorLayer> layers,
                 const Architecture& architecture);

}  // namespace foretoken
