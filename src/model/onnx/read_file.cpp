#include "model/onnx/read_file.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/protobuf.h"
#include "model/onnx/schema.h"
#include "model/onnx/tensor_content.h"

namespace foretoken {
namespace {

using namespace onnx_schema;

// Reads messages into structs and keeps count of them, so that a small file cannot become a large graph.
class OnnxParser {
 public:
  OnnxParser(const std::filesystem::path& folder, const OnnxLimits& limits) : folder_(folder), limits_(limits) {}

  OnnxFile model(WireReader reader, const std::string& source) {
    OnnxFile file{.source = source};
    bool has_graph = false;
    WireField field;
    while (reader.next(field)) {
      switch (field.number) {
        case model_producer:
          file.producer = text(reader, field);
          break;
        case model_producer_version:
          file.producer += " " + text(reader, field);
          break;
        case model_graph:
          file.body = body(message(reader, field), 0);
          has_graph = true;
          break;
        case model_opset:
          file.opsets.push_back(opset(message(reader, field)));
          break;
        case model_function:
          file.functions.push_back(function(message(reader, field)));
          break;
        default:
          break;
      }
    }
    if (!has_graph)
      reader.fail("not an ONNX file: no graph in it", "a model as onnx.save or torch.onnx.export writes it");
    return file;
  }

 private:
  static void expect(const WireReader& reader, const WireField& field, WireKind kind, std::string_view what) {
    if (field.kind == kind) return;
    reader.fail(fmt::format("wire type {} in field {}", static_cast<int>(field.kind), field.number),
                fmt::format("{}, as in an ONNX model", what));
  }
  static WireReader message(const WireReader& reader, const WireField& field) {
    expect(reader, field, WireKind::bytes, "a message");
    return reader.inside(field);
  }
  static std::string text(const WireReader& reader, const WireField& field) {
    expect(reader, field, WireKind::bytes, "a text");
    return std::string(field.bytes);
  }
  static int64_t integer(const WireReader& reader, const WireField& field) {
    expect(reader, field, WireKind::varint, "a whole number");
    return static_cast<int64_t>(field.value);
  }

  void count(const WireReader& reader, size_t& counter, size_t limit, std::string_view what) const {
    if (++counter > limit) reader.fail(fmt::format("more than {} {}", limit, what), "a smaller graph");
  }

  // A repeated number: one a field, or many packed into one. `take` is given the bits of each.
  template <class Take>
  void numbers(const WireReader& reader, const WireField& field, WireKind kind, Take take) {
    if (field.kind == kind) {
      count(reader, names_, limits_.max_names, "names and numbers");
      take(field.value);
      return;
    }
    expect(reader, field, WireKind::bytes, "numbers");
    for (WireReader packed = reader.inside(field); !packed.at_end();) {
      count(reader, names_, limits_.max_names, "names and numbers");
      take(kind == WireKind::varint    ? packed.varint()
           : kind == WireKind::fixed32 ? packed.fixed32()
                                       : packed.fixed64());
    }
  }

  static OnnxType type_of(const WireReader& reader, const WireField& field) {
    const int64_t code = integer(reader, field);
    if (code < 0 || code >= onnx_type_count) {
      reader.fail(fmt::format("element type {}", code), fmt::format("an ONNX type from 0 to {}", onnx_type_count - 1));
    }
    return static_cast<OnnxType>(code);
  }

  static std::pair<std::string, int64_t> opset(WireReader reader) {
    std::pair<std::string, int64_t> result{"", 0};
    WireField field;
    while (reader.next(field)) {
      if (field.number == opset_domain) result.first = text(reader, field);
      if (field.number == opset_version) result.second = integer(reader, field);
    }
    if (result.first == "ai.onnx") result.first.clear();
    return result;
  }

