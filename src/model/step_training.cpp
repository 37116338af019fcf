// The backward pass, derived operator by operator from the forward one, and the optimizer's step.
#include <algorithm>
#include <string>

#include "base/number_format.h"
#include "model/step_internal.h"

namespace foretoken::step {
namespace {

std::string collective_name(ParallelAxis axis, CollectiveKind kind) {
  std::string name;
  switch (axis) {
    case ParallelAxis::tensor:
      name = "tp";
      break;
    case ParallelAxis::pipeline:
      name = "pp";
      break;
    case ParallelAxis::data:
      name = "dp";
      break;
    case ParallelAxis::expert:
      name = "ep";
      break;
    case ParallelAxis::context:
      name = "cp";
      break;
  }
  return name + "_" + std::string(collective_kind_name(kind));
}

// Appends the backward calls of one forward operator.
class Backward {
 public:
  Backward(OperatorList& list, const ForwardOperator& from, const Model& model, const StepRequest& request,
           const Rank& rank)
      : list_(list), from_(from), model_(model), rank_(rank), trained_(request.lora.rank == 0 || from.is_adapter()) {}

  // dX[m,k] = dY[m,n] W[n,k] and dW[n,k] = dY[m,n]^T X[m,k].
  void operator()(const GemmShape& s) const {
    GemmShape input_gradient = s;
    input_gradient.n = s.k;
    input_gradient.k = s.n;
    add("_dgrad", input_gradient);
    if (!trained_) return;
    const bool same = facts(s.scheme).quantizes_activations || facts(s.scheme).weight_bytes >= 2;
    add("_wgrad",
        GemmShape{
            .m = s.n, .n = s.k, .k = s.m, .batch = s.batch, .scheme = same ? s.scheme : plain_scheme(model_.dtype)});
  }
  // Frozen experts only pass the gradient on, which costs what their forward did.
  void operator()(MoeShape s) const {
    s.pass = trained_ ? Pass::backward : Pass::forward;
    add(trained_ ? "_backward" : "_dgrad", s);
  }
  void operator()(const EmbeddingShape& s) const {
    if (trained_) with_pass(s);
  }
  void operator()(const AttentionShape& s) const { with_pass(s); }
  void operator()(const LatentAttentionShape& s) const { with_pass(s); }
  void operator()(const LinearAttentionShape& s) const { with_pass(s); }
  void operator()(const NormShape& s) const { with_pass(s); }
  void operator()(const ActivationShape& s) const { with_pass(s); }
  // Gradients of the input and of the weight, each a multiply of the same size.
  void operator()(const LatentProjectionShape& s) const {
    add("_dgrad", s);
    if (trained_) add("_wgrad", s);
  }
  void operator()(const HyperConnectionShape& s) const { add("_backward", s, 2); }
  void operator()(const CollectiveShape& s) const {
    CollectiveShape other = s;
    if (s.kind == CollectiveKind::all_gather) other.kind = CollectiveKind::reduce_scatter;
    if (s.kind == CollectiveKind::reduce_scatter) other.kind = CollectiveKind::all_gather;
    const bool swapped = other.kind != s.kind;
    // What was gathered is not kept: it is gathered again for the gradient of trained weights or the attention.
    const bool gathers_again =
        s.kind == CollectiveKind::all_gather && (s.axis == ParallelAxis::context || (rank_.sequence && trained_));
    if (gathers_again) list_.add(std::string(from_.name), from_.part, Pass::backward, s, from_.count);
    list_.add(swapped ? collective_name(s.axis, other.kind) : std::string(from_.name), from_.part, Pass::backward,
              other, from_.count);
  }
  // Everything else costs the same both ways.
  template <class Shape>
  void operator()(const Shape& s) const {
    add("_backward", s);
  }

 private:
  void add(std::string_view ending, const KernelShape& shape, int64_t times = 1) const {
    list_.add(from_.full_name() += ending, from_.part, Pass::backward, shape, from_.count * times);
  }
  template <class Shape>
  void with_pass(Shape s) const {
    s.pass = Pass::backward;
    add("_backward", s);
  }

  OperatorList& list_;
  const ForwardOperator& from_;
  const Model& model_;
  const Rank& rank_;
  bool trained_;
};

}  // namespace

void add_backward(OperatorList& list, std::span<const ForwardOperator> forward, const Model& model,
                  const StepRequest& request, const ParallelPlan& plan) {
  const Rank rank = make_rank(plan);
  bool recomputes = request.recompute;
  for (auto one = forward.rbegin(); one != forward.rend(); ++one) {
    if (one->in_layer && recomputes) {
      recomputes = false;
      for (const ForwardOperator& again : forward) {
        if (!again.in_layer || !again.forward) continue;
        list.add(again.full_name() += "_recompute", again.part, Pass::backward, again.shape, again.count);
      }
    }
    if (one->backward) std::visit(Backward(list, *one, model, request, rank), one->shape);
  }
}

void add_optimizer(OperatorList& list, std::span<const ForwardOperator> forward, const Model& model,
                   const StepRequest& request, const ParallelPlan& plan, int64_t stage) {
  const TrainedParameters trained = trained_parameters(forward, model, request, plan, stage);
  const Rank rank = make_rank(plan);
  const double gradient_bytes = bytes_per_element(model.dtype);
  const auto reduce = [&](std::string_view name, ParallelAxis axis, int64_t ranks, double parameters) {
    if (ranks <= 1 || parameters <= 0) return;
    list.add(
        std::string(name), StepPart::communication, Pass::backward,
        CollectiveShape{
            .kind = CollectiveKind::all_reduce, .axis = axis, .ranks = ranks, .bytes = parameters * gradient_bytes},
        1);
  };
  reduce("grad_all_reduce", ParallelAxis::data, plan.data * plan.context, trained.shared);
  // Ranks that hold the same experts: fewer, where data-parallel ranks have different ones.
  reduce("expert_grad_all_reduce", ParallelAxis::data, plan.data * plan.context / rank.dispatch_groups,
         trained.experts);
  const bool first = stage == 0, last = stage == plan.pipeline - 1;
  if (request.lora.rank == 0 && model.tied_embeddings && plan.pipeline > 1 && (first || last)) {
    reduce("embedding_grad_all_reduce", ParallelAxis::pipeline, 2, embedding_table_parameters(model, rank));
  }
  const int64_t parameters = std::max<int64_t>(1, static_cast<int64_t>(trained.shared + trained.experts));
  if (request.accumulate) {
    list.add("grad_accumulate", StepPart::optimizer, Pass::backward,
             ElementwiseShape{.elements = parameters, .inputs = 2, .outputs = 1, .dtype = model.dtype}, 1);
  }
  if (request.optimizer == Optimizer::none) return;
  if (request.optimizer != Optimizer::adam_mixed) {
    // Weight, gradient and two moments read, all but the gradient written.
    list.add(request.optimizer == Optimizer::adam_fused ? "adam_fused" : "adam_foreach", StepPart::optimizer,
             Pass::forward,
             ElementwiseShape{
                 .elements = parameters, .inputs = 4, .outputs = 3, .flops_per_element = 12, .dtype = model.dtype},
             1);
    return;
  }
  // Adam reads gradient, fp32 master weight and two moments, writes the three and the new weight: 14 bytes each way per
  // parameter with 2-byte gradients and weights, here as seven 2-byte tensors.
  list.add("adam", StepPart::optimizer, Pass::forward,
           ElementwiseShape{
               .elements = parameters, .inputs = 7, .outputs = 7, .flops_per_element = 12, .dtype = DType::bf16},
           1);
}

}  // namespace foretoken::step
