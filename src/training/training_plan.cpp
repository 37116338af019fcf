#include "training/training_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <variant>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr std::string_view recompute_mode_names[] = {"none", "selective", "full", "op"};
constexpr std::string_view sharding_kind_names[] = {"none", "optimizer", "gradients", "parameters"};
constexpr std::string_view token_dispatcher_kind_names[] = {"usual", "alltoall", "deepep", "hybridep"};
constexpr std::string_view context_exchange_kind_names[] = {"ring", "all_gather", "all_to_all"};

template <class Kind>
std::optional<Kind> kind_from_name(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Kind>(found - names.begin());
}

std::vector<std::string> all_names(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

// Shares `amount` over the entries of `counts` that `chunks` names: equal where it divides, else the outer ones get one
// less than the inner ones.
void share_evenly(int64_t amount, std::span<const size_t> chunks, std::vector<int64_t>& counts) {
  if (chunks.empty()) return;
  const auto parts = static_cast<int64_t>(chunks.size());
  const int64_t least = amount / parts, larger = amount % parts;
  const int64_t first_larger = (parts - larger) / 2;
  for (int64_t i = 0; i < parts; ++i) {
    const bool is_larger = i >= first_larger && i < first_larger + larger;
    counts[chunks[static_cast<size_t>(i)]] = least + (is_larger ? 1 : 0);
  }
}

// Micro-batches that an interleaved schedule runs through one chunk in a row: as many as there are stages, or the next
// number that leaves no group smaller than that (--microbatch-group-size-per-virtual-pipeline-stage).
int64_t micro_batch_group(int64_t stages, int64_t micro_batches) {
  for (int64_t group = stages; group < micro_batches; ++group) {
    if (micro_batches % group == 0 || micro_batches % group >= stages) return group;
  }
  return std::max(stages, micro_batches);
}

// Layers of every chunk; 0 or less where a plan leaves it none.
std::vector<int64_t> chunk_sizes(const TrainingPlan& plan, int64_t layers) {
  const PipelineWork work = pipeline_work(plan);
  std::vector<size_t> first_stage, last_stage, others;
  for (int64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
    const int64_t stage = stage_of_chunk(plan.schedule, work, chunk);
    const bool first = plan.first_stage_layers && stage == 0;
    const bool last = plan.last_stage_layers && stage == plan.stages() - 1;
    (first ? first_stage : last ? last_stage : others).push_back(static_cast<size_t>(chunk));
  }
  std::vector<int64_t> sizes(static_cast<size_t>(plan.chunks()), 0);
  const int64_t embedding = plan.embedding_in_split && first_stage.empty() ? 1 : 0;
  const int64_t loss = plan.loss_in_split && last_stage.empty() ? 1 : 0;
  const int64_t first = first_stage.empty() ? 0 : *plan.first_stage_layers;
  const int64_t last = last_stage.empty() ? 0 : *plan.last_stage_layers;
  share_evenly(first, first_stage, sizes);
  share_evenly(last, last_stage, sizes);
  share_evenly(layers - first - last + embedding + loss, others, sizes);
  sizes.front() -= embedding;
  sizes.back() -= loss;
  return sizes;
}

// What is wrong with the layout; empty = nothing.
std::string layout_complaint(const TrainingPlan& plan, int64_t layers, int64_t drafts) {
  const auto chunks = static_cast<int64_t>(plan.layout.size());
  if (chunks != plan.chunks()) {
    return fmt::format("the layout has {} chunks, but {} stages x {} chunks make {}", chunks, plan.stages(),
                       plan.virtual_stages, plan.chunks());
  }
  int64_t held = 0, held_drafts = 0;
  for (const ChunkLayers& chunk : plan.layout) {
    held += chunk.count;
    held_drafts += chunk.drafts;
  }
  if (held != layers) return fmt::format("the layout has {} layers, but the model has {}", held, layers);
  if (held_drafts != drafts) {
    return fmt::format("the layout has {} multi-token prediction layers (m), but the model has {}", held_drafts,
                       drafts);
  }
  return "";
}

// A chunk that holds the embedding or the head may do without, as long as its stage
// has layers in another chunk.
bool leaves_chunks_empty(const TrainingPlan& plan, const std::vector<int64_t>& sizes) {
  const PipelineWork work = pipeline_work(plan);
  std::vector<int64_t> of_stage(static_cast<size_t>(plan.stages()), 0);
  for (size_t chunk = 0; chunk < sizes.size(); ++chunk) {
    const bool end = chunk == 0 || chunk + 1 == sizes.size();
    if (sizes[chunk] < (end ? 0 : 1)) return true;
    const int64_t stage = stage_of_chunk(plan.schedule, work, static_cast<int64_t>(chunk));
    // A schedule may not have so many chunks, which is complained about on its own.
    if (stage < 0 || stage >= plan.stages()) return false;
    of_stage[static_cast<size_t>(stage)] += sizes[chunk];
  }
  return std::any_of(of_stage.begin(), of_stage.end(), [](int64_t count) { return count < 1; });
}

// What is checked: a plan and the sequences it is for.
struct PlannedRun {
  const Model& model;
  int64_t sequence_length = 1;
  TrainingPlan plan;
  int64_t devices = 0;
};

// A number of the plan, in the order problems are listed.
struct NumberOfPlan {
  const char* field;
  int64_t least, most;
  int64_t (*get)(const PlannedRun&);
  void (*set)(PlannedRun&, int64_t);
  // Only multiples of it can be right; to keep the search for a better value short.
  int64_t (*unit)(const PlannedRun&);
};

int64_t any_number(const PlannedRun& /*run*/) {
  return 1;
}
int64_t replicas_batch(const PlannedRun& run) {
  return run.plan.micro_batch * run.plan.parallel.data;
}
// Context ranks own two chunks each; sequence parallelism cuts what one rank owns by the tensor ranks.
int64_t length_unit(const PlannedRun& run) {
  const ParallelPlan& parallel = run.plan.parallel;
  const int64_t chunks = parallel.context > 1 ? 2 * parallel.context : 1;
  return std::lcm(chunks, parallel.context * (parallel.sequence ? parallel.tensor : 1));
}

// Bounds keep products of sizes 64-bit numbers.
constexpr int64_t most_split = 1 << 13, most_replicas = 1 << 20, most_sequences = int64_t{1} << 31;

// Indices of plan_numbers.
enum PlanNumberIndex : uint8_t {
  tensor_number,
  pipeline_number,
  virtual_number,
  first_layers_number,
  last_layers_number,
  context_number,
  expert_number,
  data_number,
  micro_batch_number,
  global_batch_number,
  length_number,
  shard_number,
  recompute_number,
};

constexpr NumberOfPlan plan_numbers[] = {
    {"tensor_model_parallel_size", 1, most_split, [](const PlannedRun& run) { return run.plan.parallel.tensor; },
     [](PlannedRun& run, int64_t value) { run.plan.parallel.tensor = value; }, any_number},
    {"pipeline_model_parallel_size", 1, most_split, [](const PlannedRun& run) { return run.plan.parallel.pipeline; },
     [](PlannedRun& run, int64_t value) { run.plan.parallel.pipeline = value; }, any_number},
    {"num_virtual_stages_per_pipeline_rank", 1, most_split,
     [](const PlannedRun& run) { return run.plan.virtual_stages; },
     [](PlannedRun& run, int64_t value) { run.plan.virtual_stages = value; }, any_number},
    {"decoder_first_pipeline_num_layers", 1, most_split,
     [](const PlannedRun& run) { return run.plan.first_stage_layers.value_or(1); },
     [](PlannedRun& run, int64_t value) { run.plan.first_stage_layers = value; }, any_number},
    {"decoder_last_pipeline_num_layers", 1, most_split,
     [](const PlannedRun& run) { return run.plan.last_stage_layers.value_or(1); },
     [](PlannedRun& run, int64_t value) { run.plan.last_stage_layers = value; }, any_number},
    {"context_parallel_size", 1, most_split, [](const PlannedRun& run) { return run.plan.parallel.context; },
     [](PlannedRun& run, int64_t value) { run.plan.parallel.context = value; }, any_number},
    {"expert_model_parallel_size", 1, most_replicas, [](const PlannedRun& run) { return run.plan.parallel.expert; },
     [](PlannedRun& run, int64_t value) { run.plan.parallel.expert = value; }, any_number},
    {"data_parallel_size", 1, most_replicas, [](const PlannedRun& run) { return run.plan.parallel.data; },
     [](PlannedRun& run, int64_t value) { run.plan.parallel.data = value; }, any_number},
    {"micro_batch_size", 1, most_replicas, [](const PlannedRun& run) { return run.plan.micro_batch; },
     [](PlannedRun& run, int64_t value) { run.plan.micro_batch = value; }, any_number},
    {"global_batch_size", 1, most_sequences, [](const PlannedRun& run) { return run.plan.global_batch; },
     [](PlannedRun& run, int64_t value) { run.plan.global_batch = value; }, replicas_batch},
    {"seq_length", 1, most_sequences, [](const PlannedRun& run) { return run.sequence_length; },
     [](PlannedRun& run, int64_t value) { run.sequence_length = value; }, length_unit},
    {"shard_ranks", 0, most_sequences, [](const PlannedRun& run) { return run.plan.shard_ranks; },
     [](PlannedRun& run, int64_t value) { run.plan.shard_ranks = value; }, any_number},
    {"recompute_num_layers", 0, most_split, [](const PlannedRun& run) { return run.plan.recompute_layers; },
     [](PlannedRun& run, int64_t value) { run.plan.recompute_layers = value; }, any_number},
};

struct Finding {
  PlanNumberIndex number;
  std::string why;
};

std::vector<Finding> numbers_out_of_range(const PlannedRun& run) {
  std::vector<Finding> findings;
  for (size_t i = 0; i < std::size(plan_numbers); ++i) {
    const NumberOfPlan& number = plan_numbers[i];
    const int64_t value = number.get(run);
    if (value >= number.least && value <= number.most) continue;
    findings.push_back(
        {static_cast<PlanNumberIndex>(i), fmt::format("it must be a number from {} to {}", number.least, number.most)});
  }
  return findings;
}

void check_layers(const PlannedRun& run, std::vector<Finding>& findings) {
  const TrainingPlan& plan = run.plan;
  const auto layers = static_cast<int64_t>(run.model.layers.size());
  const PlanNumberIndex named = plan.first_stage_layers ? first_layers_number : last_layers_number;
  const bool names_stage = plan.first_stage_layers || plan.last_stage_layers;
  if (plan.virtual_stages > 1 && plan.stages() == 1) {
    findings.push_back({virtual_number, "virtual stages need at least two pipeline stages"});
  } else if (!plan.layout.empty()) {
    if (std::string why = layout_complaint(plan, layers, static_cast<int64_t>(run.model.draft_layers.size()));
        !why.empty()) {
      findings.push_back({pipeline_number, std::move(why)});
    }
  } else if (names_stage && plan.stages() == 1) {
    findings.push_back({named, "there is only one pipeline stage, and it holds all layers"});
  } else if (plan.chunks() > layers + 2) {
    findings.push_back(
        {plan.stages() > layers ? pipeline_number : virtual_number,
         fmt::format("{} layers cannot fill {} stages x {} chunks", layers, plan.stages(), plan.virtual_stages)});
  } else if (const std::vector<int64_t> sizes = chunk_sizes(plan, layers); leaves_chunks_empty(plan, sizes)) {
    findings.push_back({names_stage                ? named
                        : plan.virtual_stages == 1 ? pipeline_number
                                                   : virtual_number,
                        fmt::format("{} layers leave one of the {} stages x {} chunks empty", layers, plan.stages(),
                                    plan.virtual_stages)});
  } else if (plan.recompute == Recompute::full) {
    const int64_t most = *std::max_element(sizes.begin(), sizes.end());
    if (plan.recompute_layers > most) {
      findings.push_back({recompute_number, fmt::format("the largest chunk has {} layers", most)});
    }
  }
}

void check_devices(const PlannedRun& run, std::vector<Finding>& findings) {
  const ParallelPlan& parallel = run.plan.parallel;
  if (run.devices <= 0 || run.plan.devices() <= run.devices) return;
  // More replicas than there is room for, or one replica too large already: then its largest cut is to blame.
  PlanNumberIndex number = data_number;
  if (parallel.tensor * parallel.pipeline * parallel.context > run.devices) {
    number = tensor_number;
    if (parallel.pipeline > parallel.tensor) number = pipeline_number;
    if (parallel.context > std::max(parallel.tensor, parallel.pipeline)) number = context_number;
  }
  findings.push_back(
      {number,
       fmt::format("{} tensor x {} context x {} pipeline x {} data ranks need {} devices, but there are only {}",
                   parallel.tensor, parallel.context, parallel.pipeline, parallel.data, run.plan.devices(),
                   run.devices)});
}

void check_batch_and_length(const PlannedRun& run, std::vector<Finding>& findings) {
  const TrainingPlan& plan = run.plan;
  const ParallelPlan& parallel = plan.parallel;
  if (plan.global_batch % replicas_batch(run) != 0) {
    findings.push_back(
        {global_batch_number, fmt::format("it is not a multiple of micro-batch {} x {} data-parallel ranks",
                                          plan.micro_batch, parallel.data)});
  }
  if (parallel.context > 1 && run.sequence_length % (2 * parallel.context) != 0) {
    findings.push_back(
        {length_number, fmt::format("it is not a multiple of 2 x {} context-parallel ranks", parallel.context)});
  }
  const int64_t cut = parallel.context * parallel.tensor;
  if (parallel.sequence && parallel.tensor > 1 && run.sequence_length % cut != 0) {
    findings.push_back({length_number, fmt::format("sequence parallelism divides it by {} context x {} tensor ranks",
                                                   parallel.context, parallel.tensor)});
  }
  const int64_t copies = parallel.data * parallel.context;
  if (plan.shard_ranks > 0 && copies % plan.shard_ranks != 0) {
    findings.push_back({shard_number, fmt::format("{} data x context ranks are not divisible by it", copies)});
  }
}

// All-to-all exchange gives each context rank whole heads.
void check_exchanged_heads(const PlannedRun& run, std::vector<Finding>& findings) {
  const ParallelPlan& parallel = run.plan.parallel;
  if (run.plan.context_exchange != ContextExchange::all_to_all || parallel.context == 1) return;
  for (const Layer& layer : run.model.layers) {
    const auto* attention = std::get_if<Attention>(&layer.mixer);
    if (attention == nullptr || attention->heads % (parallel.tensor * parallel.context) == 0) continue;
    findings.push_back(
        {context_number, fmt::format("all-to-all exchange divides {} attention heads by {} tensor x {} context ranks",
                                     attention->heads, parallel.tensor, parallel.context)});
    return;
  }
}

// Every constraint that does not hold, in the order of plan_numbers. Numbers must be in range.
std::vector<Finding> violated_constraints(const PlannedRun& run) {
  std::vector<Finding> findings;
  for (PlanComplaint& complaint : plan_complaints(run.model, run.plan.parallel)) {
    const PlanNumberIndex number = complaint.axis == &ParallelPlan::tensor     ? tensor_number
                                   : complaint.axis == &ParallelPlan::pipeline ? pipeline_number
                                   : complaint.axis == &ParallelPlan::context  ? context_number
                                                                               : expert_number;
    findings.push_back({number, std::move(complaint.why)});
  }
  check_layers(run, findings);
  check_devices(run, findings);
  check_batch_and_length(run, findings);
  check_exchanged_heads(run, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.number < b.number; });
  return findings;
}

