// How well devices that a prior has not seen are predicted from a few timings: the published protocol of HELP. H. Lee
// et al., "HELP: Hardware-Adaptive Efficient Latency Prediction for NAS via Meta-Learning", NeurIPS 2021, section 4.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernel/fewshot/latency_prior.h"
#include "kernel/fewshot/latency_table.h"

namespace foretoken {

struct FewshotRequest {
  enum class Withheld { device, family };          // family: all batch sizes of a GPU together
  enum class Architectures { known, new_to_all };  // new_to_all: the prior sees none of the queried ones on any device
  enum class Choice { random, advised };           // of the timings; advised: by measure_first

  size_t timings = 10;
  size_t draws = 20;
  Withheld withheld = Withheld::device;
  Architectures architectures = Architectures::known;
  Choice choice = Choice::random;
};

// Means over the draws; percentages as plain numbers.
struct FewshotErrors {
  double spearman = 0, mape = 0, coverage90 = 0;
};

struct FewshotGroup {
  std::string device;
  bool sum_of_blocks = false;  // its latencies were added up from blocks, not measured
  size_t failed_rows = 0;      // left out as failed measurements
  size_t queries = 0;          // untrimmed
  FewshotErrors trimmed;       // without the fastest and the slowest tenth
  FewshotErrors untrimmed;
};

struct FewshotValidation {
  std::vector<FewshotGroup> groups;  // in the order of the table
  FewshotGroup measured;             // mean over the devices that were measured
  FewshotGroup sums;                 // and over those that were added up; `queries` 0 where there are none
  std::vector<std::string> skipped;  // devices with too few latencies, and why
};

// Every device of the table in turn is adapted from a prior of the others. A device whose family `shipped` does not
// know is adapted from that; pass null to use the table alone.
FewshotValidation validate_fewshot(const ArchitectureSpace& space, const LatencyTable& table,
                                   const FewshotRequest& request, const LatencyPrior* shipped = nullptr);

}  // namespace foretoken
