#include "plan/rlhf_memory.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace foretoken {
namespace {

// The plan with as many replicas as so many devices have room for.
TrainingPlan plan_on(TrainingPlan plan, int64_t devices) {
  ParallelPlan& parallel = plan.parallel;
  const int64_t micro_batches = std::max<int64_t>(1, plan.micro_batches());
  parallel.data = std::max<int64_t>(1, devices / (parallel.tensor * parallel.context * parallel.pipeline));
  plan.global_batch = micro_batches * plan.micro_batch * parallel.data;
  if (plan.shard_ranks > parallel.data * parallel.context) plan.shard_ranks = 0;
  return plan;
}

// Models of the actor's size beside it. Under adapters, the actor without them is the reference.
int64_t asked_models(const RlhfAlgorithm& algorithm, const TrainingFormats& formats) {
  return (algorithm.reference && formats.lora.rank == 0 ? 1 : 0) + (algorithm.reward_model ? 1 : 0);
}

// An engine's name where the stack's begins with it.
std::string engine_of_stack(std::string_view stack) {
  std::string found = EngineFlags{}.engine;
  size_t longest = 0;
  for (const EngineKind& kind : engine_kinds()) {
    if (!stack.starts_with(kind.name) || kind.name.size() <= longest) continue;
    found = kind.name;
    longest = kind.name.size();
  }
  return found;
}

}  // namespace

TrainerMemory trainer_memory(const TrainingQuestion& question, const RlhfAlgorithm& algorithm, int64_t devices,
                             int64_t longest_sequence) {
  const TrainingPlan plan = plan_on(question.plan, devices);
  const ModelParts parts = training_parts(question.job.model, longest_sequence, plan, question.formats);
  const auto asked = static_cast<double>(asked_models(algorithm, question.formats));
  const double critics = algorithm.critic ? 1 : 0;
  TrainerMemory fullest;
  for (const TrainingMemory& stage : plan_memory(parts, plan, question.formats, question.overheads).stages) {
    TrainerMemory memory{.actor = stage};
    memory.others = asked * stage.parameters + critics * stage.states();
    memory.weights = (1 + asked + critics) * stage.parameters;
    memory.switched = (1 + critics) * (stage.gradients + stage.optimizer);
    if (memory.total() > fullest.total()) fullest = memory;
  }
  fullest.capacity = training_capacity(question.cluster.node.device);
  if (fullest.capacity) fullest.verdict = memory_verdict(fullest.total(), *fullest.capacity, question.overheads);
  return fullest;
}

int64_t trainer_unit(const TrainingPlan& plan) {
  const ParallelPlan& parallel = plan.parallel;
  const int64_t side_by_side = parallel.tensor * parallel.context;
  return side_by_side * parallel.pipeline * (parallel.expert / std::gcd(parallel.expert, side_by_side));
}

std::optional<int64_t> least_trainers(const TrainingQuestion& question, const RlhfAlgorithm& algorithm, int64_t most,
                                      int64_t longest_sequence) {
  const int64_t unit = trainer_unit(question.plan);
  const auto fit = [&](int64_t units) {
    return trainer_memory(question, algorithm, units * unit, longest_sequence).fits();
  };
  int64_t low = 1, high = most / unit;
  if (high < 1 || !fit(high)) return std::nullopt;
  while (low < high) {  // more devices never hold more each
    const int64_t middle = low + (high - low) / 2;
    if (fit(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low * unit;
}

int64_t divisible_length(const TrainingPlan& plan, double tokens) {
  const int64_t unit = 2 * plan.parallel.context * plan.parallel.tensor;
  constexpr double rounding = 1e-3;  // of a length that is whole but for the last bits
  return (static_cast<int64_t>(std::ceil(tokens - rounding)) + unit - 1) / unit * unit;
}

ServingMemory engine_memory(const Model& model, const Device& device, const EngineRequest& request) {
  const ParallelPlan plan{.tensor = request.devices};
  EngineFlags flags{.engine = engine_of_stack(request.stack)};
  flags.max_num_batched_tokens =
      std::max(request.most_sequences, resolved(flags, model, device, plan).max_num_batched_tokens);
  flags.max_num_seqs = request.most_sequences;
  flags.max_model_len = request.longest_sequence;
  Device left = device;
  const double rest = std::max(0.0, allocatable_bytes(device).value - request.taken.value());
  left.allocatable_memory = {.value = Bytes(rest), .source = "what models in training leave"};
  return serving_memory(model, left, plan, flags);
}

int64_t sequences_in_flight(const ServingMemory& memory, const RlhfPlan& plan, int64_t asked) {
  const auto cached = static_cast<int64_t>(std::ceil(plan.cached_tokens()));
  return std::max<int64_t>(1, std::min(asked, memory.sequences_of(cached, 1)));
}

}  // namespace foretoken
