#include "serving/steps/composed_steps.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/hashed_index.h"
#include "compose/calibrated_stack.h"
#include "compose/computing_memory.h"
#include "compose/linear_kernels.h"
#include "compose/step_estimate.h"
#include "compose/two_batch.h"
#include "serving/steps/size_grid.h"

namespace foretoken {
namespace {

constexpr int64_t frame_grid = 64;  // tokens

// Kernels that read the cache.
struct Reader {
  KernelShape shape;  // MixedAttentionShape without sequences, or LatentAttentionShape
  std::string variant;
  double count = 1;                     // times the stack's factor
  bool prompts = true, decodes = true;  // what it reads of a step
};

bool reads_cache(const KernelShape& shape) {
  return std::holds_alternative<AttentionShape>(shape) || std::holds_alternative<MixedAttentionShape>(shape) ||
         std::holds_alternative<LatentAttentionShape>(shape);
}

// Sparse and compressed layers: prompts take the form of decodes, each query with keys of its own.
bool chooses_keys(const KernelShape& shape) {
  const auto* latent = std::get_if<LatentAttentionShape>(&shape);
  return latent != nullptr && latent->phase == AttentionPhase::decode && latent->q_len > 1;
}

// What choosing keys takes grows with the context as well.
bool chooses_keys(const Launch& launch) {
  return launch.name == "index_scores" || launch.name == "index_top_k";
}

// The kernel of one sequence for several.
KernelShape for_sequences(KernelShape shape, int64_t sequences) {
  if (auto* latent = std::get_if<LatentAttentionShape>(&shape)) latent->batch *= sequences;
  if (auto* plain = std::get_if<AttentionShape>(&shape)) plain->batch *= sequences;
  if (auto* scores = std::get_if<GemmShape>(&shape)) scores->batch *= sequences;
  if (auto* choice = std::get_if<ElementwiseShape>(&shape)) choice->elements *= sequences;
  return shape;
}

Estimate between(const Estimate& a, const Estimate& b, double share) {
  const auto mix = [&](double x, double y) { return x + (y - x) * share; };
  return {.value = mix(a.value, b.value),
          .low = mix(a.low, b.low),
          .high = mix(a.high, b.high),
          .kind = std::max(a.kind, b.kind)};
}

// A step without attention and head: what the device needs, the routed experts' part of that with what goes to them and
// back, and the time of the host where it cannot launch as fast.
struct Frame {
  Estimate device;
  double experts = 0;
  double host = 0;
  double gaps = 0;                             // of the device's, between kernels
  double collectives = 0, expert_kernels = 0;  // of the device's
  HalfStep half;                               // where a step of twice as many tokens runs as two batches
};

HalfStep between(const HalfStep& a, const HalfStep& b, double share) {
  if (a.layers == 0) return a;  // steps run as one batch
  const auto mix = [&](double x, double y) { return x + (y - x) * share; };
  HalfStep mixed = a;
  for (size_t i = 0; i < HalfStep::parts; ++i) {
    mixed.alone[i] = mix(a.alone[i], b.alone[i]);
    mixed.beside[i] = mix(a.beside[i], b.beside[i]);
  }
  for (double HalfStep::*part : {&HalfStep::serial, &HalfStep::gaps, &HalfStep::dispatch, &HalfStep::combine,
                                 &HalfStep::dispatch_on_device, &HalfStep::combine_on_device, &HalfStep::slowed}) {
    mixed.*part = mix(a.*part, b.*part);
  }
  return mixed;
}

Frame between(const Frame& a, const Frame& b, double share) {
  const auto mix = [&](double x, double y) { return x + (y - x) * share; };
  return {.device = between(a.device, b.device, share),
          .experts = mix(a.experts, b.experts),
          .host = mix(a.host, b.host),
          .gaps = mix(a.gaps, b.gaps),
          .collectives = mix(a.collectives, b.collectives),
          .expert_kernels = mix(a.expert_kernels, b.expert_kernels),
          .half = between(a.half, b.half, share)};
}

bool serves_experts(const Operator& call) {
  const auto* collective = std::get_if<CollectiveShape>(&call.shape);
  return std::holds_alternative<MoeShape>(call.shape) ||
         (collective != nullptr && collective->axis == ParallelAxis::expert);
}

// What was worked out, by size; stays where it is.
template <class Value>
class BySize {
 public:
  const Value* find(int64_t size) const {
    const int32_t* place = places_.find(static_cast<uint64_t>(size));
    return place != nullptr ? &values_[static_cast<size_t>(*place)] : nullptr;
  }
  const Value& add(int64_t size, Value value) {
    places_.put(static_cast<uint64_t>(size), static_cast<int32_t>(values_.size()));
    return values_.emplace_back(std::move(value));
  }

