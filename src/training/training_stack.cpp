#include "training/training_stack.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/portable_math.h"
#include "base/text.h"
#include "hardware/catalogue.h"
#include "kernel/forms/call.h"
#include "library/library.h"
#include "training/schedule/pipeline_work.h"
#include "training/training_recipe.h"

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
      value.fail(fmt::format("one of the constants of training stacks: {}", fmt::join(known, ", ")),
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

// Names of a list, one at least, each turned into what it names.
template <class Named>
std::vector<Named> named_items(const JsonView& list, const std::vector<std::string>& known,
                               const std::function<std::optional<Named>(std::string_view)>& from_name) {
  std::vector<Named> found;
  for (const JsonView& item : list.items()) {
    const std::string name = item.string();
    std::optional<Named> one = from_name(name);
    if (!one) item.fail(fmt::format("one of {}", fmt::join(known, ", ")), nearest_name(name, known).value_or(""));
    found.push_back(*std::move(one));
  }
  if (found.empty()) list.fail(fmt::format("at least one of {}", fmt::join(known, ", ")));
  return found;
}

std::vector<std::string> schedules_of(const JsonView& list) {
  const std::vector<std::string> known = pipeline_schedule_names();
  return named_items<std::string>(list, known, [&](std::string_view name) -> std::optional<std::string> {
    if (std::ranges::find(known, name) == known.end()) return std::nullopt;
    return std::string(name);
  });
}

std::vector<StackRuns> read_runs(const std::optional<JsonView>& list) {
  std::vector<StackRuns> runs;
  if (!list) return runs;
  for (const JsonView& item : list->items()) {
    item.allow_only({"source", "task", "releases", "models", "gpus", "dtypes"});
    const auto task = item.find("task");
    runs.push_back({.source = item.at("source").string(),
                    .task = task ? task->string() : "",
                    .releases = strings_of(item.find("releases")),
                    .models = strings_of(item.find("models")),
                    .gpus = strings_of(item.find("gpus")),
                    .dtypes = strings_of(item.find("dtypes"))});
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
  const auto basis = view.find("basis");
  return {.low = view.at("low").number({.least = 0.1, .most = 1}),
          .high = view.at("high").number({.least = 1, .most = 10}),
          .kernels_low = kernels("kernels_low", {.least = 0.1, .most = 1}),
          .kernels_high = kernels("kernels_high", {.least = 1, .most = 10}),
          .is_assumed = !basis || basis->string().starts_with("assumed")};
}

std::optional<StackCoverage> read_coverage(const std::optional<JsonView>& view) {
  if (!view) return std::nullopt;
  view->allow_only({"devices", "generations", "experts", "adapters", "most_devices", "longest_sequence"});
  const auto longest = view->find("longest_sequence");
  return StackCoverage{.devices = strings_of(view->find("devices")),
                       .generations = strings_of(view->find("generations")),
                       .experts = view->at("experts").boolean(),
                       .adapters = view->at("adapters").boolean(),
                       .most_devices = view->at("most_devices").integer({.least = 1, .most = 100'000'000}),
                       .longest_sequence = longest ? longest->integer({.least = 1, .most = 1'000'000'000}) : 0};
}

RecipeHabits read_habits(const std::string& recipe, const JsonView& view) {
  const std::vector<std::string> known = training_recipe_names();
  if (std::ranges::find(known, recipe) == known.end()) {
    view.fail(fmt::format("one of the number formats {}", fmt::join(known, ", ")),
              nearest_name(recipe, known).value_or(""));
  }
  view.allow_only({"hides_tensor", "gathered_parameter_bytes"});
  RecipeHabits habits;
  if (const auto hides = view.find("hides_tensor")) habits.hides_tensor = hides->boolean();
  if (const auto bytes = view.find("gathered_parameter_bytes")) {
    habits.gathered_parameter_bytes = bytes->number({.least = 0.5, .most = 4});
  }
  return habits;
}

// Software that trains with the kernels and habits of a stack of another name (docs/training_configs.md).
struct StackOfSoftware {
  std::string_view software, stack;
};
constexpr StackOfSoftware stacks_of_software[] = {
    {"nemo", "megatron-bridge-26.08"},
    {"megatron-bridge", "megatron-bridge-26.08"},
    {"megatron-lm", "megatron-bridge-26.08"},
    {"megatron-core", "megatron-bridge-26.08"},
    {"axolotl", "transformers"},
    {"accelerate", "transformers"},
    {"trl", "transformers"},
    {"huggingface", "transformers"},
    {"torchtune", "torchtitan-eager"},
    {"fsdp2", "torchtitan"},
};

std::optional<std::string> stack_of_software(std::string_view name) {
  for (const StackOfSoftware& one : stacks_of_software) {
    if (equal_ignoring_case(one.software, name)) return std::string(one.stack);
  }
  return std::nullopt;
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

RecipeHabits TrainingStack::habits_of(std::string_view recipe) const {
  const auto found = recipes.find(recipe);
  return found != recipes.end() ? found->second : RecipeHabits{};
}

namespace {

// A way in which a use is beyond the runs of a stack, and the logarithm by which 90% of such steps differ more: sources
// that fits had not seen were 3 to 11% off on average, adapters up to 32 (docs/accuracy.md).
struct BeyondRuns {
  std::string sentence;
  double width;
};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Of a stack without coverage: its interval was assumed for what public facts about such stacks show, which it holds
// (42 of 42 in data/training/public_facts.csv): mostly dense models on A100, H100 and H200, on up to 2,048 GPUs. Steps
// of long sequences took up to 1.4 times as long. And for what has an interval of its own.
StackCoverage assumed_coverage(const TrainingStack& stack, const Device* device) {
  constexpr int ampere = 80, hopper = 90;  // compute capability x 10
  const int capability = device != nullptr ? kernel_generation(*device).cuda_capability : 0;
  const bool is_meant =
      capability >= ampere && capability <= hopper && device->vendor == "NVIDIA" && has_stacked_memory(*device);
  return {.devices = {},
          .generations = is_meant ? std::vector{generation_of(*device)} : std::vector<std::string>(),
          .experts = stack.experts_interval.has_value(),
          .adapters = stack.tuning_interval.has_value(),
          .most_devices = 2048,
          .longest_sequence = 8192};
}

// As if the runs covered `coverage`.
std::vector<BeyondRuns> ways_beyond(const TrainingStack& stack, const std::optional<StackCoverage>& coverage,
                                    const Model& model, const StackUse& use) {
  constexpr double none = 0.1;  // of its own
  constexpr double other_device = 0.1, other_generation = 0.2, other_class = 0.25, larger = 0.1, longer = 0.25;
  constexpr int64_t much = 4;
  std::vector<BeyondRuns> ways;
  const StackCoverage seen = coverage.value_or(assumed_coverage(stack, use.device));
  const auto add = [&](const std::string& use_without_runs, double width) {
    const std::string_view runs = stack.runs.empty() ? "measured" : "published";
    ways.push_back({fmt::format("no {} run {}", runs, use_without_runs), width});
  };
  if (stack.runs.empty() && !coverage) add(fmt::format("of {}", stack.name), none);
  if (use.device != nullptr && !contains(seen.devices, use.device->name)) {
    const bool kin = contains(seen.generations, generation_of(*use.device));
    if (!kin) {
      add(fmt::format("on {} or its generation", use.device->title), other_generation);
    } else if (!seen.devices.empty()) {
      add(fmt::format("on {}", use.device->title), other_device);
    }
  }
  if (model.has_experts() && !seen.experts) {
    add("of a model with experts", other_class);
  } else if (model.has_experts() && use.expert_ranks > 1 && seen.most_devices == 1) {
    add("with experts on several GPUs", other_class);
  }
  if (use.adapters && !seen.adapters) add("with LoRA adapters", other_class);
  if (seen.most_devices > 0 && use.devices > much * seen.most_devices) {
    add(fmt::format("on more than {}", counted(seen.most_devices, "GPU")), larger);
  }
  if (seen.longest_sequence > 0 && use.sequence_length > much * seen.longest_sequence) {
    add(fmt::format("on sequences of more than {} tokens", seen.longest_sequence), longer);
  }
  return ways;
}

double squared_width(const std::vector<BeyondRuns>& ways) {
  double sum = 0;
  for (const BeyondRuns& way : ways) sum += way.width * way.width;
  return sum;
}

}  // namespace

std::vector<std::string> TrainingStack::beyond_runs(const Model& model, const StackUse& use) const {
  std::vector<std::string> sentences;
  for (BeyondRuns& way : ways_beyond(*this, coverage, model, use)) sentences.push_back(std::move(way.sentence));
  return sentences;
}

RunInterval TrainingStack::interval_for(const Model& model, const StackUse& use) const {
  RunInterval own = interval;
  if (model.has_experts()) {
    own = experts_interval.value_or(interval);
  } else if (use.tuning) {
    own = tuning_interval.value_or(interval);
  }
  double more = squared_width(ways_beyond(*this, coverage, model, use));
  // Steps that it was compared with on one device make a stack no less sure of others.
  if (runs.empty()) more = std::min(more, squared_width(ways_beyond(*this, std::nullopt, model, use)));
  if (more == 0) return own;
  const auto wider = [&](double factor) {
    const double log = portable_log(factor);
    return portable_exp(std::sqrt(log * log + more));
  };
  own.low = 1 / wider(1 / own.low);
  own.high = wider(own.high);
  return own;
}

namespace {

SavedBeside read_saved_beside(const JsonView& view) {
  view.allow_only({"norm", "frozen_norm", "gate", "activation", "stream", "adapter", "score", "routed"});
  SavedBeside saved;
  const auto read = [&](const char* key, double& bytes) {
    if (const auto found = view.find(key)) bytes = found->number({.least = -4, .most = 16});
  };
  read("norm", saved.norm);
  read("frozen_norm", saved.frozen_norm);
  read("gate", saved.gate);
  read("activation", saved.activation);
  read("stream", saved.stream);
  read("adapter", saved.adapter);
  read("score", saved.score);
  read("routed", saved.routed);
  return saved;
}

}  // namespace

TrainingStack parse_training_stack(std::string_view text, const std::string& source, const TrainingStackFinder& find,
                                   const StackFinder& find_kernels) {
  const Json document = parse_json(text, source, {.max_bytes = largest_stack_file});
  const JsonView root(document, source);
  root.allow_only({"format",
                   "name",
                   "summary",
                   "source",
                   "fitted_on",
                   "software",
                   "extends",
                   "attention",
                   "unfused_sinks",
                   "schedules",
                   "shardings",
                   "recomputes",
                   "recomputes_some_layers",
                   "takes_megatron_flags",
                   "scatters_sends",
                   "gathers_always",
                   "scatters_always",
                   "keeps_gathered_in_pipelines",
                   "usual_sharding",
                   "offloads_gradients",
                   "held_gradient_bytes",
                   "held_logit_bytes",
                   "master_weight_bytes",
                   "kernels",
                   "autocast_kernels",
                   "adapter_kernels",
                   "stops_recompute_early",
                   "saved_beside",
                   "frees_gradients",
                   "usual_recompute",
                   "recipes",
                   "constants",
                   "on",
                   "fitted",
                   "runs",
                   "coverage",
                   "interval",
                   "experts_interval",
                   "tuning_interval"});
  root.at("format").integer({.least = 1, .most = 1});
  TrainingStack stack;
  if (const auto extends = root.find("extends")) {
    if (!find) extends->fail("no other stack here");
    stack = find(extends->string());
  }
  stack.name = root.at("name").string();
  stack.summary = root.at("summary").string();
  stack.source = root.at("source").string();
  stack.origin = read_stack_origin(root);
  if (const auto attention = root.find("attention")) {
    const std::string kind = attention->string();
    if (kind != "flash" && kind != "unfused") attention->fail("flash or unfused");
    stack.attention = kind == "flash" ? AttentionKernel::flash : AttentionKernel::unfused;
  }
  if (root.has("schedules")) stack.schedules = schedules_of(root.at("schedules"));
  if (root.has("shardings")) {
    stack.shardings = named_items<Sharding>(root.at("shardings"), sharding_names(), sharding_from_name);
  }
  if (root.has("recomputes")) {
    stack.recomputes = named_items<Recompute>(root.at("recomputes"), recompute_names(), recompute_from_name);
  }
  if (const auto some = root.find("recomputes_some_layers")) stack.recomputes_some_layers = some->boolean();
  if (const auto takes = root.find("takes_megatron_flags")) stack.takes_megatron_flags = takes->boolean();
  if (root.has("unfused_sinks")) stack.unfused_sinks = strings_of(root.find("unfused_sinks"));
  if (const auto scatters = root.find("scatters_sends")) stack.scatters_sends = scatters->boolean();
  if (const auto gathers = root.find("gathers_always")) stack.gathers_always = gathers->boolean();
  if (const auto scatters = root.find("scatters_always")) stack.scatters_always = scatters->boolean();
  if (const auto keeps = root.find("keeps_gathered_in_pipelines")) stack.keeps_gathered_in_pipelines = keeps->boolean();
  if (const auto offloads = root.find("offloads_gradients")) stack.offloads_gradients = offloads->boolean();
  if (const auto usual = root.find("usual_sharding")) {
    const std::optional<Sharding> sharding = sharding_from_name(usual->string());
    if (!sharding) usual->fail(fmt::format("one of {}", fmt::join(sharding_names(), ", ")));
    stack.usual_sharding = *sharding;
  }
  if (const auto bytes = root.find("held_gradient_bytes")) {
    stack.held_gradient_bytes = bytes->number({.least = 1, .most = 4});
  }
  if (const auto bytes = root.find("held_logit_bytes")) {
    stack.held_logit_bytes = bytes->number({.least = 0, .most = 32});
  }
  if (const auto bytes = root.find("master_weight_bytes")) {
    stack.master_weight_bytes = bytes->number({.least = 0, .most = 4});
  }
  const auto read_kernels = [&](const char* key, std::optional<Stack>& kernels) {
    const auto named = root.find(key);
    if (!named) return;
    kernels.reset();
    if (named->string() == "fused") return;
    if (!find_kernels) named->fail("fused: no stack of kernels here");
    kernels = find_kernels(named->string());
  };
  read_kernels("kernels", stack.kernels);
  read_kernels("autocast_kernels", stack.autocast_kernels);
  read_kernels("adapter_kernels", stack.adapter_kernels);
  if (const auto stops = root.find("stops_recompute_early")) stack.stops_recompute_early = stops->boolean();
  if (const auto saved = root.find("saved_beside")) stack.saved_beside = read_saved_beside(*saved);
  if (const auto frees = root.find("frees_gradients")) stack.frees_gradients = frees->boolean();
  if (const auto modules = root.find("usual_recompute")) {
    stack.usual_recompute = {};
    for (const JsonView& item : modules->items()) {
      const std::optional<LayerModule> module = layer_module_from_name(item.string());
      if (!module) item.fail(fmt::format("one of {}", fmt::join(layer_module_names(), ", ")));
      stack.usual_recompute.add(*module);
    }
  }
  if (const auto recipes = root.find("recipes")) {
    for (const auto& [recipe, habits] : recipes->members()) stack.recipes[recipe] = read_habits(recipe, habits);
  }
  stack.coverage = read_coverage(root.find("coverage"));
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
    if (!fitted_constant(name)) root.at("fitted").fail("names of constants: NAME or on.PLACE.NAME");
  }
  stack.runs = read_runs(root.find("runs"));
  if (const auto interval = root.find("interval")) stack.interval = read_interval(*interval);
  if (const auto interval = root.find("experts_interval")) stack.experts_interval = read_interval(*interval);
  if (const auto interval = root.find("tuning_interval")) stack.tuning_interval = read_interval(*interval);
  return stack;
}

std::vector<std::string> TrainingStackCatalogue::names() const {
  return file_stems(folder_);
}

TrainingStack TrainingStackCatalogue::stack(const std::string& name) const {
  const bool is_file = HardwareCatalogue::is_path(name);
  const std::vector<std::string> known = names();
  if (!is_file && std::find(known.begin(), known.end(), name) == known.end()) {
    throw InputError({.field = "stack",
                      .value = printable(name),
                      .expected = fmt::format("one of {}, or a training stack file", fmt::join(known, ", ")),
                      .suggestion = stack_of_software(name).value_or(nearest_name(name, known).value_or(""))});
  }
  const auto file_of = [&](const std::string& stem) { return folder_ / (stem + ".json"); };
  const std::filesystem::path file = is_file ? std::filesystem::path(name) : file_of(name);
  // A chain of stacks ends: each must extend one that was not in it before.
  std::vector<std::string> chain = {name};
  // data/stacks, beside data/training/stacks.
  const StackFinder kernel_stacks = [this](const std::string& kernels) {
    return StackCatalogue(folder_.parent_path().parent_path() / "stacks").stack(kernels);
  };
  TrainingStackFinder find = [&](const std::string& base) {
    if (std::find(chain.begin(), chain.end(), base) != chain.end() ||
        std::find(known.begin(), known.end(), base) == known.end()) {
      throw InputError({.source = (chain.size() == 1 ? file : file_of(chain.back())).string(),
                        .path = "extends",
                        .value = printable(base),
                        .expected = fmt::format("one of {} that does not extend this stack", fmt::join(known, ", ")),
                        .suggestion = nearest_name(base, known).value_or("")});
    }
    chain.push_back(base);
    return parse_training_stack(read_file(file_of(base), largest_stack_file), file_of(base).string(), find,
                                kernel_stacks);
  };
  return parse_training_stack(read_file(file, largest_stack_file), file.string(), find, kernel_stacks);
}

std::vector<TrainingStack> TrainingStackCatalogue::all() const {
  std::vector<TrainingStack> stacks;
  for (const std::string& name : names()) stacks.push_back(stack(name));
  return stacks;
}

TrainingStackCatalogue training_stacks_of(const Library& library) {
  return TrainingStackCatalogue(library.directory() / "training" / "stacks");
}

TrainingStack on_host(TrainingStack stack, double factor) {
  for (const TrainingConstant time : {host_layer_us, host_checkpoint_us, host_micro_batch_us}) {
    stack.constants[time] *= factor;
    for (auto& [place, constants] : stack.on) {
      if (const auto found = constants.find(time); found != constants.end()) found->second *= factor;
    }
  }
  stack.host_factor *= factor;
  return stack;
}

std::vector<std::string> training_stack_keys() {
  return {"schedules", "shardings", "recomputes", "usual_sharding", "constants", "interval", "runs", "coverage"};
}

bool is_training_stack(const TrainingStackCatalogue& catalogue, const std::string& name) {
  const std::vector<std::string> names = catalogue.names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return true;
  if (!name.ends_with(".json") || !std::filesystem::exists(name)) return false;
  const Json document = read_json_file(name);
  const std::vector<std::string> keys = training_stack_keys();
  return document.kind() == Json::Kind::object &&
         std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return document.find(key) != nullptr; });
}

}  // namespace foretoken
