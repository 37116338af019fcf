#include <bit>
#include <type_traits>

#include "base/protobuf.h"
#include "network/chakra/chakra.h"
#include "network/chakra/schema.h"

namespace foretoken {
namespace {

using namespace chakra_schema;

uint64_t encoded_integer(ChakraFormat format, int64_t value) {
  return format == ChakraFormat::sint32 || format == ChakraFormat::sint64 ? zigzag(value)
                                                                          : static_cast<uint64_t>(value);
}

void pack(WireWriter& writer, ChakraFormat format, uint64_t bits) {
  switch (format) {
    case ChakraFormat::real32:
    case ChakraFormat::fixed32:
    case ChakraFormat::sfixed32:
      writer.packed_fixed32(static_cast<uint32_t>(bits));
      break;
    case ChakraFormat::real64:
    case ChakraFormat::fixed64:
    case ChakraFormat::sfixed64:
      writer.packed_fixed64(bits);
      break;
    default:
      writer.packed_varint(bits);
  }
}

void write(WireWriter& writer, uint32_t field, ChakraFormat format, uint64_t bits) {
  switch (format) {
    case ChakraFormat::real32:
    case ChakraFormat::fixed32:
    case ChakraFormat::sfixed32:
      writer.fixed32(field, static_cast<uint32_t>(bits));
      break;
    case ChakraFormat::real64:
    case ChakraFormat::fixed64:
    case ChakraFormat::sfixed64:
      writer.fixed64(field, bits);
      break;
    default:
      writer.varint(field, bits);
  }
}

uint64_t bits_of(ChakraFormat, double value) {
  return std::bit_cast<uint64_t>(value);
}
uint64_t bits_of(ChakraFormat, float value) {
  return std::bit_cast<uint32_t>(value);
}
uint64_t bits_of(ChakraFormat, bool value) {
  return value ? 1 : 0;
}
uint64_t bits_of(ChakraFormat, uint64_t value) {
  return value;
}
uint64_t bits_of(ChakraFormat format, int64_t value) {
  return encoded_integer(format, value);
}

class ValueWriter {
 public:
  ValueWriter(WireWriter& writer, ChakraFormat format) : writer_(writer), format_(format) {}

  void operator()(std::monostate) const {}
  void operator()(const std::string& text) const { writer_.bytes(field_of(format_, false), text); }
  void operator()(const std::vector<std::string>& texts) const {
    WireWriter list;
    for (const std::string& text : texts) list.bytes(list_values, text);
    writer_.bytes(field_of(format_, true), list.text());
  }
  template <class Number>
  void operator()(const std::vector<Number>& numbers) const {
    WireWriter packed, list;
    for (const Number number : numbers) pack(packed, format_, bits_of(format_, number));
    if (!numbers.empty()) list.bytes(list_values, packed.text());
    writer_.bytes(field_of(format_, true), list.text());
  }
  template <class Number>
  void operator()(const Number& number) const {
    write(writer_, field_of(format_, false), format_, bits_of(format_, number));
  }

 private:
  WireWriter& writer_;
  ChakraFormat format_;
};

// proto3 leaves out what has its default.
void write_number(WireWriter& writer, uint32_t field, uint64_t value) {
  if (value != 0) writer.varint(field, value);
}
void write_text(WireWriter& writer, uint32_t field, const std::string& text) {
  if (!text.empty()) writer.bytes(field, text);
}

void write_ids(WireWriter& writer, uint32_t field, const std::vector<uint64_t>& ids) {
  if (ids.empty()) return;
  WireWriter packed;
  for (const uint64_t id : ids) packed.packed_varint(id);
  writer.bytes(field, packed.text());
}

void write_tensors(WireWriter& writer, uint32_t field, const std::optional<ChakraTensors>& tensors) {
  if (!tensors) return;
  WireWriter inside;
  write_text(inside, tensors_values, tensors->values);
  write_text(inside, tensors_shapes, tensors->shapes);
  write_text(inside, tensors_types, tensors->types);
  inside.raw(tensors->unknown);
  writer.bytes(field, inside.text());
}

void write_attributes(WireWriter& writer, uint32_t field, const std::vector<ChakraAttribute>& attributes) {
  for (const ChakraAttribute& attribute : attributes) {
    WireWriter inside;
    write_text(inside, attribute_name, attribute.name);
    write_text(inside, attribute_doc_string, attribute.doc_string);
    std::visit(ValueWriter(inside, attribute.format), attribute.value);
    inside.raw(attribute.unknown);
    writer.bytes(field, inside.text());
  }
}

std::string node_text(const ChakraNode& node) {
  WireWriter writer;
  write_number(writer, node_id, node.id);
  write_text(writer, node_name, node.name);
  write_number(writer, node_type, static_cast<uint64_t>(int64_t{static_cast<int32_t>(node.type)}));
  write_ids(writer, node_control_dependencies, node.control_dependencies);
  write_ids(writer, node_data_dependencies, node.data_dependencies);
  write_number(writer, node_start, node.start_time_micros);
  write_number(writer, node_duration, node.duration_micros);
  write_tensors(writer, node_inputs, node.inputs);
  write_tensors(writer, node_outputs, node.outputs);
  write_attributes(writer, node_attribute, node.attributes);
  writer.raw(node.unknown);
  return writer.take();
}

}  // namespace

std::string chakra_text(const ChakraTrace& trace) {
  WireWriter metadata;
  write_text(metadata, metadata_version, trace.metadata.version);
  write_attributes(metadata, metadata_attribute, trace.metadata.attributes);
  metadata.raw(trace.metadata.unknown);
  WireWriter stream;
  const auto append = [&](const std::string& message) {
    stream.packed_varint(message.size());
    stream.raw(message);
  };
  append(metadata.text());
  for (const ChakraNode& node : trace.nodes) append(node_text(node));
  return stream.take();
}

}  // namespace foretoken
