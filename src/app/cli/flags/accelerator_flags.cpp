#include "app/cli/flags/accelerator_flags.h"

#include <fmt/format.h>

#include "accelerator/dram_rows.h"
#include "accelerator/formats/mapper_constraints.h"
#include "accelerator/formats/problem_json.h"
#include "base/error.h"
#include "base/json.h"

namespace foretoken {
namespace {

bool is_yaml(const std::string& name) {
  for (const std::string_view ending : {".yaml", ".yml", ".jinja", ".jinja2"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

std::string note_of(const EnergyFill& fill) {
  return fmt::format("{}: energies of {} from the library ({}): {}", fill.level, fill.component,
                     confidence_name(fill.kind), fill.note);
}

}  // namespace

Constraints AcceleratorQuestion::constraints_for(const Problem& own) const {
  Constraints all = design_constraints(design, own);
  Constraints written = directive_constraints(timeloop.constraints, design.architecture, own);
  all.loops.insert(all.loops.end(), written.loops.begin(), written.loops.end());
  all.storage.insert(all.storage.end(), written.storage.begin(), written.storage.end());
  if (!written.source.empty()) all.source = written.source;
  return all;
}

void AcceleratorFlags::declare(Options& options) {
  options.heading("Accelerator");
  options.list("--arch", arch,
               "Design: a built-in name (`foretoken accel --list` shows them), a JSON file, or Timeloop's YAML files "
               "separated by commas",
               false);
  options.list("--energy-tables", energy_tables, "Accelergy's ERT and ART files, instead of the built-in energies");
  options.list("--jinja", jinja,
               "Values of the variables in Jinja templates of Timeloop's files, such as architecture=eyeriss_like");
  options.list("--constraints", constraints, "Timeloop's YAML constraints on mappings");
  options.flag(
      "--dram-rows", dram_rows,
      "Model the rows, banks and refresh of the outermost memory. Without this flag every word costs the same, "
      "unless the design has `rows`");
  options.heading("Work");
  options.text("--problem", problem, "One operator, described in a JSON or YAML file");
  layers.declare(options);
  options.text("--model", model,
               "All matrix multiplications of one step of a language model: a built-in name or a config.json");
  options.choice("--phase", phase, {"prefill", "decode"}, "With --model: kind of step");
  options.integer("--batch", batch, {.least = 1, .most = 1 << 20}, "With --model: number of sequences");
  options.integer("--input-len", input_len, {.least = 1, .most = 1 << 24}, "With --model: prompt length in tokens");
  options.integer("--context-len", context_len, {.least = 0, .most = 1 << 24},
                  "With --model: tokens already in the KV cache of each sequence");
  options.text("--mapping", mapping, "Evaluate the mapping in this file (JSON or YAML) instead of searching for one");
}

void AcceleratorFlags::refuse_unused(const Options& options) const {
  if (model.empty()) {
    options.refuse({"--phase", "--batch", "--input-len", "--context-len"}, {}, "work other than --model");
  }
  if (phase == "decode") options.refuse({"--input-len"}, {}, "a decode step");
}

void AcceleratorFlags::read_work(const Library& library, AcceleratorQuestion& question) const {
  if (!problem.empty() && !is_yaml(problem)) {
    const Json document = read_json_file(problem);
    question.problem = read_problem_json(JsonView(document, problem));
  }
  if (layers.kinds_given() > 0) {
    std::vector<AcceleratorLayer> given = accelerator_layers(layers.layers(library));
    if (layers.network.empty()) {
      question.problem = std::move(given.front().problem);
    } else {
      question.layers = given;
      question.to_fuse = std::move(given);
      question.beside = layers.work_beside();
    }
  }
  if (!model.empty()) {
    const Model parsed = library.models().model(model);
    StepRequest request{.phase = step_phase_from_name(phase).value(),
                        .batch = batch,
                        .input_len = input_len,
                        .context_len = context_len};
    const auto operators = stage_operators(parsed, request, {}, 0);
    question.layers = layers_of(operators);
    question.to_fuse = layers_to_fuse(operators);
    question.beside = vector_work(operators);
  }
}

void AcceleratorFlags::open_rows(AcceleratorLevel& memory) const {
  if (!dram_rows || memory.rows.row_bytes > 0) return;
  const std::optional<DramRows> usual = usual_rows(memory.component);
  if (!usual) {
    throw InputError({.source = "--dram-rows",
                      .value = memory.name + (memory.component.empty() ? "" : " of " + memory.component),
                      .expected = "an outermost memory of DDR3, DDR4, LPDDR4, HBM2 or HBM3, or a design with `rows`"});
  }
  memory.rows = *usual;
}

void AcceleratorFlags::check_given() const {
  if (arch.empty()) {
    throw InputError(
        {.source = "--arch",
         .value = "(not given)",
         .expected = "a design (foretoken accel --list shows those that ship) or files that describe one"});
  }
  const int kinds = !problem.empty() + layers.kinds_given() + !model.empty();
  if (kinds > 1) {
    throw InputError(
        {.source = "--problem", .expected = "one of --problem, --gemm, --conv, --network and --model, not several"});
  }
}

AcceleratorFlags::SortedFiles AcceleratorFlags::sorted_files() const {
  SortedFiles files;
  for (const std::string& name : arch) {
    if (is_yaml(name)) {
      files.yaml.emplace_back(name);
    } else if (files.own) {
      throw InputError(
          {.source = "--arch", .value = printable(name), .expected = "one design; " + *files.own + " is another"});
    } else {
      files.own = name;
    }
  }
  for (const std::string& name : energy_tables) files.yaml.emplace_back(name);
  for (const std::string& name : constraints) files.yaml.emplace_back(name);
  if (is_yaml(problem)) files.yaml.emplace_back(problem);
  if (is_yaml(mapping)) files.yaml.emplace_back(mapping);
  return files;
}

void AcceleratorFlags::check_used(const AcceleratorInputs& read, const AcceleratorQuestion& question) const {
  if (!energy_tables.empty() && !read.energies_given && !read.areas_given) {
    throw InputError(
        {.source = "--energy-tables", .value = energy_tables.front(), .expected = "a file with an ERT or ART"});
  }
  if (!constraints.empty() && !read.constraints_given) {
    throw InputError({.source = "--constraints", .value = constraints.front(), .expected = "a file with constraints"});
  }
  if (read.problem && !question.layers.empty()) {
    throw InputError({.source = layers.network.empty() ? "--model" : "--network",
                      .value = read.problem->name,
                      .expected = "a network, or a YAML file with a `problem`, not both"});
  }
}

void AcceleratorFlags::read_timeloop(const SortedFiles& files, const AcceleratorCatalogue& catalogue,
                                     AcceleratorQuestion& question) const {
  AcceleratorInputs known{.problem = question.problem};
  if (files.own) known.architecture = question.design.architecture;
  question.timeloop = read_timeloop_files(files.yaml, std::move(known), jinja_variables(jinja));
  const AcceleratorInputs& read = question.timeloop;
  check_used(read, question);
  question.notes.insert(question.notes.end(), read.notes.begin(), read.notes.end());
  if (read.architecture) {
    AcceleratorDesign& design = question.design;
    design.architecture = *read.architecture;
    const size_t levels = read.architecture->levels.size();
    design.tensors.resize(levels);
    if (!files.own || read.energies_given) design.energies_given.assign(levels, read.energies_given);
    if (!files.own || read.areas_given) design.areas_given.assign(levels, read.areas_given);
    if (!files.own) {
      for (const EnergyFill& fill :
           fill_costs(design.architecture, design.energies_given, design.areas_given, catalogue.library())) {
        question.notes.push_back(note_of(fill));
      }
    }
  }
  question.problem = read.problem;
  question.mapping = read.mapping;
}

void AcceleratorFlags::read_own_mapping(AcceleratorQuestion& question) const {
  if (!question.problem) {
    throw InputError({.source = "--mapping", .value = mapping, .expected = "one operator, not a network of them"});
  }
  if (question.mapping) {
    throw InputError({.source = "--mapping", .value = mapping, .expected = "one mapping; a YAML file has another"});
  }
  const Json document = read_json_file(mapping);
  question.mapping = read_mapping_json(JsonView(document, mapping), question.design.architecture, *question.problem);
}

AcceleratorQuestion AcceleratorFlags::question(const Library& library) const {
  check_given();
  const SortedFiles files = sorted_files();
  const AcceleratorCatalogue catalogue = library.accelerator_designs();
  AcceleratorQuestion question;
  if (files.own) {
    LoadedDesign loaded = catalogue.design(*files.own);
    question.design = std::move(loaded.design);
    for (const EnergyFill& fill : loaded.from_library) question.notes.push_back(note_of(fill));
  }
  read_work(library, question);
  if (!files.yaml.empty()) read_timeloop(files, catalogue, question);
  if (question.design.architecture.levels.empty()) {
    throw InputError({.source = "--arch", .expected = "a design, or YAML files with an `architecture` section"});
  }
  open_rows(question.design.architecture.levels.front());
  if (!question.problem && question.layers.empty()) {
    throw InputError(
        {.source = "--problem",
         .value = "(not given)",
         .expected = "work: --problem, --gemm, --conv, --network, --model, or a YAML file with a `problem`"});
  }
  if (!mapping.empty() && !is_yaml(mapping)) read_own_mapping(question);
  return question;
}

}  // namespace foretoken
