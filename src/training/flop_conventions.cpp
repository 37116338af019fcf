#include "training/flop_conventions.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "model/step.h"
#include "model/weights.h"
#include "model/work.h"

namespace foretoken {
namespace {

// Add your line here; the name is what users type and tables of measurements say. P are the parameters a token is
// multiplied with, A = layers x heads x head size x sequence.
constexpr FlopConvention convention_list[] = {
    {"model-3x-causal-half", "6P + 6A: three forward passes; a query sees half of the keys (Megatron-Bridge)",
     [](const TokenFlops& f) { return 3 * (f.layers + f.head + f.causal_attention); }},
    {"model-3x-full-attn", "6P + 12A: three forward passes; a query sees all keys (arXiv 2205.05198, NeMo 2024)",
     [](const TokenFlops& f) { return 3 * (f.layers + f.head + f.full_attention); }},
    {"hw-4x-full-attn", "8P + 16A: one more forward pass for full recomputation (MT-NLG)",
     [](const TokenFlops& f) { return 4 * (f.layers + f.head + f.full_attention); }},
    {"megatron",
     "like hw-4x-full-attn, but with the head counted three times: 96 B s L h^2 (1 + s/6h + V/16Lh) of arXiv "
     "2104.04473",
     [](const TokenFlops& f) { return 4 * (f.layers + f.full_attention) + 3 * f.head; }},
    {"llm-foundry", "6P + 12A, where P includes all parameters and embeddings",
     [](const TokenFlops& f) { return 6 * f.parameters + 3 * f.full_attention; }},
    {"lora-2x-causal-half", "4P + 6A: frozen weights have no gradient; adapters are not counted",
     [](const TokenFlops& f) { return 2 * (f.layers + f.head) + 3 * f.causal_attention; }},
    {"executed", "FLOPs that the kernels of forward, backward and recomputation execute",
     [](const TokenFlops& f) { return f.executed; }},
};

// Sums the operators of one sequence into per-token counts.
class OperatorCount {
 public:
  OperatorCount(TokenFlops& flops, const FlopQuestion& question)
      : flops_(flops),
        tokens_(static_cast<double>(question.sequence_length)),
        packing_(question.attended_length > 0 ? question.attended_length / tokens_ : 1),
        recomputed_(question.recomputed),
        recomputed_multiplies_(question.recomputed_multiplies),
        recomputed_modules_(question.recomputed_modules),
        expert_share_(question.expert_share) {}

  void add(const Operator& one) {
    operator_ = &one;
    std::visit(*this, one.shape);
  }

  void operator()(const AttentionShape& s) {
    const bool causal = s.causal && s.phase != AttentionPhase::encoder;
    const int64_t value_dim = s.value_dim > 0 ? s.value_dim : s.head_dim;
    add_attention(s.batch * s.q_len * s.heads, s.head_dim + value_dim, s.kv_len, s.window, causal);
  }
  void operator()(const LatentAttentionShape& s) {
    add_attention(s.batch * s.q_len * s.heads, s.nope_dim + s.rope_dim + s.value_dim, s.kv_len, s.top_k, true);
  }
  void operator()(const GemmShape&) { add_weights(); }
  void operator()(const MoeShape&) { add_weights(expert_share_); }
  void operator()(const LatentProjectionShape&) { add_weights(); }
  void operator()(const LinearAttentionShape&) { add_weights(); }
  template <class Shape>
  void operator()(const Shape&) {}  // what does not multiply is not counted

 private:
  bool is_forward() const { return operator_->pass == Pass::forward; }
  double calls_per_token() const { return static_cast<double>(operator_->count) / tokens_; }

