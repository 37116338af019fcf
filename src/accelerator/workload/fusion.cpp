#include "accelerator/workload/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "accelerator/tile.h"
#include "base/error.h"

namespace foretoken {
namespace {

// A layer with the parts that fusing asks about.
struct ChainLayer {
  const AcceleratorLayer* layer = nullptr;
  int rows = -1;   // dimension along which it is cut: Q of a convolution, M of a multiplication
  int heads = -1;  // products beside each other, each with operands of its own, may run some at a time
  int input = -1, weights = -1, output = -1;
  int64_t stride = 1;  // input rows from one output row to the next
};

ChainLayer chain_layer(const AcceleratorLayer& layer) {
  ChainLayer own{.layer = &layer};
  own.rows = find_dimension(layer.problem, "Q");
  if (own.rows < 0) {
    own.rows = find_dimension(layer.problem, "M");
    own.heads = find_dimension(layer.problem, "H");
  }
  for (size_t t = 0; t < layer.problem.tensors.size(); ++t) {
    const ProblemTensor& tensor = layer.problem.tensors[t];
    if (tensor.written) {
      own.output = static_cast<int>(t);
    } else if (uses_dimension(tensor, own.rows)) {
      own.input = static_cast<int>(t);
    } else {
      own.weights = static_cast<int>(t);
    }
  }
  if (own.input < 0 || own.output < 0) return own;
  for (const auto& rank : layer.problem.tensors[own.input].ranks) {
    for (const ProjectionTerm& term : rank) {
      if (term.dimension == own.rows) own.stride = term.coefficient;
    }
  }
  return own;
}

int64_t size_of(const Problem& problem, std::string_view dimension) {
  const int found = find_dimension(problem, dimension);
  return found < 0 ? 1 : problem.dimensions[found].size;
}

// Channels that a layer takes or makes; groups included.
int64_t channels_in(const Problem& problem) {
  return find_dimension(problem, "C") >= 0 ? size_of(problem, "C") * size_of(problem, "G") : size_of(problem, "K");
}
int64_t channels_out(const Problem& problem) {
  return find_dimension(problem, "C") >= 0 ? size_of(problem, "M") * size_of(problem, "G") : size_of(problem, "N");
}

void check_chain(const AcceleratorLayer& before, const AcceleratorLayer& after) {
  const int64_t made = channels_out(before.problem), taken = channels_in(after.problem);
  if (made == taken) return;
  throw InputError({.source = after.name,
                    .path = "from_previous",
                    .value = fmt::format("{} channels in", taken),
                    .expected = fmt::format("the {} channels that {} puts out", made, before.name)});
}

Problem turn_of(const ChainLayer& layer, int64_t rows, int64_t heads) {
  Problem problem = layer.layer->problem;
  problem.dimensions[layer.rows].size = rows;
  if (layer.heads >= 0) problem.dimensions[layer.heads].size = heads;
  return problem;
}

double words_of(const Problem& problem, int tensor) {
  return tensor < 0 ? 0 : tensor_words(problem.tensors[tensor], problem);
}

// Keeps a tensor at the level and off everything further out, whose loops then may not move it.
void hold_at(Constraints& constraints, const Problem& problem, int tensor, int level) {
  std::erase_if(constraints.storage,
                [&](const KeepConstraint& own) { return own.tensor == tensor && own.level <= level; });
  constraints.storage.push_back({.level = level, .tensor = tensor, .keep = true});
  for (int outer = 0; outer < level; ++outer) {
    constraints.storage.push_back({.level = outer, .tensor = tensor, .keep = false});
    LoopConstraint fixed{.level = outer};
    for (size_t d = 0; d < problem.dimensions.size(); ++d) {
      if (!uses_dimension(problem.tensors[tensor], static_cast<int>(d))) continue;
      fixed.factors.push_back({.dimension = static_cast<int>(d), .kind = FactorRule::Kind::exactly, .value = 1});
    }
    constraints.loops.push_back(std::move(fixed));
  }
}

bool may_stay(const Constraints& constraints, int tensor, int level) {
  return std::none_of(constraints.storage.begin(), constraints.storage.end(), [&](const KeepConstraint& own) {
    return own.tensor == tensor && own.level == level && !own.keep;
  });
}

class Fuser {
 public:
  Fuser(const Architecture& architecture, std::span<const AcceleratorLayer> layers, const ConstraintsFor& constraints,
        const FusionOptions& options)
      : architecture_(architecture), layers_(layers), constraints_(constraints), options_(options) {
    for (const AcceleratorLayer& layer : layers) chain_.push_back(chain_layer(layer));
    room_ = static_cast<double>(words_held(architecture.levels[options.level]));
  }