 private:
  HashedIndex places_;
  std::deque<Value> values_;
};

// The same kernel for no sequences yet.
KernelShape emptied(const KernelShape& shape) {
  if (const auto* one = std::get_if<AttentionShape>(&shape)) return empty_batch_like(*one);
  if (const auto* mixed = std::get_if<MixedAttentionShape>(&shape)) return prompts_of(decodes_of(*mixed));
  return shape;
}

class ComposedSteps final : public StepTimes {
 public:
  explicit ComposedSteps(ComposedStepsConfig config) : config_(std::move(config)) {
    prompt_readers_ = find_readers({.phase = StepPhase::prefill, .batch = 1, .input_len = 16});
    for (const Reader& reader : prompt_readers_) chooses_keys_ = chooses_keys_ || chooses_keys(reader.shape);
    if (config_.model.is_encoder_only()) return;  // its steps are prompts alone
    decode_readers_ = find_readers({.phase = StepPhase::decode, .batch = 2, .context_len = 16});
    mixed_readers_ =
        find_readers({.phase = StepPhase::mixed, .batch = 2, .input_len = 16, .context_len = 16, .prompts = 1});
  }

  Estimate step_seconds(const StepBatch& batch) override {
    const auto frame_of = [&](int64_t tokens) {
      return batch.prompts.empty() ? decode_frame(tokens) : prompt_frame(tokens);
    };
    Frame around = frame_of(batch.new_tokens());
    if (batch.tokens_of_all_ranks > 0 && around.experts > 0) {
      // The experts of all ranks work on the tokens of all of them.
      const int64_t ranks = config_.plan.expert / config_.plan.tensor;
      const double experts = frame_of(std::max<int64_t>(1, (batch.tokens_of_all_ranks + ranks - 1) / ranks)).experts;
      const double device = around.device.value;
      around.device = scaled(around.device, std::max(0.0, device - around.experts + experts) / device);
    }
    if (around.half.layers > 0 && batch.new_tokens() > 1) return two_batches(batch, around, frame_of);
    parts_.assign(1, around.device);
    if (const int64_t sampled = batch.sampled_tokens(); sampled > 0) {
      parts_.push_back(head_of(sampled));
    }
    const Estimate read = attention(batch);
    parts_.push_back(read);
    if (batch.drafted_tokens > 0) parts_.push_back(draft_attention(batch));
    const Estimate serial = with_host(around.host, batch, around, read.value);
    if (!may_run_beside_memory(batch)) return serial;
    const Estimate halves = beside_memory_of(batch, frame_of);
    return halves.value < serial.value ? halves : serial;
  }

 private:
  bool may_run_beside_memory(const StepBatch& batch) const {
    const std::optional<ComputingMemory>& memory = config_.models.kernels.device().computing_memory;
    return memory && memory->beside && batch.prompts.empty() && batch.decodes > 1 && batch.drafted_tokens == 0 &&
           batch.tokens_of_all_ranks == 0;
  }

