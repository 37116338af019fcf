#include "model/catalogue.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/portable_math.h"
#include "base/text.h"
#include "base/units.h"
#include "model/checkpoint_name.h"
#include "model/family.h"
#include "model/model_config.h"

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

constexpr std::string_view name_separators = " -_:";

std::string with_dashes(std::string_view name) {
  std::string result = lower_case(name);
  for (char& c : result) {
    if (name_separators.find(c) != name_separators.npos) c = '-';
  }
  return result;
}

constexpr std::string_view digits = "0123456789";

bool is_digit(char c) {
  return digits.find(c) != digits.npos;
}

// As people type it: "Llama 3.1 8B", "llama3.1:8b" and "Llama-3.1-8B" are all "llama3.1-8b". What stands between two
// digits tells numbers apart.
std::string spelling(std::string_view model) {
  std::string result;
  bool is_open = false;  // a separator was left out
  for (const char c : with_dashes(model)) {
    if (c == '-') {
      is_open = true;
      continue;
    }
    if (is_open && !result.empty() && is_digit(result.back()) && is_digit(c)) result += '-';
    is_open = false;
    result += c;
  }
  return result;
}

// The name of one entry in another spelling.
std::optional<ResolvedName> find_by_spelling(const std::vector<ModelEntry>& entries, std::string_view name) {
  if (name.find('/') != name.npos) return std::nullopt;
  const std::string wanted = spelling(name);
  std::vector<std::string> found;
  ResolvedName result;
  for (const ModelEntry& entry : entries) {
    std::vector<std::string> ids = {entry.name};
    ids.insert(ids.end(), entry.aliases.begin(), entry.aliases.end());
    const auto same = std::find_if(ids.begin(), ids.end(),
                                   [&](const std::string& id) { return spelling(after_slash(id)) == wanted; });
    if (same == ids.end()) continue;
    found.push_back(entry.name);
    result = {.entry = entry.name,
              .checkpoint = same->find('/') != same->npos ? *same : entry.name,
              .has_format = parse_checkpoint_name(*same).format.has_value()};
  }
  return only_one(found, name) ? std::optional(result) : std::nullopt;
}

// Whether all of `words` are among `others`, in this order.
bool are_among(const std::vector<std::string_view>& words, const std::vector<std::string_view>& others) {
  auto next = others.begin();
  for (const std::string_view word : words) {
    next = std::find(next, others.end(), word);
    if (next == others.end()) return false;
    ++next;
  }
  return true;
}

