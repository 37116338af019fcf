// Does a plan fit a model, and what does it mean for one rank?
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "model/expert_popularity.h"
#include "model/step_internal.h"

namespace foretoken {
namespace {

using step::make_rank;
using step::Rank;

constexpr int64_t most_ranks = 1 << 20;
constexpr int64_t most_tokens = int64_t{1} << 31;  // so that tokens x keys stays a 64-bit number

[[noreturn]] void fail(const char* field, int64_t value, std::string expected) {
  throw InputError({.field = field, .value = std::to_string(value), .expected = std::move(expected)});
}

void require_between(const char* field, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most) fail(field, value, fmt::format("a number from {} to {}", least, most));
}

// Collects what cannot be shared evenly, each complaint once.
class Complaints {
 public:
  void share(int64_t amount, std::string_view what, int64_t ranks) {
    if (amount % ranks != 0) add(fmt::format("{} {} do not divide by it", amount, what));
  }
  // The same for what is replicated once there are more ranks than heads.
  void share_or_replicate(int64_t amount, std::string_view what, int64_t ranks) {
    if (amount > 0 && ranks % amount != 0) share(amount, what, ranks);
  }
  void add(std::string why) {
    if (std::find(all_.begin(), all_.end(), why) == all_.end()) all_.push_back(std::move(why));
  }
  std::vector<std::string> take() { return std::move(all_); }

 private:
  std::vector<std::string> all_;
};

struct MixerCheck {
  Complaints& complaints;
  int64_t tensor;

  void operator()(const std::monostate&) const {}
  void operator()(const Attention& a) const {
    complaints.share(a.heads, "attention heads", tensor);
    complaints.share_or_replicate(a.kv_heads, "key-value heads", tensor);
  }
  void operator()(const LatentAttention& a) const { complaints.share(a.heads, "attention heads", tensor); }
  void operator()(const CompressedAttention& a) const {
    complaints.share(a.heads, "attention heads", tensor);
    complaints.share(a.output_groups, "output groups", tensor);
  }
  void operator()(const GatedDelta& a) const {
    complaints.share(a.key_heads, "linear-attention key heads", tensor);
    complaints.share(a.value_heads, "linear-attention value heads", tensor);
  }
  void operator()(const Lightning& a) const { complaints.share(a.heads, "linear-attention heads", tensor); }
  void operator()(const Mamba2& a) const {
    complaints.share(a.heads, "Mamba heads", tensor);
    complaints.share_or_replicate(a.groups, "Mamba groups", tensor);
  }
  void operator()(const ShortConvolution& a) const { complaints.share(a.width, "convolution channels", tensor); }
};

struct FeedForwardCheck {
  Complaints& complaints;
  const Rank& rank;

