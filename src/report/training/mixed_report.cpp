#include "report/training/mixed_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/json_parts.h"
#include "report/parts/table.h"
#include "report/training/training_report.h"

namespace foretoken {
namespace {

const Device& device_of(const TrainingPool& pool) {
  return pool.machine->device();
}

std::string pools_text(std::span<const TrainingPool> pools) {
  std::vector<std::string> names;
  for (const TrainingPool& pool : pools) names.push_back(fmt::format("{} x {}", pool.devices, device_of(pool).title));
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string verdict_text(MemoryVerdict verdict) {
  constexpr std::string_view texts[] = {"fits", "tight", "MAY NOT FIT", "DOES NOT FIT"};
  return std::string(texts[static_cast<size_t>(verdict)]);
}

std::string work_text(const PoolWork& work, PoolAxis axis) {
  if (axis == PoolAxis::data)
    return fmt::format("{} x {}", counted(work.replicas, "replica"), counted(work.micro_batches, "micro-batch"));
  const std::string layers = fmt::format("{} layers", fmt::join(work.layers, ", "));
  const auto stages = static_cast<int64_t>(work.layers.size());
  if (stages == 1) return fmt::format("stage {}: {}", work.first_stage, layers);
  return fmt::format("stages {} to {}: {}", work.first_stage, work.first_stage + stages - 1, layers);
}

}  // namespace

std::string mixed_failure(std::span<const TrainingPool> pools, const MixedEstimate& estimate) {
  for (size_t i = 0; i < pools.size(); ++i) {
    const PoolWork& work = estimate.pools[i];
    if (work.verdict != MemoryVerdict::too_large) continue;
    return fmt::format("Out of memory: {} does not fit. Each {} needs {} but has only {}.",
                       pools[i].question.job.model.name, device_of(pools[i]).title,
                       bytes_text(work.memory.total().value()), bytes_text(work.capacity->value()));
  }
  return "";
}

std::string mixed_text(std::span<const TrainingPool> pools, const MixedEstimate& estimate) {
  const TrainingQuestion& question = pools.front().question;
  const TrainingPlan& plan = question.plan;
  const std::string failure = mixed_failure(pools, estimate);
  std::string text = failure.empty() ? "" : failure + "\n";
  text += fmt::format("{} on {}: a step of {} x {} tokens {} about {}.\n", question.job.model.name, pools_text(pools),
                      plan.global_batch, question.job.sequence_length, failure.empty() ? "takes" : "would take",
                      interval_text(estimate.seconds));
  text += fmt::format("Plan: tensor {}, pipeline {}, context {}, data {}, sharding {}, {} tokens/s.\n",
                      plan.parallel.tensor, plan.parallel.pipeline, plan.parallel.context, plan.parallel.data,
                      sharding_name(plan.sharding), count_text(estimate.tokens_per_second));
  text += fmt::format("With the same work on every GPU, a step would take {} ({:+.0f}%).\n",
                      duration_text(estimate.even_seconds), 100 * (estimate.even_seconds / estimate.seconds.value - 1));
  text = wrap_lines(text, page_width(), 2);
  Table table({{"pool", Table::Align::left},
               {"GPUs"},
               {"work", Table::Align::left},
               {"busy"},
               {"idle"},
               {"memory"},
               {"available"},
               {"", Table::Align::left}});
  for (size_t i = 0; i < pools.size(); ++i) {
    const PoolWork& work = estimate.pools[i];
    table.add({device_of(pools[i]).name, fmt::format("{}", pools[i].devices), work_text(work, estimate.axis),
               duration_text(work.seconds.value),
               fmt::format("{:.0f}%", 100 * std::max(0.0, 1 - work.seconds.value / estimate.seconds.value)),
               bytes_text(work.memory.total().value()), work.capacity ? bytes_text(work.capacity->value()) : "?",
               verdict_text(work.verdict)});
  }
  text += "\n" + table.text() + "\n";
  text += wrap_lines(
      fmt::format(
          "{} is the slowest. Reductions over replicas run at the speed of the slowest pool's network. This was not "
          "checked with a run on two kinds of GPU, so the interval is 10% wider than that of the slower pool.\n",
          device_of(pools[estimate.slowest]).title),
      page_width(), 2);
  return text;
}

Json mixed_json(std::span<const TrainingPool> pools, const MixedEstimate& estimate) {
  const TrainingQuestion& question = pools.front().question;
  Json list = Json::array();
  for (size_t i = 0; i < pools.size(); ++i) {
    const PoolWork& work = estimate.pools[i];
    Json layers = Json::array();
    for (const int64_t count : work.layers) layers.push(count);
    list.push(Json::object({{"device", device_of(pools[i]).name},
                            {"devices", pools[i].devices},
                            {"replicas", work.replicas},
                            {"micro_batches", work.micro_batches},
                            {"first_stage", work.first_stage},
                            {"layers", std::move(layers)},
                            {"seconds", to_json(work.seconds)},
                            {"memory_bytes", work.memory.total().value()},
                            {"capacity_bytes", work.capacity ? Json(work.capacity->value()) : Json()},
                            {"memory", memory_verdict_name(work.verdict)}}));
  }
  return Json::object({{"model", question.job.model.name},
                       {"stack", question.stack.name},
                       {"plan", to_json(question.plan)},
                       {"pool_axis", pool_axis_names[static_cast<size_t>(estimate.axis)]},
                       {"seconds", to_json(estimate.seconds)},
                       {"even_seconds", estimate.even_seconds},
                       {"tokens_per_second", estimate.tokens_per_second},
                       {"slowest", device_of(pools[estimate.slowest]).name},
                       {"fits", estimate.fits},
                       {"pools", std::move(list)}});
}

}  // namespace foretoken
