#include "accelerator/sparse/description_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "accelerator/formats/architecture_json.h"
#include "accelerator/tile.h"
#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr int max_metadata_bits = 4096;
constexpr double max_action_pj = 1e12;

[[noreturn]] void fail_with_nearest(const JsonView& view, std::string_view typed, std::string expected,
                                    const std::vector<std::string>& names) {
  view.fail(std::move(expected), nearest_name(typed, names).value_or(""));
}

// A problem, or one of the many that a file is for: then names which it lacks are those of others.
struct NamedParts {
  const Problem& problem;
  bool one_of_many = false;
};

// By its name, or all that have the role. None where the name belongs to another problem.
std::vector<int> sparse_tensors_named(const JsonView& view, std::string_view name, const NamedParts& parts) {
  if (const int tensor = find_tensor(parts.problem, name); tensor >= 0) return {tensor};
  std::vector<int> found;
  for (size_t t = 0; t < parts.problem.tensors.size(); ++t) {
    if (means_role(name, parts.problem.tensors[t])) found.push_back(static_cast<int>(t));
  }
  if (found.empty() && !parts.one_of_many) {
    std::vector<std::string> names = tensor_names(parts.problem);
    names.insert(names.end(), {"inputs", "weights", "outputs"});
    fail_with_nearest(view, name, "a tensor of the problem", names);
  }
  return found;
}

std::vector<int> sparse_tensors_in(const JsonView& view, const NamedParts& parts) {
  return sparse_tensors_named(view, view.string(), parts);
}

int sparse_level_named(const JsonView& view, std::string_view name, const Architecture& architecture) {
  const int level = find_level(architecture, name);
  if (level < 0) fail_with_nearest(view, name, "a level of the architecture", level_names(architecture));
  return level;
}

// -1 where the name belongs to another problem.
int sparse_dimension_in(const JsonView& view, const NamedParts& parts) {
  const Problem& problem = parts.problem;
  const int dimension = find_dimension(problem, view.string());
  if (dimension >= 0 || parts.one_of_many) return dimension;
  fail_with_nearest(view, view.string(), "a dimension of the problem", dimension_names(problem));
}

FormatKind format_in(const JsonView& view) {
  const auto kind = find_format(view.string());
  if (!kind) fail_with_nearest(view, view.string(), "a format: U, B, CP, RLE or UOP", format_names());
  return *kind;
}

int metadata_bits_in(const JsonView& view) {
  return static_cast<int>(view.integer({.least = 1, .most = max_metadata_bits}));
}

// A matrix lies in the last two ranks; how large it is.
std::pair<int64_t, int64_t> matrix_sides(const JsonView& view, const ProblemTensor& tensor, const Problem& problem) {
  if (tensor.ranks.size() < 2) view.fail("a tensor of two ranks or more, for a distribution over a matrix");
  TileSizes whole;
  whole.fill(1);
  for (size_t d = 0; d < problem.dimensions.size(); ++d) whole[d] = static_cast<double>(problem.dimensions[d].size);
  const std::vector<double> extents = tile_extents(tensor, whole);
  return {static_cast<int64_t>(extents[extents.size() - 2]), static_cast<int64_t>(extents.back())};
}

// The dimension that a density runs along: by name, or `reduced` for the first one of the tensor that no output has.
bool runs_along(const std::string& along, const ProjectionTerm& term, const Problem& problem) {
  if (along != "reduced") return problem.dimensions[term.dimension].name == along;
  return std::ranges::none_of(problem.tensors, [&](const ProblemTensor& tensor) {
    return tensor.written && uses_dimension(tensor, term.dimension);
  });
}

std::unique_ptr<DensityModel> read_structured_density(const JsonView& view, const ProblemTensor& tensor,
                                                      const Problem& problem) {
  view.allow_only({"distribution", "nonzeros", "block", "along"});
  const auto block = static_cast<int>(view.at("block").integer({.least = 1, .most = 1024}));
  const auto nonzeros = static_cast<int>(view.at("nonzeros").integer({.least = 0, .most = block}));
  const std::string along = view.at("along").string();
  for (size_t r = 0; r < tensor.ranks.size(); ++r) {
    for (const ProjectionTerm& term : tensor.ranks[r]) {
      if (runs_along(along, term, problem)) return make_structured_density(nonzeros, block, static_cast<int>(r));
    }
  }
  fail_with_nearest(view.at("along"), along, "a dimension that indexes the tensor, or \"reduced\"",
                    dimension_names(problem));
}