// Why the schedule cannot run the plan's pipeline; empty = it can. Constraints that are listed for other numbers are
// not repeated.
std::string schedule_complaint(const TrainingPlan& plan) {
  const bool listed = plan.stages() == 1 && plan.virtual_stages > 1;
  return listed || plan.micro_batches() < 1 ? "" : why_not(plan.schedule, pipeline_work(plan));
}

bool is_known_schedule(const std::string& name) {
  const std::vector<std::string> names = pipeline_schedule_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

PlanProblem schedule_problem(const TrainingPlan& plan, std::string why) {
  PlanProblem problem{.field = "pipeline_schedule", .value = printable(plan.schedule), .why = std::move(why)};
  const std::vector<std::string> names = pipeline_schedule_names();
  const std::optional<std::string> meant = nearest_name(plan.schedule, names);
  if (meant && !is_known_schedule(plan.schedule)) problem.nearest.push_back(*meant);
  for (const std::string& name : names) {
    TrainingPlan other = plan;
    other.schedule = name;
    if (problem.nearest.empty() && schedule_complaint(other).empty()) problem.nearest.push_back(name);
  }
  return problem;
}

// Up to three values near the one given that leave no complaint about this number and bring no new one about another.
std::vector<std::string> nearest_values(const PlannedRun& run, PlanNumberIndex index,
                                        const std::vector<Finding>& before) {
  constexpr int64_t farthest = 2048;
  constexpr size_t enough = 3;
  const NumberOfPlan& number = plan_numbers[index];
  const bool schedule_works = schedule_complaint(run.plan).empty();
  const auto works = [&](int64_t candidate) {
    if (candidate < number.least || candidate > number.most) return false;
    PlannedRun changed = run;
    number.set(changed, candidate);
    if (schedule_works && !schedule_complaint(changed.plan).empty()) return false;
    const std::vector<Finding> after = violated_constraints(changed);
    return std::all_of(after.begin(), after.end(), [&](const Finding& finding) {
      const auto same = [&](const Finding& old) { return old.number == finding.number; };
      return finding.number != index && std::any_of(before.begin(), before.end(), same);
    });
  };
  const int64_t value = number.get(run), unit = number.unit(run);
  int64_t down = value / unit * unit, up = down + unit;
  std::vector<std::string> values;
  for (int64_t i = 0; i < farthest && values.size() < enough; ++i) {
    const bool downwards = value - down <= up - value;
    const int64_t candidate = downwards ? down : up;
    if (works(candidate)) values.push_back(std::to_string(candidate));
    (downwards ? down : up) += downwards ? -unit : unit;
  }
  return values;
}

}  // namespace

