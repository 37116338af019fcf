#include "training/piece_costs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string_view>

#include "base/portable_math.h"
#include "kernel/error_correlation.h"
#include "model/part_memory.h"
#include "network/calibration/expert_kernels.h"

namespace foretoken {
namespace {

// Devices of the group that a collective of a layer runs in: tensor ranks lie side by side, then context, then data
// ranks; experts are spread over consecutive devices.
ProcessGroup group_of(const CollectiveShape& shape, const ParallelPlan& plan) {
  switch (shape.axis) {
    case ParallelAxis::tensor:
      return ProcessGroup::strided(0, shape.ranks);
    case ParallelAxis::context:
      return ProcessGroup::strided(0, shape.ranks, plan.tensor);
    case ParallelAxis::expert:
      return ProcessGroup::strided(0, shape.ranks, std::max<int64_t>(1, plan.expert / shape.ranks));
    case ParallelAxis::data:
      return ProcessGroup::strided(0, shape.ranks, plan.tensor * plan.context);
    case ParallelAxis::pipeline:
      return ProcessGroup::strided(0, shape.ranks, plan.tensor * plan.context * plan.data);
  }
  return ProcessGroup::strided(0, 1);
}

// Of a token's copies, the share that goes to different places out of so many, as expected by chance.
double distinct_share(double places, double copies) {
  if (places <= 1 || copies <= 1) return 1;
  return places * (1 - portable_pow(1 - 1 / places, copies)) / copies;
}

// Bytes of the copies that travel, as shares of all copies.
struct SentShares {
  double between = 1;  // over the whole group
  double inside = 0;   // over the links of each node, after they came there; 0 = those of `between`
};

// A token goes once to each node that holds some of its experts, and is copied there (DeepEP, and what stacks usually
// do). Inside a node it goes once to each rank if a dispatcher is named that does so.
SentShares shares_sent(double ranks, double nodes, double copies, TokenDispatcher dispatcher) {
  if (dispatcher == TokenDispatcher::all_to_all) return {};
  const double to_ranks = dispatcher == TokenDispatcher::usual ? 1 : distinct_share(ranks, copies);
  if (nodes <= 1) return {.between = to_ranks};
  return {.between = distinct_share(nodes, copies), .inside = to_ranks};
}

// DeepEP's kernels as they were measured. Training sends bf16 both ways, as a combine does.
std::optional<Estimate> deepep_seconds(const ProcessGroup& group, const ExpertTraffic& traffic,
                                       const TrainingMachine& machine) {
  const ExpertKernel* kernel = find_expert_kernel("deepep-normal");
  if (kernel == nullptr || machine.measured == nullptr) return std::nullopt;
  const std::vector<CommunicationCall> calls =
      expert_calls(*kernel, ExpertDirection::combine, "bf16", group.size(), machine.network->nodes_of(group), traffic);
  const std::optional<CommunicationTime> time = machine.measured->estimate(calls.front());
  return time ? std::optional(time->seconds) : std::nullopt;
}

// Of copies of tokens: those beyond the capacity of an expert are dropped before they travel.
double kept_share(const PieceRequest& request) {
  return request.expert_capacity > 0 ? std::min(1.0, request.expert_capacity) : 1;
}

// One way of the tokens between their ranks and their experts' ranks.
Estimate exchange_seconds(const CollectiveShape& shape, const ProcessGroup& group, const ExpertTraffic& traffic,
                          TokenDispatcher dispatcher, const TrainingMachine& machine) {
  const auto copies = static_cast<double>(traffic.top_k);
  double bytes = shape.bytes;
  if (dispatcher != TokenDispatcher::usual) {
    bytes = static_cast<double>(traffic.tokens * traffic.hidden) * copies * bytes_per_element(DType::bf16);
  }
  if (dispatcher == TokenDispatcher::deepep) {
    if (const std::optional<Estimate> measured = deepep_seconds(group, traffic, machine)) return *measured;
  }
  const auto seconds = [&](double sent, const ProcessGroup& ranks) {
    return seconds_side_by_side(*machine.network, shape.kind, sent * bytes, ranks);
  };
  const int64_t nodes = machine.network->nodes_of(group);
  const SentShares shares =
      shares_sent(static_cast<double>(group.size()), static_cast<double>(nodes), copies, dispatcher);
  const Estimate between = seconds(shares.between, group);
  const int64_t ranks_of_node = group.size() / nodes;
  if (shares.inside == 0 || ranks_of_node == 1) return between;
  // Both at the same time, piece by piece.
  return larger_of(between, seconds(shares.inside, ProcessGroup::strided(0, ranks_of_node, group.stride())));
}

StepRequest step_request(const PieceRequest& request) {
  return {.phase = StepPhase::train,
          .batch = request.micro_batch,
          .input_len = request.sequence_length,
          .routing = request.routing,
          .lora = request.lora};
}

// Three stages of one layer each, all like `layer`: the first has the embedding too, the last the head.
Model of_three_layers(Model model, const Layer& layer) {
  model.layers.assign(3, layer);
  return model;
}

std::vector<Operator> operators_of(const Model& model, const PieceRequest& request, int64_t stage) {
  ParallelPlan plan = request.parallel;
  plan.pipeline = 3;
  if (!std::holds_alternative<Moe>(model.layers.front().feed_forward)) plan.expert = 1;
  return stage_operators(model, step_request(request), plan, stage);
}

// How much longer multiplies take when the calls are repeated without pause.
Estimate slowdown_of(std::span<const TimedLaunch> launches, const TrainingMachine& machine) {
  if (machine.power == nullptr) return exactly(1);
  std::vector<BusyKernel> mix;
  for (const TimedLaunch& one : launches) {
    if (!one.kernel) continue;
    mix.push_back({.work = one.kernel->work,
                   .burst_seconds = Seconds(one.kernel->seconds.value),
                   .activity = activity_of(one.launch.shape, {}, machine.kernels->device()),
                   .calls = static_cast<double>(one.launch.count)});
  }
  return mix.empty() ? exactly(1) : machine.power->sustained(mix).slowdown;
}

// Both errors are independent: relative half-widths in quadrature, in ratios, so that the lower bound stays above zero.
Estimate slowed(const Estimate& seconds, const Estimate& slowdown) {
  const auto joint = [](double one, double other) {
    return 1 + std::sqrt((one - 1) * (one - 1) + (other - 1) * (other - 1));
  };
  const double value = seconds.value * slowdown.value;
  if (seconds.low <= 0) return scaled(seconds, slowdown.value);
  return {.value = value,
          .low = value / joint(seconds.value / seconds.low, slowdown.value / slowdown.low),
          .high = value * joint(seconds.high / seconds.value, slowdown.high / slowdown.value),
          .kind = std::max(seconds.kind, slowdown.kind)};
}

bool is_multiply(CostKind kind) {
  return kind == CostKind::linear || kind == CostKind::quantized || kind == CostKind::attention ||
         kind == CostKind::experts;
}

// The sums of each pass, by kind.
void add_up(PieceCosts& costs, const ErrorCorrelations& correlations) {
  std::vector<KernelSum> sums(training_pass_count * cost_kind_count, KernelSum(correlations));
  for (const PieceCall& one : costs.calls) {
    sums[static_cast<size_t>(one.pass) * cost_kind_count + static_cast<size_t>(one.kind)].add(one.timed.seconds,
                                                                                              one.form);
  }
  for (size_t pass = 0; pass < training_pass_count; ++pass) {
    for (size_t kind = 0; kind < cost_kind_count; ++kind) {
      costs.of(static_cast<TrainingPass>(pass)).of(static_cast<CostKind>(kind)) =
          sums[pass * cost_kind_count + kind].total();
    }
  }
}

// Without a stack of kernels, training_calls() are the kernels already. Inputs of quantized multiplies arrive cast,
// unlike those of serving engines: a cast serves more than one multiply, and training stacks count it apart.
Stack with_cast_inputs(const Stack* kernels, const std::vector<TrainingCall>& calls) {
  StackRule rule{.emit = {StackKernel{.variant = "scaled_mm_tensor"}}};
  for (const TrainingCall& one : calls) {
    const auto* multiply = std::get_if<GemmShape>(&one.call.shape);
    if (multiply != nullptr && facts(multiply->scheme).quantizes_activations) rule.when.names.push_back(one.call.name);
  }
  Stack stack = kernels != nullptr ? *kernels : Stack{};
  if (!rule.when.names.empty()) stack.rules.insert(stack.rules.begin(), std::move(rule));
  return stack;
}

// What bounds one kernel of a call: beside a multiply, others only stream memory (sums of the gradients of biases).
CostKind kind_of(const TrainingCall& call, const KernelShape& shape) {
  const bool is_linear = call.kind == CostKind::linear || call.kind == CostKind::quantized;
  const bool multiplies =
      std::holds_alternative<GemmShape>(shape) || std::holds_alternative<LatentProjectionShape>(shape);
  return is_linear && !multiplies ? CostKind::passes : call.kind;
}

PieceCosts costs_of_operators(const std::vector<Operator>& operators, std::string_view family,
                              const PieceRequest& request, const TrainingMachine& machine,
                              const GatheredShares& gathered = {}, const ExpertTraffic& traffic = {}) {
  std::vector<TrainingCall> calls = training_calls(operators, {.attention = request.attention,
                                                               .sequence_length = request.sequence_length,
                                                               .packed_length = request.packed_length,
                                                               .expert_capacity = request.expert_capacity,
                                                               .gathered = gathered,
                                                               .dropout = request.dropout});
  std::vector<Operator> lowered;
  lowered.reserve(calls.size());
  const CollectiveTimer collectives = [&](const StepCollective& call) {
    CollectiveShape shape = call.shape;
    const ProcessGroup group = group_of(shape, request.parallel);
    if (shape.axis == ParallelAxis::expert) {
      shape.bytes *= kept_share(request);
      return exchange_seconds(shape, group, traffic, request.dispatcher, machine);
    }
    return seconds_side_by_side(*machine.network, shape.kind, shape.bytes, group);
  };
  const Stack stack = with_cast_inputs(request.kernels, calls);
  PieceCosts costs;
  for (TrainingCall& one : calls) {
    PassCosts& pass = costs.of(one.pass);
    pass.cast_elements += one.cast_elements;
    pass.expert_elements += one.expert_elements;
    pass.between_elements += one.between_elements;
    pass.expert_starts += one.expert_starts;
    lowered.push_back(std::move(one.call));
  }
  std::vector<TimedLaunch> launches =
      LaunchTimer{.kernels = *machine.kernels, .stack = stack, .collectives = collectives}.time(
          lowered, StepPhase::train, family);
  const Estimate slowdown = slowdown_of(launches, machine);
  costs.calls.reserve(launches.size());
  for (size_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i].launch;
    const TrainingCall& one = calls[launch.call];
    PassCosts& pass = costs.of(one.pass);
    const bool first = i == 0 || launches[i - 1].launch.call != launch.call;
    pass.host += launch.host.value() * static_cast<double>(launch.count);
    if (first) pass.host += launch.host_before.value() * static_cast<double>(lowered[launch.call].count);
    pass.gaps += stack.costs.eager_gap.value() * static_cast<double>(launch.count);
    const CostKind kind = kind_of(one, launch.shape);
    Estimate& seconds = launches[i].seconds;
    seconds = scaled(seconds, one.share);
    if (is_multiply(kind)) seconds = slowed(seconds, slowdown);
    const std::string_view form = error_form(launch.shape, launch.variant);
    Operator call = lowered[launch.call];
    call.count = launch.count;
    costs.calls.push_back(
        {.timed = std::move(launches[i]), .call = std::move(call), .kind = kind, .pass = one.pass, .form = form});
  }
  add_up(costs, machine.kernels->correlations());
  return costs;
}

// Those of the rank: all, and those that all data and context ranks hold.
struct CountedParameters {
  double all = 0, shared = 0;
};

CountedParameters trained_parameters_of(const std::vector<Operator>& operators, const ParallelPlan& plan) {
  CountedParameters counted;
  for (const Operator& call : operators) {
    if (call.name == "adam") counted.all = static_cast<double>(std::get<ElementwiseShape>(call.shape).elements);
    if (call.name == "grad_all_reduce") {
      counted.shared = std::get<CollectiveShape>(call.shape).bytes / bytes_per_element(DType::bf16);
    }
  }
  if (plan.data * plan.context == 1) counted.shared = counted.all;  // nothing is reduced
  return counted;
}

// `operators_with` gives the operators of a stage for an adapter: frozen weights are those trained without one.
void add_parameters(PieceCosts& costs, const PieceRequest& request, double sign,
                    const std::function<std::vector<Operator>(const PieceRequest&)>& operators_with) {
  const CountedParameters trained = trained_parameters_of(operators_with(request), request.parallel);
  costs.shared_parameters += sign * trained.shared;
  costs.expert_parameters += sign * (trained.all - trained.shared);
  costs.held_shared += sign * trained.shared;
  costs.held_experts += sign * (trained.all - trained.shared);
  if (request.lora.rank == 0) return;
  PieceRequest whole = request;
  whole.lora = {};
  const CountedParameters frozen = trained_parameters_of(operators_with(whole), request.parallel);
  costs.held_shared += sign * frozen.shared;
  costs.held_experts += sign * (frozen.all - frozen.shared);
}

// What `all` has beyond `some`: the calls of a stage that are not those of its layer.
std::vector<Operator> beyond(std::vector<Operator> all, const std::vector<Operator>& some) {
  for (const Operator& layer : some) {
    for (Operator& call : all) {
      if (call.name == layer.name && call.pass == layer.pass && call.shape == layer.shape) call.count -= layer.count;
    }
  }
  std::erase_if(all, [](const Operator& call) { return call.count <= 0; });
  return all;
}

// Ulysses (arXiv 2309.14509): queries, keys and values go to the ranks of their heads, results come back; so do their
// gradients. No block is passed on between the ranks.
void exchange_heads(std::vector<Operator>& operators, const Attention& attention, const PieceRequest& request) {
  const ParallelPlan& plan = request.parallel;
  std::erase_if(operators, [](const Operator& call) {
    const auto* shape = std::get_if<CollectiveShape>(&call.shape);
    return shape != nullptr && shape->axis == ParallelAxis::context;
  });
  const double rows = static_cast<double>(request.micro_batch * request.sequence_length / plan.context) *
                      static_cast<double>(attention.head_dim) * bytes_per_element(DType::bf16) /
                      static_cast<double>(plan.tensor);
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (const int64_t heads : {attention.heads, std::max(attention.kv_heads, plan.tensor)}) {
      operators.push_back({.name = "cp_all_to_all",
                           .part = StepPart::communication,
                           .pass = pass,
                           .count = 2,
                           .shape = CollectiveShape{.kind = CollectiveKind::all_to_all,
                                                    .axis = ParallelAxis::context,
                                                    .ranks = plan.context,
                                                    .bytes = rows * static_cast<double>(heads)}});
    }
  }
}

