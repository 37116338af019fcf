#include "serving/steps/attention_ffn_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/portable_math.h"
#include "compose/step_estimate.h"
#include "serving/steps/size_grid.h"

namespace foretoken {
namespace {

int64_t share(int64_t whole, int64_t parts) {
  return (whole + parts - 1) / parts;
}

// Bytes of one token on its way to the pool, all layers together, each direction.
struct TokenBytes {
  double out = 0, back = 0;
};

TokenBytes token_bytes(const Model& model, int64_t devices) {
  TokenBytes sum;
  const SchemeFacts& experts = facts(model.expert_scheme);
  const double plain = bytes_per_element(model.dtype);
  for (const Layer& layer : model.layers) {
    if (std::holds_alternative<std::monostate>(layer.feed_forward)) continue;
    const double values = token_copies(layer, devices) * static_cast<double>(model.hidden);
    const bool quantized = std::holds_alternative<Moe>(layer.feed_forward) && experts.quantizes_activations;
    sum.out += values * (quantized ? experts.activation_bytes : plain);
    sum.back += values * plain;
  }
  return sum;
}

class AttentionFfnSteps final : public StepTimes {
 public:
  AttentionFfnSteps(ComposedStepsConfig attention, FfnPool pool)
      : pool_(std::move(pool)),
        layers_(static_cast<int64_t>(attention.model.layers.size())),
        token_bytes_(token_bytes(attention.model, pool_.devices)),
        attention_devices_(attention.plan.tensor * pool_.attention_groups),
        ffn_model_(ffn_part(attention.model)),
        ffn_plan_(ffn_plan(attention.model, pool_)),
        stack_(attention.stack) {
    ensure(attention.plan.pipeline == 1, "micro-batches take the place of pipeline stages");
    attention.model = attention_part(std::move(attention.model));
    attention_ = compose_steps(std::move(attention));
  }

  Estimate step_seconds(const StepBatch& batch) override {
    const int64_t micro_batches = std::clamp<int64_t>(batch.new_tokens(), 1, pool_.micro_batches);
    const int64_t tokens = share(batch.new_tokens(), micro_batches);
    const Estimate attention = attention_->step_seconds(cut(batch, micro_batches * pool_.attention_groups));
    const Estimate ffn = ffn_seconds(tokens, !batch.prompts.empty());
    const auto layers = static_cast<double>(layers_);
    const auto total = [&](double attention_s, double ffn_s) {
      return ping_pong_seconds({.attention = attention_s / layers,
                                .ffn = ffn_s / layers,
                                .dispatch = transfer_seconds(token_bytes_.out, tokens),
                                .combine = transfer_seconds(token_bytes_.back, tokens)},
                               micro_batches, layers_);
    };
    return {.value = total(attention.value, ffn.value),
            .low = total(attention.low, ffn.low),
            .high = total(attention.high, ffn.high),
            .kind = std::max(attention.kind, ffn.kind)};
  }

 private:
  // One of `parts` equal parts. A prompt is cut too: the context of its parts is on average half of it longer.
  StepBatch cut(const StepBatch& batch, int64_t parts) {
    prompts_.clear();
    for (const PromptChunk& chunk : batch.prompts) {
      const int64_t tokens = share(chunk.new_tokens, parts);
      prompts_.push_back({.new_tokens = tokens,
                          .context_tokens = chunk.context_tokens + (chunk.new_tokens - tokens) / 2,
                          .yields_token = chunk.yields_token});
    }
    StepBatch one = batch;
    one.decodes = share(batch.decodes, parts);
    if (batch.decodes > 0) one.decode_context_tokens = batch.decode_context_tokens * one.decodes / batch.decodes;
    one.drafted_tokens = share(batch.drafted_tokens, parts);
    one.prompts = prompts_;
    return one;
  }

