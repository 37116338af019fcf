// What one rank of a stage holds: weights, cache, optimizer state, activations.
#include <algorithm>

#include "base/error.h"
#include "model/expert_popularity.h"
#include "model/part_memory.h"
#include "model/step_internal.h"
#include "model/weights.h"
#include "model/work.h"

namespace foretoken {
namespace step {
namespace {

LocalWeights local_weights(const Model& model, const ParallelPlan& plan, int64_t stage) {
  const Rank rank = make_rank(plan);
  const bool first = stage == 0, last = stage == plan.pipeline - 1;
  LocalWeights sum;
  sum.expert_copies = mean_copies(model.expert_popularity.get());
  const auto add_layers = [&](std::span<const Layer> layers) {
    for (const LayerCount& group : distinct_layers(layers)) {
      for (const Weight& weight : layer_weights(model, local_layer(*group.layer, rank))) {
        sum.add(weight, rank, number(group.count));
      }
    }
  };
  if (first) {
    for (const Weight& weight : embedding_weights(model)) sum.add(weight, rank, 1);
    add_layers(model.encoder_layers);
  }
  add_layers(layers_of_stage(model, plan, stage));
  if (last) {
    for (const Weight& weight : head_weights(model)) sum.add(weight, rank, 1);
  }
  if (last && !first && model.has_head && model.tied_embeddings) {  // the stages are on different devices
    const double table = embedding_table_parameters(model, rank);
    sum.shared += table;
    sum.bytes += table * bytes_per_element(model.dtype);
  }
  return sum;
}

double local_cache_bytes(const Model& model, const StepRequest& request, const ParallelPlan& plan, int64_t stage) {
  const Rank rank = make_rank(plan);
  const StackTokens tokens = decoder_tokens(model, request, rank);
  double bytes = 0;
  for (const LayerCount& group : distinct_layers(layers_of_stage(model, plan, stage))) {
    const Model alone{.hidden = model.hidden, .layers = {local_layer(*group.layer, rank)}, .dtype = model.dtype};
    const double state = state_bytes(alone).value();
    const auto one_sequence = [&](int64_t context) {
      const double keys = cache_bytes(alone, context, request.kv_dtype).value() - state +
                          cross_cache_bytes(alone, tokens.encoder_len, request.kv_dtype).value();
      return keys / number(rank.context) + state;
    };
    double all = 0;
    if (tokens.prompts > 0) all += number(tokens.prompts) * one_sequence(tokens.prompt_keys());
    if (tokens.decodes > 0) all += number(tokens.decodes) * one_sequence(tokens.decode_keys());
    bytes += all * number(group.count);
  }
  return bytes;
}

double working_bytes(const Model& model, std::span<const ForwardOperator> forward, int64_t stream_rows) {
  const double activation = bytes_per_element(model.dtype);
  double most = 0;
  for (const ForwardOperator& one : forward) most = std::max(most, live_bytes(one.shape, activation));
  return most + 2 * number(stream_rows) * number(model.hidden) * activation;
}

// Everything saved; with recomputation the input of each layer, and the largest layer's own set while it is redone.
double saved_bytes(const Model& model, const StepRequest& request, const ParallelPlan& plan, int64_t stage) {
  const ModelParts parts = model_parts(model, request, plan);
  Bytes kept, inputs, largest;
  const auto add_layers = [&](std::span<const PartMemory> layers) {
    for (const PartMemory& layer : layers) {
      kept += layer.saved;
      inputs += layer.input;
      largest = std::max(largest, layer.saved);
    }
  };
  Bytes ends;
  if (stage == 0) {
    add_layers(parts.encoder_layers);
    ends += parts.embedding.saved;
  }
  if (stage == plan.pipeline - 1) ends += parts.head.saved + parts.head.logits;
  const LayerRange range = stage_layers(static_cast<int64_t>(model.layers.size()), plan.pipeline, stage);
  add_layers(std::span(parts.layers).subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.count)));
  return (ends + (request.recompute ? inputs + largest : kept)).value();
}

}  // namespace

TrainedParameters trained_parameters(std::span<const ForwardOperator> forward, const Model& model,
                                     const StepRequest& request, const ParallelPlan& plan, int64_t stage) {
  if (request.lora.rank > 0) return {.shared = adapter_parameters(forward)};
  const LocalWeights weights = local_weights(model, plan, stage);
  return {.shared = weights.shared, .experts = weights.experts};
}

}  // namespace step

RankMemory rank_memory(const Model& model, const StepRequest& request, const ParallelPlan& plan, int64_t stage) {
  check_step(model, request, plan);
  ensure(stage >= 0 && stage < plan.pipeline, "a stage is one of the plan's");
  const std::vector<step::ForwardOperator> forward = step::forward_operators(model, request, plan, stage);
  const double element = bytes_per_element(model.dtype);
  RankMemory memory;
  memory.weights = Bytes(step::local_weights(model, plan, stage).bytes + step::adapter_parameters(forward) * element);
  if (request.phase == StepPhase::train) {
    const step::TrainedParameters trained = step::trained_parameters(forward, model, request, plan, stage);
    memory.gradients_and_optimizer = Bytes((trained.shared + trained.experts) * (element + 12));
    memory.activations = Bytes(step::saved_bytes(model, request, plan, stage));
    return memory;
  }
  memory.kv_cache = Bytes(step::local_cache_bytes(model, request, plan, stage));
  const step::Rank rank = step::make_rank(plan);
  step::StackTokens tokens = step::decoder_tokens(model, request, rank);
  int64_t rows =
      std::max(tokens.tokens(), model.encoder_layers.empty() ? 0 : step::encoder_tokens(request, tokens).tokens());
  if (rank.sequence) rows = step::ceil_divide(rows, rank.tensor);
  memory.activations = Bytes(step::working_bytes(model, forward, rows));
  return memory;
}

std::vector<std::vector<CachePart>> rank_cache(const Model& model, DType kv_dtype, const ParallelPlan& plan,
                                               int64_t stage) {
  const step::Rank rank = step::make_rank(plan);
  std::vector<std::vector<CachePart>> layers;
  for (const Layer& layer : layers_of_stage(model, plan, stage)) {
    layers.push_back(layer_cache(model, step::local_layer(layer, rank), kv_dtype));
    for (CachePart& part : layers.back()) part.per_token = part.per_token / step::number(rank.context);
  }
  return layers;
}

}  // namespace foretoken
