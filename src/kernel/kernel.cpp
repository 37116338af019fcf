#include "kernel/kernel.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "kernel/forms/call.h"
#include "kernel/forms/cdna.h"
#include "kernel/roofline.h"
#include "model/shape_hash.h"

namespace foretoken {

Bytes cold_bytes(const KernelShape& shape, const Work& work) {
  const auto* linear = std::get_if<LinearAttentionShape>(&shape);
  const bool remembers = std::holds_alternative<AttentionShape>(shape) ||
                         std::holds_alternative<MixedAttentionShape>(shape) ||
                         std::holds_alternative<LatentAttentionShape>(shape) || (linear != nullptr && linear->decode);
  return work.weights_read + (remembers ? work.activations_read : Bytes(0));
}

namespace {

// Cards that run above their sheet differ by so much among themselves (held_clock_factor).
constexpr double clock_between_cards = 1.1;

// A learned time may not beat the multiply units, which run at `clock` times the sheet's, nor DRAM where the data
// cannot be in the cache.
double physical_least_seconds(const KernelShape& shape, const Work& work, const Roofline& roof, const Device& device,
                              Caches caches, double clock = 1) {
  double compute = roof.compute.value() * roof.wave_efficiency / clock;  // full waves
  // Winograd F(2x2, 3x3) does 16 multiplies for 36.
  if (const auto* conv = std::get_if<ConvShape>(&shape)) {
    if (conv->kernel_height == 3 && conv->kernel_width == 3 && conv->stride == 1) compute *= 16.0 / 36;
  }
  const double cache = device.last_level_cache ? device.last_level_cache->value.value() : 0;
  if (work.bytes().value() > 2 * cache) return std::max(compute, roof.memory.value());
  if (caches == Caches::benchmark) return compute;
  return std::max(compute, (cold_bytes(shape, work) / device.memory_bandwidth->value).value());
}

// Without fp4 units engines keep nvfp4 weights in four bits and multiply in sixteen (Marlin): the call as weight-only.
// Nothing for every other call.
std::optional<KernelShape> as_weight_only(const KernelShape& shape, const Device& device) {
  const auto* gemm = std::get_if<GemmShape>(&shape);
  const auto* moe = std::get_if<MoeShape>(&shape);
  const bool is_fp4 =
      (gemm != nullptr && gemm->scheme == Scheme::nvfp4) || (moe != nullptr && moe->scheme == Scheme::nvfp4);
  if (!is_fp4 || device.type_or_fallback(DType::fp4) == DType::fp4) return std::nullopt;
  KernelShape run = shape;
  if (gemm != nullptr) std::get<GemmShape>(run).scheme = Scheme::int4_wo;
  if (moe != nullptr) std::get<MoeShape>(run).scheme = Scheme::int4_wo;
  return run;
}

// Marlin, which vLLM and SGLang run in linear layers, was measured nowhere, TensorRT-LLM's kernels on A100 (1.0
// to 1.1). Whole runs of prompts and decodes on A100 took 1.1 to 1.6 times as long with FP8 and AWQ as in bf16
// (gpustack's performance lab, Qwen3-14B and 32B): an assumption, not a fit.
constexpr Estimate marlin_factor{.value = 1.2, .low = 1, .high = 1.4, .kind = Confidence::extrapolated};

// The call with its weights in sixteen bits, in which weight-only kernels multiply. Nothing for other calls.
std::optional<KernelShape> with_unpacked_weights(const KernelShape& shape) {
  const auto unpacked = [](auto call) -> std::optional<KernelShape> {
    const SchemeFacts& scheme = facts(call.scheme);
    if (scheme.math != DType::bf16 || scheme.weight_bytes >= facts(Scheme::bf16).weight_bytes) return std::nullopt;
    call.scheme = Scheme::bf16;
    return KernelShape(call);
  };
  if (const auto* gemm = std::get_if<GemmShape>(&shape)) return unpacked(*gemm);
  if (const auto* moe = std::get_if<MoeShape>(&shape)) return unpacked(*moe);
  return std::nullopt;
}

class DeratedSheet final : public DescribedKernels {
 public:
  // `widest`: the interval reaches at most that factor from the value; 0 = as far as the derates say.
  DeratedSheet(Device device, SheetDerates derates, double widest = 0, bool only_forward = false)
      : device_(std::move(device)), derates_(std::move(derates)), widest_(widest), only_forward_(only_forward) {}

