#include "model/onnx/builder.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {

OnnxBuilder::OnnxBuilder(std::string source, int64_t opset) {
  file_.producer = source;
  file_.source = std::move(source);
  file_.opsets = {{"", opset}, {"com.microsoft", 1}};
  file_.body.name = "graph";
}

std::string OnnxBuilder::input(const std::string& name, const OnnxDims& dims, OnnxType type) {
  OnnxValueInfo info{.name = name, .type = type, .has_shape = true};
  for (const int64_t size : dims) {
    info.dims.push_back(size >= 0 ? OnnxDimension{.size = size} : OnnxDimension{.symbol = "batch"});
  }
  file_.body.inputs.push_back(info);
  return name;
}

std::string OnnxBuilder::weight(OnnxDims dims, OnnxType type) {
  return add_initializer('w', {.type = type, .dims = std::move(dims)});
}

std::string OnnxBuilder::filled_weight(OnnxDims dims) {
  constexpr int64_t step = 37, period = 101;  // coprime: every value of the period appears
  const auto count = onnx_elements(dims);
  ensure(count.has_value(), "a weight that is written out has a size");
  std::vector<double> values;
  for (int64_t i = 0; i < *count; ++i) {
    values.push_back(0.5 + static_cast<double>(i * step % period) / static_cast<double>(period));
  }
  return add_initializer(
      'f', {.type = OnnxType::float32, .dims = std::move(dims), .values = OnnxValues::of_reals(std::move(values))});
}

std::string OnnxBuilder::integers(std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return add_initializer('i', {.type = OnnxType::int64, .dims = {count}, .values = OnnxValues::of(std::move(values))});
}

std::string OnnxBuilder::integer(int64_t value) {
  return add_initializer('i', {.type = OnnxType::int64, .values = OnnxValues::of({value})});
}

std::string OnnxBuilder::reals(std::vector<double> values) {
  const auto count = static_cast<int64_t>(values.size());
  return add_initializer(
      'r', {.type = OnnxType::float32, .dims = {count}, .values = OnnxValues::of_reals(std::move(values))});
}

std::string OnnxBuilder::real(double value) {
  return add_initializer('r', {.type = OnnxType::float32, .values = OnnxValues::of_reals({value})});
}

std::string OnnxBuilder::node(const std::string& operation, std::vector<std::string> inputs,
                              std::vector<OnnxAttribute> attributes, size_t outputs, const std::string& domain) {
  const std::string name = fmt::format("{}_{}", operation, next_++);
  OnnxFileNode node{.name = name, .operation = operation, .domain = domain, .inputs = std::move(inputs)};
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(fmt::format("{}.{}", name, i));
  node.attributes = std::move(attributes);
  file_.body.nodes.push_back(node);
  return node.outputs[0];
}

void OnnxBuilder::output(const std::string& name, OnnxType type) {
  file_.body.outputs.push_back({.name = name, .type = type});
}

std::string OnnxBuilder::add_initializer(char letter, OnnxTensorData tensor) {
  tensor.name = fmt::format("{}{}", letter, next_++);
  file_.body.initializers.push_back(std::move(tensor));
  return file_.body.initializers.back().name;
}

OnnxAttribute with(std::string name, int64_t value) {
  return {.name = std::move(name), .value = value};
}

OnnxAttribute with(std::string name, std::vector<int64_t> values) {
  return {.name = std::move(name), .value = std::move(values)};
}

OnnxAttribute with_text(std::string name, std::string value) {
  return {.name = std::move(name), .value = std::move(value)};
}

}  // namespace foretoken
