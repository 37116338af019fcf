// Compares the arithmetic with a table of ASTRA-sim's own answers.
#pragma once

#include <filesystem>
#include <functional>

#include "base/validation.h"
#include "network/astra_compatible/astra_run.h"

namespace foretoken {

struct ScoredAstraRun {
  size_t row = 0;
  int64_t measured_ns = 0;
  int64_t predicted_ns = 0;
};
using ScoredAstraSink = std::function<void(const ScoredAstraRun&)>;

// Whether a file is such a table; false for a folder.
bool is_astra_table(const std::filesystem::path& data);

// Groups are topology/collective. Runs without a closed form are skipped with the reason.
Validation validate_astra(const std::filesystem::path& data, const ScoredAstraSink& sink = {});

}  // namespace foretoken