  FusedGroup alone(size_t index) const {
    const AcceleratorLayer& layer = layers_[index];
    MapperOptions options = options_.mapper;
    options.most_tries = std::max(options.most_tries, options_.alone_tries);
    MapperResult found = search_mappings(architecture_, layer.problem, constraints_(layer.problem), options);
    if (!found.best) throw InputError({.source = layer.name, .expected = found.reason});
    FusedGroup group{.first = index};
    add(group, layer.problem, std::move(*found.best), layer.count);
    return group;
  }

  // The best way to run the layers together; nothing when they cannot be.
  std::optional<FusedGroup> together(size_t first, size_t count) const {
    std::optional<FusedGroup> best;
    Turn best_turn;
    const auto try_turn = [&](const Turn& turn, const MapperOptions& mapper) {
      std::optional<FusedGroup> group = attempt(first, count, turn, mapper);
      if (!group || (best && cost(group->totals) >= cost(best->totals))) return;
      best = std::move(group);
      best_turn = turn;
    };
    for (const int64_t heads : divisors(heads_of(first))) {
      for (const int64_t rows : divisors(rows_of(first + count - 1))) {  // equal turns
        for (const bool stay : {false, true}) {
          try_turn({.rows = rows, .heads = heads, .weights_stay = stay}, options_.mapper);
        }
      }
    }
    if (best && options_.finalist_tries > options_.mapper.most_tries) {
      MapperOptions more = options_.mapper;
      more.most_tries = options_.finalist_tries;
      try_turn(best_turn, more);
    }
    return best;
  }

  bool can_join(size_t index) const {
    const ChainLayer& own = chain_[index];
    const ChainLayer& before = chain_[index - 1];
    return own.layer->from_previous && own.layer->count == before.layer->count && own.input >= 0 &&
           before.output >= 0 && heads_of(index) == heads_of(index - 1);
  }

  // What the whole network is judged by; groups are chosen by cost(), which adds up.
  double objective(const NetworkTotals& totals) const {
    return options_.mapper.objective.first == MappingMetric::edp ? totals.energy_pj * totals.cycles : cost(totals);
  }

  double cost(const NetworkTotals& totals) const {
    switch (options_.mapper.objective.first) {
      case MappingMetric::delay:
        return totals.cycles;
      case MappingMetric::latency:
        return totals.latency_cycles;
      default:
        return totals.energy_pj;
    }
  }

 private:
  // What the last layer makes in one turn.
  struct Turn {
    int64_t rows = 1, heads = 1;
    bool weights_stay = false;
  };

  int64_t rows_of(size_t index) const { return chain_[index].layer->problem.dimensions[chain_[index].rows].size; }
  int64_t heads_of(size_t index) const {
    const ChainLayer& own = chain_[index];
    return own.heads < 0 ? 1 : own.layer->problem.dimensions[own.heads].size;
  }
  static std::vector<int64_t> divisors(int64_t size) {
    std::vector<int64_t> all;
    for (int64_t one = 1; one <= size; ++one) {
      if (size % one == 0) all.push_back(one);
    }
    return all;
  }

  static void add(FusedGroup& group, const Problem& problem, FoundMapping found, double times) {
    group.totals.operations += times * found.evaluation.operations;
    group.totals.cycles += times * found.evaluation.cycles;
    group.totals.latency_cycles += times * found.evaluation.latency_cycles();
    group.totals.energy_pj += times * found.evaluation.energy_pj;
    group.totals.outer_words += times * outer_words(found.evaluation, problem);
    group.mappings.push_back(std::move(found));
  }

  std::optional<FusedGroup> attempt(size_t first, size_t count, const Turn& size, const MapperOptions& mapper) const {
    const bool weights_stay = size.weights_stay;
    // One turn of each layer, from the last back to the first.
    std::vector<Problem> turn(count);
    int64_t made = size.rows;
    for (size_t i = count; i-- > 0;) {
      const ChainLayer& own = chain_[first + i];
      turn[i] = turn_of(own, std::min(made, rows_of(first + i)), size.heads);
      made *= own.stride;
    }
    double held = 0, weights = 0;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) held += words_of(turn[i], chain_[first + i].input);
      if (weights_stay) weights += words_of(turn[i], chain_[first + i].weights);
    }
    if (room_ > 0 && held + weights > room_) return std::nullopt;

