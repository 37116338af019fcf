#include "network/calibration/communication_predictor.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"

namespace foretoken {
namespace {

Estimate with_half_width(double seconds, double half_width, Confidence kind) {
  return {.value = seconds,
          .low = seconds * portable_exp(-half_width),
          .high = seconds * portable_exp(half_width),
          .kind = kind};
}

// What no software can beat, of times that were learned elsewhere.
void hold_above(Estimate& seconds, double least) {
  const double upward = seconds.high / seconds.value;
  seconds.value = std::max(seconds.value, least);
  seconds.low = std::max(seconds.low, least);
  seconds.high = std::max(seconds.high, seconds.value * upward);
}

// How much wider the interval is for sizes or versions that a sweep does not hold, and for numbers of ranks where
// nobody measured what those change: set by hand.
constexpr double outside_factor = 1.5, unknown_ranks_factor = 3;

}  // namespace

bool is_given(const std::vector<KnownTime>& known, const CommunicationCall& call) {
  return std::any_of(known.begin(), known.end(), [&](const KnownTime& one) {
    return one.call.law == call.law && one.call.operation == call.operation && one.call.ranks == call.ranks &&
           one.call.bytes == call.bytes;
  });
}

std::vector<std::string> swept_systems(const std::filesystem::path& folder) {
  std::vector<std::string> systems;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string system = entry.path().filename().string();
    const bool has_sweep = std::any_of(all_laws().begin(), all_laws().end(), [&](const LawKind& kind) {
      return std::filesystem::exists(sweep_calibration_path(folder, system, kind.name), error);
    });
    if (has_sweep) systems.push_back(system);
  }
  std::sort(systems.begin(), systems.end());
  return systems;
}

CommunicationLibrary read_communication_library(const std::filesystem::path& folder,
                                                const std::vector<std::string>& only_systems,
                                                std::span<const std::string_view> only_laws) {
  CommunicationLibrary library;
  std::error_code error;
  const auto wanted = [&](const LawKind& kind) {
    return only_laws.empty() || std::find(only_laws.begin(), only_laws.end(), kind.name) != only_laws.end();
  };
  for (const LawKind& kind : all_laws()) {
    if (!wanted(kind)) continue;
    const std::filesystem::path path = law_calibration_path(folder, kind.name);
    if (std::filesystem::exists(path, error)) library.laws.emplace(kind.name, read_law_calibration(path));
  }
  for (const std::string& system : only_systems.empty() ? swept_systems(folder) : only_systems) {
    for (const LawKind& kind : all_laws()) {
      if (!wanted(kind)) continue;
      const std::filesystem::path path = sweep_calibration_path(folder, system, kind.name);
      if (!std::filesystem::exists(path, error)) continue;
      library.sweeps.emplace(std::pair(system, std::string(kind.name)), read_sweep_calibration(path));
    }
  }
  return library;
}

std::vector<double> constants_after(const CommunicationLaw& law, const LawCurves& curves, const SystemTraits& system,
                                    const std::vector<KnownTime>& known, std::string_view law_name,
                                    std::vector<double> constants) {
  return constants_after(law, system, known, law_name, std::move(constants),
                         [&](const CommunicationCall& call, std::span<const double> values) {
                           return law_seconds(law, curves, call, system, values);
                         });
}

std::vector<double> constants_after(const CommunicationLaw& law, const SystemTraits& system,
                                    const std::vector<KnownTime>& known, std::string_view law_name,
                                    std::vector<double> constants, const SecondsOfConstants& seconds_of) {
  for (const KnownTime& one : known) {
    if (one.call.law != law_name) continue;
    const std::vector<size_t> told = law.told_by(one.call, system);
    const auto scaled_by = [&](double log_factor) {
      std::vector<double> values = constants;
      for (const size_t k : told) values[k] *= portable_exp(log_factor);
      return values;
    };
    // The law grows with these constants, so halving finds the factor.
    double low = -5, high = 5;
    for (int round = 0; round < 40 && !told.empty(); ++round) {
      const double middle = (low + high) / 2;
      const std::optional<double> seconds = seconds_of(one.call, scaled_by(middle));
      if (!seconds) break;
      (*seconds < one.seconds ? low : high) = middle;
    }
    constants = scaled_by((low + high) / 2);
  }
  return constants;
}

CommunicationPredictor::CommunicationPredictor(std::shared_ptr<const CommunicationLibrary> library, SystemTraits system,
                                               std::vector<SystemTraits> siblings, std::vector<KnownTime> known)
    : library_(std::move(library)),
      system_(std::move(system)),
      siblings_(std::move(siblings)),
      known_(std::move(known)) {}

bool CommunicationPredictor::is_told(const CommunicationCall& call, const LawKind& kind) const {
  return std::any_of(known_.begin(), known_.end(), [&](const KnownTime& one) {
    return one.call.law == call.law && !kind.law->told_by(one.call, system_).empty();
  });
}

