#include "accelerator/formats/timeloop_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "accelerator/formats/accelergy_tables.h"
#include "accelerator/formats/timeloop_architecture.h"
#include "accelerator/formats/timeloop_mapping.h"
#include "base/error.h"
#include "base/file.h"
#include "base/yaml.h"
#include "base/yaml_json.h"

namespace foretoken {
namespace {

constexpr size_t most_files = 64;
constexpr size_t most_bytes = size_t{4} << 20;
constexpr size_t most_timeloop_directives = 512;

constexpr std::array read_sections = {"architecture",
                                      "arch",
                                      "problem",
                                      "mapping",
                                      "constraints",
                                      "architecture_constraints",
                                      "arch_constraints",
                                      "mapspace_constraints",
                                      "map_constraints",
                                      "mapspace",
                                      "ERT",
                                      "ART",
                                      "variables",
                                      "sparse_optimizations"};
// Steer Timeloop's own search, its estimators or its output.
constexpr std::array skipped_sections = {"mapper",  "components", "compound_components", "primitive_components",
                                         "globals", "model",      "environment",         "version"};

class SectionReader {
 public:
  SectionReader(std::span<const Json> documents, std::span<const TimeloopText> texts, AcceleratorInputs known)
      : result_(std::move(known)) {
    for (size_t i = 0; i < documents.size(); ++i) {
      if (documents[i].kind() == Json::Kind::null) continue;
      documents_.emplace_back(documents[i], texts[i].source);
      check_sections(documents_.back());
    }
  }

  AcceleratorInputs read() {
    TimeloopAttributes variables;
    for (const JsonView& section : sections({"variables"})) variables.add_variables(section);
    if (const auto view = only({"architecture", "arch"})) {
      if (result_.architecture) view->fail("one architecture; " + result_.architecture->name + " was given as well");
      TimeloopArchitecture own = read_timeloop_architecture(*view, variables);
      result_.architecture = std::move(own.architecture);
      result_.constraints = std::move(own.constraints);
      add_notes(own.notes);
    }
    if (const auto view = only({"problem"})) {
      if (result_.problem) view->fail("one problem; " + result_.problem->name + " was given as well");
      TimeloopProblem own = read_timeloop_problem(*view, variables);
      result_.problem = std::move(own.problem);
      result_.densities = std::move(own.densities);
    }
    read_constraints();
    read_tables();
    if (const auto view = only({"mapping"})) read_mapping(*view);
    if (const auto view = only({"sparse_optimizations"})) result_.sparse_optimizations = view->value();
    return std::move(result_);
  }

 private:
  void check_sections(const JsonView& document) {
    std::vector<std::string> names(read_sections.begin(), read_sections.end());
    for (const auto& [name, section] : document.members()) {
      const auto is = [&](const char* other) { return name == other; };
      if (std::any_of(read_sections.begin(), read_sections.end(), is)) continue;
      if (std::any_of(skipped_sections.begin(), skipped_sections.end(), is)) {
        result_.notes.push_back(fmt::format("{}: section {} is not used", document.source(), name));
        continue;
      }
      section.fail(fmt::format("a section of Timeloop's files in place of `{}`", printable(name)),
                   nearest_name(name, names).value_or(""));
    }
  }

  std::vector<JsonView> sections(std::initializer_list<std::string_view> names) const {
    std::vector<JsonView> found;
    for (const JsonView& document : documents_) {
      for (const std::string_view name : names) {
        if (const auto section = document.find(name)) found.push_back(*section);
      }
    }
    return found;
  }

  std::optional<JsonView> only(std::initializer_list<std::string_view> names) const {
    const auto found = sections(names);
    if (found.empty()) return std::nullopt;
    if (found.size() > 1) {
      found[1].fail(fmt::format("{} once in all files; it stands in {} as well", *names.begin(), found[0].source()));
    }
    return found.front();
  }