PieceCosts share_of_whole(const Model& model, const PieceRequest& request, const TrainingMachine& machine) {
  const std::vector<Operator> operators = stage_operators(model, step_request(request), request.parallel, 0);
  PieceCosts costs = costs_of_operators(operators, model.family, request, machine);
  add_parameters(costs, request, 1,
                 [&](const PieceRequest& one) { return stage_operators(model, step_request(one), one.parallel, 0); });
  costs.share = 1 / static_cast<double>(model.layers.size());
  for (PieceCall& one : costs.calls) one.timed.seconds = scaled(one.timed.seconds, costs.share);
  add_up(costs, machine.kernels->correlations());
  for (PassCosts* pass : {&costs.forward, &costs.backward_input, &costs.backward_weight}) {
    for (double* sum : {&pass->host, &pass->gaps, &pass->cast_elements, &pass->expert_elements, &pass->between_elements,
                        &pass->expert_starts}) {
      *sum *= costs.share;
    }
  }
  if (request.lora.rank > 0) {
    const ModelParts parts = model_parts(model, step_request(request), request.parallel);
    costs.plain_shared = parts.embedding.plain_parameters + parts.head.plain_parameters;
    for (const std::vector<PartMemory>* layers : {&parts.encoder_layers, &parts.layers}) {
      for (const PartMemory& layer : *layers) costs.plain_shared += layer.plain_parameters;
    }
  }
  for (double* parameters : {&costs.shared_parameters, &costs.expert_parameters, &costs.held_shared,
                             &costs.held_experts, &costs.plain_shared}) {
    *parameters *= costs.share;
  }
  return costs;
}

