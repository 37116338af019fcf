// The JSON Schema that an answer must follow, read from a request: the keywords that tool and response schemas use.
// A keyword that would change the answer and is not known here is refused with its path.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"

namespace foretoken {

enum class SchemaKind : uint8_t { never, literal, number, text, array, object, alternatives };

struct SchemaProperty {
  std::string name;  // as JSON: in quotes
  size_t value = 0;  // a node
  bool required = false;
};

// One schema inside the schema. Which members count depends on the kind.
struct SchemaNode {
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
  static constexpr int64_t no_document = int64_t{1} << 40;
  static constexpr size_t nothing = std::numeric_limits<size_t>::max();

  SchemaKind kind = SchemaKind::never;
  std::vector<std::string> literals;       // as JSON, the shortest first
  bool of_format = false;                  // the literal is an example of a text's format
  bool takes_other_types = false;          // no type is given: values of all other types fit too
  int64_t least = 0, most = unlimited;     // characters, items or properties
  std::string shortest_number;             // as JSON
  int64_t first = 0, step = 1, steps = 0;  // other numbers: first + step * (0 to steps)
  std::vector<size_t> children;            // alternatives, or the first items of an array
  size_t rest = nothing;                   // all other items
  std::vector<SchemaProperty> properties;
  int64_t bytes = no_document;  // of the shortest document
  size_t shortest = nothing;    // the alternative with it
};

struct AnswerSchema {
  std::vector<SchemaNode> nodes;  // the first is the whole
  int64_t shortest_bytes() const { return nodes.front().bytes; }
  bool makes_objects() const;  // and nothing else
};

inline constexpr size_t most_schema_nodes = 1000;
inline constexpr size_t most_schema_literals = 10'000;                 // of all enums together
inline constexpr int64_t longest_schema_document = int64_t{16} << 10;  // bytes of the shortest document

AnswerSchema read_answer_schema(const JsonView& schema);
AnswerSchema any_json_object();

// All ASCII: other characters are escaped, so that tokens of four bytes never cut a character.
std::string ascii_json(const Json& value);

}  // namespace foretoken
