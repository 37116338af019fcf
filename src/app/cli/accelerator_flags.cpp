#include "app/cli/accelerator_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "accelerator/formats/mapper_constraints.h"
#include "accelerator/formats/problem_json.h"
#include "accelerator/workload/operator_problems.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace foretoken {
namespace {

bool is_yaml(const std::string& name) {
  return name.ends_with(".yaml") || name.ends_with(".yml");
}

// `512x4096x4096`, three to most numbers.
std::vector<int64_t> sizes_of(const std::string& flag, const std::string& text, size_t least, size_t most,
                              const std::string& expected) {
  std::vector<int64_t> sizes;
  size_t from = 0;
  while (from <= text.size()) {
    const size_t end = std::min(text.find('x', from), text.size());
    const std::optional<double> number = parse_number(text.substr(from, end - from));
    if (!number || *number < 1 || *number > 1 << 30 || *number != static_cast<double>(static_cast<int64_t>(*number))) {
      throw InputError({.source = flag, .value = printable(text), .expected = expected});
    }
    sizes.push_back(static_cast<int64_t>(*number));
    from = end + 1;
  }
  if (sizes.size() < least || sizes.size() > most) {
    throw InputError({.source = flag, .value = printable(text), .expected = expected});
  }
  return sizes;
}

Problem gemm_of(const std::string& text) {
  const auto sizes = sizes_of("--gemm", text, 3, 4, "MxNxK, or MxNxKxBATCH: 512x4096x4096");
  return gemm_problem({.m = sizes[0], .n = sizes[1], .k = sizes[2], .batch = sizes.size() > 3 ? sizes[3] : 1});
}

Problem conv_of(const std::string& text) {
  const auto sizes = sizes_of(
      "--conv", text, 5, 7, "IN_CHANNELSxOUT_CHANNELSxHEIGHTxWIDTHxKERNEL, then xSTRIDE and xGROUPS: 3x64x224x224x7x2");
  const int64_t kernel = sizes[4];
  const ConvShape shape{.in_channels = sizes[0],
                        .out_channels = sizes[1],
                        .height = sizes[2],
                        .width = sizes[3],
                        .kernel_height = kernel,
                        .kernel_width = kernel,
                        .stride = sizes.size() > 5 ? sizes[5] : 1,
                        .padding = kernel / 2,
                        .groups = sizes.size() > 6 ? sizes[6] : 1};
  if (shape.in_channels % shape.groups != 0 || shape.out_channels % shape.groups != 0) {
    throw InputError({.source = "--conv", .value = printable(text), .expected = "groups that divide both channels"});
  }
  return operator_problems(shape).front().problem;
}

std::string note_of(const EnergyFill& fill) {
  return fmt::format("{}: energies of {} from the library ({}): {}", fill.level, fill.component,
                     confidence_name(fill.kind), fill.note);
}

std::filesystem::path network_file(const Library& library, const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) return name;
  const std::filesystem::path folder = library.directory() / "accelerators" / "networks";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw InputError({.source = "--network",
                      .value = printable(name),
                      .expected = fmt::format("a file of layers, or one of {}", fmt::join(names, ", ")),
                      .suggestion = nearest_name(name, names).value_or("")});
  }
  return folder / (name + ".json");
}

}  // namespace

Constraints AcceleratorQuestion::constraints_for(const Problem& own) const {
  Constraints all = design_constraints(design, own);
  Constraints written = directive_constraints(directives, design.architecture, own);
  all.loops = std::move(written.loops);
  all.storage.insert(all.storage.end(), written.storage.begin(), written.storage.end());
  if (!written.source.empty()) all.source = written.source;
  return all;
}

void AcceleratorFlags::declare(Options& options) {
  options.heading("Accelerator");
  options.list("--arch", arch,
               "A design that ships (foretoken accel --list), its JSON file, or Timeloop's YAML files with anything in "
               "them, comma-separated",
               false);
  options.list("--energy-tables", energy_tables, "Accelergy's ERT and ART files, instead of the built-in energies");
  options.list("--constraints", constraints, "Timeloop's YAML constraints on mappings");
  options.heading("Work");
  options.text("--problem", problem, "One operator: a JSON or YAML file");
  options.text("--gemm", gemm, "One multiplication: MxNxK or MxNxKxBATCH");
  options.text("--conv", conv,
               "One convolution: INxOUTxHEIGHTxWIDTHxKERNEL[xSTRIDE[xGROUPS]], padded by half its kernel");
  options.text("--network", network, "All layers of a network that ships, or of a JSON file of layers");
  options.text("--model", model, "All multiplications of one step of a language model: a name or config.json");
  options.choice("--phase", phase, {"prefill", "decode"}, "With --model: which step");
  options.integer("--batch", batch, {.least = 1, .most = 1 << 20}, "With --model: sequences");
  options.integer("--input-len", input_len, {.least = 1, .most = 1 << 24}, "With --model: tokens of a prompt");
  options.integer("--context-len", context_len, {.least = 0, .most = 1 << 24},
                  "With --model: tokens in the cache before");
  options.text("--mapping", mapping, "Evaluate this mapping (JSON or YAML) instead of searching one");
}

