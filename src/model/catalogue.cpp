#include "model/catalogue.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"

namespace foretoken {
namespace {

constexpr std::string_view slash_in_file_name = "--";

std::string_view after_slash(std::string_view id) {
  return id.substr(id.find('/') + 1);
}

// `text` with the first `old_part` replaced.
std::string with_first(std::string_view text, std::string_view old_part, std::string_view new_part) {
  const size_t at = text.find(old_part);
  if (at == text.npos) return std::string(text);
  return std::string(text).replace(at, old_part.size(), new_part);
}

// A name matches an id in whole, or the part of it after the slash.
bool matches(std::string_view id, const std::string& lower_name) {
  return lower_case(id) == lower_name || lower_case(after_slash(id)) == lower_name;
}

std::string text_or_empty(const JsonView& document, std::string_view key) {
  const auto value = document.find(key);
  return value ? value->string() : "";
}

std::optional<double> billions(const JsonView& document, std::string_view key) {
  const auto value = document.find(key);
  if (!value) return std::nullopt;
  return value->number({.least = 1e-6, .most = 1e9}) * giga;
}

std::optional<std::string> only_one(const std::vector<std::string>& found, std::string_view name) {
  if (found.size() <= 1) return found.empty() ? std::nullopt : std::optional(found.front());
  throw InputError({.source = "model",
                    .value = printable(name),
                    .expected = fmt::format("one of {}: the name alone fits them all", fmt::join(found, ", "))});
}

ModelEntry read_entry(const std::filesystem::path& file) {
  const Json json = read_json_file(file);
  const JsonView document(json, file.string());
  document.allow_only({"name", "aliases", "source", "checked", "published_parameters_billion",
                       "published_active_billion", "published_source", "config"});
  ModelEntry entry{.name = document.at("name").string(),
                   .family = document.at("config").at("model_type").string(),
                   .source = document.at("source").string(),
                   .checked = document.at("checked").string(),
                   .published_parameters = billions(document, "published_parameters_billion"),
                   .published_active = billions(document, "published_active_billion"),
                   .published_source = text_or_empty(document, "published_source"),
                   .file = file};
  if (const auto aliases = document.find("aliases")) {
    for (const JsonView& alias : aliases->items()) entry.aliases.push_back(alias.string());
  }
  return entry;
}

}  // namespace

ModelCatalogue::ModelCatalogue(std::filesystem::path directory) : directory_(std::move(directory)) {
  if (!std::filesystem::is_directory(directory_))
    throw InputError({.source = directory_.string(), .expected = "a folder of model files (data/models)"});
  for (const std::string& stem : json_stems(directory_)) names_.push_back(with_first(stem, slash_in_file_name, "/"));
  std::sort(names_.begin(), names_.end());
}

std::filesystem::path ModelCatalogue::file_of(std::string_view id) const {
  return directory_ / (with_first(id, "/", slash_in_file_name) + ".json");
}

std::optional<std::string> ModelCatalogue::find_by_file_name(std::string_view name) const {
  const std::string wanted = lower_case(name);
  std::vector<std::string> found;
  for (const std::string& id : names_) {
    if (lower_case(id) == wanted) return id;
    if (matches(id, wanted)) found.push_back(id);
  }
  return only_one(found, name);
}

// Aliases stand inside the files, so all of them are read.
std::optional<std::string> ModelCatalogue::find_by_alias(std::string_view name) const {
  const std::string wanted = lower_case(name);
  std::vector<std::string> found;
  for (const ModelEntry& entry : entries()) {
    const bool fits = std::any_of(entry.aliases.begin(), entry.aliases.end(),
                                  [&](const std::string& alias) { return matches(alias, wanted); });
    if (fits) found.push_back(entry.name);
  }
  return only_one(found, name);
}

void ModelCatalogue::fail_unknown(std::string_view name) const {
  // People leave the organisation out, so both forms are offered to the comparison.
  std::vector<std::string> candidates;
  for (const ModelEntry& entry : entries()) {
    candidates.push_back(entry.name);
    for (const std::string& alias : entry.aliases) candidates.push_back(alias);
  }
  if (name.find('/') == name.npos) {
    for (std::string& candidate : candidates) candidate = std::string(after_slash(candidate));
  }
  throw InputError(
      {.source = "model",
       .value = printable(name),
       .expected = "a known model (`foretoken models` lists them), or a path to a config.json or its folder",
       .suggestion = nearest_name(name, candidates).value_or("")});
}

Model ModelCatalogue::model(std::string_view name) const {
  if (const auto id = find_by_file_name(name)) return read_model_config(file_of(*id));
  std::error_code ignored;
  if (!name.empty() && std::filesystem::exists(name, ignored)) return read_model_config(name);
  if (const auto id = find_by_alias(name)) return read_model_config(file_of(*id));
  if (name.ends_with(".json")) return read_model_config(name);  // says that there is no such file
  fail_unknown(name);
}

ModelEntry ModelCatalogue::entry(std::string_view name) const {
  if (const auto id = find_by_file_name(name)) return read_entry(file_of(*id));
  if (const auto id = find_by_alias(name)) return read_entry(file_of(*id));
  fail_unknown(name);
}

std::vector<ModelEntry> ModelCatalogue::entries() const {
  std::vector<ModelEntry> all;
  for (const std::string& id : names_) all.push_back(read_entry(file_of(id)));
  return all;
}

}  // namespace foretoken
