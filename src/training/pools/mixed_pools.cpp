#include "training/pools/mixed_pools.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// No run on GPUs of two kinds was at hand to fit: what such jobs take beyond their slowest pool. Assumed.
constexpr double mixed_spread = 1.1;

Estimate as_mixed(const Estimate& seconds) {
  return {.value = seconds.value,
          .low = seconds.low / mixed_spread,
          .high = seconds.high * mixed_spread,
          .kind = std::max(seconds.kind, Confidence::extrapolated)};
}

double part_of(const IterationEstimate& iteration, TimePart part) {
  return iteration.parts[static_cast<size_t>(part)].value;
}

// The common parts of both axes.
class PoolModels {
 public:
  explicit PoolModels(std::span<const TrainingPool> pools) : pools_(pools) {
    ensure(!pools.empty(), "a job has GPUs");
    for (const TrainingPool& pool : pools) {
      models_.emplace_back(pool.question.job, pool.question.stack, pool.machine->machine());
    }
  }

  size_t size() const { return pools_.size(); }
  const TrainingPool& pool(size_t index) const { return pools_[index]; }
  const TrainingPlan& plan() const { return pools_.front().question.plan; }
  double seconds(size_t pool, const TrainingPlan& plan) { return models_[pool].seconds(plan); }
  IterationEstimate estimate(size_t pool, const TrainingPlan& plan) {
    check(pool, plan);
    return models_[pool].estimate(plan);
  }
  ChunkTimes first_layer(size_t pool, const TrainingPlan& plan) { return models_[pool].first_layer(plan); }

  PlanMemory memory(size_t pool, const TrainingPlan& plan) const {
    const TrainingQuestion& question = pools_[pool].question;
    const ModelParts parts = training_parts(question.job.model, question.job.sequence_length, plan, question.formats);
    return plan_memory(parts, plan, question.formats, question.overheads);
  }

  void check(size_t pool, const TrainingPlan& plan) const {
    const TrainingQuestion& question = pools_[pool].question;
    check_plan(question.job.model, question.job.sequence_length, plan, total_devices(question.cluster));
  }

  void judge(size_t pool, const TrainingMemory& memory, PoolWork& work) const {
    work.memory = memory;
    work.capacity = training_capacity(pools_[pool].machine->device());
    if (!work.capacity) return;
    work.verdict = memory_verdict(memory.total(), *work.capacity, pools_[pool].question.overheads);
  }

  // How many units of so many devices each pool has.
  std::vector<int64_t> units(int64_t devices, std::string_view unit) const {
    std::vector<int64_t> result;
    for (const TrainingPool& pool : pools_) {
      if (pool.devices % devices != 0) {
        throw InputError({.field = "pool",
                          .value = fmt::format("{} {}", pool.devices, pool.machine->device().name),
                          .expected = fmt::format("a multiple of {} GPUs (the GPUs of one {})", devices, unit)});
      }
      result.push_back(pool.devices / devices);
    }
    return result;
  }

 private:
  std::span<const TrainingPool> pools_;
  std::vector<IterationModel> models_;
};

void finish(MixedEstimate& result, const PoolModels& models) {
  for (size_t i = 0; i < result.pools.size(); ++i) {
    if (result.pools[i].seconds.value > result.pools[result.slowest].seconds.value) result.slowest = i;
    result.fits = result.fits && result.pools[i].verdict != MemoryVerdict::too_large;
  }
  result.seconds = as_mixed(result.seconds);
  const auto tokens = static_cast<double>(models.plan().global_batch * models.pool(0).question.job.sequence_length);
  result.tokens_per_second = tokens / result.seconds.value;
}

