#include "plan/training_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "plan/megatron_flags.h"
#include "training/layer_split.h"
#include "training/memory/host_memory_time.h"

namespace foretoken {
namespace {

// Of one choice of tensor, context, expert and pipeline ranks: more than that are never estimated.
constexpr size_t most_kept = 16;

struct JudgedPlan {
  TrainingPlan plan;
  double seconds = 0;
  double ranked = 0;  // seconds that plans are ranked by
  Bytes memory;
  HostMemoryTime host;  // among the seconds
};

double cautious(double seconds, const TrainingPlan& plan, int64_t fast_domain) {
  return plan.parallel.expert > fast_domain ? expert_network_margin * seconds : seconds;
}

bool is_faster(const JudgedPlan& a, const JudgedPlan& b) {
  return a.ranked < b.ranked;
}

// Equal plans stay in the order they came, so that results do not depend on threads.
void keep_fastest(std::vector<JudgedPlan>& kept, const JudgedPlan& one) {
  if (kept.size() == most_kept && !is_faster(one, kept.back())) return;
  kept.insert(std::upper_bound(kept.begin(), kept.end(), one, is_faster), one);
  if (kept.size() > most_kept) kept.pop_back();
}

// Least memory first; each is faster than all before it.
template <class Plan, class SecondsOf>
void keep_frontier(std::vector<Plan>& frontier, const Plan& one, const SecondsOf& seconds_of) {
  const auto place = std::upper_bound(frontier.begin(), frontier.end(), one,
                                      [](const Plan& a, const Plan& b) { return a.memory < b.memory; });
  if (place != frontier.begin() && seconds_of(*(place - 1)) <= seconds_of(one)) return;
  auto first_beaten = place;
  if (place != frontier.begin() && (place - 1)->memory == one.memory) --first_beaten;
  auto last_beaten = place;
  while (last_beaten != frontier.end() && seconds_of(*last_beaten) >= seconds_of(one)) ++last_beaten;
  frontier.insert(frontier.erase(first_beaten, last_beaten), one);
}

// What was found among plans with the same tensor, context and expert ranks.
struct Findings {
  std::map<int64_t, std::vector<JudgedPlan>> kept;  // by pipeline ranks; those that fit
  std::vector<JudgedPlan> frontier;
  std::optional<JudgedPlan> smallest;  // of those that do not fit; without seconds
  int64_t looked_at = 0, too_large = 0;
};

// Looks at plans one by one. Not safe to share between threads.
class PlanJudge {
 public:
  PlanJudge(const TrainingSearch& search, const PlanSpace& space)
      : search_(search), space_(space), model_(search.job, search.stack, search.machine) {}

  Findings judge(const RankSizes& sizes) {
    Findings findings;
    std::map<int64_t, ModelParts> parts;  // by micro-batch
    for (const TrainingPlan& plan : pipeline_plans(space_, sizes)) {
      auto found = parts.find(plan.micro_batch);
      if (found == parts.end()) found = parts.emplace(plan.micro_batch, parts_of(plan)).first;
      judge_pipeline(plan, found->second, findings);
    }
    return findings;
  }

 private:
  ModelParts parts_of(TrainingPlan plan) const {
    plan.parallel = without_needless_replicas(plan.parallel);
    return training_parts(search_.job.model, search_.job.sequence_length, plan, search_.formats);
  }

  void judge_pipeline(const TrainingPlan& pipeline, const ModelParts& parts, Findings& findings) {
    const StageChunks chunks = stage_chunks(pipeline, static_cast<int64_t>(parts.layers.size()));
    for (TrainingPlan& plan : memory_plans(space_, pipeline)) {
      ++findings.looked_at;
      const PlanMemory stages = plan_memory(parts, chunks, plan, search_.formats, search_.overheads);
      const Bytes memory = stages.most().total();
      if (search_.capacity && memory > search_.overheads.usable * *search_.capacity) {
        ++findings.too_large;
        if (!findings.smallest || memory < findings.smallest->memory) {
          findings.smallest = JudgedPlan{.plan = std::move(plan), .memory = memory};
        }
        continue;
      }
      const IterationModel::QuickStep quick = model_.quick_step(plan);
      const HostMemoryTime host = host_memory_time(stages, plan, search_.formats, *quick.pipeline, search_.host);
      const double seconds = host.step_seconds(quick.seconds, quick.optimizer);
      const double ranked = cautious(seconds, plan, search_.fast_domain);
      const JudgedPlan judged{
          .plan = std::move(plan), .seconds = seconds, .ranked = ranked, .memory = memory, .host = host};
      keep_fastest(findings.kept[pipeline.parallel.pipeline], judged);
      keep_frontier(findings.frontier, judged, [](const JudgedPlan& one) { return one.seconds; });
    }
  }

