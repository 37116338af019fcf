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

constexpr JsonLimits body_limits{.max_bytes = most_body_bytes, .max_depth = 8, .max_values = 5'000};

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
      return stacks_of(library).names();
    case PageFlagKind::job_stack:
      return training_stacks_of(library).names();
    case PageFlagKind::value:
      break;
  }
  return {};
}

// Of a name in another spelling, or an alias: what the command line takes it for. Names of files are refused.
std::string full_name(PageFlagKind kind, const std::string& named, const JsonView& value, const Library& library,
                      const std::vector<std::string>& known) {
  std::string expected = "a name of the library", suggestion = nearest_name(named, known).value_or("");
  const bool is_file = HardwareCatalogue::is_path(named) || named.starts_with('{');
  try {
    if (kind == PageFlagKind::model) {
      const ResolvedName resolved = library.models().resolve(named);
      if (!resolved.entry.empty()) return resolved.checkpoint;  // with the format that the name states
    }
    if (!is_file && kind == PageFlagKind::cluster) return library.hardware().cluster(named).name;
    const bool is_device = kind == PageFlagKind::device || kind == PageFlagKind::device_count;
    if (!is_file && is_device) return library.hardware().device(named).name;
  } catch (const InputError& error) {
    if (!error.problem().suggestion.empty()) suggestion = error.problem().suggestion;
    if (error.problem().expected.starts_with("one of ")) expected = error.problem().expected;
  }
  value.fail(expected, suggestion);
}

std::string plain_value(const JsonView& value) {
  std::string text = value.is_number() ? number_text(value.number()) : value.string();
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
  if (text.empty() || text.size() > longest_flag_value || std::any_of(text.begin(), text.end(), is_control)) {
    value.fail(fmt::format("one line of at most {} bytes", longest_flag_value));
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
  if (std::find(known.begin(), known.end(), named) != known.end()) return text;
  // The rest of a device's text is its number.
  return full_name(flag.kind, named, value, library, known) + text.substr(named.size());
}

void add_flag(std::vector<std::string>& arguments, const PageFlag& flag, const JsonView& value,
              const Library& library) {
  const std::string name = fmt::format("--{}", flag.name);
  if (value.is(Json::Kind::boolean)) {
    arguments.push_back(value.boolean() ? name : fmt::format("--no-{}", flag.name));
    return;
  }
  std::vector<std::string> items;
  if (value.is(Json::Kind::array) && (value.items().empty() || value.items().size() > most_flag_values)) {
    value.fail(fmt::format("1 to {} values", most_flag_values));
  }
  for (const JsonView& item : value.is(Json::Kind::array) ? value.items() : std::vector<JsonView>{value}) {
    items.push_back(checked_item(flag, item, library));
  }
  arguments.push_back(fmt::format("{}={}", name, fmt::join(items, ",")));
}

// As the flag takes it. Designs of accelerators are refused: they may name further files.
std::string device_text(const JsonView& description, const Library& library) {
  if (description.has("accelerator")) description.at("accelerator").fail("nothing: designs are read from files only");
  std::string text = description.value().dump(0);
  parse_device(text, "device", library.hardware().like_finder());  // complains
  return text;
}

// The words of a question: its command and flags.
std::vector<std::string> question_words(const JsonView& question, const Library& library) {
  const PageCommand& command = command_named(question.at("command"));
  std::vector<std::string> words;
  for (const std::string_view word : split_words(command.name, " ")) words.emplace_back(word);
  for (const auto& [name, value] : question.at("flags").members()) {
    add_flag(words, flag_named(command, name, value), value, library);
  }
  return words;
}

bool takes_device(const PageCommand& command) {
  return std::any_of(command.flags.begin(), command.flags.end(),
                     [](const PageFlag& flag) { return flag.kind == PageFlagKind::device; });
}

// "--batch=8" as people write it. A value that begins with a dash stays where it is: it would be read as a flag.
std::string shown_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    const size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const bool apart = equals != std::string::npos && equals + 1 < word.size() && word[equals + 1] != '-';
    if (!line.empty()) line += " ";
    line += apart ? word.substr(0, equals) + " " + shell_word(word.substr(equals + 1)) : shell_word(word);
  }
  return line;
}

std::string exact_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

RunRequest read_comparison(const JsonView& request, const Library& library) {
  request.allow_only({"command", "first", "second"});
  RunRequest result{.arguments = {"compare"}, .command_line = "foretoken compare"};
  for (const char* side : {"first", "second"}) {
    const JsonView question = request.at(side);
    question.allow_only({"command", "flags"});
    const std::vector<std::string> words = question_words(question, library);
    result.arguments.push_back(fmt::format("--{}={}", side, exact_line(words)));
    result.command_line += fmt::format(" --{} {}", side, shell_word(shown_line(words)));
  }
  return result;
}

RunRequest read_question(const JsonView& request, const Library& library) {
  request.allow_only({"command", "flags", "device"});
  RunRequest result{.arguments = question_words(request, library)};
  std::vector<std::string> shown = result.arguments;
  if (const auto description = request.find("device")) {
    if (!takes_device(command_named(request.at("command"))) || request.at("flags").has("device")) {
      description->fail("a command with a device, and no flag that names another");
    }
    result.arguments.push_back("--device=" + device_text(*description, library));
    shown.push_back(fmt::format("--device={}_changed.json", description->at("name").string()));
  }
  result.command_line = "foretoken " + shown_line(shown);
  return result;
}

}  // namespace

RunRequest read_run_request(std::string_view body, const Library& library) {
  const Json document = parse_json(body, "request", body_limits);
  const JsonView request(document, "request");
  const bool compares = request.at("command").string() == "compare";
  return compares ? read_comparison(request, library) : read_question(request, library);
}

}  // namespace foretoken