// What one rank sends of a micro-batch. Tensor ranks share the tokens.
ExpertTraffic traffic_of(const Model& model, const Moe& experts, const PieceRequest& request) {
  const ParallelPlan& plan = request.parallel;
  const int64_t ranks = plan.context * plan.tensor;
  const int64_t tokens = (request.micro_batch * request.sequence_length + ranks - 1) / ranks;
  return {.tokens = static_cast<int64_t>(std::ceil(kept_share(request) * static_cast<double>(tokens))),
          .hidden = experts.latent_width > 0 ? experts.latent_width : model.hidden,
          .top_k = experts.top_k,
          .experts = experts.experts};
}

// An all-to-all takes copies sorted by the rank they go to, and hands them back so: one more pass over them each way.
void add_sorting(PieceCosts& costs, const ExpertTraffic& traffic) {
  const double elements = 2 * static_cast<double>(traffic.tokens * traffic.top_k * traffic.hidden);
  costs.forward.expert_elements += elements;
  costs.backward_input.expert_elements += elements;
}

// What the first or last stage has beyond its layer: tables and norms, which stay plain.
PieceCosts outer_costs(const Model& three, int64_t stage, const PieceRequest& request, const TrainingMachine& machine) {
  const std::vector<Operator> with = operators_of(three, request, stage), without = operators_of(three, request, 1);
  PieceCosts costs = costs_of_operators(beyond(with, without), three.family, request, machine);
  add_parameters(costs, request, 1, [&](const PieceRequest& one) { return operators_of(three, one, stage); });
  add_parameters(costs, request, -1, [&](const PieceRequest& one) { return operators_of(three, one, 1); });
  costs.plain_shared = costs.held_shared - costs.shared_parameters;
  return costs;
}

