// What files of published evaluations have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "accelerator/architecture.h"
#include "accelerator/mapping.h"
#include "accelerator/problem.h"
#include "base/json.h"

namespace foretoken {

// `GlobalBuffer[1..16]` -> GlobalBuffer.
std::string bare_name(std::string name);

int64_t integer_or(const JsonView& view, std::string_view key, int64_t otherwise);

// Projections are lists of ranks, each a list of [dimension] or [dimension, name of its coefficient].
Problem read_case_problem(const JsonView& shape, const JsonView& instance);

// By level: the tensors it keeps, and loops [dimension, bound], then `last=n` for a remainder, X or Y for a spatial
// one.
Mapping read_case_mapping(const JsonView& view, const Architecture& architecture, const Problem& problem);

}  // namespace foretoken