// Models whose names have all words of this one, those with the fewest others first: "llama-70b" is short for three.
std::vector<std::string> longer_names(const std::vector<ModelEntry>& entries, std::string_view name) {
  const std::string dashed = with_dashes(name);
  const std::vector<std::string_view> words = split_words(dashed, "-");
  std::vector<std::pair<size_t, std::string>> found;
  if (words.empty() || name.find('/') != name.npos) return {};
  for (const ModelEntry& entry : entries) {
    const std::string known = with_dashes(after_slash(entry.name));
    const std::vector<std::string_view> others = split_words(known, "-");
    if (are_among(words, others)) found.emplace_back(others.size(), entry.name);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (const auto& [size, longer] : found) names.push_back(longer);
  return names;
}

std::string longer_names_text(const std::vector<std::string>& names) {
  constexpr size_t most_named = 5;
  if (names.size() == 1) return "the full name of a model";
  const std::span<const std::string> shown(names.data(), std::min(most_named, names.size()));
  const std::string others =
      names.size() > most_named ? " or " + counted(names.size() - most_named, "other") : std::string();
  return fmt::format("one of {}{}: the name alone fits them all", fmt::join(shown, ", "), others);
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
  for (const std::string& stem : file_stems(directory_)) names_.push_back(with_first(stem, slash_in_file_name, "/"));
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

// Aliases stand inside the files, so all of them are read. One without an organization is no checkpoint of the hub.
std::optional<ResolvedName> ModelCatalogue::find_by_alias(std::string_view name) const {
  const std::string wanted = lower_case(name);
  std::vector<std::string> found;
  ResolvedName result;
  for (const ModelEntry& entry : entries()) {
    for (const std::string& alias : entry.aliases) {
      if (!matches(alias, wanted)) continue;
      found.push_back(entry.name);
      const bool is_id = alias.find('/') != alias.npos;
      result = {.entry = entry.name,
                .checkpoint = is_id ? alias : entry.name,
                .has_format = parse_checkpoint_name(alias).format.has_value()};
      break;
    }
  }
  if (!only_one(found, name)) return std::nullopt;
  return result;
}

// A name that no file lists: one that does, with a format behind it ("-FP8"), or a relative by its name ("-Instruct").
std::optional<ResolvedName> ModelCatalogue::find_by_parts(std::string_view name) const {
  // Those who publish models of others as they are.
  constexpr std::string_view mirrors[] = {"unsloth", "RedHatAI", "neuralmagic", "NousResearch"};
  const CheckpointName parts = parse_checkpoint_name(name);
  const bool any_organization = parts.format || parts.organization.empty() ||
                                std::any_of(std::begin(mirrors), std::end(mirrors), [&](std::string_view mirror) {
                                  return equal_ignoring_case(mirror, parts.organization);
                                });
  const std::string dated = comparable_name(parts.model, true), undated = comparable_name(parts.model, false);
  if (dated.empty()) return std::nullopt;
  std::vector<std::string> exact, alike, relatives;
  const auto add = [](std::vector<std::string>& list, const std::string& id) {
    if (list.empty() || list.back() != id) list.push_back(id);
  };
  for (const ModelEntry& entry : entries()) {
    std::vector<std::string> ids = entry.aliases;
    ids.push_back(entry.name);
    for (const std::string& id : ids) {
      const CheckpointName known = parse_checkpoint_name(id);
      if (!any_organization && !equal_ignoring_case(known.organization, parts.organization)) continue;
      if (equal_ignoring_case(known.model, parts.model)) add(exact, entry.name);
      const std::string comparable = comparable_name(known.model, true);
      if (comparable == dated) add(alike, entry.name);
      if (comparable == undated) add(relatives, entry.name);
    }
  }
  const auto& found = !exact.empty() ? exact : !alike.empty() ? alike : relatives;
  const std::optional<std::string> entry = only_one(found, name);
  if (!entry) return find_by_start(name);
  const std::string_view publisher = std::string_view(*entry).substr(0, entry->find('/'));
  // Qwen publishes its own models in these formats; nobody else's name is known where none is given.
  const bool by_publisher = !parts.format || publisher == "Qwen" || publisher == "zai-org";
  const bool bare = parts.organization.empty();
  return ResolvedName{.entry = *entry,
                      .checkpoint = bare && by_publisher ? fmt::format("{}/{}", publisher, name) : std::string(name),
                      .is_listed = !exact.empty(),
                      .has_format = parts.format.has_value()};
}

// A known name with words behind it that say nothing known: it is taken to have
// the same shapes where the publisher's own organization stands before it, or
// the words are those of tuned checkpoints.
std::optional<ResolvedName> ModelCatalogue::find_by_start(std::string_view name) const {
  constexpr std::string_view separators = "-_";
  const CheckpointName parts = parse_checkpoint_name(name);
  const size_t separator = parts.model.find_last_of(separators);
  if (separator == parts.model.npos || separator == 0) return std::nullopt;
  const std::string_view word = parts.model.substr(separator + 1);
  if (word.empty() || changes_the_model(word)) return std::nullopt;
  if (parts.organization.empty() && !names_a_tuned_model(word)) return std::nullopt;
  std::string shorter(parts.organization);
  if (!shorter.empty()) shorter += '/';
  shorter += parts.model.substr(0, separator);
  std::optional<ResolvedName> found;
  if (const auto id = find_by_file_name(shorter)) {
    found = ResolvedName{.entry = *id};
  } else if (const auto alias = find_by_alias(shorter)) {
    found = alias;
  } else {
    found = find_by_parts(shorter);
  }
  if (!found) return std::nullopt;
  found->checkpoint = std::string(name);
  found->is_listed = false;
  found->has_format = found->has_format || parts.format.has_value();
  found->unread = found->unread.empty() ? std::string(word) : fmt::format("{}-{}", found->unread, word);
  return found;
}

namespace {

// Words of a name that say that the model has experts: MoE, A3B, 8x7B.
bool says_experts(std::string_view word) {
  if (word == "moe") return true;
  if (!word.ends_with('b')) return false;
  word.remove_suffix(1);
  const size_t times = word.find('x');
  if (times == std::string_view::npos) return word.starts_with('a') && parse_number(word.substr(1));
  return parse_number(word.substr(0, times)) && parse_number(word.substr(times + 1));
}

// A dense model is no relative of one with experts: Qwen2-7B is not of the family of Qwen2-57B-A14B.
bool has_other_experts(std::span<const std::string_view> wanted, std::span<const std::string_view> known,
                       bool states_size) {
  if (std::any_of(wanted.begin(), wanted.end(), says_experts)) return false;
  const auto parting = std::mismatch(wanted.begin(), wanted.end(), known.begin(), known.end()).second;
  return std::any_of(parting, states_size || parting == known.end() ? known.end() : std::next(parting), says_experts);
}

// Ring models are Ling models that reason: the same layers.
std::string under_the_name_of_its_line(std::string name) {
  if (name.starts_with("ring-")) name.replace(0, 4, "ling");
  return name;
}

// The model type that a name begins with ("ERNIE-4.5-0.3B": ernie4_5); empty if none, or if the type names no version.
std::string_view model_type_in(std::string_view name) {
  const auto plain = [](std::string_view text) {
    std::string letters(text);
    std::erase_if(letters, [](char c) { return c == '-' || c == '_' || c == '.'; });
    return letters;
  };
  const std::string wanted = plain(name);
  std::string_view longest;
  for (const Family& family : families()) {
    for (const std::string_view type : split_words(family.model_types, " ")) {
      const bool names_version = type.find_first_of("0123456789") != std::string_view::npos;
      if (names_version && type.size() > longest.size() && wanted.starts_with(plain(type))) longest = type;
    }
  }
  return longest;
}

}  // namespace

// What is known of the family that a name seems to belong to; empty where no known model's name begins alike.
std::string ModelCatalogue::relatives_text(std::string_view name) const {
  constexpr size_t most_named = 3;
  const std::string wanted = under_the_name_of_its_line(comparable_name(parse_checkpoint_name(name).model, true));
  const std::vector<std::string_view> words = split_words(wanted, "-");
  if (words.empty()) return {};
  const auto stem = [](std::string_view word) {
    return word.substr(0, std::min(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), word.size()));
  };
  const auto without_dashes = [](std::string_view text) {
    std::string joined(text);
    std::erase(joined, '-');
    return joined;
  };
  const auto common_words = [&](std::string_view known) {
    const std::vector<std::string_view> others = split_words(known, "-");
    size_t common = 0;
    while (common < words.size() && common < others.size() && words[common] == others[common]) ++common;
    const bool same_stem = !others.empty() && stem(words[0]).size() >= 3 && stem(words[0]) == stem(others[0]);
    const bool begins_alike = common == 0 && same_stem && without_dashes(known).starts_with(without_dashes(wanted));
    return begins_alike ? size_t{2} : 2 * common + (common == 0 && same_stem ? 1 : 0);
  };
  // Only words with the family's version in them tell the family: gpt-5 is none of the others called gpt.
  const auto tells_family = [&](size_t common) {
    const auto has_digit = [](std::string_view word) {
      return word.find_first_of("0123456789") != std::string_view::npos;
    };
    return std::any_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(common), has_digit);
  };
  struct Relative {
    std::string name, family;
    double distance;
  };
  std::vector<Relative> nearest;
  size_t best = 1;
  const std::optional<double> size = stated_billions(wanted);
  for (const ModelEntry& entry : entries()) {
    const std::string known = comparable_name(parse_checkpoint_name(entry.name).model, true);
    const size_t common = common_words(known);
    if (common < best || has_other_experts(words, split_words(known, "-"), size.has_value())) continue;
    if (common > best) nearest.clear();
    best = common;
    const std::optional<double> other = stated_billions(known);
    nearest.push_back({entry.name, entry.family, size && other ? std::abs(portable_log(*size / *other)) : 1e9});
  }
  if (nearest.empty()) {
    const std::string_view type = model_type_in(wanted);
    if (type.empty()) return {};
    return fmt::format(". The {} family is supported, but this model's sizes are unknown: pass its config.json", type);
  }
  std::stable_sort(nearest.begin(), nearest.end(),
                   [](const Relative& a, const Relative& b) { return a.distance < b.distance; });
  if (nearest.size() > most_named) nearest.resize(most_named);
  std::vector<std::string> names, families;
  for (const Relative& one : nearest) {
    names.push_back(one.name);
    if (std::find(families.begin(), families.end(), one.family) == families.end()) families.push_back(one.family);
  }
  if (!tells_family(best / 2)) {
    return fmt::format(". Known names with the same first word: {}. For another model, pass its config.json",
                       fmt::join(names, ", "));
  }
  return fmt::format(". The {} {} supported, but this model's sizes are unknown: pass its config.json. Similar: {}",
                     fmt::join(families, " and "), families.size() > 1 ? "families are" : "family is",
                     fmt::join(names, ", "));
}

