// Element types, sizes and small constants of ONNX tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/number_format.h"

namespace foretoken {

// The codes of onnx.proto's TensorProto.DataType.
enum class OnnxType : uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23
};
inline constexpr int onnx_type_count = 24;

std::string_view onnx_type_name(OnnxType type);  // as in onnx.proto, in small letters: "float", "int64", "bfloat16"
std::optional<OnnxType> onnx_type_from_name(std::string_view name);  // also "float32", "bool", "half"

// 0 for strings and types unknown: their size is not in the type.
double onnx_element_bytes(OnnxType type);
bool is_real(OnnxType type);  // floating point
// What the multiply units of a device know; nothing for those used as indices and switches.
std::optional<DType> onnx_dtype(OnnxType type);

using OnnxDims = std::vector<int64_t>;

// Sizes beyond these are refused: no device holds such a tensor, and products stay within 64 bits.
inline constexpr int64_t most_onnx_elements = int64_t{1} << 46;
inline constexpr size_t most_onnx_rank = 64;

// Nothing for more than most_onnx_elements, a negative size, or too many dimensions.
std::optional<int64_t> onnx_elements(const OnnxDims& dims);

// The elements of a small tensor, in row-major order: one of the two lists, by the type.
struct OnnxValues {
  std::vector<int64_t> integers;  // also booleans
  std::vector<double> reals;

  static OnnxValues of(std::vector<int64_t> integers) { return {.integers = std::move(integers)}; }
  static OnnxValues of_reals(std::vector<double> reals) { return {.reals = std::move(reals)}; }
  bool operator==(const OnnxValues&) const = default;
};

// Larger constants are known by their shape only.
inline constexpr int64_t most_onnx_values = 16384;

}  // namespace foretoken