std::optional<CommunicationTime> CommunicationPredictor::from_sweep(const CommunicationCall& call, const LawKind& kind,
                                                                    const LawCalibration& law,
                                                                    const SweepCalibration& sweep, bool is_own) const {
  const auto seconds_of = [&](const CommunicationCall& one, std::span<const double> values) -> std::optional<double> {
    const std::optional<Leftover> over = leftover_of(sweep, one);
    if (!over) return law_seconds(*kind.law, law.curves, one, system_, values);
    const std::optional<double> reference = swept_reference_seconds(kind, law.curves, one, system_, values);
    return reference ? std::optional(*reference * portable_exp(over->log_factor)) : std::nullopt;
  };
  const std::vector<double> constants = constants_after(
      *kind.law, system_, known_, law.law, law_constants(*kind.law, law, call.operation, sweep.system), seconds_of);
  const std::optional<double> seconds = seconds_of(call, constants);
  if (!seconds) return std::nullopt;
  const double value = *seconds;
  const std::optional<Leftover> leftover = leftover_of(sweep, call);
  const Tier tier = is_own ? Tier::measured : Tier::sibling;
  // Sizes of a layer or an operation that nobody swept: the law with the system's constants, as unsure as a stranger's.
  if (!leftover)
    return CommunicationTime{with_half_width(value, law.half_widths.at(value), Confidence::extrapolated), tier};
  double half_width = sweep.half_widths.at(value);
  if (!is_own) {
    // Few pairs of siblings were measured, and some are alike by luck: no sibling is surer than the swept system
    // itself.
    half_width = law.sibling_half_widths ? std::max(half_width, law.sibling_half_widths->at(value))
                                         : half_width + (law.half_widths.at(value) - half_width) / 3;
  }
  if (!leftover->at_swept_ranks) {
    half_width = law.other_ranks_half_widths ? std::max(half_width, law.other_ranks_half_widths->at(value))
                                             : unknown_ranks_factor * half_width;
  } else if (!leftover->inside) {
    half_width *= outside_factor;
  }
  const Confidence confidence = leftover->inside && is_own ? Confidence::interpolated : Confidence::extrapolated;
  return CommunicationTime{with_half_width(value, half_width, confidence), tier};
}

// A known time of a small message says nothing of bridges that large ones share.
bool CommunicationPredictor::wire_is_known(const CommunicationCall& call, const LawKind& kind) const {
  if (kind.law->wire_is_known(call, system_)) return true;
  const std::vector<size_t> wanted = kind.law->told_by(call, system_);
  return std::any_of(known_.begin(), known_.end(), [&](const KnownTime& one) {
    return one.call.law == call.law && kind.law->told_by(one.call, system_) == wanted;
  });
}

bool CommunicationPredictor::learns_from(const CommunicationCall& call) const {
  const LawKind* kind = find_law(call.law);
  return kind != nullptr && !kind->law->told_by(call, system_).empty();
}

std::optional<CommunicationTime> CommunicationPredictor::estimate(const CommunicationCall& call, Tier tier) const {
  const LawKind* kind = find_law(call.law);
  const auto law = library_->laws.find(call.law);
  if (kind == nullptr || law == library_->laws.end() || tier == Tier::roofline) return std::nullopt;
  std::optional<CommunicationTime> time = from_best_tier(call, *kind, law->second, tier);
  if (!time) return std::nullopt;
  if (system_.is_like_another) {
    // Fits withhold one generation at a time: what they were off by comes on top.
    Estimate& seconds = time->seconds;
    const double own = portable_log(seconds.high / seconds.value), unseen = law->second.half_widths.at(seconds.value);
    seconds = with_half_width(seconds.value, std::sqrt(own * own + unseen * unseen), seconds.kind);
  }
  if (time->tier != Tier::measured) hold_above(time->seconds, least_message_seconds(call, system_));
  time->uses_known_time = is_told(call, *kind);
  const bool is_own_wire = time->tier == Tier::measured && !system_.is_host_link;
  time->wire_is_known = is_own_wire || wire_is_known(call, *kind);
  return time;
}

std::optional<CommunicationTime> CommunicationPredictor::from_best_tier(const CommunicationCall& call,
                                                                        const LawKind& kind, const LawCalibration& law,
                                                                        Tier tier) const {
  if (tier == Tier::best || tier == Tier::measured) {
    const auto own = library_->sweeps.find({system_.name, call.law});
    if (own != library_->sweeps.end()) return from_sweep(call, kind, law, own->second, true);
    if (tier == Tier::measured) return std::nullopt;
  }
  // The bridges of one host say nothing of another's.
  if ((tier == Tier::best || tier == Tier::sibling) && wire_is_known(call, kind)) {
    for (const SystemTraits& sibling : siblings_) {
      if (sibling.name == system_.name) continue;
      const auto sweep = library_->sweeps.find({sibling.name, call.law});
      if (sweep != library_->sweeps.end()) return from_sweep(call, kind, law, sweep->second, false);
    }
  }
  if (tier == Tier::sibling) return std::nullopt;
  const std::vector<double> constants = constants_after(*kind.law, law.curves, system_, known_, law.law,
                                                        law_constants(*kind.law, law, call.operation, ""));
  SystemTraits group = system_;
  group.link_rate = system_.rate_among(call.ranks);
  const std::optional<double> seconds = law_seconds(*kind.law, law.curves, call, group, constants);
  if (!seconds) return std::nullopt;
  const HalfWidths& widths = law.told_half_widths && is_told(call, kind) ? *law.told_half_widths : law.half_widths;
  double half_width = widths.at(*seconds);
  // The sheet does not say how a host's bridges are shared: between L40S and RTX PRO 6000 hosts lies a factor of seven
  // for eight devices, once the wire counts.
  if (!wire_is_known(call, kind)) {
    const double unknown_bridges = call.ranks > 4 ? 2.1 : 1.6;
    const double wire_share = kind.law->parts(call, group, constants).wire_seconds / *seconds;
    half_width = std::max(half_width, unknown_bridges * std::min(1.0, 2 * wire_share));
  }
  return CommunicationTime{with_half_width(*seconds, half_width, Confidence::extrapolated), Tier::cross};
}

}  // namespace foretoken
