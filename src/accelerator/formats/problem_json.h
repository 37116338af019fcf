// Our own descriptions of problems and mappings in JSON.
//
//   {"operator": "gemm", "m": 512, "n": 1024, "k": 768}
//   {"operator": "convolution", "in_channels": 3, "out_channels": 64, "out_width": 112, ..., "stride_width": 2}
//   {"name": "conv1d", "dimensions": {"P": 16, "R": 3}, "tensors": [
//     {"name": "Inputs", "index": ["P + R"]}, {"name": "Weights", "index": ["R"]},
//     {"name": "Outputs", "index": ["P"], "written": true}]}
//
//   {"levels": [{"level": "GLB", "keep": ["A", "B"], "loops": [
//     {"dimension": "M", "bound": 16}, {"dimension": "N", "bound": 8, "across": "x"}]}]}
#pragma once

#include "accelerator/architecture.h"
#include "accelerator/mapping.h"
#include "accelerator/problem.h"
#include "base/json.h"

namespace foretoken {

// An index is a sum of dimensions, each once and times a constant of at least 1: `2*P + R`.
Problem read_problem_json(const JsonView& view);
Json problem_json(const Problem& problem);

// Loops of a level outermost first. A level that is left out keeps nothing and has no loops. Remainders follow from the
// sizes where no loop says `last`. InputError names an unknown level, dimension or tensor.
Mapping read_mapping_json(const JsonView& view, const Architecture& architecture, const Problem& problem);
Json mapping_json(const Mapping& mapping, const Architecture& architecture, const Problem& problem);

}  // namespace foretoken