  Time time(const KernelShape& shape) const override {
    const Roofline roof = roofline(shape, count_work(shape), device_);
    Estimate seconds = derates_.seconds(derate_group(shape), roof.compute.value(), roof.memory.value());
    if (widest_ > 0) {
      seconds.low = std::max(seconds.low, seconds.value / widest_);
      seconds.high = std::min(seconds.high, seconds.value * widest_);
    }
    return {.seconds = seconds};
  }
  bool describes(const KernelShape& shape) const override { return !only_forward_ || !is_backward(shape); }
  const SheetDerates* derates() const override { return &derates_; }

 private:
  Device device_;
  SheetDerates derates_;
  double widest_;
  bool only_forward_;
};

bool is_decode_attention(const KernelShape& shape) {
  if (const auto* one = std::get_if<AttentionShape>(&shape)) return one->phase == AttentionPhase::decode;
  if (const auto* latent = std::get_if<LatentAttentionShape>(&shape)) return latent->phase == AttentionPhase::decode;
  const auto* mixed = std::get_if<MixedAttentionShape>(&shape);
  return mixed != nullptr && mixed->decodes > 0 && mixed->prompt_count() == 0;
}

bool has_prompts_and_decodes(const KernelShape& shape) {
  const auto* mixed = std::get_if<MixedAttentionShape>(&shape);
  return mixed != nullptr && mixed->decodes > 0 && mixed->prompt_count() > 0;
}

// At least `least`, and the interval at least `least_low`.
Estimate at_least(const Estimate& estimate, double least, double least_low) {
  if (estimate.value >= least && estimate.low >= least_low) return estimate;
  Estimate result = estimate.value < least ? scaled(estimate, least / estimate.value) : estimate;
  result.value = std::max(result.value, least);  // whatever the division rounded
  result.low = std::max(result.low, least_low);
  result.high = std::max(result.high, result.value);
  return result;
}
Estimate at_least(const Estimate& estimate, double least) {
  return at_least(estimate, least, least);
}

}  // namespace

// Estimates of one predictor that were asked for before. When full it starts again from none.
class EstimateMemory {
 public:
  std::optional<KernelEstimate> find(const KernelShape& shape, std::string_view variant) const {
    const std::scoped_lock lock(mutex_);
    const auto found = kept_.find(CallView{shape, variant});
    return found == kept_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(const KernelShape& shape, std::string_view variant, const KernelEstimate& estimate) {
    constexpr size_t most_kept = 16384;  // some megabytes
    const std::scoped_lock lock(mutex_);
    if (kept_.size() >= most_kept) kept_.clear();
    kept_.emplace(Call{shape, std::string(variant)}, estimate);
  }

 private:
  struct Call {
    KernelShape shape;
    std::string variant;
  };
  struct CallView {
    const KernelShape& shape;
    std::string_view variant;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Call& call) const { return (*this)(CallView{call.shape, call.variant}); }
    size_t operator()(const CallView& call) const {
      return shape_hash(call.shape) ^ std::hash<std::string_view>()(call.variant);
    }
  };
  struct Equal {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return a.variant == b.variant && a.shape == b.shape;
    }
  };
  mutable std::mutex mutex_;
  std::unordered_map<Call, KernelEstimate, Hash, Equal> kept_;
};

std::string_view bound_name(Bound bound) {
  return bound == Bound::compute ? "compute" : "memory";
}

KernelPredictor::KernelPredictor(Device device, RooflineIntervals intervals,
                                 std::shared_ptr<const LearnedKernels> learned, Tier tier, Caches caches,
                                 ErrorCorrelations correlations)
    : device_(std::move(device)),
      intervals_(std::move(intervals)),
      learned_(std::move(learned)),
      tier_(tier),
      caches_(caches),
      correlations_(std::move(correlations)) {
  if (!device_.memory_bandwidth || device_.memory_bandwidth->value.value() <= 0) {
    throw InputError({.source = device_.name,
                      .path = "memory bandwidth",
                      .value = "(not known)",
                      .expected = "a device whose memory bandwidth is known: the roofline stands on it"});
  }
  const bool any_peak = std::any_of(device_.dense_peak.begin(), device_.dense_peak.end(),
                                    [](const auto& peak) { return peak.has_value(); });
  if (!any_peak) {
    throw InputError({.source = device_.name,
                      .path = "peak FLOP/s",
                      .value = "(not known)",
                      .expected = "a device with a known peak for at least one dtype"});
  }
}

