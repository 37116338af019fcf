#include "plan/serving/launch_platform.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "compose/engine_release.h"
#include "hardware/software.h"

namespace foretoken {
namespace {

// Variables: CUDA programming guide; ROCm, GPU isolation; oneAPI Level Zero, affinity mask; docs.habana.ai, multiple
// workloads on a single Docker; github.com/vllm-project/tpu-inference. fp8 on Gaudi: docs.vllm.ai/projects/gaudi, Intel
// Neural Compressor.
constexpr LaunchPlatform cuda{.platform = "cuda",
                              .title = "NVIDIA GPUs",
                              .visible = "CUDA_VISIBLE_DEVICES",
                              .vllm_image = "vllm/vllm-openai:latest",
                              .sglang_image = "lmsysorg/sglang:latest",
                              .trtllm_image = "nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
                              .kubernetes_resource = "nvidia.com/gpu",
                              .takes_nvidia_files = true};

constexpr LaunchPlatform launch_platforms[] = {
    cuda,
    {.platform = "rocm",
     .title = "AMD GPUs",
     .visible = "HIP_VISIBLE_DEVICES",
     .vllm_image = "rocm/vllm:latest",
     .sglang_image = "rocm/sgl-dev:VERSION",  // it has no tag that stays
     .trtllm_image = {},
     .kubernetes_resource = "amd.com/gpu"},
    {.platform = "xpu",
     .title = "Intel GPUs",
     .visible = "ZE_AFFINITY_MASK",
     .vllm_image = {},
     .sglang_image = {},
     .trtllm_image = {},
     .kubernetes_resource = {}},
    {.platform = "gaudi",
     .title = "Intel Gaudi",
     .visible = "HABANA_VISIBLE_MODULES",
     .vllm_image = {},
     .sglang_image = {},
     .trtllm_image = {},
     .kubernetes_resource = {},
     .fp8_weights = "inc",
     .fp8_cache = "fp8_inc",
     .fp8_note = "calibrate the model with Intel Neural Compressor and set QUANT_CONFIG to the resulting file"},
    {.platform = "tpu",
     .title = "Google TPUs",
     .visible = "TPU_VISIBLE_CHIPS",
     .vllm_image = {},
     .sglang_image = {},
     .trtllm_image = {},
     .kubernetes_resource = {}},
    {.platform = "neuron",
     .title = "AWS Trainium",
     .visible = {},  // NEURON_RT_VISIBLE_CORES counts cores, of which a chip has several
     .vllm_image = {},
     .sglang_image = {},
     .trtllm_image = {},
     .kubernetes_resource = {},
     .fp8_weights = {},
     .fp8_cache = {},
     .fp8_note =
         "set up fp8 weights and the fp8 KV cache in the Neuron configuration (vLLM has no flag for them there)"},
    {.platform = "metal",
     .title = "Apple GPUs",
     .visible = {},
     .vllm_image = {},
     .sglang_image = {},
     .trtllm_image = {},
     .kubernetes_resource = {}},
    {.platform = "cpu",
     .title = "CPUs",
     .visible = {},
     .vllm_image = {},
     .sglang_image = {},
     .trtllm_image = {},
     .kubernetes_resource = {}},
};

std::string_view image_of_style(const LaunchPlatform& platform, LaunchStyle style) {
  switch (style) {
    case LaunchStyle::sglang:
      return platform.sglang_image;
    case LaunchStyle::trtllm:
      return platform.trtllm_image;
    case LaunchStyle::vllm:
      break;
  }
  return platform.vllm_image;
}

// The number at the start, of which nothing is left in `text`; false where none is there.
bool take_number(std::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end > 0;
}

// "rc" of "rc1", with its number.
bool take_part(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  std::string_view rest = text.substr(start.size());
  if (!take_number(rest)) return false;
  text = rest;
  return true;
}

// Tags name patch releases, which may be candidates or followed by another number: 0.12 is found as 0.12.0,
// 0.10.1.1, 0.5.10.post1 and 1.2.0rc6.post3 as such. Empty for what no tag is called ("0.12rc1", "0.12.x").
std::string tag_of_release(std::string_view version) {
  std::string_view rest = version;
  if (!take_number(rest) || !take_part(rest, ".")) return "";
  if (rest.empty()) return std::string(version) + ".0";
  if (!take_part(rest, ".")) return "";
  take_part(rest, ".");
  take_part(rest, "rc");
  take_part(rest, ".post");
  return rest.empty() ? std::string(version) : "";
}

}  // namespace

std::string LaunchPlatform::image(LaunchStyle style, std::string_view engine) const {
  const std::string image(image_of_style(*this, style));
  const std::optional<EngineRelease> release = engine_release(engine);
  if (!release || image.empty()) return image;
  const std::string repository = image.substr(0, image.rfind(':'));
  if (!takes_nvidia_files) return repository + ":VERSION";  // tags hold the release of ROCm and a date too
  const std::string tag = tag_of_release(release->version);
  if (tag.empty()) return image;
  return fmt::format("{}:{}{}", repository, style == LaunchStyle::trtllm ? "" : "v", tag);
}

const LaunchPlatform& launch_platform(const Device& device) {
  const Platform* platform = platform_of(device);
  const auto* const found =
      std::find_if(std::begin(launch_platforms), std::end(launch_platforms),
                   [&](const LaunchPlatform& one) { return platform != nullptr && one.platform == platform->name; });
  return found == std::end(launch_platforms) ? cuda : *found;
}

}  // namespace foretoken