void AcceleratorFlags::read_work(const Library& library, AcceleratorQuestion& question) const {
  if (!gemm.empty()) question.problem = gemm_of(gemm);
  if (!conv.empty()) question.problem = conv_of(conv);
  if (!problem.empty() && !is_yaml(problem)) {
    const Json document = read_json_file(problem);
    question.problem = read_problem_json(JsonView(document, problem));
  }
  if (!network.empty()) {
    const std::filesystem::path file = network_file(library, network);
    const Json document = read_json_file(file);
    question.layers = read_layer_list(JsonView(document, file.string()));
  }
  if (!model.empty()) {
    const Model parsed = library.models().model(model);
    StepRequest request{.phase = step_phase_from_name(phase).value(),
                        .batch = batch,
                        .input_len = input_len,
                        .context_len = context_len};
    question.layers = layers_of(stage_operators(parsed, request, {}, 0));
  }
}

AcceleratorQuestion AcceleratorFlags::question(const Library& library) const {
  if (arch.empty()) {
    throw InputError(
        {.source = "--arch",
         .value = "(not given)",
         .expected = "a design (foretoken accel --list shows those that ship) or files that describe one"});
  }
  const int kinds = !problem.empty() + !gemm.empty() + !conv.empty() + !network.empty() + !model.empty();
  if (kinds > 1) {
    throw InputError(
        {.source = "--problem", .expected = "one of --problem, --gemm, --conv, --network and --model, not several"});
  }
  AcceleratorQuestion question;
  std::vector<std::filesystem::path> yaml;
  std::optional<std::string> own;
  const auto sort_file = [&](const std::string& name) {
    if (is_yaml(name)) {
      yaml.emplace_back(name);
    } else if (own) {
      throw InputError(
          {.source = "--arch", .value = printable(name), .expected = "one design; " + *own + " is another"});
    } else {
      own = name;
    }
  };
  for (const std::string& name : arch) sort_file(name);
  for (const std::string& name : energy_tables) yaml.emplace_back(name);
  for (const std::string& name : constraints) yaml.emplace_back(name);
  if (is_yaml(problem)) yaml.emplace_back(problem);
  if (is_yaml(mapping)) yaml.emplace_back(mapping);
  const AcceleratorCatalogue catalogue = library.accelerator_designs();
  if (own) {
    LoadedDesign loaded = catalogue.design(*own);
    question.design = std::move(loaded.design);
    for (const EnergyFill& fill : loaded.from_library) {
      question.notes.push_back(note_of(fill));
    }
  }
  read_work(library, question);
  if (!yaml.empty()) {
    AcceleratorInputs known{.problem = question.problem};
    if (own) known.architecture = question.design.architecture;
    question.timeloop = read_timeloop_files(yaml, std::move(known));
    const AcceleratorInputs& read = question.timeloop;
    question.directives = read.constraints;
    question.notes.insert(question.notes.end(), read.notes.begin(), read.notes.end());
    if (read.architecture) {
      question.design.architecture = *read.architecture;
      question.design.tensors.resize(read.architecture->levels.size());
    }
    if (read.architecture && !own) {
      const size_t levels = read.architecture->levels.size();
      const std::vector<bool> energies(levels, read.energies_given), areas(levels, read.areas_given);
      for (const EnergyFill& fill : fill_costs(question.design.architecture, energies, areas, catalogue.library())) {
        question.notes.push_back(note_of(fill));
      }
    }
    question.problem = read.problem;
    question.mapping = read.mapping;
  }
  if (question.design.architecture.levels.empty()) {
    throw InputError({.source = "--arch", .expected = "a design, or YAML files with an `architecture` section"});
  }
  if (!question.problem && question.layers.empty()) {
    throw InputError(
        {.source = "--problem",
         .value = "(not given)",
         .expected = "work: --problem, --gemm, --conv, --network, --model, or a YAML file with a `problem`"});
  }
  if (!mapping.empty() && !is_yaml(mapping)) {
    if (!question.problem) {
      throw InputError({.source = "--mapping", .value = mapping, .expected = "one operator, not a network of them"});
    }
    const Json document = read_json_file(mapping);
    question.mapping = read_mapping_json(JsonView(document, mapping), question.design.architecture, *question.problem);
  }
  return question;
}

}  // namespace foretoken
