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
    {"passes", "memory-bound operators: norms, activations, loss, casts"},
    {"recompute", "forward pass repeated for the backward pass"},
    {"accumulate", "gradient accumulation over micro-batches"},
    {"tensor", "tensor-parallel communication, not hidden"},
    {"context", "context-parallel communication, not hidden"},
    {"expert", "expert-parallel communication, not hidden"},
    {"sharded", "all-gathers of sharded parameters, not hidden"},
    {"host", "GPU waits for the host"},
    {"bubble", "stage waits for other stages"},
    {"data", "gradient and parameter communication between replicas, not hidden"},
    {"optimizer", "optimizer"},
    {"offload", "transfers of states and activations to and from host memory, not hidden"},
    {"step", "once per step: data loading, clipping, logging"},
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
