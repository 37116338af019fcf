#include "serving/fleet/replica_capacity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace foretoken {
namespace {

// The engine's seconds for one prompt in steps that are full of prompts, beside these decodes; those that a step of the
// decodes alone takes are not counted.
double prompt_seconds(StepTimes& times, const SchedulerOptions& options, double input_tokens, const StepBatch& beside) {
  const auto input = static_cast<int64_t>(std::max(1.0, std::round(input_tokens)));
  const int64_t room = std::max<int64_t>(1, options.max_num_batched_tokens - beside.decodes);
  std::vector<PromptChunk> chunks(static_cast<size_t>(room / input), {.new_tokens = input});
  if (room % input > 0) chunks.push_back({.new_tokens = room % input, .yields_token = false});
  StepBatch both = beside;
  both.prompts = chunks;
  double seconds = times.step_seconds(both).value;
  if (beside.decodes > 0) seconds -= times.step_seconds(beside).value;
  return std::max(0.0, seconds) * input_tokens / static_cast<double>(room);
}

// The same of a prompt without others in its steps, and of those of the other ranks meanwhile.
double prompt_alone_seconds(StepTimes& times, const SchedulerOptions& options, double input_tokens,
                            const StepBatch& beside) {
  const auto input = static_cast<int64_t>(std::max(1.0, std::round(input_tokens)));
  const int64_t room = std::max<int64_t>(1, options.max_num_batched_tokens - beside.decodes);
  const double without = beside.decodes > 0 ? times.step_seconds(beside).value : 0;
  double seconds = 0;
  for (int64_t done = 0; done < input; done += room) {
    const PromptChunk chunk{.new_tokens = std::min(room, input - done), .context_tokens = done};
    StepBatch both = beside;
    both.prompts = {&chunk, 1};
    seconds += std::max(0.0, times.step_seconds(both).value - without);
  }
  return seconds * static_cast<double>(options.lock_step_ranks);
}

// Where each stage has a batch of its own, by its share of the cache and the seats.
double requests_of_a_stage(StepTimes& times, const SchedulerOptions& options, const CapacityQuestion& question) {
  const bool with_prompts = question.work != ReplicaWork::decodes;
  const auto seconds_of_prompt = [&](const StepBatch& beside) {
    return (question.prompts_alone ? prompt_alone_seconds : prompt_seconds)(times, options, question.input_tokens,
                                                                            beside);
  };
  const double by_prompts = with_prompts ? 1 / seconds_of_prompt({}) : std::numeric_limits<double>::infinity();
  const double tokens = std::max(question.output_tokens - 1, with_prompts ? 0.0 : 1.0);  // one comes with the prompt
  if (question.work == ReplicaWork::prompts || tokens <= 0) return by_prompts;
  const int64_t drafting = options.speculation.most_sequences;
  const auto drafts = [&](int64_t batch) { return drafting == 0 || batch <= drafting; };
  const auto decodes = [&](int64_t batch) { return tokens / (drafts(batch) ? question.tokens_per_decode : 1); };
  const auto context = static_cast<int64_t>(question.input_tokens + question.output_tokens / 2);
  const auto seconds_of_decode = [&](int64_t batch) {
    const StepBatch step{.decodes = batch,
                         .decode_context_tokens = batch * context,
                         .longest_decode_context = context,
                         .drafted_tokens = drafts(batch) ? batch * question.verified_tokens : 0,
                         .prompts = {}};
    const double prompt = with_prompts ? seconds_of_prompt(step) : 0;
    return times.step_seconds(step).value + static_cast<double>(batch) * prompt / decodes(batch);
  };
  const auto tpot = [&](int64_t batch) { return seconds_of_decode(batch) * decodes(batch) / tokens; };
  const auto cache = static_cast<double>(options.num_gpu_blocks * options.block_size);
  const auto fit = static_cast<int64_t>(cache / (question.input_tokens + question.output_tokens));
  int64_t most = std::clamp<int64_t>(fit, 1, options.max_num_seqs);
  if (question.tpot_s && tpot(most) > *question.tpot_s) {
    int64_t meets = 1;
    while (most - meets > 1) {
      const int64_t middle = meets + (most - meets) / 2;
      (tpot(middle) <= *question.tpot_s ? meets : most) = middle;
    }
    most = meets;
  }
  return std::min(by_prompts, static_cast<double>(most) / (decodes(most) * seconds_of_decode(most)));
}

}  // namespace

double requests_per_second(StepTimes& times, SchedulerOptions options, const CapacityQuestion& question) {
  const auto stages = static_cast<double>(options.pipeline_stages);
  options.num_gpu_blocks = static_cast<int64_t>(std::ceil(static_cast<double>(options.num_gpu_blocks) / stages));
  options.max_num_seqs = static_cast<int64_t>(std::ceil(static_cast<double>(options.max_num_seqs) / stages));
  return requests_of_a_stage(times, options, question) * stages;
}

}  // namespace foretoken
