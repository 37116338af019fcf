#include "training/piece_costs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <type_traits>

#include "model/work.h"

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

constexpr int64_t expert_tile = 128;  // rows of a tile of grouped multiplies (CUTLASS, DeepGEMM)

// Adds calls of kernels to the sums of their pass.
class Sorter {
 public:
  Sorter(PieceCosts& costs, const PieceRequest& request, const TrainingMachine& machine, int64_t expert_copies)
      : costs_(costs), request_(request), machine_(machine), expert_copies_(expert_copies) {}

  void add(const Operator& call) {
    if (call.part == StepPart::optimizer) return;
    calls_ = static_cast<double>(call.count);
    const bool of_weights = call.name.ends_with("_wgrad");
    pass_ = call.pass == Pass::forward ? &costs_.forward
            : of_weights               ? &costs_.backward_weight
                                       : &costs_.backward_input;
    backward_ = call.pass == Pass::backward;
    std::visit([this](const auto& shape) { count(shape); }, call.shape);
  }

  // How much longer the calls take when they are repeated without pause.
  double slowdown() const { return mix_.empty() ? 1 : machine_.power->sustained(mix_).slowdown.value; }

 private:
  double seconds(const KernelShape& shape, double times = 1) {
    const KernelEstimate estimate = machine_.kernels->estimate(shape);
    if (machine_.power != nullptr) {
      mix_.push_back({.work = estimate.work,
                      .burst_seconds = Seconds(estimate.seconds.value),
                      .activity = activity_of(shape, {}, machine_.kernels->device()),
                      .calls = calls_ * times});
    }
    return estimate.seconds.value * calls_ * times;
  }

  void count(const GemmShape& shape) {
    if (facts(shape.scheme).quantizes_activations) {
      pass_->quantized += seconds(shape);
      pass_->cast_elements += calls_ * static_cast<double>(shape.batch * shape.m * shape.k);
    } else {
      pass_->linear += seconds(shape);
    }
  }
  void count(const LatentProjectionShape& shape) { pass_->linear += seconds(shape); }
  void count(const AttentionShape& shape) {
    const int64_t packed = request_.packed_length;
    if (packed == 0 || packed >= shape.q_len || shape.q_len != shape.kv_len) {
      pass_->attention += packed_share() * core_seconds(shape);
      return;
    }
    // Documents do not see each other: whole ones, and what is left of the last.
    AttentionShape document = shape;
    document.q_len = document.kv_len = packed;
    document.batch = shape.batch * (shape.q_len / packed);
    pass_->attention += core_seconds(document);
    if (shape.q_len % packed == 0) return;
    document.q_len = document.kv_len = shape.q_len % packed;
    document.batch = shape.batch;
    pass_->attention += core_seconds(document);
  }
  void count(const LatentAttentionShape& shape) { pass_->attention += packed_share() * seconds(shape); }
  void count(const LinearAttentionShape& shape) { pass_->attention += seconds(shape); }

  double core_seconds(const AttentionShape& shape) {
    const bool unfused = request_.attention == AttentionKernel::unfused && shape.phase != AttentionPhase::decode;
    return unfused ? unfused_seconds(shape) : seconds(shape);
  }
  // Of the work of one long document, where documents are cut over ranks or kernels do not know them.
  double packed_share() const {
    return attended_length(request_.sequence_length, request_.packed_length) /
           static_cast<double>(request_.sequence_length);
  }

