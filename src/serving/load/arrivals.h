// When requests arrive: the processes of `vllm bench serve`, and a daily rhythm.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "serving/requests/request.h"

namespace foretoken {

// How the rate changes over the run.
enum class RateShape {
  constant,
  linear,       // from ramp_start to ramp_end, request by request (vllm bench serve, --ramp-up-strategy)
  exponential,  // the same in equal ratios
  daily         // rate x (1 + swing x s(t)), s a sine of the given period
};
std::vector<std::string> rate_shape_names();
std::optional<RateShape> rate_shape_from_name(const std::string& name);

// Gaps at a constant rate are drawn twice, see Arrivals: more would take minutes before the first request.
inline constexpr int64_t most_made_up_requests = 100'000'000;

struct ArrivalSettings {
  double rate = std::numeric_limits<double>::infinity();  // requests/s; infinite = all at time 0
  double burstiness = 1;  // shape of the gamma-distributed gaps: 1 = Poisson, below burstier, above smoother
  RateShape shape = RateShape::constant;
  double ramp_start = 0, ramp_end = 0;  // requests/s
  double swing = 0.5;                   // 0 to 0.99
  double period_s = 86400;
  int64_t count = 1000;  // requests in all: ramps go over them
};

// sin(2 pi turns) within 0.0017: the same bits on every machine.
double sine_of_turns(double turns);

// InputError names the flag.
void check_arrivals(const ArrivalSettings& settings);

// Gaps are gamma with shape `burstiness` and mean 1/rate. At a constant rate they are stretched so that the last of
// `count` requests arrives at count/rate, as vllm bench serve does.
class Arrivals {
 public:
  Arrivals(const ArrivalSettings& settings, uint64_t seed);
  Picoseconds next();

 private:
  double gap_seconds();
  double daily_gap_seconds(double requests) const;

  ArrivalSettings settings_;
  RandomStream random_;
  double stretch_ = 1;
  double seconds_ = 0;
  int64_t given_ = 0;
};

}  // namespace foretoken
