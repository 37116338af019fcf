#include "training/iteration.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr double parameter_bytes = 2;  // of a gathered parameter

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
    {"step", "once a step: data, clipping, logging"},
};
static_assert(std::size(part_facts) == time_part_count);

double& at(TimeParts& parts, TimePart part) {
  return parts[static_cast<size_t>(part)];
}

void add_parts(TimeParts& sum, const TimeParts& parts, double times) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += times * parts[i];
}

// Scales the passes so that they take `seconds` together.
void stretch(ChunkTimes& times, double seconds) {
  const double now = times.sum();
  if (now <= 0) {
    times.forward = seconds;
    return;
  }
  times.forward *= seconds / now;
  times.backward_input *= seconds / now;
  times.backward_weight *= seconds / now;
}

// Replicas change what a rank does only through the experts they share, and through having gradients to reduce at all.
ParallelPlan without_needless_replicas(ParallelPlan plan) {
  const int64_t replicas = plan.data;
  const int64_t for_experts = plan.expert > plan.tensor ? plan.expert / plan.tensor : 1;
  plan.data = 1;
  while (plan.data < replicas && (plan.data * plan.context) % for_experts != 0) ++plan.data;
  if (plan.data * plan.context == 1 && replicas > 1) plan.data = 2;
  plan.pipeline = 1;
  return plan;
}

// Ranks with the same experts.
ProcessGroup expert_replicas(const ParallelPlan& plan) {
  const int64_t ranks = plan.tensor * plan.data * plan.context;
  const int64_t spread = std::max(plan.expert, plan.tensor);
  return ProcessGroup::strided(0, std::max<int64_t>(1, ranks / spread), spread);
}

}  // namespace

std::string_view time_part_name(TimePart part) {
  return part_facts[static_cast<size_t>(part)].name;
}

std::string_view time_part_meaning(TimePart part) {
  return part_facts[static_cast<size_t>(part)].meaning;
}

double pipeline_message_bytes(const TrainingJob& job, const TrainingPlan& plan, const TrainingStack& stack) {
  const ParallelPlan& p = plan.parallel;
  const double tokens = static_cast<double>(plan.micro_batch * job.sequence_length / p.context);
  const double bytes = tokens * static_cast<double>(job.model.hidden) * bytes_per_element(job.recipe.dtype);
  return stack.scatters_sends || p.sequence ? bytes / static_cast<double>(p.tensor) : bytes;
}

auto IterationModel::PieceKey::operator<=>(const PieceKey& other) const {
  const auto fields = [](const PieceKey& key) {
    const ParallelPlan& plan = key.parallel;
    return std::tuple(key.kind, key.micro_batch, plan.tensor, plan.context, plan.expert, plan.data, plan.sequence,
                      plan.exchange);
  };
  return fields(*this) <=> fields(other);
}

IterationModel::IterationModel(TrainingJob job, TrainingStack stack, TrainingMachine machine)
    : job_(std::move(job)), stack_(std::move(stack)), machine_(machine) {
  const Device& device = machine_.kernels->device();
  constants_ = stack_.constants_on(device);
  ensure(device.memory_bandwidth.has_value(), "a kernel predictor's device has a memory bandwidth");
  bandwidth_ = device.memory_bandwidth->value.value();
  job_.model = with_recipe(std::move(job_.model), job_.recipe);
  const auto kind_of = [&](const Layer& layer) {
    const auto found = std::find(kinds_.begin(), kinds_.end(), layer);
    const auto kind = static_cast<size_t>(found - kinds_.begin());
    if (found == kinds_.end()) kinds_.push_back(layer);
    return kind;
  };
  for (const Layer& layer : job_.model.layers) kind_of_layer_.push_back(kind_of(layer));
  for (const Layer& layer : job_.model.draft_layers) kind_of_draft_.push_back(kind_of(layer));
}

double IterationModel::collective(CollectiveKind kind, double bytes, const ProcessGroup& group) const {
  if (group.size() <= 1 || bytes <= 0) return 0;
  return machine_.network->estimate({.kind = kind, .bytes = bytes, .group = group}).seconds.value;
}

