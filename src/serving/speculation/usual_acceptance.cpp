#include "serving/speculation/usual_acceptance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/portable_math.h"
#include "serving/speculation/acceptance_table.h"

namespace foretoken {
namespace {

constexpr size_t measured_drafts = 8;

struct MethodLengths {
  std::string_view method;
  std::array<double, measured_drafts> tokens;  // of a verification of 1, 2, ... drafts
};

// Over coding prompts: means over the models that InferenceX measured each method with (vLLM on B300: DeepSeek-V4-Pro,
// GLM-5.2, Qwen3.5-397B with their MTP layers; Kimi-K2.5, MiniMax-M3 with EAGLE-3; DeepSeek-V4-Pro, Kimi-K3 with
// DSPARK). Rows of other sources agree in the mean (data/serving/acceptance.csv).
constexpr MethodLengths lengths[] = {
    {"mtp", {1.88, 2.56, 3.03, 3.33, 3.57, 3.75, 3.84, 3.93}},
    {"eagle3", {1.81, 2.42, 2.86, 3.19, 3.43, 3.55, 3.65, 3.75}},
    {"dspark", {1.84, 2.49, 2.96, 3.31, 3.56, 3.69, 3.78, 3.80}},
};

// Methods that were not measured over as many drafts take the curve of the nearest one.
std::string_view measured_like(std::string_view method) {
  if (method == "eagle" || method == "medusa" || method == "ngram" || method == "draft_model") return "eagle3";
  if (method == "dflash") return "dspark";
  return method;
}

// Texts of many kinds (MT-Bench, the mean of SPEED-Bench's domains, ShareGPT) are harder to guess than code: the tilt
// over 81 means of a model, drafter, source and kind of text. The model's family is no part of it: a source that was
// left out comes no nearer by what others found of the family (root mean square 0.67 with it, 0.64 without), since
// drafters of one model differ as much as those of several.
constexpr double tilt_of_natural_texts = -0.54;

// n-grams repeat what was said before, in code as rarely as in other texts: 1.4 tokens of a verification of three
// drafts on Llama-3.3-70B (SPEED-Bench), 1.37 of five on Llama-4-Scout (TensorRT-LLM).
constexpr double chance_of_ngrams = 0.22;

// EAGLE's first heads have 2.29 tokens of three drafts where EAGLE-3 has 2.79 (Llama-3.1-8B, vLLM's issue 20780), over
// 2 to 7 drafts as if tilted so. Medusa's are no better (arXiv 2503.01840, table 1).
constexpr double tilt_of_first_heads = -0.38;

// One request's texts are as much easier or harder to guess than the mean as those of models and data sets differ: of
// ten requests that SGLang's cookbook ran one after the other with MTP layers, the slowest took 1.3 to 1.5 times the
// median for each token.
constexpr double spread_of_requests = 1;
// 90% of those 81 means are within such a tilt of the usual one, and no tilt goes further.
constexpr double spread_of_texts = 1;

// Tokens of a verification of three MTP drafts over random tokens, mean of five runs that SGLang's cookbook publishes:
// Qwen3.5-397B 3.12 and 3.31, GLM-5 3.48 and 3.5, Intern-S2-Mobius 3.9. The one drafter with weights of its own that it
// tells of (EAGLE-3 of Mistral Medium 3.5: 1.72) guesses such texts no better than others.
constexpr double tokens_on_random_texts = 3.46;
constexpr int64_t drafts_on_random_texts = 3;

// Chances of a chain over coding prompts.
std::vector<double> over_code(std::string_view method, int64_t drafts) {
  const auto* const found = std::find_if(std::begin(lengths), std::end(lengths),
                                         [&](const MethodLengths& one) { return one.method == method; });
  ensure(found != std::end(lengths), "every method has a usual acceptance");
  std::map<int64_t, double> known;
  for (size_t i = 0; i < measured_drafts; ++i) known[static_cast<int64_t>(i) + 1] = found->tokens[i];
  const auto most = std::min<int64_t>(drafts, measured_drafts);
  std::vector<double> reached = acceptance_from_lengths(known, most).reached();
  // Further drafts go on as the last ones did.
  const double step = portable_pow(reached.back() / reached.front(), 1.0 / static_cast<double>(measured_drafts - 1));
  while (static_cast<int64_t>(reached.size()) < drafts) reached.push_back(reached.back() * std::min(1.0, step));
  return reached;
}

}  // namespace

UnknownAcceptance on_other_texts(const Acceptance& measured) {
  const Acceptance value = measured.varying_by_request(spread_of_requests);
  return {.value = value, .low = value.tilted(-spread_of_texts), .high = value.tilted(spread_of_texts)};
}

UnknownAcceptance usual_acceptance(const DraftMethod& method, int64_t drafts, PromptTexts texts) {
  const std::string_view like = measured_like(method.name);
  const bool is_own_layer = method.network != nullptr && like != "eagle3";
  if (texts == PromptTexts::random && is_own_layer) {
    const double rate =
        Acceptance::of_rate_with_length(tokens_on_random_texts, drafts_on_random_texts).reached().front();
    return on_other_texts(Acceptance::constant(rate, drafts));
  }
  std::vector<double> reached = over_code(like, drafts);
  const bool looks_up = method.network == nullptr;
  if (looks_up) {
    for (double& chance : reached) chance *= chance_of_ngrams;
  }
  Acceptance acceptance(std::move(reached), "usual acceptance");
  if (method.name == "eagle" || method.name == "medusa") acceptance = acceptance.tilted(tilt_of_first_heads);
  const bool as_code = looks_up || texts == PromptTexts::code;
  return on_other_texts(as_code ? acceptance : acceptance.tilted(tilt_of_natural_texts));
}

Acceptance acceptance_of_run(double mean_tokens, int64_t drafts) {
  return Acceptance::of_rate_with_length(mean_tokens, drafts).varying_by_request(spread_of_requests);
}

}  // namespace foretoken
