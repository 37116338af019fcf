#include "compose/profile_run.h"

#include <algorithm>

#include "base/units.h"
#include "hardware/generation.h"

namespace foretoken {
namespace {

constexpr double number(int64_t count) {
  return static_cast<double>(count);
}

bool is_last(const ParallelPlan& plan, int64_t stage) {
  return stage == plan.pipeline - 1;
}

// Token ids, positions, sampling parameters and the like; what 14 profiled models on H100 had beside the rest.
constexpr double small_buffers = 13 * mebi;

// Two buffers over all token-expert pairs, as wide as the wider of what is read and written: of the hidden state and
// the activation, and of the hidden state and the first projection (vLLM, fused_moe/fused_moe.py, workspace_shapes).
double expert_buffers(const Model& model, std::span<const Layer> layers, const ParallelPlan& plan, int64_t tokens) {
  if (widens_mxfp4(model.expert_scheme)) return 0;  // their kernels allocate as they go
  const int64_t shares = expert_tensor_ranks(plan);
  // Tokens of all who share the experts, or about as many as a rank has itself where each goes to its experts alone.
  const int64_t gathered = plan.exchange == ExpertExchange::all_gather ? tokens * lock_step_ranks(plan) : tokens;
  double most = 0;
  for (const Layer& layer : layers) {
    const Moe* moe = std::get_if<Moe>(&layer.feed_forward);
    if (moe == nullptr) continue;
    const int64_t hidden = moe->latent_width > 0 ? moe->latent_width : model.hidden;
    const int64_t width = moe->width / shares;
    const int64_t projected = moe->gated ? 2 * width : width;
    const double values =
        number(gathered) * number(moe->top_k) * (number(std::max(width, hidden)) + number(std::max(projected, hidden)));
    most = std::max(most, values);
  }
  return most * bytes_per_element(model.dtype);
}

double stream_bytes(const Model& model, int64_t tokens) {
  return number(tokens) * number(model.hidden) * bytes_per_element(model.dtype);
}

double sampling_bytes(const Model& model, const Device& device, const EngineFlags& flags) {
  // SGLang profiles nothing: the most it has sampled when it starts is its largest graph.
  const bool profiles = engine_kind(flags.engine).budget != MemoryBudget::of_free_before_weights;
  const int64_t rows = profiles ? std::min(flags.max_num_seqs, flags.max_num_batched_tokens) : largest_graph(flags);
  const double logits = number(rows) * number(model.vocabulary);
  const int64_t searching = device.processors ? std::min<int64_t>(device.processors->value, rows) : rows;
  return logits * (bytes_per_element(model.dtype) + 3 * 4) + number(searching) * number(model.vocabulary) * 4 +
         stream_bytes(model, rows) + stream_bytes(model, flags.max_num_batched_tokens);
}

// The layers that the published profile runs had; others are an extrapolation.
bool is_well_known(std::span<const Layer> layers) {
  return std::all_of(layers.begin(), layers.end(),
                     [](const Layer& layer) { return std::holds_alternative<Attention>(layer.mixer); });
}

}  // namespace

ProfileRun profile_run(const Model& model, const Device& device, const ParallelPlan& plan, int64_t stage,
                       const EngineFlags& flags) {
  const std::span<const Layer> layers = layers_of_stage(model, plan, stage);
  const int64_t tokens = flags.max_num_batched_tokens;
  const double kept = kernel_generation(device).matrix_workspace.value() + small_buffers;
  const double buffers = expert_buffers(model, layers, plan, tokens);

  // rank_memory counts the widest operator (experts with their buffers) and two copies of the stream.
  const StepRequest largest{.phase = StepPhase::prefill, .batch = 1, .input_len = tokens, .kv_dtype = flags.kv_dtype};
  double forward = rank_memory(model, largest, plan, stage).activations.value() + 1.5 * stream_bytes(model, tokens);
  if (plan.pipeline > 1) forward += 2 * stream_bytes(model, tokens);
  const bool samples = is_last(plan, stage) && model.has_head && !model.is_encoder_only();
  const double sampling = samples ? sampling_bytes(model, device, flags) + buffers : 0;

  const double peak = std::max({forward, sampling, buffers}) + kept;
  const bool compared = engine_kind(flags.engine).has_known_profile;
  const bool known = compared && is_well_known(layers);
  return {.peak_bytes = {.value = peak,
                         .low = (known ? 0.97 : (compared ? 0.9 : 0.6)) * peak,
                         .high = (known ? 1.05 : 1.4) * peak,
                         .kind = known ? Confidence::interpolated : Confidence::extrapolated},
          .moment = sampling > forward ? PeakMoment::sampling : PeakMoment::forward};
}

Bytes rotary_table_bytes(const Model& model) {
  std::vector<int64_t> widths;
  for (const Layer& layer : model.layers) {
    const Attention* attention = std::get_if<Attention>(&layer.mixer);
    const LatentAttention* latent = std::get_if<LatentAttention>(&layer.mixer);
    const int64_t width = attention != nullptr ? attention->rotary_dim : (latent != nullptr ? latent->rope_dim : 0);
    if (width > 0 && std::find(widths.begin(), widths.end(), width) == widths.end()) widths.push_back(width);
  }
  double values = 0;
  for (const int64_t width : widths) values += number(width) * number(model.max_positions);
  return Bytes(values * bytes_per_element(model.dtype));
}

// On one GPU what its generation had in published profile runs; one that is only like another may be of any kind. With
// tensor parallelism an H100 had 2.07 (2 ranks) and 2.13 to 2.17 (4 ranks); a stage that does not sample 0.07.
Estimate runtime_bytes(const Device& device, const ParallelPlan& plan, int64_t stage) {
  Estimate gib = device.like ? no_generation.runtime_gib : kernel_generation(device).runtime_gib;
  if (!is_last(plan, stage)) gib = {.value = 0.07, .low = 0.05, .high = gib.value, .kind = gib.kind};
  std::vector<Estimate> parts = {gib};
  if (plan.tensor > 1) {
    // Buffers that ranks map into each other's memory exist only where links let them.
    const double ranks = number(std::min<int64_t>(plan.tensor, 8));
    parts.push_back(device.link_bandwidth
                        ? Estimate{.value = 1.78 + 0.02 * ranks, .low = 0.8, .high = 2.4, .kind = gib.kind}
                        : Estimate{.value = 0.2, .low = 0.05, .high = 0.8, .kind = Confidence::extrapolated});
  }
  return scaled(sum_of_independent(parts), gibi);
}

// nvidia-smi shows 0.4 to 0.6 GiB for a process that has only touched a recent GPU.
Estimate context_bytes(const Device&) {
  return {.value = 0.5 * gibi, .low = 0.3 * gibi, .high = 0.9 * gibi, .kind = Confidence::extrapolated};
}

// Bytes per graph and layer in five logs: 215 to 299 KB, and 846 KB with a driver of 2023 (A100, 535 series).
Estimate graph_bytes(const Model& model, const ParallelPlan& plan, int64_t stage, const EngineFlags& flags) {
  const double nodes =
      number(captured_graphs(flags)) * number(static_cast<int64_t>(layers_of_stage(model, plan, stage).size()));
  if (nodes == 0) return exactly(0);
  return {.value = 256e3 * nodes, .low = 180e3 * nodes, .high = 900e3 * nodes, .kind = Confidence::interpolated};
}

}  // namespace foretoken
