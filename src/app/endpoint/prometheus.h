// Metrics of the engines in the text format of Prometheus, under vLLM's names.
#pragma once

#include <deque>
#include <string>

#include "serving/online/engine_metrics.h"
#include "serving/simulation/replica.h"

namespace foretoken {

// Times are simulated seconds. Engines are numbered as the replicas.
std::string prometheus_text(const EngineMetrics& metrics, const std::deque<Replica>& replicas,
                            const std::string& model_name);

}  // namespace foretoken