  // Grouped multiplies: as fast as one multiply with the tokens of all experts of the rank, each expert's rounded up to
  // a tile. Their weights are side by side in the gradient of weights.
  void count(const MoeShape& shape) {
    const int64_t experts = std::max<int64_t>(1, shape.experts / shape.ep);
    const double even = static_cast<double>(shape.tokens * shape.top_k) / static_cast<double>(shape.ep);
    double pairs = expert_load(shape).pairs;  // of the fullest rank
    if (request_.expert_capacity > 0) pairs = std::min(pairs, request_.expert_capacity * even);
    const auto routed = static_cast<int64_t>(std::ceil(pairs / static_cast<double>(experts)));  // of one expert
    const int64_t padded = (routed + expert_tile - 1) / expert_tile * expert_tile;
    const int64_t inter = shape.inter / shape.tp, first = (shape.gated ? 2 : 1) * inter;
    const auto multiply = [&](int64_t m, int64_t n, int64_t k) {
      return seconds(GemmShape{.m = m, .n = n, .k = k, .scheme = shape.scheme});
    };
    const double rows = static_cast<double>(experts * routed);
    const double elements = calls_ * rows * static_cast<double>(shape.hidden + inter);
    const double moved = calls_ * rows * static_cast<double>(2 * shape.hidden + first + inter);
    const bool casts = facts(shape.scheme).quantizes_activations;
    const int64_t all = experts * padded;
    if (!backward_) {
      pass_->experts += multiply(all, first, shape.hidden) + multiply(all, shape.hidden, inter);
    } else {
      pass_->experts += multiply(all, shape.hidden, first) + multiply(all, inter, shape.hidden);
      if (shape.pass == Pass::backward) {  // not frozen
        pass_ = &costs_.backward_weight;
        pass_->experts +=
            multiply(experts * first, shape.hidden, padded) + multiply(experts * inter, shape.hidden, padded);
        if (casts) pass_->cast_elements += elements;
        pass_ = &costs_.backward_input;
      }
    }
    if (casts) pass_->cast_elements += elements;
    pass_->expert_elements += moved;
  }
  void count(const CollectiveShape& shape) {
    // Gradients are reduced once a step, not for each micro-batch.
    if (shape.ranks <= 1 || shape.axis == ParallelAxis::data || shape.axis == ParallelAxis::pipeline) return;
    const ProcessGroup group = group_of(shape, request_.parallel);
    double bytes = shape.bytes;
    if (shape.axis == ParallelAxis::expert) bytes *= share_sent(group);
    const double time =
        calls_ * machine_.network->estimate({.kind = shape.kind, .bytes = bytes, .group = group}).seconds.value;
    double& sum = shape.axis == ParallelAxis::context  ? pass_->context
                  : shape.axis == ParallelAxis::expert ? pass_->expert
                                                       : pass_->tensor;
    sum += time;
  }
  template <class Shape>
  void count(const Shape& shape) {
    pass_->passes += seconds(shape);
  }

  // A token goes once to each node that holds some of its experts, and is copied there (DeepEP): of its copies, the
  // expected number of different nodes.
  double share_sent(const ProcessGroup& group) const {
    const auto nodes = static_cast<double>(machine_.network->nodes_of(group)),
               copies = static_cast<double>(expert_copies_);
    if (nodes <= 1 || copies <= 1) return 1;
    return nodes * (1 - std::pow(1 - 1 / nodes, copies)) / copies;
  }

  // Scores and values as batched multiplies; scale, mask and softmax in one kernel, dropout in another, each over all
  // scores. Backward: two multiplies for each, and the same passes.
  double unfused_seconds(const AttentionShape& shape) {
    const Scheme scheme = plain_scheme(shape.dtype);
    const int64_t batch = shape.batch * shape.heads;
    const int64_t scores = batch * shape.q_len * shape.kv_len;
    const double ways = backward_ ? 2 : 1;
    const int64_t value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
    double sum = seconds(
        GemmShape{.m = shape.q_len, .n = shape.kv_len, .k = shape.head_dim, .batch = batch, .scheme = scheme}, ways);
    sum +=
        seconds(GemmShape{.m = shape.q_len, .n = value_dim, .k = shape.kv_len, .batch = batch, .scheme = scheme}, ways);
    sum +=
        seconds(ElementwiseShape{.elements = scores, .inputs = backward_ ? 2 : 1, .outputs = 1, .dtype = shape.dtype});
    sum +=
        seconds(ElementwiseShape{.elements = scores, .inputs = backward_ ? 2 : 1, .outputs = 1, .dtype = shape.dtype});
    return sum;
  }

  PieceCosts& costs_;
  const PieceRequest& request_;
  const TrainingMachine& machine_;
  int64_t expert_copies_ = 1;
  std::vector<BusyKernel> mix_;
  PassCosts* pass_ = nullptr;
  double calls_ = 1;
  bool backward_ = false;
};

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