void ModelCatalogue::fail_unknown(std::string_view name) const {
  if (const std::vector<std::string> longer = longer_names(entries(), name); !longer.empty()) {
    throw InputError({.source = "model",
                      .value = printable(name),
                      .expected = longer_names_text(longer),
                      .suggestion = std::string(longer.size() == 1 ? after_slash(longer.front()) : "")});
  }
  // People leave the organisation out, so both forms are offered to the comparison.
  std::vector<std::string> candidates;
  for (const ModelEntry& entry : entries()) {
    candidates.push_back(entry.name);
    for (const std::string& alias : entry.aliases) candidates.push_back(alias);
  }
  if (name.find('/') == name.npos) {
    for (std::string& candidate : candidates) candidate = std::string(after_slash(candidate));
  }
  // Without words at its end that nobody knows.
  const auto known_start = [&]() -> std::string {
    for (size_t end = name.find_last_of("-_"); end != name.npos && end > 0; end = name.find_last_of("-_", end - 1)) {
      const std::string_view start = name.substr(0, end);
      if (find_by_file_name(start) || find_by_alias(start)) return std::string(start);
    }
    return {};
  };
  throw InputError(
      {.source = "model",
       .value = printable(name),
       .expected = "a known model (`foretoken models` lists them), or a path to a config.json or its folder" +
                   relatives_text(name),
       .suggestion = nearest_name(name, candidates).value_or(known_start())});
}