LayerModules cheap_modules(const Model& model) {
  LayerModules modules = {LayerModule::layernorm};
  for (const Layer& layer : model.layers) {
    if (std::holds_alternative<Moe>(layer.feed_forward)) modules.add(LayerModule::moe_act);
    if (std::holds_alternative<LatentAttention>(layer.mixer)) modules.add(LayerModule::mla_up_proj);
  }
  return modules;
}

std::string_view recompute_name(Recompute recompute) {
  return recompute_mode_names[static_cast<size_t>(recompute)];
}
std::optional<Recompute> recompute_from_name(std::string_view name) {
  return kind_from_name<Recompute>(recompute_mode_names, name);
}
std::vector<std::string> recompute_names() {
  return all_names(recompute_mode_names);
}

std::string_view sharding_name(Sharding sharding) {
  return sharding_kind_names[static_cast<size_t>(sharding)];
}
std::optional<Sharding> sharding_from_name(std::string_view name) {
  return kind_from_name<Sharding>(sharding_kind_names, name);
}
std::vector<std::string> sharding_names() {
  return all_names(sharding_kind_names);
}

std::string_view token_dispatcher_name(TokenDispatcher dispatcher) {
  return token_dispatcher_kind_names[static_cast<size_t>(dispatcher)];
}
std::optional<TokenDispatcher> token_dispatcher_from_name(std::string_view name) {
  return kind_from_name<TokenDispatcher>(token_dispatcher_kind_names, name);
}
std::vector<std::string> token_dispatcher_names() {
  return all_names(token_dispatcher_kind_names);
}

