#include "training/estimate/training_estimate.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "model/weights.h"
#include "training/scale/iteration_pieces.h"

namespace foretoken {
namespace {

// More time of the optimizer's step.
void add_once_a_step(IterationEstimate& iteration, Seconds added) {
  Estimate& optimizer = iteration.parts[static_cast<size_t>(TimePart::optimizer)];
  for (double* bound : {&optimizer.value, &optimizer.low, &optimizer.high}) *bound += added.value();
  const double factor = 1 + added.value() / iteration.seconds.value;
  iteration.seconds = scaled(iteration.seconds, factor);
  iteration.composed = scaled(iteration.composed, factor);
  iteration.tokens_per_second /= factor;
  iteration.tokens_per_second_per_device /= factor;
}

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
    throw InputError({.field = "device_mtbf_hours",
                      .value = fmt::format("{}", run.failures.device_mtbf_hours),
                      .expected = fmt::format("a job that gets on: it would fail every {}, and needs {} to go on again",
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

TrainingEstimate estimate_training(const TrainingQuestion& question, const MachineModels& machine) {
  const TrainingJob& job = question.job;
  const TrainingPlan& plan = question.plan;
  check_plan(job.model, job.sequence_length, plan, total_devices(question.cluster));
  if (job.packed_length > job.sequence_length) {
    throw InputError({.field = "packed_length",
                      .value = fmt::format("{}", job.packed_length),
                      .expected = fmt::format("at most the {} tokens of a sequence", job.sequence_length)});
  }
  TrainingEstimate result;
  IterationModel model(job, question.stack, machine.machine());
  result.iteration = model.estimate(plan);

  const ModelParts parts = training_parts(job.model, job.sequence_length, plan, question.formats);
  result.memory = plan_memory(parts, plan, question.formats, question.overheads);
  const Device& device = machine.device();
  if (question.formats.offloaded_optimizer > 0 && device.host_bandwidth) {
    add_once_a_step(result.iteration, offload_seconds(result.memory.most(), question.formats.offloaded_optimizer,
                                                      device.host_bandwidth->value));
  }
  result.capacity = training_capacity(device);
  if (result.capacity) {
    result.fits = fits(result.memory.most().total(), *result.capacity);
    if (!result.fits) {
      AdviceCosts costs{.step = [&](const TrainingPlan& other) { return Seconds(model.seconds(other)); }};
      if (device.host_bandwidth) costs.host_link = device.host_bandwidth->value;
      result.advice = memory_advice(job.model, job.sequence_length, plan, question.formats, question.overheads,
                                    *result.capacity, costs);
    }
  }

  const double recomputed = plan.recompute != Recompute::full ? 0
                            : plan.recompute_layers == 0      ? 1
                                                         : static_cast<double>(plan.recompute_layers * plan.chunks()) /
                                                               static_cast<double>(job.model.layers.size());
  result.flops = token_flops(job.model, {.sequence_length = job.sequence_length,
                                         .attended_length = attended_length(job.sequence_length, job.packed_length),
                                         .recomputed = std::min(1.0, recomputed),
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