// Replicas of different kinds.
class MixedReplicas {
 public:
  explicit MixedReplicas(PoolModels& models)
      : models_(models),
        replicas_(models.units(models.plan().devices() / models.plan().parallel.data, "replica")),
        micro_batches_(models.plan().global_batch / models.plan().micro_batch) {
    const TrainingPlan& plan = models.plan();
    if (plan.global_batch % plan.micro_batch != 0 || micro_batches_ < plan.parallel.data) {
      throw InputError(
          {.field = "global_batch_size",
           .value = fmt::format("{}", plan.global_batch),
           .expected = fmt::format("a multiple of the micro-batch size {}, and at least {} (one micro-batch "
                                   "for each replica)",
                                   plan.micro_batch, plan.micro_batch * plan.parallel.data)});
    }
  }

  MixedEstimate estimate() {
    MixedEstimate result{.axis = PoolAxis::data};
    const std::vector<int64_t> each = share_out();
    const int64_t even = (micro_batches_ + models_.plan().parallel.data - 1) / models_.plan().parallel.data;
    double without_data = 0, data = 0;
    for (size_t i = 0; i < models_.size(); ++i) {
      const TrainingPlan plan = plan_with(each[i]);
      const IterationEstimate iteration = models_.estimate(i, plan);
      PoolWork work{.replicas = replicas_[i], .micro_batches = each[i], .seconds = iteration.seconds};
      models_.judge(i, models_.memory(i, plan).most(), work);
      const double reduce = part_of(iteration, TimePart::data);
      without_data = std::max(without_data, iteration.seconds.value - reduce);
      data = std::max(data, reduce);
      result.seconds = i == 0 ? iteration.seconds : larger_of(result.seconds, iteration.seconds);
      result.even_seconds = std::max(result.even_seconds, models_.seconds(i, plan_with(even)));
      result.pools.push_back(std::move(work));
    }
    result.seconds = scaled(result.seconds, (without_data + data) / result.seconds.value);
    finish(result, models_);
    return result;
  }

 private:
  // Every replica with so many micro-batches.
  TrainingPlan plan_with(int64_t micro_batches) const {
    TrainingPlan plan = models_.plan();
    plan.global_batch = plan.micro_batch * plan.parallel.data * micro_batches;
    return plan;
  }

  // What a micro-batch more costs a pool, and what a step costs besides.
  struct Line {
    double once = 0, each = 0;
    int64_t within(double seconds) const {
      return std::max<int64_t>(1, static_cast<int64_t>(std::floor((seconds - once) / each)));
    }
  };

  Line line_of(size_t pool) {
    const int64_t few = std::max<int64_t>(1, micro_batches_ / models_.plan().parallel.data);
    const double at_few = models_.seconds(pool, plan_with(few)), at_twice = models_.seconds(pool, plan_with(2 * few));
    const double each = (at_twice - at_few) / static_cast<double>(few);
    return {.once = at_few - each * static_cast<double>(few), .each = each};
  }

  int64_t done_by(const std::vector<int64_t>& each) const {
    int64_t done = 0;
    for (size_t i = 0; i < each.size(); ++i) done += replicas_[i] * each[i];
    return done;
  }

  // Micro-batches of a replica in each pool, such that all are done soonest.
  std::vector<int64_t> share_out() {
    std::vector<Line> lines;
    for (size_t i = 0; i < models_.size(); ++i) lines.push_back(line_of(i));
    const auto within = [&](double seconds) {
      std::vector<int64_t> each;
      for (const Line& line : lines) each.push_back(line.within(seconds));
      return each;
    };
    double low = 0, high = 0;
    for (const Line& line : lines) high = std::max(high, line.once + line.each * static_cast<double>(micro_batches_));
    constexpr int halvings = 60;
    for (int i = 0; i < halvings; ++i) {
      const double middle = (low + high) / 2;
      (done_by(within(middle)) >= micro_batches_ ? high : low) = middle;
    }
    std::vector<int64_t> each = within(high);
    // What is left over, the slowest need not do.
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<size_t> order(each.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = i;
      const auto end = [&](size_t i) { return lines[i].once + lines[i].each * static_cast<double>(each[i]); };
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return end(a) > end(b); });
      for (const size_t pool : order) {
        if (each[pool] < 2 || done_by(each) - replicas_[pool] < micro_batches_) continue;
        --each[pool];
        changed = true;
        break;
      }
    }
    return each;
  }

  PoolModels& models_;
  std::vector<int64_t> replicas_;
  int64_t micro_batches_;
};

