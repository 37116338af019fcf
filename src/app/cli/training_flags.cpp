#include "app/cli/training_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "training/import/import_config.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> at_least_one{.least = 1, .most = 1'000'000'000};
constexpr Range<int64_t> none_or_more{.least = 0, .most = 1'000'000'000};

std::vector<std::string> convention_names() {
  std::vector<std::string> names;
  for (const FlopConvention& convention : flop_conventions()) names.emplace_back(convention.name);
  return names;
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
                      .expected = "a number of tokens from 1 to 1e18: 300B, 15T, 1.4e12"});
  }
  return *number * unit;
}

}  // namespace

void TrainingFlags::declare(Options& options) {
  options_ = &options;
  options.heading("What is trained");
  options.text("--model", model_, "Built-in name (foretoken models), config.json, or a directory with one");
  options.text("--config", config_,
               "A training configuration (Megatron-LM script, NeMo or llm-foundry YAML, DeepSpeed JSON); flags given "
               "beside it win");
  options.integer("--seq-length", sequence_length_, at_least_one, "Tokens of a sequence");
  options.integer("--micro-batch-size", micro_batch_, at_least_one, "Sequences of one micro-batch");
  options.integer("--global-batch-size", global_batch_, none_or_more,
                  "Sequences of one optimizer step; 0 = one micro-batch for each replica");
  options.choice("--precision", precision_, training_recipe_names(), "Number formats of linear layers");
  options.integer("--lora-rank", lora_rank_, none_or_more, "Train LoRA adapters of this rank only; 0 = all weights");
  options.choice("--lora-target", lora_target_, {"all", "attention", "mlp"}, "Linear layers that have an adapter");
  options.choice("--routing", routing_, {"balanced", "random"},
                 "How tokens choose experts: forced balance, or by chance (the fullest rank counts)");

  options.number("--moe-expert-capacity-factor", expert_capacity_, {.least = 0, .most = 1000},
                 "An expert takes at most so many times its even share of tokens, the rest are dropped; 0 = all");
  options.integer("--packed-length", packed_length_, none_or_more,
                  "Tokens of each of the documents that fill a sequence and do not see each other; 0 = one");

  options.heading("Machine");
  options.text("--cluster", cluster_, "A cluster of the library (foretoken devices) or a cluster file", true);
  options.integer("--nodes", nodes_, {.least = 0, .most = most_nodes},
                  "That many nodes; 0 = as many as --devices, or its own");
  options.integer("--devices", devices_, none_or_more, "Devices that train; 0 = all of the nodes");
  options.text("--stack", stack_, "Training software: a name or a file; default: megatron-bridge-26.08");
  declare_plan(options);
  declare_run(options);
}

