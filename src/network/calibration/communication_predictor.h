// A call of a communication library on one system -> seconds, from the best tier there is.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "hardware/catalogue.h"
#include "kernel/learned.h"
#include "network/calibration/communication_calibration.h"

namespace foretoken {

// One measured call, given instead of a sweep: a small message tells the latencies, a large one over shared PCIe
// bridges their bandwidth, an eager custom all-reduce the host's time.
struct KnownTime {
  CommunicationCall call;
  double seconds = 0;
};
// Whether the time of the call is among the known, in any variant: one that is says nothing about predictions.
bool is_given(const std::vector<KnownTime>& known, const CommunicationCall& call);

struct CommunicationTime {
  Estimate seconds;
  Tier tier = Tier::cross;  // cross, sibling or measured
  // Not so for bridges that devices share, unless a known time of such a call tells: a sweep is of one host.
  bool wire_is_known = true;
  bool uses_known_time = false;
};

// Calibrations that a fit made and holds in memory, or that were read from a folder.
struct CommunicationLibrary {
  std::map<std::string, LawCalibration, std::less<>> laws;
  std::map<std::pair<std::string, std::string>, SweepCalibration> sweeps;  // by system and law
};

// All files below the folder, or those of some systems and laws; a folder without files gives an empty library, which
// predicts nothing.
CommunicationLibrary read_communication_library(const std::filesystem::path& folder,
                                                const std::vector<std::string>& only_systems = {},
                                                std::span<const std::string_view> only_laws = {});
// The systems that have sweeps there.
std::vector<std::string> swept_systems(const std::filesystem::path& folder);

// The constants of a law after known times: those that each call tells, scaled until the law gives its time.
std::vector<double> constants_after(const CommunicationLaw& law, const LawCurves& curves, const SystemTraits& system,
                                    const std::vector<KnownTime>& known, std::string_view law_name,
                                    std::vector<double> constants);
// The same where something comes on top of the law, such as what a sweep leaves over.
using SecondsOfConstants =
    std::function<std::optional<double>(const CommunicationCall& call, std::span<const double> constants)>;
std::vector<double> constants_after(const CommunicationLaw& law, const SystemTraits& system,
                                    const std::vector<KnownTime>& known, std::string_view law_name,
                                    std::vector<double> constants, const SecondsOfConstants& seconds_of);

class CommunicationPredictor {
 public:
  // `siblings`: measured systems of the same generation, nearest first. The library is shared by the predictors of all
  // systems.
  CommunicationPredictor(std::shared_ptr<const CommunicationLibrary> library, SystemTraits system,
                         std::vector<SystemTraits> siblings, std::vector<KnownTime> known = {});

  // Nothing where no law, calibration or curve covers the call, or the forced tier has no data. Tier::roofline has
  // none.
  std::optional<CommunicationTime> estimate(const CommunicationCall& call, Tier tier = Tier::best) const;

  // Whether a measured time of this call would tell anything.
  bool learns_from(const CommunicationCall& call) const;

  const SystemTraits& system() const { return system_; }

 private:
  std::optional<CommunicationTime> from_sweep(const CommunicationCall& call, const LawKind& kind,
                                              const LawCalibration& law, const SweepCalibration& sweep,
                                              bool is_own) const;
  std::optional<CommunicationTime> from_best_tier(const CommunicationCall& call, const LawKind& kind,
                                                  const LawCalibration& law, Tier tier) const;
  bool is_told(const CommunicationCall& call, const LawKind& kind) const;
  bool wire_is_known(const CommunicationCall& call, const LawKind& kind) const;

  std::shared_ptr<const CommunicationLibrary> library_;
  SystemTraits system_;
  std::vector<SystemTraits> siblings_;
  std::vector<KnownTime> known_;
};

}  // namespace foretoken
