// Any bytes are either tables of step times that give a time for every step, or an InputError. The parts of the input
// between lines of "---" are the tables, in order.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "fuzz.h"
#include "serving/steps/op_tables.h"
#include "serving/steps/vidur_tables.h"

namespace {

using namespace foretoken;

std::map<std::string, std::string> parts(const std::string& text, const std::vector<std::string>& names) {
  const std::string rule = "---\n";
  std::map<std::string, std::string> result;
  size_t begin = 0;
  for (const std::string& name : names) {
    if (begin > text.size()) break;
    const size_t end = std::min(text.find(rule, begin), text.size());
    result[name] = text.substr(begin, end - begin);
    begin = end == text.size() ? text.size() + 1 : end + rule.size();
  }
  return result;
}

void run_steps(StepTimes& times) {
  const std::vector<PromptChunk> chunks = {{.new_tokens = 100, .context_tokens = 50}, {.new_tokens = 7}};
  for (const int64_t decodes : {0, 1, 40, 5000}) {
    for (const bool with_prompts : {false, true}) {
      if (decodes == 0 && !with_prompts) continue;
      const StepBatch batch{
          .decodes = decodes,
          .decode_context_tokens = decodes * 300,
          .longest_decode_context = decodes > 0 ? 1000 : 0,
          .prompts = with_prompts ? std::span<const PromptChunk>(chunks) : std::span<const PromptChunk>()};
      const Estimate seconds = with_prompts ? times.step_seconds(batch) : times.decode_run_seconds(batch, 20);
      promise(std::isfinite(seconds.value) && seconds.value >= 0, "a step takes a time");
      promise(seconds.low <= seconds.value && seconds.value <= seconds.high, "the time lies in its interval");
    }
  }
}

template <class Read>
void read_and_run(const Read& read) {
  try {
    run_steps(*read());
  } catch (const InputError& error) {
    promise(!error.problem().expected.empty(), "a complaint says what was expected");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(as_text(data, size));
  read_and_run([&] {
    return op_tables_from_text(parts(text, {"dense", "per_sequence", "attention", "skew"}),
                               {.layers = 4, .graph_sizes = {1, 8, 64}});
  });
  read_and_run([&] {
    return op_tables_from_text(parts(text, {"dense", "per_sequence", "attention", "moe"}),
                               {.layers = 4, .expert_layers = 4, .experts = 8, .top_k = 2, .expert_ranks = 2});
  });
  read_and_run([&] {
    return vidur_tables_from_text(parts(text, {"per_token_ops_ms", "attn_decode_ms", "attn_prefill_ms"}),
                                  {.layers = 4, .grouped_query = true});
  });
  return 0;
}
