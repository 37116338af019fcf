#include "compose/training_lowering.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <variant>

#include "model/work.h"

namespace foretoken {
namespace {

// Drawing random numbers beside the multiplies of a fused kernel: some six instructions for each score (assumed).
constexpr double dropped_attention_time = 1.2;
constexpr int64_t expert_tile = 128;  // rows of a tile of grouped multiplies (CUTLASS, DeepGEMM)

class TrainingLowering {
 public:
  explicit TrainingLowering(const TrainingRules& rules) : rules_(rules) {}

  std::vector<TrainingCall> run(const std::vector<Operator>& operators) {
    for (const Operator& call : operators) {
      if (call.part == StepPart::optimizer) continue;
      call_ = &call;
      backward_ = call.pass == Pass::backward;
      pass_ = !backward_                      ? TrainingPass::forward
              : call.name.ends_with("_wgrad") ? TrainingPass::backward_weight
                                              : TrainingPass::backward_input;
      std::visit([this](const auto& shape) { place(shape); }, call.shape);
    }
    return std::move(calls_);
  }

 private:
  // `times` calls for each of the operator's.
  TrainingCall& add(CostKind kind, const KernelShape& shape, std::string_view suffix = {}, int64_t times = 1) {
    TrainingCall& added = calls_.emplace_back(TrainingCall{.call = *call_, .kind = kind, .pass = pass_});
    added.call.name += suffix;
    added.call.count *= times;
    added.call.shape = shape;
    return added;
  }

  void place(const GemmShape& shape) {
    if (!facts(shape.scheme).quantizes_activations) {
      add(CostKind::linear, shape);
      add_adapter_passes(shape);
      return;
    }
    TrainingCall& added = add(CostKind::quantized, shape);
    // Gradients of weights read what was cast for the two other multiplies, by columns.
    if (pass_ == TrainingPass::backward_weight) return;
    added.cast_elements = static_cast<double>(call_->count) * static_cast<double>(shape.batch * shape.m * shape.k);
  }
  // What an adapter gives is scaled and added to what its frozen matrix gives, each in a kernel; so are gradients.
  void add_adapter_passes(const GemmShape& shape) {
    const std::string_view name = call_->name;
    const auto pass = [&](std::string_view suffix, int64_t width, int64_t inputs) {
      add(CostKind::passes,
          ElementwiseShape{
              .elements = shape.m * width, .inputs = inputs, .outputs = 1, .dtype = facts(shape.scheme).math},
          suffix);
    };
    if (name.ends_with("_lora_b")) {
      pass("_scale", shape.n, 1);
      pass("_sum", shape.n, 2);
    } else if (name.ends_with("_lora_b_dgrad")) {
      pass("_scale", shape.k, 1);
    } else if (name.ends_with("_lora_a_dgrad")) {
      pass("_sum", shape.n, 2);
    }
  }
  void place(const LatentProjectionShape& shape) { add(CostKind::linear, shape); }
  void place(const AttentionShape& shape) {
    const int64_t packed = rules_.packed_length;
    if (packed == 0 || packed >= shape.q_len || shape.q_len != shape.kv_len) {
      place_core(shape, packed_share());
      return;
    }
    // Documents do not see each other: whole ones, and what is left of the last.
    AttentionShape document = shape;
    document.q_len = document.kv_len = packed;
    document.batch = shape.batch * (shape.q_len / packed);
    place_core(document, 1);
    if (shape.q_len % packed == 0) return;
    document.q_len = document.kv_len = shape.q_len % packed;
    document.batch = shape.batch;
    place_core(document, 1);
  }
  void place(const LatentAttentionShape& shape) { add(CostKind::attention, shape).share = packed_share(); }
  void place(const LinearAttentionShape& shape) { add(CostKind::attention, shape); }

  void place_core(const AttentionShape& shape, double share) {
    const size_t first = calls_.size();
    if (rules_.attention == AttentionKernel::unfused && shape.phase != AttentionPhase::decode) {
      place_unfused(shape);
    } else {
      add(CostKind::attention, shape);
    }
    const bool drops = rules_.dropout.attention && rules_.attention == AttentionKernel::flash;
    for (size_t i = first; i < calls_.size(); ++i) calls_[i].share = share * (drops ? dropped_attention_time : 1);
  }

  // Of the work of one long document, where documents are cut over ranks or kernels do not know them.
  double packed_share() const {
    return attended_length(rules_.sequence_length, rules_.packed_length) / static_cast<double>(rules_.sequence_length);
  }

