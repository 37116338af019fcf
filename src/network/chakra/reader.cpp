#include <bit>

#include <fmt/format.h>

#include "base/file.h"
#include "base/protobuf.h"
#include "network/chakra/chakra.h"
#include "network/chakra/schema.h"

namespace foretoken {
namespace {

using namespace chakra_schema;

void expect(const WireReader& reader, const WireField& field, WireKind kind, std::string_view what) {
  if (field.kind == kind) return;
  reader.fail(fmt::format("wire type {} in field {}", static_cast<int>(field.kind), field.number), std::string(what));
}

void read_text(const WireReader& reader, const WireField& field, std::string& target) {
  expect(reader, field, WireKind::bytes, "a text");
  target = field.bytes;
}

void read_ids(const WireReader& reader, const WireField& field, std::vector<uint64_t>& target) {
  if (field.kind == WireKind::varint) {
    target.push_back(field.value);
    return;
  }
  expect(reader, field, WireKind::bytes, "node ids");
  for (WireReader packed = reader.inside(field); !packed.at_end();) target.push_back(packed.varint());
}

WireKind wire_kind(ChakraFormat format) {
  switch (format) {
    case ChakraFormat::real64:
    case ChakraFormat::fixed64:
    case ChakraFormat::sfixed64:
      return WireKind::fixed64;
    case ChakraFormat::real32:
    case ChakraFormat::fixed32:
    case ChakraFormat::sfixed32:
      return WireKind::fixed32;
    case ChakraFormat::text:
    case ChakraFormat::bytes:
      return WireKind::bytes;
    default:
      return WireKind::varint;
  }
}

int64_t signed_value(ChakraFormat format, uint64_t bits) {
  switch (format) {
    case ChakraFormat::int32:
    case ChakraFormat::sfixed32:
      return static_cast<int32_t>(static_cast<uint32_t>(bits));
    case ChakraFormat::sint32:
      return static_cast<int32_t>(from_zigzag(static_cast<uint32_t>(bits)));
    case ChakraFormat::sint64:
      return from_zigzag(bits);
    default:
      return static_cast<int64_t>(bits);
  }
}

// The list in `value` if it holds one of that type already (lists in pieces are joined), else a new one.
template <class Item>
std::vector<Item>& list_in(ChakraValue& value) {
  if (!std::holds_alternative<std::vector<Item>>(value)) value = std::vector<Item>();
  return std::get<std::vector<Item>>(value);
}

template <class Item>
void store(ChakraValue& value, bool list, Item item) {
  if (list) {
    list_in<Item>(value).push_back(std::move(item));
  } else {
    value = std::move(item);
  }
}

void store_bits(ChakraAttribute& attribute, bool list, uint64_t bits) {
  switch (attribute.format) {
    case ChakraFormat::real64:
      return store(attribute.value, list, std::bit_cast<double>(bits));
    case ChakraFormat::real32:
      return store(attribute.value, list, std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case ChakraFormat::boolean:
      return store(attribute.value, list, bits != 0);
    case ChakraFormat::uint32:
      return store(attribute.value, list, uint64_t{static_cast<uint32_t>(bits)});
    case ChakraFormat::uint64:
    case ChakraFormat::fixed32:
    case ChakraFormat::fixed64:
      return store(attribute.value, list, bits);
    default:
      return store(attribute.value, list, signed_value(attribute.format, bits));
  }
}

void make_list(ChakraAttribute& attribute) {
  switch (attribute.format) {
    case ChakraFormat::real64:
      list_in<double>(attribute.value);
      return;
    case ChakraFormat::real32:
      list_in<float>(attribute.value);
      return;
    case ChakraFormat::boolean:
      list_in<bool>(attribute.value);
      return;
    case ChakraFormat::uint32:
    case ChakraFormat::uint64:
    case ChakraFormat::fixed32:
    case ChakraFormat::fixed64:
      list_in<uint64_t>(attribute.value);
      return;
    case ChakraFormat::text:
    case ChakraFormat::bytes:
      list_in<std::string>(attribute.value);
      return;
    default:
      list_in<int64_t>(attribute.value);
  }
}

void read_list(WireReader reader, ChakraAttribute& attribute) {
  const WireKind kind = wire_kind(attribute.format);
  make_list(attribute);
  WireField field;
  while (reader.next(field)) {
    if (field.number != list_values) reader.fail(fmt::format("field {}", field.number), "a list of values only");
    if (kind == WireKind::bytes) {
      expect(reader, field, WireKind::bytes, "a list of texts");
      store(attribute.value, true, std::string(field.bytes));
    } else if (field.kind == kind) {
      store_bits(attribute, true, field.value);
    } else {
      expect(reader, field, WireKind::bytes, "a list of numbers");
      for (WireReader packed = reader.inside(field); !packed.at_end();) {
        store_bits(attribute, true,
                   kind == WireKind::varint    ? packed.varint()
                   : kind == WireKind::fixed32 ? packed.fixed32()
                                               : packed.fixed64());
      }
    }
  }
}

void read_value(const WireReader& reader, const WireField& field, ChakraAttribute& attribute) {
  const ChakraFormat format = format_of(field.number);
  // One of the kinds only: the last one counts. A list that comes in pieces is joined.
  if (format != attribute.format || !is_list(field.number)) attribute.value = std::monostate();
  attribute.format = format;
  if (is_list(field.number)) {
    expect(reader, field, WireKind::bytes, "a list");
    read_list(reader.inside(field), attribute);
    return;
  }
  expect(reader, field, wire_kind(format), "the wire type of this value");
  if (field.kind == WireKind::bytes) {
    attribute.value = std::string(field.bytes);
  } else {
    store_bits(attribute, false, field.value);
  }
}

ChakraAttribute read_attribute(WireReader reader) {
  ChakraAttribute attribute;
  WireField field;
  while (reader.next(field)) {
    if (field.number == attribute_name) {
      read_text(reader, field, attribute.name);
    } else if (field.number == attribute_doc_string) {
      read_text(reader, field, attribute.doc_string);
    } else if (field.number >= attribute_first_value && field.number <= attribute_last_value) {
      read_value(reader, field, attribute);
    } else {
      attribute.unknown += field.whole;
    }
  }
  return attribute;
}

void read_tensors(WireReader reader, std::optional<ChakraTensors>& tensors) {
  if (!tensors) tensors.emplace();
  WireField field;
  while (reader.next(field)) {
    switch (field.number) {
      case tensors_values:
        read_text(reader, field, tensors->values);
        break;
      case tensors_shapes:
        read_text(reader, field, tensors->shapes);
        break;
      case tensors_types:
        read_text(reader, field, tensors->types);
        break;
      default:
        tensors->unknown += field.whole;
    }
  }
}

void read_node(WireReader reader, ChakraNode& node) {
  const auto number = [&](const WireField& field) {
    expect(reader, field, WireKind::varint, "a number");
    return field.value;
  };
  const auto message = [&](const WireField& field) {
    expect(reader, field, WireKind::bytes, "a message");
    return reader.inside(field);
  };
  WireField field;
  while (reader.next(field)) {
    switch (field.number) {
      case node_id:
        node.id = number(field);
        break;
      case node_name:
        read_text(reader, field, node.name);
        break;
      case node_type:
        node.type = static_cast<ChakraNodeType>(static_cast<int32_t>(number(field)));
        break;
      case node_control_dependencies:
        read_ids(reader, field, node.control_dependencies);
        break;
      case node_data_dependencies:
        read_ids(reader, field, node.data_dependencies);
        break;
      case node_start:
        node.start_time_micros = number(field);
        break;
      case node_duration:
        node.duration_micros = number(field);
        break;
      case node_inputs:
        read_tensors(message(field), node.inputs);
        break;
      case node_outputs:
        read_tensors(message(field), node.outputs);
        break;
      case node_attribute:
        node.attributes.push_back(read_attribute(message(field)));
        break;
      default:
        node.unknown += field.whole;
    }
  }
}

ChakraMetadata read_metadata(WireReader reader) {
  ChakraMetadata metadata{.version = ""};
  WireField field;
  while (reader.next(field)) {
    if (field.number == metadata_version) {
      expect(reader, field, WireKind::bytes, "a Chakra execution trace, which starts with GlobalMetadata");
      metadata.version = field.bytes;
    } else if (field.number == metadata_attribute) {
      expect(reader, field, WireKind::bytes, "an attribute");
      metadata.attributes.push_back(read_attribute(reader.inside(field)));
    } else {
      metadata.unknown += field.whole;
    }
  }
  return metadata;
}

// Empties a node but keeps the memory it holds.
void clear(ChakraNode& node) {
  node.id = 0;
  node.name.clear();
  node.type = ChakraNodeType::invalid;
  node.control_dependencies.clear();
  node.data_dependencies.clear();
  node.start_time_micros = node.duration_micros = 0;
  node.inputs.reset();
  node.outputs.reset();
  node.attributes.clear();
  node.unknown.clear();
}

}  // namespace

ChakraReader::ChakraReader(std::string content, std::string source, ChakraLimits limits)
    : content_(std::move(content)), source_(std::move(source)), limits_(limits) {
  WireReader stream(content_, source_);
  if (stream.at_end()) stream.fail("an empty file", "a Chakra execution trace, which starts with GlobalMetadata");
  const std::string_view message = stream.delimited(limits_.max_message_bytes);
  position_ = stream.offset();
  metadata_ = read_metadata(WireReader(message, source_, position_ - message.size()));
}

ChakraReader ChakraReader::open(const std::filesystem::path& path, ChakraLimits limits) {
  return {read_file(path, limits.max_file_bytes), path.string(), limits};
}

bool ChakraReader::next(ChakraNode& node) {
  clear(node);
  WireReader stream(std::string_view(content_).substr(position_), source_, position_);
  if (stream.at_end()) return false;
  const std::string_view message = stream.delimited(limits_.max_message_bytes);
  position_ = stream.offset();
  read_node(WireReader(message, source_, position_ - message.size()), node);
  return true;
}

ChakraTrace parse_chakra(std::string content, const std::string& source, ChakraLimits limits) {
  ChakraReader reader(std::move(content), source, limits);
  ChakraTrace trace{.metadata = reader.metadata()};
  ChakraNode node;
  while (reader.next(node)) trace.nodes.push_back(node);
  return trace;
}

}  // namespace foretoken