std::vector<WeightMatrix> weight_matrices(const std::vector<Operator>& operators) {
  std::vector<WeightMatrix> matrices;
  for (const Operator& call : operators) {
    if (call.pass != Pass::forward) continue;
    const auto count = static_cast<double>(call.count);
    if (const auto* gemm = std::get_if<GemmShape>(&call.shape)) {
      matrices.push_back({.rows = gemm->n, .columns = gemm->k, .count = count});
    }
    if (const auto* moe = std::get_if<MoeShape>(&call.shape)) {
      const double experts = count * static_cast<double>(std::max<int64_t>(1, moe->experts / moe->ep));
      const double of_each = moe->gated ? 3 : 2;
      matrices.push_back({.rows = std::max<int64_t>(1, moe->inter / moe->tp),
                          .columns = moe->hidden,
                          .count = of_each * experts,
                          .of_experts = true});
    }
  }
  return matrices;
}

}  // namespace

Estimate& PassCosts::of(CostKind kind) {
  constexpr Estimate PassCosts::*fields[] = {&PassCosts::linear,  &PassCosts::quantized, &PassCosts::attention,
                                             &PassCosts::experts, &PassCosts::passes,    &PassCosts::tensor,
                                             &PassCosts::context, &PassCosts::expert};
  static_assert(std::size(fields) == cost_kind_count);
  return this->*fields[static_cast<size_t>(kind)];
}

