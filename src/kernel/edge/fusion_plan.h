// Test models that show which operators a runtime runs as one: a chain, and the parts it can be cut into, each a model
// of its own (nn-Meter, MobiSys 2021, section 4).
#pragma once

#include <string>
#include <vector>

#include "model/onnx/file.h"

namespace foretoken {

struct FusionModel {
  std::string name;
  OnnxFile file;
};

// A model to time, and what its time is to be taken less of: the same model without its operators. Every model ends in
// a slice of one element, so that no large result has to be handed over. Tensors that come from another part of the
// chain are made by the model itself, as a copy: the operators may then run in place as they do within the chain.
struct FusionPart {
  std::string model;
  std::string empty_model;
};

struct FusionProbe {
  std::string name;                // "conv_relu"
  std::vector<std::string> chain;  // operators in the order in which they run
  FusionPart whole;
  std::vector<FusionPart> parts;
};

struct FusionPlan {
  std::vector<FusionProbe> probes;
  std::vector<FusionModel> models;  // no name twice
};

// Chains that exporters write and runtimes are known to fuse, and some that few fuse. Sizes are such that the parts
// take about as long as each other where they can: what fusing would save is then large beside the noise.
FusionPlan fusion_plan();

}  // namespace foretoken
