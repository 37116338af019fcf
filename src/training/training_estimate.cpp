#include "training/training_estimate.h"

#include <algorithm>

#include "base/error.h"
#include "model/weights.h"

namespace foretoken {
namespace {

double part_of(const IterationEstimate& iteration, TimePart part) {
  return iteration.parts[static_cast<size_t>(part)];
}

// Serial work and meetings of a step, for its distribution.
StepPieces pieces_of(const TrainingQuestion& question, const IterationEstimate& iteration) {
  const TrainingPlan& plan = question.plan;
  const ParallelPlan& p = plan.parallel;
  const double communication = part_of(iteration, TimePart::data);
  const double other = part_of(iteration, TimePart::optimizer) + part_of(iteration, TimePart::step);
  const auto layers = static_cast<int64_t>(question.job.model.layers.size());
  const int64_t layers_of_stage = std::max<int64_t>(1, layers / plan.stages());
  const double busy = iteration.run.busy[static_cast<size_t>(iteration.slowest_stage)];
  return {.compute_seconds = busy / static_cast<double>(plan.micro_batches()),
          .kernels = std::max<int64_t>(1, static_cast<int64_t>(iteration.kernels_of_micro_batch)),
          .meetings = p.tensor > 1 ? 4 * layers_of_stage : 1,
          .micro_batches = plan.micro_batches(),
          .stages = plan.stages(),
          .virtual_stages = plan.virtual_stages,
          .tensor_ranks = p.tensor,
          .replicas = p.data * p.context,
          .exposed_communication_seconds = communication,
          .collectives = 2 * layers_of_stage,
          .other_seconds = other,
          .median_seconds = iteration.seconds.value};
}

LongRunEstimate long_run(const TrainingQuestion& question, const TrainingEstimate& estimate) {
  LongRun run = *question.run;
  const int64_t devices = question.plan.devices();
  run.checkpoints.bytes = checkpoint_bytes_per_parameter * count_parameters(question.job.model).total;
  LongRunEstimate result;
  result.reliability = job_reliability(run.failures, run.recovery, run.checkpoints, devices);
  result.goodput = job_goodput(result.reliability, run.checkpoints);
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

TrainingFormats formats_of(const TrainingJob& job, const TrainingStack& stack) {
  TrainingFormats formats;
  formats.gradient_bytes = stack.constants[gradient_bytes];
  formats.lora = job.lora;
  formats.saved.flash_attention = stack.attention == AttentionKernel::flash;
  return formats;
}

TrainingEstimate estimate_training(const TrainingQuestion& question, const MachineModels& machine) {
  const TrainingJob& job = question.job;
  const TrainingPlan& plan = question.plan;
  check_plan(job.model, job.sequence_length, plan, total_devices(question.cluster));
  TrainingEstimate result;
  result.iteration = IterationModel(job, question.stack, machine.machine()).estimate(plan);

  const ModelParts parts = training_parts(job.model, job.sequence_length, plan, question.formats);
  result.memory = plan_memory(parts, plan, question.formats, question.overheads);
  const Device& device = machine.device();
  if (device.memory) {
    result.capacity = device.allocatable_memory ? device.allocatable_memory->value : device.memory->value;
    result.fits = fits(result.memory.most().total(), *result.capacity);
  }

  const double recomputed = plan.recompute != Recompute::full ? 0
                            : plan.recompute_layers == 0      ? 1
                                                         : static_cast<double>(plan.recompute_layers * plan.chunks()) /
                                                               static_cast<double>(job.model.layers.size());
  result.flops = token_flops(
      job.model, {.sequence_length = job.sequence_length, .recomputed = std::min(1.0, recomputed), .lora = job.lora});
  ensure(question.convention != nullptr, "a question names how FLOPs are counted");
  result.use = flop_use(*question.convention, result.flops, result.iteration.tokens_per_second_per_device, device,
                        facts(job.recipe.scheme).math);
  result.variation = step_variation(pieces_of(question, result.iteration), question.variation);
  if (question.run) result.run = long_run(question, result);
  return result;
}

}  // namespace foretoken