  // Half of the decodes on the device while the memory runs the attention of the others.
  template <class FrameOf>
  Estimate beside_memory_of(const StepBatch& batch, const FrameOf& frame_of) {
    const StepBatch fewer = half_of_decodes(batch);
    Frame half = frame_of(fewer.decodes);
    const Estimate read = attention(fewer);
    double layers = 0;
    for (const Reader& reader : decode_readers_) layers += reader.count;
    const double both = seconds_beside_memory(read.value, half.device.value, layers);
    const Estimate& longer = read.value > half.device.value ? read : half.device;
    parts_.assign(1, scaled(longer, both / longer.value));
    parts_.push_back(head_of(batch.sampled_tokens()));
    for (double Frame::*of_both : {&Frame::host, &Frame::gaps, &Frame::collectives, &Frame::expert_kernels}) {
      half.*of_both *= 2;
    }
    return with_host(half.host, batch, half, 2 * read.value);
  }

  static StepBatch half_of_decodes(const StepBatch& batch) {
    StepBatch fewer = batch;
    fewer.decodes = (batch.decodes + 1) / 2;
    fewer.decode_context_tokens = batch.decode_context_tokens * fewer.decodes / std::max<int64_t>(1, batch.decodes);
    return fewer;
  }

  // The sum of parts_, and at least what the host needs.
  Estimate with_host(double host, const StepBatch& batch, const Frame& around, double read) const {
    const Estimate device = sum_with_correlation(parts_, config_.models.kernels.correlations().between);
    if (config_.stack.posterior) {
      const double seconds = std::max(device.value, host);
      StepShares shares{.phase = batch.prompts.empty() ? StepPhase::decode : StepPhase::mixed,
                        .attention = read,
                        .experts = around.expert_kernels,
                        .collectives = around.collectives};
      shares.host = visible_host(config_.stack, seconds, seconds - device.value);
      shares.kernels = std::max(
          0.0, device.value - around.gaps - around.collectives - (config_.stack.asynchronous ? 0 : shares.host));
      return with_posterior(seconds, device.kind, *config_.stack.posterior, shares);
    }
    if (device.value >= host) return device;
    const StackCosts& costs = config_.stack.costs;
    return {.value = host,
            .low = std::max(device.low, host * costs.host_low),
            .high = std::max(device.high, host * costs.host_high),
            .kind = device.kind};
  }

  template <class FrameOf>
  Estimate two_batches(const StepBatch& batch, const Frame& whole, const FrameOf& frame_of) {
    const Frame half = frame_of((batch.new_tokens() + 1) / 2);
    HalfStep inside = half.half;
    if (batch.tokens_of_all_ranks > 0) {
      const int64_t halves = 2 * config_.plan.expert / config_.plan.tensor;
      const HalfStep mean = frame_of(std::max<int64_t>(1, (batch.tokens_of_all_ranks + halves - 1) / halves)).half;
      inside.alone[HalfStep::routed] = mean.alone[HalfStep::routed];
      inside.beside[HalfStep::routed] = mean.beside[HalfStep::routed];
      for (double HalfStep::*part : {&HalfStep::dispatch, &HalfStep::combine, &HalfStep::dispatch_on_device,
                                     &HalfStep::combine_on_device, &HalfStep::slowed, &HalfStep::lent}) {
        inside.*part = mean.*part;
      }
      inside.low_latency = mean.low_latency;
    }
    // Halves of prompts do half of the work; the kernel of half the decodes is less than twice as fast.
    Estimate read = attention(batch);
    const double read_by_half = batch.prompts.empty() ? attention(half_of_decodes(batch)).value : read.value / 2;
    inside.add_attention(read_by_half * inside.layer_share);
    const double outside = whole.device.value - whole.half.serial;
    parts_.assign(1, scaled(whole.device, std::max(0.0, outside) / whole.device.value));
    parts_.push_back(scaled(half.device, overlap(inside).seconds / half.device.value));
    parts_.push_back(scaled(read, 1 - inside.layer_share));
    if (const int64_t sampled = batch.sampled_tokens(); sampled > 0) {
      parts_.push_back(head_of(sampled));
    }
    if (batch.drafted_tokens > 0) parts_.push_back(draft_attention(batch));
    return with_host(2 * half.host, batch, whole, read.value);
  }

