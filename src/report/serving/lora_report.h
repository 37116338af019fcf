// The adapters of a serving run, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "serving/lora/lora_counts.h"
#include "serving/lora/lora_engine.h"

namespace foretoken {

struct LoraReport {
  LoraSettings settings;
  Bytes slot_bytes, adapter_bytes;
  AdapterLoading loading;
  const LoraCounts& counts;
  double duration_s = 0;  // of the run
};

std::string lora_text(const LoraReport& report);
Json lora_json(const LoraReport& report);

}  // namespace foretoken
