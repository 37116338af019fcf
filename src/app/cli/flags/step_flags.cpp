#include "app/cli/flags/step_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> positive{.least = 1, .most = 1'000'000'000};
constexpr Range<int64_t> zero_or_more{.least = 0, .most = 1'000'000'000};

}  // namespace

void StepFlags::declare(Options& options) {
  declare_model(options);
  options.heading("Step");
  options.choice("--phase", phase, step_phase_names(), "Kind of step");
  options.integer("--batch", request.batch, positive, "Number of sequences per data-parallel rank");
  options.integer("--input-len", request.input_len, positive,
                  "New tokens of each prompt (for prefill, mixed and train)");
  options.integer("--context-len", request.context_len, zero_or_more,
                  "Tokens already in the KV cache of each sequence");
  options.integer("--prompts", request.prompts, zero_or_more,
                  "With --phase mixed: number of sequences in the batch that are prompts; the others decode [1]");
  options.choice(
      "--routing", routing, {"usual", "random", "balanced", "pl1.01", "pl1.2"},
      "How tokens are distributed over experts: at random, evenly, or drawn from a power law. usual = pl1.2 for more "
      "than 8 experts, random otherwise");
  options.integer("--lora-rank", request.lora.rank, zero_or_more,
                  "Rank of a LoRA adapter on all linear layers; 0 = no adapter");
  options.flag("--recompute", request.recompute,
               "With --phase train: recompute the forward pass during the backward pass");
  declare_parallelism(options);
  placement.declare(options);
}

StepRequest StepFlags::step_request() const {
  StepRequest result = request;
  result.phase = step_phase_from_name(phase).value();  // one of the choices
  if (routing == "random") result.routing = Routing::random;
  if (routing == "balanced") result.routing = Routing::balanced;
  if (routing.starts_with("pl")) {
    result.routing = Routing::power_law;
    result.power_law_exponent = parse_number(std::string_view(routing).substr(2)).value();
  }
  if (result.phase == StepPhase::mixed && result.prompts == 0) result.prompts = 1;
  if (result.phase == StepPhase::mixed && result.prompts > result.batch) {
    throw InputError({.source = "--prompts",
                      .value = fmt::format("{}", result.prompts),
                      .expected = fmt::format("at most the batch size {}", result.batch)});
  }
  return result;
}

}  // namespace foretoken