void TrainingFlags::declare_plan(Options& options) {
  options.heading("Parallelism");
  options.integer("--tensor-model-parallel-size,--tensor-parallel-size", tensor_, at_least_one,
                  "-tp: devices that share each layer");
  options.integer("--pipeline-model-parallel-size,--pipeline-parallel-size", pipeline_, at_least_one,
                  "-pp: stages the layers are cut into");
  options.integer("--context-parallel-size", context_, at_least_one, "-cp: devices that share each sequence");
  options.integer("--expert-model-parallel-size,--expert-parallel-size", expert_, at_least_one,
                  "-ep: devices the experts are spread over");
  options.flag("--sequence-parallel", sequence_, "Norms on a share of the tokens; gather and scatter around layers");
  options.choice("--cp-comm-type", context_exchange_, context_exchange_names(),
                 "How context ranks get keys and values");
  options.integer("--num-virtual-stages-per-pipeline-rank", virtual_stages_, at_least_one,
                  "Chunks of layers on each pipeline rank (interleaving)");
  options.integer("--num-layers-per-virtual-pipeline-stage", layers_per_virtual_stage_, none_or_more,
                  "The same by the layers of a chunk; 0 = as above");
  options.choice("--pipeline-schedule,--schedule", schedule_, pipeline_schedule_names(),
                 "Order of micro-batches; default 1f1b, or interleaved with virtual stages");
  options.integer("--decoder-first-pipeline-num-layers", first_layers_, none_or_more,
                  "Layers of the first pipeline rank; 0 = its even share");
  options.integer("--decoder-last-pipeline-num-layers", last_layers_, none_or_more, "Layers of the last pipeline rank");
  options.flag("--account-for-embedding-in-pipeline-split", embedding_in_split_,
               "The embedding counts as a layer when layers are shared out");
  options.flag("--account-for-loss-in-pipeline-split", loss_in_split_, "So does the loss");
  options.choice("--sharding", sharding_, sharding_names(),
                 "What data-parallel replicas share out (ZeRO 0 to 3; parameters: FSDP)");
  options.flag("--use-distributed-optimizer", distributed_optimizer_, "The same as --sharding optimizer");
  options.integer("--shard-ranks", shard_ranks_, none_or_more,
                  "Ranks that share one copy, as in hybrid sharding (HSDP); 0 = all");

  options.heading("Memory");
  options.choice("--recompute-granularity", recompute_, recompute_names(),
                 "What is computed again in the backward pass: nothing, attention cores, whole layers");
  options.choice("--recompute-method", recompute_method_, {"uniform", "block"},
                 "full: all layers of a chunk, or as many as the next flag says");
  options.integer("--recompute-num-layers", recompute_layers_, none_or_more, "block: so many layers of each chunk");
  options.choice("--optimizer", optimizer_, optimizer_state_names(), "What the optimizer keeps for each parameter");
  options.flag("--optimizer-cpu-offload", offload_optimizer_, "Keep the optimizer's state in host memory");
  options.number("--optimizer-offload-fraction", optimizer_fraction_, {.least = 0, .most = 1}, "That share of it");
  options.number("--activation-offload-fraction", activation_fraction_, {.least = 0, .most = 1},
                 "Share of the activations in host memory");
}

