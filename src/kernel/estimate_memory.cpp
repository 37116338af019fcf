#include "kernel/estimate_memory.h"

#include "model/shape_hash.h"

namespace foretoken {

size_t EstimateMemory::Hash::operator()(const CallView& call) const {
  return shape_hash(call.shape) ^ std::hash<std::string_view>()(call.variant);
}

std::optional<KernelEstimate> EstimateMemory::find(const KernelShape& shape, std::string_view variant) const {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(CallView{shape, variant});
  return found == kept_.end() ? std::nullopt : std::optional(found->second);
}

void EstimateMemory::keep(const KernelShape& shape, std::string_view variant, const KernelEstimate& estimate) {
  const std::scoped_lock lock(mutex_);
  if (kept_.size() >= most_kept) kept_.clear();
  kept_.emplace(Call{shape, std::string(variant)}, estimate);
}

}  // namespace foretoken
