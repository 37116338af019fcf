#include "base/number_format.h"

#include <algorithm>
#include <iterator>

#include "base/kinds.h"
#include "base/text.h"

namespace foretoken {
namespace {

struct DTypeFacts {
  DType type;
  std::string_view name;
  std::string_view also;
  double bytes;
};

constexpr DTypeFacts dtypes[] = {
    {DType::fp64, "fp64", "float64 double", 8},
    {DType::fp32, "fp32", "float32 float", 4},
    {DType::tf32, "tf32", "", 4},
    {DType::bf16, "bf16", "bfloat16", 2},
    {DType::fp16, "fp16", "float16 half", 2},
    {DType::fp8, "fp8", "fp8_e4m3 fp8_e5m2 e4m3 float8_e4m3fn", 1},
    {DType::int8, "int8", "", 1},
    {DType::fp4, "fp4", "e2m1", 0.5},
    {DType::int4, "int4", "", 0.5},
};
static_assert(std::size(dtypes) == dtype_count);

// Scales: block fp8 one fp32 per 128x128 weights and per 1x128 activations; group int4 (GPTQ, AWQ; group 128) an fp16
// scale and a 4-bit zero point; MX one byte per 32 (OCP Microscaling spec v1.0); NVFP4 one byte per 16.
constexpr SchemeFacts schemes[] = {
    {Scheme::fp32, "fp32", "float32 float", 4, 4, DType::fp32, DType::fp32, false,
     "single precision on the vector units"},
    {Scheme::tf32, "tf32", "", 4, 4, DType::tf32, DType::fp32, false, "fp32 storage, tf32 tensor multiply"},
    {Scheme::bf16, "bf16", "bfloat16 auto", 2, 2, DType::bf16, DType::bf16, false, "bf16 throughout"},
    {Scheme::fp16, "fp16", "float16 half", 2, 2, DType::fp16, DType::fp16, false, "fp16 throughout"},
    {Scheme::fp8, "fp8", "fp8_e4m3 w8a8_fp8", 1, 1, DType::fp8, DType::bf16, true,
     "fp8 weights and activations, a scale per tensor or channel"},
    {Scheme::fp8_block, "fp8_block", "fp8-block deepseek_fp8", 1 + 4.0 / (128 * 128), 1 + 4.0 / 128, DType::fp8,
     DType::bf16, true, "fp8 with 128x128 weight blocks and 1x128 activation groups"},
    {Scheme::int8, "int8", "sq w8a8 w8a8_int8 smoothquant", 1, 1, DType::int8, DType::bf16, true,
     "int8 weights and activations"},
    {Scheme::int8_wo, "int8_wo", "w8a16", 1, 2, DType::bf16, DType::bf16, false, "int8 weights, bf16 multiply"},
    {Scheme::int4_wo, "int4_wo", "int4 w4a16 awq gptq awq_marlin gptq_marlin", 0.5 + 2.5 / 128, 2, DType::bf16,
     DType::bf16, false, "4-bit weights in groups of 128, bf16 multiply"},
    {Scheme::mxfp4_wo, "w4a16_mxfp4", "mxfp4", 0.5 + 1.0 / 32, 2, DType::bf16, DType::bf16, false,
     "MXFP4 weights, bf16 multiply"},
    {Scheme::mxfp4_mxfp8, "w4a8_mxfp4_mxfp8", "mxfp4_mxfp8", 0.5 + 1.0 / 32, 1 + 1.0 / 32, DType::fp8, DType::bf16,
     true, "MXFP4 weights, MXFP8 activations"},
    {Scheme::nvfp4, "nvfp4", "fp4 modelopt_fp4", 0.5 + 1.0 / 16, 0.5 + 1.0 / 16, DType::fp4, DType::bf16, true,
     "NVFP4 weights and activations"},
    {Scheme::mxfp4, "w4a4_mxfp4", "mxfp4_mxfp4 quark_mxfp4", 0.5 + 1.0 / 32, 0.5 + 1.0 / 32, DType::fp4, DType::bf16,
     true, "MXFP4 weights and activations"},
};
static_assert(std::size(schemes) == scheme_count);

bool is_word_of(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (equal_ignoring_case(list.substr(0, end), word)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

std::string_view dtype_name(DType type) {
  return dtypes[static_cast<size_t>(type)].name;
}
double bytes_per_element(DType type) {
  return dtypes[static_cast<size_t>(type)].bytes;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeFacts& row : dtypes) {
    if (equal_ignoring_case(row.name, name) || is_word_of(row.also, name)) return row.type;
  }
  return std::nullopt;
}

std::vector<std::string> dtype_names() {
  return kind_names(dtypes);
}

const SchemeFacts& facts(Scheme scheme) {
  return schemes[static_cast<size_t>(scheme)];
}
std::span<const SchemeFacts> all_schemes() {
  return schemes;
}

std::optional<Scheme> scheme_from_name(std::string_view name) {
  for (const SchemeFacts& row : schemes) {
    if (equal_ignoring_case(row.name, name) || is_word_of(row.also, name)) return row.scheme;
  }
  return std::nullopt;
}

std::vector<std::string> scheme_names() {
  return kind_names(schemes);
}

bool widens_mxfp4(Scheme scheme) {
  return scheme == Scheme::mxfp4_wo || scheme == Scheme::mxfp4_mxfp8;
}

Scheme plain_scheme(DType dtype) {
  return dtype == DType::fp32 ? Scheme::fp32 : dtype == DType::fp16 ? Scheme::fp16 : Scheme::bf16;
}

}  // namespace foretoken