void TrainingFlags::declare_run(Options& options) {
  options.heading("A long run");
  options.text("--train-tokens", tokens_, "Tokens until the run is done (15T): days, failures, checkpoints, cost");
  options.number("--gpu-price", usd_per_hour_, {.least = -1, .most = 1000},
                 "USD for each device and hour; -1 = a public list price (data/prices/rent.json)");
  options.number("--watts-per-device", watts_, {.least = 0, .most = 100'000},
                 "Power of each device from the grid; 0 = the board's limit");
  options.number("--device-mtbf-hours", mtbf_hours_, {.least = 0, .most = 1e9},
                 "Hours between failures of one device; 0 = Llama 3's 50,700");
  options.choice("--checkpoint-mode", checkpoint_mode_, checkpoint_mode_names(), "How checkpoints are written");
  options.number("--checkpoint-interval", checkpoint_interval_, {.least = 0, .most = 1e7},
                 "Seconds between checkpoints; 0 = the best");
  options.number("--storage-bandwidth", storage_gb_per_s_, {.least = 0.001, .most = 1e6},
                 "GB/s of each node to storage");
  options.integer("--spare-devices", spares_, none_or_more, "Devices that wait for another to fail");
  options.heading("Accounting");
  options.choice("--flops", convention_, convention_names(), "How model FLOPs are counted for MFU");
}

TrainingPlan TrainingFlags::plan_from_flags(const TrainingPlan& start, int64_t layers, int64_t devices) const {
  TrainingPlan plan = start;
  ParallelPlan& p = plan.parallel;
  const bool from_file = !config_.empty();
  const auto take = [&](const char* flag, auto& target, const auto& value) {
    if (!from_file || given(flag)) target = value;
  };
  take("--tensor-model-parallel-size", p.tensor, tensor_);
  take("--pipeline-model-parallel-size", p.pipeline, pipeline_);
  take("--context-parallel-size", p.context, context_);
  take("--expert-model-parallel-size", p.expert, expert_);
  take("--sequence-parallel", p.sequence, sequence_);
  take("--micro-batch-size", plan.micro_batch, micro_batch_);
  take("--num-virtual-stages-per-pipeline-rank", plan.virtual_stages, virtual_stages_);
  if (layers_per_virtual_stage_ > 0) {
    const int64_t of_stage = layers / p.pipeline;
    if (of_stage % layers_per_virtual_stage_ != 0) {
      throw InputError({.source = "--num-layers-per-virtual-pipeline-stage",
                        .value = fmt::format("{}", layers_per_virtual_stage_),
                        .expected = fmt::format("a divisor of the {} layers of a pipeline rank", of_stage)});
    }
    plan.virtual_stages = of_stage / layers_per_virtual_stage_;
  }
  if (!schedule_.empty()) {
    plan.schedule = schedule_;
  } else if (plan.virtual_stages > 1) {
    plan.schedule = "interleaved";
  }
  if (first_layers_ > 0) plan.first_stage_layers = first_layers_;
  if (last_layers_ > 0) plan.last_stage_layers = last_layers_;
  take("--account-for-embedding-in-pipeline-split", plan.embedding_in_split, embedding_in_split_);
  take("--account-for-loss-in-pipeline-split", plan.loss_in_split, loss_in_split_);
  const Sharding sharding =
      distributed_optimizer_ && sharding_ == "none" ? Sharding::optimizer : sharding_from_name(sharding_).value();
  if (!from_file || given("--sharding") || given("--use-distributed-optimizer")) plan.sharding = sharding;
  take("--shard-ranks", plan.shard_ranks, shard_ranks_);
  take("--recompute-granularity", plan.recompute, recompute_from_name(recompute_).value());
  take("--recompute-num-layers", plan.recompute_layers, recompute_method_ == "block" ? recompute_layers_ : 0);
  take("--cp-comm-type", plan.context_exchange, context_exchange_from_name(context_exchange_).value());
  // Replicas are what is left. A plan that does not fit is complained about with everything else.
  p.data = std::max<int64_t>(1, devices / (p.tensor * p.pipeline * p.context));
  if (global_batch_ > 0) plan.global_batch = global_batch_;
  if (global_batch_ == 0 && (!from_file || plan.global_batch <= 1)) plan.global_batch = plan.micro_batch * p.data;
  return plan;
}

PlanChoices TrainingFlags::choices(const TrainingPlan& plan) const {
  options_->refuse(
      {"--num-layers-per-virtual-pipeline-stage", "--decoder-first-pipeline-num-layers",
       "--decoder-last-pipeline-num-layers", "--account-for-embedding-in-pipeline-split",
       "--account-for-loss-in-pipeline-split", "--sequence-parallel", "--shard-ranks", "--recompute-num-layers"},
      {}, "a search of plans");
  if (!given("--global-batch-size") && config_.empty()) {
    throw InputError({.source = "--global-batch-size",
                      .value = "not given",
                      .expected = "the sequences of one optimizer step: plans are compared at the same batch"});
  }
  PlanChoices choices;
  const auto fix = [&](const char* flag, std::optional<int64_t>& size, int64_t value) {
    if (given(flag)) size = value;
  };
  fix("--tensor-model-parallel-size", choices.tensor, plan.parallel.tensor);
  fix("--pipeline-model-parallel-size", choices.pipeline, plan.parallel.pipeline);
  fix("--context-parallel-size", choices.context, plan.parallel.context);
  fix("--expert-model-parallel-size", choices.expert, plan.parallel.expert);
  fix("--num-virtual-stages-per-pipeline-rank", choices.virtual_stages, plan.virtual_stages);
  fix("--micro-batch-size", choices.micro_batch, plan.micro_batch);
  if (given("--schedule")) choices.schedules = {plan.schedule};
  if (given("--sharding") || given("--use-distributed-optimizer")) choices.shardings = {plan.sharding};
  if (given("--recompute-granularity")) choices.recomputes = {plan.recompute};
  return choices;
}

void TrainingFlags::add_notes(Answer& answer) const {
  Json list = Json::array();
  for (const std::string& note : notes_) {
    answer.text += "note: " + note + "\n";
    list.push(note);
  }
  answer.json.set("notes", std::move(list));
}

std::optional<LongRun> TrainingFlags::long_run(const Library& library, const Cluster& cluster) const {
  if (tokens_.empty()) {
    options_->refuse({}, {"A long run"}, "a single step (no --train-tokens)");
    return std::nullopt;
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

TrainingQuestion TrainingFlags::question(const Library& library) const {
  TrainingQuestion question;
  std::optional<ImportedTraining> imported;
  if (!config_.empty()) imported = import_training_config(config_);
  if (model_.empty() && !(imported && imported->model)) {
    throw InputError({.source = "--model",
                      .value = "not given",
                      .expected = config_.empty() ? "a model, or --config with one"
                                                  : "a model: the configuration does not give all of its sizes"});
  }
  TrainingJob& job = question.job;
  job.model = model_.empty() ? *imported->model : library.models().model(model_);
  job.sequence_length = sequence_length_;
  std::string precision = precision_;
  int64_t rank = lora_rank_;
  if (imported) {
    const SaidSettings& said = imported->said;
    if (said.sequence_length && !given("--seq-length")) job.sequence_length = *said.sequence_length;
    if (said.precision && !given("--precision")) precision = *said.precision;
    if (said.lora_rank && !given("--lora-rank")) rank = *said.lora_rank;
    notes_ = imported->notes;
    for (const IgnoredKey& key : imported->ignored) {
      notes_.push_back(fmt::format("{} line {}: {} is not used{}", config_, key.line, key.key,
                                   key.nearest.empty() ? "" : fmt::format(" (did you mean {}?)", key.nearest)));
    }
  }
  job.recipe = training_recipe(precision);
  job.lora = {.rank = rank, .on_attention = lora_target_ != "mlp", .on_mlp = lora_target_ != "attention"};
  job.expert_capacity = expert_capacity_;
  job.packed_length = packed_length_;
  job.routing = routing_ == "balanced" ? Routing::balanced : Routing::random;

  Cluster cluster = library.hardware().cluster(cluster_);
  int64_t devices = devices_;
  if (devices == 0 && nodes_ == 0 && imported) devices = imported->devices().value_or(0);
  const int64_t per_node = devices_per_node(cluster);
  if (nodes_ > 0) {
    cluster = cluster_with_nodes(std::move(cluster), static_cast<int>(nodes_));
  } else if (devices > 0) {
    cluster = cluster_with_nodes(std::move(cluster), static_cast<int>((devices + per_node - 1) / per_node));
  }
  if (devices == 0) devices = total_devices(cluster);
  if (devices > total_devices(cluster)) {
    throw InputError(
        {.source = "--devices",
         .value = fmt::format("{}", devices),
         .expected = fmt::format("at most the {} of {} nodes", total_devices(cluster), cluster.node_count)});
  }
  question.devices = devices;
  question.plan = imported ? plan_with({}, *imported, devices) : TrainingPlan{};
  question.plan = plan_from_flags(question.plan, static_cast<int64_t>(job.model.layers.size()), devices);
  question.stack = library.training_stacks().stack(stack_.empty() ? "megatron-bridge-26.08" : stack_);
  question.formats = usual_formats(job.recipe, job.lora, question.stack.attention);
  question.formats.gradient_bytes = question.stack.constants[gradient_bytes];
  question.formats.optimizer = optimizer_state_from_name(optimizer_).value();
  job.optimizer_state_bytes = question.formats.optimizer.bytes();
  const bool offloads = offload_optimizer_ || (imported && imported->said.offloads_optimizer.value_or(false));
  question.formats.offloaded_optimizer = offloads ? optimizer_fraction_ : 0;
  question.formats.offloaded_activations = activation_fraction_;
  question.convention = &flop_convention_named(convention_);
  question.run = long_run(library, cluster);
  question.cluster = std::move(cluster);
  return question;
}

}  // namespace foretoken
