#include "training/runs/training_case.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "library/library.h"
#include "training/layer_split.h"

namespace foretoken {
namespace {

// Tokens of the examples that fill a packed sequence: with it, the FLOPs that sources print for such runs are those of
// their tokens (docs/training_configs.md).
constexpr int64_t packed_examples = 256;

constexpr JsonLimits run_cluster_limits{.max_bytes = size_t{1} << 20};

std::vector<RunCluster> run_clusters_in(const JsonView& root) {
  root.allow_only({"about", "clusters"});
  std::vector<RunCluster> clusters;
  for (const JsonView& item : root.at("clusters").items()) {
    item.allow_only({"gpu", "cluster", "sources"});
    RunCluster entry{.gpu = item.at("gpu").string(), .cluster = item.at("cluster").string()};
    if (const auto sources = item.find("sources")) {
      for (const JsonView& source : sources->items()) entry.sources.push_back(source.string());
    }
    clusters.push_back(std::move(entry));
  }
  return clusters;
}

// Number formats as tables of runs name them.
std::string_view recipe_of(std::string_view dtype) {
  if (dtype.ends_with('?')) dtype.remove_suffix(1);  // the source leaves open whether it ran another format
  if (dtype.starts_with("bf16")) return "bf16";
  if (dtype == "fp8" || dtype == "fp8-amp") return "fp8-delayed";
  return dtype;
}

// Megatron's scripts interleave as deeply as the layers allow where nothing is said.
RowAssumptions assumptions_for(const TrainingRow& row) {
  return {.virtual_stages = row.pp > 1 ? std::max<int64_t>(1, row.layers / row.pp) : 1};
}

// Megatron-LM drops 10% of activations and of attention unless it is told otherwise, which the scripts of these runs do
// not do. NeMo's recipes of GPT-3 do so too, those of other models nothing (github.com/NVIDIA/NeMo-Framework-Launcher,
// tag 24.07, launcher_scripts/conf/training).
Dropout dropout_of(const TrainingRow& row) {
  constexpr std::string_view dropping[] = {"megatron-sc21-table1", "megatron-sc21-table2", "actrecomp-table5",
                                           "actrecomp-abstract",   "mtnlg-530b",           "vtrain-single-node",
                                           "vtrain-multi-node"};
  const bool by_default = std::find(std::begin(dropping), std::end(dropping), row.source) != std::end(dropping);
  const bool drops = by_default || (row.source == "nemo-24.07" && starts_with_ignoring_case(row.model, "GPT3"));
  return {.hidden = drops, .attention = drops};
}

LoraAdapter adapter_of(const TrainingRow& row) {
  const bool all = row.lora_target == "all" || (row.lora_target.empty() && row.lora_rank > 0);
  return {.rank = row.lora_rank > 0 ? row.lora_rank : 16,
          .on_attention = row.lora_target != "mlp",
          .on_mlp = all || row.lora_target == "mlp"};
}

// Megatron-Bridge's recipes of Kimi-K2 train with Muon unless they are told otherwise (NVIDIA-NeMo/Megatron-Bridge,
// tags v0.3.0 to v0.6.0, --optimizer_type of scripts/performance).
std::string optimizer_name(const TrainingRow& row) {
  if (!row.optimizer.empty()) return row.optimizer;
  const bool muon = row.source == "megatron-bridge" && starts_with_ignoring_case(row.model, "kimi");
  return muon ? "muon" : "adam";
}

OptimizerState optimizer_of(const TrainingRow& row) {
  const std::optional<OptimizerState> named = optimizer_state_from_name(optimizer_name(row));
  if (named) return *named;
  const std::vector<std::string> names = optimizer_state_names();
  throw InputError({.path = "optimizer",
                    .value = printable(row.optimizer),
                    .expected = fmt::format("one of {}", fmt::join(names, ", "))});
}

// "H100" of "H100-80GB".
std::string_view chip_of(std::string_view gpu) {
  return gpu.substr(0, gpu.find('-'));
}

bool fits_runs(const StackRuns& runs, const TrainingRow& row) {
  const auto among = [](const std::vector<std::string>& names, std::string_view name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  return runs.source == row.source && (runs.task.empty() || runs.task == row.task) && among(runs.models, row.model) &&
         among(runs.gpus, chip_of(row.gpu)) && among(runs.dtypes, row.dtype);
}

// The newest release that the runs name and that is not newer than the row's ("26.04" of "26.04.02"), else the oldest;
// empty where they stand for all.
std::string nearest_release(const StackRuns& runs, const std::string& release) {
  std::string older, oldest;
  for (const std::string& one : runs.releases) {
    if (one <= release && one > older) older = one;
    if (oldest.empty() || one < oldest) oldest = one;
  }
  return older.empty() ? oldest : older;
}

std::string in_one_line(const std::vector<PlanProblem>& problems) {
  std::string text;
  for (const PlanProblem& problem : problems) {
    text += fmt::format("{}{{{}}} {}: {}", text.empty() ? "" : "; ", problem.field, problem.value, problem.why);
  }
  return text;
}

}  // namespace

std::vector<RunCluster> parse_run_clusters(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, run_cluster_limits);
  return run_clusters_in(JsonView(document, source));
}

std::vector<RunCluster> read_run_clusters(const std::filesystem::path& file) {
  const Json document = read_json_file(file, run_cluster_limits);
  return run_clusters_in(JsonView(document, file.string()));
}

std::string release_of(const TrainingRow& row) {
  constexpr std::string_view word = "release ";
  const size_t at = row.notes.find(word);
  if (at == std::string::npos) return "";
  const size_t begin = at + word.size();
  return row.notes.substr(begin, row.notes.find_first_of("; ,", begin) - begin);
}

// One that names the row's task goes before one that stands for all of them; of those that name releases, the one with
// the newest that the row's is not older than, the oldest where it is older than all, the newest where it says none; of
// those with the same release, one that names models, devices or formats.
std::optional<size_t> TrainingCaseLibrary::stack_of(const TrainingRow& row, const std::string& wanted) const {
  const std::string release = release_of(row);
  std::optional<size_t> found;
  std::pair<bool, bool> best;  // names the task, is not newer
  std::string best_release;
  bool best_is_narrow = false;
  for (size_t i = 0; i < stacks_.size(); ++i) {
    if (stacks_[i].name == wanted) return i;
    if (!wanted.empty()) continue;
    for (const StackRuns& runs : stacks_[i].runs) {
      if (!fits_runs(runs, row)) continue;
      const std::string nearest = nearest_release(runs, release);
      const std::pair<bool, bool> rank{!runs.task.empty(), nearest <= release};
      const bool newest_counts = rank.second || release.empty();
      const bool narrow = !runs.models.empty() || !runs.gpus.empty() || !runs.dtypes.empty();
      const bool nearer = nearest == best_release ? narrow && !best_is_narrow
                          : newest_counts         ? nearest > best_release
                                                  : nearest < best_release;
      if (found && (rank < best || (rank == best && !nearer))) continue;
      found = i;
      best = rank;
      best_release = nearest;
      best_is_narrow = narrow;
    }
  }
  return found;
}

const RunCluster* TrainingCaseLibrary::cluster_of(const TrainingRow& row, std::string& why) const {
  // By the name of the device, else by that of its chip.
  for (const bool whole_name : {true, false}) {
    for (const RunCluster& entry : clusters_) {
      const bool source_fits = entry.sources.empty() ||
                               std::find(entry.sources.begin(), entry.sources.end(), row.source) != entry.sources.end();
      const bool gpu_fits = whole_name ? entry.gpu == row.gpu : chip_of(entry.gpu) == chip_of(row.gpu);
      if (gpu_fits && source_fits) return &entry;
    }
  }
  why = fmt::format("no known cluster of {} devices for runs of {}", printable(row.gpu), printable(row.source));
  return nullptr;
}

std::optional<TrainingCase> TrainingCaseLibrary::find(const TrainingRow& row, const std::string& stack,
                                                      std::string& why) {
  const std::optional<size_t> found = stack_of(row, stack.empty() ? row.stack : stack);
  if (!found) {
    why = fmt::format("no training stack is known for {}: choose one with {{stack}}", printable(row.source));
    return std::nullopt;
  }
  try {
    TrainingCase result{.row = row, .spec = {}, .stack = *found};
    TrainingSpec& spec = result.spec;
    spec.job = {.model = model_of(row), .sequence_length = row.seq, .recipe = training_recipe(recipe_of(row.dtype))};
    if (row.task == "lora") spec.job.lora = adapter_of(row);
    spec.job.clips_gradients = row.clips.value_or(true);
    spec.optimizer = optimizer_of(row);
    spec.job.dropout = dropout_of(row);
    spec.job.packed_length = std::min(row.seq, row.packed);
    if (contains_ignoring_case(row.notes, "packed")) spec.job.packed_length = std::min(row.seq, packed_examples);
    spec.plan = plan_of(row, assumptions_for(row));
    balance_stages(spec.plan, spec.job.model, row.seq);
    spec.devices = row.n_gpus;
    spec.stack = stacks_[*found].name;
    const std::vector<PlanProblem> problems = plan_problems(spec.job.model, row.seq, spec.plan, row.n_gpus);
    if (!problems.empty()) {
      why = in_one_line(problems);
      return std::nullopt;
    }
    spec.cluster = row.cluster;
    if (spec.cluster.empty()) {
      const RunCluster* const entry = cluster_of(row, why);
      if (entry == nullptr) return std::nullopt;
      spec.cluster = entry->cluster;
    }
    const Cluster cluster = open_cluster(hardware_, spec);
    std::unique_ptr<MachineModels>& machine = machines_[{spec.cluster, cluster.node_count, devices_per_node(cluster)}];
    if (machine == nullptr) machine = make_machine_(cluster);
    result.machine = machine.get();
    check_recipe(spec.job.recipe, machine->device());
    if (!says_recompute(row)) assume_recompute(result);
    return result;
  } catch (const InputError& error) {
    why = error.sentence();
    return std::nullopt;
  }
}

void TrainingCaseLibrary::assume_recompute(TrainingCase& run) const {
  const std::optional<Bytes> capacity = training_capacity(run.machine->device());
  if (!capacity) return;
  const TrainingQuestion asked = question_of(run);
  TrainingPlan& plan = run.spec.plan;
  TrainingFormats formats = asked.formats;
  const ModelParts parts = training_parts(asked.job.model, asked.job.sequence_length, plan, asked.formats);
  const auto does_fit = [&] {
    return fits(plan_memory(parts, plan, formats, asked.overheads).most().total(), *capacity);
  };
  // What the recipes of the stack do anyway, then what costs least.
  const LayerModules cheap = cheap_modules(asked.job.model);
  LayerModules usual;
  for (size_t i = 0; i < layer_module_count; ++i) {
    const auto module = static_cast<LayerModule>(i);
    if (asked.stack.usual_recompute.has(module) && cheap.has(module)) usual.add(module);
  }
  if (!usual.empty()) {
    plan.recompute = Recompute::selective;
    plan.recompute_modules = usual;
  }
  if (does_fit()) return;
  plan.recompute = Recompute::selective;
  plan.recompute_modules = cheap;
  if (does_fit()) return;
  // A host behind a fast link takes activations while the device computes (recipes of GB200 do).
  constexpr double fast_link = 150e9, most_offloaded = 0.85;
  if (host_memory_link(asked.cluster.node, plan.devices()).link.value() >= fast_link && plan.stages() == 1) {
    for (formats.offloaded_activations = 0.1; formats.offloaded_activations < most_offloaded;
         formats.offloaded_activations += 0.1) {
      if (!does_fit()) continue;
      run.spec.offloaded_activations = formats.offloaded_activations;
      return;
    }
    formats.offloaded_activations = 0;
  }
  plan.recompute = Recompute::full;
  int64_t most = 0;
  for (const ChunkLayers& chunk : chunk_layers(plan, static_cast<int64_t>(asked.job.model.layers.size()))) {
    most = std::max(most, chunk.count);
  }
  for (plan.recompute_layers = 1; plan.recompute_layers < most; ++plan.recompute_layers) {
    if (does_fit()) return;
  }
  plan.recompute_layers = 0;
}

TrainingQuestion TrainingCaseLibrary::question_of(const TrainingCase& run) const {
  return training_question(run.spec, open_cluster(hardware_, run.spec), stacks_[run.stack]);
}

std::vector<RunCluster> run_clusters_of(const Library& library) {
  return read_run_clusters(library.directory() / "training" / "clusters.json");
}

}  // namespace foretoken