  OnnxBody body(WireReader reader, int depth) {
    if (depth > limits_.max_nesting) {
      reader.fail("graphs within graphs", fmt::format("at most {} of them", limits_.max_nesting));
    }
    OnnxBody result;
    WireField field;
    while (reader.next(field)) {
      switch (field.number) {
        case graph_node:
          result.nodes.push_back(node(message(reader, field), depth));
          break;
        case graph_name:
          result.name = text(reader, field);
          break;
        case graph_initializer:
          result.initializers.push_back(tensor(message(reader, field)));
          break;
        case graph_sparse_initializer:
          result.initializers.push_back(sparse_tensor(message(reader, field)));
          break;
        case graph_input:
          result.inputs.push_back(value_info(message(reader, field)));
          break;
        case graph_output:
          result.outputs.push_back(value_info(message(reader, field)));
          break;
        case graph_value_info:
          result.between.push_back(value_info(message(reader, field)));
          break;
        default:
          break;
      }
    }
    return result;
  }

  OnnxFileNode node(WireReader reader, int depth) {
    count(reader, nodes_, limits_.max_nodes, "nodes");
    OnnxFileNode result;
    WireField field;
    while (reader.next(field)) {
      switch (field.number) {
        case node_input:
          count(reader, names_, limits_.max_names, "names and numbers");
          result.inputs.push_back(text(reader, field));
          break;
        case node_output:
          count(reader, names_, limits_.max_names, "names and numbers");
          result.outputs.push_back(text(reader, field));
          break;
        case node_name:
          result.name = text(reader, field);
          break;
        case node_operation:
          result.operation = text(reader, field);
          break;
        case node_attribute:
          result.attributes.push_back(attribute(message(reader, field), depth));
          break;
        case node_domain:
          result.domain = text(reader, field);
          break;
        default:
          break;
      }
    }
    if (result.domain == "ai.onnx") result.domain.clear();
    return result;
  }

  OnnxAttribute attribute(WireReader reader, int depth) {
    count(reader, names_, limits_.max_names, "names and numbers");
    OnnxAttribute result;
    uint64_t kind = 0;
    const auto list = [&]<class Item>(Item) -> std::vector<Item>& {
      if (!std::holds_alternative<std::vector<Item>>(result.value)) result.value = std::vector<Item>();
      return std::get<std::vector<Item>>(result.value);
    };
    const auto real = [](uint64_t bits) {
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    };
    WireField field;
    while (reader.next(field)) {
      switch (field.number) {
        case attribute_name:
          result.name = text(reader, field);
          break;
        case attribute_reference:
          result.reference = text(reader, field);
          break;
        case attribute_type:
          kind = static_cast<uint64_t>(integer(reader, field));
          break;
        case attribute_real:
          expect(reader, field, WireKind::fixed32, "a float");
          result.value = real(field.value);
          break;
        case attribute_integer:
          result.value = integer(reader, field);
          break;
        case attribute_text:
          result.value = text(reader, field);
          break;
        case attribute_tensor:
          result.value = tensor(message(reader, field));
          break;
        case attribute_graph:
          result.value = std::make_shared<const OnnxBody>(body(message(reader, field), depth + 1));
          break;
        case attribute_reals:
          numbers(reader, field, WireKind::fixed32, [&](uint64_t bits) { list(double{}).push_back(real(bits)); });
          break;
        case attribute_integers:
          numbers(reader, field, WireKind::varint,
                  [&](uint64_t bits) { list(int64_t{}).push_back(static_cast<int64_t>(bits)); });
          break;
        case attribute_texts:
          count(reader, names_, limits_.max_names, "names and numbers");
          list(std::string()).push_back(text(reader, field));
          break;
        default:
          break;
      }
    }
    if (std::holds_alternative<std::monostate>(result.value)) set_default(result, kind);
    return result;
  }

  // Zeros, empty texts and empty lists may be left out of the file.
  static void set_default(OnnxAttribute& attribute, uint64_t kind) {
    if (!attribute.reference.empty()) return;
    if (kind == kind_real) attribute.value = 0.0;
    if (kind == kind_integer) attribute.value = int64_t{0};
    if (kind == kind_text) attribute.value = std::string();
    if (kind == kind_reals) attribute.value = std::vector<double>();
    if (kind == kind_integers) attribute.value = std::vector<int64_t>();
    if (kind == kind_texts) attribute.value = std::vector<std::string>();
  }

