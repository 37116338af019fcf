#include "training/iteration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "training/iteration_internal.h"
#include "training/schedule/closed_form.h"

namespace foretoken {
namespace {

// What a stage computes, or waits for others, while its gradients and parameters travel: one micro-batch, and in a
// pipeline as many as it takes to empty and to fill it.
double seconds_beside_replicas(const PipelineWork& work) {
  double sum = 0;
  for (const ChunkTimes& chunk : work.chunks) sum += chunk.sum();
  const double micro_batch = sum / static_cast<double>(work.stages);
  return micro_batch * static_cast<double>(std::min(work.stages, work.micro_batches));
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

// Of a communication, the share that is waited for. `published` is what runs of the stack had, `unfit` the share that
// no computing of the layer is left to hide.
double exposed_share(TrafficOverlap overlap, double published, double traffic, double work, double unfit = 0) {
  constexpr double least_exposed = 0.2;  // starts and ends of pieces that nothing hides; as for context ranks
  if (overlap == TrafficOverlap::published || traffic <= 0) return std::max(published, unfit);
  if (overlap == TrafficOverlap::off) return 1;
  return std::max(unfit, std::min(published, std::max(least_exposed, 1 - work / traffic)));
}

double share_beyond(double traffic, double work) {
  return traffic > work ? 1 - work / traffic : 0;
}

// Gradients and parameters that travel beside computing.
struct ReplicaTraffic {
  double published = 1;     // share that is waited for in runs of the stack
  double of_gradients = 0;  // share of the time that gradients take; the rest is for parameters
  TrafficOverlaps overlaps;

  // What is waited for beside `work`: all that does not fit beside it, and a share of the rest.
  double exposed(double traffic, double work) const {
    const double beside = std::min(traffic, work);
    const auto share = [&](TrafficOverlap overlap) { return exposed_share(overlap, published, beside, beside); };
    const double waited = of_gradients * share(overlaps.gradients) + (1 - of_gradients) * share(overlaps.parameters);
    return waited * beside + (traffic - beside);
  }
  Estimate exposed(const Estimate& traffic, double work) const {
    return {.value = exposed(traffic.value, work),
            .low = exposed(traffic.low, work),
            .high = exposed(traffic.high, work),
            .kind = traffic.kind};
  }
};

// Adapters read their inputs in 16 bits: nothing is quantized before it is gathered.
GatheredShares gathered_shares(const TrainingJob& job) {
  if (job.lora.rank > 0) return {};
  const double whole = bytes_per_element(job.recipe.dtype);
  return {.forward = job.recipe.gathered_bytes / whole, .backward = job.recipe.gathered_back_bytes / whole};
}

// Collectives of one group share its links: they are off by the same share.
void add_same_links(Estimate& sum, const Estimate& part, double times = 1) {
  if (part.value <= 0) return;
  sum.value += times * part.value;
  sum.low += times * part.low;
  sum.high += times * part.high;
  sum.kind = std::max(sum.kind, part.kind);
}

// Ranks with the same experts that share them out, or all that reduce their gradients where nothing is shared.
ProcessGroup expert_replicas(const TrainingPlan& plan) {
  return ProcessGroup::strided(0, plan.experts_sharded_over(), std::max(plan.parallel.expert, plan.parallel.tensor));
}

}  // namespace

TimePart part_of_calls(CostKind kind) {
  switch (kind) {
    case CostKind::linear:
    case CostKind::quantized:
      return TimePart::linear;
    case CostKind::attention:
      return TimePart::attention;
    case CostKind::experts:
      return TimePart::experts;
    case CostKind::passes:
      return TimePart::passes;
    case CostKind::tensor:
      return TimePart::tensor;
    case CostKind::context:
      return TimePart::context;
    case CostKind::expert:
      return TimePart::expert;
  }
  throw InternalError("every kind of call is counted in a part");
}

double pipeline_message_bytes(const TrainingJob& job, const TrainingPlan& plan, const TrainingStack& stack) {
  const ParallelPlan& p = plan.parallel;
  const double tokens = static_cast<double>(plan.micro_batch * job.sequence_length / p.context);
  const double bytes = tokens * static_cast<double>(job.model.hidden) * bytes_per_element(job.recipe.dtype);
  return stack.scatters_sends || p.sequence ? bytes / static_cast<double>(p.tensor) : bytes;
}

IterationModel::IterationModel(TrainingJob job, TrainingStack stack, TrainingMachine machine)
    : job_(std::move(job)), stack_(std::move(stack)), machine_(machine) {
  const Device& device = machine_.kernels->device();
  use_constants(stack_.constants_on(device));
  ensure(device.memory_bandwidth.has_value(), "a kernel predictor's device has a memory bandwidth");
  bandwidth_ = device.memory_bandwidth->value.value();
  check_recipe(job_.recipe, device);
  const RecipeHabits habits = stack_.habits_of(job_.recipe.name);
  hides_tensor_ = habits.hides_tensor;
  if (habits.gathered_parameter_bytes) {
    job_.gathered_parameter_bytes = std::min(job_.gathered_parameter_bytes, *habits.gathered_parameter_bytes);
  }
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

void IterationModel::use_constants(const TrainingConstants& constants) {
  TrainingConstants wanted = constants;
  if (job_.gradient_bytes > 0) wanted[gradient_bytes] = job_.gradient_bytes;
  if (wanted[gradient_bytes] != constants_[gradient_bytes]) collectives_.clear();  // those sizes may not come again
  constants_ = wanted;
  pieces_.clear();
}

ChunkTimes IterationModel::first_layer(const TrainingPlan& plan) {
  return pieces_of(plan).of(kind_of_layer_.front(), plan.recompute != Recompute::none).times;
}

Estimate IterationModel::collective(CollectiveKind kind, double bytes, const ProcessGroup& group) {
  if (group.size() <= 1 || bytes <= 0) return {};
  const CollectiveKey key{.kind = kind, .bytes = bytes, .ranks = group.size(), .stride = group.stride()};
  const auto found = collectives_.find(key);
  if (found != collectives_.end()) return found->second;
  return collectives_.emplace(key, seconds_side_by_side(*machine_.network, kind, bytes, group)).first->second;
}

IterationModel::PieceKey IterationModel::piece_key(size_t kind, const TrainingPlan& plan, const ParallelPlan& needed) {
  return {.kind = kind,
          .micro_batch = plan.micro_batch,
          .tensor = needed.tensor,
          .context = needed.context,
          .expert = needed.expert,
          .data = needed.data,
          .sequence = needed.sequence,
          .exchange = needed.exchange,
          .context_exchange = plan.context_exchange,
          .dispatcher = plan.dispatcher};
}

// Kinds beyond those of layers: the embedding, then the head.
const IterationModel::KnownPiece& IterationModel::known_piece(size_t kind, const TrainingPlan& plan) {
  const ParallelPlan needed = without_needless_replicas(plan.parallel);
  const PieceKey key = piece_key(kind, plan, needed);
  const auto found = costs_.find(key);
  if (found != costs_.end()) return found->second;
  const Layer& layer = kind < kinds_.size() ? kinds_[kind] : kinds_.front();
  const PieceRequest request{.micro_batch = plan.micro_batch,
                             .sequence_length = job_.sequence_length,
                             .parallel = needed,
                             .lora = job_.lora,
                             .attention = stack_.attention_of(layer, machine_.kernels->device()),
                             .context_exchange = plan.context_exchange,
                             .dispatcher = plan.dispatcher,
                             .routing = job_.routing,
                             .expert_capacity = job_.expert_capacity,
                             .packed_length = job_.packed_length,
                             .dropout = job_.dropout,
                             .gathered = gathered_shares(job_),
                             .kernels = kernels_of_stack()};
  KnownPiece piece{.costs = kind < kinds_.size()    ? layer_costs(job_.model, layer, request, machine_)
                            : kind == kinds_.size() ? embedding_costs(job_.model, request, machine_)
                                                    : head_costs(job_.model, request, machine_),
                   .shapes = {}};
  for (const PieceCall& call : piece.costs.calls) {
    const auto same = std::find(shapes_.begin(), shapes_.end(), call.timed.launch.shape);
    piece.shapes.push_back(static_cast<size_t>(same - shapes_.begin()));
    if (same == shapes_.end()) shapes_.push_back(call.timed.launch.shape);
  }
  return costs_.emplace(key, std::move(piece)).first->second;
}

const Stack* IterationModel::kernels_of_stack() const {
  const std::optional<Stack>& casting = job_.lora.rank > 0 ? stack_.adapter_kernels : stack_.autocast_kernels;
  const std::optional<Stack>& kernels = !job_.updates_weights && casting ? casting : stack_.kernels;
  return kernels ? &*kernels : nullptr;
}

bool IterationModel::is_unfused(size_t kind) const {
  return kind < kinds_.size() &&
         stack_.attention_of(kinds_[kind], machine_.kernels->device()) == AttentionKernel::unfused;
}

IterationModel::PassFactors IterationModel::pass_factors(size_t kind, const TrainingPlan& plan, const PieceCosts& costs,
                                                         TrainingPass pass) const {
  const TrainingConstants& c = constants_;
  const PassCosts& own = costs.of(pass);
  PassFactors factors;
  const auto set = [&](CostKind call, double factor) { factors.of[static_cast<size_t>(call)] = factor; };
  set(CostKind::linear, c[board_factor] * c[linear_factor]);
  set(CostKind::quantized, c[board_factor] * c[job_.recipe.factor]);
  const double core = c[board_factor] * (is_unfused(kind) ? c[unfused_factor] : c[attention_factor]);
  set(CostKind::attention, core);
  const auto experts_of = [&](const PassCosts& one) {
    return c[board_factor] * (c[experts_factor] * c[job_.recipe.factor] * one.experts.value +
                              c[expert_start_us] * 1e-6 * one.expert_starts);
  };
  set(CostKind::experts, own.experts.value > 0 ? experts_of(own) / own.experts.value : 0);
  set(CostKind::passes, c[board_factor] * (kind < kinds_.size() ? c[passes_factor] : c[loss_factor]));
  // A pass hides traffic behind its own multiplies; with two micro-batches side by side, behind those of all passes.
  const auto work_of = [&](const PassCosts& one) {
    return factors.of[static_cast<size_t>(CostKind::linear)] * one.linear.value +
           factors.of[static_cast<size_t>(CostKind::quantized)] * one.quantized.value + experts_of(one) +
           core * one.attention.value;
  };
  const double work = work_of(own);
  double all_work = 0, all_tensor = 0, all_expert = 0;  // of a layer; the embedding and the head run beside others
  for (const TrainingPass each : {TrainingPass::forward, TrainingPass::backward_input, TrainingPass::backward_weight}) {
    if (kind >= kinds_.size()) break;
    all_work += work_of(costs.of(each));
    all_tensor += costs.of(each).tensor.value;
    all_expert += costs.of(each).expert.value;
  }
  const double tensor_share = pass == TrainingPass::forward          ? c[tensor_exposed]
                              : pass == TrainingPass::backward_input ? c[tensor_exposed] * c[tensor_backward_share]
                                                                     : 0;
  const bool never_hidden = plan.overlaps.tensor == TrafficOverlap::published && !hides_tensor_;
  const double slower = c[traffic_factor];
  set(CostKind::tensor,
      slower * exposed_share(never_hidden ? TrafficOverlap::off : plan.overlaps.tensor, tensor_share,
                             slower * own.tensor.value, work, share_beyond(slower * all_tensor, all_work)));
  const double traffic = slower * own.context.value;
  if (traffic > 0) {
    const bool ring = plan.context_exchange == ContextExchange::ring;
    const double hidden = ring ? c[context_hidden] * core * own.attention.value : 0;
    const double least = c[context_exposed] * traffic;
    set(CostKind::context, std::max(least, traffic - hidden) / own.context.value);
    factors.context_slope = slower * (least > traffic - hidden ? c[context_exposed] : 1);
  }
  const double exchange = slower * c[exchange_factor];
  set(CostKind::expert, exchange * exposed_share(plan.overlaps.experts, c[expert_exposed], exchange * own.expert.value,
                                                 work, share_beyond(exchange * all_expert, all_work)));
  const double cast_bytes = job_.recipe.cast_bytes ? c[*job_.recipe.cast_bytes] : 0;
  factors.cast = c[board_factor] * cast_bytes * own.cast_elements / bandwidth_;
  const double moved = own.expert_elements + c[between_share] * own.between_elements;
  factors.move = c[board_factor] * c[move_bytes] * moved / bandwidth_;
  return factors;
}

IterationModel::PieceTime IterationModel::time_of(size_t kind, const TrainingPlan& plan, bool recomputed) {
  const PieceCosts& costs = costs_of(kind, plan);
  const TrainingConstants& c = constants_;
  const bool is_layer = kind < kinds_.size();
  PieceTime time{.parameters = costs.shared_parameters + costs.expert_parameters,
                 .shared = costs.shared_parameters,
                 .shared_matrices = orthogonalization(costs, false),
                 .expert_matrices = orthogonalization(costs, true)};

  // Adds what a pass takes to the parts, and returns it.
  const auto add_pass = [&](TrainingPass pass) {
    const PassFactors factors = pass_factors(kind, plan, costs, pass);
    TimeParts own{};
    for (size_t i = 0; i < cost_kind_count; ++i) {
      const auto call = static_cast<CostKind>(i);
      at(own, part_of_calls(call)) += factors.of[i] * costs.of(pass).of(call).value;
    }
    at(own, TimePart::passes) += factors.cast + factors.move + costs.of(pass).gaps;
    if (pass != TrainingPass::backward_weight) at(own, TimePart::passes) += expand_seconds(costs);
    add_parts(time.parts, own, 1);
    return std::accumulate(own.begin(), own.end(), 0.0);
  };
  time.times.forward = add_pass(TrainingPass::forward);
  time.times.backward_input = add_pass(TrainingPass::backward_input);
  time.times.backward_weight = add_pass(TrainingPass::backward_weight);

  if (is_layer && plan.recompute != Recompute::none && recomputed) {
    const double again = recompute_seconds(kind, plan, costs, time.times.forward);
    time.times.backward_input += again;
    at(time.parts, TimePart::recompute) += again;
  }
  if (plan.micro_batches() > 1) {
    const double added = c[accumulate_bytes] * time.parameters / bandwidth_;
    time.times.backward_weight += added;
    at(time.parts, TimePart::accumulate) += added;
  }
  if (kind != kinds_.size()) add_weight_casts(plan, time);  // rows of the embedding are read as they are
  if (!is_layer && !stack_.kernels) {
    add_sharded_traffic(costs, plan, time);
    return time;
  }
  add_host(kind, plan, recomputed, time);
  add_sharded_traffic(costs, plan, time);
  return time;
}

// What the host needs to launch a piece, beyond what the device is busy with: its kernels one by one where the stack
// says which they are, and a constant for each layer.
void IterationModel::add_host(size_t kind, const TrainingPlan& plan, bool recomputed, PieceTime& time) {
  const TrainingConstants& c = constants_;
  const PieceCosts& costs = costs_of(kind, plan);
  const bool is_layer = kind < kinds_.size(), twice = is_layer && plan.recompute == Recompute::full && recomputed;
  double host = stack_.host_factor *
                (costs.forward.host * (twice ? 2 : 1) + costs.backward_input.host + costs.backward_weight.host);
  if (is_layer) {
    const double ranks = static_cast<double>(plan.parallel.tensor) / 8;
    host += 1e-6 * c[host_layer_us] * (twice ? 1 : 0.75) * (1 + c[host_tensor] * ranks * ranks);
    if (twice) host += 1e-6 * c[host_checkpoint_us];
  }
  const double busy = time.times.sum();
  // The host launches ahead of the device, but not past routing: how many tokens each expert gets is read back first.
  const bool routes = is_layer && std::holds_alternative<Moe>(kinds_[kind].feed_forward);
  time.host = routes ? 0 : host;
  const double waited = routes ? host : std::max(0.0, host - busy);
  const Stack* kernels = kernels_of_stack();
  if (kernels != nullptr) {
    const double slow = kernels->costs.host_high * host;
    time.slow_host = (routes ? slow : std::max(0.0, slow - busy)) - waited;
  }
  if (waited <= 0) return;
  at(time.parts, TimePart::host) += waited;
  stretch(time.times, busy + waited);
}

// Trained weights in fp32 are cast for the multiplies of each micro-batch, and their gradients back, by the ranks that
// hold them.
void IterationModel::add_weight_casts(const TrainingPlan& plan, PieceTime& time) const {
  if (job_.updates_weights) return;
  const double ranks = plan.sharding == Sharding::parameters ? static_cast<double>(plan.sharded_over()) : 1;
  const double casts = constants_[board_factor] * constants_[weight_cast_bytes] * time.parameters / ranks / bandwidth_;
  time.times.backward_weight += casts;
  at(time.parts, TimePart::passes) += casts;
}

// Frozen weights in fewer bits are read, written out in 16 bits, and read by the multiply, which counts that itself.
// Tables and norms are in 16 bits already.
double IterationModel::expand_seconds(const PieceCosts& costs) const {
  constexpr double expanded_bytes = 2;
  if (job_.lora.rank == 0 || job_.frozen_weight_bytes >= expanded_bytes) return 0;
  const double frozen = costs.held_shared + costs.held_experts - costs.shared_parameters - costs.expert_parameters;
  const double quantized = frozen - costs.plain_shared;
  return constants_[board_factor] * (job_.frozen_weight_bytes + expanded_bytes) * quantized / bandwidth_;
}

// `forward` is what all of its forward pass takes.
double IterationModel::recompute_seconds(size_t kind, const TrainingPlan& plan, const PieceCosts& costs,
                                         double forward) const {
  const PassFactors factors = pass_factors(kind, plan, costs, TrainingPass::forward);
  if (plan.recompute == Recompute::full) {
    for (const PieceCall& one : costs.calls) {
      if (one.pass != TrainingPass::forward || repeated_of(kind, plan, one) > 0) continue;
      forward -= factors.of[static_cast<size_t>(one.kind)] * one.timed.seconds.value;
    }
    return forward;
  }
  double again = 0;
  for (const PieceCall& one : costs.calls) {
    if (one.pass != TrainingPass::forward) continue;
    const double share = repeated_of(kind, plan, one);
    if (share > 0) again += share * factors.of[static_cast<size_t>(one.kind)] * one.timed.seconds.value;
  }
  if (plan.recompute == Recompute::op) return again + 0.5 * (factors.cast + factors.move);
  const LayerModules& modules = plan.recompute_modules;
  if (modules.has(LayerModule::moe)) {
    again += factors.move + factors.cast;
  } else if (modules.has(LayerModule::moe_act)) {
    again += move_share_of_activation(kind) * factors.move;
  }
  return again;
}

// Of the bytes that are moved around routed experts, those that their activation reads and writes.
double IterationModel::move_share_of_activation(size_t kind) const {
  const Moe* experts = std::get_if<Moe>(&kinds_[kind].feed_forward);
  if (experts == nullptr) return 0;
  const double width = constants_[between_share] * static_cast<double>(experts->width) * (experts->gated ? 3 : 2);
  return width / (2 * static_cast<double>(job_.model.hidden) + width);
}

// How often each micro-batch gathers the parameters of a layer: for the forward, and again for the backward.
int IterationModel::gathers_of(const TrainingPlan& plan) const {
  if (plan.sharding == Sharding::parameters) {
    return stack_.keeps_gathered_in_pipelines && plan.stages() > 1 ? 0 : 2;
  }
  return stack_.gathers_always && plan.sharding == Sharding::gradients ? 1 : 0;
}

// Whether the gradients of each micro-batch are reduced before the next one.
bool IterationModel::scatters_micro_batches(const TrainingPlan& plan) const {
  return gathers_of(plan) > 0 || (stack_.scatters_always && plan.sharding == Sharding::gradients);
}

void IterationModel::add_sharded_traffic(const PieceCosts& costs, const TrainingPlan& plan, PieceTime& time) {
  if (!scatters_micro_batches(plan)) return;
  const double gathers = gathers_of(plan);
  const TrainingConstants& c = constants_;
  const ProcessGroup group = ProcessGroup::strided(0, plan.sharded_over(), plan.parallel.tensor);
  const double slower = c[traffic_factor] * c[sharded_factor];
  Estimate sent;
  double of_gradients = 0;
  // A quantized base is gathered as it is kept and expanded after.
  const double of_base = std::min(job_.gathered_parameter_bytes, job_.frozen_weight_bytes);
  const auto add_traffic = [&](double held, double trained, double plain, const ProcessGroup& ranks) {
    const double quantized = job_.lora.rank > 0 ? held - trained - plain : 0;
    const double gathered = job_.gathered_parameter_bytes * (held - quantized) + of_base * quantized;
    add_same_links(sent, collective(CollectiveKind::all_gather, gathered, ranks), gathers * slower);
    const Estimate scatter = collective(CollectiveKind::reduce_scatter, c[gradient_bytes] * trained, ranks);
    add_same_links(sent, scatter, slower);
    of_gradients += slower * scatter.value;
  };
  add_traffic(costs.held_shared, costs.shared_parameters, costs.plain_shared, group);
  add_traffic(costs.held_experts, costs.expert_parameters, 0, expert_replicas(plan));
  if (sent.value <= 0) return;
  const double busy = time.times.sum();
  const ReplicaTraffic traffic{
      .published = c[sharded_exposed], .of_gradients = of_gradients / sent.value, .overlaps = plan.overlaps};
  time.sharded = traffic.exposed(sent, busy);
  at(time.parts, TimePart::sharded) += time.sharded.value;
  stretch(time.times, busy + time.sharded.value);
}

const IterationModel::PlanPieces& IterationModel::pieces_of(const TrainingPlan& plan) {
  PlanPiecesKey key{.costs = piece_key(0, plan, without_needless_replicas(plan.parallel)),
                    .recompute = plan.recompute,
                    .modules = plan.recompute == Recompute::selective ? plan.recompute_modules : LayerModules{},
                    .accumulates = plan.micro_batches() > 1,
                    .gathers = gathers_of(plan),
                    .overlaps = plan.overlaps};
  // Those of parameters also divide the casts of the weights.
  if (scatters_micro_batches(plan) || plan.sharding == Sharding::parameters) {
    key.shard_ranks = plan.sharded_over();
    key.expert_shard_ranks = expert_replicas(plan).size();
  }
  const auto found = pieces_.find(key);
  if (found != pieces_.end()) return found->second;
  PlanPieces pieces;
  for (size_t kind = 0; kind < kinds_.size(); ++kind) {
    pieces.recomputed.push_back(time_of(kind, plan, true));
    pieces.spared.push_back(plan.recompute == Recompute::none ? pieces.recomputed.back() : time_of(kind, plan, false));
  }
  pieces.embedding = time_of(kinds_.size(), plan, false);
  pieces.head = time_of(kinds_.size() + 1, plan, false);
  return pieces_.emplace(key, std::move(pieces)).first->second;
}

const PipelineLayout& IterationModel::layout_of(const TrainingPlan& plan) {
  const LayoutKey key = layout_key(plan);
  const auto found = layouts_.find(key);
  if (found != layouts_.end()) return found->second;
  return layouts_.emplace(key, pipeline_layout(plan, kind_of_layer_, kinds_.size())).first->second;
}

const IterationModel::PieceTime& IterationModel::PlanPieces::of(size_t kind, bool again) const {
  if (kind < spared.size()) return again ? recomputed[kind] : spared[kind];
  return kind == spared.size() ? embedding : head;
}

IterationModel::PieceTime IterationModel::chunk_time(const ChunkMix& mix, const PlanPieces& pieces,
                                                     const TrainingPlan& plan) const {
  const Model& model = job_.model;
  const int64_t width = model.embedding_width > 0 ? model.embedding_width : model.hidden;
  const double table = static_cast<double>(model.vocabulary * width) / static_cast<double>(plan.parallel.tensor);
  PieceTime sum;
  each_piece(mix, [&](size_t kind, bool recomputed, double times) {
    const PieceTime& piece = pieces.of(kind, recomputed);
    sum.times.forward += times * piece.times.forward;
    sum.times.backward_input += times * piece.times.backward_input;
    sum.times.backward_weight += times * piece.times.backward_weight;
    sum.parameters += times * piece.parameters;
    sum.shared += times * piece.shared;
    sum.shared_matrices.add(piece.shared_matrices, times);
    sum.expert_matrices.add(piece.expert_matrices, times);
    add_parts(sum.parts, piece.parts, times);
  });
  if (mix.embedding && mix.head && job_.model.tied_embeddings && job_.lora.rank == 0) {
    sum.parameters -= table;  // one table, counted by both
    sum.shared -= table;
  }
  // The stage's share of what the host does for each micro-batch.
  const double host = 1e-6 * constants_[host_micro_batch_us] / static_cast<double>(plan.virtual_stages);
  sum.times.forward += host;
  at(sum.parts, TimePart::host) += host;
  return sum;
}

double IterationModel::send_seconds(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  if (p.pipeline == 1) return 0;
  const int64_t next = p.tensor * p.context * p.data;
  return constants_[traffic_factor] * constants_[send_exposed] *
         collective(CollectiveKind::send_recv, pipeline_message_bytes(job_, plan, stack_),
                    ProcessGroup::strided(0, 2, next))
             .value;
}

// Between replicas, once a step.
Estimate IterationModel::data_seconds(const TrainingPlan& plan, HeldParameters held, double beside) {
  const TrainingConstants& c = constants_;
  const ParallelPlan& p = plan.parallel;
  const int64_t ranks = p.data * p.context, sharded = plan.sharded_over();
  const bool gathered_before = gathers_of(plan) > 0, scattered_before = scatters_micro_batches(plan);
  Estimate seconds;
  // Gradients travel before the optimizer, parameters after it.
  double gradients = 0, parameters = 0;
  const auto add_gradients = [&](CollectiveKind kind, double amount, const ProcessGroup& group) {
    gradients += c[gradient_bytes] * amount;
    add_same_links(seconds, collective(kind, c[gradient_bytes] * amount, group));
  };
  const auto add_reduce = [&](double amount, const ProcessGroup& group) {
    if (plan.sharding == Sharding::none) {
      add_gradients(CollectiveKind::all_reduce, amount, group);
      return;
    }
    if (!scattered_before) add_gradients(CollectiveKind::reduce_scatter, amount, group);
    if (!gathered_before) {
      parameters += job_.gathered_parameter_bytes * amount;
      add_same_links(seconds, collective(CollectiveKind::all_gather, job_.gathered_parameter_bytes * amount, group));
    }
  };
  add_reduce(held.shared, ProcessGroup::strided(0, sharded, p.tensor));
  add_reduce(held.all - held.shared, expert_replicas(plan));
  if (sharded < ranks && plan.sharding != Sharding::none) {
    // Hybrid sharding: each part is summed over the groups that hold a copy.
    const double part = held.shared / static_cast<double>(sharded) +
                        (held.all - held.shared) / static_cast<double>(plan.experts_sharded_over());
    add_gradients(CollectiveKind::all_reduce, part, ProcessGroup::strided(0, ranks / sharded, p.tensor * sharded));
  }
  const double sent = gradients + parameters;
  const ReplicaTraffic traffic{
      .published = c[data_exposed], .of_gradients = sent > 0 ? gradients / sent : 1, .overlaps = plan.overlaps};
  return traffic.exposed(scaled(seconds, c[traffic_factor]), beside);
}

// Bytes of the optimizer's pass: what the stack says for Adam and for clipping, and each byte of state more or less
// than Adam's read and written. Clipping reads each gradient for their norm, then reads and writes it.
double IterationModel::optimizer_pass_bytes() const {
  constexpr double adam_state_bytes = 12, adam_state_bytes_in_16_bits = 4;
  const double clipped = job_.clips_gradients ? 0 : 3;
  if (job_.updates_weights) {
    const double more = job_.optimizer_state_bytes - adam_state_bytes_in_16_bits;
    return std::max(0.0, constants_[optimizer_16_bytes] + 2 * more - 2 * clipped);
  }
  return std::max(0.0, constants_[optimizer_bytes] + 2 * (job_.optimizer_state_bytes - adam_state_bytes) - 4 * clipped);
}

// Each iteration multiplies X X^T, its square, and that with X (K. Jordan's Muon; arXiv 2502.16982), in 16 bits; tensor
// ranks each do it on their own block (Megatron-Core's default).
IterationModel::Orthogonalization IterationModel::orthogonalization(const PieceCosts& costs, bool of_experts) const {
  Orthogonalization sum;
  if (job_.orthogonal_steps == 0 || job_.lora.rank > 0) return sum;
  const double factor =
      constants_[board_factor] * constants_[linear_factor] * static_cast<double>(job_.orthogonal_steps);
  for (const WeightMatrix& matrix : costs.matrices) {
    if (matrix.of_experts != of_experts) continue;
    const int64_t narrow = std::min(matrix.rows, matrix.columns), wide = std::max(matrix.rows, matrix.columns);
    double seconds = 0;
    for (const GemmShape& multiply :
         {GemmShape{.m = narrow, .n = narrow, .k = wide}, GemmShape{.m = narrow, .n = narrow, .k = narrow},
          GemmShape{.m = narrow, .n = wide, .k = narrow}}) {
      seconds += machine_.kernels->estimate(multiply).seconds.value;
    }
    sum.add({.seconds = factor * seconds, .matrices = 1}, matrix.count);
  }
  return sum;
}

// On the rank that holds most.
IterationModel::OnceAStep IterationModel::once_a_step(const TrainingPlan& plan, HeldParameters held, double beside) {
  const bool sharded = plan.sharding != Sharding::none;
  const double shards = sharded ? static_cast<double>(plan.sharded_over()) : 1;
  const double expert_shards = sharded ? static_cast<double>(expert_replicas(plan).size()) : 1;
  return {.data = data_seconds(plan, held, beside),
          .optimizer =
              optimizer_pass_bytes() * (held.shared / shards + (held.all - held.shared) / expert_shards) / bandwidth_ +
              held.shared_matrices.on_ranks(shards) + held.expert_matrices.on_ranks(expert_shards),
          .rest = 1e-6 * constants_[step_us]};
}

IterationEstimate IterationModel::estimate(const TrainingPlan& plan) {
  IterationEstimate result = values(plan);
  add_widths(result, plan);
  return result;
}

IterationEstimate IterationModel::values(const TrainingPlan& plan) {
  const PipelineLayout& layout = layout_of(plan);
  const PlanPieces& pieces = pieces_of(plan);
  IterationEstimate result;
  PipelineWork& work = result.pipeline;
  work = pipeline_work(plan);
  work.send_forward = work.send_backward = send_seconds(plan);

  std::vector<PieceTime> mix_times;
  for (const ChunkMix& mix : layout.mixes) mix_times.push_back(chunk_time(mix, pieces, plan));
  std::vector<TimeParts> stage_parts(static_cast<size_t>(plan.stages()));
  std::vector<HeldParameters> stage_held(stage_parts.size());
  result.stage_parameters.assign(stage_parts.size(), 0);
  const size_t chunks = layout.mix_of_chunk.size();
  const auto copies = static_cast<double>(layout.copies);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const PieceTime& time = mix_times[layout.mix_of_chunk[chunk]];
    work.chunks.push_back(time.times);
    for (size_t copy = 0; copy < layout.copies; ++copy) {
      const size_t stage = layout.stage_of[copy * chunks + chunk];
      result.stage_parameters[stage] += time.parameters;
      stage_held[stage].add(time);
      add_parts(stage_parts[stage], time.parts, 1.0 / copies);
    }
  }
  result.run = run_pipeline(plan.schedule, work);
  const std::vector<double>& busy = result.run.busy;
  const auto slowest = static_cast<size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
  result.slowest_stage = static_cast<int64_t>(slowest);

  TimeParts parts{};
  add_parts(parts, stage_parts[slowest], static_cast<double>(plan.micro_batches()));
  at(parts, TimePart::bubble) = result.run.seconds - std::accumulate(parts.begin(), parts.end(), 0.0);
  const auto fullest =
      static_cast<size_t>(std::max_element(result.stage_parameters.begin(), result.stage_parameters.end()) -
                          result.stage_parameters.begin());
  const OnceAStep once = once_a_step(plan, stage_held[fullest], seconds_beside_replicas(work));
  at(parts, TimePart::data) = once.data.value;
  at(parts, TimePart::optimizer) = once.optimizer;
  at(parts, TimePart::step) = once.rest;
  const auto without_width = [&](double value) {
    return Estimate{.value = value, .low = value, .high = value, .kind = stack_.confidence()};
  };
  for (size_t i = 0; i < time_part_count; ++i) result.parts[i] = without_width(parts[i]);
  if (once.data.value > 0) result.parts[static_cast<size_t>(TimePart::data)] = once.data;
  const double seconds = std::accumulate(parts.begin(), parts.end(), 0.0);
  result.seconds = without_width(seconds);
  result.tokens_per_second = static_cast<double>(plan.global_batch * job_.sequence_length) / seconds;
  result.tokens_per_second_per_device = result.tokens_per_second / static_cast<double>(plan.devices());
  return result;
}

IterationModel::QuickStep IterationModel::quick_step(const TrainingPlan& plan) {
  const PipelineLayout& layout = layout_of(plan);
  const PlanPieces& pieces = pieces_of(plan);
  quick_times_.clear();
  for (const ChunkMix& mix : layout.mixes) quick_times_.push_back(chunk_time(mix, pieces, plan));

  PipelineWork& work = quick_work_;
  work.stages = plan.stages();
  work.virtual_stages = plan.virtual_stages;
  work.micro_batches = plan.micro_batches();
  work.send_forward = work.send_backward = send_seconds(plan);
  work.chunks.clear();
  quick_held_.assign(static_cast<size_t>(plan.stages()), {});
  const size_t chunks = layout.mix_of_chunk.size();
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const PieceTime& time = quick_times_[layout.mix_of_chunk[chunk]];
    work.chunks.push_back(time.times);
    for (size_t copy = 0; copy < layout.copies; ++copy) {
      quick_held_[layout.stage_of[copy * chunks + chunk]].add(time);
    }
  }
  const HeldParameters fullest =
      *std::max_element(quick_held_.begin(), quick_held_.end(),
                        [](const HeldParameters& a, const HeldParameters& b) { return a.all < b.all; });
  const OnceAStep once = once_a_step(plan, fullest, seconds_beside_replicas(work));
  return {.seconds = pipeline_seconds_bound(plan.schedule, work) + once.data.value + once.optimizer + once.rest,
          .optimizer = once.optimizer,
          .pipeline = &work};
}

}  // namespace foretoken
