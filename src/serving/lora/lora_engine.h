// LoRA adapters in an engine: their kernels, the memory of their slots, and the time to bring one in.
#pragma once

#include <cstdint>
#include <memory>

#include "base/units.h"
#include "compose/serving_memory.h"
#include "serving/lora/adapter_cache.h"
#include "serving/scheduling/scheduler.h"
#include "serving/steps/composed_steps.h"

namespace foretoken {

// Names as in vLLM.
struct LoraSettings {
  int64_t max_loras = 1;
  int64_t max_cpu_loras = 0;   // 0 = max_loras
  int64_t max_lora_rank = 16;  // of the slots
  int64_t rank = 0;            // of the adapters; 0 = max_lora_rank
  bool on_attention = true, on_mlp = true;
  // A few hundred MB/s to several GB/s, by what adapters lie on: a local NVMe disk.
  BytesPerSecond disk_bandwidth = BytesPerSecond(2e9);
};

class LoraEngine {
 public:
  // `base` is how steps without adapters are composed.
  LoraEngine(const LoraSettings& settings, ComposedStepsConfig base);

  const LoraSettings& settings() const { return settings_; }  // every choice made
  // The engine's steps with those of its adapters; `base` must outlive the result.
  std::unique_ptr<StepTimes> steps(StepTimes& base) const;

  // The options of an engine without adapters: blocks that are left beside the slots, and max_loras. A
  // sequence of max_model_len that no longer fits is shortened, or is an InputError where the engine would not start.
  SchedulerOptions beside(SchedulerOptions options, ServingMemory& memory) const;

  // Tensors are copied one by one, each with its call of 8 us (measured on an H200: 448 pinned tensors of 128 KiB in
  // 4.75 ms). InputError where the device's way to its host is not known.
  AdapterLoading loading() const;

  Bytes slot_bytes() const;     // of one slot, on one rank of the fullest stage
  Bytes adapter_bytes() const;  // the same of one adapter at its own rank

 private:
  LoraAdapter adapter(int64_t rank) const;
  Bytes bytes_of(const LoraAdapter& lora) const;
  int64_t copies() const;  // tensors of one adapter: two for each part of an adapted matrix

  LoraSettings settings_;
  ComposedStepsConfig base_;
};

}  // namespace foretoken