  void operator()(const std::monostate&) const {}
  void operator()(const Mlp& mlp) const { complaints.share(mlp.width, "MLP channels", rank.tensor); }
  void operator()(const Moe& moe) const {
    complaints.share(moe.width, "channels of an expert", rank.expert_tensor);
    if (rank.dispatches()) return;
    complaints.share(moe.shared_width, "shared-expert channels", rank.tensor);
    complaints.share(moe.dense_width, "MLP channels", rank.tensor);
  }
};

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

void complain_of_tensor(const Model& model, const Rank& rank, Complaints& complaints) {
  for_distinct_layers(model, [&](const Layer& layer) {
    std::visit(MixerCheck{complaints, rank.tensor}, layer.mixer);
    if (layer.cross_attention) MixerCheck{complaints, rank.tensor}(*layer.cross_attention);
    std::visit(FeedForwardCheck{complaints, rank}, layer.feed_forward);
  });
}

// Experts go into or over whole tensor groups, never across their borders.
void complain_of_experts(const Model& model, const ParallelPlan& plan, Complaints& complaints) {
  if (plan.expert == 1) return;
  bool any = false;
  for_distinct_layers(model, [&](const Layer& layer) { any = any || std::holds_alternative<Moe>(layer.feed_forward); });
  if (!any) return complaints.add("the model has no experts");
  const bool inside = plan.tensor % plan.expert == 0;
  const bool across = plan.expert % plan.tensor == 0 && (plan.data * plan.context) % (plan.expert / plan.tensor) == 0;
  if (!inside && !across) {
    complaints.add(fmt::format(
        "it neither divides the {} tensor ranks nor is a multiple of them that divides all {} ranks of a stage",
        plan.tensor, plan.tensor * plan.data * plan.context));
  }
  const int64_t copies = model.expert_popularity != nullptr ? model.expert_popularity->redundant : 0;
  for_distinct_layers(model, [&](const Layer& layer) {
    const Moe* moe = std::get_if<Moe>(&layer.feed_forward);
    if (moe == nullptr) return;
    complaints.share(moe->experts + copies, copies > 0 ? "experts and copies of them" : "experts", plan.expert);
  });
}

// Sizes up to `most` that nothing speaks against, for the message.
std::string sizes_that_work(const Model& model, ParallelPlan plan, int64_t ParallelPlan::*axis, int64_t most) {
  std::string list;
  for (int64_t size = 1; size <= most; ++size) {
    plan.*axis = size;
    const std::vector<PlanComplaint> complaints = plan_complaints(model, plan);
    const bool works = std::none_of(complaints.begin(), complaints.end(),
                                    [&](const PlanComplaint& complaint) { return complaint.axis == axis; });
    if (works) list += (list.empty() ? "" : ", ") + std::to_string(size);
  }
  return list;
}

// How copies of experts would make them divide; empty where they do not help.
std::string copies_that_help(const Model& model, const ParallelPlan& plan) {
  int64_t experts = 0;
  for_distinct_layers(model, [&](const Layer& layer) {
    if (const Moe* moe = std::get_if<Moe>(&layer.feed_forward)) experts = moe->experts;
  });
  const bool has_copies = model.expert_popularity != nullptr && model.expert_popularity->redundant > 0;
  const bool goes_across = plan.expert % plan.tensor == 0 && plan.tensor * plan.data * plan.context % plan.expert == 0;
  if (has_copies || experts == 0 || !goes_across || experts % plan.expert == 0) return "";
  const int64_t copies = plan.expert - experts % plan.expert;
  return fmt::format("; or set {{num_redundant_experts}} to {}, because {} experts and copies divide by it", copies,
                     experts + copies);
}

void throw_complaint(const Model& model, const ParallelPlan& plan, const PlanComplaint& complaint) {
  struct Axis {
    int64_t ParallelPlan::*axis;
    const char* field;
    int64_t most;  // size worth naming
  };
  const Axis axes[] = {
      {&ParallelPlan::tensor, "tensor_parallel_size", 256},
      {&ParallelPlan::pipeline, "pipeline_parallel_size", 1},
      {&ParallelPlan::expert, "expert_parallel_size", std::min<int64_t>(1024, plan.tensor * plan.data * plan.context)},
      {&ParallelPlan::context, "context_parallel_size", 1},
  };
  for (const Axis& one : axes) {
    if (one.axis != complaint.axis) continue;
    const std::string sizes = sizes_that_work(model, plan, one.axis, one.most);
    const std::string copies = one.axis == &ParallelPlan::expert ? copies_that_help(model, plan) : "";
    fail(one.field, plan.*one.axis,
         fmt::format("{}{}: {}{}", sizes == "1" ? "" : "one of ", sizes, complaint.why, copies));
  }
  ensure(false, "complaints are about an axis listed here");
}

void check_request(const Model& model, const StepRequest& request) {
  require_between("batch", request.batch, 1, most_tokens);
  require_between("input_len", request.input_len, 1, most_tokens);
  require_between("context_len", request.context_len, 0, most_tokens);
  require_between("decoder_len", request.decoder_len, 0, most_tokens);
  require_between("context of prompts", request.prompt_context_len, 0, most_tokens);
  if (request.batch >
      most_tokens / (request.input_len + request.context_len + request.prompt_context_len + request.decoder_len)) {
    fail("batch", request.batch, fmt::format("at most {} tokens in all sequences together", most_tokens));
  }
  if (request.phase == StepPhase::mixed) require_between("prompts", request.prompts, 0, request.batch);
  require_between("lora_rank", request.lora.rank, 0, 1 << 16);
  if ((request.phase == StepPhase::decode || request.phase == StepPhase::mixed) && model.is_encoder_only()) {
    throw InputError(
        {.field = "phase",
         .value = request.phase == StepPhase::decode ? "decode" : "mixed",
         .expected = fmt::format("prefill or train: {} is an encoder and generates no tokens", model.name)});
  }
}

}  // namespace