  template <class Value, class Compute>
  static const Value& kept(BySize<Value>& values, int64_t size, const Compute& compute) {
    const Value* found = values.find(size);
    return found != nullptr ? *found : values.add(size, compute(size));
  }

  static StepRequest decode_request(int64_t sequences) {
    return {.phase = StepPhase::decode, .batch = sequences, .context_len = 1};
  }

  ExecutionOptions options() const {
    return {.beside_memory = false, .times_only = true, .collectives = config_.models.collectives.get()};
  }

  StepEstimate estimate(StepRequest request) const {
    request.kv_dtype = config_.kv_dtype;
    return estimate_step(config_.model, request, config_.plan, config_.models.kernels, config_.stack, options());
  }

  Frame frame(const StepRequest& request) const {
    const StepEstimate step = estimate(request);
    const StackCosts& costs = config_.stack.costs;
    double apart = 0, host = 0, experts = 0, gaps = 0, collectives = 0, expert_kernels = 0;
    HalfStep half;
    for (size_t i = 0; i < step.stages.size(); ++i) {
      const StageEstimate& stage = step.stages[i];
      gaps += stage.time.launch_gap;
      if (config_.two_batch_overlap) {
        half += half_step(stage, static_cast<int64_t>(i), config_.models.kernels.device(),
                          config_.models.collectives.get(), false);
      }
      host += stage.time.host + costs.synchronize.value();
      const double serial = config_.stack.asynchronous ? 0 : costs.step_host.value();
      apart += stage.time.host_stall - std::min(stage.time.host_stall, serial);
      for (const TimedLaunch& timed : stage.launches) {
        const Operator& call = stage.calls[timed.launch.call];
        const bool in_head = call.part == StepPart::head;
        if (serves_experts(call)) experts += timed.seconds.value;
        if (!timed.kernel) collectives += timed.seconds.value;
        if (std::holds_alternative<MoeShape>(timed.launch.shape)) expert_kernels += timed.seconds.value;
        if (in_head || is_read_apart(timed.launch)) apart += timed.seconds.value;
      }
    }
    const double left = std::max(0.0, step.seconds.value - apart);
    return {.device = scaled(step.seconds, left / step.seconds.value),
            .experts = std::min(experts, left),
            .host = host,
            .gaps = gaps,
            .collectives = collectives,
            .expert_kernels = expert_kernels,
            .half = half};
  }

  // All decodes that a captured graph is padded for run the same kernels around attention and the head.
  int64_t captured_decodes(int64_t sequences) const {
    const bool is_captured = config_.stack.dispatch_of(StepPhase::decode, sequences) == Dispatch::graph;
    return is_captured ? config_.stack.padded_tokens(sequences).value_or(sequences) : sequences;
  }

  const Frame& decode_frame(int64_t sequences) {
    const int64_t alike = config_.two_batch_overlap ? sequences : captured_decodes(sequences);
    return kept(decode_frames_, alike, [&](int64_t n) { return frame(decode_request(n)); });
  }

  Frame prompt_frame(int64_t tokens) {
    const auto at = [&](int64_t size) -> const Frame& {
      return kept(prompt_frames_, size,
                  [&](int64_t n) { return frame({.phase = StepPhase::prefill, .batch = 1, .input_len = n}); });
    };
    if (const auto padded = config_.stack.padded_tokens(tokens)) return at(*padded);
    const int64_t lower = tokens / frame_grid * frame_grid;
    if (lower == tokens || lower == 0) return at(tokens);
    const double share = static_cast<double>(tokens - lower) / static_cast<double>(frame_grid);
    return between(at(lower), at(lower + frame_grid), share);
  }

  const Estimate& head_of(int64_t sequences) {
    return kept(heads_, captured_decodes(sequences), [&](int64_t n) { return head(n); });
  }
  Estimate head(int64_t sequences) const {
    StepRequest request = decode_request(sequences);
    request.kv_dtype = config_.kv_dtype;
    return estimate_head(config_.model, request, config_.plan, config_.models.kernels, config_.stack, options());
  }

