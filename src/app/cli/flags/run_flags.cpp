#include "app/cli/flags/run_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/cli/flags/kernel_source_flags.h"
#include "base/error.h"
#include "base/text.h"
#include "compose/engine_release.h"
#include "serving/run_formats/run_formats.h"

namespace foretoken {
namespace {

// "tensor_parallel_size" -> "tensor-parallel-size".
std::string flag_of_field(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// By any of its names, which need not be those of a flag.
bool is_typed(const Options& options, const std::string& flag) {
  for (const OptionField& field : options.fields()) {
    for (const std::string& name : field.declaration.names) {
      if (field.was_given() && (name == "--" + flag || name == "-" + flag)) return true;
    }
  }
  return false;
}

std::string setting_text(const JsonView& value) {
  switch (value.value().kind()) {
    case Json::Kind::boolean:
      return value.boolean() ? "true" : "false";
    case Json::Kind::integer:
    case Json::Kind::number:
      return number_text(value.number());
    case Json::Kind::string:
      return value.string();
    default:
      value.fail("a text, a number, true or false");
  }
}

}  // namespace

void RunFlags::declare(Options& options) {
  options_ = &options;
  replica.declare_model(options, false);
  replica.declare_engine(options);
  declare_calibration(options);
  replica.declare_replicas(options, {.least = 1, .most = 100'000});
}

RunCase RunFlags::read(const std::string& folder, const Library& library) const {
  MeasuredRun run = read_run(folder);
  const std::string source = folder + ", deployment";
  const JsonView deployment(run.deployment, source);
  std::vector<std::string> settings;
  const auto set = [&](const std::string& name, const std::string& value) {
    const std::string flag = flag_of_field(name);
    if (is_typed(*options_, flag)) return;
    settings.push_back(value.empty() ? flag : flag + "=" + value);
  };
  bool names_engine = options_->was_given("--engine") || options_->was_given("--stack");
  const auto has = [&](const char* name) { return deployment.has(name); };
  if (!has("model") && !run.model.empty()) set("model", run.model);
  if (!has("device") && !run.device.empty()) set("device", run.device);
  names_engine = names_engine || has("engine") || has("stack");
  if (!names_engine && run.engine == "vllm" && !run.engine_version.empty()) {
    const ReleaseBehavior& release = release_behavior("vllm", run.engine_version);
    set("engine", std::string(release.kind));
    set("stack", std::string(release.stack));
    if (!has("scheduler")) set("scheduler", std::string(release.scheduler));
    const bool says_ahead = has("async_scheduling") || options_->was_given("--async-scheduling");
    if (!release.schedules_ahead && !says_ahead) settings.emplace_back("no-async-scheduling");
  } else if (!names_engine && !run.engine.empty()) {
    set("engine", run.engine);
  }
  for (const auto& [name, value] : deployment.members()) {
    if (name == "command" || name == "replicas" || name == "router") continue;
    if (value.is(Json::Kind::boolean)) {
      const std::string flag = flag_of_field(name);
      if (!is_typed(*options_, flag)) settings.push_back(value.boolean() ? flag : "no-" + flag);
      continue;
    }
    set(name, setting_text(value));
  }
  ReplicaFlags flags = replica;
  if (!settings.empty()) {
    flags = replica.with(source, fmt::format("{}", fmt::join(settings, ",")), [](Options& /*none*/) {});
    flags.count = replica.count;
  }
  const CalibratedDeployment* calibrated = library.deployment().get();
  if (calibrated != nullptr && flags.model.device.empty()) flags.model.device = calibrated->device;
  if (calibrated != nullptr && flags.model.model.empty() && calibrated->engines.size() == 1) {
    flags.model.model = calibrated->engines.front().model;
  }
  const auto need = [&](const std::string& value, const char* flag) {
    if (!value.empty()) return;
    throw InputError({.source = flag,
                      .value = "not given",
                      .expected = "a value, because neither run.json nor the deployment file gives one"});
  };
  need(flags.model.model, "--model");
  need(flags.model.device, "--device");
  EngineSpec engine = flags.spec(library, false);
  // On for every engine: runs had prompts longer than a step, and all were answered.
  if (!engine.scheduling.enable_chunked_prefill) engine.scheduling.enable_chunked_prefill = true;
  return {.run = std::move(run), .engine = std::move(engine)};
}

}  // namespace foretoken
