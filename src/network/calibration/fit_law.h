// The two steps of a fit: a law's constants and curves from several systems, and what one system's sweep leaves over.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "network/calibration/communication_calibration.h"
#include "network/calibration/communication_rows.h"

namespace foretoken {

// A call and the median of its repetitions.
struct TimedCall {
  CommunicationCall call;
  std::string device;
  double seconds = 0;
};
std::vector<TimedCall> medians_of(const std::vector<const CommunicationRow*>& rows);

// Constants from all calls, and curves from those that teach them. Provenance and errors are the caller's to fill.
LawCalibration fit_law(const LawKind& kind, const std::vector<TimedCall>& calls, const SystemLibrary& systems);

// The calls of one system.
SweepCalibration fit_sweep(const LawKind& kind, const LawCalibration& law, const std::vector<TimedCall>& calls,
                           const SystemTraits& system);

}  // namespace foretoken
