#include "plan/training_launchers/list.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "plan/training_launchers/launch_limits.h"

namespace foretoken {
namespace {

std::string deepspeed_refusal(const TrainingQuestion& question) {
  const ParallelPlan& p = question.plan.parallel;
  return first_reason({without_pipeline(question, "DeepSpeed's file"), without_low_precision(question, "DeepSpeed"),
                       p.tensor > 1 || p.context > 1 || p.expert > 1 ? "the file has data parallelism only" : "",
                       question.plan.shard_ranks > 0 ? "DeepSpeed shards over all replicas" : ""});
}

std::string deepspeed_file(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  Json zero = Json::object({{"stage", static_cast<int64_t>(plan.sharding)}});
  if (question.formats.offloaded_optimizer > 0) zero.set("offload_optimizer", Json::object({{"device", "cpu"}}));
  if (question.formats.offloaded_parameters > 0) zero.set("offload_param", Json::object({{"device", "cpu"}}));
  return Json::object({{"train_batch_size", plan.global_batch},
                       {"train_micro_batch_size_per_gpu", plan.micro_batch},
                       {"gradient_accumulation_steps", plan.micro_batches()},
                       {"zero_optimization", std::move(zero)},
                       {std::string(question.job.recipe.name), Json::object({{"enabled", true}})}})
             .dump(2) +
         "\n";
}

}  // namespace

TrainingLauncher deepspeed_launcher() {
  return {.name = "deepspeed",
          .summary = "JSON of DeepSpeed",
          .refusal = deepspeed_refusal,
          .write = deepspeed_file,
          .recomputes = {Recompute::none, Recompute::full},
          .has_pipelines = false,
          .recomputes_some_layers = false,
          .has_experts = false,
          .has_model_ranks = false,
          .stack = "deepspeed"};
}

}  // namespace foretoken
