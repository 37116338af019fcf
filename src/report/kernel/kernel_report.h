// One kernel prediction, explained.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/json.h"
#include "kernel/explain.h"
#include "kernel/family.h"
#include "kernel/measured_rows.h"
#include "report/parts/json_parts.h"

namespace foretoken {

using GivenParameters = std::span<const std::pair<std::string, std::string>>;

struct KernelReport {
  const KernelFamily& family;
  GivenParameters given;
  const KernelShape& shape;
  const Device& device;
  const KernelExplanation& explanation;
  bool in_memory = false;                // KernelPredictor::runs_in_memory: the device's roofline does not bound it
  std::span<const MeasuredRow> nearest;  // nearest first; only a few are shown
};

std::string kernel_text(const KernelReport& report);
Json kernel_json(const KernelReport& report);

// "gemm dtype=bf16 m=4096 n=8192": what was asked, without what is usual.
std::string call_text(const KernelFamily& family, GivenParameters given);

// "m=4096 n=8192 k=8192 batch=1": the sizes of any call, without products of them.
std::string sizes_text(const KernelShape& shape);

}  // namespace foretoken
