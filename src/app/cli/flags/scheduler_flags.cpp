#include "app/cli/flags/scheduler_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

std::string scheduler_summaries() {
  std::string text;
  for (const SchedulerKind& kind : scheduler_kinds()) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : "; ", kind.name, kind.summary);
  }
  return text;
}

}  // namespace

void SchedulerFlags::declare(Options& options) {
  options.heading("Scheduler");
  options.text("--scheduler", scheduler,
               "Scheduler that picks the requests of each step [the engine's own]. " + scheduler_summaries());
  options.choice(
      "--scheduling-policy", policy, {"fcfs", "priority", "deadline"},
      "Order of waiting requests (vllm scheduler). priority uses --priority-shares or the trace; deadline serves "
      "requests with the least slack to --ttft-goals first and drops those that cannot meet their goal");
  options.list("--ttft-goals", ttft_goals,
               "With --scheduling-policy deadline: TTFT goals in milliseconds by priority; the last one applies to all "
               "remaining priorities");
  options.flag("--enable-chunked-prefill", chunked_prefill,
               "Split prompts into chunks to fill each step [on; off in TensorRT-LLM, which then refuses prompts "
               "longer than --max-num-batched-tokens]");
  options.flag("--enable-prefix-caching", prefix_caching,
               "Reuse the KV cache of prompts that start with the same tokens [on]");
  options.flag("--async-scheduling", async_scheduling,
               "Schedule the next step while the current one runs [on; off in vLLM before 0.14]");
  options.flag("--scheduler-reserve-full-isl", reserve_full_isl,
               "Admit a prompt only if all of it fits in the KV cache [on]");
  options.integer("--long-prefill-token-threshold", long_prefill, {.least = 0, .most = 100'000'000},
                  "Maximum tokens of one prompt in a step; 0 = no limit");
  options.integer(
      "--batch-wait-timeout-iters", batch_wait_iters, {.least = 0, .most = 1'000'000},
      "With trtllm: number of steps that new prompts may wait for a fuller batch while others run; 0 = no waiting");
  options.number("--batch-wait-max-tokens-ratio", batch_wait_ratio, {.least = 0, .most = 1},
                 "With trtllm: share of --max-num-batched-tokens that ends the wait of --batch-wait-timeout-iters");
  options.number("--watermark", watermark, {.least = -1, .most = 0.99},
                 "Share of KV blocks to keep free when admitting a request; -1 = the scheduler's own value");
}

std::string SchedulerFlags::name(const std::string& engine) const {
  return std::string(scheduler_kind(scheduler.empty() ? usual_scheduler(engine) : scheduler).name);
}

SchedulingChoices SchedulerFlags::choices() const {
  SchedulingChoices choices{.policy = policy == "priority"   ? QueuePolicy::priority
                                      : policy == "deadline" ? QueuePolicy::deadline
                                                             : QueuePolicy::fcfs,
                            .enable_chunked_prefill = chunked_prefill,
                            .enable_prefix_caching = prefix_caching,
                            .async_scheduling = async_scheduling,
                            .scheduler_reserve_full_isl = reserve_full_isl,
                            .long_prefill_token_threshold = long_prefill,
                            .batch_wait_timeout_iters = batch_wait_iters,
                            .batch_wait_max_tokens_ratio = batch_wait_ratio};
  if ((choices.policy == QueuePolicy::deadline) == ttft_goals.empty()) {
    throw InputError(
        {.source = "--ttft-goals",
         .value = ttft_goals.empty() ? "" : "with --scheduling-policy " + policy,
         .expected = "TTFT goals in milliseconds by priority, used only with --scheduling-policy deadline"});
  }
  for (const std::string& goal : ttft_goals) {
    const double ms = parse_listed_number("--ttft-goals", goal, {.least = 0, .most = 1e9},
                                          "milliseconds by priority, for example 500,5000");
    choices.ttft_goals.push_back(to_picoseconds(Seconds(ms / 1e3)));
  }
  if (watermark >= 0) choices.watermark = watermark;
  return choices;
}

void refuse_unread_scheduler_flags(const Options& options, const std::vector<std::string>& schedulers) {
  struct OptionFlag {
    const char* name;
    bool (*is_read)(const SchedulerKind&);
  };
  constexpr OptionFlag flags[] = {
      {"--scheduling-policy", [](const SchedulerKind& kind) { return kind.reads.policy; }},
      {"--enable-chunked-prefill", [](const SchedulerKind& kind) { return kind.reads.chunked_prefill; }},
      {"--enable-prefix-caching", [](const SchedulerKind& kind) { return kind.reads.prefix_caching; }},
      {"--async-scheduling", [](const SchedulerKind& kind) { return kind.schedules_ahead; }},
      {"--scheduler-reserve-full-isl", [](const SchedulerKind& kind) { return kind.reads.reserve_full_isl; }},
      {"--long-prefill-token-threshold", [](const SchedulerKind& kind) { return kind.reads.long_prefill_threshold; }},
      {"--batch-wait-timeout-iters", [](const SchedulerKind& kind) { return kind.reads.batch_wait; }},
      {"--batch-wait-max-tokens-ratio", [](const SchedulerKind& kind) { return kind.reads.batch_wait; }},
      {"--enable-lora", [](const SchedulerKind& kind) { return kind.reads.adapters; }}};
  std::vector<std::string> unread;
  for (const OptionFlag& flag : flags) {
    const bool is_read = std::any_of(schedulers.begin(), schedulers.end(),
                                     [&](const std::string& name) { return flag.is_read(scheduler_kind(name)); });
    if (!is_read) unread.emplace_back(flag.name);
  }
  options.refuse(unread, {}, fmt::format("--scheduler {}", fmt::join(schedulers, ", ")));
}

}  // namespace foretoken
