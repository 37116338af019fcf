#include "accelerator/dataflow/dataflow_analysis.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "accelerator/dataflow/cluster_level.h"
#include "accelerator/dataflow/iteration_case.h"
#include "accelerator/dataflow/level_reuse.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr int64_t dataflow_buffers = 2;

struct BufferNeed {
  int64_t input = 0;
  int64_t filter = 0;
  int64_t output = 0;

  int64_t total() const { return input + filter + output; }
};

// What one level costs for one tile it is given.
struct ClusterCost {
  int64_t runtime = 0;
  int64_t macs = 0;
  TensorAccesses input;
  TensorAccesses filter;
  TensorAccesses output;
  BufferNeed above;  // in the buffer that feeds the level
  BufferNeed below;  // in each unit of the level
  double average_units = 0;
  int64_t peak_bandwidth = 0;
  int64_t offchip_bandwidth = 0;
};

class DataflowAnalysis {
 public:
  DataflowAnalysis(const DataflowLayer& layer, std::span<const Directive> dataflow, const DataflowHardware& hardware,
                   DataflowReading reading, const std::string& source)
      : layer_(reading == DataflowReading::physical ? without_unused_input(layer) : layer),
        tensors_(tensors_of(layer)),
        hardware_(hardware),
        reading_(reading),
        levels_(cluster_levels(layer_, dataflow, hardware.num_pes, source)),
        known_costs_(levels_.size()) {
    if (reading == DataflowReading::physical) check_maps(source);
  }

  DataflowCost cost() {
    const ClusterCost& whole = level_cost(0, levels_.front().sizes);
    return {.runtime_cycles = whole.runtime,
            .macs = whole.macs,
            .input = whole.input,
            .filter = whole.filter,
            .output = whole.output,
            .l1_bytes = first_innermost_need_.total(),
            .l2_bytes = whole.above.total(),
            .average_pes = whole.average_units,
            .noc_bandwidth_needed = whole.peak_bandwidth,
            .offchip_bandwidth_needed = whole.offchip_bandwidth};
  }

 private:
  const ClusterCost& level_cost(size_t index, const DimSizes& sizes) {
    const auto known = known_costs_[index].find(sizes);
    if (known != known_costs_[index].end()) return known->second;
    const ClusterCost cost = analyse_level(index, sizes);
    if (index + 1 == levels_.size() && known_costs_[index].empty()) first_innermost_need_ = cost.below;
    return known_costs_[index].emplace(sizes, cost).first->second;
  }

  // MAESTRO goes on with these: it takes the last map of a dimension, and no output for no work.
  void check_maps(const std::string& source) const {
    const auto reject = [&](std::string value, std::string expected) {
      throw InputError({.source = source, .value = std::move(value), .expected = std::move(expected)});
    };
    for (const ClusterLevel& level : levels_) {
      for (const MapDirective& map : level.maps) {
        const std::string_view name = layer_dim_name(map.dim);
        if (&level.map_of(map.dim) != &map) reject(fmt::format("two maps of {}", name), "one in each cluster");
        const std::optional<LayerDim> window = window_of(map.dim);
        const int64_t window_size = window ? level.map_of(*window).size : 0;
        if (map.size >= window_size) continue;
        reject(fmt::format("{} of {} in an element", map.size, name),
               fmt::format("at least a window, {} of {}", window_size, layer_dim_name(*window)));
      }
    }
  }

  ClusterCost analyse_level(size_t index, const DimSizes& sizes) {
    // MAESTRO looks at every tile of a level as if it were the usual one, but for the number of steps.
    const ClusterLevel level = reading_ == DataflowReading::physical ? resized(levels_[index], sizes) : levels_[index];
    const LevelReuse reuse(level, layer_, reading_);
    ClusterCost cost;
    int64_t steps = 0;
    double busy_units = 0;
    for (const IterationCase& step : iteration_cases(level, sizes, reading_)) {
      if (steps == 0) add_buffers(cost, reuse, sizes, step);

      const int64_t egress = reuse.egress(tensors_.output, step);
      const int64_t macs = reuse.macs(tensors_.output, step);
      cost.output.l2_write += step.steps * egress;
      cost.output.l1_write += step.steps * macs;
      cost.output.l1_read += step.steps * macs;
      const int64_t critical_macs = reuse.critical_macs(tensors_.output, step);
      if (critical_macs <= 0) continue;

      const int64_t input = reuse.ingress(tensors_.input, step);
      const int64_t filter = reuse.ingress(tensors_.filter, step);
      count_input(cost.input, step.steps * input, step.steps * macs);
      count_input(cost.filter, step.steps * filter, step.steps * macs);

      const UnitsBelow below = units_below(index, level, reuse, step);
      const int64_t compute = below.cycles.value_or(critical_macs);
      cost.runtime += step.steps * step_cycles(index, step, cost.above,
                                               {.ingress = input + filter, .compute = compute, .egress = egress});
      cost.macs += step.steps * macs;
      busy_units += static_cast<double>(step.steps) * below.busy;
      const int64_t traffic = std::max(input + filter, egress);
      cost.peak_bandwidth = std::max(cost.peak_bandwidth, traffic / std::max<int64_t>(compute, 1));
      const int64_t refill = std::max(cost.above.input + cost.above.filter, cost.above.output);
      if (compute > 0) cost.offchip_bandwidth = std::max(cost.offchip_bandwidth, refill / compute / dataflow_buffers);
      steps += step.steps;
    }
    cost.average_units = steps == 0 ? 0 : busy_units / static_cast<double>(steps);
    return cost;
  }

