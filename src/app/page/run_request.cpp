#include "app/page/run_request.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "app/cli/grammar/device_count.h"
#include "app/page/page_flags.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "compose/stack.h"
#include "hardware/device_file.h"
#include "training/training_stack.h"

namespace foretoken {
namespace {

constexpr JsonLimits body_limits{.max_bytes = most_body_bytes, .max_depth = 8, .max_values = 5'000};
constexpr int64_t most_traced_requests = 20'000;

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
  value.fail(fmt::format("a field of {} that the page may use", command.name), nearest_name(name, known).value_or(""));
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
    case PageFlagKind::design:
      return library.accelerator_designs().design_names();
    case PageFlagKind::layers:
      return file_stems(library.directory() / "accelerators" / "networks");
    case PageFlagKind::edge_device: {
      std::vector<std::string> names = file_stems(library.directory() / "edge" / "devices");
      const std::vector<std::string> devices = library.hardware().device_names();
      names.insert(names.end(), devices.begin(), devices.end());
      return names;
    }
    case PageFlagKind::fusion:
      return file_stems(library.directory() / "edge" / "fusion");
    case PageFlagKind::value:
    case PageFlagKind::graph_upload:
    case PageFlagKind::run_upload:
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

std::string plain_text(const JsonView& value) {
  std::string text = value.string();
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
  if (text.empty() || text.size() > longest_flag_value || std::any_of(text.begin(), text.end(), is_control)) {
    value.fail(fmt::format("one line of at most {} bytes", longest_flag_value));
  }
  return text;
}

// "h100_sxm:8" and "8xH100", as on the command line.
std::pair<std::string, std::string> counted_device(const std::string& text, const JsonView& value,
                                                   const Library& library) {
  std::pair<std::string, std::string> parts;
  try {
    parts = device_and_count(text, library.hardware());
  } catch (const InputError& error) {
    value.fail(error.problem().expected);
  }
  if (parts.second.find_first_not_of("0123456789") != std::string::npos) value.fail("DEVICE:COUNT");
  return parts;
}

Json checked_item(const PageFlag& flag, const JsonView& value, const Library& library) {
  if (flag.allowed.most < std::numeric_limits<int64_t>::max()) value.integer(flag.allowed);
  if (value.is_number() && flag.kind == PageFlagKind::value) return value.value();
  const std::string text = plain_text(value);
  if (flag.kind == PageFlagKind::value) return text;
  std::string named = text, count;
  if (flag.kind == PageFlagKind::device_count) {
    const auto [device, number] = counted_device(text, value, library);
    named = device;
    count = ":" + number;
  }
  const std::vector<std::string> known = library_names(flag.kind, library);
  const bool is_known = std::find(known.begin(), known.end(), named) != known.end();
  return (is_known ? named : full_name(flag.kind, named, value, library, known)) + count;
}

// Designs of accelerators are refused: they may name further files.
Json checked_device(const JsonView& description, const Library& library) {
  for (const char* key : {"accelerator", "computing_memory"}) {
    if (description.has(key))
      description.at(key).fail("no such key: the page does not accept designs; pass a device file on the command line");
  }
  parse_device(description.value().dump(0), "device", library.hardware().like_finder());  // complains
  return description.value();
}

bool is_upload(PageFlagKind kind) {
  return kind == PageFlagKind::graph_upload || kind == PageFlagKind::run_upload;
}

Json checked_value(const PageFlag& flag, const JsonView& value, const Library& library) {
  if (value.is(Json::Kind::boolean)) return value.value();
  if (value.is(Json::Kind::object) && flag.kind == PageFlagKind::device) return checked_device(value, library);
  if (!value.is(Json::Kind::array)) return checked_item(flag, value, library);
  if (is_upload(flag.kind)) value.fail("files");
  if (value.items().empty() || value.items().size() > most_flag_values) {
    value.fail(fmt::format("1 to {} values", most_flag_values));
  }
  Json items = Json::array();
  for (const JsonView& item : value.items()) items.push(checked_item(flag, item, library));
  return items;
}

std::vector<UploadedFile> checked_upload(const PageFlag& flag, const JsonView& value) {
  std::vector<UploadedFile> files = read_upload(value);
  const std::string& name = files.front().name;
  const bool is_graph = name.ends_with(".onnx") || name.ends_with(".graph.json");
  if (flag.kind == PageFlagKind::graph_upload && (files.size() > 1 || !is_graph)) {
    value.fail("one file whose name ends in .onnx or .graph.json");
  }
  return files;
}

RunRequest read_question(const JsonView& question, const Library& library) {
  const PageCommand& command = command_named(question.at("command"));
  RunRequest request;
  for (const std::string_view word : split_words(command.name, " ")) request.words.emplace_back(word);
  for (const auto& [name, value] : question.members()) {
    if (name == "command") continue;
    const PageFlag& flag = flag_named(command, name, value);
    if (is_upload(flag.kind)) {
      request.upload = {
          .field = name, .files = checked_upload(flag, value), .is_run = flag.kind == PageFlagKind::run_upload};
      continue;
    }
    request.fields.set(name, checked_value(flag, value, library));
  }
  const Json bounds = parse_json(command.unless_given, "bounds");
  for (const auto& [name, value] : bounds.members()) {
    if (request.fields.find(name) == nullptr) request.fields.set(name, value);
  }
  if (request.upload && request.upload->is_run) {
    // Else the run itself would name them, and it may name anything.
    for (const char* needed : {"model", "device"}) question.at(needed);
  }
  if (question.has("trace_in_json") && question.has("num_prompts")) {
    question.at("num_prompts").integer({.least = 1, .most = most_traced_requests});
  }
  return request;
}

Json spec_of(const RunRequest& request) {
  Json spec = Json::object({{"command", fmt::format("{}", fmt::join(request.words, " "))}});
  for (const auto& [name, value] : request.fields.members()) spec.set(name, value);
  return spec;
}

RunRequest read_comparison(const JsonView& request, const Library& library) {
  request.allow_only({"command", "first", "second"});
  RunRequest result{.words = {"compare"}};
  for (const char* side : {"first", "second"}) {
    const RunRequest question = read_question(request.at(side), library);
    if (question.upload) request.at(side).at(question.upload->field).fail("nothing: files are not compared");
    if (question.fields.find("device") != nullptr && question.fields.find("device")->kind() == Json::Kind::object) {
      request.at(side).at("device").fail("the name of a device");
    }
    result.fields.set(side, spec_of(question));
  }
  return result;
}

}  // namespace

std::string RunRequest::text() const {
  const Json spec = spec_of(*this);
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : spec.members()) sorted[name] = value.dump(0);
  std::string text;
  for (const auto& [name, value] : sorted) text += fmt::format("{}={}\n", name, value);
  return text;
}

std::string RunRequest::command_line() const {
  Json shown = Json::object();
  for (const auto& [name, value] : fields.members()) {
    Json text = value;
    if (value.kind() == Json::Kind::object && words.front() == "compare") {
      text = shell_text(Question(value, name).words());
    } else if (value.kind() == Json::Kind::object) {
      text = fmt::format("{}_changed.json", value.find("name")->string());
    }
    shown.set(name, std::move(text));
  }
  if (upload) shown.set(upload->field, upload->files.size() == 1 ? upload->files.front().name : "my-run");
  return Question(words, shown).line();
}

Question RunRequest::question_at(const std::string& place) const {
  Json placed = fields;
  placed.set(upload->field, place);
  return Question(words, placed);
}

void check_deployment(const Json& deployment, const Library& library) {
  const JsonView view(deployment, "run, deployment");
  const auto commands = page_commands();
  const auto serve =
      std::find_if(commands.begin(), commands.end(), [](const PageCommand& one) { return one.name == "serve"; });
  for (const auto& [name, value] : view.members()) {
    if (name == "model" || name == "device" || name == "command") continue;  // the page gives them
    constexpr PageFlag stack{"stack", PageFlagKind::stack};
    checked_value(name == stack.name ? stack : flag_named(*serve, name, value), value, library);
  }
}

RunRequest read_run_request(std::string_view body, const Library& library) {
  const Json document = parse_json(body, "request", body_limits);
  const JsonView request(document, "request");
  const bool compares = request.at("command").string() == "compare";
  RunRequest read = compares ? read_comparison(request, library) : read_question(request, library);
  if (!read.upload && body.size() > most_question_bytes) {
    request.fail(fmt::format("at most {} KiB unless files come with it", most_question_bytes >> 10));
  }
  return read;
}

}  // namespace foretoken
