#include "model/onnx/tensor_content.h"

#include <bit>
#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "model/onnx/schema.h"

namespace foretoken {
namespace {

// Little-endian, `width` bytes.
uint64_t raw_word(std::string_view bytes, size_t at, size_t width) {
  uint64_t word = 0;
  for (size_t i = 0; i < width; ++i) word |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return word;
}

int64_t sign_extended(uint64_t word, size_t width) {
  const auto shift = static_cast<int>(64 - 8 * width);
  return static_cast<int64_t>(word << shift) >> shift;
}

bool is_signed(OnnxType type) {
  return type == OnnxType::int8 || type == OnnxType::int16 || type == OnnxType::int32 || type == OnnxType::int64;
}

double real_of_bits(OnnxType type, uint64_t bits) {
  return type == OnnxType::float64 ? std::bit_cast<double>(bits)
                                   : static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
}

bool has_foldable_numbers(OnnxType type) {
  switch (type) {
    case OnnxType::float32:
    case OnnxType::float64:
    case OnnxType::uint8:
    case OnnxType::int8:
    case OnnxType::uint16:
    case OnnxType::int16:
    case OnnxType::int32:
    case OnnxType::int64:
    case OnnxType::boolean:
    case OnnxType::uint32:
    case OnnxType::uint64:
      return true;
    default:
      return false;
  }
}

OnnxValues from_raw(OnnxType type, std::string_view raw, size_t width) {
  OnnxValues values;
  for (size_t at = 0; at < raw.size(); at += width) {
    const uint64_t word = raw_word(raw, at, width);
    if (is_real(type)) {
      values.reals.push_back(real_of_bits(type, word));
    } else {
      values.integers.push_back(is_signed(type) ? sign_extended(word, width) : static_cast<int64_t>(word));
    }
  }
  return values;
}

// One number of a field of the given kind.
void take_bits(OnnxType type, uint64_t bits, OnnxValues& values) {
  if (is_real(type)) {
    values.reals.push_back(real_of_bits(type, bits));
  } else {
    values.integers.push_back(static_cast<int64_t>(bits));
  }
}

OnnxValues from_fields(OnnxType type, const std::vector<WireField>& fields, size_t most, const WireReader& reader) {
  const WireKind kind = type == OnnxType::float32   ? WireKind::fixed32
                        : type == OnnxType::float64 ? WireKind::fixed64
                                                    : WireKind::varint;
  OnnxValues values;
  const std::string source = "tensor data";
  for (const WireField& field : fields) {
    if (field.kind == kind) {
      take_bits(type, field.value, values);
    } else if (field.kind == WireKind::bytes) {
      for (WireReader packed(field.bytes, source); !packed.at_end();) {
        take_bits(type,
                  kind == WireKind::varint    ? packed.varint()
                  : kind == WireKind::fixed32 ? packed.fixed32()
                                              : packed.fixed64(),
                  values);
        if (values.integers.size() + values.reals.size() > most) break;
      }
    } else {
      reader.fail(fmt::format("wire type {} in the data of a tensor", static_cast<int>(field.kind)),
                  "numbers of the tensor's type");
    }
  }
  return values;
}

// The bytes of a tensor in a file beside the model; empty when there is none. Names that leave the folder are refused.
std::string external_bytes(const OnnxTensorContent& content, const std::filesystem::path& folder, size_t size,
                           const WireReader& reader) {
  const std::filesystem::path name(content.file);
  bool leaves = name.is_absolute() || content.file.empty();
  for (const std::filesystem::path& part : name) leaves = leaves || part == "..";
  const std::optional<int64_t> offset = content.offset.empty() ? 0 : parse_integer(content.offset);
  if (leaves || !offset || *offset < 0) {
    reader.fail(fmt::format("external data in '{}' at '{}'", printable(content.file), printable(content.offset)),
                "a file in the model's folder or below, and an offset from 0");
  }
  if (folder.empty()) return {};
  std::error_code error;
  if (!std::filesystem::is_regular_file(folder / name, error)) return {};
  std::ifstream file(folder / name, std::ios::binary);
  std::string bytes(size, '\0');
  file.seekg(*offset);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  return file ? bytes : std::string();
}

}  // namespace

std::optional<OnnxValues> small_content(const OnnxTensorData& tensor, const OnnxTensorContent& content,
                                        const std::filesystem::path& folder, const WireReader& reader) {
  const int64_t elements = onnx_elements(tensor.dims).value_or(most_onnx_values + 1);
  if (elements > most_onnx_values || !has_foldable_numbers(tensor.type)) return std::nullopt;
  const auto expected = static_cast<size_t>(elements);
  const auto width = static_cast<size_t>(onnx_element_bytes(tensor.type));
  std::string external;
  std::string_view raw = content.raw;
  if (content.is_external) {
    external = external_bytes(content, folder, expected * width, reader);
    raw = external;
  }
  if (raw.empty() && content.fields.empty()) {
    if (expected == 0) return OnnxValues{};
    return std::nullopt;
  }
  OnnxValues values;
  if (!raw.empty()) {
    if (raw.size() != expected * width) {
      reader.fail(
          fmt::format("{} bytes in tensor '{}'", raw.size(), printable(tensor.name)),
          fmt::format("{}, for {} elements of type {}", expected * width, expected, onnx_type_name(tensor.type)));
    }
    values = from_raw(tensor.type, raw, width);
  } else {
    values = from_fields(tensor.type, content.fields, expected, reader);
  }
  const size_t found = values.integers.size() + values.reals.size();
  if (found != expected) {
    reader.fail(fmt::format("{} numbers in tensor '{}'", found, printable(tensor.name)),
                fmt::format("{}, as its shape says", expected));
  }
  return values;
}

}  // namespace foretoken
