#include "compose/decode_steps.h"

#include <utility>

#include "base/error.h"

namespace foretoken {
namespace {

// The keys of a sequence, where the shape reads the cache; nothing else.
int64_t* keys_of(KernelShape& shape) {
  if (auto* attention = std::get_if<AttentionShape>(&shape)) return &attention->kv_len;
  if (auto* latent = std::get_if<LatentAttentionShape>(&shape)) return &latent->kv_len;
  return nullptr;
}

}  // namespace

// One batch size: the time of what never changes, and the kernels that read the cache.
struct DecodeSteps::Prepared {
  KernelSum fixed;
  struct Reader {
    KernelShape shape;
    std::string variant;
    double count = 1;
    std::string_view form;
  };
  std::vector<Reader> readers;
  double gaps = 0, host = 0;  // seconds
};

DecodeSteps::DecodeSteps(Model model, ParallelPlan plan, KernelPredictor predictor, Stack stack)
    : model_(std::move(model)),
      plan_(plan),
      predictor_(std::move(predictor)),
      stack_(std::move(stack)),
      kernels_(predictor_.correlations()) {
  ensure(plan_.pipeline == 1, "decode steps are kept for one stage");
}
DecodeSteps::~DecodeSteps() = default;

const DecodeSteps::Prepared& DecodeSteps::prepared(int64_t batch) {
  std::unique_ptr<Prepared>& slot = by_batch_[batch];
  if (slot) return *slot;
  const StepRequest request{.phase = StepPhase::decode, .batch = batch, .context_len = 1, .kv_dtype = model_.dtype};
  const StepEstimate step = estimate_step(model_, request, plan_, predictor_, stack_);
  ensure(step.dispatch == Dispatch::graph || step.dispatch == Dispatch::fused, "such a step runs as one graph");
  const StageEstimate& stage = step.stages.front();
  auto made = std::make_unique<Prepared>(Prepared{.fixed = KernelSum(predictor_.correlations())});
  made->host = stage.time.host_stall;
  const StackCosts& costs = stack_.costs;
  if (step.dispatch == Dispatch::graph) made->gaps = costs.graph_start.value() + costs.synchronize.value();
  for (const TimedLaunch& timed : stage.launches) {
    const auto count = static_cast<double>(timed.launch.count);
    if (step.dispatch == Dispatch::graph) made->gaps += costs.graph_gap.value() * count;
    KernelShape shape = timed.launch.shape;
    const std::string_view form = error_form(shape, timed.launch.variant);
    if (keys_of(shape) == nullptr) {
      made->fixed.add(timed.seconds, form);
    } else {
      made->readers.push_back({shape, timed.launch.variant, count, form});
    }
  }
  slot = std::move(made);
  return *slot;
}

Estimate DecodeSteps::seconds(int64_t batch, int64_t context_len) {
  const Prepared& known = prepared(batch);
  kernels_ = known.fixed;
  const double factor = stack_.kernel_factor(StepPhase::decode);
  for (const Prepared::Reader& reader : known.readers) {
    KernelShape shape = reader.shape;
    *keys_of(shape) += context_len - 1;  // it was prepared with one token of context
    kernels_.add(scaled(predictor_.estimate(shape, reader.variant).seconds, reader.count * factor), reader.form);
  }
  const Estimate kernels = kernels_.total();
  const double low = kernels.low * stack_.costs.kernels_low, high = kernels.high * stack_.costs.kernels_high;
  return {.value = kernels.value + known.gaps + known.host,
          .low = low + known.gaps + known.host * stack_.costs.host_low,
          .high = high + known.gaps + known.host * stack_.costs.host_high,
          .kind = kernels.kind};
}

}  // namespace foretoken
