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
                                      "extra_mapping_constraints",
                                      "ERT",
                                      "ART",
                                      "variables",
                                      "sparse_optimizations"};
// Steer Timeloop's own search, its estimators or its output.
constexpr std::array skipped_sections = {
    "mapper",      "components", "compound_components",         "primitive_components", "globals", "model",
    "environment", "version",    "dumped_by_timeloop_front_end"};

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
      if (!own.sparse_targets.items().empty()) {
        result_.sparse_optimizations = Json::object({{"targets", std::move(own.sparse_targets)}});
      }
      result_.metadata = std::move(own.metadata);
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
    if (const auto view = only_of(written_mappings(), "mapping")) read_mapping(*view);
    if (const auto view = only({"sparse_optimizations"}); view && !has_no_targets(*view)) {
      if (result_.sparse_optimizations) view->fail("optimizations in the nodes of the architecture or here, not both");
      result_.sparse_optimizations = view->value();
    }
    return std::move(result_);
  }

 private:
  static bool has_no_targets(const JsonView& view) {
    const auto targets = view.find("targets");
    return targets && targets->is(Json::Kind::array) && targets->items().empty();
  }

  void check_sections(const JsonView& document) {
    std::vector<std::string> names(read_sections.begin(), read_sections.end());
    for (const auto& [name, section] : document.members()) {
      const auto is = [&name = name](const char* other) { return name == other; };
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
    return only_of(sections(names), *names.begin());
  }

  static std::optional<JsonView> only_of(const std::vector<JsonView>& found, std::string_view name) {
    if (found.empty()) return std::nullopt;
    if (found.size() > 1) {
      found[1].fail(fmt::format("{} once in all files; it stands in {} as well", name, found[0].source()));
    }
    return found.front();
  }

  // Without the empty ones, which Timeloop's front end writes for a search.
  std::vector<JsonView> written_mappings() const {
    std::vector<JsonView> found = sections({"mapping"});
    std::erase_if(found, [](const JsonView& view) { return view.is(Json::Kind::array) && view.items().empty(); });
    return found;
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
    for (const auto& names :
         {std::initializer_list<std::string_view>{"architecture_constraints", "arch_constraints"},
          {"constraints", "mapspace_constraints", "map_constraints", "mapspace", "extra_mapping_constraints"}}) {
      for (const JsonView& section : sections(names)) {
        result_.constraints_given = true;
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

AcceleratorInputs read_timeloop_texts(std::span<const TimeloopText> texts, AcceleratorInputs known,
                                      const JinjaVariables& variables) {
  std::vector<Json> documents;
  for (const TimeloopText& text : texts) {
    const std::string expanded = has_jinja(text.text) ? expand_jinja(text.text, text.source, variables) : text.text;
    documents.push_back(json_of_yaml(parse_yaml(expanded, text.source), text.source));
  }
  return SectionReader(documents, texts, std::move(known)).read();
}

AcceleratorInputs read_timeloop_files(std::span<const std::filesystem::path> paths, AcceleratorInputs known,
                                      const JinjaVariables& variables) {
  if (paths.size() > most_files) {
    throw InputError({.value = std::to_string(paths.size()), .expected = fmt::format("at most {} files", most_files)});
  }
  std::vector<TimeloopText> texts;
  for (const std::filesystem::path& path : paths) {
    std::string text = read_file(path, most_bytes);
    if (has_jinja(text)) text = expand_jinja_file(path, variables);
    texts.push_back({.source = path.string(), .text = std::move(text)});
  }
  return read_timeloop_texts(texts, std::move(known), variables);
}

}  // namespace foretoken
