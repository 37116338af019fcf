#include "serving/fleet/admission.h"

#include <algorithm>

namespace foretoken {
namespace {

double share_of(const AdmissionSettings& settings, int32_t priority) {
  if (settings.shares.empty()) return 1;
  return settings.shares[place_by_priority(priority, settings.shares.size())];
}

}  // namespace

void ServiceRate::ended(Picoseconds when) {
  if (ends_.size() < most_kept) {
    ends_.push_back(when);
    return;
  }
  ends_[next_] = when;
  next_ = (next_ + 1) % most_kept;
}

std::optional<Picoseconds> ServiceRate::wait(int64_t ahead) const {
  if (ahead == 0) return 0;
  if (ends_.size() < fewest) return std::nullopt;
  const Picoseconds oldest = ends_[next_], newest = ends_[(next_ + ends_.size() - 1) % ends_.size()];
  const double each = static_cast<double>(newest - oldest) / static_cast<double>(ends_.size() - 1);
  return to_picoseconds(
      Seconds(std::min(each * static_cast<double>(ahead) / picoseconds_per_second, longest_simulated_time.value())));
}

Rejection refusal(const AdmissionSettings& settings, const Request& request, const ReplicaLoad& load,
                  const ServiceRate& rate, Picoseconds prompt) {
  const double share = share_of(settings, request.priority);
  if (settings.most_outstanding) {
    const double limit = share * static_cast<double>(*settings.most_outstanding);
    if (static_cast<double>(load.outstanding + 1) > limit) return Rejection::too_many;
  }
  if (settings.most_ttft) {
    const std::optional<Picoseconds> wait = rate.wait(load.waiting);
    const double limit = share * static_cast<double>(*settings.most_ttft);
    if (wait && static_cast<double>(*wait + prompt) > limit) return Rejection::predicted_late;
  }
  return Rejection::none;
}

}  // namespace foretoken
