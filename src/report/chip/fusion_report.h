// Which operators a runtime was found to fuse, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "kernel/edge/find_fusion.h"

namespace foretoken {

// What the findings belong to.
struct FusionSubject {
  std::string runtime;  // "ONNX Runtime 1.22.0"
  std::string device;
};

std::string fusion_text(const FusionSubject& subject, const FoundFusion& result);
// The file that `profile --find-fusion` writes (docs/edge.md).
Json fusion_json(const FusionSubject& subject, const FoundFusion& result, const FindFusionOptions& options);

}  // namespace foretoken