// Kinds beyond those of layers: the embedding, then the head.
const PieceCosts& IterationModel::costs_of(size_t kind, const TrainingPlan& plan) {
  const PieceKey key{
      .kind = kind, .micro_batch = plan.micro_batch, .parallel = without_needless_replicas(plan.parallel)};
  const auto found = costs_.find(key);
  if (found != costs_.end()) return found->second;
  const Layer& layer = kind < kinds_.size() ? kinds_[kind] : kinds_.front();
  const PieceRequest request{.micro_batch = key.micro_batch,
                             .sequence_length = job_.sequence_length,
                             .parallel = key.parallel,
                             .lora = job_.lora,
                             .attention = stack_.attention_of(layer, machine_.kernels->device()),
                             .routing = job_.routing};
  PieceCosts costs = kind < kinds_.size()    ? layer_costs(job_.model, layer, request, machine_)
                     : kind == kinds_.size() ? embedding_costs(job_.model, request, machine_)
                                             : head_costs(job_.model, request, machine_);
  return costs_.emplace(key, costs).first->second;
}

IterationModel::PieceTime IterationModel::time_of(size_t kind, const TrainingPlan& plan, bool recomputed) {
  const PieceCosts& costs = costs_of(kind, plan);
  const TrainingConstants& c = constants_;
  const bool is_layer = kind < kinds_.size();
  const bool is_unfused =
      is_layer && stack_.attention_of(kinds_[kind], machine_.kernels->device()) == AttentionKernel::unfused;
  const double core_factor = is_unfused ? c[unfused_factor] : c[attention_factor];
  const double cast_bytes = job_.recipe.cast_bytes ? c[*job_.recipe.cast_bytes] : 0;
  PieceTime time{.parameters = costs.shared_parameters + costs.expert_parameters,
                 .shared = costs.shared_parameters,
                 .kernels = costs.forward.kernels + costs.backward_input.kernels + costs.backward_weight.kernels};

  // Adds what a pass takes to `parts`, and returns it.
  const auto add_pass = [&](const PassCosts& pass, double tensor_exposed, TimeParts& parts) {
    TimeParts own{};
    at(own, TimePart::linear) = c[linear_factor] * pass.linear + c[job_.recipe.factor] * pass.quantized;
    at(own, TimePart::attention) = core_factor * pass.attention;
    at(own, TimePart::experts) = c[experts_factor] * c[job_.recipe.factor] * pass.experts;
    at(own, TimePart::passes) = (is_layer ? c[passes_factor] : c[loss_factor]) * pass.passes +
                                (cast_bytes * pass.cast_elements + c[move_bytes] * pass.expert_elements) / bandwidth_;
    for (double& part : own) part *= c[board_factor];
    at(own, TimePart::tensor) = tensor_exposed * pass.tensor;
    const double hidden =
        plan.context_exchange == ContextExchange::ring ? c[context_hidden] * at(own, TimePart::attention) : 0;
    at(own, TimePart::context) = std::max(c[context_exposed] * pass.context, pass.context - hidden);
    at(own, TimePart::expert) = c[expert_exposed] * pass.expert;
    add_parts(parts, own, 1);
    return std::accumulate(own.begin(), own.end(), 0.0);
  };
  time.times.forward = add_pass(costs.forward, c[tensor_exposed], time.parts);
  time.times.backward_input = add_pass(costs.backward_input, c[tensor_exposed] * c[tensor_backward_share], time.parts);
  time.times.backward_weight = add_pass(costs.backward_weight, 0, time.parts);

  if (is_layer && plan.recompute != Recompute::none && recomputed) {
    // A flash kernel computes its scores again anyway.
    const double again = plan.recompute == Recompute::full ? time.times.forward
                         : is_unfused                      ? core_factor * c[board_factor] * costs.forward.attention
                                                           : 0;
    time.times.backward_input += again;
    at(time.parts, TimePart::recompute) += again;
  }
  if (plan.micro_batches() > 1) {
    const double added = c[accumulate_bytes] * time.parameters / bandwidth_;
    time.times.backward_weight += added;
    at(time.parts, TimePart::accumulate) += added;
  }
  if (!is_layer) return time;
  const bool twice = plan.recompute == Recompute::full && recomputed;
  const double ranks = static_cast<double>(plan.parallel.tensor) / 8;
  const double host = 1e-6 * c[host_layer_us] * (twice ? 1 : 0.75) * (1 + c[host_tensor] * ranks * ranks);
  const double busy = time.times.sum();
  if (busy < host) {
    at(time.parts, TimePart::host) += host - busy;
    stretch(time.times, host);
  }
  add_sharded_traffic(costs, plan, time);
  return time;
}

