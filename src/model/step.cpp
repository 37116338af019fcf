#include "model/step.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "model/step_internal.h"
#include "model/work.h"

namespace foretoken {
namespace step {

StackTokens decoder_tokens(const Model& model, const StepRequest& request, const Rank& rank) {
  StackTokens tokens{.context_ranks = rank.context};
  switch (request.phase) {
    case StepPhase::prefill:
    case StepPhase::train:
      tokens.prompts = request.batch;
      break;
    case StepPhase::decode:
      tokens.decodes = request.batch;
      break;
    case StepPhase::mixed:
      tokens.prompts = request.prompts;
      tokens.decodes = request.batch - request.prompts;
      break;
  }
  tokens.prompt_len = request.input_len;
  tokens.prompt_context = request.phase == StepPhase::prefill ? request.context_len
                          : request.phase == StepPhase::mixed ? request.prompt_context_len
                                                              : 0;
  tokens.decode_context = request.context_len;
  if (!model.encoder_layers.empty()) {
    tokens.encoder_len = request.input_len;
    tokens.prompt_len = request.phase == StepPhase::train ? request.input_len : 1;
    if (request.decoder_len > 0) tokens.prompt_len = request.decoder_len;
  }
  return tokens;
}

StackTokens encoder_tokens(const StepRequest& request, const StackTokens& decoder) {
  return {.prompts = decoder.prompts, .prompt_len = request.input_len, .context_ranks = decoder.context_ranks};
}

std::vector<LayerCount> distinct_layers(std::span<const Layer> layers) {
  std::vector<LayerCount> distinct;
  for (const Layer& layer : layers) {
    // Neighbours are often equal, or one apart: look from the back.
    const auto known = std::find_if(distinct.rbegin(), distinct.rend(),
                                    [&](const LayerCount& other) { return *other.layer == layer; });
    if (known == distinct.rend()) {
      distinct.push_back({.layer = &layer, .count = 1});
    } else {
      ++known->count;
    }
  }
  return distinct;
}

namespace {

class StageBuilder {
 public:
  StageBuilder(const Model& model, const StepRequest& request, const Rank& rank)
      : model_(model), request_(request), rank_(rank) {}

  // Operators outside the layers, each called once.
  template <class Write>
  void write_once(const StackTokens& tokens, const Write& write) {
    Writer writer(model_, request_, rank_, tokens);
    write(writer);
    std::vector<ForwardOperator> part = writer.take();
    std::move(part.begin(), part.end(), std::back_inserter(operators_));
  }

  // `starts_stack`: the first layer has no block before it whose result its first norm would add to the stream.
  void write_layers(const StackTokens& tokens, std::span<const Layer> layers, bool starts_stack) {
    if (layers.empty() || tokens.tokens() == 0) return;
    for (const LayerCount& group : distinct_layers(layers)) {
      Writer writer(model_, request_, rank_, tokens);
      write_layer(writer, *group.layer);
      for (ForwardOperator& one : writer.take()) {
        one.in_layer = true;
        one.count *= group.count;
        NormShape* norm = std::get_if<NormShape>(&one.shape);
        const bool alone = starts_stack && one.first_norm && norm != nullptr && norm->adds_residual;
        if (alone) {
          ForwardOperator first = one;
          std::get<NormShape>(first.shape).adds_residual = false;
          first.count = 1;
          operators_.push_back(std::move(first));
          if (--one.count == 0) continue;
        }
        operators_.push_back(std::move(one));
      }
      starts_stack = false;  // the first group holds the first layer
    }
  }

  std::vector<ForwardOperator> take() { return std::move(operators_); }

 private:
  const Model& model_;
  const StepRequest& request_;
  const Rank& rank_;
  std::vector<ForwardOperator> operators_;
};

int64_t residual_streams(const Writer& writer) {
  return std::max(1, writer.model().layers.back().hyper_streams);
}

// Engines send each tensor rank's share of what all of them hold, and gather it behind the link (vLLM and SGLang,
// send_tensor_dict with an all_gather_group).
bool sends_shares(const Writer& writer) {
  return !writer.training() && writer.rank().tensor > 1 && !writer.rank().sequence;
}

// What crosses to the next stage. Engines that fuse the residual add into the next norm send stream and block output
// apart (vLLM's IntermediateTensors); training sends one tensor, and its gradient back.
void write_send(Writer& writer, bool back) {
  const int64_t streams = residual_streams(writer);
  const int64_t tensors = writer.training() || streams > 1 ? streams : 2;
  const double bytes =
      number(writer.stream_rows() * tensors) * number(writer.model().hidden) * writer.activation_bytes();
  ForwardOperator& send = writer.collective("pp_send", CollectiveKind::send_recv, ParallelAxis::pipeline, 2,
                                            sends_shares(writer) ? bytes / number(writer.rank().tensor) : bytes);
  (back ? send.forward : send.backward) = false;
}

// All streams of hyper-connections are one tensor; else stream and block output are gathered one after the other.
void write_receive(Writer& writer) {
  if (!sends_shares(writer)) return;
  const int64_t streams = residual_streams(writer);
  writer
      .collective("pp_all_gather", CollectiveKind::all_gather, ParallelAxis::tensor, writer.rank().tensor,
                  number(streams) * writer.stream_bytes())
      .count = streams > 1 ? 1 : 2;
}

}  // namespace

std::vector<ForwardOperator> forward_operators(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                                               int64_t stage) {
  const Rank rank = make_rank(plan);
  const StackTokens tokens = decoder_tokens(model, request, rank);
  const LayerRange range = stage_layers(static_cast<int64_t>(model.layers.size()), plan.pipeline, stage);
  const std::span<const Layer> layers =
      std::span(model.layers).subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.count));
  const bool first = stage == 0, last = stage == plan.pipeline - 1;
  const bool norm_first = model.final_norm;  // else norms come after their block and always add

