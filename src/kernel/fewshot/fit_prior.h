// Makes a prior from measured latencies.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/fewshot/adapted_device.h"
#include "kernel/fewshot/failed_rows.h"
#include "kernel/fewshot/latency_prior.h"
#include "kernel/fewshot/latency_table.h"

namespace foretoken {

struct PriorFitOptions {
  std::optional<RowRange> rows;  // only these ids, as when architectures must be new too; default all
  std::string source, date;      // kept in the prior
};

// Weights of every device in the table; odds are even.
struct PriorFit {
  LatencyPrior prior;
  std::vector<std::vector<size_t>> positions;  // by device of the table: the latencies it was fitted on
};
PriorFit fit_devices(const ArchitectureSpace& space, const LatencyTable& table, const PriorFitOptions& options);

// Odds and interval of a prior: each of its devices in turn is adapted from ten timings without its family, and the
// odds are those that explain all of them best (expectation maximisation). The devices are those of `fit` by name.
void learn_odds(LatencyPrior& prior, const PriorFit& fit, const LatencyTable& table);

// Both. InputError when the table has fewer than two devices.
LatencyPrior fit_latency_prior(const ArchitectureSpace& space, const LatencyTable& table,
                               const PriorFitOptions& options);

// The timing at a position of a device's latencies.
Timing timing_at(const LatencyTable& table, const DeviceLatencies& latencies, size_t position);

// `count` of `from`, in random order; all when there are fewer.
std::vector<size_t> draw_some(std::vector<size_t> from, size_t count, RandomStream& stream);

}  // namespace foretoken