  bool is_read_apart(const Launch& launch) const {
    return reads_cache(launch.shape) || (chooses_keys_ && chooses_keys(launch));
  }

  // Kernels that read the cache in a step of one sequence, as they are.
  std::vector<Reader> kernels_of(const StepRequest& request) const {
    std::vector<Reader> found;
    for (const StageEstimate& stage : estimate(request).stages) {
      for (const TimedLaunch& timed : stage.launches) {
        if (!is_read_apart(timed.launch)) continue;
        const double factor = config_.stack.kernel_factor(request.phase, timed.launch.shape);
        found.push_back({.shape = timed.launch.shape,
                         .variant = timed.launch.variant,
                         .count = static_cast<double>(timed.launch.count) * factor});
      }
    }
    return found;
  }

  // Which keys a sparse or compressed layer reads is the model's to say, for prompts and decodes apart.
  Estimate chosen_attention(const StepBatch& batch) {
    KernelSum kernels(config_.models.kernels.correlations());
    const auto add_all = [&](const std::vector<Reader>& readers, int64_t sequences) {
      for (const Reader& reader : readers) add(for_sequences(reader.shape, sequences), reader, kernels);
    };
    if (!batch.prompts.empty()) {  // equal ones
      const PromptChunk& chunk = batch.prompts.front();
      add_all(kernels_of({.phase = StepPhase::prefill,
                          .batch = 1,
                          .input_len = chunk.new_tokens,
                          .context_len = chunk.context_tokens}),
              static_cast<int64_t>(batch.prompts.size()));
    }
    if (batch.decodes > 0) add_all(decode_kernels(batch.decode_context_tokens / batch.decodes), batch.decodes);
    return kernels.total();
  }

  const std::vector<Reader>& decode_kernels(int64_t context) {
    return kept(decode_kernels_, context, [&](int64_t tokens) {
      return kernels_of({.phase = StepPhase::decode, .batch = 1, .context_len = tokens});
    });
  }

  std::vector<Reader> find_readers(const StepRequest& request) const {
    std::vector<Reader> found;
    for (const StageEstimate& stage : estimate(request).stages) {
      for (const TimedLaunch& timed : stage.launches) {
        const Launch& launch = timed.launch;
        if (reads_cache(launch.shape)) {
          const auto* one = std::get_if<AttentionShape>(&launch.shape);
          found.push_back(
              {.shape = emptied(launch.shape),
               .variant = launch.variant,
               .count = static_cast<double>(launch.count) * config_.stack.kernel_factor(request.phase, launch.shape),
               .prompts = one == nullptr || one->phase == AttentionPhase::prefill,
               .decodes = one == nullptr || one->phase == AttentionPhase::decode});
        }
      }
    }
    return found;
  }

  const std::vector<Reader>& readers(StepPhase phase) const {
    return phase == StepPhase::decode    ? decode_readers_
           : phase == StepPhase::prefill ? prompt_readers_
                                         : mixed_readers_;
  }