  StageBuilder builder(model, request, rank);
  const StackTokens encoder = encoder_tokens(request, tokens);
  if (!model.encoder_layers.empty() && encoder.tokens() > 0) {
    builder.write_once(encoder, write_embedding);
    builder.write_layers(encoder, model.encoder_layers, norm_first);
    builder.write_once(encoder, [](Writer& writer) { write_final_norm(writer, "encoder_final_norm"); });
  }
  if (first) builder.write_once(tokens, write_embedding);
  if (!first && request.phase == StepPhase::train) {
    builder.write_once(tokens, [](Writer& writer) { write_send(writer, true); });
  }
  if (!first) builder.write_once(tokens, write_receive);
  builder.write_layers(tokens, layers, first && norm_first);
  if (last) builder.write_once(tokens, write_head);
  if (!last) builder.write_once(tokens, [](Writer& writer) { write_send(writer, false); });
  return builder.take();
}

}  // namespace step

namespace {
constexpr std::string_view phase_names[] = {"prefill", "decode", "mixed", "train"};
}  // namespace

std::string_view step_phase_name(StepPhase phase) {
  return phase_names[static_cast<size_t>(phase)];
}

std::vector<std::string> step_phase_names() {
  return {std::begin(phase_names), std::end(phase_names)};
}

std::optional<StepPhase> step_phase_from_name(std::string_view name) {
  const auto* found = std::find(std::begin(phase_names), std::end(phase_names), name);
  if (found == std::end(phase_names)) return std::nullopt;
  return static_cast<StepPhase>(found - std::begin(phase_names));
}

std::string_view step_part_name(StepPart part) {
  switch (part) {
    case StepPart::embedding:
      return "embedding";
    case StepPart::attention:
      return "attention";
    case StepPart::feed_forward:
      return "feed_forward";
    case StepPart::experts:
      return "experts";
    case StepPart::head:
      return "head";
    case StepPart::communication:
      return "communication";
    case StepPart::optimizer:
      return "optimizer";
  }
  ensure(false, "every part of a step has a name");
  return "";
}

std::vector<Operator> stage_operators(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                                      int64_t stage) {
  check_step(model, request, plan);
  ensure(stage >= 0 && stage < plan.pipeline, "a stage is one of the plan's");
  const std::vector<step::ForwardOperator> forward = step::forward_operators(model, request, plan, stage);
  step::OperatorList list;
  for (const step::ForwardOperator& one : forward) {
    if (one.forward) list.add(one.full_name(), one.part, Pass::forward, one.shape, one.count);
  }
  if (request.phase == StepPhase::train) {
    step::add_backward(list, forward, model, request, plan);
    step::add_optimizer(list, forward, model, request, plan, stage);
  }
  return list.take();
}

Flops model_flops(const Model& model, const StepRequest& request) {
  StepRequest base = request;
  base.lora = {};  // adapters are not the model's
  check_step(model, base, {});
  Flops sum;
  for (const step::ForwardOperator& one : step::forward_operators(model, base, {}, 0)) {
    const bool counts =
        std::holds_alternative<GemmShape>(one.shape) || std::holds_alternative<AttentionShape>(one.shape) ||
        std::holds_alternative<MixedAttentionShape>(one.shape) ||
        std::holds_alternative<LatentAttentionShape>(one.shape) ||
        std::holds_alternative<LatentProjectionShape>(one.shape) || std::holds_alternative<MoeShape>(one.shape) ||
        std::holds_alternative<LinearAttentionShape>(one.shape);
    if (counts && one.forward) sum += count_work(one.shape).flops * step::number(one.count);
  }
  return sum;
}

Model with_scheme(Model model, Scheme linear, std::optional<Scheme> experts) {
  // MXFP4 checkpoints quantize routed experts alone (gpt-oss: modules_to_not_convert lists attention).
  const bool experts_alone = linear == Scheme::mxfp4_wo && !experts && model.has_experts();
  model.scheme = experts_alone ? plain_scheme(model.dtype) : linear;
  model.expert_scheme = experts.value_or(linear);
  model.attention_scheme.reset();
  return model;
}

}  // namespace foretoken