ResolvedName ModelCatalogue::resolve(std::string_view name) const {
  if (const auto id = find_by_file_name(name)) return {.entry = *id, .checkpoint = *id};
  std::error_code ignored;
  if (!name.empty() && std::filesystem::exists(name, ignored)) return {.entry = {}, .checkpoint = std::string(name)};
  if (const auto found = find_by_alias(name)) return *found;
  if (name.ends_with(".json")) return {.entry = {}, .checkpoint = std::string(name)};  // reading it says what is wrong
  if (const auto found = find_by_parts(name)) return *found;
  if (const auto found = find_by_spelling(entries(), name)) return *found;
  fail_unknown(name);
}

Model ModelCatalogue::model(std::string_view name) const {
  const ResolvedName resolved = resolve(name);
  if (resolved.entry.empty()) {
    Model model = read_model_config(resolved.checkpoint);
    const std::filesystem::path path(resolved.checkpoint);
    // Engines load folders.
    if (model.name == resolved.checkpoint) {
      model.checkpoint = path.filename() == "config.json" && path.has_parent_path() ? path.parent_path().string()
                                                                                    : resolved.checkpoint;
    }
    return model;
  }
  Model model = read_model_config(file_of(resolved.entry));
  model.checkpoint = resolved.checkpoint;
  const std::vector<std::string_view> unread = split_words(resolved.unread, "-");
  if (!std::all_of(unread.begin(), unread.end(), names_a_tuned_model)) {
    model.notes.insert(model.notes.begin(), unknown_name_warning(resolved.checkpoint, resolved.unread, resolved.entry));
  } else if (!resolved.is_listed) {
    model.notes.push_back(
        fmt::format("the library does not list {}: shapes are those of {}", resolved.checkpoint, resolved.entry));
  }
  if (!resolved.unread.empty() && (model.notes.empty() || !is_name_warning(model.notes.front()))) {
    model.notes.push_back(fmt::format(
        "{} in the model's name is not known: it is taken to change neither shapes nor the number format; use "
        "{{quantization}} if it does",
        printable(resolved.unread)));
  }
  if (!resolved.has_format) return model;
  return with_named_format(std::move(model), parse_checkpoint_name(resolved.checkpoint),
                           std::string_view(resolved.entry).substr(0, resolved.entry.find('/')));
}

ModelEntry ModelCatalogue::entry(std::string_view name) const {
  const ResolvedName resolved = resolve(name);
  if (resolved.entry.empty()) fail_unknown(name);
  return read_entry(file_of(resolved.entry));
}

std::vector<ModelEntry> ModelCatalogue::entries() const {
  std::vector<ModelEntry> all;
  for (const std::string& id : names_) all.push_back(read_entry(file_of(id)));
  return all;
}

}  // namespace foretoken