  OnnxTensorData tensor(WireReader reader) {
    count(reader, tensors_, limits_.max_tensors, "tensors");
    OnnxTensorData result;
    OnnxTensorContent content;
    WireField field;
    while (reader.next(field)) {
      switch (field.number) {
        case tensor_dims:
          numbers(reader, field, WireKind::varint,
                  [&](uint64_t bits) { result.dims.push_back(static_cast<int64_t>(bits)); });
          break;
        case tensor_type:
          result.type = type_of(reader, field);
          break;
        case tensor_name:
          result.name = text(reader, field);
          break;
        case tensor_raw_data:
          expect(reader, field, WireKind::bytes, "bytes");
          content.raw = field.bytes;
          break;
        case tensor_float_data:
        case tensor_int32_data:
        case tensor_int64_data:
        case tensor_double_data:
        case tensor_uint64_data:
          if (content.fields.size() <= static_cast<size_t>(most_onnx_values)) content.fields.push_back(field);
          break;
        case tensor_external:
          external_entry(message(reader, field), content);
          break;
        case tensor_location:
          content.is_external = integer(reader, field) == 1;
          break;
        default:
          break;
      }
    }
    if (!onnx_elements(result.dims)) {
      reader.fail(fmt::format("tensor '{}' of {} dimensions", printable(result.name), result.dims.size()),
                  "sizes from 0, at most 64 of them, and at most 2^46 elements");
    }
    result.values = small_content(result, content, folder_, reader);
    return result;
  }

  static void external_entry(WireReader reader, OnnxTensorContent& content) {
    std::string key, value;
    WireField field;
    while (reader.next(field)) {
      if (field.number == entry_key) key = text(reader, field);
      if (field.number == entry_value) value = text(reader, field);
    }
    if (key == "location") content.file = value;
    if (key == "offset") content.offset = value;
    if (key == "length") content.length = value;
  }

  // Its dense shape; what is stored of it does not change what an operator does with it.
  OnnxTensorData sparse_tensor(WireReader reader) {
    OnnxTensorData result;
    OnnxDims dims;
    WireField field;
    while (reader.next(field)) {
      if (field.number == sparse_values) result = tensor(message(reader, field));
      if (field.number == sparse_dims) {
        numbers(reader, field, WireKind::varint, [&](uint64_t bits) { dims.push_back(static_cast<int64_t>(bits)); });
      }
    }
    if (!onnx_elements(dims)) reader.fail("a sparse tensor", "sizes from 0 and at most 2^46 elements");
    result.dims = std::move(dims);
    result.values.reset();
    return result;
  }

  OnnxValueInfo value_info(WireReader reader) {
    count(reader, tensors_, limits_.max_tensors, "tensors");
    OnnxValueInfo result;
    WireField field;
    while (reader.next(field)) {
      if (field.number == value_name) result.name = text(reader, field);
      if (field.number == value_type) read_type(message(reader, field), result, 0);
    }
    return result;
  }

  // Sequences and optional values are described by their element.
  void read_type(WireReader reader, OnnxValueInfo& result, int depth) {
    if (depth > limits_.max_nesting) reader.fail("types within types", "a tensor");
    WireField field;
    while (reader.next(field)) {
      if (field.number == type_tensor) read_tensor_type(message(reader, field), result);
      if (field.number != type_sequence && field.number != type_optional) continue;
      WireReader element = message(reader, field);
      WireField inner;
      while (element.next(inner)) {
        if (inner.number == 1) read_type(message(element, inner), result, depth + 1);
      }
    }
  }

