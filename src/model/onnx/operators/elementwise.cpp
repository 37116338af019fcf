#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "model/onnx/operators/folding.h"
#include "model/onnx/operators/rules.h"

namespace foretoken::onnx_rules {
namespace {

// The shape that all inputs from `first` on broadcast to.
OnnxDims broadcast_inputs(const OnnxNodeView& node, size_t first, size_t last) {
  OnnxDims dims;
  for (size_t i = first; i < last; ++i) {
    if (!node.has(i)) continue;
    const std::optional<OnnxDims> joined = broadcast(dims, node.dims(i));
    if (!joined) {
      node.fail(fmt::format("shapes {} and {}", dims_text(dims), dims_text(node.dims(i))),
                "sizes that are equal or 1, counted from the last");
    }
    dims = *joined;
  }
  return dims;
}

OnnxType first_type(const OnnxNodeView& node, size_t first) {
  for (size_t i = first; i < node.inputs(); ++i) {
    if (node.has(i) && node.type(i) != OnnxType::undefined) return node.type(i);
  }
  return OnnxType::undefined;
}

// Whole numbers wrap around, as they do in a runtime.
int64_t wrapped(uint64_t value) {
  return static_cast<int64_t>(value);
}

std::optional<int64_t> integer_result(std::string_view operation, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if (operation == "Add" || operation == "Sum") return wrapped(x + y);
  if (operation == "Sub") return wrapped(x - y);
  if (operation == "Mul") return wrapped(x * y);
  if (operation == "Max") return std::max(a, b);
  if (operation == "Min") return std::min(a, b);
  if (operation == "And") return static_cast<int64_t>(a != 0 && b != 0);
  if (operation == "Or") return static_cast<int64_t>(a != 0 || b != 0);
  if (operation == "Xor") return static_cast<int64_t>((a != 0) != (b != 0));
  if (operation == "Div" || operation == "Mod") {
    if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
    if (operation == "Div") return a / b;
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  if (operation == "Pow" && b >= 0 && b < 63) {
    uint64_t power = 1;
    for (int64_t i = 0; i < b; ++i) power *= x;
    return wrapped(power);
  }
  return std::nullopt;
}

std::optional<double> real_result(std::string_view operation, double a, double b) {
  if (operation == "Add" || operation == "Sum") return a + b;
  if (operation == "Sub") return a - b;
  if (operation == "Mul") return a * b;
  if (operation == "Div") return a / b;
  if (operation == "Max") return std::max(a, b);
  if (operation == "Min") return std::min(a, b);
  return std::nullopt;
}

// Folds the inputs into one from left to right, as far as the operation is known.
void fold_arithmetic(NodeInference& node, const OnnxDims& dims) {
  if (onnx_elements(dims).value_or(most_onnx_values + 1) > most_onnx_values || node.inputs() < 2) return;
  OnnxValues sum;
  const std::string& operation = node.node().operation;
  for (size_t input = 0; input < node.inputs(); ++input) {
    const OnnxValues* known = node.values(input);
    if (known == nullptr) return;
    OnnxValues own = picked(*known, broadcast_sources(node.dims(input), dims));
    if (input == 0) {
      sum = std::move(own);
      continue;
    }
    if (own.integers.size() != sum.integers.size() || own.reals.size() != sum.reals.size()) return;
    for (size_t i = 0; i < sum.integers.size(); ++i) {
      const std::optional<int64_t> result = integer_result(operation, sum.integers[i], own.integers[i]);
      if (!result) return;
      sum.integers[i] = *result;
    }
    for (size_t i = 0; i < sum.reals.size(); ++i) {
      const std::optional<double> result = real_result(operation, sum.reals[i], own.reals[i]);
      if (!result) return;
      sum.reals[i] = *result;
    }
  }
  node.set_values(0, std::move(sum));
}

bool compares(std::string_view operation, double a, double b) {
  if (operation == "Equal") return a == b;
  if (operation == "Less") return a < b;
  if (operation == "Greater") return a > b;
  if (operation == "LessOrEqual") return a <= b;
  return a >= b;
}

// Toward zero; nothing for what no int64_t holds.
std::optional<int64_t> truncated(double value) {
  constexpr double limit = 9.2e18;
  if (!(value > -limit && value < limit)) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<OnnxValues> converted(const OnnxValues& values, OnnxType type) {
  OnnxValues result;
  const size_t count = values.integers.size() + values.reals.size();
  for (size_t i = 0; i < count; ++i) {
    if (is_real(type)) {
      result.reals.push_back(real_at(values, i));
      continue;
    }
    const std::optional<int64_t> integer = values.reals.empty() ? values.integers[i] : truncated(values.reals[i]);
    if (!integer) return std::nullopt;
    result.integers.push_back(type == OnnxType::boolean ? static_cast<int64_t>(real_at(values, i) != 0) : *integer);
  }
  return result;
}

}  // namespace

void same(NodeInference& node) {
  node.output(0, node.type(0), node.dims(0));
}

void same_boolean(NodeInference& node) {
  node.output(0, OnnxType::boolean, node.dims(0));
  const OnnxValues* known = node.values(0);
  if (known == nullptr || node.node().operation != "Not") return;
  OnnxValues result;
  for (const int64_t value : known->integers) result.integers.push_back(static_cast<int64_t>(value == 0));
  node.set_values(0, std::move(result));
}

void foldable_unary(NodeInference& node) {
  same(node);
  const OnnxValues* known = node.values(0);
  if (known == nullptr) return;
  OnnxValues result = *known;
  const std::string& operation = node.node().operation;
  for (int64_t& value : result.integers) {
    if (operation == "Neg" || (operation == "Abs" && value < 0))
      value = wrapped(uint64_t{0} - static_cast<uint64_t>(value));
  }
  for (double& value : result.reals) {
    if (operation == "Neg") value = -value;
    if (operation == "Abs") value = std::abs(value);
    if (operation == "Floor") value = std::floor(value);
    if (operation == "Ceil") value = std::ceil(value);
    if (operation == "Sqrt") value = std::sqrt(value);
    if (operation == "Round") value = std::nearbyint(value);
  }
  node.set_values(0, std::move(result));
}

void arithmetic(NodeInference& node) {
  const OnnxDims dims = broadcast_inputs(node, 0, node.inputs());
  node.output(0, first_type(node, 0), dims);
  fold_arithmetic(node, dims);
}

void comparison(NodeInference& node) {
  const OnnxDims dims = broadcast_inputs(node, 0, node.inputs());
  node.output(0, OnnxType::boolean, dims);
  const OnnxValues* a = node.values(0);
  const OnnxValues* b = node.values(1);
  if (a == nullptr || b == nullptr || onnx_elements(dims).value_or(most_onnx_values + 1) > most_onnx_values) return;
  const std::vector<int64_t> from_a = broadcast_sources(node.dims(0), dims);
  const std::vector<int64_t> from_b = broadcast_sources(node.dims(1), dims);
  OnnxValues result;
  for (size_t i = 0; i < from_a.size(); ++i) {
    const auto x = static_cast<size_t>(from_a[i]), y = static_cast<size_t>(from_b[i]);
    result.integers.push_back(static_cast<int64_t>(compares(node.node().operation, real_at(*a, x), real_at(*b, y))));
  }
  node.set_values(0, std::move(result));
}

void where(NodeInference& node) {
  const OnnxDims dims = broadcast_inputs(node, 0, 3);
  node.output(0, first_type(node, 1), dims);
  const std::optional<std::vector<int64_t>> condition = node.integers(0);
  const OnnxValues* yes = node.values(1);
  const OnnxValues* no = node.values(2);
  if (!condition || yes == nullptr || no == nullptr) return;
  if (onnx_elements(dims).value_or(most_onnx_values + 1) > most_onnx_values) return;
  const std::vector<int64_t> chosen = broadcast_sources(node.dims(0), dims);
  OnnxValues result = picked(*yes, broadcast_sources(node.dims(1), dims));
  const OnnxValues other = picked(*no, broadcast_sources(node.dims(2), dims));
  if (result.integers.size() != other.integers.size() || result.reals.size() != other.reals.size()) return;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if ((*condition)[static_cast<size_t>(chosen[i])] != 0) continue;
    if (!result.integers.empty()) result.integers[i] = other.integers[i];
    if (!result.reals.empty()) result.reals[i] = other.reals[i];
  }
  node.set_values(0, std::move(result));
}

void cast(NodeInference& node) {
  const OnnxType type = node.node().operation == "CastLike" ? node.type(1) : node.type_attribute("to", node.type(0));
  node.output(0, type, node.dims(0));
  if (node.values(0) == nullptr) return;
  if (std::optional<OnnxValues> values = converted(*node.values(0), type)) node.set_values(0, std::move(*values));
}

void quantize(NodeInference& node) {
  const OnnxType type = node.has(2) ? node.type(2) : node.type_attribute("output_dtype", OnnxType::uint8);
  node.output(0, type == OnnxType::undefined ? OnnxType::uint8 : type, node.dims(0));
}

void dequantize(NodeInference& node) {
  node.output(0, node.type(1), node.dims(0));
}

void dynamic_quantize(NodeInference& node) {
  node.output(0, OnnxType::uint8, node.dims(0));
  node.output(1, OnnxType::float32, {});
  node.output(2, OnnxType::uint8, {});
}

// a, its scale and zero point, b, its scale and zero point, ...
void quantized_binary(NodeInference& node) {
  const std::optional<OnnxDims> dims = broadcast(node.dims(0), node.dims(3));
  if (!dims) node.fail(dims_text(node.dims(0)) + " and " + dims_text(node.dims(3)), "shapes that broadcast");
  node.output(0, node.type(0), *dims);
}

}  // namespace foretoken::onnx_rules
