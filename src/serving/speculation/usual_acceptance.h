// How many drafts are accepted where nobody measured it.
#pragma once

#include <cstdint>

#include "serving/load/prompt_texts.h"
#include "serving/speculation/acceptance.h"
#include "serving/speculation/draft_method.h"

namespace foretoken {

// Central 90% of models and texts are within `low` and `high`.
struct UnknownAcceptance {
  Acceptance value, low, high;
};

// What was measured with other texts.
UnknownAcceptance on_other_texts(const Acceptance& measured);

// Of the method over the models it was measured with; requests differ. Where prompts are random tokens and outputs go
// on beyond their end, as in most benchmarks, models repeat themselves, and layers trained with them guess that.
UnknownAcceptance usual_acceptance(const DraftMethod& method, int64_t drafts, PromptTexts texts = PromptTexts::natural);

// The same for a mean length that was measured over a run, which says nothing of single requests.
Acceptance acceptance_of_run(double mean_tokens, int64_t drafts);

}  // namespace foretoken
