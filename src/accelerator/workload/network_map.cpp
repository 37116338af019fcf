#include "accelerator/workload/network_map.h"

#include "base/error.h"
#include "base/parallel.h"

namespace foretoken {

double outer_words(const Evaluation& evaluation, const Problem& problem) {
  double words = 0;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const TensorTraffic& traffic = traffic_at(evaluation, problem, 0, t);
    words += (traffic.reads + traffic.fills + traffic.updates) * traffic.instances;
  }
  return words;
}

NetworkMap map_network(const Architecture& architecture, std::vector<AcceleratorLayer> layers,
                       const ConstraintsFor& constraints, const MapperOptions& options) {
  NetworkMap map;
  for (AcceleratorLayer& layer : merged_layers(std::move(layers))) map.layers.push_back({.layer = std::move(layer)});
  MapperOptions each = options;
  each.threads = 1;
  each.progress = {};
  for_each_on_threads(options.threads, map.layers.size(), [&](size_t i) {
    SearchedLayer& own = map.layers[i];
    own.result = search_mappings(architecture, own.layer.problem, constraints(own.layer.problem), each);
  });
  for (const SearchedLayer& own : map.layers) {
    if (!own.result.best) {
      throw InputError({.source = own.layer.name, .value = own.layer.problem.name, .expected = own.result.reason});
    }
    const Evaluation& evaluation = own.result.best->evaluation;
    map.totals.operations += own.layer.count * evaluation.operations;
    map.totals.cycles += own.layer.count * evaluation.cycles;
    map.totals.latency_cycles += own.layer.count * evaluation.latency_cycles();
    map.totals.energy_pj += own.layer.count * evaluation.energy_pj;
    map.totals.outer_words += own.layer.count * outer_words(evaluation, own.layer.problem);
  }
  return map;
}

}  // namespace foretoken