  const TrainingSearch& search_;
  const PlanSpace& space_;
  IterationModel model_;
};

// Every choice of sizes on its own, so that the order does not matter.
std::vector<Findings> judge_all(const TrainingSearch& search, const PlanSpace& space,
                                const std::vector<RankSizes>& sizes) {
  std::vector<Findings> findings(sizes.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    PlanJudge judge(search, space);
    for (size_t i = next++; i < sizes.size(); i = next++) findings[i] = judge.judge(sizes[i]);
  };
  run_on_threads(std::max(1U, search.threads), work);
  return findings;
}

// Estimates in full, the most promising first.
class PlanRanking {
 public:
  explicit PlanRanking(const TrainingSearch& search)
      : search_(search), model_(search.job, search.stack, search.machine) {}

  // Formulas never say more than an estimate: once they say more than the last plan that is wanted takes, the rest
  // cannot be among the fastest.
  std::vector<RankedPlan> fastest(std::vector<JudgedPlan> candidates) {
    std::stable_sort(candidates.begin(), candidates.end(), is_faster);
    std::vector<RankedPlan> best;
    for (const JudgedPlan& candidate : candidates) {
      if (best.size() >= search_.best && candidate.ranked >= rank_of(best.back())) break;
      take(best, ranked(candidate));
    }
    return best;
  }

  std::vector<RankedPlan> frontier(const std::vector<JudgedPlan>& candidates) {
    std::vector<RankedPlan> frontier;
    for (const JudgedPlan& candidate : candidates) {
      keep_frontier(frontier, ranked(candidate), [](const RankedPlan& one) { return one.seconds.value; });
    }
    return frontier;
  }

  int64_t estimated() const { return estimated_; }

 private:
  static auto group_of(const RankedPlan& one) {
    const ParallelPlan& p = one.plan.parallel;
    return std::tuple(p.tensor, p.context, p.expert, p.pipeline);
  }

  double rank_of(const RankedPlan& one) const { return cautious(one.seconds.value, one.plan, search_.fast_domain); }

  RankedPlan ranked(const JudgedPlan& candidate) {
    ++estimated_;
    IterationEstimate estimate = model_.estimate(candidate.plan);
    add_host_memory_time(estimate, candidate.host);
    return {.plan = candidate.plan,
            .seconds = estimate.seconds,
            .memory = candidate.memory,
            .tokens_per_second_per_device = estimate.tokens_per_second_per_device};
  }

  // The fastest of each group alone stays.
  void take(std::vector<RankedPlan>& best, RankedPlan one) const {
    const auto same = std::find_if(best.begin(), best.end(),
                                   [&](const RankedPlan& other) { return group_of(other) == group_of(one); });
    if (same != best.end()) {
      if (rank_of(*same) <= rank_of(one)) return;
      best.erase(same);
    }
    const auto place = std::upper_bound(best.begin(), best.end(), one, [&](const RankedPlan& a, const RankedPlan& b) {
      return rank_of(a) < rank_of(b);
    });
    best.insert(place, std::move(one));
    if (best.size() > search_.best) best.pop_back();
  }

