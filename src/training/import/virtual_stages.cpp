#include "training/import/virtual_stages.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace foretoken {

int64_t virtual_stages_of(const TrainingPlan& plan, int64_t layers, int64_t layers_of_chunk, InputProblem where) {
  where.value = std::to_string(layers_of_chunk);
  const auto fail = [&](std::string expected) {
    where.expected = std::move(expected);
    throw InputError(where);
  };
  if (plan.first_stage_layers || plan.last_stage_layers) {
    fail(
        "{num_virtual_stages_per_pipeline_rank} instead, because the first or last pipeline rank has its own number of "
        "layers");
  }
  const int64_t counted = layers + (plan.embedding_in_split ? 1 : 0) + (plan.loss_in_split ? 1 : 0);
  const std::string all = counted == layers
                              ? fmt::format("{} layers", layers)
                              : fmt::format("{} layers (counting embedding and loss as requested)", counted);
  const int64_t stages = plan.parallel.pipeline;
  if (counted % stages != 0) fail(fmt::format("{}, divisible by {} pipeline ranks", all, stages));
  const int64_t of_rank = counted / stages;
  if (of_rank % layers_of_chunk != 0) {
    fail(fmt::format("a divisor of the {} layers of a pipeline rank: {} on {} ranks", of_rank, all, stages));
  }
  return of_rank / layers_of_chunk;
}

}  // namespace foretoken