  // `repeated`: share of the call that the backward pass of a layer repeats.
  double add_executed(double share, double repeated) {
    const double flops = share * calls_per_token() * count_work(operator_->shape).flops.value();
    const bool again = is_forward() && operator_->part != StepPart::head;
    flops_.executed += again ? flops * (1 + repeated) : flops;
    return flops;
  }
  // A model's FLOPs are of all tokens; `executed` is the share of them that multiply.
  void add_weights(double executed = 1) {
    const double of_modules = repeated_share(recomputed_modules_, operator_->name, operator_->part);
    const double flops = add_executed(executed, recomputed_ + recomputed_multiplies_ + of_modules) / executed;
    if (is_forward()) (operator_->part == StepPart::head ? flops_.head : flops_.layers) += flops;
  }
  // `width`: of scores and values of one query and key.
  void add_attention(int64_t queries, int64_t width, int64_t keys, int64_t window, bool causal) {
    add_executed(packing_, recomputed_);
    if (!is_forward()) return;
    const double reach = static_cast<double>(keys) * packing_;
    const double seen = window > 0 ? std::min(reach, static_cast<double>(window)) : reach;
    const double per_key = calls_per_token() * 2 * static_cast<double>(queries) * static_cast<double>(width);
    flops_.full_attention += per_key * seen;
    // The mean over queries i of min(i, seen).
    flops_.causal_attention += per_key * (causal ? seen - seen * seen / (2 * reach) : seen);
  }

  TokenFlops& flops_;
  double tokens_, packing_, recomputed_, recomputed_multiplies_;
  LayerModules recomputed_modules_;
  double expert_share_;
  const Operator* operator_ = nullptr;
};

void add_training_step(TokenFlops& flops, const Model& model, const FlopQuestion& question, const LoraAdapter& lora) {
  const StepRequest request{.phase = StepPhase::train,
                            .input_len = question.sequence_length,
                            .routing = Routing::balanced,
                            .lora = lora,
                            .optimizer = Optimizer::none};
  OperatorCount count(flops, question);
  for (const Operator& one : stage_operators(model, request, {}, 0)) count.add(one);
}

// All layers, each draft layer with the head once more.
void add_model(TokenFlops& flops, const Model& model, const FlopQuestion& question, const LoraAdapter& lora) {
  add_training_step(flops, model, question, lora);
  for (const Layer& layer : model.draft_layers) {
    Model draft = model;
    draft.layers = {layer};
    draft.encoder_layers.clear();
    add_training_step(flops, draft, question, lora);
  }
}

}  // namespace

TokenFlops token_flops(const Model& model, const FlopQuestion& question) {
  ensure(question.sequence_length >= 1, "a sequence has tokens");
  const ParameterCount parameters = count_parameters(model);
  TokenFlops flops{.parameters = parameters.total + parameters.draft};
  add_model(flops, model, question, {});
  if (question.lora.rank > 0) {
    TokenFlops adapted;
    add_model(adapted, model, question, question.lora);
    flops.executed = adapted.executed;
  }
  return flops;
}

std::span<const FlopConvention> flop_conventions() {
  return convention_list;
}

const FlopConvention* find_flop_convention(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(convention_list, [&](const FlopConvention& one) { return one.name == name; });
  return found == std::end(convention_list) ? nullptr : found;
}

const FlopConvention& flop_convention_named(std::string_view name) {
  if (const FlopConvention* found = find_flop_convention(name)) return *found;
  std::vector<std::string> names;
  for (const FlopConvention& one : convention_list) names.emplace_back(one.name);
  throw InputError({.source = "FLOP convention",
                    .value = std::string(name),
                    .expected = "the name of a FLOP convention",
                    .suggestion = nearest_name(name, names).value_or(names.front())});
}

FlopUse flop_use(const FlopConvention& convention, const TokenFlops& flops, double tokens_per_second_and_device,
                 const Device& device, DType peak_type) {
  const auto peak = device.peak_or_fallback(peak_type);
  const auto type = device.type_or_fallback(peak_type);
  if (!peak || !type) {
    throw InputError({.source = device.name,
                      .path = "dense_peak_tflops",
                      .value = std::string(dtype_name(peak_type)),
                      .expected = "a device with a peak for this number format or a wider one"});
  }
  const double model_rate = convention.per_token(flops) * tokens_per_second_and_device;
  return {.convention = convention.name,
          .peak_type = *type,
          .peak = *peak,
          .model_rate = FlopsPerSecond(model_rate),
          .mfu = model_rate / peak->value(),
          .hfu = flops.executed * tokens_per_second_and_device / peak->value()};
}

}  // namespace foretoken
