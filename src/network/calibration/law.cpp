#include "network/calibration/law.h"

#include <algorithm>

#include "base/portable_math.h"

namespace foretoken {
namespace {

constexpr double log_two = 0.6931471805599453;

// At other numbers of ranks: between the neighbours, as logarithms; beyond them the nearest.
double curve_seconds(const std::map<int64_t, Curve>& by_ranks, int64_t ranks, double wire_seconds) {
  const double x = doublings(wire_seconds * 1e6);
  const auto value = [&](const Curve& curve) { return linear_value(curve, x, log_two); };
  const auto above = by_ranks.lower_bound(ranks);
  if (above == by_ranks.end()) return 1e-6 * portable_exp(value(std::prev(above)->second));
  if (above->first == ranks || above == by_ranks.begin()) return 1e-6 * portable_exp(value(above->second));
  const auto below = std::prev(above);
  const double low = portable_log(static_cast<double>(below->first));
  const double share =
      (portable_log(static_cast<double>(ranks)) - low) / (portable_log(static_cast<double>(above->first)) - low);
  return 1e-6 * portable_exp((1 - share) * value(below->second) + share * value(above->second));
}

}  // namespace

std::optional<double> law_seconds(const CommunicationLaw& law, const LawCurves& curves, const CommunicationCall& call,
                                  const SystemTraits& system, std::span<const double> constants) {
  const LawParts parts = law.parts(call, system, constants);
  double seconds = parts.apart;
  if (!parts.curve.empty()) {
    auto found = curves.find(parts.curve);
    if (found == curves.end()) found = curves.find(parts.fallback);
    if (found == curves.end() || found->second.empty()) return std::nullopt;
    seconds += parts.curve_scale * curve_seconds(found->second, call.ranks, parts.wire_seconds);
  }
  return std::max(parts.at_least, seconds);
}

std::optional<double> swept_reference_seconds(const LawKind& kind, const LawCurves& curves,
                                              const CommunicationCall& call, const SystemTraits& system,
                                              std::span<const double> constants) {
  if (kind.sweeps_over_curve) return law_seconds(*kind.law, curves, call, system, constants);
  const LawParts parts = kind.law->parts(call, system, constants);
  return std::max(parts.at_least, parts.apart);
}

double doublings(double ratio) {
  return portable_log(ratio) / log_two;
}

double message_wire_bytes(const CommunicationCall& call, bool all_reduce) {
  const auto ranks = static_cast<double>(call.ranks);
  return (all_reduce ? 2 : 1) * call.bytes * (ranks - 1) / ranks;
}

double least_message_seconds(const CommunicationCall& call, const SystemTraits& system) {
  if (call.bytes <= 0 || call.ranks < 2) return 0;
  const bool all_reduce = call.operation == "all_reduce" || call.law == "custom_all_reduce";
  return message_wire_bytes(call, all_reduce && !system.reduces_in_switch) / system.rate_among(call.ranks);
}

}  // namespace foretoken
