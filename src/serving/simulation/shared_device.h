// Engines that share one device.
#pragma once

#include <memory>

#include "serving/simulation/site.h"

namespace foretoken {

// Of a config with `colocation`, which outlives it as the others do. Each replica is one engine with its own model and
// requests. Engines run in times of their own (EngineClock); the observer is told when things happened on the wall. The
// way to an engine's queue (FrontCosts) takes its time whatever the device does. A gap between tokens is the mean of
// its step's or run's.
std::unique_ptr<Site> make_shared_device(const SimulationConfig& config, RequestEnds& ends, RunObserver& observer);

}  // namespace foretoken
