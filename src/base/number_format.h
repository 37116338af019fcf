// How numbers are stored and multiplied: element types, and the schemes of a linear layer (what weights, activations
// and the tensor pipes each use).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// An element type: what a tensor is stored in, or what the multiply units of a device take.
enum class DType { fp64, fp32, tf32, bf16, fp16, fp8, int8, fp4, int4 };
inline constexpr int dtype_count = 9;

std::string_view dtype_name(DType type);
double bytes_per_element(DType type);
std::optional<DType> dtype_from_name(std::string_view name);  // also "float16", "bfloat16", "half", "fp8_e4m3", ...
std::vector<std::string> dtype_names();

// How a linear layer computes y = x W. The names are those people type (`--quantization`) and measurements use.
enum class Scheme {
  fp32,
  tf32,
  bf16,
  fp16,
  fp8,
  fp8_block,
  int8,
  int8_wo,
  int4_wo,
  mxfp4_wo,
  mxfp4_mxfp8,
  nvfp4,
  mxfp4
};
inline constexpr int scheme_count = 13;

struct SchemeFacts {
  Scheme scheme;
  std::string_view name;
  std::string_view also;       // other spellings, space-separated
  double weight_bytes;         // per weight, scales included
  double activation_bytes;     // per activation as the multiply reads it, scales included
  DType math;                  // whose peak bounds the multiply
  DType result;                // what it writes, and what the activation is stored in before quantization
  bool quantizes_activations;  // a cast kernel runs before the multiply
  std::string_view summary;
};

const SchemeFacts& facts(Scheme scheme);
std::span<const SchemeFacts> all_schemes();
std::optional<Scheme> scheme_from_name(std::string_view name);
std::vector<std::string> scheme_names();

// Whether weights in MXFP4 meet wider activations, as in gpt-oss.
bool widens_mxfp4(Scheme scheme);

// The scheme of a layer that is stored and multiplied in `dtype` itself.
Scheme plain_scheme(DType dtype);

}  // namespace foretoken
