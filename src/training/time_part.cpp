#include "training/time_part.h"

#include <iterator>

namespace foretoken {
namespace {

struct TimePartFacts {
  std::string_view name, meaning;
};
// In the order of TimePart.
constexpr TimePartFacts part_facts[] = {
    {"linear", "matrix multiplies"},
    {"attention", "attention cores"},
    {"experts", "routed experts"},
    {"passes", "passes over memory: norms, activations, loss, casts"},
    {"recompute", "forward again, for the backward pass"},
    {"accumulate", "gradients added up over micro-batches"},
    {"tensor", "tensor-parallel traffic, not hidden"},
    {"context", "context-parallel traffic, not hidden"},
    {"expert", "expert-parallel traffic, not hidden"},
    {"sharded", "gathers of sharded parameters, not hidden"},
    {"host", "device waits for the host"},
    {"bubble", "stage waits for other stages"},
    {"data", "gradients and parameters between replicas, not hidden"},
    {"optimizer", "optimizer"},
    {"offload", "states and activations to and from host memory, not hidden"},
    {"step", "once a step: data, clipping, logging"},
};
static_assert(std::size(part_facts) == time_part_count);

}  // namespace

std::string_view time_part_name(TimePart part) {
  return part_facts[static_cast<size_t>(part)].name;
}

std::string_view time_part_meaning(TimePart part) {
  return part_facts[static_cast<size_t>(part)].meaning;
}

void add_parts(TimeParts& sum, const TimeParts& parts, double times) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += times * parts[i];
}

}  // namespace foretoken
