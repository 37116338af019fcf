#include "model/onnx/writer.h"

#include <bit>

#include "base/protobuf.h"
#include "model/onnx/schema.h"

namespace foretoken {
namespace {

using namespace onnx_schema;

constexpr uint64_t written_ir_version = 8;

std::string tensor_message(const OnnxTensorData& tensor) {
  WireWriter writer;
  for (const int64_t size : tensor.dims) writer.varint(tensor_dims, static_cast<uint64_t>(size));
  writer.varint(tensor_type, static_cast<uint64_t>(tensor.type));
  if (!tensor.name.empty()) writer.bytes(tensor_name, tensor.name);
  if (!tensor.values) return writer.take();
  WireWriter packed;
  if (tensor.type == OnnxType::float64) {
    for (const double value : tensor.values->reals) packed.packed_fixed64(std::bit_cast<uint64_t>(value));
    writer.bytes(tensor_double_data, packed.text());
  } else if (is_real(tensor.type)) {
    for (const double value : tensor.values->reals) {
      packed.packed_fixed32(std::bit_cast<uint32_t>(static_cast<float>(value)));
    }
    writer.bytes(tensor_float_data, packed.text());
  } else {
    for (const int64_t value : tensor.values->integers) packed.packed_varint(static_cast<uint64_t>(value));
    uint32_t field = tensor_int32_data;
    if (tensor.type == OnnxType::int64) field = tensor_int64_data;
    if (tensor.type == OnnxType::uint32 || tensor.type == OnnxType::uint64) field = tensor_uint64_data;
    writer.bytes(field, packed.text());
  }
  return writer.take();
}

std::string body_message(const OnnxBody& body);

std::string attribute_message(const OnnxAttribute& attribute) {
  WireWriter writer;
  writer.bytes(attribute_name, attribute.name);
  if (!attribute.reference.empty()) writer.bytes(attribute_reference, attribute.reference);
  struct Write {
    WireWriter& writer;
    uint64_t operator()(std::monostate /*none*/) const { return 0; }
    uint64_t operator()(int64_t value) const {
      writer.varint(attribute_integer, static_cast<uint64_t>(value));
      return kind_integer;
    }
    uint64_t operator()(double value) const {
      writer.fixed32(attribute_real, std::bit_cast<uint32_t>(static_cast<float>(value)));
      return kind_real;
    }
    uint64_t operator()(const std::string& value) const {
      writer.bytes(attribute_text, value);
      return kind_text;
    }
    uint64_t operator()(const std::vector<int64_t>& values) const {
      for (const int64_t value : values) writer.varint(attribute_integers, static_cast<uint64_t>(value));
      return kind_integers;
    }
    uint64_t operator()(const std::vector<double>& values) const {
      for (const double value : values) {
        writer.fixed32(attribute_reals, std::bit_cast<uint32_t>(static_cast<float>(value)));
      }
      return kind_reals;
    }
    uint64_t operator()(const std::vector<std::string>& values) const {
      for (const std::string& value : values) writer.bytes(attribute_texts, value);
      return kind_texts;
    }
    uint64_t operator()(const OnnxTensorData& tensor) const {
      writer.bytes(attribute_tensor, tensor_message(tensor));
      return kind_tensor;
    }
    uint64_t operator()(const std::shared_ptr<const OnnxBody>& body) const {
      writer.bytes(attribute_graph, body_message(*body));
      return kind_graph;
    }
  };
  const uint64_t kind = std::visit(Write{writer}, attribute.value);
  if (kind != 0) writer.varint(attribute_type, kind);
  return writer.take();
}

std::string node_message(const OnnxFileNode& node) {
  WireWriter writer;
  for (const std::string& input : node.inputs) writer.bytes(node_input, input);
  for (const std::string& output : node.outputs) writer.bytes(node_output, output);
  if (!node.name.empty()) writer.bytes(node_name, node.name);
  writer.bytes(node_operation, node.operation);
  for (const OnnxAttribute& attribute : node.attributes) writer.bytes(node_attribute, attribute_message(attribute));
  if (!node.domain.empty()) writer.bytes(node_domain, node.domain);
  return writer.take();
}

std::string value_info_message(const OnnxValueInfo& info) {
  WireWriter tensor;
  tensor.varint(tensor_type_element, static_cast<uint64_t>(info.type));
  if (info.has_shape) {
    WireWriter shape;
    for (const OnnxDimension& side : info.dims) {
      WireWriter dimension;
      if (side.size >= 0) dimension.varint(dimension_size, static_cast<uint64_t>(side.size));
      if (!side.symbol.empty()) dimension.bytes(dimension_symbol, side.symbol);
      shape.bytes(shape_dimension, dimension.text());
    }
    tensor.bytes(tensor_type_shape, shape.text());
  }
  WireWriter type;
  type.bytes(type_tensor, tensor.text());
  WireWriter writer;
  writer.bytes(value_name, info.name);
  writer.bytes(value_type, type.text());
  return writer.take();
}

std::string body_message(const OnnxBody& body) {
  WireWriter writer;
  for (const OnnxFileNode& node : body.nodes) writer.bytes(graph_node, node_message(node));
  writer.bytes(graph_name, body.name);
  for (const OnnxTensorData& tensor : body.initializers) writer.bytes(graph_initializer, tensor_message(tensor));
  for (const OnnxValueInfo& input : body.inputs) writer.bytes(graph_input, value_info_message(input));
  for (const OnnxValueInfo& output : body.outputs) writer.bytes(graph_output, value_info_message(output));
  for (const OnnxValueInfo& info : body.between) writer.bytes(graph_value_info, value_info_message(info));
  return writer.take();
}

std::string function_message(const OnnxFunction& function) {
  WireWriter writer;
  writer.bytes(function_name, function.name);
  for (const std::string& input : function.inputs) writer.bytes(function_input, input);
  for (const std::string& output : function.outputs) writer.bytes(function_output, output);
  for (const OnnxFileNode& node : function.nodes) writer.bytes(function_node, node_message(node));
  writer.bytes(function_domain, function.domain);
  for (const OnnxAttribute& standard : function.defaults) writer.bytes(function_default, attribute_message(standard));
  return writer.take();
}

}  // namespace

std::string onnx_text(const OnnxFile& file) {
  WireWriter writer;
  writer.varint(model_ir_version, written_ir_version);
  if (!file.producer.empty()) writer.bytes(model_producer, file.producer);
  writer.bytes(model_graph, body_message(file.body));
  for (const auto& [domain, version] : file.opsets) {
    WireWriter opset;
    opset.bytes(opset_domain, domain);
    opset.varint(opset_version, static_cast<uint64_t>(version));
    writer.bytes(model_opset, opset.text());
  }
  for (const OnnxFunction& function : file.functions) writer.bytes(model_function, function_message(function));
  return writer.take();
}

}  // namespace foretoken
