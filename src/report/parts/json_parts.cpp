#include "report/parts/json_parts.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"

namespace foretoken {

Json to_json(const Estimate& estimate) {
  return Json::object({{"value", estimate.value},
                       {"low", estimate.low},
                       {"high", estimate.high},
                       {"confidence", confidence_name(estimate.kind)}});
}

Json to_json(const Work& work) {
  return Json::object({{"flops", work.flops.value()},
                       {"math", dtype_name(work.math)},
                       {"weight_bytes", work.weights_read.value()},
                       {"activation_bytes", work.activations_read.value()},
                       {"written_bytes", work.written.value()}});
}

Json to_json(const KernelEstimate& estimate) {
  return Json::object({{"seconds", to_json(estimate.seconds)},
                       {"tier", tier_name(estimate.tier)},
                       {"inside_envelope", estimate.inside_envelope},
                       {"work", to_json(estimate.work)},
                       {"compute_seconds", estimate.compute.value()},
                       {"memory_seconds", estimate.memory.value()},
                       {"bound", bound_name(estimate.bound)},
                       {"waves", estimate.waves},
                       {"wave_efficiency", estimate.wave_efficiency}});
}

Json to_json(const RankMemory& memory) {
  return Json::object({{"weights", memory.weights.value()},
                       {"kv_cache", memory.kv_cache.value()},
                       {"gradients_and_optimizer", memory.gradients_and_optimizer.value()},
                       {"activations", memory.activations.value()},
                       {"total", memory.total().value()}});
}

Json to_json(const ParallelPlan& plan) {
  return Json::object({{"tensor", plan.tensor},
                       {"pipeline", plan.pipeline},
                       {"data", plan.data},
                       {"expert", plan.expert},
                       {"context", plan.context},
                       {"sequence", plan.sequence}});
}

std::string memory_size_text(double bytes) {
  if (bytes < gibi) return bytes_text(bytes);
  return fmt::format("{} ({:.1f} GiB)", bytes_text(bytes), bytes / gibi);
}

std::string share_words(double share) {
  constexpr double least_shown = 0.005;
  return share < least_shown ? "none" : fmt::format("{:.0f}%", 100 * share);
}

std::string interval_text(const Estimate& seconds) {
  return fmt::format("{} (90% interval {} to {})", duration_text(seconds.value), duration_text(seconds.low),
                     duration_text(seconds.high));
}

}  // namespace foretoken
