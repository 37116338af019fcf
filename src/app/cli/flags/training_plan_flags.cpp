#include "app/cli/flags/training_plan_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "training/import/config_format.h"
#include "training/import/virtual_stages.h"
#include "training/layer_split.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> rank_counts{.least = 1, .most = 8192};  // products of a few of them fit into 64 bits

std::vector<std::string> exchange_names() {
  std::vector<std::string> names = context_exchange_names();
  for (const std::string_view name : megatron_exchange_names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

ContextExchange exchange_from_any_name(const std::string& name) {
  const std::optional<ContextExchange> own = context_exchange_from_name(name);
  return own ? *own : exchange_from_megatron_name(name).value();
}

std::vector<std::string> strategy_names() {
  const auto names = sharding_strategy_names();
  return {names.begin(), names.end()};
}

Sharding sharding_of_strategy(const std::string& name) {
  const auto names = sharding_strategy_names();
  return static_cast<Sharding>(std::find(names.begin(), names.end(), name) - names.begin());
}

[[noreturn]] void fail(const char* flag, std::string value, std::string expected) {
  throw InputError({.source = flag, .value = std::move(value), .expected = std::move(expected)});
}

}  // namespace

void TrainingPlanFlags::declare(Options& options) {
  options_ = &options;
  options.heading("Batch and parallelism");
  options.integer("--micro-batch-size", micro_batch_, at_least_one, "Sequences per micro-batch");
  options.integer(
      "--global-batch-size", global_batch_, none_or_more,
      "Sequences per optimizer step; 0 = one micro-batch per data-parallel replica (plan train needs a number)");
  options.integer(
      "--gradient-accumulation-steps", accumulation_, none_or_more,
      "Micro-batches per replica in one optimizer step, as an alternative to --global-batch-size; 0 = not used");
  options.integer("--tensor-model-parallel-size,--tensor-parallel-size,-tp", tensor_, rank_counts,
                  "-tp: number of GPUs that share each layer");
  options.integer("--pipeline-model-parallel-size,--pipeline-parallel-size,-pp", pipeline_, rank_counts,
                  "-pp: number of pipeline stages the layers are divided into");
  options.integer("--context-parallel-size,-cp", context_, rank_counts, "-cp: number of GPUs that share each sequence");
  options.integer("--expert-model-parallel-size,--expert-parallel-size,-ep", expert_, rank_counts,
                  "-ep: number of GPUs the experts are divided over");
  options.integer("--data-parallel-size,-dp", data_, {.least = 0, .most = rank_counts.most},
                  "-dp: number of replicas, which must be --devices / (tensor x pipeline x context ranks); 0 = that");
  options.integer("--expert-tensor-parallel-size", expert_tensor_, {.least = 0, .most = rank_counts.most},
                  "Number of GPUs that share each expert; 0 = tensor / expert ranks, at least 1");
  options.flag("--sequence-parallel", sequence_,
               "Split the tokens of norms over the tensor-parallel ranks, with gather and scatter around each layer");
  options.flag("--overlap-grad-reduce", overlap_gradients_,
               "Reduce gradients while the backward pass runs; --no-overlap-grad-reduce waits until it has ended "
               "[the stack's default]");
  options.flag("--overlap-param-gather", overlap_parameters_,
               "Gather sharded parameters while the next forward pass runs [the stack's default]");
  options.flag("--tp-comm-overlap", overlap_tensor_,
               "Run tensor-parallel communication beside matrix multiplies [the stack's default]");
  options.flag("--overlap-moe-expert-parallel-comm", overlap_experts_,
               "Overlap expert all-to-all with computation [the stack's default]");
  options.choice(
      "--moe-token-dispatcher", dispatcher_, token_dispatcher_names(),
      "What carries tokens to their experts: alltoall sends every copy of a token; deepep sends a token once "
      "to each GPU that needs it; hybridep does so in NVLink domains of any size; usual = as in the published "
      "runs of the stack");
  options.choice("--cp-comm-type", context_exchange_, exchange_names(),
                 "How context-parallel ranks exchange keys and values");
  options.integer("--num-virtual-stages-per-pipeline-rank", virtual_stages_, rank_counts,
                  "Number of layer chunks on each pipeline rank (interleaved schedule)");
  options.integer("--num-layers-per-virtual-pipeline-stage", layers_per_virtual_stage_, none_or_more,
                  "Layers per virtual pipeline stage, an alternative to the number of stages; 0 = not used");
  options.integer("--microbatch-group-size-per-virtual-pipeline-stage", micro_batch_group_, none_or_more,
                  "Consecutive micro-batches through one chunk; 0 = the smallest number without a partial group, the "
                  "only one supported");
  options.choice("--pipeline-schedule,--schedule", schedule_, pipeline_schedule_names(),
                 "Pipeline schedule [1f1b, or interleaved with virtual stages]");
  options.integer("--decoder-first-pipeline-num-layers", first_layers_, none_or_more,
                  "Layers on the first pipeline rank; 0 = an even share");
  options.integer("--decoder-last-pipeline-num-layers", last_layers_, none_or_more,
                  "Layers on the last pipeline rank; 0 = an even share");
  options.flag("--account-for-embedding-in-pipeline-split", embedding_in_split_,
               "Count the embedding as a layer when dividing layers over pipeline ranks");
  options.flag("--account-for-loss-in-pipeline-split", loss_in_split_,
               "Count the loss as a layer when dividing layers over pipeline ranks");
  options.text("--pipeline-model-parallel-layout", layout_,
               "Contents of each pipeline chunk in Megatron-LM's notation: E embedding, t layer, m multi-token "
               "prediction, L loss, | next chunk; for example 'Et*3|(tt|)*29m|L'");
  options.choice("--sharding", sharding_, sharding_names(),
                 "What data-parallel replicas shard (ZeRO 0 to 3; parameters = FSDP). Stacks of FSDP, such as "
                 "torchtitan, shard parameters unless this flag is given");
  options.flag("--use-distributed-optimizer", distributed_optimizer_, "Same as --sharding optimizer");
  options.flag(
      "--use-megatron-fsdp", megatron_fsdp_,
      "Use Megatron-FSDP; same as --sharding parameters unless --data-parallel-sharding-strategy says otherwise");
  options.choice("--data-parallel-sharding-strategy", sharding_strategy_, strategy_names(),
                 "What Megatron-FSDP shards");
  options.integer("--shard-ranks", shard_ranks_, none_or_more,
                  "Ranks that share one sharded copy, as in hybrid sharding (HSDP); 0 = all data-parallel ranks");

  options.heading("Memory");
  options.choice("--recompute-granularity", recompute_, recompute_names(),
                 "What to recompute in the backward pass: nothing, selected modules, full layers, or op = everything "
                 "except every other matrix multiply (torchtitan's selective mode)");
  options.list("--recompute-modules", recompute_modules_,
               fmt::format("With --recompute-granularity selective: modules of each layer to recompute, "
                           "comma-separated [core_attn]. One of {}",
                           fmt::join(layer_module_names(), ", ")));
  options.choice(
      "--recompute-method", recompute_method_, {"uniform", "block"},
      "With --recompute-granularity full: uniform = all layers of a chunk; block = --recompute-num-layers of them");
  options.integer("--recompute-num-layers", recompute_layers_, none_or_more,
                  "With --recompute-method block: layers to recompute in each chunk; with uniform: 1");
}

Sharding TrainingPlanFlags::said_sharding(Sharding start) const {
  if (given("--data-parallel-sharding-strategy") && !megatron_fsdp_) {
    fail("--data-parallel-sharding-strategy", sharding_strategy_,
         "--use-megatron-fsdp together with it, or --sharding instead");
  }
  if (given("--sharding")) {
    if (megatron_fsdp_) fail("--sharding", sharding_, "either --sharding or --use-megatron-fsdp, not both");
    if (distributed_optimizer_ && sharding_ == "none") {
      fail("--sharding", "no --sharding none together with --use-distributed-optimizer",
           "only one of the two, because they contradict each other");
    }
    return sharding_from_name(sharding_).value();
  }
  if (megatron_fsdp_) return sharding_of_strategy(sharding_strategy_);
  if (given("--use-distributed-optimizer")) return distributed_optimizer_ ? Sharding::optimizer : Sharding::none;
  return start;
}

// `plan` has the granularity, and the layers that a file says.
int64_t TrainingPlanFlags::said_recompute_layers(const TrainingPlan& plan) const {
  const bool method_given = given("--recompute-method"), count_given = given("--recompute-num-layers");
  if (plan.recompute != Recompute::full) {
    if (method_given || count_given) {
      options_->refuse({"--recompute-method", "--recompute-num-layers"}, {},
                       fmt::format("--recompute-granularity {}", recompute_name(plan.recompute)));
    }
    return 0;
  }
  const bool block = method_given ? recompute_method_ == "block" : plan.recompute_layers > 0;
  if (!block) {
    // Megatron-LM's uniform method keeps the input of every so many layers; each layer's own is what is modelled.
    if (count_given && recompute_layers_ != 1) {
      fail("--recompute-num-layers", fmt::format("{}", recompute_layers_),
           "--recompute-method block together with it; the uniform method supports only 1");
    }
    return 0;
  }
  const int64_t layers = count_given ? recompute_layers_ : plan.recompute_layers;
  if (layers < 1) fail("--recompute-method", "block", "--recompute-num-layers of at least 1 together with it");
  return layers;
}

int64_t TrainingPlanFlags::said_virtual_stages(const TrainingPlan& plan, const ImportedTraining* imported,
                                               int64_t layers) const {
  constexpr const char* by_layers = "--num-layers-per-virtual-pipeline-stage";
  constexpr const char* by_count = "--num-virtual-stages-per-pipeline-rank";
  if (layers_per_virtual_stage_ > 0) {
    if (given(by_count)) fail(by_layers, fmt::format("together with {}", by_count), "only one of the two");
    return virtual_stages_of(plan, layers, layers_per_virtual_stage_, {.source = by_layers});
  }
  // A file's count is for its own stages.
  if (imported != nullptr && imported->said.layers_per_virtual_stage && !given(by_count)) {
    return virtual_stages_of(plan, layers, *imported->said.layers_per_virtual_stage,
                             {.source = "--config", .path = "layers of a virtual stage"});
  }
  return plan.virtual_stages;
}

// Modules alone mean selective recomputation.
void TrainingPlanFlags::take_recompute_modules(TrainingPlan& plan) const {
  if (recompute_modules_.empty()) return;
  if (!given("--recompute-granularity")) plan.recompute = Recompute::selective;
  if (plan.recompute != Recompute::selective) {
    fail("--recompute-modules", fmt::format("{}", fmt::join(recompute_modules_, ",")),
         "--recompute-granularity selective together with it");
  }
  plan.recompute_modules = {};
  for (const std::string& name : recompute_modules_) {
    const std::optional<LayerModule> module = layer_module_from_name(name);
    if (!module) {
      const std::vector<std::string> names = layer_module_names();
      throw InputError({.source = "--recompute-modules",
                        .value = printable(name),
                        .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                        .suggestion = nearest_name(name, names).value_or("")});
    }
    plan.recompute_modules.add(*module);
  }
}

// The number of chunks follows from the layout.
void TrainingPlanFlags::take_layout(TrainingPlan& plan) const {
  if (layout_.empty()) return;
  options_->refuse({"--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers",
                    "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split",
                    "--num-layers-per-virtual-pipeline-stage", "--num-virtual-stages-per-pipeline-rank"},
                   {}, "--pipeline-model-parallel-layout, which already gives the stages");
  plan.layout = parse_pipeline_layout(layout_);
  plan.first_stage_layers = plan.last_stage_layers = std::nullopt;
  plan.embedding_in_split = plan.loss_in_split = false;
  const auto chunks = static_cast<int64_t>(plan.layout.size());
  if (chunks % plan.stages() != 0) {
    fail("--pipeline-model-parallel-layout", fmt::format("{} chunks", chunks),
         fmt::format("a multiple of the {} pipeline stages", plan.stages()));
  }
  plan.virtual_stages = chunks / plan.stages();
}

bool TrainingPlanFlags::says_sharding(const ImportedTraining* imported) const {
  return (imported != nullptr && imported->said.sharding) || given("--sharding") ||
         given("--use-distributed-optimizer") || given("--use-megatron-fsdp");
}

TrainingPlan TrainingPlanFlags::said_plan(const ImportedTraining* imported, int64_t devices,
                                          Sharding usual_sharding) const {
  const TrainingPlan usual{.sharding = usual_sharding};
  TrainingPlan plan = imported != nullptr ? plan_with(usual, *imported, devices) : usual;
  ParallelPlan& p = plan.parallel;
  const auto take = [&](const char* flag, auto& target, const auto& value) {
    if (given(flag)) target = value;
  };
  take("--tensor-model-parallel-size", p.tensor, tensor_);
  take("--pipeline-model-parallel-size", p.pipeline, pipeline_);
  take("--context-parallel-size", p.context, context_);
  take("--expert-model-parallel-size", p.expert, expert_);
  take("--sequence-parallel", p.sequence, sequence_);
  take("--micro-batch-size", plan.micro_batch, micro_batch_);
  take("--num-virtual-stages-per-pipeline-rank", plan.virtual_stages, virtual_stages_);
  take("--account-for-embedding-in-pipeline-split", plan.embedding_in_split, embedding_in_split_);
  take("--account-for-loss-in-pipeline-split", plan.loss_in_split, loss_in_split_);
  take("--shard-ranks", plan.shard_ranks, shard_ranks_);
  take("--recompute-granularity", plan.recompute, recompute_from_name(recompute_).value());
  take("--moe-token-dispatcher", plan.dispatcher, token_dispatcher_from_name(dispatcher_).value());
  const auto take_overlap = [&](const char* flag, TrafficOverlap& target, bool on) {
    if (given(flag)) target = on ? TrafficOverlap::on : TrafficOverlap::off;
  };
  take_overlap("--overlap-grad-reduce", plan.overlaps.gradients, overlap_gradients_);
  take_overlap("--overlap-param-gather", plan.overlaps.parameters, overlap_parameters_);
  take_overlap("--tp-comm-overlap", plan.overlaps.tensor, overlap_tensor_);
  take_overlap("--overlap-moe-expert-parallel-comm", plan.overlaps.experts, overlap_experts_);
  take("--cp-comm-type", plan.context_exchange, exchange_from_any_name(context_exchange_));
  take("--pipeline-schedule", plan.schedule, schedule_);
  take_recompute_modules(plan);
  if (first_layers_ > 0) plan.first_stage_layers = first_layers_;
  if (last_layers_ > 0) plan.last_stage_layers = last_layers_;
  plan.sharding = said_sharding(plan.sharding);
  // Replicas are what is left. A plan that does not fit is complained about with everything else.
  p.data = std::max<int64_t>(1, devices / (p.tensor * p.pipeline * p.context));
  if (data_ > 0 && data_ != p.data) {
    fail("--data-parallel-size", fmt::format("{}", data_),
         fmt::format("{}: {} GPUs / ({} tensor x {} pipeline x {} context ranks)", p.data, devices, p.tensor,
                     p.pipeline, p.context));
  }
  const bool says_batch =
      given("--global-batch-size") || given("--micro-batch-size") || given("--gradient-accumulation-steps");
  if (imported != nullptr && !says_batch) check_batch_sizes(*imported, p.data);
  if (global_batch_ > 0) {
    if (accumulation_ > 0)
      fail("--gradient-accumulation-steps", "together with --global-batch-size", "only one of the two");
    plan.global_batch = global_batch_;
  } else if (accumulation_ > 0) {
    plan.global_batch = plan.micro_batch * accumulation_ * p.data;
  } else if (imported == nullptr || !imported->said.global_batch) {
    const int64_t accumulation = imported != nullptr ? imported->said.accumulation.value_or(1) : 1;
    plan.global_batch = plan.micro_batch * accumulation * p.data;
  }
  return plan;
}

void TrainingPlanFlags::refuse_without_effect(const TrainingPlan& plan) const {
  if (plan.sharding == Sharding::none) options_->refuse({"--shard-ranks"}, {}, "--sharding none");
  if (plan.parallel.context == 1) options_->refuse({"--cp-comm-type"}, {}, "unsplit sequences (-cp 1)");
}

// Of flags that say what follows from others; Megatron-LM has a choice there.
void TrainingPlanFlags::check_fixed_sizes(const TrainingPlan& plan) const {
  const ParallelPlan& p = plan.parallel;
  const int64_t expert_tensor = expert_tensor_ranks(p);
  if (expert_tensor_ > 0 && expert_tensor_ != expert_tensor) {
    fail("--expert-tensor-parallel-size", fmt::format("{}", expert_tensor_),
         fmt::format("{} with {} tensor and {} expert ranks: other layouts of experts are not supported", expert_tensor,
                     p.tensor, p.expert));
  }
  if (micro_batch_group_ > 0 && micro_batch_group_ != pipeline_work(plan).micro_batch_group) {
    fail("--microbatch-group-size-per-virtual-pipeline-stage", fmt::format("{}", micro_batch_group_),
         fmt::format("{}: other group sizes are not supported", pipeline_work(plan).micro_batch_group));
  }
}

TrainingPlan TrainingPlanFlags::plan(const ImportedTraining* imported, const Model& model, int64_t sequence_length,
                                     int64_t devices, Sharding usual_sharding) const {
  TrainingPlan plan = said_plan(imported, devices, usual_sharding);
  plan.virtual_stages = said_virtual_stages(plan, imported, static_cast<int64_t>(model.layers.size()));
  take_layout(plan);
  balance_stages(plan, model, sequence_length);
  const bool file_schedule = imported != nullptr && imported->said.schedule;
  if (!given("--pipeline-schedule") && !file_schedule) {
    plan.schedule = plan.virtual_stages > 1 ? "interleaved" : "1f1b";
  }
  if (imported != nullptr && imported->said.recompute_every && !given("--recompute-granularity")) {
    // Every so many layers: so many of each chunk. 0 = all.
    const int64_t every = *imported->said.recompute_every;
    const int64_t of_chunk = (static_cast<int64_t>(model.layers.size()) + plan.chunks() - 1) / plan.chunks();
    plan.recompute_layers = every == 1 ? 0 : (of_chunk + every - 1) / every;
  }
  plan.recompute_layers = said_recompute_layers(plan);
  refuse_without_effect(plan);
  check_fixed_sizes(plan);
  return plan;
}

TrainingPlanFlags::OpenPlan TrainingPlanFlags::open_plan(const ImportedTraining* imported, int64_t devices) const {
  options_->refuse({"--sequence-parallel"}, {}, "a plan search (plans with tensor parallelism always use it)");
  options_->refuse({"--num-layers-per-virtual-pipeline-stage", "--decoder-first-pipeline-num-layers",
                    "--decoder-last-pipeline-num-layers", "--account-for-embedding-in-pipeline-split",
                    "--account-for-loss-in-pipeline-split", "--microbatch-group-size-per-virtual-pipeline-stage",
                    "--expert-tensor-parallel-size"},
                   {},
                   "a plan search (it divides layers and experts itself; -pp, -ep and virtual stages can be fixed)");
  options_->refuse({"--pipeline-model-parallel-layout"}, {}, "a plan search (it finds layouts itself)");
  options_->refuse({"--data-parallel-size"}, {}, "a plan search (replicas are what other ranks leave)");
  options_->refuse({"--recompute-method", "--recompute-num-layers"}, {},
                   "a plan search (it tries different numbers of layers; --recompute-granularity can be fixed)");
  options_->refuse({"--recompute-modules"}, {},
                   "a plan search (it chooses the modules itself; --recompute-granularity can be fixed)");
  options_->refuse({"--shard-ranks"}, {}, "a plan search (it shards over all replicas, and also inside each node)");
  options_->refuse({"--gradient-accumulation-steps"}, {}, "a plan search (plans are compared at the same batch size)");
  if (!given("--global-batch-size") && imported == nullptr) {
    fail("--global-batch-size", "not given",
         "the number of sequences per optimizer step: plans are compared at the same batch size");
  }
  OpenPlan open{.start = said_plan(imported, devices, Sharding::none)};
  const TrainingPlan& plan = open.start;
  PlanChoices& choices = open.choices;
  const auto fix = [&](const char* flag, std::optional<int64_t>& size, int64_t value) {
    if (given(flag)) size = value;
  };
  fix("--tensor-model-parallel-size", choices.tensor, plan.parallel.tensor);
  fix("--pipeline-model-parallel-size", choices.pipeline, plan.parallel.pipeline);
  fix("--context-parallel-size", choices.context, plan.parallel.context);
  fix("--expert-model-parallel-size", choices.expert, plan.parallel.expert);
  fix("--num-virtual-stages-per-pipeline-rank", choices.virtual_stages, plan.virtual_stages);
  fix("--micro-batch-size", choices.micro_batch, plan.micro_batch);
  if (given("--pipeline-schedule")) choices.schedules = {plan.schedule};
  if (given("--sharding") || given("--use-distributed-optimizer") || given("--use-megatron-fsdp")) {
    choices.shardings = {plan.sharding};
  }
  if (given("--recompute-granularity")) choices.recomputes = {plan.recompute};
  return open;
}

}  // namespace foretoken