    const auto parts = static_cast<double>(heads_of(first) / size.heads);  // each with weights of its own
    FusedGroup group{.first = first, .count = count, .rows = size.rows, .weights_stay = weights_stay};
    if (heads_of(first) > 1) group.heads = size.heads;
    group.turns = parts * static_cast<double>(rows_of(first + count - 1) / size.rows);
    for (size_t i = 0; i < count; ++i) {
      const ChainLayer& own = chain_[first + i];
      Constraints constraints = constraints_(turn[i]);
      // What is held for others is not there for this layer.
      double others = held + weights;
      if (i > 0) {
        hold_at(constraints, turn[i], own.input, options_.level);
        others -= words_of(turn[i], own.input);
      }
      if (i + 1 < count) {
        hold_at(constraints, turn[i], own.output, options_.level);
        others -= std::min(words_of(turn[i], own.output), words_of(turn[i + 1], chain_[first + i + 1].input));
      }
      if (weights_stay && own.weights >= 0) {
        if (!may_stay(constraints, own.weights, options_.level)) return std::nullopt;
        hold_at(constraints, turn[i], own.weights, options_.level);
        others -= words_of(turn[i], own.weights);
      }
      Architecture smaller = architecture_;
      AcceleratorLevel& level = smaller.levels[options_.level];
      if (level.depth > 0) {
        level.depth -= static_cast<int64_t>(others) * level.buffers / level.words_per_access;
        if (words_held(level) < 1) return std::nullopt;
      }
      if (!constraint_faults(constraints, smaller, turn[i]).empty()) return std::nullopt;
      MapperResult found = search_mappings(smaller, turn[i], constraints, mapper);
      if (!found.best) return std::nullopt;
      add(group, turn[i], std::move(*found.best), group.turns * own.layer->count);
    }
    if (weights_stay) add_first_reading(group, weights * parts * chain_[first].layer->count);
    return group;
  }

  // Weights that stay are read once.
  void add_first_reading(FusedGroup& group, double words) const {
    const AcceleratorLevel& outer = architecture_.levels.front();
    const AcceleratorLevel& level = architecture_.levels[options_.level];
    group.totals.outer_words += words;
    group.totals.energy_pj +=
        words * (outer.energy.read_pj / outer.words_per_access + level.energy.fill_pj / level.words_per_access);
    if (!outer.bandwidth.read) return;
    group.totals.cycles += words / *outer.bandwidth.read;
    group.totals.latency_cycles += words / *outer.bandwidth.read;
  }

  const Architecture& architecture_;
  std::span<const AcceleratorLayer> layers_;
  const ConstraintsFor& constraints_;
  const FusionOptions& options_;
  std::vector<ChainLayer> chain_;
  double room_ = 0;
};

}  // namespace

FusionResult fuse_layers(const Architecture& architecture, std::span<const AcceleratorLayer> layers,
                         const ConstraintsFor& constraints, const FusionOptions& options) {
  ensure(options.level > 0 && options.level + 1 < std::ssize(architecture.levels),
         "what passes between layers is held at a level inside the chip");
  const Fuser fuser(architecture, layers, constraints, options);
  FusionResult result;
  // Best cost of the first i layers, and the group that ends there.
  std::vector<double> least(layers.size() + 1, std::numeric_limits<double>::infinity());
  std::vector<FusedGroup> last(layers.size() + 1), singles;
  least[0] = 0;
  for (size_t end = 1; end <= layers.size(); ++end) {
    FusedGroup single = fuser.alone(end - 1);
    result.apart += single.totals;
    least[end] = least[end - 1] + fuser.cost(single.totals);
    singles.push_back(single);
    last[end] = std::move(single);
    for (size_t count = 2; count <= std::min(options.most_layers, end); ++count) {
      const size_t first = end - count;
      if (!fuser.can_join(first + 1)) break;
      check_chain(layers[first], layers[first + 1]);
      std::optional<FusedGroup> group = fuser.together(first, count);
      if (!group) continue;
      const double cost = least[first] + fuser.cost(group->totals);
      if (cost >= least[end]) continue;
      least[end] = cost;
      last[end] = std::move(*group);
    }
  }
  for (size_t end = layers.size(); end > 0; end -= result.groups.back().count) {
    result.together += last[end].totals;
    result.groups.push_back(std::move(last[end]));
  }
  std::reverse(result.groups.begin(), result.groups.end());
  if (fuser.objective(result.together) > fuser.objective(result.apart)) {
    result.groups = std::move(singles);
    result.together = result.apart;
  }
  return result;
}

}  // namespace foretoken