  static void count_input(TensorAccesses& tensor, int64_t loaded, int64_t used) {
    tensor.l2_read += loaded;
    tensor.l1_write += loaded;
    tensor.l1_read += used;
  }

  // Called for the first step, and again for steps after it for as long as none had work to do: MAESTRO then adds up.
  void add_buffers(ClusterCost& cost, const LevelReuse& reuse, const DimSizes& sizes, const IterationCase& step) const {
    cost.above.input += dataflow_buffers * reuse.ingress(tensors_.input, step);
    cost.above.filter += dataflow_buffers * reuse.ingress(tensors_.filter, step);
    cost.above.output = dataflow_buffers * reuse.egress(tensors_.output, step);
    cost.below.input += dataflow_buffers * reuse.held_by_unit(tensors_.input);
    cost.below.filter += dataflow_buffers * reuse.held_by_unit(tensors_.filter);
    cost.below.output = dataflow_buffers * reuse.held_by_unit(tensors_.output);
    cost.input.l2_write = volume(tensors_.input, sizes);
    cost.filter.l2_write = volume(tensors_.filter, sizes);
    cost.output.l2_read = output_volume(sizes);
  }

  static int64_t volume(std::span<const LayerDim> tensor, const DimSizes& sizes) {
    int64_t product = 1;
    for (const LayerDim dim : tensor) product *= sizes[dim];
    return product;
  }

  int64_t output_volume(const DimSizes& sizes) const {
    int64_t product = 1;
    for (const LayerDim dim : tensors_.output) {
      const std::optional<LayerDim> window = window_of(dim);
      const int64_t stride = reading_ == DataflowReading::physical ? layer_.stride(dim) : 1;
      product *= window ? (sizes[dim] - sizes[*window]) / stride + 1 : sizes[dim];
    }
    return product;
  }

  struct UnitsBelow {
    double busy = 0;                // elements at work
    std::optional<int64_t> cycles;  // until the slowest is done; nothing where the units are the elements
  };

  UnitsBelow units_below(size_t index, const ClusterLevel& level, const LevelReuse& reuse, const IterationCase& step) {
    const DimStep& along = step.along[level.first_spatial_map().dim];
    int64_t units = along.is_partial ? level.edge_units : level.units;
    const auto all_units = static_cast<double>(units);
    UnitsBelow below;
    if (index + 1 == levels_.size()) return {.busy = all_units};
    below.cycles = 0;
    const auto add = [&](bool last_unit, int64_t count) {
      const ClusterCost& cost = level_cost(index + 1, reuse.sizes_below(step, last_unit));
      below.cycles = std::max(*below.cycles, cost.runtime);
      below.busy += cost.average_units * static_cast<double>(count);
    };
    if (along.is_partial && along.last_unit_partial) {
      add(true, 1);
      --units;
    }
    if (units > 0) add(false, units);
    if (below.busy == 0) below.busy = all_units;
    return below;
  }

  struct StepWork {
    int64_t ingress = 0;
    int64_t compute = 0;
    int64_t egress = 0;
  };

  // Double buffering hides the shorter of traffic and work, but nothing hides the first load.
  int64_t step_cycles(size_t index, const IterationCase& step, const BufferNeed& buffers, const StepWork& work) const {
    const int64_t ingress = noc_cycles(work.ingress);
    const int64_t cycles =
        step.is_first_step() ? work.compute + ingress : std::max({ingress, work.compute, noc_cycles(work.egress)});
    if (index > 0) return cycles;
    const int64_t offchip_in = (buffers.input + buffers.filter) / hardware_.offchip_bandwidth / dataflow_buffers;
    const int64_t offchip_out = buffers.output / hardware_.offchip_bandwidth / dataflow_buffers;
    return std::max({cycles, offchip_in, offchip_out});
  }

  int64_t noc_cycles(int64_t numbers) const {
    const int64_t sends = (numbers + hardware_.noc_bandwidth - 1) / hardware_.noc_bandwidth;
    return hardware_.noc_latency_cycles + sends - 1;
  }

  DataflowLayer layer_;
  DataflowTensors tensors_;
  const DataflowHardware& hardware_;
  DataflowReading reading_;
  std::vector<ClusterLevel> levels_;
  std::vector<std::map<DimSizes, ClusterCost>> known_costs_;  // of each level: tiles of one shape cost the same
  BufferNeed first_innermost_need_;
};

}  // namespace

double DataflowCost::macs_per_cycle() const {
  return runtime_cycles == 0 ? 0 : static_cast<double>(macs) / static_cast<double>(runtime_cycles);
}

double dataflow_energy_nanojoules(const DataflowCost& cost) {
  int64_t l1 = 0;
  int64_t l2 = 0;
  for (const TensorAccesses& tensor : {cost.input, cost.filter, cost.output}) {
    l1 += tensor.l1_read + tensor.l1_write;
    l2 += tensor.l2_read + tensor.l2_write;
  }
  return 1e-3 * mac_picojoules *
         (static_cast<double>(cost.macs) + l1_access_in_macs * static_cast<double>(l1) +
          l2_access_in_macs * static_cast<double>(l2));
}

DataflowCost analyse_dataflow(const DataflowLayer& layer, std::span<const Directive> dataflow,
                              const DataflowHardware& hardware, DataflowReading reading, const std::string& source) {
  return DataflowAnalysis(layer, dataflow, hardware, reading, source).cost();
}

}  // namespace foretoken