  Estimate attention(const StepBatch& batch) {
    const EqualChunks prompts = equal_chunks(batch.prompts);
    const auto count = static_cast<uint64_t>(prompts.count);
    const auto decodes = static_cast<double>(batch.decodes);
    const double context = batch.decodes > 0 ? static_cast<double>(batch.decode_context_tokens) / decodes : 0;
    // In units of an eighth of the mean, so that the grid has four steps to each doubling.
    const double longest =
        std::clamp(8 * static_cast<double>(batch.longest_decode_context) / std::max(1.0, context), 8.0, 512.0);
    const auto unequal_decodes = [](int64_t sequences, int64_t mean, int64_t eighths) {
      return StepBatch{.decodes = sequences,
                       .decode_context_tokens = sequences * mean,
                       .longest_decode_context = mean * eighths / 8,
                       .prompts = {}};
    };
    if (batch.prompts.empty()) {
      return decode_attention_.at(static_cast<uint64_t>(batch.decodes), {context, longest}, [&](const auto& node) {
        return attention_of(unequal_decodes(batch.decodes, node[0], node[1]));
      });
    }
    const auto equal_prompts = [&](int64_t tokens, int64_t context_each) {
      return std::vector<PromptChunk>(
          count, {.new_tokens = std::max<int64_t>(1, tokens), .context_tokens = context_each, .yields_token = true});
    };
    if (batch.decodes == 0) {
      return prompt_attention_.at(count, {prompts.new_tokens, prompts.context_tokens}, [&](const auto& node) {
        const std::vector<PromptChunk> chunks = equal_prompts(node[0], node[1]);
        return attention_of({.prompts = chunks});
      });
    }
    const std::array<double, 5> point{prompts.new_tokens, prompts.context_tokens, decodes, context, longest};
    return mixed_attention_.at(count, point, [&](const auto& node) {
      const std::vector<PromptChunk> chunks = equal_prompts(node[0], node[1]);
      StepBatch both = unequal_decodes(std::max<int64_t>(1, node[2]), node[3], node[4]);
      both.prompts = chunks;
      return attention_of(both);
    });
  }

  // What attention takes longer for its drafts than for one token of each decode, all contexts at their mean.
  Estimate draft_attention(const StepBatch& batch) {
    const int64_t queries = 1 + (batch.drafted_tokens + batch.decodes - 1) / batch.decodes;
    const double context = static_cast<double>(batch.decode_context_tokens) / static_cast<double>(batch.decodes);
    const auto kind = static_cast<uint64_t>(batch.decodes) << 16U | static_cast<uint64_t>(queries);
    return draft_attention_.at(kind, {context}, [&](const auto& node) {
      const Estimate drafts = verification_attention(batch.decodes, node[0], queries);
      const Estimate plain = verification_attention(batch.decodes, node[0], 1);
      return Estimate{.value = std::max(0.0, drafts.value - plain.value),
                      .low = std::max(0.0, drafts.low - plain.low),
                      .high = std::max(0.0, drafts.high - plain.high),
                      .kind = drafts.kind};
    });
  }

  // Decodes of `queries` tokens each.
  Estimate verification_attention(int64_t decodes, int64_t context, int64_t queries) {
    KernelSum kernels(config_.models.kernels.correlations());
    if (chooses_keys_) {
      for (const Reader& reader : decode_kernels(context)) {
        KernelShape shape = for_sequences(reader.shape, decodes);
        if (auto* latent = std::get_if<LatentAttentionShape>(&shape)) latent->q_len = queries;
        if (auto* scores = std::get_if<GemmShape>(&shape)) scores->m *= queries;
        if (auto* chosen = std::get_if<ElementwiseShape>(&shape)) chosen->elements *= queries;
        add(shape, reader, kernels);
      }
      return kernels.total();
    }
    for (const Reader& reader : decode_readers_) {
      if (const auto* mixed = std::get_if<MixedAttentionShape>(&reader.shape)) {
        MixedAttentionShape batch = *mixed;
        batch.add_decodes(decodes, context + queries);
        AttentionShape shape = equal_decodes(batch);
        shape.q_len = queries;
        add(shape, reader, kernels);
      } else {
        LatentAttentionShape shape = std::get<LatentAttentionShape>(reader.shape);
        shape.batch = decodes;
        shape.q_len = queries;
        shape.kv_len = context + queries;
        add(shape, reader, kernels);
      }
    }
    return kernels.total();
  }

