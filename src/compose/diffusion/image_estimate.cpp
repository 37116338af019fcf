#include "compose/diffusion/image_estimate.h"

#include <algorithm>
#include <map>

#include "kernel/error_correlation.h"

namespace foretoken {
namespace {

struct PricedKernels {
  Estimate seconds;
  double flops = 0;
  std::vector<ImagePart> parts;  // longest first
};

PricedKernels price(const std::vector<ImageKernel>& kernels, const KernelPredictor& predictor) {
  PricedKernels result;
  KernelSum total(predictor.correlations());
  std::map<std::string, ImagePart> parts;
  for (const ImageKernel& kernel : kernels) {
    const KernelEstimate one = predictor.estimate(kernel.shape);
    const auto count = static_cast<double>(kernel.count);
    const Estimate all = scaled(one.seconds, count);
    total.add(all, error_form(kernel.shape, {}));
    result.flops += one.work.flops.value() * count;
    ImagePart& part = parts[kernel.name];
    const Estimate both[] = {part.seconds, all};
    part.seconds = part.kernels == 0 ? all : sum_with_correlation(both, predictor.correlations().between);
    part.name = kernel.name;
    part.kernels += kernel.count;
  }
  result.seconds = total.total();
  for (auto& [name, part] : parts) result.parts.push_back(std::move(part));
  std::stable_sort(result.parts.begin(), result.parts.end(),
                   [](const ImagePart& a, const ImagePart& b) { return a.seconds.value > b.seconds.value; });
  return result;
}

}  // namespace

ImageEstimate estimate_image(const ImageModel& model, const ImageSize& size, int64_t steps, Scheme scheme,
                             const KernelPredictor& predictor) {
  PricedKernels step = price(denoising_kernels(model, size, scheme), predictor);
  const PricedKernels decoder = price(decoding_kernels(model, size), predictor);
  // All steps run the same kernels, so their errors are the same.
  const Estimate both[] = {scaled(step.seconds, static_cast<double>(steps)), decoder.seconds};
  ImageEstimate result{.seconds = sum_with_correlation(both, predictor.correlations().between),
                       .step_seconds = step.seconds,
                       .decode_seconds = decoder.seconds,
                       .step_flops = step.flops,
                       .parts = std::move(step.parts)};
  result.parts.insert(result.parts.end(), decoder.parts.begin(), decoder.parts.end());
  return result;
}

}  // namespace foretoken
