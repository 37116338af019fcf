#include "compose/profile/kernel_shape.h"

#include <algorithm>

namespace foretoken {
namespace {

using Dims = std::vector<int64_t>;

// Larger than any tensor of a real step; products of such sizes would overflow.
constexpr int64_t largest_size = int64_t{1} << 40;

std::optional<int64_t> product(Dims::const_iterator first, Dims::const_iterator last) {
  int64_t result = 1;
  for (auto size = first; size != last; ++size) {
    if (*size < 1 || *size > largest_size / result) return std::nullopt;
    result *= *size;
  }
  return result;
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return name.ends_with(end); });
}

std::optional<Scheme> scheme_of(const ProfiledOperator& call, const KernelClass& kind) {
  if (kind.dtype) return plain_scheme(*kind.dtype);
  const bool fp8 = !call.types.empty() && call.types.front().starts_with("c10::Float8");
  return fp8 ? std::optional(Scheme::fp8) : std::nullopt;
}

// Left operand [..., m, k], right operand with n and k as multiply_size() reads them.
std::optional<KernelShape> multiply_shape(const ProfiledOperator& call, const KernelClass& kind) {
  if (!ends_with_any(call.name, {"::linear", "::mm", "::addmm", "::matmul", "::bmm", "::_scaled_mm"})) return {};
  const size_t left = call.name.ends_with("::addmm") ? 1 : 0;  // behind the bias
  const std::optional<MultiplySize> size = multiply_size(call);
  const std::optional<Scheme> scheme = scheme_of(call, kind);
  if (!size || !scheme || call.dims.size() <= left || call.dims[left].size() < 2) return {};
  const Dims& dims = call.dims[left];
  if (dims.back() != size->k || size->n < 1 || size->k < 1) return {};
  const bool batched = call.name.ends_with("::bmm");
  const std::optional<int64_t> rows = product(dims.begin() + (batched ? 1 : 0), dims.end() - 1);
  const std::optional<int64_t> batch = batched ? product(dims.begin(), dims.begin() + 1) : 1;
  if (!rows || !batch) return {};
  return GemmShape{.m = *rows, .n = size->n, .k = size->k, .batch = *batch, .scheme = *scheme};
}

// Queries and keys as [batch, heads, length, head_dim].
std::optional<KernelShape> attention_shape(const ProfiledKernel& kernel, const ProfiledOperator& call,
                                           const KernelClass& kind) {
  if (call.dims.size() < 2 || call.dims[0].size() != 4 || call.dims[1].size() != 4 || !kind.dtype) return {};
  if (!product(call.dims[0].begin(), call.dims[0].end()) || !product(call.dims[1].begin(), call.dims[1].end())) {
    return {};
  }
  const Dims &query = call.dims[0], &key = call.dims[1];
  return AttentionShape{.phase = query[2] == 1 ? AttentionPhase::decode : AttentionPhase::prefill,
                        .batch = query[0],
                        .heads = query[1],
                        .kv_heads = key[1],
                        .head_dim = query[3],
                        .q_len = query[2],
                        .kv_len = key[2],
                        .causal = query[2] == key[2],
                        .dtype = *kind.dtype,
                        .kv_dtype = *kind.dtype,
                        .pass = kernel.backward ? Pass::backward : Pass::forward};
}

std::optional<KernelShape> elementwise_shape(const KernelClass& kind) {
  if (kind.elements <= 0 || kind.inputs + kind.outputs <= 0) return {};
  // A cast counts its bytes in the narrower type (place_elementwise).
  const bool casts = kind.variant.starts_with("torch_cast");
  const DType dtype = casts ? DType::bf16 : kind.dtype.value_or(DType::bf16);
  return ElementwiseShape{.elements = kind.elements, .inputs = kind.inputs, .outputs = kind.outputs, .dtype = dtype};
}

}  // namespace

std::optional<ProfiledShape> shape_of_kernel(const ProfiledKernel& kernel, const ProfiledOperator* call,
                                             const KernelClass& kind) {
  if (call == nullptr) return std::nullopt;
  std::optional<KernelShape> shape;
  if (kind.role == KernelRole::multiply) shape = multiply_shape(*call, kind);
  if (kind.role == KernelRole::attention) shape = attention_shape(kernel, *call, kind);
  if (kind.role == KernelRole::elementwise) shape = elementwise_shape(kind);
  if (!shape) return std::nullopt;
  return ProfiledShape{.shape = *std::move(shape), .variant = kind.variant};
}

}  // namespace foretoken
