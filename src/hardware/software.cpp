#include "hardware/software.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "hardware/generation.h"

namespace foretoken {
namespace {

bool is_from(const Device& device, std::string_view vendor) {
  return equal_ignoring_case(device.vendor, vendor);
}
bool is_gpu_from(const Device& device, std::string_view vendor) {
  return device.kind == DeviceKind::gpu && is_from(device, vendor);
}

constexpr std::string_view vllm_page = "docs.vllm.ai, installation";
constexpr std::string_view sglang_page = "docs.sglang.io, hardware platforms";
constexpr std::string_view llama_cpp_page = "github.com/ggml-org/llama.cpp, supported backends";

constexpr Software on_cuda[] = {
    {.name = "vllm", .needs = {}, .source = vllm_page, .least_capability = volta_capability, .least_title = "Volta"},
    // FlashInfer's and sgl-kernel's builds begin there.
    {.name = "sglang",
     .needs = {},
     .source = sglang_page,
     .least_capability = turing_capability,
     .least_title = "Turing"},
    {.name = "trtllm",
     .needs = {},
     .source = "nvidia.github.io/TensorRT-LLM, supported hardware",
     .least_capability = ampere_capability,
     .least_title = "Ampere"},
    {.name = "llama.cpp", .needs = {}, .source = llama_cpp_page},
};
constexpr Software on_rocm[] = {
    {.name = "vllm", .needs = {}, .source = vllm_page},
    {.name = "sglang", .needs = {}, .source = sglang_page},
    {.name = "llama.cpp", .needs = {}, .source = llama_cpp_page},
};
constexpr Software on_xpu[] = {
    {.name = "vllm", .needs = {}, .source = vllm_page},
    {.name = "sglang", .needs = {}, .source = sglang_page},
    {.name = "llama.cpp", .needs = {}, .source = llama_cpp_page},
};
constexpr Software on_tpu[] = {
    {.name = "vllm", .needs = "the tpu-inference plugin", .source = "github.com/vllm-project/tpu-inference"},
    {.name = "sglang-jax", .needs = {}, .source = "docs.sglang.io, TPU"},
};
constexpr Software on_gaudi[] = {
    {.name = "vllm", .needs = "the vllm-gaudi plugin", .source = "github.com/vllm-project/vllm-gaudi"},
};
constexpr Software on_neuron[] = {
    {.name = "vllm", .needs = "the vllm-neuron plugin", .source = "github.com/vllm-project/vllm-neuron"},
};
constexpr Software on_metal[] = {
    {.name = "vllm", .needs = "the vllm-metal plugin", .source = "github.com/vllm-project/vllm-metal"},
    {.name = "mlx-lm", .needs = {}, .source = "github.com/ml-explore/mlx-lm"},
    {.name = "llama.cpp", .needs = {}, .source = llama_cpp_page},
};
constexpr Software on_cpu[] = {
    {.name = "vllm", .needs = "its CPU build", .source = vllm_page},
    {.name = "sglang", .needs = "its CPU build", .source = sglang_page},
    {.name = "llama.cpp", .needs = {}, .source = llama_cpp_page},
};

constexpr Platform all_platforms[] = {
    {"cuda", "NVIDIA GPUs", [](const Device& device) { return is_gpu_from(device, "NVIDIA"); }, on_cuda},
    {"rocm", "AMD GPUs", [](const Device& device) { return is_gpu_from(device, "AMD"); }, on_rocm},
    {"xpu", "Intel GPUs", [](const Device& device) { return is_gpu_from(device, "Intel"); }, on_xpu},
    {"tpu", "Google TPUs", [](const Device& device) { return device.kind == DeviceKind::tpu; }, on_tpu},
    {"gaudi", "Intel Gaudi",
     [](const Device& device) { return device.kind == DeviceKind::npu && is_from(device, "Intel"); }, on_gaudi},
    {"neuron", "AWS Trainium",
     [](const Device& device) { return device.kind == DeviceKind::npu && is_from(device, "AWS"); }, on_neuron},
    {"metal", "Apple GPUs", [](const Device& device) { return is_gpu_from(device, "Apple"); }, on_metal},
    {"cpu", "CPUs", [](const Device& device) { return device.kind == DeviceKind::cpu; }, on_cpu},
};

bool has_capability(const Software& software, const Device& device) {
  const int own = kernel_generation(device).cuda_capability;  // 0 = not known
  return own == 0 || own >= software.least_capability;
}

}  // namespace

std::span<const Platform> platforms() {
  return all_platforms;
}

const Platform* platform_of(const Device& device) {
  if (!device.accelerator.empty()) return nullptr;
  const auto* const found = std::find_if(std::begin(all_platforms), std::end(all_platforms),
                                         [&](const Platform& one) { return one.holds(device); });
  return found == std::end(all_platforms) ? nullptr : found;
}

std::vector<Software> software_of(const Device& device) {
  std::vector<Software> found;
  const Platform* platform = platform_of(device);
  if (platform == nullptr) return found;
  for (const Software& one : platform->software) {
    if (has_capability(one, device)) found.push_back(one);
  }
  return found;
}

bool software_runs_on(std::string_view name, const Device& device) {
  if (platform_of(device) == nullptr) {
    return name == "vllm" || (name == "sglang" && (device.kind == DeviceKind::gpu || device.kind == DeviceKind::cpu));
  }
  const std::vector<Software> running = software_of(device);
  return std::any_of(running.begin(), running.end(), [&](const Software& one) { return one.name == name; });
}

std::string_view software_needs(std::string_view name, const Device& device) {
  for (const Software& one : software_of(device)) {
    if (one.name == name) return one.needs;
  }
  return {};
}

std::string hardware_of_software(std::string_view name) {
  std::vector<std::string> places;
  for (const Platform& platform : all_platforms) {
    for (const Software& one : platform.software) {
      if (one.name != name) continue;
      places.push_back(one.least_title.empty() ? std::string(platform.title)
                                               : fmt::format("{} since {}", platform.title, one.least_title));
    }
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

}  // namespace foretoken
