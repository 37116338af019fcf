#include "app/cli/flags/training_flags.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/grammar/declarations.h"
#include "base/error.h"
#include "base/text.h"
#include "report/parts/device_notes.h"
#include "report/parts/table.h"
#include "serving/engine/launch_line.h"
#include "training/import/import_config.h"

namespace foretoken {
namespace {

std::vector<std::string> convention_names() {
  std::vector<std::string> names;
  for (const FlopConvention& convention : flop_conventions()) names.emplace_back(convention.name);
  return names;
}

// "torchrun pretrain_gpt.py --num-layers 32 ..." rather than the name of a file.
bool is_launch_line(const std::string& given) {
  return given.find(" --") != std::string::npos;
}

// "vllm serve MODEL ...". No file is looked for: one word alone starts nothing.
bool starts_server(const std::string& given) {
  if (given.starts_with('@') || given.find(' ') == std::string::npos) return false;
  try {
    read_launch_line(given, "");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// As people write token counts: 300B, 15T, 1.4e12.
double parse_tokens(const std::string& text) {
  constexpr std::pair<char, double> units[] = {{'k', 1e3}, {'m', 1e6}, {'b', 1e9}, {'t', 1e12}};
  double unit = 1;
  std::string_view digits = text;
  for (const auto& [letter, factor] : units) {
    if (!digits.empty() && (digits.back() == letter || digits.back() == letter - 'a' + 'A')) {
      unit = factor;
      digits.remove_suffix(1);
      break;
    }
  }
  const std::optional<double> number = parse_number(digits);
  if (!number || !(*number * unit >= 1) || *number * unit > 1e18) {
    throw InputError({.source = "--train-tokens",
                      .value = printable(text),
                      .expected = "a number of tokens from 1 to 1e18, for example 300B, 15T or 1.4e12"});
  }
  return *number * unit;
}

constexpr std::string_view about_model = "no model: ";  // how notes on missing sizes begin

// What of a file was not used, and what it left open.
std::vector<std::string> notes_of(const ImportedTraining& imported, const std::string& file, bool names_model) {
  std::vector<std::string> notes = imported.notes;
  if (names_model) std::erase_if(notes, [](const std::string& note) { return note.starts_with(about_model); });
  if (!imported.not_modeled.empty()) {
    notes.push_back(
        fmt::format("{}: not modeled, but may change time or memory: {}", file, fmt::join(imported.not_modeled, ", ")));
  }
  if (!imported.without_effect.empty()) {
    notes.push_back(fmt::format("{}: no effect on time or memory: {}", file, fmt::join(imported.without_effect, ", ")));
  }
  std::string unknown;
  for (const IgnoredKey& key : imported.ignored) {
    unknown += fmt::format("{}{} (line {}{})", unknown.empty() ? "" : ", ", key.key, key.line,
                           key.nearest.empty() ? "" : fmt::format("; did you mean {}?", key.nearest));
  }
  if (!unknown.empty()) notes.push_back(fmt::format("{}: unknown keys, ignored: {}", file, unknown));
  return notes;
}

// InputError for devices that no whole number of replicas fills. Anything else wrong with a plan says more, but for
// lengths and batches: those are told for a plan that fills the devices. It is left to the estimate.
void check_devices(const TrainingQuestion& question) {
  const ParallelPlan& p = question.plan.parallel;
  const int64_t replica = p.tensor * p.context * p.pipeline, devices = question.devices;
  if (devices % replica == 0) return;
  TrainingPlan plan = question.plan;
  plan.global_batch = plan.micro_batch * p.data * std::max<int64_t>(1, plan.micro_batches());
  const int64_t unit = 2 * p.context * p.tensor;
  const int64_t length = (question.job.sequence_length + unit - 1) / unit * unit;
  if (!is_valid_plan(question.job.model, length, plan, devices)) return;
  throw InputError({.source = "--devices",
                    .value = fmt::format("{}", devices),
                    .expected = fmt::format("a multiple of {} ({} tensor x {} context x {} pipeline ranks), such as {}",
                                            replica, p.tensor, p.context, p.pipeline, devices / replica * replica)});
}

}  // namespace

void TrainingFlags::declare(Options& options) {
  options_ = &options;
  options.heading("Model and training data");
  options.text("--model", model_,
               "Built-in name (`foretoken models` lists them), a config.json, or a directory that contains one");
  options.text("--config,--from", config_,
               "Training configuration to read: Megatron-LM script, torchtitan TOML, YAML of NeMo, Axolotl, torchtune, "
               "Accelerate, Hugging Face Trainer or llm-foundry, or DeepSpeed JSON; also the text of a Megatron-LM "
               "launch line. Flags override it");
  options.integer("--seq-length", sequence_length_, at_least_one, "Sequence length in tokens");
  options.choice("--precision", precision_, training_recipe_names(), "Number format of the linear layers");
  options.integer("--lora-rank", lora_rank_, none_or_more,
                  "Train only LoRA adapters of this rank; 0 = train all weights");
  options.choice("--lora-target", lora_target_, {"all", "attention", "mlp"}, "Linear layers that get an adapter");
  options.choice("--base-weights", base_weights_, base_weight_names(),
                 "Number format of the frozen weights under LoRA adapters, expanded before each use; nf4 is QLoRA");
  options.choice("--routing", routing_, {"balanced", "random"},
                 "How tokens are distributed over experts: forced balance, or random (the busiest rank sets the time)");
  options.number(
      "--moe-expert-capacity-factor", expert_capacity_, {.least = 0, .most = 1000},
      "Maximum tokens per expert as a multiple of its even share; tokens beyond it are dropped. 0 = no limit");
  options.number("--hidden-dropout", hidden_dropout_, {.least = 0, .most = 1},
                 "Dropout probability on the output of each block. Any value above 0 costs the same time");
  options.number("--attention-dropout", attention_dropout_, {.least = 0, .most = 1},
                 "Dropout probability on attention scores. Any value above 0 costs the same time");
  options.integer("--packed-length", packed_length_, none_or_more,
                  "Length in tokens of the documents packed into each sequence, which do not attend to each other; 0 = "
                  "one document");

  options.heading("Machine");
  options.text("--cluster", cluster_,
               "Cluster to train on: a built-in name (`foretoken devices` lists them), a cluster file, or a node such "
               "as hgx_a100");
  options.text("--device", device_,
               "GPU to train on, instead of --cluster: --devices of them, in the node they usually come in");
  options.integer("--nodes", nodes_, {.least = 0, .most = most_nodes},
                  "Number of nodes; 0 = enough for --devices, otherwise all nodes of the cluster");
  options.integer("--devices", devices_, none_or_more, "Number of GPUs to train on; 0 = all GPUs of the nodes");
  options.text("--stack", stack_,
               fmt::format("Training software: a built-in name or a stack file [the one of --config, otherwise {}]",
                           usual_training_stack));
  link_.declare(options);
  declare_host_factor(options, host_factor_);
  plan_.declare(options);
  declare_memory(options);
  declare_run(options);
}

// Goes on with the heading of the plan's own flags.
void TrainingFlags::declare_memory(Options& options) {
  options.choice("--optimizer", optimizer_, optimizer_state_names(),
                 "Optimizer, which decides the state kept for each parameter");
  options.number(
      "--clip-grad", clip_grad_, {.least = 0, .most = 1e9},
      "Norm that gradients are clipped to. Only 0 changes the prediction: gradients are then not clipped, which "
      "saves a pass over them");
  options.flag("--optimizer-cpu-offload", offload_optimizer_, "Keep the optimizer state in host memory");
  options.number("--optimizer-offload-fraction", optimizer_fraction_, {.least = 0, .most = 1},
                 "Share of the optimizer state to keep in host memory");
  options.number("--activation-offload-fraction", activation_fraction_, {.least = 0, .most = 1},
                 "Share of activations to keep in host memory; transfers overlap with compute");
  options.flag("--param-cpu-offload", offload_parameters_,
               "Keep the weights in host memory and load them twice per micro-batch (DeepSpeed's offload_param)");
  options.number("--memory-limit", usable_memory_, {.least = 0.1, .most = 1},
                 "Share of GPU memory that a plan may use; the rest is a margin for fragmentation");
}

void TrainingFlags::declare_run(Options& options) {
  options.heading("A long run");
  options.text("--train-tokens", tokens_,
               "Total tokens to train on, for example 15T: also reports days, failures, checkpoints and cost");
  options.money("--gpu-price,--price", usd_per_hour_, {.least = -1, .most = 1000},
                "Rent in USD per GPU-hour; -1 = a public list price (data/prices/rent.json)");
  options.number("--watts-per-device", watts_, {.least = 0, .most = 100'000},
                 "Power drawn from the grid per GPU, in W; 0 = the GPU's power limit");
  options.number("--device-mtbf-hours", mtbf_hours_, {.least = 0, .most = 1e9},
                 "Mean time between failures of one GPU, in hours; 0 = 50,700, as in the training of Llama 3");
  options.choice("--checkpoint-mode", checkpoint_mode_, checkpoint_mode_names(), "How checkpoints are written");
  options.number("--checkpoint-interval", checkpoint_interval_, {.least = 0, .most = 1e7},
                 "Time between checkpoints in seconds; 0 = the optimum");
  options.number("--storage-bandwidth", storage_gb_per_s_, {.least = 0.001, .most = 1e6},
                 "Bandwidth from each node to storage, in GB/s");
  options.integer("--spare-devices", spares_, none_or_more, "Spare GPUs kept ready to replace failed ones");
  options.heading("Accounting");
  options.choice("--flops", convention_, convention_names(),
                 "How model FLOPs are counted for MFU [lora-2x-causal-half with adapters]");
}

std::optional<LongRun> TrainingFlags::long_run(const Library& library, const Cluster& cluster) const {
  if (tokens_.empty()) {
    options_->refuse_without("--train-tokens", {}, {"A long run"});
    return std::nullopt;
  }
  if (usd_per_hour_ < 0 && usd_per_hour_ != -1) {
    throw InputError({.source = "--gpu-price",
                      .value = fmt::format("{:g}", usd_per_hour_),
                      .expected = "USD from 0 to 1000, or -1 for a public list price"});
  }
  LongRun run;
  run.tokens = parse_tokens(tokens_);
  if (mtbf_hours_ > 0) run.failures.device_mtbf_hours = mtbf_hours_;
  run.recovery.spare_devices = spares_;
  run.checkpoints.mode = checkpoint_mode_from_name(checkpoint_mode_).value();
  if (checkpoint_interval_ > 0) run.checkpoints.interval_seconds = checkpoint_interval_;
  run.checkpoints.storage_bytes_per_second = storage_bytes_per_second(1e9 * storage_gb_per_s_, cluster.node_count);
  const Device& device = cluster.node.device;
  if (usd_per_hour_ >= 0) {
    run.usd_per_device_hour = usd_per_hour_;
  } else if (const MaybeFact<double> rent = library.rent_usd_per_hour(device)) {
    run.usd_per_device_hour = rent->value;
  }
  if (watts_ > 0) {
    run.watts_per_device = watts_;
  } else if (device.power_limit) {
    run.watts_per_device = device.power_limit->value.value();
  }
  return run;
}

std::optional<ImportedTraining> TrainingFlags::imported_config() const {
  if (config_.empty()) return std::nullopt;
  if (starts_server(config_)) {
    throw InputError({.source = "--from",
                      .value = printable(config_),
                      .expected = "a training job: this line starts a server (`foretoken serve --from` reads it)"});
  }
  return is_launch_line(config_) ? parse_training_config(config_, config_name())
                                 : import_training_config(config_name());
}

// As notes and errors call it: the file, with or without the @ that launch lines of engines take, or a launch line.
std::string TrainingFlags::config_name() const {
  if (is_launch_line(config_)) return "the launch line of --config";
  return config_.starts_with('@') ? config_.substr(1) : config_;
}

// Unless somebody says otherwise, sequences are no longer than the model has places for.
void TrainingFlags::settle_length(TrainingJob& job, const ImportedTraining* imported,
                                  std::vector<std::string>& notes) const {
  const int64_t places = job.model.max_positions;
  const bool is_too_long = places > 0 && job.sequence_length > places;
  if (given("--seq-length") || (imported != nullptr && imported->said.sequence_length)) {
    if (!is_too_long) return;
    notes.push_back(
        fmt::format("{} supports sequences of up to {} tokens; the prediction assumes that it is extended to {}",
                    job.model.name, places, job.sequence_length));
    return;
  }
  if (is_too_long) job.sequence_length = places;
  if (imported != nullptr) {
    notes.push_back(fmt::format("{} has no sequence length, so {} tokens are assumed (--seq-length)", config_name(),
                                job.sequence_length));
  } else if (is_too_long) {
    notes.push_back(fmt::format("{} supports sequences of up to {} tokens, so {} tokens are assumed (--seq-length)",
                                job.model.name, places, places));
  }
}

// What a file leaves open and a flag can say.
void TrainingFlags::add_assumptions(const ImportedTraining& imported, bool has_own_lengths,
                                    std::vector<std::string>& notes) const {
  const SaidSettings& said = imported.said;
  if (!said.micro_batch && !given("--micro-batch-size")) {
    notes.push_back(
        fmt::format("{} has no micro-batch size, so 1 sequence is assumed (--micro-batch-size)", config_name()));
  }
  if (imported.leaves_recompute_open && !given("--recompute-granularity")) {
    notes.push_back(
        fmt::format("{} does not say what is recomputed, because the model's code decides that; no recomputation is "
                    "assumed (--recompute-granularity full: all layers)",
                    config_name()));
  }
  if (!said.packed || given("--packed-length") || has_own_lengths) return;
  notes.push_back(*said.packed ? "sequences are packed; each is assumed to be one document. Give the mean length of an "
                                 "example with --packed-length for a lower attention cost"
                               : "sequences are not packed: this is the time of full sequences, and shorter examples "
                                 "take less");
}

Model TrainingFlags::named_model(const Library& library, const std::string& name) const {
  try {
    return library.models().model(name);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    problem.source = fmt::format("model of {}", config_name());
    problem.expected += "; or name the model with --model";
    throw InputError(std::move(problem));
  }
}

TrainingJob TrainingFlags::job(const Library& library, const ImportedTraining* imported) const {
  const bool named = imported != nullptr && imported->said.model_name;
  if (model_.empty() && (imported == nullptr || !imported->model) && !named) {
    std::string expected = "a model, or a --config that names one";
    if (imported != nullptr) {
      expected = fmt::format("a model, because {} does not give all of its sizes", config_name());
      for (const std::string& note : imported->notes) {
        if (!note.starts_with(about_model)) continue;
        expected += ": " + note.substr(about_model.size());
        const bool needs_vocabulary = note.find("vocabulary") != std::string::npos;
        if (needs_vocabulary && imported->format == "megatron-lm") {
          expected += "; add --vocab-size to its arguments, for example --vocab-size 128256";
        }
      }
    }
    throw InputError({.source = "--model", .value = "not given", .expected = std::move(expected)});
  }
  TrainingJob job{.dropout = {.hidden = hidden_dropout_ > 0, .attention = attention_dropout_ > 0},
                  .clips_gradients = clip_grad_ > 0};
  if (!model_.empty()) {
    job.model = library.models().model(model_);
  } else {
    job.model = imported->model ? *imported->model : named_model(library, *imported->said.model_name);
  }
  job.sequence_length = sequence_length_;
  std::string precision = precision_;
  int64_t rank = lora_rank_;
  if (imported != nullptr) {
    const SaidSettings& said = imported->said;
    if (said.sequence_length && !given("--seq-length")) job.sequence_length = *said.sequence_length;
    if (said.precision && !given("--precision")) precision = *said.precision;
    if (said.lora_rank && !given("--lora-rank")) rank = *said.lora_rank;
    if (said.fp8_gathers.value_or(false)) job.gathered_parameter_bytes = 1;
    job.gradient_bytes = said.gradient_bytes.value_or(0);
    if (said.clips_gradients && !given("--clip-grad")) job.clips_gradients = *said.clips_gradients;
    if (!given("--hidden-dropout")) job.dropout.hidden = said.hidden_dropout.value_or(false);
    if (!given("--attention-dropout")) job.dropout.attention = said.attention_dropout.value_or(false);
  }
  job.recipe = training_recipe(precision);
  job.lora = {.rank = rank, .on_attention = lora_target_ != "mlp", .on_mlp = lora_target_ != "attention"};
  if (imported != nullptr && !given("--lora-target")) {
    job.lora.on_attention = imported->said.lora_on_attention.value_or(job.lora.on_attention);
    job.lora.on_mlp = imported->said.lora_on_mlp.value_or(job.lora.on_mlp);
  }
  job.expert_capacity = expert_capacity_;
  job.packed_length = packed_length_;
  job.routing = routing_ == "balanced" ? Routing::balanced : Routing::random;
  if (rank == 0) options_->refuse({"--lora-target", "--base-weights"}, {}, "all weights trained (--lora-rank 0)");
  if (!job.model.has_experts()) {
    options_->refuse({"--routing", "--moe-expert-capacity-factor", "--moe-token-dispatcher"}, {},
                     "a model without experts");
  }
  return job;
}

std::string TrainingFlags::stack(const ImportedTraining* imported) const {
  if (!stack_.empty() || imported == nullptr) return stack_;
  if (imported->format == "llm-foundry") return imported->format;
  return imported->said.stack.value_or("");
}

void TrainingFlags::set_offloads(TrainingSpec& spec, const ImportedTraining* imported) const {
  const SaidSettings said = imported != nullptr ? imported->said : SaidSettings{};
  const bool offloads = given("--optimizer-cpu-offload") ? offload_optimizer_ : said.offloads_optimizer.value_or(false);
  if (!offloads) options_->refuse({"--optimizer-offload-fraction"}, {}, "the optimizer's state on the device");
  const double fraction = given("--optimizer-offload-fraction")
                              ? optimizer_fraction_
                              : said.optimizer_offload_fraction.value_or(optimizer_fraction_);
  spec.offloaded_optimizer = offloads ? fraction : 0;
  const bool offloads_parameters =
      given("--param-cpu-offload") ? offload_parameters_ : said.offloads_parameters.value_or(false);
  spec.offloaded_parameters = offloads_parameters ? 1 : 0;
  const double file_fraction = said.offloads_activations.value_or(false) ? 1 : 0;
  spec.offloaded_activations = given("--activation-offload-fraction") ? activation_fraction_ : file_fraction;
}

TrainingQuestion TrainingFlags::opened(const Library& library, const TrainingSpec& spec, bool is_pool) const {
  try {
    return open_training(library, spec);
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    if (problem.source != "cluster" || (!is_pool && !cluster_.empty())) throw;
    problem.source = is_pool ? "--pool" : "--device";
    problem.expected = "the name of a device, node or cluster, or a path to the .json file of a cluster";
    const HardwareCatalogue hardware = library.hardware();
    for (const auto& names : {hardware.device_names(), hardware.node_names()}) {
      if (problem.suggestion.empty()) problem.suggestion = nearest_name(spec.cluster, names).value_or("");
    }
    throw InputError(std::move(problem));
  }
}

TrainingRequest TrainingFlags::request(const Library& library, Use use, const RequestContext& context) const {
  const std::optional<PoolMachine>& pool = context.pool;
  const std::optional<ImportedTraining> file = imported_config();
  const ImportedTraining* imported = file ? &*file : nullptr;
  TrainingRequest request;
  TrainingQuestion& question = request.question;
  if (imported != nullptr) {
    request.notes = notes_of(*imported, config_name(), !model_.empty());
    add_assumptions(*imported, context.has_own_lengths, request.notes);
    for (const auto& [field, key] : imported->keys) {
      if (!given(flag_name(field).c_str())) request.file_names[field] = fmt::format("{} of {}", key, config_name());
    }
  }
  if (!pool && cluster_.empty() == device_.empty()) {
    throw InputError({.source = "--cluster",
                      .value = cluster_.empty() ? "not given" : fmt::format("{} beside --device", printable(cluster_)),
                      .expected = "a cluster, or --device with --devices"});
  }
  TrainingSpec spec{.job = job(library, imported),
                    .cluster = pool               ? pool->name
                               : cluster_.empty() ? device_
                                                  : cluster_,
                    .nodes = nodes_,
                    .devices = pool ? pool->of_job : devices_,
                    .link = link_.spec(),
                    .host_factor = host_factor_};
  if (spec.devices == 0 && nodes_ == 0 && imported != nullptr) spec.devices = imported->devices().value_or(0);
  if (!context.has_own_lengths) settle_length(spec.job, imported, request.notes);
  spec.stack = stack(imported);
  if (spec.stack.empty() && !context.stack.empty()) {
    spec.stack = context.stack;
    request.notes.push_back(fmt::format(
        "predicted with the software stack {}, which runs such files; choose another with --stack", spec.stack));
  }
  std::string optimizer = optimizer_;
  const std::string& of_framework = spec.job.lora.rank > 0 ? context.adapter_optimizer : context.optimizer;
  if (given("--optimizer")) {
    // as asked for
  } else if (imported != nullptr && imported->said.optimizer) {
    optimizer = *imported->said.optimizer;
  } else if (!of_framework.empty() && spec.job.recipe.name == "bf16") {
    optimizer = of_framework;
    request.notes.push_back(fmt::format("predicted with --optimizer {}, as the file asks for", optimizer));
  }
  // Each of them is one of the choices.
  spec.optimizer = optimizer_state_from_name(optimizer).value();
  set_offloads(spec, imported);
  if (given("--base-weights")) {
    spec.base_weights = base_weights_;
  } else if (imported != nullptr && spec.job.lora.rank > 0) {
    spec.base_weights = imported->said.base_weights.value_or("");
  }
  if (imported != nullptr && imported->said.logit_bytes) {
    spec.logit_bytes = imported->said.logit_bytes;
  } else if (spec.stack == context.stack) {
    spec.logit_bytes = context.logit_bytes;  // another stack's loss is its own
  }
  spec.usable_memory = usable_memory_;
  if (given("--flops")) spec.flops = convention_;
  question = opened(library, spec, pool.has_value());
  TrainingSpec own = spec;
  if (pool) own.devices = pool->devices;
  if (std::string note = assumed_cluster_note(library.hardware(), own, question.cluster); !note.empty()) {
    const std::string field = "{cluster}";
    if (pool) note.replace(note.find(field), field.size(), "--pool the name of a cluster");
    request.notes.push_back(std::move(note));
  }
  if (use == Use::one_plan) {
    const TrainingStack& stack = question.stack;
    question.plan =
        plan_.plan(imported, question.job.model, question.job.sequence_length, question.devices, stack.usual_sharding);
    if (stack.usual_sharding != Sharding::none && !plan_.says_sharding(imported) && question.plan.sharded_over() > 1) {
      request.notes.push_back(fmt::format("{} shards {} over all data-parallel GPUs; change this with --sharding",
                                          stack.name, sharding_name(stack.usual_sharding)));
    }
    const std::string& schedule = question.plan.schedule;
    if (question.plan.parallel.pipeline > 1 && std::ranges::find(stack.schedules, schedule) == stack.schedules.end()) {
      request.notes.push_back(
          fmt::format("{} does not run the schedule {}, only {}; the prediction assumes that it does", stack.name,
                      schedule, fmt::join(stack.schedules, " and ")));
    }
    check_devices(question);
  } else {
    TrainingPlanFlags::OpenPlan open = plan_.open_plan(imported, question.devices);
    question.plan = std::move(open.start);
    request.choices = std::move(open.choices);
  }
  question.run = long_run(library, question.cluster);
  if (question.run && !question.run->usd_per_device_hour) {
    request.notes.push_back(
        fmt::format("no list price of {} is known, so the cost of the run is left out; give a price with --gpu-price",
                    question.cluster.node.device.title));
  }
  return request;
}

InputError named_as_in_file(const InputError& error, const TrainingRequest& request) {
  const auto name = [&](std::string_view field) {
    const auto found = request.file_names.find(field);
    return found == request.file_names.end() ? flag_name(field) : found->second;
  };
  InputProblem problem = error.problem();
  for (std::string* text : {&problem.source, &problem.path, &problem.value, &problem.expected, &problem.suggestion}) {
    *text = with_field_names(*text, name);
  }
  if (!problem.field.empty()) problem.source = name(std::exchange(problem.field, {}));
  return InputError(std::move(problem));
}

void add_notes(Answer& answer, const std::vector<std::string>& notes, const KernelPredictor& kernels) {
  const KernelPredictor* const one[] = {&kernels};
  add_notes(answer, notes, one);
}

void add_notes(Answer& answer, const std::vector<std::string>& notes, std::span<const KernelPredictor* const> kernels) {
  DeviceNotes devices;
  for (const KernelPredictor* one : kernels) devices.add_kernels(*one);
  Json list = Json::array();
  for (const std::string& note : notes) {
    answer.text += wrap_lines("note: " + note + "\n", page_width(), 2);
    list.push(note);
  }
  for (const std::string& note : devices.sentences) list.push(note);
  answer.text += device_notes_text(devices);
  answer.json.set("notes", std::move(list));
  set_device_notes(answer.json, devices);
}

}  // namespace foretoken
