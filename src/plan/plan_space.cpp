#include "plan/plan_space.h"

#include <algorithm>
#include <iterator>
#include <variant>

#include "base/error.h"
#include "training/layer_split.h"

namespace foretoken {
namespace {

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> found;
  for (int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    found.push_back(divisor);
    if (divisor != number / divisor) found.push_back(number / divisor);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The one that is fixed, if it divides, or all divisors up to `most`.
std::vector<int64_t> sizes_to_try(int64_t number, std::optional<int64_t> fixed, int64_t most) {
  std::vector<int64_t> sizes;
  for (const int64_t divisor : divisors(number)) {
    if (fixed ? divisor == *fixed : divisor <= most) sizes.push_back(divisor);
  }
  return sizes;
}

// Of the layer that has most; 1 = none are routed.
int64_t experts_of(const Model& model) {
  int64_t most = 1;
  for (const Layer& layer : model.layers) {
    if (const Moe* moe = std::get_if<Moe>(&layer.feed_forward)) most = std::max(most, moe->experts);
  }
  return most;
}

// The plan with its layers in so many chunks on each stage, split in every way that leaves all chunks alike, or as
// evenly as they can be where none does or where layers for multi-token prediction weigh on the last.
std::vector<TrainingPlan> splits(TrainingPlan plan, const PlanSpace& space) {
  const auto layers = static_cast<int64_t>(space.model->layers.size());
  struct Counted {
    bool embedding, loss;
  };
  constexpr Counted ways[] = {{false, false}, {false, true}, {true, true}};
  std::vector<TrainingPlan> plans;
  for (const Counted& way : ways) {
    if (way.loss && plan.stages() == 1) break;
    if ((layers + (way.embedding ? 1 : 0) + (way.loss ? 1 : 0)) % plan.chunks() != 0) continue;
    plan.embedding_in_split = way.embedding;
    plan.loss_in_split = way.loss;
    plans.push_back(plan);
  }
  const bool drafts = !space.model->draft_layers.empty();
  // Where stages can be even, chunks that are not gain little and are hard to run.
  const bool even_stages = std::any_of(std::begin(ways), std::end(ways), [&](const Counted& way) {
    return (layers + (way.embedding ? 1 : 0) + (way.loss ? 1 : 0)) % plan.stages() == 0;
  });
  if (!drafts && (!plans.empty() || even_stages)) return plans;
  plan.embedding_in_split = plan.loss_in_split = false;
  const auto chunks = static_cast<size_t>(plan.chunks());
  if (!needs_layout(plan, *space.model) || chunks >= space.layouts.size()) return plans;
  plan.layout = space.layouts[chunks];
  if (drafts) plans.clear();
  plans.push_back(std::move(plan));
  return plans;
}

// Every schedule and number of chunks, all else as it is.
std::vector<TrainingPlan> schedule_plans(const PlanSpace& space, TrainingPlan plan) {
  const auto layers = static_cast<int64_t>(space.model->layers.size());
  std::vector<TrainingPlan> plans;
  if (plan.stages() == 1) {
    if (space.choices.virtual_stages.value_or(1) == 1) plans.push_back(plan);
    return plans;
  }
  for (const std::string& schedule : space.choices.schedules.empty() ? space.schedules : space.choices.schedules) {
    plan.schedule = schedule;
    // Only interleaving has more than two chunks on a stage.
    const int64_t most = schedule == "interleaved" ? layers + 2 : 2;
    for (plan.virtual_stages = 1; plan.virtual_stages <= most && plan.chunks() <= layers + 2; ++plan.virtual_stages) {
      if (plan.virtual_stages != space.choices.virtual_stages.value_or(plan.virtual_stages)) continue;
      for (TrainingPlan& split : splits(plan, space)) plans.push_back(std::move(split));
    }
  }
  return plans;
}

// Whether there are ranks to share with and, for parameters, one stage: in a pipeline every micro-batch would gather
// them, unless the stack gathers them once.
bool is_sensible(const PlanSpace& space, Sharding sharding, const TrainingPlan& plan) {
  if (sharding == Sharding::none) return true;
  if (plan.sharded_over() == 1) return false;
  return sharding != Sharding::parameters || plan.stages() == 1 || space.shards_pipelines;
}

// Of parameters that each node shards for itself (HSDP), the ranks that share a copy; 0 = it would be no different, or
// copies would not divide evenly.
int64_t node_shard_ranks(const PlanSpace& space, const TrainingPlan& plan) {
  if (plan.sharding != Sharding::parameters || plan.parallel.expert > 1) return 0;
  const int64_t inside = space.fast_domain / plan.parallel.tensor, all = plan.parallel.data * plan.parallel.context;
  return inside > 1 && inside < all && all % inside == 0 ? inside : 0;
}

// 0 = all of them.
std::vector<int64_t> recompute_layers_to_try(const TrainingPlan& plan, int64_t layers, int64_t parts) {
  int64_t largest = 0;
  for (const ChunkLayers& chunk : chunk_layers(plan, layers)) largest = std::max(largest, chunk.count);
  std::vector<int64_t> counts;
  for (int64_t part = 1; part < parts; ++part) {
    const int64_t count = largest * part / parts;
    if (count > 0 && (counts.empty() || counts.back() != count)) counts.push_back(count);
  }
  counts.push_back(0);
  return counts;
}

}  // namespace

std::vector<RankSizes> rank_sizes(const PlanSpace& space) {
  ensure(space.model != nullptr, "plans are for a model");
  const PlanChoices& choices = space.choices;
  const int64_t most_tensor = choices.most_tensor > 0 ? choices.most_tensor : space.fast_domain;
  const int64_t most_context = std::max<int64_t>(1, space.sequence_length / choices.fewest_context_tokens);
  const int64_t experts = experts_of(*space.model);
  std::vector<RankSizes> sizes;
  for (const int64_t tensor : sizes_to_try(space.devices, choices.tensor, most_tensor)) {
    for (const int64_t context : sizes_to_try(space.devices / tensor, choices.context, most_context)) {
      for (const int64_t expert : sizes_to_try(experts, choices.expert, space.devices / context)) {
        sizes.push_back({.tensor = tensor, .context = context, .expert = expert});
      }
    }
  }
  return sizes;
}

std::vector<TrainingPlan> pipeline_plans(const PlanSpace& space, const RankSizes& sizes) {
  const auto layers = static_cast<int64_t>(space.model->layers.size());
  const int64_t of_stages = space.devices / (sizes.tensor * sizes.context);
  std::vector<TrainingPlan> plans;
  for (const int64_t pipeline : sizes_to_try(of_stages, space.choices.pipeline, layers + 2)) {
    TrainingPlan plan = space.start;
    plan.parallel.tensor = sizes.tensor;
    plan.parallel.context = sizes.context;
    plan.parallel.expert = sizes.expert;
    plan.parallel.sequence = sizes.tensor > 1;
    plan.parallel.pipeline = pipeline;
    plan.parallel.data = of_stages / pipeline;
    plan.global_batch = space.global_batch;
    if (plan.global_batch % plan.parallel.data != 0) continue;
    const int64_t of_replica = plan.global_batch / plan.parallel.data;
    const std::vector<TrainingPlan> schedules = schedule_plans(space, plan);
    for (const int64_t micro_batch :
         sizes_to_try(of_replica, space.choices.micro_batch, space.choices.most_micro_batch)) {
      const bool power_of_two = (micro_batch & (micro_batch - 1)) == 0;
      if (!power_of_two && !space.choices.micro_batch) continue;
      for (TrainingPlan candidate : schedules) {
        candidate.micro_batch = micro_batch;
        if (!is_valid_plan(*space.model, space.sequence_length, candidate, space.devices)) continue;
        plans.push_back(std::move(candidate));
      }
    }
  }
  return plans;
}

std::vector<TrainingPlan> memory_plans(const PlanSpace& space, const TrainingPlan& plan) {
  const auto layers = static_cast<int64_t>(space.model->layers.size());
  const bool is_open = space.choices.shardings.size() != 1;
  const std::vector<Sharding>& shardings = space.choices.shardings.empty() ? space.shardings : space.choices.shardings;
  const std::vector<Recompute>& recomputes =
      space.choices.recomputes.empty() ? space.recomputes : space.choices.recomputes;
  const LayerModules modules = cheap_modules(*space.model);
  std::vector<TrainingPlan> plans;
  for (const Recompute recompute : recomputes) {
    const std::vector<int64_t> counts = recompute == Recompute::full
                                            ? recompute_layers_to_try(plan, layers, space.choices.parts_of_layers)
                                            : std::vector<int64_t>{0};
    for (const int64_t count : counts) {
      for (const Sharding sharding : shardings) {
        if (is_open && !is_sensible(space, sharding, plan)) continue;
        TrainingPlan& one = plans.emplace_back(plan);
        one.recompute = recompute;
        one.recompute_layers = count;
        // A flash kernel has no scores to spare.
        if (recompute == Recompute::selective && !space.keeps_scores) one.recompute_modules = modules;
        one.sharding = sharding;
        if (const int64_t ranks = node_shard_ranks(space, one); is_open && ranks > 0) {
          TrainingPlan hybrid = one;
          hybrid.shard_ranks = ranks;
          plans.push_back(std::move(hybrid));
        }
      }
    }
  }
  return plans;
}

}  // namespace foretoken