KernelPredictor::KernelPredictor(Device device, std::shared_ptr<const DescribedKernels> described,
                                 RooflineIntervals intervals)
    : KernelPredictor(std::move(device), std::move(intervals)) {
  described_ = std::move(described);
}

std::shared_ptr<const DescribedKernels> derated_sheet(Device device, SheetDerates derates) {
  return std::make_shared<const DeratedSheet>(std::move(device), std::move(derates));
}

std::shared_ptr<const DescribedKernels> derated_sheet_of_measured(Device device, SheetDerates derates) {
  // What large multiplies reach on the GPUs behind the derates (docs/kernels.md, the port map), how far the derates of
  // attention were off on a GPU that they had not seen, and what is assumed for families that nobody measured.
  constexpr double usual_share = 0.68, attention_factor = 2, other_factor = 4;
  const bool amd = kernel_generation(device).amd;
  if (amd) {
    const DeviceTraits traits = traits_of(device).traits;
    for (size_t type = 0; type < device.dense_peak.size(); ++type) {
      const double share = reached_share(traits, static_cast<DType>(type)) / usual_share;
      if (device.dense_peak[type] && share < 1) device.dense_peak[type]->value = device.dense_peak[type]->value * share;
    }
  }
  // Constants of training on NVIDIA were fitted over the bare roofline of backward passes that nobody measured.
  return std::make_shared<const DeratedSheet>(std::move(device), std::move(derates),
                                              amd ? attention_factor : other_factor, !amd);
}

KernelPredictor KernelPredictor::with_description(std::shared_ptr<const DescribedKernels> described) const {
  KernelPredictor predictor = *this;
  if (tier_ != Tier::roofline) predictor.described_ = std::move(described);
  predictor.memory_ = nullptr;  // that of other answers
  return predictor;
}

KernelPredictor KernelPredictor::with_computing_memory(std::shared_ptr<const DescribedKernels> in_memory) const {
  KernelPredictor predictor = *this;
  predictor.in_memory_ = std::move(in_memory);
  predictor.memory_ = nullptr;  // that of other answers
  return predictor;
}

bool KernelPredictor::runs_in_memory(const KernelShape& shape) const {
  return in_memory_ != nullptr && is_decode_attention(shape);
}

std::vector<std::string> KernelPredictor::notes() const {
  std::vector<std::string> sentences;
  if (described_) sentences = described_->notes();
  if (!in_memory_) return sentences;
  sentences.push_back("Attention of decode steps runs in the memory; everything else runs on the device.");
  for (std::string& own : in_memory_->notes()) sentences.push_back(std::move(own));
  return sentences;
}

KernelEstimate KernelPredictor::in_memory(const KernelShape& shape) const {
  KernelEstimate result{.work = count_work(shape)};
  const Roofline roof = roofline(shape, result.work, device_);
  result.compute = roof.compute;
  result.memory = roof.memory;  // as if it left the memory
  result.bound = roof.compute > roof.memory ? Bound::compute : Bound::memory;
  result.seconds = in_memory_->time(shape).seconds;
  result.tier = Tier::mapped;
  return result;
}

KernelPredictor KernelPredictor::remembering() const {
  KernelPredictor predictor = *this;
  if (!predictor.memory_) predictor.memory_ = std::make_shared<EstimateMemory>();
  return predictor;
}

KernelEstimate KernelPredictor::estimate(const KernelShape& shape, std::string_view variant,
                                         LearnedBasis* basis) const {
  if (!memory_ || basis != nullptr) return work_out(shape, variant, basis);
  if (const std::optional<KernelEstimate> known = memory_->find(shape, variant)) return *known;
  const KernelEstimate estimate = work_out(shape, variant, basis);
  memory_->keep(shape, variant, estimate);
  return estimate;
}

