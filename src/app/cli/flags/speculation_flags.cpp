#include "app/cli/flags/speculation_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "serving/speculation/acceptance_table.h"

namespace foretoken {
namespace {

constexpr const char* config_flag = "--speculative-config";

std::string config_help() {
  std::string text =
      "Speculative decoding, as JSON in vLLM's format: method, num_speculative_tokens, model, "
      "draft_tensor_parallel_size, disable_by_batch_size, and the draft acceptance (see docs/serving/techniques.md) "
      "[the method's "
      "typical acceptance, with a wide interval]. Methods:";
  for (const DraftMethod& method : draft_methods()) {
    text += fmt::format("{}{} = {}", text.ends_with(':') ? " " : "; ", method.name, method.summary);
  }
  return text;
}

// Draft heads on the hub are not in the library: what to give instead depends on the method.
Model known_draft(const SpeculativeConfig& config, const Library& library) {
  try {
    return library.models().model(config.model);
  } catch (const InputError& error) {
    if (error.problem().source != "model") throw;
    const std::string_view method = config.method->name;
    throw InputError(
        {.source = config_flag,
         .path = "model",
         .value = printable(config.model),
         .expected =
             fmt::format("{}a built-in model (`foretoken models` lists them), or a path to the "
                         "draft's config.json",
                         config.method->can_copy_target
                             ? fmt::format("no model ({} then uses one layer like the target's as its draft), ", method)
                             : ""),
         .suggestion = error.problem().suggestion});
  }
}

}  // namespace

void SpeculationFlags::declare(Options& options) {
  options.heading("Speculative decoding");
  options.text("--speculative-config,-sc", config, config_help());
  options.text(
      "--speculative-acceptance", acceptance,
      "CSV file of measured acceptance lengths (columns model, draft_method, draft_tokens, mean_acceptance_length)");
}

SpeculativeConfig SpeculationFlags::read(const Model& target) const {
  if (!given()) {
    throw InputError({.source = config_flag,
                      .value = "not given",
                      .expected = "the draft method and its number of tokens, for example "
                                  R"(--speculative-config '{"method": "eagle3", "num_speculative_tokens": 3}')"});
  }
  SpeculativeConfig result = parse_speculative_config(config, config_flag);
  result.use_own_layer_of(target);
  if (!acceptance.empty()) {
    if (result.acceptance) {
      throw InputError({.source = "--speculative-acceptance",
                        .expected = "acceptance from one source only: remove it from --speculative-config"});
    }
    result.acceptance =
        AcceptanceTable(acceptance).of_model(target.name, result.method->name, result.num_speculative_tokens);
  }
  if (!result.acceptance) result.assume_usual();
  return result;
}

std::optional<Model> SpeculationFlags::draft_model(const SpeculativeConfig& read_config, const Library& library) const {
  std::optional<Model> draft;
  if (!read_config.model.empty() && read_config.method->network != nullptr) {
    draft = known_draft(read_config, library);
    if (!read_config.quantization.empty()) {
      const std::optional<Scheme> scheme = scheme_from_name(read_config.quantization);
      if (!scheme) {
        throw InputError({.source = config_flag,
                          .path = "quantization",
                          .value = printable(read_config.quantization),
                          .expected = fmt::format("one of {}", fmt::join(scheme_names(), ", "))});
      }
      draft = with_scheme(std::move(*draft), *scheme, *scheme);
    }
  }
  return draft;
}

}  // namespace foretoken
