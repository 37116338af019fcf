// A YAML tree as a Json value, so that readers of both share the views that complain with file, line and path.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/yaml.h"

namespace foretoken {

// The key under which a map's tag stands.
constexpr std::string_view yaml_tag_key = "!";

// Plain scalars that look like numbers, true, false or null become such; all others are text. Merge keys (`<<: *base`)
// are followed: what a map says itself wins. InputError for a merge of anything but maps.
Json json_of_yaml(const YamlNode& node, const std::string& source);

}  // namespace foretoken
