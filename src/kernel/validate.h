// Predicts measured kernels and says how far off the predictions are.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/validation.h"
#include "hardware/catalogue.h"
#include "kernel/campaign.h"
#include "kernel/kernel.h"
#include "model/catalogue.h"

namespace foretoken {

struct KernelValidationRequest {
  // A folder of `<device>/<family>.csv[.gz]`, one such device folder, or one such file. A folder that holds only
  // further folders of that form (measurement campaigns) is read as all of them. Also tables of operators.
  std::filesystem::path data;
  std::vector<std::string> devices;        // only these; empty = all
  std::vector<std::string> families;       // only these; empty = all
  std::vector<std::string> where;          // only rows with these COLUMN=VALUE; files without the column are left out
  std::string group_by;                    // a column, "device" or "family"; empty = device/family
  Campaign campaign;                       // its effects replace the fitted gap of the devices and operators it knows
  const ModelCatalogue* models = nullptr;  // sizes of models that tables of other formats name; null: not read
  int threads = 0;                         // files read at the same time; 0 = as many as the machine has cores
  // Sweeps whose names of kernels are known beside those of forms; other names are noted. Empty: no notes.
  std::filesystem::path calibrations;
  std::string generation;      // only devices of it, as generation_of() says; empty = all
  bool held_out_only = false;  // only rows of is_held_out()
};

// A fifth of the rows, the same ones every time. A sweep on a withheld generation (FitOptions::without) never sees
// them.
bool is_held_out(std::string_view device, std::string_view family, size_t row);

// One measurement and its prediction. The texts are valid during the call only.
struct ScoredKernel {
  std::string_view file, device, family, group;
  size_t row = 0;  // 1-based data row of the file
  const KernelShape* shape = nullptr;
  std::string_view variant;  // the `kernel` column, with cold_suffix where `caches` says cold; empty without one
  int64_t copied = 0;        // TableRow::copied: above 0, more than the kernel was timed
  double measured_us = 0;
  Caches caches = Caches::benchmark;
  KernelEstimate predicted;
};

// `caches` are those of the measurements.
using PredictorMaker = std::function<KernelPredictor(const Device&, Caches caches)>;
using ScoredKernelSink = std::function<void(const ScoredKernel&)>;

// InputError when there is nothing to read, a filter names nothing, or a file is broken. The predictor never sees the
// measured column. With a sink, files are read one after the other, so that rows arrive in order.
Validation validate_kernels(const KernelValidationRequest& request, const HardwareCatalogue& hardware,
                            const PredictorMaker& make_predictor, const ScoredKernelSink& sink = {});

// Factors of all families from the measurements that `request` names. Deterministic; provenance is the caller's to
// fill.
RooflineIntervals fit_roofline_intervals(const std::vector<KernelValidationRequest>& requests,
                                         const HardwareCatalogue& hardware);
// What kernels reach of the sheets of these devices. The same terms.
SheetDerates fit_sheet_derates(const std::vector<KernelValidationRequest>& requests, const HardwareCatalogue& hardware);

}  // namespace foretoken
