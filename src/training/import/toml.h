// TOML in: the same tree that YAML gives, with lines and with limits on what a file may ask of us.
#pragma once

#include <string>
#include <string_view>

#include "base/yaml.h"

namespace foretoken {

// Tables and inline tables are maps; an array of tables is a sequence of maps. Dates stay text. InputError, with the
// line, for anything that is not TOML 1.0, a key that is set twice, and files beyond 4 MiB, 10,000 values or 64 levels.
YamlNode parse_toml(std::string_view text, const std::string& source);

// Whether the first line that says something is a table's name in brackets, or a key with an equals sign.
bool looks_like_toml(std::string_view text);

}  // namespace foretoken
