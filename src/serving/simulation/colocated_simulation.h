// A serving run whose engines share one device.
#pragma once

#include "serving/simulation/simulation_config.h"

namespace foretoken {

// simulate() calls it where the config says so. Each replica is one engine with its own model and requests. Engines run
// in times of their own (EngineClock); the observer is told when things happened on the wall.
// The way to an engine's queue (FrontCosts) takes its time whatever the device does. A gap between tokens is the mean
// of its step's or run's.
SimulationTotals simulate_colocated(const SimulationConfig& config, RequestSource& source, RunObserver& observer);

}  // namespace foretoken
