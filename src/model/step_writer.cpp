#include <utility>

#include "model/step_internal.h"

namespace foretoken::step {

ForwardOperator& Writer::add(std::string_view name, StepPart part, KernelShape shape, double saved_bytes) {
  return operators_.emplace_back(ForwardOperator{
      .name = name, .part = part, .shape = std::move(shape), .saved_bytes = training() ? saved_bytes : 0});
}

void Writer::linear(const Linear& linear) {
  const LoraAdapter& lora = request_.lora;
  const bool adapted = lora.rank > 0 && ((linear.adapted == Adapted::attention && lora.on_attention) ||
                                         (linear.adapted == Adapted::mlp && lora.on_mlp));
  // A frozen matrix needs no input to find the gradient of its input; its adapter does.
  const bool needs_input = lora.rank == 0 || adapted;
  const int64_t cut = linear.from_stream && rank_.sequence ? rank_.tensor : 1;
  const double input =
      linear.shares_input || !needs_input ? 0 : number(linear.m) * number(linear.k) * activation_bytes() / number(cut);
  add(linear.name, linear.part, GemmShape{.m = linear.m, .n = linear.n, .k = linear.k, .scheme = linear.scheme}, input);
  if (!adapted) return;
  const Scheme plain = plain_scheme(model_.dtype);
  const int64_t width = linear.slices * lora.rank;
  add(linear.name, linear.part, GemmShape{.m = linear.m, .n = width, .k = linear.k, .scheme = plain}).suffix =
      "_lora_a";
  add(linear.name, linear.part, GemmShape{.m = linear.m, .n = linear.n, .k = lora.rank, .scheme = plain},
      number(linear.m) * number(width) * activation_bytes())
      .suffix = "_lora_b";
}

ForwardOperator& Writer::norm(std::string_view name, StepPart part, int64_t rows, int64_t width, bool layer_norm,
                              bool adds_residual) {
  return add(name, part,
             NormShape{.rows = rows,
                       .width = width,
                       .layer_norm = layer_norm,
                       .adds_residual = adds_residual,
                       .dtype = model_.dtype},
             number(rows) * number(width) * activation_bytes());
}

void Writer::activation(std::string_view name, StepPart part, int64_t rows, int64_t width, bool gated) {
  add(name, part, ActivationShape{.rows = rows, .width = width, .gated = gated, .dtype = model_.dtype},
      number(rows) * number(width) * (gated ? 2 : 1) * activation_bytes());
}

ForwardOperator& Writer::collective(std::string_view name, CollectiveKind kind, ParallelAxis axis, int64_t ranks,
                                    double bytes) {
  return add(name, StepPart::communication,
             CollectiveShape{.kind = kind, .axis = axis, .ranks = ranks, .bytes = bytes});
}

void Writer::open_block() {
  if (!rank_.sequence) return;
  collective("tp_all_gather", CollectiveKind::all_gather, ParallelAxis::tensor, rank_.tensor, stream_bytes());
}

void Writer::close_block() {
  if (rank_.tensor == 1) return;
  if (rank_.sequence) {
    collective("tp_reduce_scatter", CollectiveKind::reduce_scatter, ParallelAxis::tensor, rank_.tensor, stream_bytes());
  } else {
    collective("tp_all_reduce", CollectiveKind::all_reduce, ParallelAxis::tensor, rank_.tensor, stream_bytes());
  }
}

void OperatorList::add(std::string name, StepPart part, Pass pass, const KernelShape& shape, int64_t count) {
  if (count <= 0) return;
  for (Operator& known : operators_) {
    if (known.name == name && known.pass == pass && known.shape == shape) {
      known.count += count;
      return;
    }
  }
  operators_.push_back({.name = std::move(name), .part = part, .pass = pass, .count = count, .shape = shape});
}

}  // namespace foretoken::step
