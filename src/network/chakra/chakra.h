// Chakra execution traces: what one rank of a distributed workload did, as a graph of nodes. Data only.
// The schema is mlcommons/chakra, schema/protobuf/et_def.proto (package ChakraProtoMsg); names follow it. Fields that
// the schema does not have (or has not yet) are kept as they are, so that reading and writing loses nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace foretoken {

// Any number may stand in a file: types added later are kept.
enum class ChakraNodeType : int32_t {
  invalid = 0,
  metadata = 1,
  memory_load = 2,
  memory_store = 3,
  compute = 4,
  send = 5,
  receive = 6,
  collective = 7,
};

// Values of the attribute `comm_type`.
enum class ChakraCollective : int32_t {
  all_reduce = 0,
  reduce = 1,
  all_gather = 2,
  gather = 3,
  scatter = 4,
  broadcast = 5,
  all_to_all = 6,
  reduce_scatter = 7,
  reduce_scatter_block = 8,
  barrier = 9,
};

// The number formats of an attribute's value. The field in AttributeProto is 3 + 2 * format, one more for a list.
enum class ChakraFormat : uint8_t {
  real64,
  real32,
  int32,
  int64,
  uint32,
  uint64,
  sint32,
  sint64,
  fixed32,
  fixed64,
  sfixed32,
  sfixed64,
  boolean,
  text,
  bytes,
};

// Signed formats are int64_t, unsigned ones uint64_t, whatever their width; float stays float, so that no bit is lost.
using ChakraValue = std::variant<std::monostate, bool, int64_t, uint64_t, float, double, std::string, std::vector<bool>,
                                 std::vector<int64_t>, std::vector<uint64_t>, std::vector<float>, std::vector<double>,
                                 std::vector<std::string>>;

struct ChakraAttribute {
  std::string name;
  std::string doc_string;
  ChakraFormat format = ChakraFormat::real64;
  ChakraValue value;    // std::monostate: none
  std::string unknown;  // encoded
  bool operator==(const ChakraAttribute&) const = default;
};

// A duration finer than Chakra's whole microseconds: an attribute (double, microseconds) that our own exports carry.
inline constexpr std::string_view fine_duration_attribute = "duration_micros_fine";
// Of a collective that an engine runs with a kernel of its own (engine_kernels).
inline constexpr std::string_view kernel_attribute = "comm_kernel";

// Attributes as Chakra's own tools write them.
ChakraAttribute chakra_integer(std::string name, int64_t value);
ChakraAttribute chakra_unsigned(std::string name, uint64_t value);
ChakraAttribute chakra_boolean(std::string name, bool value);
ChakraAttribute chakra_number(std::string name, double value);
ChakraAttribute chakra_text(std::string name, std::string value);

// The value as a number or a text where it is one, in any format; a number in a text too ("pg_name": "3").
std::optional<int64_t> integer_value(const ChakraAttribute& attribute);
std::optional<double> number_value(const ChakraAttribute& attribute);
std::optional<std::string> text_value(const ChakraAttribute& attribute);

struct ChakraTensors {
  std::string values, shapes, types;
  std::string unknown;
  bool operator==(const ChakraTensors&) const = default;
};

struct ChakraNode {
  uint64_t id = 0;
  std::string name;
  ChakraNodeType type = ChakraNodeType::invalid;
  std::vector<uint64_t> control_dependencies;  // ids
  std::vector<uint64_t> data_dependencies;
  uint64_t start_time_micros = 0;
  uint64_t duration_micros = 0;
  std::optional<ChakraTensors> inputs, outputs;
  std::vector<ChakraAttribute> attributes;
  std::string unknown;
  bool operator==(const ChakraNode&) const = default;

  const ChakraAttribute* find(std::string_view wanted) const;  // by name; null where there is none
};

struct ChakraMetadata {
  std::string version = "0.0.4";
  std::vector<ChakraAttribute> attributes;
  std::string unknown;
  bool operator==(const ChakraMetadata&) const = default;
};

struct ChakraTrace {
  ChakraMetadata metadata;
  std::vector<ChakraNode> nodes;
  bool operator==(const ChakraTrace&) const = default;
};

struct ChakraLimits {
  size_t max_file_bytes = size_t{4} << 30;  // of one rank, decompressed
  size_t max_message_bytes = size_t{64} << 20;
};

// Node by node, so that a large trace need not be in memory as nodes.
class ChakraReader {
 public:
  // InputError with file and byte for anything that is no such trace.
  ChakraReader(std::string content, std::string source, ChakraLimits limits = {});
  static ChakraReader open(const std::filesystem::path& path, ChakraLimits limits = {});  // plain or gzip

  const std::string& source() const { return source_; }
  const ChakraMetadata& metadata() const { return metadata_; }
  bool next(ChakraNode& node);  // false at the end; `node` is filled anew

 private:
  std::string content_;
  std::string source_;
  ChakraLimits limits_;
  ChakraMetadata metadata_;
  size_t position_ = 0;
};

ChakraTrace parse_chakra(std::string content, const std::string& source, ChakraLimits limits = {});

// What libprotobuf would write for the same message: a trace it wrote comes out with the same bytes.
std::string chakra_text(const ChakraTrace& trace);

// The file of one rank: PREFIX.RANK.et.
std::filesystem::path chakra_path(const std::string& prefix, int64_t rank);

}  // namespace foretoken
