// The flags of a serving engine's memory; vLLM's names, and what SGLang and TensorRT-LLM call the same thing.
#pragma once

#include "app/cli/grammar/options.h"
#include "compose/serving_engine.h"

namespace foretoken {

struct MemoryFlags {
  bool wanted = false;
  EngineFlags engine;

  void declare(Options& options);
  EngineFlags engine_flags(DType kv_dtype) const;
};

}  // namespace foretoken