namespace step {

Rank make_rank(const ParallelPlan& plan) {
  Rank rank{.tensor = plan.tensor, .context = plan.context, .data = plan.data, .expert_ranks = plan.expert};
  rank.sequence = plan.sequence && plan.tensor > 1;
  rank.expert_tensor = expert_tensor_ranks(plan);
  rank.dispatch_groups = lock_step_ranks(plan);
  rank.exchange = plan.exchange;
  rank.exchange_kernels = plan.exchange_kernels;
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

std::vector<PlanComplaint> plan_complaints(const Model& model, const ParallelPlan& plan) {
  std::vector<PlanComplaint> all;
  const auto add = [&](int64_t ParallelPlan::*axis, Complaints complaints) {
    for (std::string& why : complaints.take()) all.push_back({.axis = axis, .why = std::move(why)});
  };
  if (!model.encoder_layers.empty()) {
    if (plan.pipeline > 1) all.push_back({&ParallelPlan::pipeline, "an encoder-decoder runs on one stage"});
    if (plan.context > 1) all.push_back({&ParallelPlan::context, "an encoder-decoder keeps sequences whole"});
  }
  Complaints experts, tensor;
  complain_of_experts(model, plan, experts);
  add(&ParallelPlan::expert, std::move(experts));
  complain_of_tensor(model, make_rank(plan), tensor);
  add(&ParallelPlan::tensor, std::move(tensor));
  return all;
}

std::string cut_scale_blocks(const Model& model, const ParallelPlan& plan) {
  constexpr int64_t block = 128;
  const Rank rank = make_rank(plan);
  std::string sentence;
  const auto check = [&](Scheme scheme, int64_t width, std::string_view what, int64_t ranks) {
    if (scheme != Scheme::fp8_block || ranks == 1 || width / ranks % block == 0 || !sentence.empty()) return;
    sentence = fmt::format(
        "the checkpoint has one scale for each block of {} x {} fp8 weights, so engines cannot load the {} of {} "
        "{} that each of {} ranks would hold",
        block, block, width / ranks, width, what, ranks);
  };
  for_distinct_layers(model, [&](const Layer& layer) {
    if (const Mlp* mlp = std::get_if<Mlp>(&layer.feed_forward)) {
      check(model.scheme, mlp->width, "MLP channels", rank.tensor);
    }
    if (const Moe* moe = std::get_if<Moe>(&layer.feed_forward)) {
      check(model.expert_scheme, moe->width, "channels of an expert", rank.expert_tensor);
      if (!rank.dispatches()) check(model.scheme, moe->shared_width, "shared-expert channels", rank.tensor);
    }
  });
  return sentence;
}

void check_step(const Model& model, const StepRequest& request, const ParallelPlan& plan) {
  ensure(!model.layers.empty(), "a model has layers");
  check_request(model, request);
  require_between("tensor_parallel_size", plan.tensor, 1, most_ranks);
  require_between("pipeline_parallel_size", plan.pipeline, 1, most_ranks);
  require_between("data_parallel_size", plan.data, 1, most_ranks);
  require_between("expert_parallel_size", plan.expert, 1, most_ranks);
  require_between("context_parallel_size", plan.context, 1, most_ranks);

  const auto layers = static_cast<int64_t>(model.layers.size());
  if (plan.pipeline > layers) {
    fail("pipeline_parallel_size", plan.pipeline, fmt::format("at most {}, one stage for each layer", layers));
  }
  const std::vector<PlanComplaint> complaints = plan_complaints(model, plan);
  if (!complaints.empty()) throw_complaint(model, plan, complaints.front());
}

}  // namespace foretoken
