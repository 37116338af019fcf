#include "report/training/training_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"
#include "training/layer_split.h"

namespace foretoken {
namespace {

// "full, 4 layers of each chunk".
std::string recompute_words(const TrainingPlan& plan) {
  const std::string name(recompute_name(plan.recompute));
  if (plan.recompute == Recompute::selective) {
    return fmt::format("{} ({})", name, layer_modules_text(plan.recompute_modules));
  }
  if (plan.recompute_layers == 0) return name;
  return fmt::format("{}, {} of each chunk", name, counted(plan.recompute_layers, "layer"));
}

std::string sharding_words(const TrainingPlan& plan) {
  const std::string name(sharding_name(plan.sharding));
  return plan.shard_ranks > 0 ? fmt::format("{} over {}", name, counted(plan.shard_ranks, "rank")) : name;
}

std::string cluster_words(const TrainingQuestion& question) {
  return fmt::format("{} x {} ({})", question.plan.devices(), question.cluster.node.device.title,
                     question.cluster.name);
}

std::string plan_line(const TrainingQuestion& question) {
  const TrainingPlan& plan = question.plan;
  const ParallelPlan& p = plan.parallel;
  std::string text = fmt::format("  plan      tensor {}", p.tensor);
  if (p.sequence && p.tensor > 1) text += " with sequence parallelism";
  if (p.context > 1) text += fmt::format(", context {} ({})", p.context, context_exchange_name(plan.context_exchange));
  if (p.expert > 1) text += fmt::format(", expert {}", p.expert);
  if (p.expert > 1 && plan.dispatcher != TokenDispatcher::usual) {
    text += fmt::format(" ({})", token_dispatcher_name(plan.dispatcher));
  }
  text += fmt::format(", pipeline {}", p.pipeline);
  if (p.pipeline > 1) text += fmt::format(" ({})", plan.schedule);
  if (plan.virtual_stages > 1) text += fmt::format(" x {} chunks", plan.virtual_stages);
  text += fmt::format(", data {}; {} of {}; sharding {}; recompute {}; {}", p.data,
                      counted(plan.micro_batches(), "micro-batch"), plan.micro_batch, sharding_words(plan),
                      recompute_words(plan), question.job.recipe.name);
  if (question.job.lora.rank > 0) text += fmt::format(", LoRA of rank {}", question.job.lora.rank);
  return text + fmt::format("; {}\n", question.stack.name);
}

// What else was asked for, where it is not the usual.
std::string unusual_line(const TrainingQuestion& question) {
  const TrainingJob& job = question.job;
  const TrainingFormats& formats = question.formats;
  std::vector<std::string> parts;
  if (formats.optimizer != OptimizerState{}) {
    parts.push_back(fmt::format("{:g} bytes of optimizer state per parameter", formats.optimizer.bytes()));
  }
  if (formats.offloaded_optimizer > 0) {
    parts.push_back(fmt::format("{:.0f}% of the optimizer state in host memory", 100 * formats.offloaded_optimizer));
  }
  if (formats.offloaded_parameters > 0) {
    parts.push_back(fmt::format("{:.0f}% of the weights in host memory", 100 * formats.offloaded_parameters));
  }
  if (job.lora.rank > 0 && formats.frozen_weight_bytes < 2) {
    parts.push_back(fmt::format("a frozen base of {:.3g} bytes per weight", formats.frozen_weight_bytes));
  }
  if (formats.offloaded_activations > 0) {
    parts.push_back(fmt::format("{:.0f}% of the activations in host memory", 100 * formats.offloaded_activations));
  }
  if (job.dropout.hidden) parts.emplace_back("hidden dropout");
  if (job.dropout.attention) parts.emplace_back("attention dropout");
  if (job.packed_length > 0) parts.push_back(fmt::format("documents of {} tokens packed", job.packed_length));
  if (job.routing == Routing::random) parts.emplace_back("random routing to experts");
  if (job.expert_capacity > 0) parts.push_back(fmt::format("expert capacity {:g}", job.expert_capacity));
  const TrainingPlan& plan = question.plan;
  if (plan.first_stage_layers)
    parts.push_back(fmt::format("{} on the first stage", counted(*plan.first_stage_layers, "layer")));
  if (plan.last_stage_layers)
    parts.push_back(fmt::format("{} on the last stage", counted(*plan.last_stage_layers, "layer")));
  if (!plan.layout.empty()) parts.push_back(fmt::format("layers on stages {}", pipeline_layout_text(plan.layout)));
  return parts.empty() ? "" : fmt::format("  also      {}\n", fmt::join(parts, ", "));
}

bool has_width(const Estimate& part) {
  return part.high > part.low;
}

// "-4% +6%" of the value; empty where it has no interval of its own.
std::string width_text(const Estimate& part) {
  if (!has_width(part) || part.value <= 0) return "";
  return fmt::format("{:+.0f}% {:+.0f}%", 100 * (part.low / part.value - 1), 100 * (part.high / part.value - 1));
}

std::string parts_table(const IterationEstimate& iteration) {
  Table table(
      {{"part", Table::Align::left}, {"time"}, {"share"}, {"90% interval"}, {"what it is", Table::Align::left}});
  const double total = iteration.seconds.value;
  for (size_t i = 0; i < time_part_count; ++i) {
    const auto part = static_cast<TimePart>(i);
    const Estimate& seconds = iteration.parts[i];
    if (seconds.value < 1e-4 * total) continue;
    table.add({std::string(time_part_name(part)), duration_text(seconds.value),
               fmt::format("{:.1f}%", 100 * seconds.value / total), width_text(seconds),
               std::string(time_part_meaning(part))});
  }
  return table.text();
}

// The part whose interval is widest, with its share of the sum of all widths.
std::string widest_part(const IterationEstimate& iteration) {
  double widest = 0, sum = 0;
  size_t which = 0;
  for (size_t i = 0; i < time_part_count; ++i) {
    const double width = iteration.parts[i].high - iteration.parts[i].low;
    sum += width;
    if (width <= widest) continue;
    widest = width;
    which = i;
  }
  if (widest <= 0) return "";
  return fmt::format(". Largest source of kernel and network uncertainty: {} ({:.0f}%)",
                     time_part_name(static_cast<TimePart>(which)), 100 * widest / sum);
}

StackUse stack_use(const TrainingQuestion& question) {
  return {.device = &question.cluster.node.device,
          .adapters = question.job.lora.rank > 0,
          .tuning = is_tuning(question.job),
          .devices = question.plan.devices(),
          .sequence_length = question.job.sequence_length,
          .expert_ranks = question.plan.parallel.expert};
}

// What the interval of the step rests on.
std::string interval_line(const TrainingQuestion& question, const IterationEstimate& iteration) {
  const StackUse use = stack_use(question);
  const RunInterval runs = question.stack.interval_for(question.job.model, use);
  const std::string stack =
      question.stack.runs.empty()
          ? fmt::format(
                "{:.2f} to {:.2f} times the prediction is assumed for {}, whose constants were not fitted to runs",
                runs.low, runs.high, question.stack.name)
      : runs.is_assumed
          ? fmt::format("{:.2f} to {:.2f} times the prediction is assumed, because too few runs of {} were published",
                        runs.low, runs.high, question.stack.name)
          : fmt::format("90% of the published runs of {} took {:.2f} to {:.2f} times the prediction",
                        question.stack.name, runs.low, runs.high);
  const std::vector<std::string> beyond = question.stack.beyond_runs(question.job.model, use);
  const Estimate& composed = iteration.composed;
  return fmt::format("  interval  {}{}; errors of kernels and network alone: {:.2f} to {:.2f} times ({}){}\n", stack,
                     beyond.empty() ? "" : fmt::format(", widened because there is {}", fmt::join(beyond, " and ")),
                     composed.low / composed.value, composed.high / composed.value, confidence_name(composed.kind),
                     widest_part(iteration));
}

std::string verdict_words(const TrainingEstimate& estimate, const MemoryOverheads& overheads) {
  if (estimate.verdict == MemoryVerdict::too_large) return "DOES NOT FIT";
  if (estimate.verdict == MemoryVerdict::uncertain) {
    return "MAY NOT FIT: it exceeds the memory, but by less than such estimates err";
  }
  return fmt::format("{} the safe limit of {:.0f}%",
                     estimate.verdict == MemoryVerdict::tight ? "TIGHT, above" : "fits, within",
                     100 * overheads.usable);
}

std::string host_line(const HostMemoryLoad& host) {
  if (host.of_host.value() <= 0) return "";
  return fmt::format("Host memory per node: {}, {} for each device{}\n", bytes_text(host.of_host.value()),
                     bytes_text(host.of_device.value()),
                     host.capacity ? fmt::format("; it has {}: {}", bytes_text(host.capacity->value()),
                                                 host.fits() ? "fits" : "DOES NOT FIT")
                                   : "; how much it has is not known");
}

std::string memory_lines(const TrainingEstimate& estimate, const MemoryOverheads& overheads) {
  const TrainingMemory& most = estimate.memory.most();
  const auto text = [](Bytes bytes) { return bytes_text(bytes.value()); };
  std::string lines = fmt::format(
      "Memory per device on stage {} (the fullest): {}{}\n", estimate.memory.fullest, text(most.total()),
      estimate.capacity
          ? fmt::format(" of {}: {}", memory_size_text(estimate.capacity->value()), verdict_words(estimate, overheads))
          : "");
  lines += fmt::format(
      "  parameters {}, gradients {}, optimizer {}, activations {}, communication {}, logits {}, workspace {}, "
      "fragmentation {}\n",
      text(most.parameters), text(most.gradients), text(most.optimizer), text(most.activations),
      text(most.communication), text(most.logits), text(most.workspace), text(most.fragmentation));
  lines += host_line(estimate.host);
  constexpr size_t most_shown = 3;
  for (size_t i = 0; i < std::min(most_shown, estimate.advice.size()); ++i) {
    lines += fmt::format("  to fit: {}\n", estimate.advice[i].sentence);
  }
  return wrap_lines(lines, page_width(), 2);
}

std::string run_lines(const LongRunEstimate& long_run, const TrainingQuestion& question) {
  const TrainingRun& run = long_run.run;
  const bool short_run = run.days.value < 1;
  const double unit = short_run ? 24 : 1;
  std::string text = fmt::format(
      "\n{} tokens: {:.1f} {} (90% interval {:.1f} to {:.1f}), {} device-hours, {:.1f}% of the time is useful work.\n",
      count_text(question.run->tokens), unit * run.days.value, short_run ? "hours" : "days", unit * run.days.low,
      unit * run.days.high, rounded_text(run.device_hours.value), 100 * long_run.goodput.effective);
  text += fmt::format("  {:.0f} steps, {:.0f} failures (one every {:.1f} h), a checkpoint every {}\n", run.steps,
                      run.failures, long_run.reliability.mtbf_hours, duration_text(long_run.goodput.interval_seconds));
  text += "  lost:";
  for (const LostTime& lost : long_run.goodput.lost) text += fmt::format(" {} {:.2f}%,", lost.cause, 100 * lost.share);
  text.back() = '\n';
  if (run.usd) {
    text += fmt::format("  cost about {} USD ({} to {}) at {:.2f} USD per device-hour\n", rounded_text(run.usd->value),
                        rounded_text(run.usd->low), rounded_text(run.usd->high), *question.run->usd_per_device_hour);
  }
  if (run.megawatt_hours) {
    const double energy = run.megawatt_hours->value;
    text += fmt::format("  energy about {} {} at {:.0f} W per device (boards only)\n",
                        rounded_text(energy < 1 ? 1000 * energy : energy), energy < 1 ? "kWh" : "MWh",
                        *question.run->watts_per_device);
  }
  return wrap_lines(text, page_width(), 2);
}

Json formats_json(const TrainingFormats& formats) {
  return Json::object({{"optimizer_bytes_per_parameter", formats.optimizer.bytes()},
                       {"offloaded_optimizer", formats.offloaded_optimizer},
                       {"offloaded_activations", formats.offloaded_activations},
                       {"offloaded_parameters", formats.offloaded_parameters},
                       {"frozen_weight_bytes", formats.frozen_weight_bytes}});
}

Json memory_json(const TrainingMemory& memory) {
  return Json::object({{"parameters_bytes", memory.parameters.value()},
                       {"gradients_bytes", memory.gradients.value()},
                       {"optimizer_bytes", memory.optimizer.value()},
                       {"activations_bytes", memory.activations.value()},
                       {"communication_bytes", memory.communication.value()},
                       {"logits_bytes", memory.logits.value()},
                       {"workspace_bytes", memory.workspace.value()},
                       {"fragmentation_bytes", memory.fragmentation.value()},
                       {"total_bytes", memory.total().value()}});
}

Json host_json(const HostMemoryLoad& host) {
  return Json::object({{"device_bytes", host.of_device.value()},
                       {"node_bytes", host.of_host.value()},
                       {"capacity_bytes", host.capacity ? Json(host.capacity->value()) : Json()},
                       {"fits", host.fits()}});
}

Json strings_json(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

// Factors of the step's time, of each source of error alone.
Json interval_json(const TrainingQuestion& question, const IterationEstimate& iteration) {
  const StackUse use = stack_use(question);
  const RunInterval runs = question.stack.interval_for(question.job.model, use);
  const Estimate& composed = iteration.composed;
  return Json::object({{"stack_low", runs.low},
                       {"stack_high", runs.high},
                       {"stack_confidence", confidence_name(question.stack.confidence_for(question.job.model, use))},
                       {"beyond_runs", strings_json(question.stack.beyond_runs(question.job.model, use))},
                       {"kernels_low", composed.low / composed.value},
                       {"kernels_high", composed.high / composed.value},
                       {"kernels_confidence", confidence_name(composed.kind)}});
}

Json run_json(const LongRunEstimate& long_run) {
  const TrainingRun& run = long_run.run;
  Json lost = Json::object();
  for (const LostTime& one : long_run.goodput.lost) lost.set(one.cause, one.share);
  Json json = Json::object({{"steps", run.steps},
                            {"days", to_json(run.days)},
                            {"device_hours", to_json(run.device_hours)},
                            {"tokens_per_second", run.tokens_per_second},
                            {"failures", run.failures},
                            {"job_mtbf_hours", long_run.reliability.mtbf_hours},
                            {"checkpoint_interval_s", long_run.goodput.interval_seconds},
                            {"goodput", long_run.goodput.effective},
                            {"lost_share", std::move(lost)}});
  if (run.usd) json.set("usd", to_json(*run.usd));
  if (run.megawatt_hours) json.set("megawatt_hours", to_json(*run.megawatt_hours));
  return json;
}

}  // namespace

Json to_json(const TrainingPlan& plan) {
  Json json = to_json(plan.parallel);
  json.set("virtual_stages", plan.virtual_stages);
  json.set("schedule", plan.schedule);
  json.set("micro_batch", plan.micro_batch);
  json.set("global_batch", plan.global_batch);
  json.set("micro_batches", plan.micro_batches());
  json.set("sharding", sharding_name(plan.sharding));
  json.set("shard_ranks", plan.shard_ranks);
  json.set("recompute", recompute_name(plan.recompute));
  if (plan.recompute == Recompute::selective) json.set("recompute_modules", layer_modules_text(plan.recompute_modules));
  json.set("recompute_layers", plan.recompute_layers);
  json.set("context_exchange", context_exchange_name(plan.context_exchange));
  json.set("token_dispatcher", token_dispatcher_name(plan.dispatcher));
  if (plan.first_stage_layers) json.set("first_stage_layers", *plan.first_stage_layers);
  if (plan.last_stage_layers) json.set("last_stage_layers", *plan.last_stage_layers);
  if (!plan.layout.empty()) json.set("layout", pipeline_layout_text(plan.layout));
  json.set("embedding_in_split", plan.embedding_in_split);
  json.set("loss_in_split", plan.loss_in_split);
  json.set("devices", plan.devices());
  return json;
}

std::string training_failure(const TrainingQuestion& question, const TrainingEstimate& estimate) {
  if (estimate.fits) return "";
  if (estimate.verdict != MemoryVerdict::too_large) {
    return fmt::format(
        "Out of host memory: what {} keeps there does not fit on {}. Each node needs {} but has only {} ({} short).",
        question.job.model.name, cluster_words(question), bytes_text(estimate.host.of_host.value()),
        bytes_text(estimate.host.capacity->value()),
        bytes_text((estimate.host.of_host - *estimate.host.capacity).value()));
  }
  const double need = estimate.memory.most().total().value(), have = estimate.capacity->value();
  return fmt::format(
      "Out of memory: {} does not fit on {}. Each device needs {} but has only {} ({} short). "
      "`foretoken plan train` looks for a plan that fits.",
      question.job.model.name, cluster_words(question), bytes_text(need), bytes_text(have), bytes_text(need - have));
}

std::string training_text(const TrainingQuestion& question, const TrainingEstimate& estimate) {
  const IterationEstimate& iteration = estimate.iteration;
  const TrainingPlan& plan = question.plan;
  const std::string failure = training_failure(question, estimate);
  const std::string work = fmt::format("a step of {} x {} tokens", plan.global_batch, question.job.sequence_length);
  const std::string head = failure.empty()
                               ? fmt::format("{} on {}: {} takes about {}.\n", question.job.model.name,
                                             cluster_words(question), work, interval_text(iteration.seconds))
                               : fmt::format("{}\nWith enough memory, {} would take about {}.\n", failure, work,
                                             interval_text(iteration.seconds));
  std::string text;
  text += plan_line(question) + unusual_line(question);
  text += fmt::format("  speed     {} tokens/s, {:.0f} per device\n", count_text(iteration.tokens_per_second),
                      iteration.tokens_per_second_per_device);
  const FlopUse& use = estimate.use;
  text +=
      fmt::format("  use       {} per device, MFU {:.1f}% and HFU {:.1f}% of the {} peak of {}, counting FLOPs as {}\n",
                  rate_text(use.model_rate.value(), "FLOP/s"), 100 * use.mfu, 100 * use.hfu, dtype_name(use.peak_type),
                  rate_text(use.peak.value(), "FLOP/s"), use.convention);
  const StepVariation& v = estimate.variation;
  text += fmt::format("  varies    p05 {}, p50 {}, p95 {}, p99 {}{}\n", duration_text(v.p05), duration_text(v.p50),
                      duration_text(v.p95), duration_text(v.p99),
                      v.kind > Confidence::interpolated ? " (extrapolated: no log of a run of this size)" : "");
  text += interval_line(question, iteration);
  text = wrap_lines(head, page_width(), 2) + wrap_lines(text, page_width(), 12);
  text += fmt::format("\nWhere the time goes, on stage {} (the busiest):\n", iteration.slowest_stage);
  text += parts_table(iteration) + "\n" + memory_lines(estimate, question.overheads);
  if (estimate.run) text += run_lines(*estimate.run, question);
  return text;
}

Json training_json(const TrainingQuestion& question, const TrainingEstimate& estimate) {
  const IterationEstimate& iteration = estimate.iteration;
  Json parts = Json::object(), part_estimates = Json::object();
  for (size_t i = 0; i < time_part_count; ++i) {
    const std::string name(time_part_name(static_cast<TimePart>(i)));
    const Estimate& part = iteration.parts[i];
    parts.set(name, part.value);
    part_estimates.set(name, has_width(part) ? to_json(part) : Json::object({{"value", part.value}}));
  }
  Json kernels = Json::array();
  for (const FamilySeconds& one : iteration.families) {
    kernels.push(Json::object({{"family", one.family}, {"seconds", to_json(one.seconds)}}));
  }
  Json advice = Json::array();
  for (const MemoryAdvice& one : estimate.advice) {
    advice.push(Json::object({{"change", one.sentence},
                              {"plan", to_json(one.plan)},
                              {"need_bytes", one.need.value()},
                              {"step_seconds", one.step.value()}}));
  }
  Json stages = Json::array();
  for (const TrainingMemory& memory : estimate.memory.stages) stages.push(memory_json(memory));
  const FlopUse& use = estimate.use;
  const StepVariation& v = estimate.variation;
  Json json = Json::object({
      {"model", question.job.model.name},
      {"cluster", question.cluster.name},
      {"device", question.cluster.node.device.name},
      {"stack", question.stack.name},
      {"precision", question.job.recipe.name},
      {"sequence_length", question.job.sequence_length},
      {"lora_rank", question.job.lora.rank},
      {"routing", question.job.routing == Routing::balanced ? "balanced" : "random"},
      {"expert_capacity", question.job.expert_capacity},
      {"packed_length", question.job.packed_length},
      {"dropout",
       Json::object({{"hidden", question.job.dropout.hidden}, {"attention", question.job.dropout.attention}})},
      {"formats", formats_json(question.formats)},
      {"plan", to_json(question.plan)},
      {"fits", estimate.fits},
      {"seconds", to_json(iteration.seconds)},
      {"tokens_per_second", iteration.tokens_per_second},
      {"tokens_per_second_per_device", iteration.tokens_per_second_per_device},
      {"flops", Json::object({{"convention", use.convention},
                              {"peak_dtype", dtype_name(use.peak_type)},
                              {"peak_flops_per_second", use.peak.value()},
                              {"model_flops_per_second_per_device", use.model_rate.value()},
                              {"mfu", use.mfu},
                              {"hfu", use.hfu}})},
      {"parts_seconds", std::move(parts)},
      {"parts", std::move(part_estimates)},
      {"kernels", std::move(kernels)},
      {"interval_basis", interval_json(question, iteration)},
      {"busiest_stage", iteration.slowest_stage},
      {"step_times", Json::object({{"mean", v.mean},
                                   {"p05", v.p05},
                                   {"p50", v.p50},
                                   {"p95", v.p95},
                                   {"p99", v.p99},
                                   {"confidence", confidence_name(v.kind)}})},
      {"memory", Json::object({{"fullest_stage", estimate.memory.fullest},
                               {"capacity_bytes", estimate.capacity ? Json(estimate.capacity->value()) : Json()},
                               {"fits", estimate.fits},
                               {"verdict", memory_verdict_name(estimate.verdict)},
                               {"usable_share", question.overheads.usable},
                               {"advice", std::move(advice)},
                               {"host", host_json(estimate.host)},
                               {"stages", std::move(stages)}})},
  });
  if (estimate.run) json.set("run", run_json(*estimate.run));
  return json;
}

}  // namespace foretoken
