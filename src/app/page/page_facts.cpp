#include "app/page/page_facts.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/declarations.h"
#include "app/page/page_examples.h"
#include "app/page/page_flags.h"
#include "app/page/upload.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "compose/serving_engine.h"
#include "hardware/device_file.h"
#include "kernel/family.h"

namespace foretoken {
namespace {

// Engines that serve on the device; none where the size of its memory is not known.
Json serving_engines(const Device& device) {
  Json names = Json::array();
  if (!device.memory) return names;
  for (const EngineKind& kind : engine_kinds()) {
    if (kind.name == kind.family && runs_on(kind, device)) names.push(std::string(kind.name));
  }
  return names;
}

// As it lies on the disk; a copy among the user's own devices may have kept the names of its original.
Json shown_file(const HardwareCatalogue& catalogue, const std::string& name, const Device& device) {
  Json file = read_json_file(catalogue.device_file(name));
  const std::vector<std::string>& own = catalogue.own_device_names();
  if (std::find(own.begin(), own.end(), name) == own.end()) return file;
  file.set("name", name);
  file.set("title", fmt::format("{} ({})", device.title, name));
  file.set("aliases", Json::array());
  return file;
}

// Device files, which the page changes and sends back; and what else is known of each.
Json known_devices(const Library& library) {
  Json list = Json::array();
  const HardwareCatalogue catalogue = library.hardware();
  for (const std::string& name : catalogue.device_names()) {
    const Device device = catalogue.find_device(name);
    Json units = Json::object();
    for (const DeviceFact& fact : device_facts(device)) units.set(fact.key, fact.unit);
    Json one = Json::object({{"file", shown_file(catalogue, name, device)},
                             {"units", std::move(units)},
                             {"engines", serving_engines(device)}});
    if (const MaybeFact<double> rent = library.rent_usd_per_hour(device)) {
      one.set("rent_usd_per_hour", Json::object({{"value", rent->value}, {"source", rent->source}}));
    }
    list.push(std::move(one));
  }
  return list;
}

const CommandDeclaration& declared(std::span<const CommandDeclaration> commands, std::string_view name) {
  const CommandDeclaration* found = nullptr;
  for (const std::string_view word : split_words(name, " ")) {
    found = find_command(found == nullptr ? commands : std::span(found->subcommands), word);
    ensure(found != nullptr, "the page names commands of the program");
  }
  return *found;
}

Json strings(std::span<const std::string> all) {
  Json list = Json::array();
  for (const std::string& one : all) list.push(one);
  return list;
}

// What the program declares of a flag, with the page's own limit.
Json field_facts(const PageFlag& flag, const FlagDeclaration& declared) {
  Json names = Json::array();
  for (const std::string& name : declared.names) names.push(field_name(name));
  Json facts = Json::object({{"names", std::move(names)}, {"help", declared.help}});
  const bool is_limited = flag.allowed.most < std::numeric_limits<int64_t>::max();
  const Json least = is_limited ? Json(flag.allowed.least) : declared.least;
  const Json most = is_limited ? Json(flag.allowed.most) : declared.most;
  if (least.kind() != Json::Kind::null) facts.set("least", least);
  if (most.kind() != Json::Kind::null) facts.set("most", most);
  if (declared.usual.kind() != Json::Kind::null) facts.set("usual", declared.usual);
  if (!declared.choices.empty()) facts.set("choices", strings(declared.choices));
  return facts;
}

// The fields that the page may send, by command.
Json allowed_fields() {
  std::vector<CommandDeclaration> declarations;
  for (const CommandKind& kind : all_commands()) declarations.push_back(declaration_of(kind));
  Json all = Json::object();
  for (const PageCommand& command : page_commands()) {
    const CommandDeclaration& declaration = declared(declarations, command.name);
    Json fields = Json::object();
    for (const PageFlag& flag : command.flags) {
      const FlagDeclaration* found = find_flag(declaration, flag_name(flag.name));
      if (found == nullptr) found = find_flag(declaration, flag.name);  // what a line has without dashes
      ensure(found != nullptr, "the page names fields of the command");
      fields.set(std::string(flag.name), field_facts(flag, *found));
    }
    all.set(std::string(command.name), std::move(fields));
  }
  return all;
}

Json kernel_facts() {
  Json list = Json::array();
  for (const KernelFamily& family : kernel_families()) {
    Json parameters = Json::array();
    for (const KernelParameter& parameter : family.parameters) {
      Json one = Json::object({{"name", parameter.name}, {"help", parameter.help}, {"example", parameter.example}});
      if (parameter.fallback) one.set("usual", *parameter.fallback);
      if (parameter.kind == ParameterKind::choice) {
        one.set("choices", strings(parameter.choices));
      } else {
        one.set("least", parameter.range.least).set("most", parameter.range.most);
        one.set("whole", parameter.kind == ParameterKind::integer);
      }
      parameters.push(std::move(one));
    }
    list.push(
        Json::object({{"name", family.name}, {"summary", family.summary}, {"parameters", std::move(parameters)}}));
  }
  return list;
}

Json examples_json() {
  Json list = Json::array();
  for (const PageExample& example : page_examples()) {
    list.push(
        Json::object({{"title", std::string(example.title)}, {"question", parse_json(example.question, "example")}}));
  }
  return list;
}

}  // namespace

Json page_facts(const Library& library) {
  const auto from = [&](const std::vector<std::string>& arguments, std::string_view key) {
    const Answer answer = answer_command(arguments, library);
    return *answer.json.find(key);
  };
  return Json::object({{"fields", allowed_fields()},
                       {"examples", examples_json()},
                       {"drawn", parse_json(drawn_fields(), "drawn")},
                       {"devices", known_devices(library)},
                       {"clusters", strings(library.hardware().cluster_names())},
                       {"kernels", kernel_facts()},
                       {"designs", from({"accel", "--list"}, "designs")},
                       {"networks", from({"accel", "--list"}, "networks")},
                       {"edge_devices", strings(file_stems(library.directory() / "edge" / "devices"))},
                       {"most_upload_bytes", most_upload_bytes},
                       {"models", from({"models"}, "models")},
                       {"stacks", from({"stacks"}, "stacks")},
                       {"scenarios", from({"suite", "--list"}, "scenarios")},
                       {"accuracy", read_json_file(library.directory() / "accuracy" / "published.json")}});
}

}  // namespace foretoken
