#include "accelerator/workload/network_map.h"

#include "accelerator/sparse/sparse_search.h"
#include "base/error.h"
#include "base/parallel.h"

namespace foretoken {
namespace {

void search_layer(const Architecture& architecture, const Constraints& constraints, const MapperOptions& options,
                  const NetworkZeros& zeros, SearchedLayer& own) {
  const Problem& problem = own.layer.problem;
  if (!zeros.of_layer) {
    own.result = search_mappings(architecture, problem, constraints, options);
    return;
  }
  const SparsityDescription sparsity = zeros.of_layer(own.layer);
  own.result = search_sparse_mappings(architecture, problem, constraints, options, sparsity, zeros.rules);
  if (!own.result.best) return;
  const FoundMapping& best = *own.result.best;
  own.sparse = evaluate_sparse(architecture, problem, best.mapping, best.evaluation, sparsity, zeros.rules);
}

NetworkTotals counted_totals(const RunCosts& costs, double operations, double words, double count) {
  return {.operations = count * operations,
          .cycles = count * costs.cycles,
          .latency_cycles = count * costs.latency_cycles,
          .energy_pj = count * costs.energy_pj,
          .outer_words = count * words};
}

}  // namespace

double outer_words(const Evaluation& evaluation, const Problem& problem) {
  double words = 0;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const TensorTraffic& traffic = traffic_at(evaluation, problem, 0, t);
    words += (traffic.reads + traffic.fills + traffic.updates) * traffic.instances;
  }
  return words;
}

double outer_words(const SparseEvaluation& evaluation, const Problem& problem) {
  double words = 0;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const SparseTraffic& traffic = evaluation.traffic[t];
    words += (traffic.reads.actual + traffic.fills.actual + traffic.updates.actual) * traffic.instances;
  }
  return words;
}

NetworkTotals& NetworkTotals::operator+=(const NetworkTotals& other) {
  operations += other.operations;
  cycles += other.cycles;
  latency_cycles += other.latency_cycles;
  energy_pj += other.energy_pj;
  outer_words += other.outer_words;
  return *this;
}

NetworkMap map_network(const Architecture& architecture, std::vector<AcceleratorLayer> layers,
                       const ConstraintsFor& constraints, const MapperOptions& options, const NetworkZeros& zeros) {
  NetworkMap map;
  for (AcceleratorLayer& layer : merged_layers(std::move(layers))) map.layers.push_back({.layer = std::move(layer)});
  MapperOptions each = options;
  each.threads = 1;
  each.progress = {};
  for_each_on_threads(options.threads, map.layers.size(), [&](size_t i) {
    SearchedLayer& own = map.layers[i];
    search_layer(architecture, constraints(own.layer.problem), each, zeros, own);
  });
  for (const SearchedLayer& own : map.layers) {
    if (!own.result.best) {
      throw InputError({.source = own.layer.name, .value = own.layer.problem.name, .expected = own.result.reason});
    }
    const Evaluation& dense = own.result.best->evaluation;
    const double words = outer_words(dense, own.layer.problem);
    map.dense += counted_totals(run_costs(dense), dense.operations, words, own.layer.count);
    map.totals += own.sparse ? counted_totals(own.result.best->costs, own.sparse->operations.actual,
                                              outer_words(*own.sparse, own.layer.problem), own.layer.count)
                             : counted_totals(own.result.best->costs, dense.operations, words, own.layer.count);
  }
  return map;
}

}  // namespace foretoken
