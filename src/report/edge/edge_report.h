// Sweeps and predictions of CPUs and phones, for people and for programs.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "kernel/edge/fit_edge.h"
#include "kernel/edge/validate_edge.h"
#include "kernel/fewshot/validate_fewshot.h"

namespace foretoken {

std::string edge_fit_text(const EdgeFit& fit);
Json edge_fit_json(const EdgeFit& fit);

// A space of architectures whose devices were each predicted from a few timings.
struct FewshotSpace {
  std::string name;
  FewshotValidation validation;
};
// By device, the mean of measured devices apart from that of latencies that were added up from blocks.
std::string fewshot_text(std::span<const FewshotSpace> spaces);
Json fewshot_json(std::span<const FewshotSpace> spaces);
// Adds each device to `groups` of a validation (validation_report.h), over all its queries: means over the draws, so
// that figures of single rows are null. Where `overall` has no row, it becomes the mean of the measured devices, or of
// the sums of blocks where none was measured.
void add_fewshot_groups(Json& validation, std::span<const FewshotSpace> spaces);

// Header and rows of `--out F.csv`.
std::string scored_edge_header();
std::string scored_edge_row(const ScoredEdge& scored);

}  // namespace foretoken
