#include "model/onnx/node_view.h"

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

const OnnxTensor& no_tensor() {
  static const OnnxTensor none;
  return none;
}

template <class Value>
const Value* attribute_value(const OnnxNodeView& view, std::string_view name, std::string_view kind) {
  const OnnxAttribute* found = view.node().attribute(name);
  if (found == nullptr || std::holds_alternative<std::monostate>(found->value)) return nullptr;
  const auto* value = std::get_if<Value>(&found->value);
  if (value == nullptr) view.fail(fmt::format("attribute {}", name), std::string(kind));
  return value;
}

}  // namespace

std::string operation_text(const OnnxNode& node) {
  return node.domain.empty() ? node.operation : fmt::format("{}.{}", node.domain, node.operation);
}

std::string dims_text(const OnnxDims& dims) {
  return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x"));
}

const OnnxTensor& OnnxNodeView::input(size_t index) const {
  return has(index) ? graph_.tensor(node_.inputs[index]) : no_tensor();
}

const OnnxValues* OnnxNodeView::values(size_t index) const {
  const OnnxTensor& tensor = input(index);
  return tensor.values ? &*tensor.values : nullptr;
}

std::optional<std::vector<int64_t>> OnnxNodeView::integers(size_t index) const {
  const OnnxValues* known = values(index);
  if (known == nullptr || !known->reals.empty()) return std::nullopt;
  return known->integers;
}

std::optional<int64_t> OnnxNodeView::integer(size_t index) const {
  const OnnxValues* known = values(index);
  if (known == nullptr || known->integers.size() != 1) return std::nullopt;
  return known->integers[0];
}

int64_t OnnxNodeView::attribute(std::string_view name, int64_t otherwise) const {
  const auto* value = attribute_value<int64_t>(*this, name, "a whole number");
  return value == nullptr ? otherwise : *value;
}

std::string OnnxNodeView::text_attribute(std::string_view name, std::string_view otherwise) const {
  const auto* value = attribute_value<std::string>(*this, name, "a text");
  return value == nullptr ? std::string(otherwise) : *value;
}

std::vector<int64_t> OnnxNodeView::list_attribute(std::string_view name, std::vector<int64_t> otherwise) const {
  const auto* value = attribute_value<std::vector<int64_t>>(*this, name, "a list of whole numbers");
  return value == nullptr ? std::move(otherwise) : *value;
}

OnnxType OnnxNodeView::type_attribute(std::string_view name, OnnxType otherwise) const {
  const int64_t code = attribute(name, static_cast<int64_t>(otherwise));
  if (code < 0 || code >= onnx_type_count) fail(fmt::format("{} = {}", name, code), "the code of an ONNX type");
  return static_cast<OnnxType>(code);
}

OnnxNodeView::List OnnxNodeView::list(std::string_view attribute_name, size_t input_index) const {
  if (has_attribute(attribute_name)) return {.given = true, .values = list_attribute(attribute_name)};
  if (!has(input_index)) return {};
  return {.given = true, .values = integers(input_index)};
}

size_t OnnxNodeView::axis(int64_t axis, size_t rank) const {
  const auto size = static_cast<int64_t>(rank);
  if (axis < -size || axis >= size) fail(fmt::format("axis {}", axis), fmt::format("an axis of {} dimensions", rank));
  return static_cast<size_t>(axis < 0 ? axis + size : axis);
}

void OnnxNodeView::fail(std::string value, std::string expected) const {
  throw InputError({.source = graph_.source,
                    .path = fmt::format("node {} ({})", printable(node_.name), printable(operation_text(node_))),
                    .value = std::move(value),
                    .expected = std::move(expected)});
}

}  // namespace foretoken