  void add_notes(const std::vector<std::string>& notes) {
    result_.notes.insert(result_.notes.end(), notes.begin(), notes.end());
  }

  // A list of directives, or a map that holds one under `targets` or `constraints`.
  static std::vector<TimeloopDirective> read_directives(const JsonView& view) {
    JsonView list = view;
    if (view.is(Json::Kind::object)) {
      view.allow_only({"version", "targets", "constraints", "nodes", "template"});
      for (const std::string_view key : {"targets", "constraints", "nodes"}) {
        if (const auto inner = view.find(key)) list = *inner;
      }
      if (list.is(Json::Kind::object)) return {};
    }
    std::vector<TimeloopDirective> directives;
    for (const JsonView& item : list.items()) {
      if (directives.size() == most_timeloop_directives)
        list.fail(fmt::format("at most {} entries", most_timeloop_directives));
      directives.push_back(read_timeloop_directive(item));
    }
    return directives;
  }

  void read_constraints() {
    for (const auto& names : {std::initializer_list<std::string_view>{"architecture_constraints", "arch_constraints"},
                              {"constraints", "mapspace_constraints", "map_constraints", "mapspace"}}) {
      for (const JsonView& section : sections(names)) {
        for (TimeloopDirective& directive : read_directives(section)) {
          result_.constraints.push_back(std::move(directive));
        }
      }
    }
  }

  void read_tables() {
    std::vector<AccelergyTable>& energies = result_.energy_tables;
    const auto energy_sections = sections({"ERT"});
    for (const JsonView& section : energy_sections) {
      for (AccelergyTable& table : read_energy_tables(section)) energies.push_back(std::move(table));
    }
    std::map<std::string, double> areas;
    const auto area_sections = sections({"ART"});
    for (const JsonView& section : area_sections) areas.merge(read_area_tables(section));
    const auto& unused = energy_sections.empty() ? area_sections : energy_sections;
    if (!result_.architecture && !unused.empty()) unused.front().fail("an architecture that it is for");
    if (!energy_sections.empty()) {
      add_notes(apply_energy_tables(energies, *result_.architecture));
      result_.energies_given = true;
    }
    if (!area_sections.empty()) {
      add_notes(apply_area_tables(areas, *result_.architecture));
      result_.areas_given = true;
    }
  }

  void read_mapping(const JsonView& view) {
    if (!result_.architecture || !result_.problem) {
      view.fail(fmt::format("its {} in the files beside it", result_.architecture ? "problem" : "architecture"));
    }
    result_.mapping = timeloop_mapping(read_directives(view), *result_.architecture, *result_.problem);
  }

  std::vector<JsonView> documents_;
  AcceleratorInputs result_;
};

}  // namespace

AcceleratorInputs read_timeloop_texts(std::span<const TimeloopText> texts, AcceleratorInputs known) {
  std::vector<Json> documents;
  for (const TimeloopText& text : texts) {
    for (const std::string_view mark : {"{{", "{%"}) {
      if (text.text.find(mark) == std::string::npos) continue;
      throw InputError({.source = text.source,
                        .value = std::string(mark),
                        .expected = "YAML without Jinja templates: expand them first"});
    }
    documents.push_back(json_of_yaml(parse_yaml(text.text, text.source), text.source));
  }
  return SectionReader(documents, texts, std::move(known)).read();
}

AcceleratorInputs read_timeloop_files(std::span<const std::filesystem::path> paths, AcceleratorInputs known) {
  if (paths.size() > most_files) {
    throw InputError({.value = std::to_string(paths.size()), .expected = fmt::format("at most {} files", most_files)});
  }
  std::vector<TimeloopText> texts;
  for (const std::filesystem::path& path : paths) {
    texts.push_back({.source = path.string(), .text = read_file(path, most_bytes)});
  }
  return read_timeloop_texts(texts, std::move(known));
}

}  // namespace foretoken