PieceCosts sorted(const std::vector<Operator>& operators, const PieceRequest& request, const TrainingMachine& machine,
                  int64_t expert_copies = 1) {
  PieceCosts costs;
  Sorter sorter(costs, request, machine, expert_copies);
  for (const Operator& call : operators) sorter.add(call);
  const double slowdown = sorter.slowdown();
  for (PassCosts* pass : {&costs.forward, &costs.backward_input, &costs.backward_weight}) {
    pass->linear *= slowdown;
    pass->quantized *= slowdown;
    pass->attention *= slowdown;
    pass->experts *= slowdown;
  }
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
// gradients.
void exchange_heads(PieceCosts& costs, const Attention& attention, const PieceRequest& request,
                    const TrainingMachine& machine) {
  const ParallelPlan& plan = request.parallel;
  const ProcessGroup group = ProcessGroup::strided(0, plan.context, plan.tensor);
  const double rows = static_cast<double>(request.micro_batch * request.sequence_length / plan.context) *
                      static_cast<double>(attention.head_dim) * bytes_per_element(DType::bf16) /
                      static_cast<double>(plan.tensor);
  const auto seconds = [&](int64_t heads) {
    const double bytes = rows * static_cast<double>(heads);
    return machine.network->estimate({.kind = CollectiveKind::all_to_all, .bytes = bytes, .group = group})
        .seconds.value;
  };
  const double all = 2 * seconds(attention.heads) + 2 * seconds(std::max(attention.kv_heads, plan.tensor));
  costs.forward.context = costs.backward_input.context = all;
}

PieceCosts share_of_whole(const Model& model, const PieceRequest& request, const TrainingMachine& machine) {
  const std::vector<Operator> operators = stage_operators(model, step_request(request), request.parallel, 0);
  PieceCosts costs = sorted(operators, request, machine);
  add_parameters(costs, request, 1,
                 [&](const PieceRequest& one) { return stage_operators(model, step_request(one), one.parallel, 0); });
  const double share = 1 / static_cast<double>(model.layers.size());
  for (PassCosts* pass : {&costs.forward, &costs.backward_input, &costs.backward_weight}) pass->scale(share);
  for (double* parameters :
       {&costs.shared_parameters, &costs.expert_parameters, &costs.held_shared, &costs.held_experts}) {
    *parameters *= share;
  }
  return costs;
}

// What the first or last stage has beyond its layer.
PieceCosts outer_costs(const Model& three, int64_t stage, const PieceRequest& request, const TrainingMachine& machine) {
  const std::vector<Operator> with = operators_of(three, request, stage), without = operators_of(three, request, 1);
  PieceCosts costs = sorted(beyond(with, without), request, machine);
  add_parameters(costs, request, 1, [&](const PieceRequest& one) { return operators_of(three, one, stage); });
  add_parameters(costs, request, -1, [&](const PieceRequest& one) { return operators_of(three, one, 1); });
  return costs;
}

}  // namespace

double attended_length(int64_t sequence_length, int64_t packed_length) {
  const auto whole = static_cast<double>(sequence_length);
  if (packed_length == 0 || packed_length >= sequence_length) return whole;
  const auto document = static_cast<double>(packed_length);
  const auto documents = static_cast<double>(sequence_length / packed_length);
  const auto rest = static_cast<double>(sequence_length % packed_length);
  return (documents * document * document + rest * rest) / whole;
}

void PassCosts::scale(double factor) {
  for (double* part : {&linear, &quantized, &cast_elements, &attention, &experts, &expert_elements, &passes, &tensor,
                       &context, &expert}) {
    *part *= factor;
  }
}

PieceCosts layer_costs(const Model& model, const Layer& layer, const PieceRequest& request,
                       const TrainingMachine& machine) {
  if (!model.encoder_layers.empty()) return share_of_whole(model, request, machine);
  const Model three = of_three_layers(model, layer);
  const std::vector<Operator> operators = operators_of(three, request, 1);
  const auto* experts = std::get_if<Moe>(&layer.feed_forward);
  PieceCosts costs = sorted(operators, request, machine, experts != nullptr ? experts->top_k : 1);
  add_parameters(costs, request, 1, [&](const PieceRequest& one) { return operators_of(three, one, 1); });
  const auto* attention = std::get_if<Attention>(&layer.mixer);
  if (attention != nullptr && request.parallel.context > 1 && request.context_exchange == ContextExchange::all_to_all) {
    exchange_heads(costs, *attention, request, machine);
  }
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
