#include "compose/profile/kernel_class.h"

#include <algorithm>
#include <iterator>

namespace foretoken {
namespace {

constexpr std::string_view role_names[] = {"multiply",  "attention",   "elementwise", "compiled",
                                           "normalize", "activate",    "softmax",     "embed",
                                           "sample",    "communicate", "driver",      "unknown"};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return has(text, part); });
}

// The name without its namespace: "linear" of "aten::linear".
std::string_view short_name(const ProfiledOperator* call) {
  if (call == nullptr) return {};
  const std::string_view name = call->name;
  const size_t colons = name.rfind("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

// Zero for sizes that no tensor has.
int64_t count_of(const std::vector<int64_t>& dims) {
  constexpr double largest = 1e15;
  double count = dims.empty() ? 0 : 1;
  for (const int64_t size : dims) count *= static_cast<double>(size);
  return count < largest ? static_cast<int64_t>(count) : 0;
}

KernelRole role_by_name(std::string_view kernel) {
  if (has_any(kernel, {"nccl", "::ep::internode::", "::ep::intranode::", "deep_ep::"})) return KernelRole::communicate;
  if (has_any(kernel, {"sdpa", "fmha", "flash_fwd", "flash_fprop", "flash::", "attention"}))
    return KernelRole::attention;
  if (has_any(kernel, {"nvjet", "gemm", "gemv", "cutlass", "xmma", "splitKreduce", "Cijk_"})) {
    return KernelRole::multiply;
  }
  if (kernel.starts_with("triton_")) return KernelRole::compiled;
  if (has_any(kernel, {"layer_norm", "rms_norm", "RMSNorm"})) return KernelRole::normalize;
  if (has_any(kernel, {"act_and_mul"})) return KernelRole::activate;
  if (has_any(kernel, {"oftmax", "SoftMax"})) return KernelRole::softmax;
  if (has_any(kernel, {"indexSelect", "embedding"})) return KernelRole::embed;
  if (has_any(kernel,
              {"elementwise_kernel", "CatArray", "reduce_kernel", "multi_tensor", "index_kernel", "FillFunctor"})) {
    return KernelRole::elementwise;
  }
  return KernelRole::unknown;
}

// Which elementwise kernel, and how many tensors it reads and writes in units of its type.
void place_elementwise(KernelClass& result, std::string_view kernel, const ProfiledOperator* call) {
  const std::string_view name = short_name(call);
  int64_t largest = 0, total = 0, full = 0;
  if (call != nullptr) {
    for (const std::vector<int64_t>& dims : call->dims) {
      largest = std::max(largest, count_of(dims));
      total += count_of(dims);
    }
    for (const std::vector<int64_t>& dims : call->dims) full += count_of(dims) == largest && largest > 0 ? 1 : 0;
  }
  const auto is = [&](std::string variant, int64_t elements, int inputs, int outputs) {
    result.variant = std::move(variant), result.elements = elements;
    result.inputs = inputs, result.outputs = outputs;
  };
  if (has(kernel, "CatArray") || name == "cat") return is("torch_cat", total, 1, 1);
  if (name == "mean" || has(kernel, "MeanOps")) return is("torch_mean", largest, 1, 0);
  if (has(kernel, "reduce_kernel")) return is("torch_sum_rows", largest, 1, 0);
  if (has(kernel, "FillFunctor")) return is("torch_fill", largest, 0, 1);
  if (name == "to" || name == "type_as" || name == "_to_copy" || name == "float") {
    // Bytes are counted in the smaller type: 4 of fp32 are two of bf16.
    if (result.dtype == DType::fp32) return is("torch_cast_down", largest, 2, 1);
    if (result.dtype) return is("torch_cast_up", largest, 1, 2);
    return is("torch_mul_scalar", largest, 1, 1);
  }
  const bool vectorized = has(kernel, "vectorized_elementwise");
  if (vectorized) return full >= 2 ? is("torch_add", largest, 2, 1) : is("torch_mul_scalar", largest, 1, 1);
  if (full >= 2) return is(name == "copy_" ? "torch_strided" : "torch_broadcast", largest, name == "copy_" ? 1 : 2, 1);
  const bool second = call != nullptr && total > largest;
  return is(second ? "torch_broadcast" : "torch_strided", largest, 1, 1);
}

}  // namespace

std::string_view kernel_role_name(KernelRole role) {
  return role_names[static_cast<size_t>(role)];
}

std::optional<DType> torch_dtype(const std::string& name) {
  if (name == "c10::BFloat16") return DType::bf16;
  if (name == "c10::Half") return DType::fp16;
  if (name == "float") return DType::fp32;
  return std::nullopt;
}

KernelClass classify_kernel(const ProfiledKernel& kernel, const ProfiledOperator* call) {
  KernelClass result;
  if (call != nullptr && !call->types.empty()) result.dtype = torch_dtype(call->types.front());
  if (kernel.copies) {
    result.role = KernelRole::driver;
    return result;
  }
  const std::string_view name = short_name(call);
  constexpr std::string_view multiplies[] = {"linear", "mm", "addmm", "matmul", "bmm", "baddbmm", "_scaled_mm"};
  result.role = role_by_name(kernel.name);
  if (has_any(name, {"scaled_dot_product", "flash_attn", "attention"})) {
    result.role = KernelRole::attention;
  } else if (std::find(std::begin(multiplies), std::end(multiplies), name) != std::end(multiplies)) {
    result.role = KernelRole::multiply;
  } else if (name == "embedding" || name == "index_select") {
    result.role = KernelRole::embed;
  } else if (name == "argmax" || name == "topk" || name == "sort") {
    result.role = KernelRole::sample;
  } else if (result.role == KernelRole::unknown && name.find("norm") != std::string_view::npos) {
    result.role = KernelRole::normalize;
  }
  switch (result.role) {
    case KernelRole::attention:
      result.variant = has(kernel.name, "cudnn") ? "sdpa_cudnn" : has(kernel.name, "flash") ? "sdpa_flash" : "";
      break;
    case KernelRole::multiply:
      result.variant = "torch_linear";
      break;
    case KernelRole::compiled:
      result.variant = "torch_compiled";
      break;
    case KernelRole::normalize:
      result.variant = "torch_eager";
      break;
    case KernelRole::softmax:
      result.variant = "torch_softmax";
      break;
    case KernelRole::embed:
      result.variant = "torch_embedding";
      break;
    case KernelRole::sample:
      result.variant = name == "argmax" ? "torch_argmax" : "";
      break;
    case KernelRole::elementwise:
      place_elementwise(result, kernel.name, call);
      break;
    case KernelRole::activate:
    case KernelRole::communicate:
    case KernelRole::driver:
    case KernelRole::unknown:
      break;
  }
  return result;
}

std::optional<MultiplySize> multiply_size(const ProfiledOperator& call) {
  const std::string_view name = short_name(&call);
  const auto size = [&](size_t tensor, bool transposed) -> std::optional<MultiplySize> {
    if (call.dims.size() <= tensor || call.dims[tensor].size() < 2) return std::nullopt;
    const std::vector<int64_t>& dims = call.dims[tensor];
    const int64_t first = dims[dims.size() - 2], last = dims.back();
    return transposed ? MultiplySize{.n = first, .k = last} : MultiplySize{.n = last, .k = first};
  };
  if (name == "linear") return size(1, true);
  if (name == "addmm") return size(2, false);
  return size(1, false);
}

}  // namespace foretoken
