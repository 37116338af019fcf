// Every layer of a network mapped onto an accelerator, one after another.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "accelerator/mapper/mapper.h"
#include "accelerator/sparse/sparse_evaluator.h"
#include "accelerator/workload/layer_list.h"

namespace foretoken {

// What a problem's mappings must obey: tensors have other names in a multiplication than in a convolution.
using ConstraintsFor = std::function<Constraints(const Problem& problem)>;

// The zeros of each layer; without `of_layer` all is dense.
struct NetworkZeros {
  std::function<SparsityDescription(const AcceleratorLayer& layer)> of_layer;
  SparseRules rules;
};

struct SearchedLayer {
  AcceleratorLayer layer;
  MapperResult result;
  std::optional<SparseEvaluation> sparse;  // of the mapping found, which was searched with zeros
};

struct NetworkTotals {
  double operations = 0, cycles = 0, latency_cycles = 0, energy_pj = 0;
  double outer_words = 0;  // read from and written to the outermost level

  NetworkTotals& operator+=(const NetworkTotals& other);
};

struct NetworkMap {
  std::vector<SearchedLayer> layers;  // equal ones merged
  NetworkTotals totals;               // of all of them, counts included, with their zeros
  NetworkTotals dense;                // the same mappings, every word a nonzero
};

// Layers share the threads: each is searched on one. InputError when a layer fits nowhere.
NetworkMap map_network(const Architecture& architecture, std::vector<AcceleratorLayer> layers,
                       const ConstraintsFor& constraints, const MapperOptions& options, const NetworkZeros& zeros = {});

// Words that pass between the outermost level and the rest in one run.
double outer_words(const Evaluation& evaluation, const Problem& problem);
// Of the words that are stored and asked for; metadata not among them.
double outer_words(const SparseEvaluation& evaluation, const Problem& problem);

}  // namespace foretoken