void IterationModel::add_sharded_traffic(const PieceCosts& costs, const TrainingPlan& plan, PieceTime& time) {
  const bool parameters = plan.sharding == Sharding::parameters;
  if (!parameters && !(stack_.gathers_always && plan.sharding == Sharding::gradients)) return;
  const TrainingConstants& c = constants_;
  const ProcessGroup group = ProcessGroup::strided(0, plan.sharded_over(), plan.parallel.tensor);
  const double gathers = parameters ? 2 : 1;  // for the forward, and again for the backward
  const auto traffic = [&](double amount, const ProcessGroup& ranks) {
    return gathers * collective(CollectiveKind::all_gather, parameter_bytes * amount, ranks) +
           collective(CollectiveKind::reduce_scatter, c[gradient_bytes] * amount, ranks);
  };
  const double sent = c[sharded_factor] * (traffic(costs.shared_parameters, group) +
                                           traffic(costs.expert_parameters, expert_replicas(plan.parallel)));
  const double busy = time.times.sum();
  const double exposed = std::max(sent - busy, 0.0) + c[sharded_exposed] * std::min(sent, busy);
  at(time.parts, TimePart::sharded) += exposed;
  stretch(time.times, busy + exposed);
}

IterationModel::PieceTime IterationModel::chunk_time(const ChunkLayers& chunk, const TrainingPlan& plan) {
  PieceTime sum;
  const auto add = [&](const PieceTime& piece, double times) {
    sum.times.forward += times * piece.times.forward;
    sum.times.backward_input += times * piece.times.backward_input;
    sum.times.backward_weight += times * piece.times.backward_weight;
    sum.parameters += times * piece.parameters;
    sum.shared += times * piece.shared;
    sum.kernels += times * piece.kernels;
    add_parts(sum.parts, piece.parts, times);
  };
  const int64_t recomputed = plan.recompute_layers == 0 ? chunk.count : plan.recompute_layers;
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    double again = 0, once = 0;
    for (int64_t i = 0; i < chunk.count; ++i) {
      if (kind_of_layer_[static_cast<size_t>(chunk.first + i)] == kind) (i < recomputed ? again : once) += 1;
    }
    if (again > 0) add(time_of(kind, plan, true), again);
    if (once > 0) add(time_of(kind, plan, false), once);
  }
  if (chunk.embedding) add(time_of(kinds_.size(), plan, false), 1);
  if (chunk.head) {
    // Each draft layer predicts one token more, with the same head.
    add(time_of(kinds_.size() + 1, plan, false), 1 + static_cast<double>(kind_of_draft_.size()));
    for (const size_t kind : kind_of_draft_) add(time_of(kind, plan, false), 1);
  }
  // The stage's share of what the host does for each micro-batch.
  const double host = 1e-6 * constants_[host_micro_batch_us] / static_cast<double>(plan.virtual_stages);
  sum.times.forward += host;
  at(sum.parts, TimePart::host) += host;
  return sum;
}

double IterationModel::send_seconds(const TrainingPlan& plan) const {
  const ParallelPlan& p = plan.parallel;
  if (p.pipeline == 1) return 0;
  const auto next = static_cast<int32_t>(p.tensor * p.context * p.data);
  return constants_[send_exposed] *
         collective(CollectiveKind::send_recv, pipeline_message_bytes(job_, plan, stack_), ProcessGroup::of({0, next}));
}