std::unique_ptr<DensityModel> read_banded_density(const JsonView& view, const ProblemTensor& tensor,
                                                  const Problem& problem) {
  view.allow_only({"distribution", "half_width"});
  const auto [rows, columns] = matrix_sides(view, tensor, problem);
  if (rows > max_banded_rows) view.fail("a matrix of at most " + std::to_string(max_banded_rows) + " rows");
  return make_banded_density(rows, columns, view.at("half_width").integer({.least = 0, .most = max_dimension_size}));
}

std::unique_ptr<DensityModel> read_measured_density(const JsonView& view, const ProblemTensor& tensor,
                                                    const Problem& problem) {
  view.allow_only({"distribution", "file"});
  const auto [rows, columns] = matrix_sides(view, tensor, problem);
  const auto path = std::filesystem::path(view.source()).parent_path() / view.at("file").string();
  NonzeroMatrix matrix = read_nonzero_matrix(path);
  if (tensor.ranks.size() != 2 || matrix.rows != rows || matrix.columns != columns) {
    view.at("file").fail("a matrix of " + std::to_string(rows) + " x " + std::to_string(columns) +
                         " for a tensor of two ranks, not " + std::to_string(matrix.rows) + " x " +
                         std::to_string(matrix.columns));
  }
  return make_measured_density(std::move(matrix));
}

RankFormat read_rank_format(const JsonView& view, const NamedParts& parts) {
  if (view.is(Json::Kind::string)) return {.kind = format_in(view)};
  view.allow_only({"format", "word_bits", "dimensions"});
  RankFormat rank{.kind = format_in(view.at("format"))};
  if (const auto bits = view.find("word_bits")) rank.word_bits = metadata_bits_in(*bits);
  if (const auto dimensions = view.find("dimensions")) {
    for (const JsonView& dimension : dimensions->items()) {
      if (const int own = sparse_dimension_in(dimension, parts); own >= 0) rank.dimensions.push_back(own);
    }
  }
  return rank;
}

ZeroAction read_zero_action(const JsonView& view) {
  const std::string name = view.string();
  if (name == "gate" || name == "gating") return ZeroAction::gate;
  if (name == "skip" || name == "skipping") return ZeroAction::skip;
  view.fail("gate or skip");
}

ComputeOptimization compute_optimization(const JsonView& view) {
  return read_zero_action(view) == ZeroAction::gate ? ComputeOptimization::gate : ComputeOptimization::skip;
}

// One for each tensor that the target means, and a tensor does not decide about itself where a role means several. None
// where the tensors are those of another problem.
std::vector<ReadCondition> read_conditions(const JsonView& target, const JsonView& on, const NamedParts& parts) {
  if (on.items().empty()) on.fail("the tensors whose zeros decide");
  std::vector<int> deciding;
  for (const JsonView& item : on.items()) {
    const std::vector<int> tensors = sparse_tensors_in(item, parts);
    deciding.insert(deciding.end(), tensors.begin(), tensors.end());
  }
  const std::vector<int> targets = sparse_tensors_in(target, parts);
  std::vector<ReadCondition> conditions;
  for (const int own : targets) {
    ReadCondition condition{.target = own, .on = deciding};
    if (targets.size() > 1) std::erase(condition.on, own);
    if (!condition.on.empty()) conditions.push_back(std::move(condition));
  }
  return conditions;
}

void read_sparsity_energy(const JsonView& view, SparseEnergy& energy) {
  const std::initializer_list<std::pair<std::string_view, double*>> actions = {
      {"gated_read", &energy.gated_read_pj},
      {"gated_write", &energy.gated_write_pj},
      {"metadata_read", &energy.metadata_read_pj},
      {"metadata_write", &energy.metadata_write_pj},
      {"gated_metadata_read", &energy.gated_metadata_read_pj},
      {"gated_metadata_write", &energy.gated_metadata_write_pj},
      {"decompress", &energy.decompress_pj},
      {"compress", &energy.compress_pj},
      {"gated_compute", &energy.gated_compute_pj},
  };
  view.allow_only({"gated_read", "gated_write", "metadata_read", "metadata_write", "gated_metadata_read",
                   "gated_metadata_write", "decompress", "compress", "gated_compute"});
  for (const auto& [name, pj] : actions) {
    if (const auto found = view.find(name)) *pj = found->number({.least = 0, .most = max_action_pj});
  }
}