std::string_view context_exchange_name(ContextExchange exchange) {
  return context_exchange_kind_names[static_cast<size_t>(exchange)];
}
std::optional<ContextExchange> context_exchange_from_name(std::string_view name) {
  return kind_from_name<ContextExchange>(context_exchange_kind_names, name);
}
std::vector<std::string> context_exchange_names() {
  return all_names(context_exchange_kind_names);
}

int64_t TrainingPlan::sharded_over() const {
  return shard_ranks > 0 ? shard_ranks : parallel.data * parallel.context;
}

int64_t TrainingPlan::experts_sharded_over() const {
  const int64_t different_experts = std::max<int64_t>(1, parallel.expert / parallel.tensor);
  return std::max<int64_t>(1, sharded_over() / different_experts);
}

ParallelPlan without_needless_replicas(ParallelPlan plan) {
  const int64_t replicas = plan.data;
  const int64_t for_experts = plan.expert > plan.tensor ? plan.expert / plan.tensor : 1;
  plan.data = 1;
  while (plan.data < replicas && (plan.data * plan.context) % for_experts != 0) ++plan.data;
  if (plan.data * plan.context == 1 && replicas > 1) plan.data = 2;
  plan.pipeline = 1;
  return plan;
}

PipelineWork pipeline_work(const TrainingPlan& plan) {
  const int64_t micro_batches = plan.micro_batches();
  return {.stages = plan.stages(),
          .virtual_stages = plan.virtual_stages,
          .micro_batches = micro_batches,
          .micro_batch_group = micro_batch_group(plan.stages(), micro_batches)};
}