// Stages of different kinds.
class MixedStages {
 public:
  explicit MixedStages(PoolModels& models)
      : models_(models), stages_(models.units(models.plan().devices() / models.plan().stages(), "stage")) {
    const TrainingPlan& plan = models.plan();
    if (plan.virtual_stages > 1 || model_copies(plan.schedule) > 1) {
      throw InputError(
          {.field = "pipeline_schedule",
           .value = plan.schedule,
           .expected = "a schedule with one chunk of layers per stage, for example 1f1b (pools have whole stages)"});
    }
    for (size_t i = 0; i < stages_.size(); ++i) pool_of_.insert(pool_of_.end(), static_cast<size_t>(stages_[i]), i);
    TrainingPlan even = plan;
    even.layout.clear();
    models.check(0, even);
    for (const ChunkLayers& chunk : chunk_layers(even, layer_count())) layers_.push_back(chunk.count);
  }

  MixedEstimate estimate() {
    MixedEstimate result{.axis = PoolAxis::pipeline};
    result.even_seconds = run(layers_).seconds;
    layers_ = by_speed();
    improve();
    make_room();
    const Run final = run(layers_);
    const TrainingPlan plan = plan_with(layers_);
    size_t stage = 0;
    for (size_t i = 0; i < models_.size(); ++i) {
      const IterationEstimate whole = models_.estimate(i, plan);
      const auto stages = static_cast<size_t>(stages_[i]);
      PoolWork work{.replicas = plan.parallel.data,
                    .micro_batches = plan.micro_batches(),
                    .first_stage = static_cast<int64_t>(stage)};
      double busiest = 0;
      const PlanMemory memory = models_.memory(i, plan);
      TrainingMemory fullest = memory.stages[stage];
      for (size_t end = stage + stages; stage < end; ++stage) {
        work.layers.push_back(layers_[stage]);
        busiest = std::max(busiest, final.run.busy[stage]);
        if (memory.stages[stage].total() > fullest.total()) fullest = memory.stages[stage];
      }
      models_.judge(i, fullest, work);
      work.seconds = scaled(whole.seconds, (busiest + final.once) / whole.seconds.value);
      const Estimate as_whole = scaled(whole.seconds, final.seconds / whole.seconds.value);
      result.seconds = i == 0 ? as_whole : larger_of(result.seconds, as_whole);
      result.pools.push_back(std::move(work));
    }
    finish(result, models_);
    return result;
  }

 private:
  struct Run {
    PipelineRun run;
    double once = 0;  // reductions, optimizer and the rest of a step
    double seconds = 0;
  };

  int64_t layer_count() const { return static_cast<int64_t>(models_.pool(0).question.job.model.layers.size()); }

  TrainingPlan plan_with(const std::vector<int64_t>& layers) const {
    TrainingPlan plan = models_.plan();
    plan.first_stage_layers = plan.last_stage_layers = std::nullopt;
    plan.embedding_in_split = plan.loss_in_split = false;
    plan.layout.clear();
    int64_t first = 0;
    for (const int64_t count : layers) {
      plan.layout.push_back({.first = first, .count = count});
      first += count;
    }
    plan.layout.front().embedding = true;
    plan.layout.back().head = true;
    plan.layout.back().drafts = static_cast<int64_t>(models_.pool(0).question.job.model.draft_layers.size());
    return plan;
  }

  // Each stage as its pool runs it.
  Run run(const std::vector<int64_t>& layers) {
    const TrainingPlan plan = plan_with(layers);
    Run result;
    PipelineWork mixed;
    for (size_t i = 0; i < models_.size(); ++i) {
      const IterationEstimate whole = models_.estimate(i, plan);
      if (i == 0) mixed = whole.pipeline;
      for (size_t stage = 0; stage < pool_of_.size(); ++stage) {
        if (pool_of_[stage] == i) mixed.chunks[stage] = whole.pipeline.chunks[stage];
      }
      mixed.send_forward = std::max(mixed.send_forward, whole.pipeline.send_forward);
      mixed.send_backward = std::max(mixed.send_backward, whole.pipeline.send_backward);
      result.once = std::max(result.once, part_of(whole, TimePart::data) + part_of(whole, TimePart::optimizer) +
                                              part_of(whole, TimePart::step));
    }
    result.run = run_pipeline(plan.schedule, mixed);
    result.seconds = result.run.seconds + result.once;
    return result;
  }

