// The search of a retrieval: how long it takes to find the vectors nearest to a question.
#pragma once

#include <cstdint>
#include <memory>

#include "base/estimate.h"
#include "serving/stages/stage.h"

namespace foretoken {

// Inverted lists of product-quantized codes (IVF-PQ) on CPUs: the codes of the lists that a question probes are read
// once. Numbers as RAGO calibrates ScaNN on servers of 96 cores and 460 GB/s (arXiv 2503.14649): a core scans 18 GB/s,
// all together at most 80% of the memory's bandwidth; each question is one thread's. Its index of 64 billion passages
// has 96 bytes each, of which a question reads 0.1%.
struct VectorSearch {
  double vectors = 1e9;
  double code_bytes = 96;
  double probed_share = 0.001;
  int64_t shards = 1;  // machines that hold a part each: all search it, at once
  int64_t cores = 96;  // of a machine
  double core_bytes_per_s = 18e9;
  double memory_bytes_per_s = 460e9;
  double memory_utilisation = 0.8;

  double bytes_per_question() const;  // on one machine
  // As many as the memory feeds at the full speed of a core each, at least one: more wait.
  int64_t questions_at_once() const;
};

// One question. Its interval is as wide as what is not known of the memory's use.
Estimate search_seconds(const VectorSearch& search);

std::unique_ptr<StageTimes> search_stage(const VectorSearch& search);

}  // namespace foretoken
