#include "training/schedule/pipeline_schedule.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "training/schedule/pipeline_kind.h"
#include "training/schedule/pipeline_simulation.h"
#include "training/schedule/repetition.h"

namespace foretoken {
namespace {

void check_work(const PipelineKind& kind, const PipelineWork& work) {
  if (const std::string why = why_not(kind.name, work); !why.empty()) {
    throw InputError({.source = "pipeline schedule", .value = std::string(kind.name), .expected = why});
  }
  ensure(static_cast<int64_t>(work.chunks.size()) == work.stages * work.virtual_stages,
         "every virtual stage of a pipeline has its chunk of layers");
  for (const ChunkTimes& times : work.chunks) {
    const double least = std::min({times.forward, times.backward_input, times.backward_weight});
    ensure(least >= 0 && std::isfinite(times.sum()), "tasks of a pipeline take some time");
  }
}

bool completes_gradients(PipelineTaskKind kind) {
  return kind == PipelineTaskKind::backward || kind == PipelineTaskKind::backward_weight;
}

// The start of the last task that completes the gradients of a chunk, for the chunk where that comes first.
double first_gradients_start(const PipelineSimulation& simulation, const std::vector<PipelineTask>& tasks) {
  double first = simulation.end_of(tasks.back());
  std::vector<bool> seen(static_cast<size_t>(simulation.chunks()));
  for (size_t i = tasks.size(); i-- > 0;) {
    const PipelineTask& task = tasks[i];
    const auto chunk = static_cast<size_t>(task.chunk);
    if (!completes_gradients(task.kind) || seen[chunk]) continue;
    seen[chunk] = true;
    first = std::min(first, simulation.start_of(task));
  }
  return first;
}

int64_t most_in_flight(const std::vector<PipelineTask>& list) {
  int64_t now = 0, most = 0;
  for (const PipelineTask& task : list) {
    if (task.kind == PipelineTaskKind::forward) most = std::max(most, ++now);
    if (task.kind == PipelineTaskKind::backward || task.kind == PipelineTaskKind::backward_input) --now;
  }
  return most;
}

double iteration_seconds(const PipelineKind& kind, const PipelineRun& run) {
  double seconds = 0;
  for (size_t i = 0; i < run.last_end.size(); ++i) {
    seconds = std::max(seconds, run.last_end[i] - (kind.stages_end_apart ? run.first_start[i] : 0));
  }
  return seconds;
}

PipelineRun summary(const PipelineKind& kind, const PipelineSimulation& simulation) {
  PipelineRun run;
  for (size_t stage = 0; stage < simulation.stages().size(); ++stage) {
    const std::vector<PipelineTask>& tasks = simulation.tasks()[stage];
    run.busy.push_back(simulation.stages()[stage].busy);
    run.first_start.push_back(simulation.stages()[stage].first_start);
    run.last_end.push_back(simulation.turned_back() + simulation.end_of(tasks.back()));
    run.last_backward_start.push_back(simulation.turned_back() + first_gradients_start(simulation, tasks));
    run.most_in_flight.push_back(most_in_flight(tasks));
  }
  run.seconds = iteration_seconds(kind, run);
  return run;
}

PipelineRun full_run(const PipelineKind& kind, const PipelineWork& work) {
  PipelineSimulation simulation(kind, work);
  simulation.run_before(work.micro_batches);
  return summary(kind, simulation);
}

// All forwards, then all backwards: two lines of stages with the same time for every micro-batch. Each of them adds the
// same from the second on.
PipelineRun linear_run(const PipelineKind& kind, const PipelineWork& work) {
  PipelineWork one = work, two = work;
  one.micro_batches = 1;
  two.micro_batches = 2;
  const PipelineRun before = full_run(kind, one);
  PipelineRun run = full_run(kind, two);
  const auto more = static_cast<double>(work.micro_batches - 2);
  for (size_t i = 0; i < run.busy.size(); ++i) {
    run.busy[i] += more * (run.busy[i] - before.busy[i]);
    run.last_end[i] += more * (run.last_end[i] - before.last_end[i]);
    run.last_backward_start[i] += more * (run.last_backward_start[i] - before.last_backward_start[i]);
    run.most_in_flight[i] = work.micro_batches;
  }
  run.seconds = iteration_seconds(kind, run);
  return run;
}

// Runs the work and puts in up to `missing` micro-batches where stages repeat themselves. Returns what is left of them.
int64_t run_with_repetitions(const PipelineKind& kind, const PipelineWork& work, int64_t missing,
                             PipelineSimulation& simulation) {
  const int64_t cycle = kind.cycle(work), under_way = micro_batches_under_way(simulation.tasks());
  const int64_t step = std::max<int64_t>(1, under_way / (2 * cycle)) * cycle;
  for (int64_t before = step; before + under_way <= work.micro_batches && missing >= cycle; before += step) {
    simulation.run_before(before);
    if (const std::optional<Repetition> found = repetition(simulation, under_way, cycle, missing)) {
      simulation.repeat(*found);
      missing -= found->cycle * found->times;
    }
  }
  simulation.run_before(work.micro_batches);
  return missing;
}

// Enough micro-batches to see a steady state, if it comes soon; the remainder of `cycle` is that of all.
int64_t first_attempt(const PipelineKind& kind, const PipelineWork& work, int64_t cycle) {
  PipelineWork some = work;
  some.micro_batches = work.micro_batches % cycle + (4 * work.stages / cycle + 1) * cycle;
  if (some.micro_batches >= work.micro_batches) return work.micro_batches;
  const int64_t under_way = micro_batches_under_way(kind.tasks(some));
  return std::min(work.micro_batches, work.micro_batches % cycle + (4 * under_way / cycle + 3) * cycle);
}

}  // namespace

std::string why_not(std::string_view schedule, const PipelineWork& work) {
  const PipelineKind& kind = pipeline_kind(schedule);
  if (work.stages < 1 || work.virtual_stages < 1 || work.micro_batches < 1) {
    return fmt::format("{} stages, {} virtual stages, {} micro-batches: expected at least one of each", work.stages,
                       work.virtual_stages, work.micro_batches);
  }
  return kind.why_not(work);
}

PipelineRun run_pipeline(std::string_view schedule, const PipelineWork& work) {
  const PipelineKind& kind = pipeline_kind(schedule);
  check_work(kind, work);
  const int64_t all = work.micro_batches;
  if (kind.all_forward_first && all > 2) return linear_run(kind, work);

  PipelineWork part = work;
  for (part.micro_batches = first_attempt(kind, work, kind.cycle(work));;) {
    PipelineSimulation simulation(kind, part);
    const int64_t left = run_with_repetitions(kind, part, all - part.micro_batches, simulation);
    if (left == 0) return summary(kind, simulation);
    // Those left of the last cycle, or many to wait for a repetition.
    part.micro_batches += std::min(left, part.micro_batches);
  }
}

PipelineTimeline pipeline_events(std::string_view schedule, const PipelineWork& work, int64_t most_events) {
  const PipelineKind& kind = pipeline_kind(schedule);
  check_work(kind, work);
  PipelineWork shown = work;
  constexpr int64_t most_kinds = 3;
  const int64_t cycle = kind.cycle(work), chunks = static_cast<int64_t>(work.chunks.size());
  const int64_t too_many = work.micro_batches - most_events / (most_kinds * chunks);
  if (too_many > 0) shown.micro_batches -= (too_many + cycle - 1) / cycle * cycle;
  while (!why_not(schedule, shown).empty()) shown.micro_batches += cycle;
  PipelineSimulation simulation(kind, shown);
  simulation.run_before(shown.micro_batches);
  PipelineTimeline timeline{.micro_batches = shown.micro_batches};
  for (size_t stage = 0; stage < simulation.tasks().size(); ++stage) {
    const std::vector<PipelineTask>& list = simulation.tasks()[stage];
    for (size_t i = 0; i < list.size(); ++i) {
      const bool has_partner = list[i].pairing == TaskPairing::with_next;
      const double start = simulation.start_of(list[i]) - (has_partner ? simulation.seconds_of(list[i + 1]) : 0);
      timeline.events.push_back({.stage = static_cast<int64_t>(stage),
                                 .chunk = list[i].chunk,
                                 .micro_batch = list[i].micro_batch,
                                 .kind = list[i].kind,
                                 .pairing = list[i].pairing,
                                 .start = start,
                                 .seconds = simulation.seconds_of(list[i])});
    }
  }
  return timeline;
}

int64_t stage_of_chunk(std::string_view schedule, const PipelineWork& work, int64_t chunk, int64_t micro_batch) {
  const PipelineKind& kind = pipeline_kind(schedule);
  return kind.stage_of(work, chunk, micro_batch % kind.model_copies);
}

int64_t model_copies(std::string_view schedule) {
  return pipeline_kind(schedule).model_copies;
}

}  // namespace foretoken