void read_sparsity_level(const JsonView& view, int index, const NamedParts& parts, SparsityDescription& sparsity) {
  view.allow_only({"metadata_word_bits", "metadata_access_bits", "formats", "reads", "energy_pj"});
  SparseLevel& level = sparsity.levels[index];
  if (const auto bits = view.find("metadata_word_bits")) {
    level.metadata_word_bits = level.metadata_access_bits = metadata_bits_in(*bits);
  }
  if (const auto bits = view.find("metadata_access_bits")) level.metadata_access_bits = metadata_bits_in(*bits);
  if (const auto energy = view.find("energy_pj")) read_sparsity_energy(*energy, level.energy);
  const bool computes = index + 1 == std::ssize(sparsity.levels);
  if (const auto formats = view.find("formats")) {
    if (computes) formats->fail("formats at storage levels only");
    for (const auto& [name, ranks] : formats->members()) {
      for (const int tensor : sparse_tensors_named(ranks, name, parts)) {
        level.formats[tensor].clear();
        for (const JsonView& rank : ranks.items()) level.formats[tensor].push_back(read_rank_format(rank, parts));
      }
    }
  }
  if (const auto reads = view.find("reads")) {
    if (computes) reads->fail("reads at storage levels; `compute` is for the multipliers");
    for (const JsonView& read : reads->items()) {
      read.allow_only({"action", "target", "on"});
      const ZeroAction action = read_zero_action(read.at("action"));
      for (ReadCondition& condition : read_conditions(read.at("target"), read.at("on"), parts)) {
        sparsity.reads.push_back({.action = action, .level = index, .options = {std::move(condition)}});
      }
    }
  }
}

// Timeloop writes `representation-format` in older versions and `representation_format` in newer ones.
std::optional<JsonView> find_either_spelling(const JsonView& view, std::string key) {
  if (const auto found = view.find(key)) return found;
  std::ranges::replace(key, '-', '_');
  return view.find(key);
}

JsonView either_spelling_at(const JsonView& view, const std::string& key) {
  const auto found = find_either_spelling(view, key);
  return found ? *found : view.at(key);
}

RankFormat read_timeloop_rank(const JsonView& view, const Problem& problem) {
  RankFormat rank{.kind = format_in(view.at("format"))};
  for (const char* key : {"payload-word-bits", "metadata-word-bits"}) {
    if (const auto bits = find_either_spelling(view, key)) rank.word_bits = metadata_bits_in(*bits);
  }
  // A list of lists, one for each way to flatten; the one there is in practice.
  auto flattened = find_either_spelling(view, "flattened-rankIDs");
  if (!flattened) flattened = find_either_spelling(view, "flattened-rank-ids");
  if (!flattened) return rank;
  for (const JsonView& list : flattened->items()) {
    for (const JsonView& dimension : list.items()) {
      rank.dimensions.push_back(sparse_dimension_in(dimension, {problem}));
    }
  }
  return rank;
}

void read_timeloop_actions(const JsonView& view, int level, const Problem& problem, SparsityDescription& sparsity) {
  for (const JsonView& item : view.items()) {
    ReadOptimization read{.action = read_zero_action(item.at("type")), .level = level};
    for (const JsonView& option : item.at("options").items()) {
      const JsonView on = either_spelling_at(option, "condition-on");
      for (ReadCondition& condition : read_conditions(option.at("target"), on, {problem})) {
        read.options.push_back(std::move(condition));
      }
    }
    if (read.options.empty()) item.at("options").fail("one option or more");
    sparsity.reads.push_back(std::move(read));
  }
}

void read_densities(const JsonView& view, const NamedParts& parts, SparsityDescription& sparsity) {
  for (const auto& [name, density] : view.members()) {
    for (const int tensor : sparse_tensors_named(density, name, parts)) {
      sparsity.densities[tensor] = read_density(density, parts.problem.tensors[tensor], parts.problem);
    }
  }
}

SparsityDescription read_parts(const JsonView& view, const Architecture& architecture, const NamedParts& parts) {
  SparsityDescription sparsity = without_sparsity(architecture, parts.problem);
  if (const auto densities = view.find("densities")) read_densities(*densities, parts, sparsity);
  if (const auto levels = view.find("levels")) {
    for (const auto& [name, level] : levels->members()) {
      read_sparsity_level(level, sparse_level_named(level, name, architecture), parts, sparsity);
    }
  }
  if (const auto compute = view.find("compute")) sparsity.compute = compute_optimization(*compute);
  return sparsity;
}

}  // namespace

