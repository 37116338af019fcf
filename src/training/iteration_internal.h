// What the files of IterationModel share.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "training/iteration.h"

namespace foretoken {

// The part of a step that calls of a kind belong to.
TimePart part_of_calls(CostKind kind);

template <class Visit>
void IterationModel::each_piece(const ChunkMix& mix, const Visit& visit) const {
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    if (mix.recomputed[kind] != 0) visit(kind, true, mix.recomputed[kind]);
    if (mix.spared[kind] != 0) visit(kind, false, mix.spared[kind]);
  }
  if (mix.embedding) visit(kinds_.size(), false, 1.0);
  if (mix.head) {
    // Each draft layer predicts one token more, with the same head.
    visit(kinds_.size() + 1, false, 1 + static_cast<double>(kind_of_draft_.size()));
  }
  const size_t drafts = std::min(static_cast<size_t>(mix.drafts), kind_of_draft_.size());
  for (size_t i = 0; i < drafts; ++i) visit(kind_of_draft_[i], true, 1.0);
}

// `calls` of the stage together; parts and families are sums of the same calls.
struct IterationModel::StageErrors {
  explicit StageErrors(const ErrorCorrelations& correlations)
      : calls(correlations), parts(time_part_count, CallErrors(correlations)) {}
  CallErrors& part(TimePart which) { return parts[static_cast<size_t>(which)]; }

  CallErrors calls;
  std::vector<CallErrors> parts;
  std::map<std::string_view, CallErrors, std::less<>> families;
};

}  // namespace foretoken
