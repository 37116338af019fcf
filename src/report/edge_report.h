// Sweeps and predictions of CPUs and phones, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "kernel/edge/fit_edge.h"
#include "kernel/edge/validate_edge.h"

namespace foretoken {

std::string edge_fit_text(const EdgeFit& fit);
Json edge_fit_json(const EdgeFit& fit);

// Header and rows of `--out F.csv`.
std::string scored_edge_header();
std::string scored_edge_row(const ScoredEdge& scored);

}  // namespace foretoken