std::unique_ptr<DensityModel> read_density(const JsonView& view, const ProblemTensor& tensor, const Problem& problem) {
  constexpr Range<double> share{.least = 0, .most = 1};
  if (view.is_number()) return make_even_density(view.number(share));
  const std::string name = view.at("distribution").string();
  if (name == "uniform" || name == "hypergeometric") {
    view.allow_only({"distribution", "density"});
    return make_uniform_density(view.at("density").number(share), tensor_words(tensor, problem));
  }
  if (name == "even" || name == "fixed-structured" || name == "fixed_structured") {
    view.allow_only({"distribution", "density"});
    return make_even_density(view.at("density").number(share));
  }
  if (name == "structured") return read_structured_density(view, tensor, problem);
  if (name == "banded") return read_banded_density(view, tensor, problem);
  if (name == "measured") return read_measured_density(view, tensor, problem);
  fail_with_nearest(view.at("distribution"), name, "uniform, even, structured, banded or measured",
                    {"uniform", "even", "structured", "banded", "measured"});
}

SparsityDescription read_sparsity(const JsonView& view, const Architecture& architecture, const Problem& problem) {
  view.allow_only({"densities", "levels", "compute"});
  return read_parts(view, architecture, {problem});
}

SparsityDescription read_layer_sparsity(const JsonView& view, const Architecture& architecture,
                                        const std::string& layer, const Problem& problem) {
  const NamedParts parts{.problem = problem, .one_of_many = true};
  SparsityDescription sparsity = read_parts(view, architecture, parts);
  const auto layers = view.find("layers");
  const auto own = layers ? layers->find(layer) : std::nullopt;
  if (own) read_densities(*own, {problem}, sparsity);
  return sparsity;
}

bool has_own_densities(const JsonView& view, const std::string& layer) {
  const auto layers = view.find("layers");
  return layers && layers->find(layer).has_value();
}

void check_network_sparsity(const JsonView& view, std::span<const NamedProblem> layers) {
  view.allow_only({"densities", "levels", "compute", "layers"});
  const std::vector<std::string> roles = {"inputs", "weights", "outputs"};
  std::vector<std::string> names, tensors = roles;
  for (const NamedProblem& layer : layers) {
    names.push_back(layer.name);
    for (std::string& tensor : tensor_names(*layer.problem)) tensors.push_back(std::move(tensor));
  }
  if (const auto own = view.find("layers")) {
    for (const auto& [name, densities] : own->members()) {
      if (std::ranges::find(names, name) != names.end()) continue;
      fail_with_nearest(densities, name, "a layer of the network", names);
    }
  }
  const auto check_tensor = [&](const JsonView& at, const std::string& name) {
    const bool is_role = std::ranges::any_of(roles, [&](const auto& role) { return equal_ignoring_case(name, role); });
    if (is_role || std::ranges::find(tensors, name) != tensors.end()) return;
    fail_with_nearest(at, name, "a tensor of a layer, or inputs, weights or outputs", tensors);
  };
  const auto check_tensors = [&](const JsonView& listed) {
    for (const auto& [name, value] : listed.members()) check_tensor(value, name);
  };
  const auto check_reads = [&](const JsonView& reads) {
    for (const JsonView& read : reads.items()) {
      check_tensor(read.at("target"), read.at("target").string());
      for (const JsonView& decides : read.at("on").items()) check_tensor(decides, decides.string());
    }
  };
  if (const auto densities = view.find("densities")) check_tensors(*densities);
  if (const auto levels = view.find("levels")) {
    for (const auto& [name, level] : levels->members()) {
      if (const auto formats = level.find("formats")) check_tensors(*formats);
      if (const auto reads = level.find("reads")) check_reads(*reads);
    }
  }
}

void read_timeloop_sparsity(const JsonView& view, const Architecture& architecture, const Problem& problem,
                            SparsityDescription& sparsity) {
  for (const JsonView& target : view.at("targets").items()) {
    const JsonView name = target.at("name");
    const int level = sparse_level_named(name, name.string(), architecture);
    if (const auto representation = find_either_spelling(target, "representation-format")) {
      for (const JsonView& tensor : either_spelling_at(*representation, "data-spaces").items()) {
        auto& own = sparsity.levels[level].formats[sparse_tensors_in(tensor.at("name"), {problem}).front()];
        for (const JsonView& rank : tensor.at("ranks").items()) own.push_back(read_timeloop_rank(rank, problem));
      }
    }
    if (const auto actions = find_either_spelling(target, "action-optimization")) {
      if (level + 1 == std::ssize(sparsity.levels)) actions->fail("reads at storage levels only");
      read_timeloop_actions(*actions, level, problem, sparsity);
    }
    if (const auto compute = find_either_spelling(target, "compute-optimization")) {
      for (const JsonView& item : compute->items()) sparsity.compute = compute_optimization(item.at("type"));
    }
  }
}

}  // namespace foretoken
