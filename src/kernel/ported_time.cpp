#include "kernel/ported_time.h"

#include <algorithm>
#include <cmath>

#include "base/portable_math.h"

namespace foretoken {
namespace {

// Beside both intervals: what a kernel does on one GPU and not on another. Over kernels that six GPUs ran (validate
// kernels --ported), intervals without it hold 63%, with it nine tenths.
constexpr double other_gpu_half_width = 0.25;

double log_ratio(double a, double b) {
  return a > 0 && b > 0 ? portable_log(a / b) : 0;
}

}  // namespace

Estimate quotient_of(const Estimate& above, const Estimate& below, double correlation) {
  const double value = above.value / below.value;
  const auto width = [&](double a, double b) { return std::sqrt(a * a + b * b - 2 * correlation * a * b); };
  const double down = width(log_ratio(above.value, above.low), log_ratio(below.high, below.value));
  const double up = width(log_ratio(above.high, above.value), log_ratio(below.value, below.low));
  return {.value = value,
          .low = value * portable_exp(-down),
          .high = value * portable_exp(up),
          .kind = std::max(above.kind, below.kind)};
}

Estimate port_ratio(const Estimate& there, const Estimate& here) {
  Estimate ratio = quotient_of(there, here, 0);
  ratio.low = ratio.value * portable_exp(-portable_hypot(log_ratio(ratio.value, ratio.low), other_gpu_half_width));
  ratio.high = ratio.value * portable_exp(portable_hypot(log_ratio(ratio.high, ratio.value), other_gpu_half_width));
  return ratio;
}

void PortedPairs::add(const ScoredKernel& scored) {
  const FormCall call{.shape = *scored.shape, .variant = std::string(scored.variant)};
  std::vector<Kernel>& alike = kernels_[{call_group(call), raw_features(call), scored.copied}];
  auto kernel = std::find_if(alike.begin(), alike.end(), [&](const Kernel& one) { return one.shape == *scored.shape; });
  if (kernel == alike.end()) kernel = alike.insert(alike.end(), {.shape = *scored.shape, .by_device = {}});
  Measured& measured = kernel->by_device[std::string(scored.device)];
  measured.sum_us += scored.measured_us;
  measured.rows += 1;
  measured.estimate = scored.predicted.seconds;
}

std::vector<PortedPair> PortedPairs::pairs() const {
  std::map<std::pair<std::string, std::string>, PortedPair> pairs;
  for (const auto& [key, alike] : kernels_) {
    for (const Kernel& kernel : alike) {
      for (const auto& [from, here] : kernel.by_device) {
        for (const auto& [to, there] : kernel.by_device) {
          if (from == to) continue;
          const Estimate ported = scaled(port_ratio(there.estimate, here.estimate), here.us());
          PortedPair& pair = pairs[{from, to}];
          pair.kernels += 1;
          pair.ported_mape += std::abs(ported.value / there.us() - 1);
          pair.estimated_mape += std::abs(there.estimate.value * 1e6 / there.us() - 1);
          pair.coverage += ported.low <= there.us() && there.us() <= ported.high ? 1 : 0;
        }
      }
    }
  }
  std::vector<PortedPair> result;
  for (auto& [names, pair] : pairs) {
    const double to_percent = 100 / static_cast<double>(pair.kernels);
    pair.from = names.first;
    pair.to = names.second;
    for (double* sum : {&pair.ported_mape, &pair.estimated_mape, &pair.coverage}) *sum *= to_percent;
    result.push_back(std::move(pair));
  }
  return result;
}

}  // namespace foretoken
