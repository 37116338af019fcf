#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/onnx/operators/folding.h"
#include "model/onnx/operators/rules.h"

namespace foretoken::onnx_rules {

void constant(NodeInference& node) {
  node.constant(0);
  const auto put = [&](OnnxType type, OnnxDims dims, OnnxValues values) {
    node.output(0, type, std::move(dims));
    node.set_values(0, std::move(values));
  };
  for (const OnnxAttribute& own : node.node().attributes) {
    if (const auto* tensor = std::get_if<OnnxTensorData>(&own.value)) {
      node.output(0, tensor->type, tensor->dims);
      if (tensor->values) node.set_values(0, *tensor->values);
    } else if (const auto* integer = std::get_if<int64_t>(&own.value)) {
      put(OnnxType::int64, {}, OnnxValues::of({*integer}));
    } else if (const auto* real = std::get_if<double>(&own.value)) {
      put(OnnxType::float32, {}, OnnxValues::of_reals({*real}));
    } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&own.value)) {
      put(OnnxType::int64, {static_cast<int64_t>(integers->size())}, OnnxValues::of(*integers));
    } else if (const auto* reals = std::get_if<std::vector<double>>(&own.value)) {
      put(OnnxType::float32, {static_cast<int64_t>(reals->size())}, OnnxValues::of_reals(*reals));
    } else if (std::holds_alternative<std::string>(own.value)) {
      node.output(0, OnnxType::string, {});
    } else if (const auto* texts = std::get_if<std::vector<std::string>>(&own.value)) {
      node.output(0, OnnxType::string, {static_cast<int64_t>(texts->size())});
    }
  }
}

void constant_of_shape(NodeInference& node) {
  const OnnxAttribute* given = node.node().attribute("value");
  const auto* value = given == nullptr ? nullptr : std::get_if<OnnxTensorData>(&given->value);
  const OnnxType type = value == nullptr ? OnnxType::float32 : value->type;
  const std::optional<std::vector<int64_t>> dims = node.integers(0);
  if (!dims) return;
  node.output(0, type, *dims);
  node.constant(0);
  const int64_t elements = onnx_elements(*dims).value_or(most_onnx_values + 1);
  if (elements > most_onnx_values || (value != nullptr && !value->values)) return;
  OnnxValues values;
  if (is_real(type)) {
    const bool known = value != nullptr && !value->values->reals.empty();
    values.reals.assign(static_cast<size_t>(elements), known ? value->values->reals[0] : 0.0);
  } else {
    const bool known = value != nullptr && !value->values->integers.empty();
    values.integers.assign(static_cast<size_t>(elements), known ? value->values->integers[0] : 0);
  }
  node.set_values(0, std::move(values));
}

void shape(NodeInference& node) {
  const OnnxDims& dims = node.dims(0);
  const auto rank = static_cast<int64_t>(dims.size());
  const auto clamped = [&](int64_t place) { return std::clamp<int64_t>(place < 0 ? place + rank : place, 0, rank); };
  const int64_t start = clamped(std::max(node.attribute("start", 0), -rank));
  const int64_t end = std::max(start, clamped(std::max(node.attribute("end", rank), -rank)));
  node.output(0, OnnxType::int64, {end - start});
  node.set_values(0, OnnxValues::of({dims.begin() + start, dims.begin() + end}));
}

void size(NodeInference& node) {
  node.output(0, OnnxType::int64, {});
  node.set_values(0, OnnxValues::of({onnx_elements(node.dims(0)).value_or(0)}));
}

void range(NodeInference& node) {
  const OnnxValues *start = node.values(0), *limit = node.values(1), *step = node.values(2);
  if (start == nullptr || limit == nullptr || step == nullptr) return;
  for (const OnnxValues* end : {start, limit, step}) {
    if (end->integers.size() + end->reals.size() != 1)
      node.fail("a list", "one number each for start, limit and delta");
  }
  const double first = real_at(*start, 0), last = real_at(*limit, 0), delta = real_at(*step, 0);
  if (delta == 0) node.fail("a delta of 0", "another");
  const double count = std::ceil((last - first) / delta);
  if (!(count <= static_cast<double>(most_onnx_elements))) node.fail("a range without end", "at most 2^46 elements");
  const auto elements = static_cast<int64_t>(std::max(0.0, count));
  node.output(0, node.type(0), {elements});
  if (elements > most_onnx_values) return;
  OnnxValues values;
  for (int64_t i = 0; i < elements; ++i) {
    const double value = first + static_cast<double>(i) * delta;
    if (is_real(node.type(0))) {
      values.reals.push_back(value);
    } else {
      // Beyond 9e18 no double is an int64_t; such a range is too long to be kept anyway unless its step is as large.
      if (!(std::abs(value) < 9e18)) return;
      values.integers.push_back(static_cast<int64_t>(value));
    }
  }
  node.set_values(0, std::move(values));
}

void eye_like(NodeInference& node) {
  node.output(0, node.type_attribute("dtype", node.type(0)), node.dims(0));
  node.constant(0);
}

void random_of_shape(NodeInference& node) {
  node.output(0, node.type_attribute("dtype", OnnxType::float32), node.list_attribute("shape"));
}

void random_like(NodeInference& node) {
  node.output(0, node.type_attribute("dtype", node.type(0)), node.dims(0));
}

void multinomial(NodeInference& node) {
  if (node.rank(0) != 2) node.fail(dims_text(node.dims(0)), "two dimensions");
  node.output(0, node.type_attribute("dtype", OnnxType::int32), {node.dims(0)[0], node.attribute("sample_size", 1)});
}

}  // namespace foretoken::onnx_rules
