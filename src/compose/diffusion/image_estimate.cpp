#include "compose/diffusion/image_estimate.h"

#include <algorithm>
#include <map>

#include "compose/device_formats.h"
#include "compose/profile_run.h"
#include "kernel/error_correlation.h"
#include "model/work.h"

namespace foretoken {
namespace {

struct PartSum {
  KernelSum seconds;
  int64_t kernels = 0;
};

ImagePhase price(const std::vector<ImageKernel>& kernels, const KernelPredictor& predictor,
                 const std::optional<PowerModel>& power) {
  ImagePhase result;
  KernelSum total(predictor.correlations());
  std::map<std::string, PartSum> parts;
  std::vector<BusyKernel> busy;
  double all = 0, measured = 0, cross = 0;
  for (const ImageKernel& kernel : kernels) {
    const KernelEstimate one = predictor.estimate(kernel.shape);
    const auto count = static_cast<double>(kernel.count);
    const Estimate seconds = scaled(one.seconds, count);
    const std::string_view form = error_form(kernel.shape, {});
    total.add(seconds, form);
    PartSum& part = parts.try_emplace(kernel.name, PartSum{KernelSum(predictor.correlations())}).first->second;
    part.seconds.add(seconds, form);
    part.kernels += kernel.count;
    busy.push_back({.work = one.work,
                    .burst_seconds = Seconds{one.seconds.value},
                    .activity = activity_of(kernel.shape, {}, predictor.device()),
                    .calls = count});
    result.flops += one.work.flops.value() * count;
    all += seconds.value;
    if (one.tier == Tier::measured) measured += seconds.value;
    if (one.tier == Tier::cross || one.tier == Tier::sibling) cross += seconds.value;
  }
  result.burst_seconds = result.seconds = total.total();
  result.measured_share = measured / all;
  result.cross_share = cross / all;
  if (power) {
    result.power = power->sustained(busy);
    result.seconds = product_of_independent(result.burst_seconds, result.power->slowdown);
  }
  for (const auto& [name, part] : parts) {
    result.parts.push_back({.name = name, .kernels = part.kernels, .seconds = part.seconds.total()});
  }
  std::stable_sort(result.parts.begin(), result.parts.end(),
                   [](const ImagePart& a, const ImagePart& b) { return a.seconds.value > b.seconds.value; });
  return result;
}

// What is alive around the largest multiply: what it reads and writes, and the picture that goes around it.
double largest_activations(const std::vector<ImageKernel>& kernels) {
  constexpr double bytes = 2;
  double most = 0;
  for (const ImageKernel& kernel : kernels) {
    const auto* gemm = std::get_if<GemmShape>(&kernel.shape);
    if (gemm == nullptr) continue;
    const auto rows = static_cast<double>(gemm->m);
    const double inputs = rows * static_cast<double>(gemm->k / kernel.neighborhood);
    most = std::max(most, bytes * (inputs + 2 * rows * static_cast<double>(gemm->n)));
  }
  return most;
}

}  // namespace

Scheme run_image_on(Scheme scheme, const Device& device) {
  if (multiplies_in(device, scheme)) return scheme;
  if (const std::optional<Scheme> narrow = weight_only_form(scheme, device)) return *narrow;
  check_multiplies_in("quantization", scheme, device, facts(scheme).name);
  return scheme;
}

ImageMemory image_memory(const ImageSetup& setup, const Device& device) {
  constexpr double bf16_bytes = 2;
  return {.step = {.weights = denoiser_parameters(setup.model) * facts(setup.scheme).weight_bytes,
                   .activations = largest_activations(denoising_kernels(setup.model, setup.size, setup.scheme))},
          .decoder = {.weights = decoder_parameters(setup.model) * bf16_bytes,
                      .activations = largest_activations(decoding_kernels(setup.model, setup.size))},
          .text_encoders = setup.model.text_encoder_parameters * bf16_bytes,
          .context = context_bytes(device).value};
}

ImageEstimate estimate_image(const ImageSetup& setup, const KernelPredictor& predictor,
                             const std::optional<PowerModel>& power) {
  ImageEstimate result{.seconds = {},
                       .step = price(denoising_kernels(setup.model, setup.size, setup.scheme), predictor, power),
                       .decoder = price(decoding_kernels(setup.model, setup.size), predictor, power),
                       .joules = {},
                       .memory = image_memory(setup, predictor.device())};
  // All steps run the same kernels, so their errors are the same.
  const auto steps = static_cast<double>(setup.steps);
  const Estimate both[] = {scaled(result.step.seconds, steps), result.decoder.seconds};
  result.seconds = sum_with_correlation(both, predictor.correlations().between);
  if (result.step.power) {
    const auto joules = [](const ImagePhase& phase) {
      return product_of_independent(phase.power->watts, phase.seconds);
    };
    const Estimate energy[] = {scaled(joules(result.step), steps), joules(result.decoder)};
    result.joules = sum_of_correlated(energy);
  }
  return result;
}

}  // namespace foretoken
