// Add your line here; the name is what users type.
#include "serving/schedulers/list.h"

#include "base/error.h"

namespace foretoken {
namespace {

constexpr OptionsRead finds_prefixes{.prefix_caching = true};
constexpr OptionsRead vllm_options{.policy = true,
                                   .chunked_prefill = true,
                                   .prefix_caching = true,
                                   .reserve_full_isl = true,
                                   .long_prefill_threshold = true,
                                   .loads_apart = true,
                                   .adapters = true};
constexpr OptionsRead trtllm_options{
    .chunked_prefill = true, .prefix_caching = true, .batch_wait = true, .waits_for_loads = true};

constexpr bool cuts_unasked = false;  // TensorRT-LLM, llmapi/llm_args.py: enable_chunked_prefill

constexpr SchedulerKind listed_schedulers[] = {
    {"vllm", "vLLM V1: running requests first, chunked prefill, preemption by recomputation", true, vllm_options,
     make_vllm},
    {"vllm_v0", "vLLM V0: steps of whole prompts first, then decode steps", false, finds_prefixes, make_vllm_v0},
    {"sarathi", "Sarathi-Serve: all decodes, then prompt chunks up to a fixed number of tokens", false, finds_prefixes,
     make_sarathi, true},
    {"orca",
     "Orca: whole prompts together with decodes; KV cache reserved for the longest possible sequence",
     false,
     {},
     make_orca,
     true},
    {"static",
     "static batching: a new batch starts only when the whole previous batch has finished",
     false,
     {},
     make_static_batch},
    {"sglang", "SGLang: prompts first, predictive admission, retraction", true, finds_prefixes, make_sglang},
    {"trtllm", "TensorRT-LLM, guaranteed no evict: a running request is never paused", true, trtllm_options,
     make_tensorrt_llm, false, cuts_unasked},
    {"trtllm_max_utilization",
     "TensorRT-LLM, max utilization: starts requests that fit now and pauses some when memory runs out", true,
     trtllm_options, make_tensorrt_llm_max_utilization, false, cuts_unasked},
    {"trtllm_static", "TensorRT-LLM, static batch: starts only when all running requests have finished", true,
     trtllm_options, make_tensorrt_llm_static, false, cuts_unasked},
    {"vidur_vllm",
     "vLLM V0 as simulated by VIDUR: prompts are padded to the longest one",
     false,
     {},
     make_vidur_vllm,
     true},
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(std::string_view kind, const SchedulerOptions& options) {
  if (options.lock_step_ranks > 1) return make_lock_step_ranks(scheduler_kind(kind), options);
  return scheduler_kind(kind).make(options);
}

std::span<const SchedulerKind> scheduler_kinds() {
  return listed_schedulers;
}

std::vector<std::string> scheduler_names() {
  std::vector<std::string> names;
  for (const SchedulerKind& kind : listed_schedulers) names.emplace_back(kind.name);
  return names;
}

const SchedulerKind& scheduler_kind(std::string_view name) {
  for (const SchedulerKind& kind : listed_schedulers) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string> names = scheduler_names();
  throw InputError({.field = "scheduler",
                    .value = std::string(name),
                    .expected = "the name of a scheduler",
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
