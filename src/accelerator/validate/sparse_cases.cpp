#include "accelerator/validate/sparse_cases.h"

#include "accelerator/sparse/description_file.h"
#include "accelerator/sparse/timeloop_sparsity.h"
#include "accelerator/validate/case_parts.h"
#include "base/text.h"

namespace foretoken {
namespace {

// `168 (14*12)` as a tool prints the grid of a level -> 12, the rows of it.
int64_t printed_rows(const JsonView& view) {
  const std::string text = view.string();
  const size_t star = text.find('*'), end = text.find(')');
  if (star == std::string::npos || end == std::string::npos || end < star) view.fail("a count as 168 (14*12)");
  const auto rows = parse_integer(std::string_view(text).substr(star + 1, end - star - 1));
  if (!rows || *rows < 1) view.fail("a count as 168 (14*12)");
  return *rows;
}

// Descriptions of the artifact say how many instances stand in a row; the rows are known from what the tool printed.
AcceleratorLevel read_sparse_level(const JsonView& view, const JsonView& printed, bool innermost) {
  const JsonView attributes = view.at("attr");
  AcceleratorLevel level{.name = bare_name(view.at("name").string()), .component = view.at("class").string()};
  level.instances_x = integer_or(attributes, "meshX", 1);
  level.instances_y = printed_rows(printed.at(level.name).at("instances"));
  if (innermost) {
    level.kind = LevelKind::compute;
    return level;
  }
  const auto either = [&](std::string_view first, std::string_view second, int64_t otherwise) {
    return integer_or(attributes, first, integer_or(attributes, second, otherwise));
  };
  level.words_per_access = static_cast<int>(integer_or(attributes, "block_size", 1));
  const int64_t width = either("width", "data_storage_width", 16);
  level.word_bits = static_cast<int>(integer_or(attributes, "datawidth", width / level.words_per_access));
  level.depth = either("depth", "data_storage_depth", 0);
  level.banks = static_cast<int>(integer_or(attributes, "n_banks", 1));
  if (const auto rate = attributes.find("read_bandwidth")) level.bandwidth.read = rate->number();
  if (const auto rate = attributes.find("write_bandwidth")) level.bandwidth.write = rate->number();
  return level;
}

void read_metadata_widths(const JsonView& attributes, SparseLevel& level) {
  const auto word_bits = integer_or(attributes, "metadata_datawidth", 0);
  const auto access_bits = integer_or(attributes, "metadata_storage_width", 0);
  if (word_bits > 0) level.metadata_word_bits = static_cast<int>(word_bits);
  if (access_bits > 0) level.metadata_access_bits = static_cast<int>(access_bits);
}

void read_sparse_energies(const JsonView& table, Architecture& architecture, SparsityDescription& sparsity) {
  for (const auto& [name, entries] : table.members()) {
    const int index = find_level(architecture, name);
    if (index < 0) continue;
    std::map<std::string, double> actions;
    for (const auto& [action, pj] : entries.members()) actions[action] = pj.number();
    architecture.levels[index].energy = {.read_pj = actions["read"],
                                         .fill_pj = actions["write"],
                                         .update_pj = actions["write"],
                                         .compute_pj = actions["mac_random"]};
    sparsity.levels[index].energy = sparse_energy_of(actions);
  }
}

// Dense outputs have `reads`, sparse ones `actual_reads` and the like beside it.
SparseAccesses expected_accesses(const JsonView& view, const std::string& name) {
  const auto count = [&](const std::string& key) {
    const auto found = view.find(key);
    return found ? found->number() : 0.0;
  };
  if (!view.has("actual_" + name)) return {.actual = view.at(name).number()};
  return {.actual = count("actual_" + name), .gated = count("gated_" + name), .skipped = count("skipped_" + name)};
}

// Cycles of storage levels are printed as text.
double printed_sparse_number(const JsonView& view) {
  if (view.is_number()) return view.number();
  const auto number = parse_number(view.string());
  if (!number) view.fail("a number");
  return *number;
}

void read_expected_sparse(const JsonView& view, SparseCase& own) {
  const JsonView summary = view.at("summary");
  own.cycles = summary.at("cycles").number();
  own.energy_pj = summary.at("energy_pj_sum_of_levels").number();
  own.operations = summary.at(summary.has("actual_computes") ? "actual_computes" : "computes").number();
  for (const auto& [level_name, level] : view.at("levels").members()) {
    const auto tensors = level.find("tensors");
    if (!tensors) {
      own.compute_cycles = level.at("cycles").number();
      own.compute_pj = level.at("energy_pj").number();
      continue;
    }
    own.levels.push_back({.level = level_name, .cycles = printed_sparse_number(level.at("cycles"))});
    for (const auto& [tensor_name, tensor] : tensors->members()) {
      own.traffic.push_back({.level = level_name,
                             .tensor = tensor_name,
                             .instances = tensor.at("instances").number(),
                             .reads = expected_accesses(tensor, "reads"),
                             .fills = expected_accesses(tensor, "fills"),
                             .updates = expected_accesses(tensor, "updates"),
                             .energy_pj = tensor.at("energy_pj").number()});
    }
  }
}

SparseCase read_sparse_case(const JsonView& item) {
  SparseCase own{.id = item.at("id").string()};
  const JsonView printed = item.at("expected").at("levels");
  const auto levels = item.at("arch").items();
  for (const JsonView& level : levels) {
    own.architecture.levels.push_back(read_sparse_level(level, printed, &level == &levels.back()));
  }
  const JsonView instance = item.at("problem").at("instance");
  own.problem = read_case_problem(item.at("problem"), instance);
  own.mapping = read_case_mapping(item.at("mapping_outer_to_inner"), own.architecture, own.problem);
  own.sparsity = without_sparsity(own.architecture, own.problem);
  for (size_t i = 0; i < levels.size(); ++i) read_metadata_widths(levels[i].at("attr"), own.sparsity.levels[i]);
  read_sparse_energies(item.at("energy_table_pJ_per_action"), own.architecture, own.sparsity);
  if (const auto optimizations = item.find("sparse_optimizations")) {
    for (const auto& [name, density] : instance.at("densities").members()) {
      const int tensor = find_tensor(own.problem, name);
      if (tensor < 0) density.fail("densities of the problem's tensors");
      own.sparsity.densities[tensor] = read_density(density, own.problem.tensors[tensor], own.problem);
    }
    read_timeloop_sparsity(*optimizations, own.architecture, own.problem, own.sparsity);
  }
  read_expected_sparse(item.at("expected"), own);
  return own;
}

}  // namespace

std::vector<SparseCase> read_sparse_cases(const JsonView& document) {
  std::vector<SparseCase> cases;
  for (const JsonView& item : document.at("cases").items()) cases.push_back(read_sparse_case(item));
  return cases;
}

}  // namespace foretoken
