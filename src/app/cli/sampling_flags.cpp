#include "app/cli/sampling_flags.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serving/load/pooling.h"

namespace foretoken {

void SamplingFlags::declare(Options& options) {
  constexpr Range<int64_t> counts{.least = 1, .most = 1024};
  options.heading("Load: what is asked for");
  options.choice("--task", task, {"generate", "embed", "score"},
                 "generate = tokens; embed, score = prompts alone, without head and sampling");
  options.integer("--n", outputs, counts, "Outputs of each prompt, which share its full cache blocks");
  options.number("--n-spread", spread, {.least = 0, .most = 1}, "Their lengths are uniform within this share");
  options.integer("--beam-width", beam_width, counts,
                  "Beams of each prompt: as many outputs, equally long; cache that beams share beyond the prompt is "
                  "not counted");
}

void SamplingFlags::check_use(const Options& options) const {
  if (pools()) options.refuse({"--n", "--n-spread", "--beam-width", "--thinking-len"}, {}, "--task " + task);
  if (outputs > 1) options.refuse({"--beam-width"}, {}, "--n");
  if (outputs == 1) options.refuse({"--n-spread"}, {}, "one output (--n)");
}

SampleSettings SamplingFlags::settings() const {
  return {.count = std::max(outputs, beam_width), .spread = spread};
}

LoadMaker SamplingFlags::changed(LoadMaker load) const {
  if (!pools()) return load;
  return [load = std::move(load)](uint64_t seed) { return pooled_load(load(seed)); };
}

}  // namespace foretoken
