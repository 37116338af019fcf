// The part of Jinja that Timeloop's files use: variables with defaults, conditions, and including other files.
//
//   {{ name }}  {{ name | default(8) }}  {{ include('arch.yaml', 'architecture') }}  {{ include_text('part.yaml') }}
//   {% set name = cwd() ~ '/arch.yaml' %}  {% if path_exists(name) %} ... {% elif .. %} ... {% else %} ... {% endif %}
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace foretoken {

using JinjaVariables = std::map<std::string, std::string, std::less<>>;

bool has_jinja(std::string_view text);

// NAME=VALUE each; InputError for others.
JinjaVariables jinja_variables(std::span<const std::string> assignments);

// InputError with the line for a statement, function or filter that nobody here knows, for a variable without a value
// and for files that are not there. `include` puts a section of a file, `include_text` its text, `include_all` the
// lists of all files that match. Paths are looked up beside the file, then in the folders of add_to_path.
std::string expand_jinja_file(const std::filesystem::path& path, const JinjaVariables& variables);
// Text of no file: it cannot include any.
std::string expand_jinja(std::string_view text, const std::string& source, const JinjaVariables& variables);

}  // namespace foretoken
