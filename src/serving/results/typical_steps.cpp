#include "serving/results/typical_steps.h"

#include <algorithm>
#include <map>
#include <utility>

namespace foretoken {
namespace {

StepEstimate step_of(const ComposedStepsConfig& composed, const StepShare& share, Logits logits) {
  StepRequest request = share.typical();
  request.kv_dtype = composed.kv_dtype;
  request.logits = logits;
  const DeviceModels& models = composed.models;
  return estimate_step(composed.model, request, composed.plan, models.kernels, composed.stack,
                       {.collectives = models.collectives.get()});
}

StepShare of_one_rank(StepShare share, int64_t ranks) {
  for (double* size : {&share.prefill_tokens, &share.decode_tokens, &share.prompts, &share.prompt_context_tokens,
                       &share.decode_context_tokens}) {
    *size /= static_cast<double>(ranks);
  }
  return share;
}

void add_slices(std::vector<double>& into, const std::vector<double>& slices, double factor) {
  if (into.size() < slices.size()) into.resize(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) into[i] += factor * slices[i];
}

std::vector<OperatorTime> slowest_first(std::map<std::string, OperatorTime> by_name) {
  std::vector<OperatorTime> all;
  for (auto& [name, one] : by_name) {
    one.name = name;
    all.push_back(std::move(one));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const OperatorTime& a, const OperatorTime& b) { return a.sum() > b.sum(); });
  return all;
}

}  // namespace

std::vector<TypicalStep> typical_steps(const ComposedStepsConfig& composed, const StepMix& mix, Logits logits,
                                       int64_t lock_step_ranks) {
  std::vector<TypicalStep> steps;
  for (const StepShare& share : mix.shares()) {
    if (share.steps == 0) continue;
    steps.push_back({.device = composed.models.kernels.device().name,
                     .share = share,
                     .step = step_of(composed, of_one_rank(share, lock_step_ranks), logits)});
  }
  return steps;
}

double OperatorAccount::busy_seconds() const {
  double sum = 0;
  for (const StepShare& share : shares) sum += share.seconds;
  return sum;
}

OperatorAccount operator_account(const ComposedStepsConfig& composed, const StepMix& mix, Logits logits,
                                 int64_t lock_step_ranks) {
  OperatorAccount account{.devices = {composed.models.kernels.device().name},
                          .shares = mix.shares(),
                          .slice_seconds = mix.slice_seconds(),
                          .operators = {}};
  std::map<std::string, OperatorTime> by_name;
  for (const StepClass& one : mix.classes()) {
    const StepEstimate step = step_of(composed, of_one_rank(one.share, lock_step_ranks), logits);
    const auto kind =
        static_cast<size_t>(std::find_if(account.shares.begin(), account.shares.end(),
                                         [&](const StepShare& share) { return share.phase == one.share.phase; }) -
                            account.shares.begin());
    const double decodes = one.share.decode_tokens / static_cast<double>(one.share.steps);
    const auto add = [&](const std::string& name, double seconds) {
      const double share = seconds / step.seconds.value;
      OperatorTime& time = by_name[name];
      time.seconds[kind] += share * one.share.seconds;
      time.decode_wait_seconds += share * one.share.seconds * decodes;
      add_slices(time.slice_seconds, one.slice_seconds, share);
    };
    double kernels = 0;
    for (const StageEstimate& stage : step.stages) {
      for (const TimedOperator& timed : stage.operators) {
        add(timed.call.name, timed.seconds.value);
        kernels += timed.seconds.value;
      }
    }
    add(between_kernels, std::max(0.0, step.seconds.value - kernels));
  }
  account.operators = slowest_first(std::move(by_name));
  return account;
}

OperatorAccount together(const std::vector<OperatorAccount>& accounts) {
  OperatorAccount all{.devices = {}, .shares = StepMix().shares(), .slice_seconds = 0, .operators = {}};
  for (const OperatorAccount& one : accounts) all.slice_seconds = std::max(all.slice_seconds, one.slice_seconds);
  std::map<std::string, OperatorTime> by_name;
  for (const OperatorAccount& one : accounts) {
    all.devices.insert(all.devices.end(), one.devices.begin(), one.devices.end());
    for (size_t kind = 0; kind < all.shares.size(); ++kind) {
      StepShare& sum = all.shares[kind];
      const StepShare& part = one.shares[kind];
      sum.steps += part.steps;
      sum.seconds += part.seconds;
      sum.prefill_tokens += part.prefill_tokens;
      sum.decode_tokens += part.decode_tokens;
      sum.prompts += part.prompts;
      sum.prompt_context_tokens += part.prompt_context_tokens;
      sum.decode_context_tokens += part.decode_context_tokens;
    }
    // Slices are powers of two of one width, so that several of one make up one of the other.
    const auto wider = static_cast<size_t>(all.slice_seconds / one.slice_seconds);
    for (const OperatorTime& time : one.operators) {
      OperatorTime& sum = by_name[time.name];
      for (size_t kind = 0; kind < sum.seconds.size(); ++kind) sum.seconds[kind] += time.seconds[kind];
      sum.decode_wait_seconds += time.decode_wait_seconds;
      std::vector<double> slices((time.slice_seconds.size() + wider - 1) / wider);
      for (size_t i = 0; i < time.slice_seconds.size(); ++i) slices[i / wider] += time.slice_seconds[i];
      add_slices(sum.slice_seconds, slices, 1);
    }
  }
  all.operators = slowest_first(std::move(by_name));
  return all;
}

}  // namespace foretoken
