// Does a plan fit a model, and what does it mean for one rank?
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "model/step_internal.h"

namespace foretoken {
namespace {

using step::make_rank;
using step::Rank;

constexpr int64_t most_ranks = 1 << 20;
constexpr int64_t most_tokens = int64_t{1} << 31;  // so that tokens x keys stays a 64-bit number

[[noreturn]] void fail(const char* flag, int64_t value, std::string expected) {
  throw InputError({.source = flag, .value = std::to_string(value), .expected = std::move(expected)});
}

void require_between(const char* flag, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most) fail(flag, value, fmt::format("a number from {} to {}", least, most));
}

// Why `tensor` ranks cannot share this many of something; empty when they can.
std::string uneven(int64_t amount, std::string_view what, int64_t tensor) {
  if (amount % tensor == 0) return "";
  return fmt::format("{} {} do not divide by it", amount, what);
}

// The same for what may be replicated once there are more ranks than heads.
std::string uneven_or_replicated(int64_t amount, std::string_view what, int64_t tensor) {
  if (amount <= 0 || tensor % amount == 0) return "";
  return uneven(amount, what, tensor);
}

struct MixerCheck {
  int64_t tensor;

  std::string operator()(const std::monostate&) const { return ""; }
  std::string operator()(const Attention& a) const {
    const std::string heads = uneven(a.heads, "attention heads", tensor);
    return heads.empty() ? uneven_or_replicated(a.kv_heads, "key-value heads", tensor) : heads;
  }
  std::string operator()(const LatentAttention& a) const { return uneven(a.heads, "attention heads", tensor); }
  std::string operator()(const CompressedAttention& a) const {
    const std::string heads = uneven(a.heads, "attention heads", tensor);
    return heads.empty() ? uneven(a.output_groups, "output groups", tensor) : heads;
  }
  std::string operator()(const GatedDelta& a) const {
    const std::string keys = uneven(a.key_heads, "linear-attention key heads", tensor);
    return keys.empty() ? uneven(a.value_heads, "linear-attention value heads", tensor) : keys;
  }
  std::string operator()(const Lightning& a) const { return uneven(a.heads, "linear-attention heads", tensor); }
  std::string operator()(const Mamba2& a) const {
    const std::string heads = uneven(a.heads, "Mamba heads", tensor);
    return heads.empty() ? uneven_or_replicated(a.groups, "Mamba groups", tensor) : heads;
  }
};

struct FeedForwardCheck {
  const Rank& rank;

  std::string operator()(const std::monostate&) const { return ""; }
  std::string operator()(const Mlp& mlp) const { return uneven(mlp.width, "MLP channels", rank.tensor); }
  std::string operator()(const Moe& moe) const {
    std::string why = uneven(moe.width, "channels of an expert", rank.expert_tensor);
    if (why.empty() && !rank.dispatches()) why = uneven(moe.shared_width, "shared-expert channels", rank.tensor);
    if (why.empty() && !rank.dispatches()) why = uneven(moe.dense_width, "MLP channels", rank.tensor);
    return why;
  }
};

std::string layer_complaint(const Layer& layer, const Rank& rank) {
  std::string why = std::visit(MixerCheck{rank.tensor}, layer.mixer);
  if (why.empty() && layer.cross_attention) why = MixerCheck{rank.tensor}(*layer.cross_attention);
  if (why.empty()) why = std::visit(FeedForwardCheck{rank}, layer.feed_forward);
  return why;
}

// Calls `visit` for one of each run of equal layers.
void for_distinct_layers(const Model& model, const std::function<void(const Layer&)>& visit) {
  for (const std::vector<Layer>* stack : {&model.encoder_layers, &model.layers}) {
    const Layer* previous = nullptr;
    for (const Layer& layer : *stack) {
      if (previous == nullptr || !(layer == *previous)) visit(layer);
      previous = &layer;
    }
  }
}

std::string tensor_complaint(const Model& model, const ParallelPlan& plan) {
  const Rank rank = make_rank(plan);
  std::string why;
  for_distinct_layers(model, [&](const Layer& layer) {
    if (why.empty()) why = layer_complaint(layer, rank);
  });
  return why;
}

// Experts go into or over whole tensor groups, never across their borders.
std::string expert_complaint(const Model& model, const ParallelPlan& plan) {
  const bool inside = plan.tensor % plan.expert == 0;
  const bool across = plan.expert % plan.tensor == 0 && (plan.data * plan.context) % (plan.expert / plan.tensor) == 0;
  if (!inside && !across) {
    return fmt::format(
        "it neither divides the {} tensor ranks nor is a multiple of them that divides all {} ranks of a stage",
        plan.tensor, plan.tensor * plan.data * plan.context);
  }
  std::string why;
  bool any = false;
  for_distinct_layers(model, [&](const Layer& layer) {
    const Moe* moe = std::get_if<Moe>(&layer.feed_forward);
    if (moe == nullptr) return;
    any = true;
    if (why.empty()) why = uneven(moe->experts, "experts", plan.expert);
  });
  return any ? why : "the model has no experts";
}

using Complaint = std::string (*)(const Model&, const ParallelPlan&);

// Sizes up to `most` that a complaint has nothing against, for the message.
std::string sizes_that_work(const Model& model, ParallelPlan plan, int64_t ParallelPlan::*axis, int64_t most,
                            Complaint complaint) {
  std::string list;
  for (int64_t size = 1; size <= most; ++size) {
    plan.*axis = size;
    if (complaint(model, plan).empty()) list += (list.empty() ? "" : ", ") + std::to_string(size);
  }
  return list;
}

void check_request(const Model& model, const StepRequest& request) {
  require_between("--batch", request.batch, 1, most_tokens);
  require_between("--input-len", request.input_len, 1, most_tokens);
  require_between("--context-len", request.context_len, 0, most_tokens);
  require_between("--decoder-len", request.decoder_len, 0, most_tokens);
  require_between("context of prompts", request.prompt_context_len, 0, most_tokens);
  if (request.batch >
      most_tokens / (request.input_len + request.context_len + request.prompt_context_len + request.decoder_len)) {
    fail("--batch", request.batch, fmt::format("at most {} tokens in all sequences together", most_tokens));
  }
  if (request.phase == StepPhase::mixed) require_between("--prompts", request.prompts, 0, request.batch);
  require_between("--lora-rank", request.lora.rank, 0, 1 << 16);
  if ((request.phase == StepPhase::decode || request.phase == StepPhase::mixed) && model.is_encoder_only()) {
    throw InputError(
        {.source = "--phase",
         .value = request.phase == StepPhase::decode ? "decode" : "mixed",
         .expected = fmt::format("prefill or train: {} is an encoder and generates no tokens", model.name)});
  }
}

}  // namespace

