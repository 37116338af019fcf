#include "app/cli/flags/astra_flags.h"

namespace foretoken {

void AstraFlags::declare(Options& options) {
  options.heading(heading);
  options.flag("--astra-compatible", wanted,
               "Compute times in nanoseconds exactly as ASTRA-sim's analytical backends do. Takes --topology "
               "Ring_Switch and --algorithm ring_direct (ring, direct, halvingDoubling), one per dimension");
  options.text("--dims", text.dims, "Number of NPUs in each dimension, for example 8x4");
  options.text("--bandwidth", text.bandwidth,
               "Bandwidth of each dimension, for example 100_50, in ASTRA-sim's GB/s (2^30 B/s)");
  options.text("--latency", text.latency, "Link latency of each dimension in nanoseconds, for example 500_1000");
  options.integer("--splits", run.splits, {.least = 1}, "preferred-dataset-splits");
  options.integer("--active", run.active, {.least = 1}, "active-chunks-per-dimension");
  options.integer("--queues", run.queues, {.least = 1}, "Queues per dimension");
  options.integer("--endpoint-delay", run.endpoint_ns, {.least = 0}, "ns");
  options.number("--local-mem-bw", run.local_memory_gb_per_s, {.least = 1}, "Local memory bandwidth in GB/s");
  options.flag("--congestion-aware", run.congestion_aware, "Use the congestion-aware backend");
}

AstraRun AstraFlags::run_of(CollectiveKind kind, int64_t bytes, const std::string& topology,
                            const std::string& algorithm) const {
  AstraRunText all = text;
  all.topology = topology;
  all.algorithm = algorithm;
  AstraRun result = run;
  result.kind = kind;
  result.bytes = bytes;
  result.dimensions = parse_astra_dimensions(all, "--astra-compatible");
  return result;
}

}  // namespace foretoken