  Estimate attention_of(const StepBatch& batch) {
    if (chooses_keys_) return chosen_attention(batch);
    const bool prompts = !batch.prompts.empty(), decodes = batch.decodes > 0;
    const StepPhase phase = prompts && decodes ? StepPhase::mixed : prompts ? StepPhase::prefill : StepPhase::decode;
    KernelSum kernels(config_.models.kernels.correlations());
    for (const Reader& reader : readers(phase)) {
      if (const auto* mixed = std::get_if<MixedAttentionShape>(&reader.shape)) {
        add_mixed(*mixed, reader, batch, kernels);
      } else {
        add_latent(std::get<LatentAttentionShape>(reader.shape), reader, batch, kernels);
      }
    }
    return kernels.total();
  }

  void add_mixed(MixedAttentionShape shape, const Reader& reader, const StepBatch& batch, KernelSum& kernels) const {
    for (const PromptChunk& chunk : reader.prompts ? batch.prompts : std::span<const PromptChunk>()) {
      shape.add_prompts(1, chunk.new_tokens, chunk.context_tokens + chunk.new_tokens);
    }
    if (reader.decodes && batch.decodes > 0) {
      shape.decodes = batch.decodes;
      shape.decode_keys = batch.decode_context_tokens + batch.decodes;
      shape.longest_decode = batch.longest_decode_context + 1;
    }
    if (shape.prompt_count() == 0 && shape.decodes == 0) return;
    if (shape.prompt_count() == 0 && shape.longest_decode * shape.decodes == shape.decode_keys) {
      add(equal_decodes(shape), reader, kernels);
      return;
    }
    if (shape.window > 0) {
      shape.decode_keys = std::min(shape.decode_keys, shape.window * shape.decodes);
      shape.longest_decode = std::min(shape.longest_decode, shape.window);
    }
    add(simplest_shape(shape), reader, kernels);
  }

  // Prompts and decodes run apart: a reader is for one or the other.
  void add_latent(LatentAttentionShape shape, const Reader& reader, const StepBatch& batch, KernelSum& kernels) const {
    if (shape.phase == AttentionPhase::decode) {
      if (batch.decodes == 0) return;
      shape.batch = batch.decodes;
      shape.kv_len = batch.decode_context_tokens / batch.decodes + 1;
      add(shape, reader, kernels);
      return;
    }
    shape.batch = 1;
    for (const PromptChunk& chunk : batch.prompts) {
      shape.q_len = chunk.new_tokens;
      shape.kv_len = chunk.context_tokens + chunk.new_tokens;
      add(shape, reader, kernels);
    }
  }

  void add(const KernelShape& shape, const Reader& reader, KernelSum& kernels) const {
    const KernelPredictor& kernels_of_device = config_.models.kernels;
    const auto* linear = std::get_if<GemmShape>(&shape);
    const KernelEstimate kernel = linear != nullptr
                                      ? linear_estimate(*linear, reader.variant, kernels_of_device, config_.stack)
                                      : kernels_of_device.estimate(shape, reader.variant);
    Estimate seconds = scaled(kernel.seconds, reader.count);
    seconds.low *= config_.stack.costs.kernels_low;
    seconds.high *= config_.stack.costs.kernels_high;
    kernels.add(seconds, error_form(shape, reader.variant));
  }

  ComposedStepsConfig config_;
  std::vector<Reader> decode_readers_, prompt_readers_, mixed_readers_;
  bool chooses_keys_ = false;                   // sparse or compressed layers
  BySize<std::vector<Reader>> decode_kernels_;  // of those, by context
  BySize<Frame> decode_frames_, prompt_frames_;
  BySize<Estimate> heads_;
  SizeGrid<2, 4> decode_attention_;  // by number of decodes: mean context, longest over mean
  SizeGrid<2, 4> prompt_attention_;  // by number of prompts: tokens and context of each
  SizeGrid<5, 2> mixed_attention_;   // the same, number and contexts of the decodes
  SizeGrid<1, 4> draft_attention_;   // by number of decodes and tokens of each: mean context
  std::vector<Estimate> parts_;      // scratch
};

}  // namespace

std::unique_ptr<StepTimes> compose_steps(ComposedStepsConfig config) {
  return std::make_unique<ComposedSteps>(std::move(config));
}

}  // namespace foretoken
