// A law: how long a call takes, from the system's sheet and a few constants, and from curves where no formula is known.
// What it leaves over on a measured system is a sweep's business (system_calibration.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "network/calibration/communication_call.h"
#include "network/calibration/curve.h"

namespace foretoken {

struct LawConstant {
  std::string_view name;
  double start = 1;
  double least = 1e-3, most = 1e3;
};

// ln of microseconds over log2 of microseconds of ideal wire time, by name and number of ranks.
using LawCurves = std::map<std::string, std::map<int64_t, Curve>, std::less<>>;

// seconds = max(at_least, apart + curve_scale x curve at wire_seconds)
struct LawParts {
  double apart = 0;           // launch, latencies, plain wire time; all of it where the law has no curve
  std::string_view curve;     // empty = none
  std::string_view fallback;  // another curve where that one is not known
  double curve_scale = 1;
  double wire_seconds = 0;  // at the sheet's link rate
  double at_least = 0;      // the host's time
};

class CommunicationLaw {
 public:
  virtual ~CommunicationLaw() = default;
  virtual std::span<const LawConstant> constants() const = 0;
  virtual LawParts parts(const CommunicationCall& call, const SystemTraits& system,
                         std::span<const double> constants) const = 0;

  // Whether the sheet says what the call sends through; not so for bridges that several devices share.
  virtual bool wire_is_known(const CommunicationCall& /*call*/, const SystemTraits& /*system*/) const { return true; }
  // Whether a measured call says what the curve is: its wire is known, and the host did not hold it up.
  virtual bool teaches_curve(const CommunicationCall& /*call*/, const SystemTraits& /*system*/) const { return false; }
  // Whether a call is so small that the curve adds next to nothing: such calls give the first constants.
  virtual bool is_floor(const CommunicationCall& /*call*/) const { return false; }
  // The constants that one measured call of this kind tells, all by the same factor: a small message the latencies, a
  // large one the bandwidth of shared bridges.
  virtual std::vector<size_t> told_by(const CommunicationCall& /*call*/, const SystemTraits& /*system*/) const {
    return {};
  }
};

struct LawKind {
  std::string_view name;
  std::string_view summary;
  const CommunicationLaw* law;
  // Versions and number formats differ by a smooth factor from one curve, else each has a curve of its own.
  bool pools_variants;
  // A sweep keeps what the whole law leaves over; else what the law leaves over with the plain wire time for its curve,
  // where curves of different kernels would only add their own steps to the sweep's.
  bool sweeps_over_curve;
};

std::span<const LawKind> all_laws();
const LawKind* find_law(std::string_view name);

// Nothing where the law needs a curve that is not there.
std::optional<double> law_seconds(const CommunicationLaw& law, const LawCurves& curves, const CommunicationCall& call,
                                  const SystemTraits& system, std::span<const double> constants);

// What a sweep is kept relative to.
std::optional<double> swept_reference_seconds(const LawKind& kind, const LawCurves& curves,
                                              const CommunicationCall& call, const SystemTraits& system,
                                              std::span<const double> constants);

// log2, the same bits on every machine.
double doublings(double ratio);

// Bytes that cross the links in the best algorithm without in-switch reduction, as wire_bytes() of collective.h.
double message_wire_bytes(const CommunicationCall& call, bool all_reduce);

// The time that the links of a group need for a message, whatever the software: in an all-reduce a switch that reduces
// halves it. 0 for calls that are no messages.
double least_message_seconds(const CommunicationCall& call, const SystemTraits& system);

}  // namespace foretoken
