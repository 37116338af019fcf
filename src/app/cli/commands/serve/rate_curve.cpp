#include "app/cli/commands/serve/rate_curve.h"

#include <cmath>

#include <fmt/format.h>

#include "app/cli/output/progress.h"
#include "base/text.h"

namespace foretoken {

std::vector<RatePoint> other_rates(const ServeFlags& flags, std::vector<ReplicaGroup>& groups,
                                   const ServingMetrics& own, const Library& library) {
  if (!std::isfinite(flags.load.rate()) || !flags.load.trace.empty() || flags.fleet.given() || flags.colocation.given())
    return {};
  std::vector<RatePoint> points;
  for (const double factor : {0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0}) {
    const double rate = factor * flags.load.rate();
    if (factor == 1) {
      points.push_back({rate, own});
      continue;
    }
    show_progress(fmt::format("{:.3g} requests/s", rate));
    LoadFlags load = flags.load;
    load.request_rate = number_text(rate);
    StageList stages;
    ServingRunRequest request = flags.request_for(load, groups, stages, library);
    request.step_bounds = false;
    points.push_back({rate, run_serving(request).metrics});
  }
  return points;
}

}  // namespace foretoken
