// Our own description of an accelerator: levels inside each other, as a tree in JSON.
//
//   {"name": "small", "clock_ghz": 1, "technology_nm": 45, "levels": [
//     {"name": "DRAM", "component": "LPDDR4", "word_bits": 8, "words_per_access": 8},
//     {"name": "GLB", "inside": "DRAM", "component": "SRAM", "depth": 8192, "words_per_access": 8},
//     {"name": "RF", "inside": "GLB", "component": "regfile", "grid": [16, 16], "depth": 64},
//     {"name": "MAC", "inside": "RF", "kind": "compute", "component": "intmac"}]}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/formats/level_tensors.h"
#include "accelerator/problem.h"
#include "base/json.h"

namespace foretoken {

struct AcceleratorDesign {
  Architecture architecture;
  std::string summary;
  std::vector<std::string> sources;
  std::vector<LevelTensors> tensors;  // by level
  std::vector<bool> energies_given;   // by level; others are for the library to fill
  std::vector<bool> areas_given;
};

// `grid` is how many of a level there are in one of the level it is inside, across and down. Levels beside each other
// are buffers of different tensors: each says what it keeps, and they become levels in the order of the file, the one
// that leads to the multipliers last. InputError for a parent nobody has, a circle, two roots and two compute levels.
AcceleratorDesign read_architecture_json(const JsonView& view);

// The design as read_architecture_json takes it, levels as a chain.
Json architecture_json(const AcceleratorDesign& design);

// Whether `name` is the role of the tensor: `outputs` of one that is written, `weights` of one named so (or W, B,
// Filter, Kernel), `inputs` of the others.
bool means_role(std::string_view name, const ProblemTensor& tensor);

// Tensors of the problem that the level may keep, by name or role, a bit for each. Names that mean no tensor of this
// problem are left out: a design serves many problems.
uint32_t tensors_allowed(const LevelTensors& tensors, const Problem& problem);

// Dimensions of the problem that may be spread over the instances below the level, a bit for each. A role is `reduced`
// for a dimension that no output has, `input_channels` for one of those that an input has as an index of its own,
// `output_channels` for one of outputs and weights alone, `positions` for one of inputs and outputs. One that all three
// have, as the groups of a depthwise convolution or a batch of products, counts as channels on both sides too.
uint32_t dimensions_allowed(const LevelTensors& tensors, const Problem& problem);

}  // namespace foretoken
