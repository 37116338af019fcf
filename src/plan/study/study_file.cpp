#include "plan/study/study_file.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/yaml_json.h"

namespace foretoken {
namespace {

constexpr std::string_view command_asked = "plan serve";
constexpr size_t most_of_a_list = 1'000;

// Fields that a study sets itself, or whose answers could not be kept: files, parts of the search, an end by the clock.
constexpr std::array<std::string_view, 18> reserved_fields = {
    "command", "model", "hardware", "engines",    "also",      "store",      "rank",      "ranks", "threads",
    "html",    "csv",   "launch",   "launch_out", "trace_out", "time_limit", "goal_seek", "spec",  "from",
};

// One entry of a list: its name, and the fields that it sets.
struct StudyEntry {
  std::string name;
  std::vector<Json::Member> fields;
};

void check_free(const std::string& field, const JsonView& value) {
  if (std::find(reserved_fields.begin(), reserved_fields.end(), field) == reserved_fields.end()) return;
  value.fail(fmt::format(
      "no {} here: the lists of a study set models, hardware and engines, and the study writes its own files", field));
}

std::string text_of(const JsonView& value, const char* expected) {
  const bool is_text = value.is(Json::Kind::string) && !value.value().string().empty();
  if (is_text) return value.value().string();
  if (value.is_number()) return value.value().dump(0);
  value.fail(expected);
}

void add_fields(const JsonView& map, StudyEntry& entry, std::string_view left_out = {}) {
  for (const auto& [field, value] : map.members()) {
    if (field == left_out) continue;
    check_free(field, value);
    entry.fields.emplace_back(field, value.value());
  }
}

// "chat, users 100" of an entry without a name.
std::string name_by_fields(const StudyEntry& entry) {
  std::string name;
  for (const auto& [field, value] : entry.fields) {
    const std::string text = value.kind() == Json::Kind::string ? value.string() : value.dump(0);
    name += name.empty() ? "" : ", ";
    name += field == "traffic" ? text : fmt::format("{} {}", field, text);
  }
  return name;
}

std::vector<JsonView> entries_of(const JsonView& list) {
  if (!list.is(Json::Kind::array)) return {list};
  std::vector<JsonView> items = list.items();
  if (items.empty() || items.size() > most_of_a_list) {
    list.fail(fmt::format("a list of 1 to {} entries", most_of_a_list));
  }
  return items;
}

void check_names_differ(const JsonView& list, const std::vector<StudyEntry>& entries) {
  for (size_t i = 0; i < entries.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (entries[i].name == entries[j].name) {
        entries_of(list)[i].fail(fmt::format("a different entry: {} is listed twice", entries[i].name));
      }
    }
  }
}

// A list of texts, each the value of `field`; entries of one question may be joined: [8xH100, 8xL40S].
std::vector<StudyEntry> named_entries(const JsonView& list, const std::string& field, const char* expected) {
  std::vector<StudyEntry> entries;
  for (const JsonView& item : entries_of(list)) {
    StudyEntry entry;
    if (item.is(Json::Kind::array)) {
      for (const JsonView& part : item.items()) {
        entry.name += (entry.name.empty() ? "" : ", ") + text_of(part, expected);
      }
      if (entry.name.empty()) item.fail(expected);
    } else {
      entry.name = text_of(item, expected);
    }
    entry.fields.emplace_back(field, item.value());
    entries.push_back(std::move(entry));
  }
  check_names_differ(list, entries);
  return entries;
}

std::vector<StudyEntry> traffic_entries(const JsonView& list) {
  constexpr const char* expected = "a use such as chat, or fields of plan serve such as {traffic: rag, users: 200}";
  std::vector<StudyEntry> entries;
  for (const JsonView& item : entries_of(list)) {
    StudyEntry entry;
    if (item.is(Json::Kind::object)) {
      add_fields(item, entry, "name");
      if (entry.fields.empty()) item.fail(expected);
      const std::optional<JsonView> name = item.find("name");
      entry.name = name ? text_of(*name, "a name for this traffic") : name_by_fields(entry);
    } else {
      entry.name = text_of(item, expected);
      entry.fields.emplace_back("traffic", item.value());
    }
    entries.push_back(std::move(entry));
  }
  check_names_differ(list, entries);
  return entries;
}

// Fields of an entry win over those of all cases.
void set_fields(Json& question, const StudyEntry& entry) {
  for (const auto& [field, value] : entry.fields) question.set(field, value);
}

// Fields of every case.
StudyEntry settings_of(const JsonView& document) {
  StudyEntry settings;
  const std::optional<JsonView> given = document.find("settings");
  if (!given) return settings;
  if (!given->is(Json::Kind::object)) given->fail("a map of fields of plan serve (foretoken schema plan serve)");
  add_fields(*given, settings);
  return settings;
}

Study study_of(const JsonView& document, const std::string& source) {
  constexpr const char* wanted = "a map with models, hardware and traffic";
  if (document.is(Json::Kind::null)) {
    throw InputError({.source = source, .value = "an empty file", .expected = wanted});
  }
  if (!document.is(Json::Kind::object)) document.fail(wanted);
  document.allow_only({"title", "models", "hardware", "traffic", "engines", "settings"});
  Study study;
  const std::optional<JsonView> title = document.find("title");
  study.title = title ? text_of(*title, "a title") : source;
  const StudyEntry settings = settings_of(document);
  const auto models = named_entries(document.at("models"), "model", "the name of a model");
  const auto hardware = named_entries(document.at("hardware"), "hardware", "devices and their number, as in 8xH100");
  const auto traffic = traffic_entries(document.at("traffic"));
  const std::optional<JsonView> listed = document.find("engines");
  const auto engines = listed ? named_entries(*listed, "engines", "an engine: vllm, sglang or trtllm")
                              : std::vector<StudyEntry>{{.name = "all", .fields = {}}};
  const size_t cases = models.size() * hardware.size() * traffic.size() * engines.size();
  if (cases > most_study_cases) {
    document.fail(fmt::format("lists that make at most {} cases; these make {}", most_study_cases, cases));
  }
  for (const StudyEntry& model : models) {
    for (const StudyEntry& device : hardware) {
      for (const StudyEntry& load : traffic) {
        for (const StudyEntry& engine : engines) {
          Json question = Json::object({{"command", command_asked}});
          for (const StudyEntry* part : {&settings, &model, &device, &load, &engine}) set_fields(question, *part);
          study.cases.push_back({.model = model.name,
                                 .hardware = device.name,
                                 .traffic = load.name,
                                 .engines = engine.name,
                                 .question = std::move(question)});
        }
      }
    }
  }
  return study;
}

}  // namespace

Study parse_study(std::string_view text, const std::string& source) {
  constexpr YamlLimits limits{.max_bytes = size_t{1} << 20, .max_depth = 16, .max_nodes = 20'000};
  const Json document = json_of_yaml(parse_yaml(text, source, limits), source);
  return study_of(JsonView(document, source), source);
}

}  // namespace foretoken
