// One make_ function per kind; list.cpp names them.
#pragma once

#include <memory>

#include "serving/fleet/autoscaler.h"

namespace foretoken {

std::unique_ptr<Autoscaler> make_reactive(const AutoscalerSettings& settings);
std::unique_ptr<Autoscaler> make_predictive(const AutoscalerSettings& settings);
std::unique_ptr<Autoscaler> make_seasonal(const AutoscalerSettings& settings);
std::unique_ptr<Autoscaler> make_planner(const AutoscalerSettings& settings);

}  // namespace foretoken
