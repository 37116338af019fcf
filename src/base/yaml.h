// YAML in: a tree that remembers lines, with limits on what a file may ask of us.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

struct YamlNode {
  enum class Kind { null, scalar, sequence, map };

  Kind kind = Kind::null;
  int line = 0;                   // 1-based
  std::string scalar;             // as it is written, without quotes
  bool quoted = false;            // a scalar in quotes is text, whatever it looks like
  std::string tag;                // without its `!`; empty when none is written
  std::vector<YamlNode> items;    // of a sequence or a map, in the order of the file
  std::vector<std::string> keys;  // of a map: those of its items

  const YamlNode* find(std::string_view key) const;  // null when there is none, or this is no map
};

struct YamlLimits {
  size_t max_bytes = size_t{4} << 20;
  int max_depth = 64;
  size_t max_nodes = 200'000;  // aliases count as often as they are used
};

// The first document of the text; an empty text is null. `source` names it in errors. Duplicate keys, keys that are not
// scalars and broken UTF-8 are errors.
YamlNode parse_yaml(std::string_view text, const std::string& source, const YamlLimits& limits = {});

}  // namespace foretoken