  void read_tensor_type(WireReader reader, OnnxValueInfo& result) {
    WireField field;
    while (reader.next(field)) {
      if (field.number == tensor_type_element) result.type = type_of(reader, field);
      if (field.number != tensor_type_shape) continue;
      result.has_shape = true;
      WireReader shape = message(reader, field);
      WireField dimension;
      while (shape.next(dimension)) {
        if (dimension.number == shape_dimension) result.dims.push_back(dimension_of(message(shape, dimension)));
        if (result.dims.size() > most_onnx_rank) shape.fail("a tensor of too many dimensions", "at most 64");
      }
    }
  }

  static OnnxDimension dimension_of(WireReader reader) {
    OnnxDimension result;
    WireField field;
    while (reader.next(field)) {
      if (field.number == dimension_size) result.size = integer(reader, field);
      if (field.number == dimension_symbol) result.symbol = text(reader, field);
    }
    if (result.size < 0) result.size = -1;
    if (result.size > most_onnx_elements) reader.fail(fmt::format("a size of {}", result.size), "at most 2^46");
    return result;
  }

  OnnxFunction function(WireReader reader) {
    OnnxFunction result;
    WireField field;
    while (reader.next(field)) {
      switch (field.number) {
        case function_name:
          result.name = text(reader, field);
          break;
        case function_domain:
          result.domain = text(reader, field);
          break;
        case function_input:
          count(reader, names_, limits_.max_names, "names and numbers");
          result.inputs.push_back(text(reader, field));
          break;
        case function_output:
          count(reader, names_, limits_.max_names, "names and numbers");
          result.outputs.push_back(text(reader, field));
          break;
        case function_node:
          result.nodes.push_back(node(message(reader, field), 0));
          break;
        case function_default:
          result.defaults.push_back(attribute(message(reader, field), 0));
          break;
        default:
          break;
      }
    }
    return result;
  }

  std::filesystem::path folder_;
  OnnxLimits limits_;
  size_t nodes_ = 0, tensors_ = 0, names_ = 0;
};

// What a file that is no ONNX model is instead; empty = it may be one. A model begins with its version (field 1) or
// another of its first fields, so with a byte that is no letter.
std::string other_content(std::string_view content) {
  constexpr std::string_view lfs = "version https://git-lfs";
  if (content.starts_with(lfs)) return "a pointer of Git LFS: the file itself was not fetched";
  if (content.starts_with("PK\x03\x04")) return "a zip archive, such as PyTorch's files";
  if (content.starts_with("\x89HDF")) return "an HDF5 file, such as those of Keras";
  if (content.starts_with("GGUF")) return "a GGUF file";
  constexpr size_t most_looked_at = 64, most_shown = 24;
  const std::string_view begin = content.substr(0, most_looked_at);
  const bool is_text = std::all_of(
      begin.begin(), begin.end(), [](char c) { return (c >= ' ' && c < 0x7f) || c == '\n' || c == '\r' || c == '\t'; });
  if (!is_text) return "";
  const std::string_view line = begin.substr(0, std::min(begin.find_first_of("\r\n"), most_shown));
  return fmt::format("text that begins with '{}'", printable(std::string(line)));
}

}  // namespace

OnnxFile parse_onnx(std::string_view content, const std::string& source, const std::filesystem::path& folder,
                    const OnnxLimits& limits) {
  constexpr const char* wanted = "a model as onnx.save or torch.onnx.export writes it";
  if (content.empty()) throw InputError({.source = source, .value = "an empty file", .expected = wanted});
  if (const std::string other = other_content(content); !other.empty()) {
    throw InputError({.source = source, .path = "byte 0", .value = "not an ONNX file: " + other, .expected = wanted});
  }
  return OnnxParser(folder, limits).model(WireReader(content, source), source);
}

OnnxFile read_onnx_file(const std::filesystem::path& path, const OnnxLimits& limits) {
  const std::string content = read_file(path, limits.max_bytes);
  return parse_onnx(content, path.string(), path.has_parent_path() ? path.parent_path() : ".", limits);
}

}  // namespace foretoken
