// Why a kernel is predicted to take as long as it does: the parts of its form, what the interval rests on, and whether
// the sizes were among those measured. Filled by the code that predicts, not by a second copy of it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"

namespace foretoken {

// A size beside the range over which the calibration saw it.
struct EnvelopeSize {
  std::string_view name;
  double value = 0;
  double least = 0, most = 0;
  bool inside() const { return value >= least && value <= most; }
};

struct IntervalOrigin {
  std::string basis;         // "withheld generations", "held-out rows", "sibling", "roofline", "derated sheet"
  std::string reading;       // a sentence
  std::string measurements;  // who measured
  std::string fitted_on;     // date
  double mape = 0;           // % on rows the fit had not seen; 0 = not known
};

struct KernelExplanation {
  KernelEstimate estimate;
  double roofline_seconds = 0;  // the larger of compute and memory
  double efficiency = 0;        // roofline over predicted
  std::string form;             // empty: the roofline answered
  std::string variant;          // the implementation that was assumed; empty where forms tell none apart
  std::string swept_device;     // whose sweep answered; empty = none
  std::vector<Explained> lines;
  double form_seconds = 0;  // sum of the parts
  // What trees over measured rows made of the form, a sibling's sweep included; 1 = nothing.
  double correction = 1;
  bool held_at_bound = false;  // learned value was faster than physics allows, and was raised
  IntervalOrigin interval;
  // The sizes that were measured: by the sweep that answered, else by any device with these formats.
  std::vector<EnvelopeSize> envelope;
};

// `calibrations` is the folder that the predictor reads. InputError as KernelPredictor::estimate.
KernelExplanation explain_kernel(const KernelPredictor& predictor, const KernelShape& shape, std::string_view variant,
                                 const std::filesystem::path& calibrations);

}  // namespace foretoken
