#include "app/page/run_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/page/page_flags.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "hardware/device_file.h"

namespace foretoken {
namespace {

constexpr size_t longest_value = 400;
constexpr JsonLimits body_limits{.max_bytes = 256 * 1024, .max_depth = 8, .max_values = 5'000};

const PageCommand& command_named(const JsonView& name) {
  std::vector<std::string> known;
  for (const PageCommand& command : page_commands()) {
    if (command.name == name.string()) return command;
    known.emplace_back(command.name);
  }
  name.fail(fmt::format("one of {}", fmt::join(known, ", ")), nearest_name(name.string(), known).value_or(""));
}

const PageFlag& flag_named(const PageCommand& command, const std::string& name, const JsonView& value) {
  std::vector<std::string> known;
  for (const PageFlag& flag : command.flags) {
    if (flag.name == name) return flag;
    known.emplace_back(flag.name);
  }
  value.fail(fmt::format("a flag of {} that the page may use", command.name), nearest_name(name, known).value_or(""));
}

std::vector<std::string> library_names(PageFlagKind kind, const Library& library) {
  switch (kind) {
    case PageFlagKind::model: {
      std::vector<std::string> names = library.models().names();
      for (size_t i = 0, count = names.size(); i < count; ++i) names.push_back(names[i].substr(names[i].find('/') + 1));
      return names;
    }
    case PageFlagKind::device:
    case PageFlagKind::device_count:
      return library.hardware().device_names();
    case PageFlagKind::cluster:
      return library.hardware().cluster_names();
    case PageFlagKind::stack:
      return library.stacks().names();
    case PageFlagKind::job_stack:
      return library.training_stacks().names();
    case PageFlagKind::value:
      break;
  }
  return {};
}

std::string plain_value(const JsonView& value) {
  std::string text = value.is_number() ? number_text(value.number()) : value.string();
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
  if (text.empty() || text.size() > longest_value || std::any_of(text.begin(), text.end(), is_control)) {
    value.fail(fmt::format("one line of at most {} bytes", longest_value));
  }
  return text;
}

std::string checked_item(const PageFlag& flag, const JsonView& value, const Library& library) {
  if (flag.allowed.most < std::numeric_limits<int64_t>::max()) value.integer(flag.allowed);
  std::string text = plain_value(value);
  if (flag.kind == PageFlagKind::value) return text;
  std::string named = text;
  if (flag.kind == PageFlagKind::device_count) {
    const size_t colon = std::min(text.find(':'), text.size());
    named = text.substr(0, colon);
    if (text.find_first_not_of("0123456789", colon + 1) != std::string::npos) value.fail("DEVICE:COUNT");
  }
  const std::vector<std::string> known = library_names(flag.kind, library);
  if (std::find(known.begin(), known.end(), named) == known.end()) {
    value.fail("a name of the library", nearest_name(named, known).value_or(""));
  }
  return text;
}

void add_flag(std::vector<std::string>& arguments, const PageFlag& flag, const JsonView& value,
              const Library& library) {
  const std::string name = fmt::format("--{}", flag.name);
  if (value.is(Json::Kind::boolean)) {
    arguments.push_back(value.boolean() ? name : fmt::format("--no-{}", flag.name));
    return;
  }
  std::vector<std::string> items;
  for (const JsonView& item : value.is(Json::Kind::array) ? value.items() : std::vector<JsonView>{value}) {
    items.push_back(checked_item(flag, item, library));
  }
  arguments.push_back(fmt::format("{}={}", name, fmt::join(items, ",")));
}

// As the flag takes it. Designs of accelerators are refused: they may name further files.
std::string device_text(const JsonView& description) {
  if (description.has("accelerator")) description.at("accelerator").fail("nothing: designs are read from files only");
  std::string text = description.value().dump(0);
  parse_device(text, "device");  // complains
  return text;
}

}  // namespace

RunRequest read_run_request(std::string_view body, const Library& library) {
  const Json document = parse_json(body, "request", body_limits);
  const JsonView request(document, "request");
  request.allow_only({"command", "flags", "device"});
  const PageCommand& command = command_named(request.at("command"));
  RunRequest result;
  for (const std::string_view word : split_words(command.name, " ")) result.arguments.emplace_back(word);
  for (const auto& [name, value] : request.at("flags").members()) {
    const PageFlag& flag = flag_named(command, name, value);
    add_flag(result.arguments, flag, value, library);
  }
  if (const auto description = request.find("device")) {
    const bool takes_device = std::any_of(command.flags.begin(), command.flags.end(),
                                          [](const PageFlag& flag) { return flag.kind == PageFlagKind::device; });
    if (!takes_device || request.at("flags").has("device")) {
      description->fail("a command with a device, and no flag that names another");
    }
    result.arguments.push_back("--device=" + device_text(*description));
    result.device_name = description->at("name").string() + "_changed";
  }
  return result;
}

std::string command_line_text(const RunRequest& request) {
  std::string text = "foretoken";
  for (const std::string& argument : request.arguments) {
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    text += " " + argument.substr(0, equals);
    if (equals == std::string::npos) continue;
    std::string value = argument.substr(equals + 1);
    if (!request.device_name.empty() && argument.starts_with("--device=")) value = request.device_name + ".json";
    text += " " + shell_word(value);
  }
  return text;
}

}  // namespace foretoken
