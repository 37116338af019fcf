#include "training/scale/rlhf_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/normal_distribution.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

// Add your line here; the name is what users type.
constexpr RlhfAlgorithm algorithm_list[] = {
    {.name = "ppo",
     .summary = "actor, critic, reference and reward models; one answer per prompt",
     .critic = true,
     .samples_per_prompt = 1},
    {.name = "grpo",
     .summary = "no critic: answers to the same prompt are compared with each other (arXiv 2402.03300)",
     .critic = false,
     .samples_per_prompt = 16},
};

double log_median(const ResponseLengths& lengths) {
  return portable_log(lengths.mean) - 0.5 * lengths.sigma * lengths.sigma;
}

double iteration_tokens(const RlhfPlan& plan) {
  return plan.samples() * (plan.prompt_tokens + plan.responses.mean_tokens());
}

// The actor's own probabilities are computed again: those of the engine differ in rounding.
double scoring_device_seconds(const RlhfPlan& plan) {
  double of_token = plan.actor.forward_device_seconds;
  if (plan.algorithm.critic) of_token += plan.critic.forward_device_seconds;
  if (plan.algorithm.reference) of_token += plan.reference.forward_device_seconds;
  if (plan.algorithm.reward_model) of_token += plan.reward.forward_device_seconds;
  return of_token * iteration_tokens(plan);
}

double training_device_seconds(const RlhfPlan& plan) {
  double of_token = plan.actor.training_device_seconds;
  if (plan.algorithm.critic) of_token += plan.critic.training_device_seconds;
  return of_token * iteration_tokens(plan) * static_cast<double>(plan.algorithm.epochs);
}

[[noreturn]] void refuse(std::string field, std::string value, std::string expected) {
  throw InputError({.field = std::move(field), .value = std::move(value), .expected = std::move(expected)});
}

bool can_split(const RlhfPlan& plan, int64_t rollout_devices) {
  return rollout_devices >= plan.engine.devices && rollout_devices < plan.devices &&
         rollout_devices % plan.engine.devices == 0 && (plan.devices - rollout_devices) % plan.trainer_unit == 0;
}

void check_rlhf_plan(const RlhfPlan& plan) {
  ensure(plan.prompts > 0 && plan.engine.devices > 0 && plan.engine.most_sequences > 0, "a loop generates answers");
  if (plan.placement == RlhfPlacement::colocated && plan.timing == RlhfTiming::one_step_behind) {
    refuse("one_step_behind", "colocated", "separate pools, because GPUs that generate cannot train at the same time");
  }
  const bool splits = plan.placement == RlhfPlacement::split;
  const int64_t least = plan.engine.devices + (splits ? plan.trainer_unit : 0);
  if (plan.devices < least) {
    refuse("devices", std::to_string(plan.devices),
           fmt::format("at least {}: one engine uses {}{}", least, plan.engine.devices,
                       splits ? fmt::format(", and one copy of the model in training {}", plan.trainer_unit) : ""));
  }
}

void check_rollout_devices(const RlhfPlan& plan, int64_t rollout_devices) {
  if (can_split(plan, rollout_devices)) return;
  const std::string trainers =
      plan.trainer_unit > 1 ? fmt::format(", which leaves a multiple of {} for training", plan.trainer_unit) : "";
  refuse("rollout_devices", std::to_string(rollout_devices),
         fmt::format("a multiple of the {} GPUs of an engine, and fewer than all {} GPUs{}", plan.engine.devices,
                     plan.devices, trainers));
}

struct StageSeconds {
  double generation = 0, scoring = 0, training = 0, weights = 0;
};

StageSeconds stage_seconds(const RlhfPlan& plan, int64_t rollout_devices, int64_t training_devices) {
  const auto trainers = static_cast<double>(training_devices);
  return {.generation = rollout_seconds(plan, rollout_devices),
          .scoring = scoring_device_seconds(plan) / trainers,
          .training = training_device_seconds(plan) / trainers,
          .weights = plan.weight_bytes / plan.sync_bytes_per_second};
}

RlhfIteration colocated_iteration(const RlhfPlan& plan) {
  const StageSeconds stages = stage_seconds(plan, plan.devices, plan.devices);
  const double switching = 2 * plan.switched_bytes_per_device / plan.host_bytes_per_second;
  RlhfIteration iteration;
  iteration.parts = {
      {.name = "generation", .seconds = stages.generation}, {.name = "scoring", .seconds = stages.scoring},
      {.name = "training", .seconds = stages.training},     {.name = "new weights", .seconds = stages.weights},
      {.name = "switching", .seconds = switching},          {.name = "other", .seconds = plan.other_seconds}};
  for (const RlhfPart& part : iteration.parts) iteration.seconds += part.seconds;
  iteration.pools = {{.name = "all",
                      .devices = plan.devices,
                      .busy = (stages.generation + stages.scoring + stages.training) / iteration.seconds}};
  return iteration;
}

RlhfIteration split_iteration(const RlhfPlan& plan, int64_t rollout_devices) {
  check_rollout_devices(plan, rollout_devices);
  const StageSeconds stages = stage_seconds(plan, rollout_devices, plan.devices - rollout_devices);
  const double of_trainers = stages.scoring + stages.training;
  const bool overlapped = plan.timing == RlhfTiming::one_step_behind;
  const bool generation_hidden = overlapped && stages.generation <= of_trainers;
  const bool training_hidden = overlapped && !generation_hidden;
  RlhfIteration iteration;
  iteration.parts = {{.name = "generation", .seconds = stages.generation, .hidden = generation_hidden},
                     {.name = "scoring", .seconds = stages.scoring, .hidden = training_hidden},
                     {.name = "training", .seconds = stages.training, .hidden = training_hidden},
                     {.name = "new weights", .seconds = stages.weights},
                     {.name = "other", .seconds = plan.other_seconds}};
  for (const RlhfPart& part : iteration.parts) iteration.seconds += part.hidden ? 0 : part.seconds;
  iteration.pools = {
      {.name = "rollout", .devices = rollout_devices, .busy = stages.generation / iteration.seconds},
      {.name = "training", .devices = plan.devices - rollout_devices, .busy = of_trainers / iteration.seconds}};
  return iteration;
}

}  // namespace

