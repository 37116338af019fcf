// Compares steps and decoders of image models with what was measured.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/validation.h"
#include "library/library.h"

namespace foretoken {

// Columns: device, model, part (step, decoder), mode, images, side, burst_ms, sustained_ms, peak_gb; others are
// ignored. Only rows whose mode is `compiled` are scored: the prediction is of kernels that run back to back. Grouped
// by part.
struct ScoredImageRow {
  std::string device, model, part;
  int64_t images = 1, side = 1024;
  double measured_ms = 0, predicted_ms = 0, low_ms = 0, high_ms = 0;  // held busy
  double measured_gb = 0, predicted_gb = 0;                           // without the context of the driver
};
using ScoredImageSink = std::function<void(const ScoredImageRow&)>;

Validation validate_images(const std::filesystem::path& data, const Library& library, const ScoredImageSink& sink = {});

}  // namespace foretoken
