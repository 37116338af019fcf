#include "app/cli/engine_steps.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/cli/flags/kernel_source_flags.h"
#include "app/cli/flags/replica_flags.h"
#include "app/cli/grammar/question.h"
#include "base/error.h"

namespace foretoken {
namespace {

// Not in the list of commands: only its flags are asked for.
class EngineCommand final : public Command {
 public:
  void declare(Options& options) override {
    replica_.declare_model(options);
    replica_.declare_engine(options);
    declare_calibration(options);
    declare_deployment(options);
  }
  Answer run(const Library& library) const override {
    if (replica_.lora.enabled) {
      throw InputError({.source = "--enable-lora",
                        .expected = "no LoRA adapters, because a batch does not say which adapter a request uses"});
    }
    if (replica_.speculation.given()) {
      throw InputError({.source = "--speculative-config",
                        .expected = "no speculative decoding, because a batch cannot contain draft tokens"});
    }
    built_ = replica_.build(library, false);
    return {};
  }
  ReplicaGroup take() { return std::move(built_).value(); }

 private:
  ReplicaFlags replica_;
  mutable std::optional<ReplicaGroup> built_;
};

ReplicaGroup built(Json fields, const std::string& source, const Library& library) {
  CLI::App app("", "engine");
  Options options(app);
  EngineCommand command;
  command.declare(options);
  options.choose();
  Question question(command, options);
  std::vector<std::string> known;
  for (const OptionField& field : options.fields()) {
    for (const std::string& name : field.declaration.names) known.push_back(field_name(name));
  }
  const JsonView given(fields, source);
  for (const auto& [name, value] : given.members()) {
    if (question.has_field(name) || name == "command") continue;
    value.fail("a field for the model, device, layout, engine or calibration (see foretoken schema endpoint)",
               nearest_name(name, known).value_or(""));
  }
  fields.set("command", "engine");
  question.fill(std::move(fields), source);
  question.answer(library);
  return command.take();
}

void check_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw InputError({.source = name, .value = std::to_string(value), .expected = fmt::format("{} to {}", least, most)});
}

}  // namespace

EngineSteps::EngineSteps(Json fields, const std::string& source, const Library& library)
    : group_(built(std::move(fields), source, library)) {}

Estimate EngineSteps::seconds(const StepBatch& batch) {
  check_range("decodes", batch.decodes, 0, most_step_sequences);
  check_range("decode_context_tokens", batch.decode_context_tokens, 0, batch.decodes * most_step_tokens);
  check_range("longest_decode_context", batch.longest_decode_context, 0, batch.decode_context_tokens);
  for (const PromptChunk& chunk : batch.prompts) {
    check_range("new_tokens", chunk.new_tokens, 1, most_step_tokens);
    check_range("context_tokens", chunk.context_tokens, 0, most_step_tokens);
  }
  if (batch.decodes == 0 && batch.prompts.empty()) {
    throw InputError({.source = "batch", .value = "empty", .expected = "at least one decode or prompt"});
  }
  return group_.times->step_seconds(batch);
}

}  // namespace foretoken