std::vector<ChunkLayers> chunk_layers(const TrainingPlan& plan, int64_t layers) {
  if (!plan.layout.empty()) return plan.layout;
  std::vector<ChunkLayers> chunks;
  int64_t first = 0;
  for (const int64_t count : chunk_sizes(plan, layers)) {
    ensure(count >= 0, "chunks of a checked plan have layers");
    chunks.push_back({.first = first, .count = count});
    first += count;
  }
  ensure(first == layers, "the chunks hold every layer once");
  chunks.front().embedding = true;
  chunks.back().head = true;
  chunks.back().drafts = all_drafts;
  return chunks;
}

std::vector<PlanProblem> plan_problems(const Model& model, int64_t sequence_length, const TrainingPlan& plan,
                                       int64_t devices) {
  PlannedRun run{.model = model, .sequence_length = sequence_length, .plan = plan, .devices = devices};
  std::vector<PlanProblem> problems;
  const auto add = [&](const Finding& finding, std::vector<std::string> nearest) {
    const NumberOfPlan& number = plan_numbers[finding.number];
    problems.push_back({.field = number.field,
                        .value = std::to_string(number.get(run)),
                        .why = finding.why,
                        .nearest = std::move(nearest)});
  };
  for (const Finding& finding : numbers_out_of_range(run)) {
    const NumberOfPlan& number = plan_numbers[finding.number];
    add(finding, {std::to_string(std::clamp(number.get(run), number.least, number.most))});
  }
  if (!problems.empty()) return problems;  // the constraints divide by these numbers
  const bool known = is_known_schedule(plan.schedule);
  if (!known) run.plan.schedule = plan.virtual_stages > 1 ? "interleaved" : "1f1b";  // for the rest of the checks
  const std::vector<Finding> violated = violated_constraints(run);
  for (const Finding& finding : violated) add(finding, nearest_values(run, finding.number, violated));
  if (!known) {
    problems.push_back(schedule_problem(plan, "no schedule has this name"));
  } else if (std::string why = schedule_complaint(plan); !why.empty()) {
    problems.push_back(schedule_problem(plan, std::move(why)));
  }
  return problems;
}

bool is_valid_plan(const Model& model, int64_t sequence_length, const TrainingPlan& plan, int64_t devices) {
  const PlannedRun run{.model = model, .sequence_length = sequence_length, .plan = plan, .devices = devices};
  return numbers_out_of_range(run).empty() && is_known_schedule(plan.schedule) && violated_constraints(run).empty() &&
         schedule_complaint(plan).empty();
}

void check_plan(const Model& model, int64_t sequence_length, const TrainingPlan& plan, int64_t devices) {
  const std::vector<PlanProblem> problems = plan_problems(model, sequence_length, plan, devices);
  if (problems.empty()) return;
  std::string list;
  for (const PlanProblem& problem : problems) {
    list += fmt::format("\n  {{{}}} = {}: {}", problem.field, problem.value, problem.why);
    if (!problem.nearest.empty()) list += fmt::format("; nearest: {}", fmt::join(problem.nearest, ", "));
  }
  throw InputError({.source = "training plan",
                    .value = fmt::format("{} of its constraints {} violated{}", problems.size(),
                                         problems.size() == 1 ? "is" : "are", list)});
}

}  // namespace foretoken
