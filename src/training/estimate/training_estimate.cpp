#include "training/estimate/training_estimate.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "model/weights.h"
#include "training/memory/host_memory_time.h"
#include "training/scale/iteration_pieces.h"

namespace foretoken {
namespace {

// Weights in 16 bits and the optimizer's state; of adapters, those alone.
double checkpoint_bytes(const TrainingQuestion& question, const TrainingEstimate& estimate) {
  double parameters = count_parameters(question.job.model).total;
  if (question.job.lora.rank > 0) {
    parameters = 0;
    for (const double stage : estimate.iteration.stage_parameters) parameters += stage;
    parameters *= static_cast<double>(question.plan.parallel.tensor);
  }
  return (2 + question.formats.optimizer.bytes()) * parameters;
}

LongRunEstimate long_run(const TrainingQuestion& question, const TrainingEstimate& estimate) {
  LongRun run = *question.run;
  const int64_t devices = question.plan.devices();
  run.checkpoints.bytes = checkpoint_bytes(question, estimate);
  LongRunEstimate result;
  result.reliability = job_reliability(run.failures, run.recovery, run.checkpoints, devices);
  result.goodput = job_goodput(result.reliability, run.checkpoints);
  constexpr double least_goodput = 1e-4;
  if (result.goodput.effective < least_goodput) {
    throw InputError(
        {.field = "device_mtbf_hours",
         .value = fmt::format("{}", run.failures.device_mtbf_hours),
         .expected = fmt::format("a job that makes progress: it would fail every {}, and needs {} to recover",
                                 duration_text(seconds_per_hour * result.reliability.mtbf_hours),
                                 duration_text(result.reliability.conditions.mean_recovery_seconds()))});
  }
  const TrainingBudget budget{
      .tokens = run.tokens,
      .tokens_per_step = static_cast<double>(question.plan.global_batch * question.job.sequence_length),
      .devices = devices,
      .spare_devices = run.recovery.spare_devices,
      .usd_per_device_hour = run.usd_per_device_hour,
      .watts_per_device = run.watts_per_device};
  result.run = training_run(budget, estimate.iteration.seconds, estimate.variation, result.reliability.conditions,
                            result.goodput);
  return result;
}

}  // namespace

Bytes allocated_bytes(const TrainingQuestion& question) {
  const TrainingJob& job = question.job;
  const ModelParts parts = training_parts(job.model, job.sequence_length, question.plan, question.formats);
  return plan_memory(parts, question.plan, question.formats, allocator_overheads()).most().total();
}

TrainingEstimate estimate_training(const TrainingQuestion& question, const MachineModels& machine) {
  const TrainingJob& job = question.job;
  const TrainingPlan& plan = question.plan;
  check_plan(job.model, job.sequence_length, plan, total_devices(question.cluster));
  if (job.packed_length > job.sequence_length) {
    throw InputError({.field = "packed_length",
                      .value = fmt::format("{}", job.packed_length),
                      .expected = fmt::format("at most the sequence length, {} tokens", job.sequence_length)});
  }
  TrainingEstimate result;
  IterationModel model(job, question.stack, machine.machine());
  result.iteration = model.estimate(plan);

  const ModelParts parts = training_parts(job.model, job.sequence_length, plan, question.formats);
  result.memory = plan_memory(parts, plan, question.formats, question.overheads);
  const Device& device = machine.device();
  const HostMemoryLink host = host_memory_link(question.cluster.node, plan.devices());
  const auto add_host_time = [&](IterationEstimate& iteration, const TrainingPlan& of_plan,
                                 const TrainingFormats& formats, const PlanMemory& memory) {
    add_host_memory_time(iteration, host_memory_time(memory, of_plan, formats, iteration.pipeline, host));
  };
  add_host_time(result.iteration, plan, question.formats, result.memory);
  result.capacity = training_capacity(device);
  if (result.capacity) {
    result.verdict = memory_verdict(result.memory.most().total(), *result.capacity, question.overheads);
    result.fits = result.verdict != MemoryVerdict::too_large;
    if (result.verdict == MemoryVerdict::uncertain || !result.fits) {
      const AdvisedStep step = [&](const TrainingPlan& other, const TrainingFormats& formats,
                                   const PlanMemory& memory) {
        IterationEstimate iteration = model.values(other);
        add_host_time(iteration, other, formats, memory);
        return Seconds(iteration.seconds.value);
      };
      result.advice = memory_advice(job.model, job.sequence_length, plan, question.formats, question.overheads,
                                    *result.capacity, step);
    }
  }

  result.host = host_memory_use(result.memory, question.cluster.node, plan.devices());
  result.fits = result.fits && result.host.fits();

  const double recomputed = plan.recompute != Recompute::full ? 0
                            : plan.recompute_layers == 0      ? 1
                                                         : static_cast<double>(plan.recompute_layers * plan.chunks()) /
                                                               static_cast<double>(job.model.layers.size());
  result.flops = token_flops(
      job.model,
      {.sequence_length = job.sequence_length,
       .attended_length = attended_length(job.sequence_length, job.packed_length),
       .recomputed = std::min(1.0, recomputed),
       .recomputed_multiplies = plan.recompute == Recompute::op ? 0.5 : 0,
       .recomputed_modules = plan.recompute == Recompute::selective ? plan.recompute_modules : LayerModules(),
       .expert_share = job.expert_capacity > 0 ? std::min(1.0, job.expert_capacity) : 1,
       .lora = job.lora});
  ensure(question.convention != nullptr, "a question names how FLOPs are counted");
  result.use = flop_use(*question.convention, result.flops, result.iteration.tokens_per_second_per_device, device,
                        facts(job.recipe.scheme).math);
  const auto layers = static_cast<int64_t>(job.model.layers.size());
  result.variation = step_variation(step_pieces(result.iteration, plan, layers), question.variation);
  if (question.run) result.run = long_run(question, result);
  return result;
}

}  // namespace foretoken
