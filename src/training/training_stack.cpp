#include "training/training_stack.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "hardware/catalogue.h"
#include "kernel/forms/call.h"
#include "library/library.h"

namespace foretoken {
namespace {

constexpr size_t largest_stack_file = size_t{1} << 20;

std::map<TrainingConstant, double> read_constants(const JsonView& view) {
  std::map<TrainingConstant, double> constants;
  for (const auto& [name, value] : view.members()) {
    const auto constant = training_constant_from_name(name);
    if (!constant) {
      std::vector<std::string> known;
      for (const TrainingConstantFacts& facts : training_constant_facts()) known.emplace_back(facts.name);
      value.fail(fmt::format("a constant of training stacks: {}", fmt::join(known, ", ")),
                 nearest_name(name, known).value_or(""));
    }
    const TrainingConstantFacts& facts = training_constant_facts()[*constant];
    constants.emplace(*constant, value.number({.least = facts.least, .most = facts.most}));
  }
  return constants;
}

std::vector<std::string> strings_of(const std::optional<JsonView>& list) {
  std::vector<std::string> strings;
  if (!list) return strings;
  for (const JsonView& item : list->items()) strings.push_back(item.string());
  return strings;
}

std::vector<StackRuns> read_runs(const std::optional<JsonView>& list) {
  std::vector<StackRuns> runs;
  if (!list) return runs;
  for (const JsonView& item : list->items()) {
    item.allow_only({"source", "task", "releases"});
    const auto task = item.find("task");
    runs.push_back({.source = item.at("source").string(),
                    .task = task ? task->string() : "",
                    .releases = strings_of(item.find("releases"))});
  }
  return runs;
}

}  // namespace

std::optional<FittedConstant> fitted_constant(std::string_view name) {
  FittedConstant fitted;
  if (name.starts_with("on.")) {
    const size_t dot = name.rfind('.');
    if (dot <= 3) return std::nullopt;
    fitted.place = name.substr(3, dot - 3);
    name.remove_prefix(dot + 1);
  }
  const auto constant = training_constant_from_name(name);
  if (!constant) return std::nullopt;
  fitted.constant = *constant;
  return fitted;
}

namespace {

RunInterval read_interval(const JsonView& view) {
  view.allow_only({"low", "high", "kernels_low", "kernels_high", "basis"});
  const auto kernels = [&](const char* key, Range<double> range) {
    const auto found = view.find(key);
    return found ? found->number(range) : 1;
  };
  return {.low = view.at("low").number({.least = 0.1, .most = 1}),
          .high = view.at("high").number({.least = 1, .most = 10}),
          .kernels_low = kernels("kernels_low", {.least = 0.1, .most = 1}),
          .kernels_high = kernels("kernels_high", {.least = 1, .most = 10})};
}

bool names_device(std::string_view name, const Device& device) {
  return name == device.name || name == device.instruction_set || name == generation_of(device);
}

}  // namespace

TrainingConstants TrainingStack::constants_on(const Device& device) const {
  TrainingConstants values = constants;
  for (const std::string& place : {generation_of(device), device.instruction_set, device.name}) {
    const auto found = on.find(place);
    if (found == on.end()) continue;
    for (const auto& [constant, value] : found->second) values[constant] = value;
  }
  return values;
}

AttentionKernel TrainingStack::attention_of(const Layer& layer, const Device& device) const {
  const auto* mixer = std::get_if<Attention>(&layer.mixer);
  const bool unfused = mixer != nullptr && mixer->sinks &&
                       std::any_of(unfused_sinks.begin(), unfused_sinks.end(), [&](const std::string& place) {
                         return place == "all" || names_device(place, device);
                       });
  return unfused ? AttentionKernel::unfused : attention;
}

const RunInterval& TrainingStack::interval_for(const Model& model) const {
  return model.has_experts() && experts_interval ? *experts_interval : interval;
}

TrainingStack parse_training_stack(std::string_view text, const std::string& source, const TrainingStackFinder& find) {
  const Json document = parse_json(text, source, {.max_bytes = largest_stack_file});
  const JsonView root(document, source);
  root.allow_only({"format", "name", "summary", "source", "extends", "attention", "unfused_sinks", "scatters_sends",
                   "gathers_always", "constants", "on", "fitted", "runs", "interval", "experts_interval"});
  root.at("format").integer({.least = 1, .most = 1});
  TrainingStack stack;
  if (const auto extends = root.find("extends")) {
    if (!find) extends->fail("no other stack here");
    stack = find(extends->string());
  }
  stack.name = root.at("name").string();
  stack.summary = root.at("summary").string();
  stack.source = root.at("source").string();
  if (const auto attention = root.find("attention")) {
    const std::string kind = attention->string();
    if (kind != "flash" && kind != "unfused") attention->fail("flash or unfused");
    stack.attention = kind == "flash" ? AttentionKernel::flash : AttentionKernel::unfused;
  }
  if (root.has("unfused_sinks")) stack.unfused_sinks = strings_of(root.find("unfused_sinks"));
  if (const auto scatters = root.find("scatters_sends")) stack.scatters_sends = scatters->boolean();
  if (const auto gathers = root.find("gathers_always")) stack.gathers_always = gathers->boolean();
  if (const auto constants = root.find("constants")) {
    for (const auto& [constant, value] : read_constants(*constants)) stack.constants[constant] = value;
  }
  if (const auto on = root.find("on")) {
    for (const auto& [place, constants] : on->members()) {
      for (const auto& [constant, value] : read_constants(constants)) stack.on[place][constant] = value;
    }
  }
  stack.fitted = strings_of(root.find("fitted"));
  for (const std::string& name : stack.fitted) {
    if (!fitted_constant(name)) root.at("fitted").fail("names of constants, or on.PLACE.NAME");
  }
  stack.runs = read_runs(root.find("runs"));
  if (const auto interval = root.find("interval")) stack.interval = read_interval(*interval);
  if (const auto interval = root.find("experts_interval")) stack.experts_interval = read_interval(*interval);
  return stack;
}

std::vector<std::string> TrainingStackCatalogue::names() const {
  return json_stems(folder_);
}

TrainingStack TrainingStackCatalogue::stack(const std::string& name) const {
  const bool is_file = HardwareCatalogue::is_path(name);
  const std::vector<std::string> known = names();
  if (!is_file && std::find(known.begin(), known.end(), name) == known.end()) {
    throw InputError({.field = "stack",
                      .value = printable(name),
                      .expected = fmt::format("one of {}, or a file of a training stack", fmt::join(known, ", ")),
                      .suggestion = nearest_name(name, known).value_or("")});
  }
  const auto file_of = [&](const std::string& stem) { return folder_ / (stem + ".json"); };
  const std::filesystem::path file = is_file ? std::filesystem::path(name) : file_of(name);
  // A chain of stacks ends: each must extend one that was not in it before.
  std::vector<std::string> chain = {name};
  TrainingStackFinder find = [&](const std::string& base) {
    if (std::find(chain.begin(), chain.end(), base) != chain.end() ||
        std::find(known.begin(), known.end(), base) == known.end()) {
      throw InputError({.source = (chain.size() == 1 ? file : file_of(chain.back())).string(),
                        .path = "extends",
                        .value = printable(base),
                        .expected = fmt::format("another of {}", fmt::join(known, ", ")),
                        .suggestion = nearest_name(base, known).value_or("")});
    }
    chain.push_back(base);
    return parse_training_stack(read_file(file_of(base), largest_stack_file), file_of(base).string(), find);
  };
  return parse_training_stack(read_file(file, largest_stack_file), file.string(), find);
}

std::vector<TrainingStack> TrainingStackCatalogue::all() const {
  std::vector<TrainingStack> stacks;
  for (const std::string& name : names()) stacks.push_back(stack(name));
  return stacks;
}

TrainingStackCatalogue training_stacks_of(const Library& library) {
  return TrainingStackCatalogue(library.directory() / "training" / "stacks");
}

}  // namespace foretoken