  // Of one layer, through whichever ports are the narrower.
  double transfer_seconds(double bytes_of_token, int64_t tokens) const {
    const double bytes = bytes_of_token / static_cast<double>(layers_) * static_cast<double>(tokens);
    const double port = std::min(pool_.attention_port.value() * static_cast<double>(attention_devices_),
                                 pool_.ffn_port.value() * static_cast<double>(pool_.devices));
    return bytes / port + pool_.latency.value();
  }

  Estimate ffn_seconds(int64_t tokens, bool prompts) {
    return ffn_.at(prompts ? 1 : 0, {static_cast<double>(tokens)}, [&](const auto& node) {
      const int64_t count = std::max<int64_t>(1, node[0]);
      StepRequest request{.phase = StepPhase::decode, .batch = count, .context_len = 1};
      if (prompts) request = {.phase = StepPhase::prefill, .batch = 1, .input_len = count};
      return ffn_only(estimate_step(ffn_model_, request, ffn_plan_, pool_.models.kernels, stack_,
                                    {.collectives = pool_.models.collectives.get()}));
    });
  }

  // Without collectives, whose place the transfers take, and what only the attention side does.
  static Estimate ffn_only(const StepEstimate& step) {
    const StageEstimate& stage = step.stages.front();
    double apart = stage.time.host_stall;
    for (const TimedLaunch& timed : stage.launches) {
      const StepPart part = stage.calls[timed.launch.call].part;
      if (part != StepPart::feed_forward && part != StepPart::experts) apart += timed.seconds.value;
    }
    return scaled(step.seconds, std::max(0.0, step.seconds.value - apart) / step.seconds.value);
  }

  FfnPool pool_;
  int64_t layers_;
  TokenBytes token_bytes_;
  int64_t attention_devices_;
  Model ffn_model_;
  ParallelPlan ffn_plan_;
  Stack stack_;
  std::unique_ptr<StepTimes> attention_;
  SizeGrid<1, 4> ffn_;  // by tokens, with and without prompts
  std::vector<PromptChunk> prompts_;
};

}  // namespace

Model attention_part(Model model) {
  for (Layer& layer : model.layers) {
    layer.feed_forward = std::monostate();
    layer.norms = (layer.norms + 1) / 2;
    layer.parallel = false;
  }
  return model;
}

Model ffn_part(Model model) {
  for (Layer& layer : model.layers) {
    layer.mixer = std::monostate();
    layer.cross_attention.reset();
    layer.norms /= 2;
    layer.parallel = false;
  }
  model.has_head = model.final_norm = false;
  model.vocabulary = 1;
  return model;
}

ParallelPlan ffn_plan(const Model& model, const FfnPool& pool) {
  ParallelPlan plan{.tensor = pool.devices};
  bool divides = false;
  for (const Layer& layer : model.layers) {
    const Moe* moe = std::get_if<Moe>(&layer.feed_forward);
    divides = divides || (moe != nullptr && moe->experts % pool.devices == 0);
  }
  if (divides) plan.expert = pool.devices;
  return plan;
}

double token_copies(const Layer& layer, int64_t devices) {
  const auto all = static_cast<double>(devices);
  const Moe* moe = std::get_if<Moe>(&layer.feed_forward);
  if (moe == nullptr) return all;
  return all * (1 - portable_pow(1 - 1 / all, static_cast<double>(moe->top_k)));
}

double ping_pong_seconds(const PingPongStages& stages, int64_t micro_batches, int64_t layers) {
  const double slowest = std::max({stages.attention, stages.ffn, stages.dispatch, stages.combine});
  const double through = stages.attention + stages.ffn + stages.dispatch + stages.combine;
  const auto count = static_cast<double>(micro_batches);
  return static_cast<double>(layers - 1) * std::max(count * slowest, through) + through + (count - 1) * slowest;
}

std::unique_ptr<StepTimes> attention_ffn_steps(ComposedStepsConfig attention, FfnPool pool) {
  return std::make_unique<AttentionFfnSteps>(std::move(attention), std::move(pool));
}

}  // namespace foretoken
