// Add your line here; the name is what users type.
#include "serving/schedulers/list.h"

#include "base/error.h"

namespace foretoken {
namespace {

constexpr SchedulerKind kinds[] = {
    {"vllm", "vLLM V1: running before waiting, chunked prefill, preemption by recompute", true, make_vllm},
    {"vllm_v0", "vLLM V0: steps of whole prompts first, then steps of decodes", false, make_vllm_v0},
    {"sarathi", "Sarathi-Serve: all decodes, then prompt chunks up to a fixed number of tokens", false, make_sarathi},
    {"vidur_vllm", "vLLM V0 as VIDUR simulates it: prompts count padded to the longest", false, make_vidur_vllm},
};

}  // namespace

std::span<const SchedulerKind> scheduler_kinds() {
  return kinds;
}

std::vector<std::string> scheduler_names() {
  std::vector<std::string> names;
  for (const SchedulerKind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

const SchedulerKind& scheduler_kind(std::string_view name) {
  for (const SchedulerKind& kind : kinds) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string> names = scheduler_names();
  throw InputError({.source = "--scheduler",
                    .value = std::string(name),
                    .expected = "the name of a scheduler",
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