  // Scores and values as batched multiplies; scale, mask and softmax in one kernel, dropout (if any) in another, each
  // over all scores. Backward: two multiplies for each, and the same passes.
  void place_unfused(const AttentionShape& shape) {
    const Scheme scheme = plain_scheme(shape.dtype);
    const int64_t batch = shape.batch * shape.heads, ways = backward_ ? 2 : 1;
    const int64_t value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
    add(CostKind::attention,
        GemmShape{.m = shape.q_len, .n = shape.kv_len, .k = shape.head_dim, .batch = batch, .scheme = scheme},
        "_scores", ways);
    add(CostKind::attention,
        GemmShape{.m = shape.q_len, .n = value_dim, .k = shape.kv_len, .batch = batch, .scheme = scheme}, "_values",
        ways);
    const ElementwiseShape scores{
        .elements = batch * shape.q_len * shape.kv_len, .inputs = ways, .outputs = 1, .dtype = shape.dtype};
    add(CostKind::attention, scores, "_softmax");
    if (rules_.dropout.attention) add(CostKind::attention, scores, "_dropout");
  }

  // Grouped multiplies: as fast as one multiply with the tokens of all experts of the rank, each expert's rounded up to
  // a tile. Their weights are side by side in the gradient of weights.
  void place(const MoeShape& shape) {
    const int64_t experts = std::max<int64_t>(1, shape.experts / shape.ep);
    const double even = static_cast<double>(shape.tokens * shape.top_k) / static_cast<double>(shape.ep);
    double pairs = expert_load(shape).pairs;  // of the fullest rank
    if (rules_.expert_capacity > 0) pairs = std::min(pairs, rules_.expert_capacity * even);
    const auto routed = static_cast<int64_t>(std::ceil(pairs / static_cast<double>(experts)));  // of one expert
    const int64_t padded = (routed + expert_tile - 1) / expert_tile * expert_tile;
    const int64_t inter = shape.inter / shape.tp, first = (shape.gated ? 2 : 1) * inter;
    const auto multiply = [&](std::string_view suffix, int64_t m, int64_t n, int64_t k) -> TrainingCall& {
      TrainingCall& call = add(CostKind::experts, GemmShape{.m = m, .n = n, .k = k, .scheme = shape.scheme}, suffix);
      call.expert_starts = static_cast<double>(call_->count) * static_cast<double>(experts);
      return call;
    };
    const double rows = static_cast<double>(call_->count) * static_cast<double>(experts * routed);
    const bool casts = facts(shape.scheme).quantizes_activations;
    const double cast = casts ? rows * static_cast<double>(shape.hidden + inter) : 0;
    const int64_t all = experts * padded;
    TrainingCall& up =
        backward_ ? multiply("_down_dgrad", all, inter, shape.hidden) : multiply("_up", all, first, shape.hidden);
    up.cast_elements = cast;
    up.expert_elements = rows * static_cast<double>(2 * shape.hidden);
    up.between_elements = rows * static_cast<double>(first + inter);
    if (!backward_) {
      multiply("_down", all, shape.hidden, inter);
      return;
    }
    multiply("_up_dgrad", all, shape.hidden, first);
    if (shape.pass != Pass::backward) return;  // frozen
    const TrainingPass input = pass_;
    pass_ = TrainingPass::backward_weight;
    multiply("_up_wgrad", experts * first, shape.hidden, padded);
    multiply("_down_wgrad", experts * inter, shape.hidden, padded);
    pass_ = input;
  }

  void place(const NormShape& shape) {
    add(CostKind::passes, shape);
    if (!rules_.dropout.hidden || !shape.adds_residual || !backward_) return;
    // The mask is a byte written and read; its gradient is a pass of its own. Forward, it is part of the sum.
    add(CostKind::passes,
        ElementwiseShape{.elements = 3 * shape.rows * shape.width / 2, .inputs = 1, .outputs = 1, .dtype = shape.dtype},
        "_dropout");
  }

  void place(CollectiveShape shape) {
    // Gradients are reduced once a step, not for each micro-batch.
    if (shape.ranks <= 1 || shape.axis == ParallelAxis::data || shape.axis == ParallelAxis::pipeline) return;
    if (shape.axis == ParallelAxis::tensor && shape.kind == CollectiveKind::all_gather) {
      shape.bytes *= backward_ ? rules_.gathered.backward : rules_.gathered.forward;
    }
    add(shape.axis == ParallelAxis::context  ? CostKind::context
        : shape.axis == ParallelAxis::expert ? CostKind::expert
                                             : CostKind::tensor,
        shape);
  }

  template <class Shape>
  void place(const Shape& shape) {
    add(CostKind::passes, shape);
  }

  const TrainingRules& rules_;
  const Operator* call_ = nullptr;
  TrainingPass pass_ = TrainingPass::forward;
  bool backward_ = false;
  std::vector<TrainingCall> calls_;
};

}  // namespace

double attended_length(int64_t sequence_length, int64_t packed_length) {
  const auto whole = static_cast<double>(sequence_length);
  if (packed_length == 0 || packed_length >= sequence_length) return whole;
  const auto document = static_cast<double>(packed_length);
  const auto documents = static_cast<double>(sequence_length / packed_length);
  const auto rest = static_cast<double>(sequence_length % packed_length);
  return (documents * document * document + rest * rest) / whole;
}

std::vector<TrainingCall> training_calls(const std::vector<Operator>& operators, const TrainingRules& rules) {
  return TrainingLowering(rules).run(operators);
}

}  // namespace foretoken
