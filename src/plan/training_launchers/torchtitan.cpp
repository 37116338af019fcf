#include "plan/training_launchers/list.h"

#include <fmt/format.h>

#include <utility>

#include "base/counted.h"
#include "plan/training_launchers/launch_limits.h"
#include "training/import/framework_models.h"

namespace foretoken {
namespace {

std::string titan_schedule(const TrainingPlan& plan) {
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"1f1b", "1F1B"}, {"gpipe", "GPipe"}, {"interleaved", "Interleaved1F1B"}, {"zb-v", "ZBVZeroBubble"}};
  for (const auto& [name, theirs] : names) {
    if (name == plan.schedule) return std::string(theirs);
  }
  return "";
}

constexpr HostMemoryUse titan_host_memory{.weights_with_optimizer = true};

// Its replicas are DDP's, which it combines with nothing else; a single one with tensor or pipeline ranks would train
// in fp32 (torchtitan/distributed/utils.py).
std::string unsharded_model_ranks(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  const bool whole = plan.sharding == Sharding::none || plan.sharded_over() == 1;
  return whole && (p.tensor > 1 || p.pipeline > 1 || p.context > 1 || p.expert > 1)
             ? "torchtitan combines tensor, pipeline, context or expert parallelism only with FSDP over two or more "
               "ranks"
             : "";
}

std::string titan_refusal(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const std::string_view recipe = question.job.recipe.name;
  const bool known_recipe = recipe == "bf16" || recipe == "fp8" || recipe == "fp8-current" || recipe == "mxfp8";
  const bool some_layers = plan.recompute == Recompute::full && plan.recompute_layers > 0;
  return first_reason({without_adapters(question, "torchtitan"),
                       titan_of_model(question.job.model.name) ? "" : "torchtitan has no such model",
                       plan.sharding == Sharding::none || plan.sharding == Sharding::parameters
                           ? ""
                           : "torchtitan shards parameters or nothing",
                       unsharded_model_ranks(plan), without_exchange_of_heads(plan, "torchtitan"),
                       without_other_offloads(question, "torchtitan", titan_host_memory),
                       question.formats.offloaded_parameters > 0 && plan.sharding != Sharding::parameters
                           ? "torchtitan keeps weights in host memory with FSDP only"
                           : "",
                       without_other_optimizers(question, "torchtitan"),
                       plan.recompute == Recompute::selective || some_layers
                           ? "torchtitan recomputes all layers, every other multiply, or nothing"
                           : "",
                       plan.stages() == 1 || !titan_schedule(plan).empty()
                           ? ""
                           : fmt::format("torchtitan has no schedule like {}", plan.schedule),
                       plan.virtual_stages > 2 ? "torchtitan's usual split has at most two chunks on a stage" : "",
                       question.job.clips_gradients ? "" : "torchtitan always clips gradients",
                       known_recipe ? "" : fmt::format("torchtitan does not train in {}", recipe)});
}

std::string titan_file(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const ParallelPlan& p = plan.parallel;
  const TitanName name = titan_of_model(question.job.model.name).value();
  const std::string_view recipe = question.job.recipe.name;
  const bool sharded = plan.sharding == Sharding::parameters;
  const int64_t copies = !sharded ? p.data : plan.shard_ranks > 0 ? shard_copies(plan) : 1;
  std::string text = fmt::format("# NGPU={} CONFIG_FILE=this-file.toml ./run_train.sh, on {}\n",
                                 launched_devices_of_a_node(question), counted(launched_nodes(question), "node"));
  text += fmt::format("[model]\nname = \"{}\"\nflavor = \"{}\"\n", name.name, name.flavor);
  if (recipe != "bf16") {
    text += fmt::format("converters = [\"quantize.linear.{}\"]\n", recipe == "mxfp8" ? "mx" : "float8");
  }
  text += fmt::format("\n[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\nseq_len = {}\n",
                      p.pipeline > 1 ? plan.micro_batch * plan.micro_batches() : plan.micro_batch, plan.global_batch,
                      question.job.sequence_length);
  if (question.formats.offloaded_parameters > 0) text += "enable_cpu_offload = true\n";
  text += fmt::format(
      "\n[parallelism]\ndata_parallel_replicate_degree = {}\ndata_parallel_shard_degree = {}\n"
      "tensor_parallel_degree = {}\npipeline_parallel_degree = {}\ncontext_parallel_degree = {}\n"
      "expert_parallel_degree = {}\n",
      copies, sharded ? -1 : 1, p.tensor, p.pipeline, p.context, p.expert);
  if (p.context > 1) text += fmt::format("context_parallel_rotate_method = \"{}\"\n", rotate_method(plan));
  if (p.pipeline > 1) {
    text += fmt::format("pipeline_parallel_schedule = \"{}\"\npipeline_parallel_microbatch_size = {}\n",
                        titan_schedule(plan), plan.micro_batch);
  }
  const std::string_view mode = plan.recompute == Recompute::none   ? "none"
                                : plan.recompute == Recompute::full ? "full"
                                                                    : "selective";
  text += fmt::format("\n[activation_checkpoint]\nmode = \"{}\"\n", mode);
  if (plan.recompute == Recompute::op) text += "selective_ac_option = \"op\"\n";  // left out: every second layer
  return text + fmt::format("\n[compile]\nenable = {}\n", question.stack.name == "torchtitan");
}

}  // namespace

TrainingLauncher torchtitan_launcher() {
  return {.name = "torchtitan",
          .summary = "TOML of torchtitan",
          .refusal = titan_refusal,
          .write = titan_file,
          .shardings = {Sharding::none, Sharding::parameters},
          .recomputes = {Recompute::none, Recompute::op, Recompute::full},
          .recomputes_some_layers = false,
          .host_memory = titan_host_memory,
          .stack = "torchtitan"};
}

}  // namespace foretoken