  const TrainingSearch& search_;
  IterationModel model_;
  int64_t estimated_ = 0;
};

// "{global_batch_size} 32, {tensor_model_parallel_size} 3": what plans must have.
std::string fixed_sizes_text(const TrainingSearch& search) {
  const PlanChoices& choices = search.choices;
  const std::pair<const char*, std::optional<int64_t>> sizes[] = {
      {"tensor_model_parallel_size", choices.tensor},
      {"pipeline_model_parallel_size", choices.pipeline},
      {"num_virtual_stages_per_pipeline_rank", choices.virtual_stages},
      {"context_parallel_size", choices.context},
      {"expert_model_parallel_size", choices.expert},
      {"micro_batch_size", choices.micro_batch}};
  std::string text = fmt::format("{{global_batch_size}} {}", search.global_batch);
  for (const auto& [field, size] : sizes) {
    if (size) text += fmt::format(", {{{}}} {}", field, *size);
  }
  return text;
}

[[noreturn]] void complain(const TrainingSearch& search, int64_t looked_at, const std::optional<JudgedPlan>& smallest) {
  if (!smallest) {
    throw InputError(
        {.source = "search of training plans",
         .value = fmt::format("no plan on {} devices divides evenly with {}", search.devices, fixed_sizes_text(search)),
         .expected = "a batch divisible by the number of data-parallel replicas, and layers and heads divisible by the "
                     "parallel sizes; or fix fewer sizes"});
  }
  throw NoTrainingPlanFits({.looked_at = looked_at,
                            .plan = smallest->plan,
                            .memory = smallest->memory,
                            .capacity = search.overheads.usable * search.capacity.value()});
}

}  // namespace

const RankedPlan* faster_than_first(const TrainingSearchResult& result) {
  const auto fastest =
      std::min_element(result.best.begin(), result.best.end(),
                       [](const RankedPlan& a, const RankedPlan& b) { return a.seconds.value < b.seconds.value; });
  return fastest == result.best.begin() ? nullptr : &*fastest;
}

NoTrainingPlanFits::NoTrainingPlanFits(NearestPlan nearest)
    : InputError({.source = "search of training plans",
                  .value = fmt::format("none of {} plans fits into {}; the nearest needs {}:\n  {}", nearest.looked_at,
                                       bytes_text(nearest.capacity.value()), bytes_text(nearest.memory.value()),
                                       megatron_flags(nearest.plan)),
                  .expected = "more devices, shorter sequences, a smaller model, or fewer fixed sizes"}),
      nearest_(std::move(nearest)) {}

TrainingSearchResult search_training_plans(const TrainingSearch& search) {
  PlanSpace space{.model = &search.job.model,
                  .sequence_length = search.job.sequence_length,
                  .devices = search.devices,
                  .global_batch = search.global_batch,
                  .fast_domain = search.fast_domain,
                  .schedules = search.stack.schedules,
                  .shardings = search.stack.shardings,
                  .recomputes = search.stack.recomputes,
                  .shards_pipelines = search.stack.keeps_gathered_in_pipelines,
                  .keeps_scores = !search.formats.saved.flash_attention,
                  .start = search.start,
                  .layouts = balanced_layouts(search.job.model, search.job.sequence_length,
                                              static_cast<int64_t>(search.job.model.layers.size()) + 2),
                  .choices = search.choices};
  if (!search.stack.recomputes_some_layers) space.choices.parts_of_layers = 1;
  TrainingSearchResult result;
  std::vector<JudgedPlan> candidates, frontier;
  std::optional<JudgedPlan> smallest;
  for (Findings& findings : judge_all(search, space, rank_sizes(space))) {
    result.looked_at += findings.looked_at;
    result.too_large += findings.too_large;
    for (const auto& [pipeline, kept] : findings.kept) candidates.insert(candidates.end(), kept.begin(), kept.end());
    for (const JudgedPlan& one : findings.frontier) {
      keep_frontier(frontier, one, [](const JudgedPlan& plan) { return plan.seconds; });
    }
    if (findings.smallest && (!smallest || findings.smallest->memory < smallest->memory)) {
      smallest = std::move(findings.smallest);
    }
  }
  if (candidates.empty()) complain(search, result.looked_at, smallest);
  PlanRanking ranking(search);
  result.best = ranking.fastest(std::move(candidates));
  result.frontier = ranking.frontier(frontier);
  result.estimated = ranking.estimated();
  constexpr double little_slower = 1.03, much_less = 0.85;
  for (const RankedPlan& one : result.frontier) {
    const RankedPlan& fastest = result.best.front();
    if (one.seconds.value > little_slower * fastest.seconds.value) continue;
    if (one.memory <= much_less * fastest.memory) result.roomy = one;
    break;
  }
  return result;
}

namespace {

std::optional<TrainingSearchResult> plans_that_fit(const TrainingSearch& search) {
  try {
    return search_training_plans(search);
  } catch (const NoTrainingPlanFits&) {
    return std::nullopt;
  }
}

}  // namespace

TrainingSearchResult plan_training(const TrainingQuestion& question, const MachineModels& machine,
                                   const TrainingPlanOptions& options) {
  TrainingSearch search{.job = question.job,
                        .stack = question.stack,
                        .machine = machine.machine(),
                        .devices = question.devices,
                        .global_batch = question.plan.global_batch,
                        .fast_domain = devices_per_node(question.cluster),
                        .formats = question.formats,
                        .overheads = question.overheads,
                        .capacity = training_capacity(machine.device()),
                        .host = host_memory_link(question.cluster.node, question.devices),
                        .choices = options.choices,
                        .best = options.best,
                        .threads = options.threads};
  search.start.context_exchange = question.plan.context_exchange;
  search.start.dispatcher = question.plan.dispatcher;
  search.start.overlaps = question.plan.overlaps;
  try {
    return search_training_plans(search);
  } catch (const NoTrainingPlanFits&) {
    if (!options.may_offload || search.formats.offloaded_optimizer > 0) throw;
    search.formats.offloaded_optimizer = 1;
    std::optional<TrainingSearchResult> found = plans_that_fit(search);
    if (!found) throw;
    found->offloads_optimizer = true;
    return *std::move(found);
  }
}

}  // namespace foretoken
