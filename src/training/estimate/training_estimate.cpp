#include "training/estimate/training_estimate.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "model/weights.h"
#include "training/scale/iteration_pieces.h"

namespace foretoken {
namespace {

// Time over which one stage sends activations out, or gets them back, beyond what its computing hides.
double exposed_activations(const TrainingMemory& memory, double forward, double backward, double link) {
  const double way = memory.offloaded.value() / link;
  return std::max(0.0, way - forward) + std::max(0.0, way - backward);
}

// What the host's memory adds to a step.
struct HostMemoryTime {
  double streamed = 0;  // activations and weights of each micro-batch that the link does not move beside its computing
  Estimate optimizer;   // after all of them
};

HostMemoryTime host_memory_time(const TrainingQuestion& question, const TrainingEstimate& estimate) {
  const TrainingPlan& plan = question.plan;
  const HostMemoryLink host = host_memory_link(question.cluster.node, plan.devices());
  const double link = host.link.value(), micro_batches = static_cast<double>(plan.micro_batches());
  const PipelineWork& work = estimate.iteration.pipeline;
  std::vector<double> forward(estimate.memory.stages.size(), 0), backward = forward;
  for (size_t chunk = 0; chunk < work.chunks.size(); ++chunk) {
    const auto stage = static_cast<size_t>(stage_of_chunk(plan.schedule, work, static_cast<int64_t>(chunk)));
    forward[stage] += work.chunks[chunk].forward;
    backward[stage] += work.chunks[chunk].backward_input + work.chunks[chunk].backward_weight;
  }
  double longest = 0;
  for (size_t stage = 0; stage < estimate.memory.stages.size(); ++stage) {
    const TrainingMemory& memory = estimate.memory.stages[stage];
    // Weights come for the forward and for the backward pass.
    const double weights = 2 * memory.away_parameters.value() / link;
    const double exposed = exposed_activations(memory, forward[stage], backward[stage], link) +
                           std::max(0.0, weights - forward[stage] - backward[stage]);
    longest = std::max(longest, micro_batches * exposed);
  }
  HostMemoryTime time{.streamed = longest, .optimizer = {}};
  const OffloadedOptimizer offload{.share = question.formats.offloaded_optimizer,
                                   .micro_batches = plan.micro_batches(),
                                   .of_rank = offloaded_part(plan)};
  if (offload.share > 0) time.optimizer = offload_seconds(estimate.memory.most(), offload, host);
  return time;
}

// The host changes `share` of the optimizer's state, and the device no longer does.
void add_offload(IterationEstimate& iteration, const HostMemoryTime& time, double share) {
  const auto part = [&](TimePart one) -> Estimate& { return iteration.parts[static_cast<size_t>(one)]; };
  const double before = iteration.seconds.value, spared = share * part(TimePart::optimizer).value;
  part(TimePart::optimizer) = scaled(part(TimePart::optimizer), 1 - share);
  Estimate& offload = part(TimePart::offload);
  offload.value += time.streamed + time.optimizer.value;
  offload.low += time.streamed + time.optimizer.low;
  offload.high += time.streamed + time.optimizer.high;
  offload.kind = std::max(offload.kind, time.optimizer.kind);
  for (Estimate* whole : {&iteration.seconds, &iteration.composed}) {
    *whole = sum_of_independent(std::array{scaled(*whole, (before - spared + time.streamed) / before), time.optimizer});
  }
  const double factor = iteration.seconds.value / before;
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
  const HostMemoryTime host = host_memory_time(question, result);
  if (host.streamed > 0 || host.optimizer.value > 0) {
    add_offload(result.iteration, host, question.formats.offloaded_optimizer);
  }
  result.capacity = training_capacity(device);
  if (result.capacity) {
    result.verdict = memory_verdict(result.memory.most().total(), *result.capacity, question.overheads);
    result.fits = result.verdict != MemoryVerdict::too_large;
    if (result.verdict == MemoryVerdict::uncertain || !result.fits) {
      const AdviceCosts costs{.step = [&](const TrainingPlan& other) { return Seconds(model.seconds(other)); },
                              .host = host_memory_link(question.cluster.node, plan.devices())};
      result.advice = memory_advice(job.model, job.sequence_length, plan, question.formats, question.overheads,
                                    *result.capacity, costs);
    }
  }

  result.host = host_memory_use(result.memory, question.cluster.node, plan.devices());
  result.fits = result.fits && result.host.fits();

  const double recomputed = plan.recompute != Recompute::full ? 0
                            : plan.recompute_layers == 0      ? 1
                                                         : static_cast<double>(plan.recompute_layers * plan.chunks()) /
                                                               static_cast<double>(job.model.layers.size());
  result.flops =
      token_flops(job.model, {.sequence_length = job.sequence_length,
                              .attended_length = attended_length(job.sequence_length, job.packed_length),
                              .recomputed = std::min(1.0, recomputed),
                              .recomputed_multiplies = plan.recompute == Recompute::op ? 0.5 : 0,
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
