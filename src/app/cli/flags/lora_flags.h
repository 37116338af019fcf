// The flags of LoRA adapters: of the engine that runs them, and of the requests that ask for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/grammar/options.h"
#include "serving/lora/lora_engine.h"
#include "serving/serving_run.h"

namespace foretoken {

// Names as in vLLM.
struct LoraFlags {
  bool enabled = false;
  LoraSettings settings;
  std::vector<std::string> targets;  // empty = all linear layers
  double disk_gb_s = LoraSettings{}.disk_bandwidth.value() / 1e9;

  // `slots`: where several numbers of them may be given, to try.
  void declare(Options& options, std::vector<std::string>* slots = nullptr);
  // InputError for flags that were given without --enable-lora; `options` as given to declare, after parsing.
  void check_use(const Options& options) const;
  // InputError for values that do not go together.
  LoraSettings read() const;
};

struct AdapterLoadFlags {
  int64_t adapters = 0;  // 0 = as the trace says
  std::string distribution = "uniform";
  double zipf_exponent = 1, share = 1;

  void declare(Options& options);
  // InputError for flags that this run does not use: without adapters in an engine, or with none to draw.
  void check_use(const Options& options, bool enabled, bool from_trace) const;
  LoadMaker load(LoadMaker inner) const;
};

}  // namespace foretoken
