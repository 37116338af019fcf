#include "training/memory/memory_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

// A plan with some changes made.
struct ChangedPlan {
  TrainingPlan plan;
  TrainingFormats formats;
  std::vector<std::string> changes;  // in words
};

class PlanChanger {
 public:
  PlanChanger(const Model& model, int64_t sequence_length, const MemoryOverheads& overheads, Bytes capacity)
      : model_(model), sequence_length_(sequence_length), overheads_(overheads), capacity_(capacity) {}

  PlanMemory memory(const ChangedPlan& from) const {
    const ModelParts parts = training_parts(model_, sequence_length_, from.plan, from.formats);
    return plan_memory(parts, from.plan, from.formats, overheads_);
  }
  bool fits_device(const ChangedPlan& from) const { return memory(from).most().total() <= capacity_; }

  // Appends what `from` can be changed into, if it stays a plan that can run.
  void offer(std::vector<ChangedPlan>& offers, const ChangedPlan& from, std::string words,
             const std::function<void(ChangedPlan&)>& change) const {
    ChangedPlan changed = from;
    change(changed);
    if (!is_valid_plan(model_, sequence_length_, changed.plan, 0)) return;
    changed.changes.push_back(std::move(words));
    offers.push_back(std::move(changed));
  }

  const Model& model() const { return model_; }
  int64_t layers() const { return static_cast<int64_t>(model_.layers.size()); }

 private:
  const Model& model_;
  int64_t sequence_length_;
  const MemoryOverheads& overheads_;
  Bytes capacity_;
};

using Offers = std::vector<ChangedPlan>;

Offers with_sequence_parallelism(const PlanChanger& changer, const ChangedPlan& from) {
  Offers offers;
  if (from.plan.parallel.tensor > 1 && !from.plan.parallel.sequence) {
    changer.offer(offers, from, "turn on sequence parallelism ({sequence_parallel})",
                  [](ChangedPlan& to) { to.plan.parallel.sequence = true; });
  }
  return offers;
}

Offers with_more_sharding(const PlanChanger& changer, const ChangedPlan& from) {
  Offers offers;
  if (from.plan.sharded_over() == 1) return offers;
  for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
    if (sharding <= from.plan.sharding) continue;
    changer.offer(offers, from,
                  fmt::format("shard {} over data-parallel ranks (ZeRO-{})",
                              sharding == Sharding::optimizer   ? "the optimizer"
                              : sharding == Sharding::gradients ? "the optimizer and gradients"
                                                                : "the optimizer, gradients and parameters",
                              static_cast<int>(sharding)),
                  [&](ChangedPlan& to) { to.plan.sharding = sharding; });
  }
  return offers;
}

// Ranks taken from data parallelism, so that as many devices do.
Offers with_more_ranks(const PlanChanger& changer, const ChangedPlan& from, int64_t ParallelPlan::*axis,
                       const char* field) {
  Offers offers;
  for (const int64_t times : {2, 4}) {
    const int64_t size = from.plan.parallel.*axis * times;
    if (from.plan.parallel.data % times != 0) continue;
    changer.offer(offers, from, fmt::format("{{{}}} {} instead of {}", field, size, from.plan.parallel.*axis),
                  [&](ChangedPlan& to) {
                    to.plan.parallel.*axis = size;
                    to.plan.parallel.data /= times;
                  });
  }
  return offers;
}

Offers with_more_tensor_ranks(const PlanChanger& changer, const ChangedPlan& from) {
  return with_more_ranks(changer, from, &ParallelPlan::tensor, "tensor_model_parallel_size");
}
Offers with_more_stages(const PlanChanger& changer, const ChangedPlan& from) {
  return with_more_ranks(changer, from, &ParallelPlan::pipeline, "pipeline_model_parallel_size");
}
Offers with_more_context_ranks(const PlanChanger& changer, const ChangedPlan& from) {
  return with_more_ranks(changer, from, &ParallelPlan::context, "context_parallel_size");
}

Offers with_smaller_micro_batches(const PlanChanger& changer, const ChangedPlan& from) {
  Offers offers;
  for (int64_t size = from.plan.micro_batch / 2; size >= 1; size /= 2) {
    changer.offer(offers, from, fmt::format("{{micro_batch_size}} {} instead of {}", size, from.plan.micro_batch),
                  [&](ChangedPlan& to) { to.plan.micro_batch = size; });
  }
  return offers;
}

Offers with_optimizer_in_host_memory(const PlanChanger& changer, const ChangedPlan& from) {
  Offers offers;
  if (from.formats.offloaded_optimizer < 1) {
    changer.offer(offers, from, "keep the optimizer in host memory ({optimizer_cpu_offload})",
                  [](ChangedPlan& to) { to.formats.offloaded_optimizer = 1; });
  }
  return offers;
}

