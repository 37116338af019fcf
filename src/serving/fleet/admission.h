// Which requests a replica takes: the others are refused at once, while their clients can still go elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/simulated_time.h"
#include "serving/requests/request.h"
#include "serving/scheduling/router.h"

namespace foretoken {

struct AdmissionSettings {
  std::optional<int64_t> most_outstanding;  // requests of a replica that have not ended
  std::optional<Picoseconds> most_ttft;     // predicted
  // Share of both limits that each priority may use, most urgent first, the last for all that follow: what is kept free
  // is there for urgent requests. Empty = all may use all.
  std::vector<double> shares = {};

  bool any() const { return most_outstanding || most_ttft; }
};

// Predicts the wait in a replica's queue by Little's law: requests ahead over the rate at which the last ones ended.
class ServiceRate {
 public:
  void ended(Picoseconds when);
  // Nothing before enough have ended to know a rate.
  std::optional<Picoseconds> wait(int64_t ahead) const;

 private:
  static constexpr size_t most_kept = 256, fewest = 4;
  std::vector<Picoseconds> ends_;  // a ring, oldest at next_ once it is full
  size_t next_ = 0;
};

// Why a replica does not take a request now; none = it does. `prompt` is the time its own prompt takes.
Rejection refusal(const AdmissionSettings& settings, const Request& request, const ReplicaLoad& load,
                  const ServiceRate& rate, Picoseconds prompt);

}  // namespace foretoken