const Estimate& PassCosts::of(CostKind kind) const {
  return const_cast<PassCosts*>(this)->of(kind);
}

PassCosts& PieceCosts::of(TrainingPass pass) {
  return pass == TrainingPass::forward          ? forward
         : pass == TrainingPass::backward_input ? backward_input
                                                : backward_weight;
}

const PassCosts& PieceCosts::of(TrainingPass pass) const {
  return const_cast<PieceCosts*>(this)->of(pass);
}

Estimate seconds_side_by_side(const CollectiveModel& network, CollectiveKind kind, double bytes,
                              const ProcessGroup& group) {
  return network
      .estimate({.kind = kind, .bytes = bytes, .group = group, .groups_per_card = network.groups_per_card(group)})
      .seconds;
}

PieceCosts layer_costs(const Model& model, const Layer& layer, const PieceRequest& request,
                       const TrainingMachine& machine) {
  if (!model.encoder_layers.empty()) return share_of_whole(model, request, machine);
  const Model three = of_three_layers(model, layer);
  std::vector<Operator> operators = operators_of(three, request, 1);
  const auto* attention = std::get_if<Attention>(&layer.mixer);
  if (attention != nullptr && request.parallel.context > 1 && request.context_exchange == ContextExchange::all_to_all) {
    exchange_heads(operators, *attention, request);
  }
  const auto* experts = std::get_if<Moe>(&layer.feed_forward);
  const ExpertTraffic traffic = experts != nullptr ? traffic_of(model, *experts, request) : ExpertTraffic{};
  PieceCosts costs = costs_of_operators(operators, model.family, request, machine, request.gathered, traffic);
  if (experts != nullptr && request.dispatcher == TokenDispatcher::all_to_all) add_sorting(costs, traffic);
  add_parameters(costs, request, 1, [&](const PieceRequest& one) { return operators_of(three, one, 1); });
  if (request.lora.rank > 0) {
    costs.plain_shared = model_parts(three, step_request(request), request.parallel).layers.front().plain_parameters;
  }
  costs.matrices = weight_matrices(operators);
  return costs;
}

PieceCosts embedding_costs(const Model& model, const PieceRequest& request, const TrainingMachine& machine) {
  if (!model.encoder_layers.empty()) return {};
  return outer_costs(of_three_layers(model, model.layers.front()), 0, request, machine);
}

PieceCosts head_costs(const Model& model, const PieceRequest& request, const TrainingMachine& machine) {
  if (!model.encoder_layers.empty()) return {};
  return outer_costs(of_three_layers(model, model.layers.back()), 2, request, machine);
}

}  // namespace foretoken