namespace step {

Rank make_rank(const ParallelPlan& plan) {
  Rank rank{.tensor = plan.tensor, .context = plan.context, .data = plan.data, .expert_ranks = plan.expert};
  rank.sequence = plan.sequence && plan.tensor > 1;
  rank.expert_tensor = std::max<int64_t>(1, plan.tensor / plan.expert);
  rank.dispatch_groups = std::max<int64_t>(1, plan.expert / plan.tensor);
  rank.exchange = plan.exchange;
  return rank;
}

}  // namespace step

LayerRange stage_layers(int64_t layers, int64_t stages, int64_t stage) {
  const int64_t share = layers / stages, left = layers % stages;
  // Stages stages-1-left .. stages-2 hold one more.
  const int64_t first_larger = stages - 1 - left;
  const auto larger_before = [&](int64_t end) { return std::clamp<int64_t>(end - first_larger, 0, left); };
  return {.first = stage * share + larger_before(stage),
          .count = share + larger_before(stage + 1) - larger_before(stage)};
}

std::span<const Layer> layers_of_stage(const Model& model, const ParallelPlan& plan, int64_t stage) {
  const LayerRange range = stage_layers(static_cast<int64_t>(model.layers.size()), plan.pipeline, stage);
  return std::span(model.layers).subspan(static_cast<size_t>(range.first), static_cast<size_t>(range.count));
}

void check_step(const Model& model, const StepRequest& request, const ParallelPlan& plan) {
  ensure(!model.layers.empty(), "a model has layers");
  check_request(model, request);
  require_between("--tensor-parallel-size", plan.tensor, 1, most_ranks);
  require_between("--pipeline-parallel-size", plan.pipeline, 1, most_ranks);
  require_between("--data-parallel-size", plan.data, 1, most_ranks);
  require_between("--expert-parallel-size", plan.expert, 1, most_ranks);
  require_between("--context-parallel-size", plan.context, 1, most_ranks);

  const auto layers = static_cast<int64_t>(model.layers.size());
  if (plan.pipeline > layers) {
    fail("--pipeline-parallel-size", plan.pipeline, fmt::format("at most {}, one stage for each layer", layers));
  }
  if (!model.encoder_layers.empty()) {
    if (plan.pipeline > 1) fail("--pipeline-parallel-size", plan.pipeline, "1: an encoder-decoder runs on one stage");
    if (plan.context > 1) fail("--context-parallel-size", plan.context, "1: an encoder-decoder keeps sequences whole");
  }
  if (plan.expert > 1) {
    if (const std::string why = expert_complaint(model, plan); !why.empty()) {
      const int64_t most = std::min<int64_t>(1024, plan.tensor * plan.data * plan.context);
      const std::string sizes = sizes_that_work(model, plan, &ParallelPlan::expert, most, expert_complaint);
      fail("--expert-parallel-size", plan.expert, fmt::format("{}: {}", sizes.empty() ? "1" : "one of " + sizes, why));
    }
  }
  if (const std::string why = tensor_complaint(model, plan); !why.empty()) {
    fail("--tensor-parallel-size", plan.tensor,
         fmt::format("one of {}: {}", sizes_that_work(model, plan, &ParallelPlan::tensor, 256, tensor_complaint), why));
  }
}

}  // namespace foretoken
