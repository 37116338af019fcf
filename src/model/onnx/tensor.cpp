#include "model/onnx/tensor.h"

#include <array>

namespace foretoken {
namespace {

struct OnnxTypeFacts {
  OnnxType type;
  std::string_view name;
  std::string_view also;
  double bytes;
  bool real;
  std::optional<DType> dtype;
};

constexpr std::array<OnnxTypeFacts, onnx_type_count> onnx_type_facts = {{
    {OnnxType::undefined, "undefined", "", 0, false, std::nullopt},
    {OnnxType::float32, "float", "float32", 4, true, DType::fp32},
    {OnnxType::uint8, "uint8", "", 1, false, DType::int8},
    {OnnxType::int8, "int8", "", 1, false, DType::int8},
    {OnnxType::uint16, "uint16", "", 2, false, std::nullopt},
    {OnnxType::int16, "int16", "", 2, false, std::nullopt},
    {OnnxType::int32, "int32", "int", 4, false, std::nullopt},
    {OnnxType::int64, "int64", "long", 8, false, std::nullopt},
    {OnnxType::string, "string", "", 0, false, std::nullopt},
    {OnnxType::boolean, "bool", "boolean", 1, false, std::nullopt},
    {OnnxType::float16, "float16", "half", 2, true, DType::fp16},
    {OnnxType::float64, "double", "float64", 8, true, DType::fp64},
    {OnnxType::uint32, "uint32", "", 4, false, std::nullopt},
    {OnnxType::uint64, "uint64", "", 8, false, std::nullopt},
    {OnnxType::complex64, "complex64", "", 8, true, DType::fp32},
    {OnnxType::complex128, "complex128", "", 16, true, DType::fp64},
    {OnnxType::bfloat16, "bfloat16", "", 2, true, DType::bf16},
    {OnnxType::float8e4m3fn, "float8e4m3fn", "float8_e4m3fn", 1, true, DType::fp8},
    {OnnxType::float8e4m3fnuz, "float8e4m3fnuz", "float8_e4m3fnuz", 1, true, DType::fp8},
    {OnnxType::float8e5m2, "float8e5m2", "float8_e5m2", 1, true, DType::fp8},
    {OnnxType::float8e5m2fnuz, "float8e5m2fnuz", "float8_e5m2fnuz", 1, true, DType::fp8},
    {OnnxType::uint4, "uint4", "", 0.5, false, DType::int4},
    {OnnxType::int4, "int4", "", 0.5, false, DType::int4},
    {OnnxType::float4e2m1, "float4e2m1", "", 0.5, true, DType::fp4},
}};

const OnnxTypeFacts& type_facts(OnnxType type) {
  return onnx_type_facts[static_cast<size_t>(type)];
}

}  // namespace

std::string_view onnx_type_name(OnnxType type) {
  return type_facts(type).name;
}

std::optional<OnnxType> onnx_type_from_name(std::string_view name) {
  for (const OnnxTypeFacts& facts : onnx_type_facts) {
    if (facts.name == name || (!name.empty() && facts.also == name)) return facts.type;
  }
  return std::nullopt;
}

double onnx_element_bytes(OnnxType type) {
  return type_facts(type).bytes;
}

bool is_real(OnnxType type) {
  return type_facts(type).real;
}

std::optional<DType> onnx_dtype(OnnxType type) {
  return type_facts(type).dtype;
}

std::optional<int64_t> onnx_elements(const OnnxDims& dims) {
  if (dims.size() > most_onnx_rank) return std::nullopt;
  int64_t elements = 1;
  bool empty = false;
  for (const int64_t size : dims) {
    if (size < 0 || size > most_onnx_elements) return std::nullopt;
    if (size == 0) {
      empty = true;
      continue;
    }
    if (elements > most_onnx_elements / size) return std::nullopt;
    elements *= size;
  }
  return empty ? 0 : elements;
}

}  // namespace foretoken
