// The flags that say which layers run on an accelerator: one product, one convolution, or a network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accelerator/workload/network_layer.h"
#include "accelerator/workload/vector_work.h"
#include "app/cli/flags/graph_flags.h"
#include "app/cli/grammar/options.h"
#include "library/library.h"

namespace foretoken {

struct LayerFlags {
  std::string gemm, conv, network;
  GraphFlags graph;  // of a network in a graph file
  int64_t batch = 1;

  void declare(Options& options);
  void declare_batch(Options& options);
  int kinds_given() const;  // of --gemm, --conv and --network
  // InputError unless exactly one kind of work is given.
  std::vector<NetworkLayer> layers(const Library& library) const;
  // What a graph does besides its multiplications; nothing for other kinds of work.
  std::vector<VectorWork> work_beside() const;
};

}  // namespace foretoken