// Between replicas, once a step.
double IterationModel::data_seconds(const TrainingPlan& plan, double shared, double experts) const {
  const TrainingConstants& c = constants_;
  const ParallelPlan& p = plan.parallel;
  const int64_t ranks = p.data * p.context, sharded = plan.sharded_over();
  const bool gathered_before =
      plan.sharding == Sharding::parameters || (stack_.gathers_always && plan.sharding == Sharding::gradients);
  const auto reduce = [&](double amount, const ProcessGroup& group) {
    if (plan.sharding == Sharding::none) {
      return collective(CollectiveKind::all_reduce, c[gradient_bytes] * amount, group);
    }
    if (gathered_before) return 0.0;
    return collective(CollectiveKind::reduce_scatter, c[gradient_bytes] * amount, group) +
           collective(CollectiveKind::all_gather, parameter_bytes * amount, group);
  };
  double seconds = reduce(shared, ProcessGroup::strided(0, sharded, p.tensor)) + reduce(experts, expert_replicas(p));
  if (sharded < ranks && plan.sharding != Sharding::none) {
    // Hybrid sharding: each part is summed over the groups that hold a copy.
    seconds += collective(CollectiveKind::all_reduce, c[gradient_bytes] * shared / static_cast<double>(sharded),
                          ProcessGroup::strided(0, ranks / sharded, p.tensor * sharded));
  }
  return c[data_exposed] * seconds;
}

IterationEstimate IterationModel::estimate(const TrainingPlan& plan) {
  const auto layers = static_cast<int64_t>(job_.model.layers.size());
  const std::vector<ChunkLayers> chunks = chunk_layers(plan, layers);
  IterationEstimate result;
  PipelineWork& work = result.pipeline;
  work = pipeline_work(plan);
  work.send_forward = work.send_backward = send_seconds(plan);

  std::vector<TimeParts> stage_parts(static_cast<size_t>(plan.stages()));
  std::vector<double> stage_shared(stage_parts.size(), 0), stage_kernels(stage_parts.size(), 0);
  result.stage_parameters.assign(stage_parts.size(), 0);
  const int64_t copies = model_copies(plan.schedule);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const PieceTime time = chunk_time(chunks[i], plan);
    work.chunks.push_back(time.times);
    for (int64_t copy = 0; copy < copies; ++copy) {
      const auto stage = static_cast<size_t>(stage_of_chunk(plan.schedule, work, static_cast<int64_t>(i), copy));
      result.stage_parameters[stage] += time.parameters;
      stage_shared[stage] += time.shared;
      stage_kernels[stage] += time.kernels / static_cast<double>(copies);
      add_parts(stage_parts[stage], time.parts, 1.0 / static_cast<double>(copies));
    }
  }
  result.run = run_pipeline(plan.schedule, work);
  const std::vector<double>& busy = result.run.busy;
  const auto slowest = static_cast<size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
  result.slowest_stage = static_cast<int64_t>(slowest);
  result.kernels_of_micro_batch = stage_kernels[slowest];

  TimeParts& parts = result.parts;
  add_parts(parts, stage_parts[slowest], static_cast<double>(plan.micro_batches()));
  at(parts, TimePart::bubble) = result.run.seconds - std::accumulate(parts.begin(), parts.end(), 0.0);
  const auto fullest =
      static_cast<size_t>(std::max_element(result.stage_parameters.begin(), result.stage_parameters.end()) -
                          result.stage_parameters.begin());
  const double parameters = result.stage_parameters[fullest], shared = stage_shared[fullest];
  at(parts, TimePart::data) = data_seconds(plan, shared, parameters - shared);
  const double shards = plan.sharding == Sharding::none ? 1 : static_cast<double>(plan.sharded_over());
  const double experts_shards =
      plan.sharding == Sharding::none ? 1 : static_cast<double>(expert_replicas(plan.parallel).size());
  at(parts, TimePart::optimizer) =
      constants_[optimizer_bytes] * (shared / shards + (parameters - shared) / experts_shards) / bandwidth_;
  at(parts, TimePart::step) = 1e-6 * constants_[step_us];

  const double seconds = std::accumulate(parts.begin(), parts.end(), 0.0);
  result.seconds = {.value = seconds,
                    .low = seconds * stack_.interval_low,
                    .high = seconds * stack_.interval_high,
                    .kind = stack_.runs.empty() ? Confidence::extrapolated : Confidence::interpolated};
  result.tokens_per_second = static_cast<double>(plan.global_batch * job_.sequence_length) / seconds;
  result.tokens_per_second_per_device = result.tokens_per_second / static_cast<double>(plan.devices());
  return result;
}

}  // namespace foretoken