// Selective; as few layers of each chunk as will do; all.
Offers with_recomputation(const PlanChanger& changer, const ChangedPlan& from) {
  Offers offers;
  if (from.plan.recompute == Recompute::none && !from.formats.saved.flash_attention) {
    changer.offer(offers, from, "recompute the attention core ({recompute_granularity} selective)",
                  [](ChangedPlan& to) { to.plan.recompute = Recompute::selective; });
  }
  const LayerModules modules = cheap_modules(changer.model());
  if (from.plan.recompute == Recompute::none && from.formats.saved.flash_attention) {
    std::string names = layer_modules_text(modules);
    std::erase(names, ' ');
    changer.offer(offers, from, fmt::format("recompute cheap modules ({{recompute_modules}} {})", names),
                  [&](ChangedPlan& to) {
                    to.plan.recompute = Recompute::selective;
                    to.plan.recompute_modules = modules;
                  });
  }
  const bool partly = from.plan.recompute == Recompute::full && from.plan.recompute_layers > 0;
  if (from.plan.recompute == Recompute::full && !partly) return offers;
  int64_t largest = 0;
  for (const ChunkLayers& chunk : chunk_layers(from.plan, changer.layers())) {
    largest = std::max(largest, chunk.count);
  }
  for (int64_t count = partly ? from.plan.recompute_layers + 1 : 1; count < largest; ++count) {
    Offers some;
    changer.offer(some, from,
                  fmt::format("recompute {} of up to {} layers of each chunk ({{recompute_granularity}} full "
                              "{{recompute_method}} block {{recompute_num_layers}} {})",
                              count, largest, count),
                  [&](ChangedPlan& to) {
                    to.plan.recompute = Recompute::full;
                    to.plan.recompute_layers = count;
                  });
    if (some.empty() || !changer.fits_device(some.front())) continue;
    offers.push_back(std::move(some.front()));
    break;
  }
  changer.offer(offers, from, "recompute all layers ({recompute_granularity} full)", [](ChangedPlan& to) {
    to.plan.recompute = Recompute::full;
    to.plan.recompute_layers = 0;
  });
  return offers;
}

// Recomputation comes last: how many layers it takes depends on all the rest.
constexpr Offers (*kinds_of_change[])(const PlanChanger&, const ChangedPlan&) = {
    with_sequence_parallelism, with_more_sharding,         with_more_tensor_ranks,        with_more_stages,
    with_more_context_ranks,   with_smaller_micro_batches, with_optimizer_in_host_memory, with_recomputation,
};

// Every way to make `left` changes of different kinds, from `first_kind` on.
void collect_changes(const PlanChanger& changer, const ChangedPlan& from, size_t first_kind, int left,
                     std::vector<ChangedPlan>& found) {
  if (left == 0) {
    if (changer.fits_device(from)) found.push_back(from);
    return;
  }
  for (size_t kind = first_kind; kind < std::size(kinds_of_change); ++kind) {
    for (const ChangedPlan& offer : kinds_of_change[kind](changer, from)) {
      collect_changes(changer, offer, kind + 1, left - 1, found);
    }
  }
}

std::string time_text(Seconds before, Seconds after) {
  const double percent = 100 * (after / before - 1);
  if (percent < 0) return fmt::format("{:.1f}% less time", -percent);
  return fmt::format("{:.1f}% more time", percent);
}

}  // namespace

std::vector<MemoryAdvice> memory_advice(const Model& model, int64_t sequence_length, const TrainingPlan& plan,
                                        const TrainingFormats& formats, const MemoryOverheads& overheads,
                                        Bytes capacity, const AdvisedStep& step) {
  ensure(step != nullptr, "advice needs a step time to rank by");
  const PlanChanger changer(model, sequence_length, overheads, overheads.usable * capacity);
  const ChangedPlan start{.plan = plan, .formats = formats, .changes = {}};
  if (changer.fits_device(start)) return {};
  constexpr int most_changes = 3;
  std::vector<ChangedPlan> found;
  for (int changes = 1; changes <= most_changes && found.empty(); ++changes) {
    collect_changes(changer, start, 0, changes, found);
  }
  const Seconds before = step(plan, formats, changer.memory(start));
  std::vector<MemoryAdvice> advice;
  for (ChangedPlan& one : found) {
    const PlanMemory memory = changer.memory(one);
    const Bytes need = memory.most().total();
    const Seconds after = step(one.plan, one.formats, memory);
    std::string sentence = fmt::format("{}: {} of {}, {}", fmt::join(one.changes, " and "), bytes_text(need.value()),
                                       bytes_text(capacity.value()), time_text(before, after));
    advice.push_back({.sentence = std::move(sentence),
                      .plan = std::move(one.plan),
                      .formats = one.formats,
                      .need = need,
                      .step = after});
  }
  std::stable_sort(advice.begin(), advice.end(),
                   [](const MemoryAdvice& a, const MemoryAdvice& b) { return a.step < b.step; });
  return advice;
}

}  // namespace foretoken
