#include "model/onnx/operators/folding.h"

namespace foretoken::onnx_rules {

std::vector<int64_t> strides_of(const OnnxDims& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

void for_each_element(const OnnxDims& dims,
                      const std::function<void(const std::vector<int64_t>& at, int64_t number)>& visit) {
  const int64_t elements = onnx_elements(dims).value_or(0);
  std::vector<int64_t> at(dims.size(), 0);
  for (int64_t number = 0; number < elements; ++number) {
    visit(at, number);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++at[axis] < dims[axis]) break;
      at[axis] = 0;
    }
  }
}

std::vector<int64_t> broadcast_sources(const OnnxDims& input, const OnnxDims& output) {
  const std::vector<int64_t> strides = strides_of(input);
  const size_t offset = output.size() - input.size();
  std::vector<int64_t> sources;
  for_each_element(output, [&](const std::vector<int64_t>& at, int64_t) {
    int64_t source = 0;
    for (size_t i = 0; i < input.size(); ++i) source += input[i] == 1 ? 0 : at[offset + i] * strides[i];
    sources.push_back(source);
  });
  return sources;
}

OnnxValues picked(const OnnxValues& values, const std::vector<int64_t>& places) {
  OnnxValues result;
  for (const int64_t place : places) {
    const auto at = static_cast<size_t>(place);
    if (at < values.integers.size()) result.integers.push_back(values.integers[at]);
    if (at < values.reals.size()) result.reals.push_back(values.reals[at]);
  }
  return result;
}

double real_at(const OnnxValues& values, size_t place) {
  return values.reals.empty() ? static_cast<double>(values.integers[place]) : values.reals[place];
}

void pick_values(NodeInference& node, size_t input, const OnnxDims& dims,
                 const std::function<int64_t(const std::vector<int64_t>& at)>& place, size_t output) {
  const OnnxValues* known = node.values(input);
  if (known == nullptr || onnx_elements(dims).value_or(most_onnx_values + 1) > most_onnx_values) return;
  std::vector<int64_t> places;
  for_each_element(dims, [&](const std::vector<int64_t>& at, int64_t) { places.push_back(place(at)); });
  node.set_values(output, picked(*known, places));
}

}  // namespace foretoken::onnx_rules