  // Layers in proportion to what a stage does of them in a second.
  std::vector<int64_t> by_speed() {
    std::vector<double> speeds;
    for (const size_t pool : pool_of_) speeds.push_back(1 / models_.first_layer(pool, plan_with(layers_)).sum());
    std::vector<int64_t> layers(speeds.size(), 1);
    for (int64_t left = layer_count() - static_cast<int64_t>(layers.size()); left > 0; --left) {
      size_t least = 0;
      const auto after = [&](size_t stage) { return static_cast<double>(layers[stage] + 1) / speeds[stage]; };
      for (size_t stage = 1; stage < layers.size(); ++stage) {
        if (after(stage) < after(least)) least = stage;
      }
      ++layers[least];
    }
    return layers;
  }

  // Embedding and head weigh too: moves a layer from the busiest stage to the idlest while that helps.
  void improve() {
    Run best = run(layers_);
    for (int64_t moves = 0; moves < layer_count(); ++moves) {
      const auto& busy = best.run.busy;
      const auto from = static_cast<size_t>(std::max_element(busy.begin(), busy.end()) - busy.begin());
      const auto to = static_cast<size_t>(std::min_element(busy.begin(), busy.end()) - busy.begin());
      std::vector<int64_t> moved = layers_;
      if (moved[from] < 2) return;
      --moved[from], ++moved[to];
      Run other = run(moved);
      if (other.seconds >= best.seconds) return;
      layers_ = std::move(moved), best = std::move(other);
    }
  }

  // Bytes that each stage leaves free; less than nothing where it does not fit. Infinite where the capacity is not
  // known.
  std::vector<double> room(const std::vector<int64_t>& layers) const {
    const TrainingPlan plan = plan_with(layers);
    std::vector<double> free(pool_of_.size(), std::numeric_limits<double>::infinity());
    for (size_t i = 0; i < models_.size(); ++i) {
      const std::optional<Bytes> capacity = training_capacity(models_.pool(i).machine->device());
      if (!capacity) continue;
      const PlanMemory memory = models_.memory(i, plan);
      const double usable = models_.pool(i).question.overheads.usable * capacity->value();
      for (size_t stage = 0; stage < free.size(); ++stage) {
        if (pool_of_[stage] == i) free[stage] = usable - memory.stages[stage].total().value();
      }
    }
    return free;
  }

  // Moves layers from stages that do not fit to the one with most room, while that leaves all of it in its memory.
  void make_room() {
    for (int64_t moves = 0; moves < layer_count(); ++moves) {
      const std::vector<double> free = room(layers_);
      const auto from = static_cast<size_t>(std::min_element(free.begin(), free.end()) - free.begin());
      const auto to = static_cast<size_t>(std::max_element(free.begin(), free.end()) - free.begin());
      if (free[from] >= 0 || layers_[from] < 2) return;
      std::vector<int64_t> moved = layers_;
      --moved[from], ++moved[to];
      if (room(moved)[to] < 0) return;
      layers_ = std::move(moved);
    }
  }

  PoolModels& models_;
  std::vector<int64_t> stages_;
  std::vector<size_t> pool_of_;  // by stage
  std::vector<int64_t> layers_;  // by stage
};

}  // namespace

MixedEstimate estimate_mixed(std::span<const TrainingPool> pools, PoolAxis axis) {
  PoolModels models(pools);
  return axis == PoolAxis::data ? MixedReplicas(models).estimate() : MixedStages(models).estimate();
}

}  // namespace foretoken
