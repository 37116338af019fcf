#include "report/answer_json.h"

#include "compose/engine_release.h"
#include "report/plan/serving_plan_report.h"
#include "report/step/step_report.h"
#include "report/training/training_report.h"

namespace foretoken {

ReplicaSummary summary_of(const ReplicaGroup& group) {
  const std::string& engine = group.memory.flags.engine;
  return {.device = group.models.kernels.device().name,
          .scheduler = group.config.scheduler,
          .release = engine_release(engine) ? engine : std::string(),
          .count = group.count,
          .devices_each = group.cache_devices() + (group.ffn ? group.ffn->devices : 0),
          .kv_blocks = group.config.options.num_gpu_blocks * group.config.options.lock_step_ranks,
          .block_size = group.config.options.block_size,
          .links = group.links_per_token(),
          .sources = group.typical_sources()};
}

Json to_json(const StepPrediction& prediction) {
  DeviceNotes notes;
  if (prediction.models.collectives) notes.add_network(*prediction.models.collectives);
  return step_json(prediction.step, prediction.model, prediction.device(), notes);
}

Json to_json(const ServingPrediction& prediction) {
  const LoadSpec& load = prediction.load;
  ServingReport report{.model = prediction.groups.front().model.served_name(),
                       .replicas = {},
                       .label = {},
                       .metadata = {},
                       .num_prompts = prediction.run.metrics.completed + prediction.run.metrics.rejected,
                       .request_rate = load.arrivals.rate,
                       .burstiness = load.arrivals.burstiness,
                       .max_concurrency = load.max_concurrency > 0 ? std::optional(load.max_concurrency) : std::nullopt,
                       .percentiles = prediction.percentiles,
                       .priorities = prediction.priorities,
                       .run = prediction.run};
  for (const ReplicaGroup& group : prediction.groups) {
    report.replicas.push_back(summary_of(group));
    if (group.has_own_kernels) report.notes.add_kernels(group.models.kernels);
    report.notes.add_engine(group.memory.flags.engine, group.models.kernels.device());
    if (group.models.collectives) report.notes.add_network(*group.models.collectives);
  }
  return serving_json(report);
}

Json to_json(const TrainingPrediction& prediction) {
  Json json = training_json(prediction.question, prediction.estimate);
  DeviceNotes notes;
  if (prediction.kernels) notes.add_kernels(*prediction.kernels);
  set_device_notes(json, notes);
  return json;
}

Json to_json(const ServingPlanner& asked, const ServingSearchResult& found) {
  return serving_plan_json({.question = asked.question, .traffic = asked.traffic, .result = found});
}

}  // namespace foretoken