std::span<const RlhfAlgorithm> rlhf_algorithms() {
  return algorithm_list;
}

const RlhfAlgorithm* find_rlhf_algorithm(std::string_view name) {
  for (const RlhfAlgorithm& algorithm : algorithm_list) {
    if (algorithm.name == name) return &algorithm;
  }
  return nullptr;
}

std::vector<std::string> rlhf_algorithm_names() {
  std::vector<std::string> names;
  for (const RlhfAlgorithm& algorithm : algorithm_list) names.emplace_back(algorithm.name);
  return names;
}

std::string_view rlhf_placement_name(RlhfPlacement placement) {
  return placement == RlhfPlacement::split ? "split" : "colocated";
}

double ResponseLengths::mean_tokens() const {
  if (sigma == 0) return std::min(mean, most);
  // Those below the cut have the mean of a log-normal shifted by sigma, the others the cut itself.
  const double cut = (portable_log(most) - log_median(*this)) / sigma;
  return mean * normal_below(cut - sigma) + most * normal_below(-cut);
}

double ResponseLengths::mean_square_tokens() const {
  if (sigma == 0) return std::min(mean, most) * std::min(mean, most);
  const double cut = (portable_log(most) - log_median(*this)) / sigma;
  return mean * mean * portable_exp(sigma * sigma) * normal_below(cut - 2 * sigma) + most * most * normal_below(-cut);
}

double ResponseLengths::cut_share() const {
  if (sigma == 0) return mean > most ? 1 : 0;
  return normal_below((log_median(*this) - portable_log(most)) / sigma);
}

double RlhfPlan::sequence_tokens() const {
  const double mean = responses.mean_tokens();
  const double square = prompt_tokens * prompt_tokens + 2 * prompt_tokens * mean + responses.mean_square_tokens();
  return square / (prompt_tokens + mean);
}

double RlhfPlan::longest_sequence() const {
  return prompt_tokens + responses.mean_longest_of(samples());
}

double RlhfPlan::context_tokens() const {
  return prompt_tokens + responses.mean_square_tokens() / (2 * responses.mean_tokens());
}

double RlhfPlan::cached_tokens() const {
  const auto sharing = static_cast<double>(algorithm.samples_per_prompt);
  return context_tokens() - prompt_tokens * (1 - 1 / sharing);
}

double ResponseLengths::mean_longest_of(double responses) const {
  if (sigma == 0) return std::min(mean, most);
  const double mu = log_median(*this);
  return mean_of_largest_normal(std::max(1.0, responses),
                                [&](double z) { return std::min(most, portable_exp(mu + sigma * z)); });
}

double rollout_seconds(const RlhfPlan& plan, int64_t rollout_devices) {
  const RolloutEngine& engine = plan.engine;
  const double engines = std::floor(static_cast<double>(rollout_devices) / static_cast<double>(engine.devices));
  ensure(engines >= 1, "answers are generated by at least one engine");
  const double samples = plan.samples() / engines;
  const double mean = plan.responses.mean_tokens();
  const double slots = std::min(samples, static_cast<double>(engine.most_sequences));
  // Engines end together with the longest of all their last answers.
  const double steps = samples * mean / slots + plan.responses.mean_longest_of(slots * engines) - mean;
  const double prompts = static_cast<double>(plan.prompts) / engines * plan.prompt_tokens;
  return steps * engine.step_seconds + samples * mean * engine.sequence_seconds + prompts * engine.prompt_token_seconds;
}

int64_t best_rollout_devices(const RlhfPlan& plan) {
  check_rlhf_plan(plan);
  ensure(plan.placement == RlhfPlacement::split, "only a split has something to choose");
  std::optional<int64_t> best;
  double least = 0;
  for (int64_t devices = plan.engine.devices; devices < plan.devices; devices += plan.engine.devices) {
    if (!can_split(plan, devices) || plan.devices - devices < plan.least_trainers) continue;
    const double seconds = split_iteration(plan, devices).seconds;
    if (best && seconds >= least) continue;
    least = seconds;
    best = devices;
  }
  if (!best) {
    refuse(
        "devices", std::to_string(plan.devices),
        fmt::format("a number that divides into engines of {} GPUs and a multiple of {} GPUs, at least {}, that train",
                    plan.engine.devices, plan.trainer_unit, std::max(plan.trainer_unit, plan.least_trainers)));
  }
  return *best;
}

RlhfIteration rlhf_iteration(const RlhfPlan& plan, std::optional<int64_t> rollout_devices) {
  check_rlhf_plan(plan);
  const bool colocated = plan.placement == RlhfPlacement::colocated;
  if (!colocated && !rollout_devices) rollout_devices = best_rollout_devices(plan);
  RlhfIteration iteration = colocated ? colocated_iteration(plan) : split_iteration(plan, *rollout_devices);
  iteration.longest_response = plan.responses.mean_longest_of(plan.samples());
  iteration.response_tokens = plan.samples() * plan.responses.mean_tokens();
  iteration.tokens_per_second = iteration_tokens(plan) / iteration.seconds;
  return iteration;
}

}  // namespace foretoken
