#include "app/cli/flags/sampling_flags.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "serving/load/pooling.h"

namespace foretoken {

void SamplingFlags::declare(Options& options) {
  constexpr Range<int64_t> counts{.least = 1, .most = 1024};
  options.heading("Load: task and sampling");
  options.choice("--task", task, {"generate", "embed", "score"},
                 "What requests ask for: generate = output tokens; embed or score = the prompt only, without the LM "
                 "head and sampling");
  options.integer("--n", outputs, counts,
                  "Number of outputs per prompt; they share the full KV cache blocks of the prompt");
  options.number("--n-spread", spread, {.least = 0, .most = 1},
                 "Vary the lengths of the outputs of one prompt uniformly by up to this share in either direction");
  options.integer("--beam-width", beam_width, counts,
                  "Number of beams per prompt, modeled as that many outputs of equal length; cache that beams share "
                  "beyond the prompt is not counted");
}

void SamplingFlags::check_use(const Options& options) const {
  if (pools()) options.refuse({"--n", "--n-spread", "--beam-width", "--thinking-len"}, {}, "--task " + task);
  if (outputs > 1) options.refuse({"--beam-width"}, {}, "--n");
  if (outputs == 1) options.refuse({"--n-spread"}, {}, "a single output (--n 1)");
}

SampleSettings SamplingFlags::settings() const {
  return {.count = std::max(outputs, beam_width), .spread = spread};
}

LoadMaker SamplingFlags::changed(LoadMaker load) const {
  if (!pools()) return load;
  return [load = std::move(load)](uint64_t seed) { return pooled_load(load(seed)); };
}

}  // namespace foretoken