KernelEstimate KernelPredictor::work_out(const KernelShape& shape, std::string_view variant,
                                         LearnedBasis* basis) const {
  if (const std::optional<KernelShape> run = as_weight_only(shape, device_)) return work_out(*run, {}, basis);
  if (runs_in_memory(shape)) return in_memory(shape);
  if (in_memory_ && has_prompts_and_decodes(shape)) {
    const auto& both = std::get<MixedAttentionShape>(shape);
    KernelEstimate result = work_out(simplest_shape(prompts_of(both)), variant, basis);
    const KernelEstimate decodes = in_memory(decodes_of(both));
    result.seconds = sum_of_correlated(std::vector{result.seconds, decodes.seconds});
    result.work = count_work(shape);
    return result;
  }
  KernelEstimate result{.work = count_work(shape)};
  const Roofline roof = roofline(shape, result.work, device_);
  result.compute = roof.compute;
  result.memory = roof.memory;
  result.waves = roof.waves;
  result.wave_efficiency = roof.wave_efficiency;
  result.bound = roof.compute > roof.memory ? Bound::compute : Bound::memory;
  const double clock = device_.held_clock_factor ? device_.held_clock_factor->value : 1;
  const double least = physical_least_seconds(shape, result.work, roof, device_, caches_, clock);
  if (learned_) {
    if (const std::optional<LearnedTime> learned = learned_->estimate(shape, variant, tier_, basis)) {
      const double least_low = device_.held_clock_factor ? physical_least_seconds(shape, result.work, roof, device_,
                                                                                  caches_, clock * clock_between_cards)
                                                         : least;
      result.seconds = at_least(learned->seconds, least, least_low);
      result.tier = learned->tier;
      result.inside_envelope = learned->inside_envelope;
      if (result.tier != Tier::measured) result.seconds = no_faster_than_unpacked(result.seconds, shape, variant);
      return result;
    }
  }
  if (described_ && described_->describes(shape)) {
    const DescribedKernels::Time described = described_->time(shape);
    result.seconds = at_least(described.seconds, least);
    result.tier = described.mapped ? Tier::mapped : Tier::roofline;
    result.derated = described_->derates() != nullptr;
    return result;
  }
  const double seconds = std::max(roof.compute, roof.memory).value();
  const IntervalFactors factors = intervals_.factors(family_name(shape), seconds);
  const Estimate bound = {
      .value = seconds, .low = seconds * factors.low, .high = seconds * factors.high, .kind = Confidence::roofline};
  // The factors were measured with warm caches.
  result.seconds = caches_ == Caches::cold ? at_least(bound, std::min(least, seconds)) : bound;
  return result;
}

// Weight-only kernels of another device may have been closer to its peak than this one's come.
Estimate KernelPredictor::no_faster_than_unpacked(const Estimate& seconds, const KernelShape& shape,
                                                  std::string_view variant) const {
  const std::optional<KernelShape> unpacked = with_unpacked_weights(shape);
  if (!unpacked) return seconds;
  const KernelEstimate wide = work_out(*unpacked, {}, nullptr);
  // Only multiplying takes as long; there are fewer bytes to read.
  const double multiplying = wide.seconds.value * std::min(1.0, wide.compute / wide.memory);
  const bool is_marlin =
      std::holds_alternative<GemmShape>(shape) && variant.empty() && kernel_generation(device_).weight_only_kernels;
  const double least = multiplying * (is_marlin ? marlin_factor.value : 1);
  if (seconds.value >= least) return seconds;
  Estimate slower = scaled(seconds, least / seconds.value);
  if (is_marlin) {
    slower.low = std::min(slower.low, multiplying * marlin_factor.low);
    slower.high = std::max(slower.high, multiplying * marlin_factor.high);
  }
  return slower;
}

bool KernelPredictor::is_known_by_sheet_only() const {
  if (described_ && described_->derates() == nullptr) return false;
  if (!learned_) return true;
  for (const Scheme scheme : {Scheme::bf16, Scheme::fp32}) {
    if (!device_.type_or_fallback(facts(scheme).math)) continue;
    const GemmShape usual{.m = 64, .n = 4096, .k = 4096, .scheme = scheme};
    return !learned_->estimate(usual, {}, Tier::best);
  }
  return true;
}

void KernelPredictor::estimate_batch(std::span<const KernelShape> shapes, std::span<const std::string_view> variants,
                                     std::span<KernelEstimate> estimates) const {
  ensure(shapes.size() == estimates.size() && (variants.empty() || variants.size() == shapes.size()),
         "every call of a batch has its place");
  for (size_t i = 0; i < shapes.size(); ++i)
    estimates[i] = estimate(shapes[i], variants.empty() ? std::string_view() : variants[i]);
}

}  // namespace foretoken
