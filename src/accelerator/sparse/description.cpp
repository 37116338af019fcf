#include "accelerator/sparse/description.h"

#include <fmt/format.h>

namespace foretoken {
namespace {

std::string condition_fault(const ReadCondition& condition, int tensors) {
  const auto is_tensor = [&](int tensor) { return tensor >= 0 && tensor < tensors; };
  if (!is_tensor(condition.target)) return "a read optimization has no target";
  if (condition.on.empty()) return "a read optimization says no tensor that it depends on";
  for (const int tensor : condition.on) {
    if (!is_tensor(tensor)) return "a read optimization depends on a tensor that the problem does not have";
  }
  return "";
}

}  // namespace

SparsityDescription without_sparsity(const Architecture& architecture, const Problem& problem) {
  SparsityDescription sparsity;
  for (size_t t = 0; t < problem.tensors.size(); ++t) sparsity.densities.push_back(make_dense());
  SparseLevel plain;
  plain.formats.resize(problem.tensors.size());
  sparsity.levels.assign(architecture.levels.size(), plain);
  return sparsity;
}

std::string sparsity_fault(const SparsityDescription& sparsity, const Architecture& architecture,
                           const Problem& problem) {
  if (sparsity.densities.size() != problem.tensors.size()) return "a density for each tensor is needed";
  if (sparsity.levels.size() != architecture.levels.size()) return "an entry for each level is needed";
  for (size_t i = 0; i < sparsity.levels.size(); ++i) {
    const SparseLevel& level = sparsity.levels[i];
    const std::string& name = architecture.levels[i].name;
    if (level.formats.size() != problem.tensors.size()) return name + ": formats for each tensor are needed";
    if (level.metadata_word_bits < 1 || level.metadata_access_bits < 1) {
      return name + ": words and accesses of metadata need a bit at least";
    }
  }
  for (const ReadOptimization& read : sparsity.reads) {
    if (read.level < 0 || read.level + 1 >= static_cast<int>(architecture.levels.size())) {
      return "a read optimization stands at no storage level";
    }
    if (read.options.empty()) return architecture.levels[read.level].name + ": a read optimization without options";
    for (const ReadCondition& condition : read.options) {
      const std::string fault = condition_fault(condition, static_cast<int>(problem.tensors.size()));
      if (!fault.empty()) return architecture.levels[read.level].name + ": " + fault;
    }
  }
  return "";
}

}  // namespace foretoken
