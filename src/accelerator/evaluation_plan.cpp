#include "accelerator/evaluation_plan.h"

#include <algorithm>

#include "accelerator/element_width.h"
#include "base/error.h"

namespace foretoken {

EvaluationPlan::EvaluationPlan(const Architecture& of_architecture, const Problem& of_problem, EvaluationRules of_rules)
    : architecture(&of_architecture), problem(&of_problem), rules(of_rules) {
  ensure(problem_fault(of_problem).empty(), "only a sound problem is evaluated");
  ensure(architecture_fault(of_architecture).empty(), "only a sound architecture is evaluated");
  levels = static_cast<int>(of_architecture.levels.size()) - 1;
  tensors = static_cast<int>(of_problem.tensors.size());
  dimensions = static_cast<int>(of_problem.dimensions.size());
  operations = foretoken::operations(of_problem);
  for (size_t d = 0; d < of_problem.dimensions.size(); ++d) {
    size[d] = static_cast<double>(of_problem.dimensions[d].size);
  }
  for (size_t i = 0; i < of_architecture.levels.size(); ++i) {
    const AcceleratorLevel& own = of_architecture.levels[i];
    const bool computes = own.kind == LevelKind::compute;
    level[i] = {.stores = own.kind == LevelKind::storage,
                .held = static_cast<double>(words_held(own)),
                .fanout_x = computes ? 1 : static_cast<double>(fanout_x(of_architecture, i)),
                .fanout_y = computes ? 1 : static_cast<double>(fanout_y(of_architecture, i)),
                .instances = static_cast<double>(instances(own)),
                .words_per_access = static_cast<double>(own.words_per_access),
                .clusters = std::max(1.0, static_cast<double>(instances(own) / own.cluster_size)),
                .read_rate = own.bandwidth.read.value_or(0),
                .write_rate = own.bandwidth.write.value_or(0),
                .shared_rate = own.bandwidth.shared.value_or(0),
                .access_cycles = own.access_cycles,
                .hop_cycles = own.hop_cycles,
                .operation_cycles = own.operation_cycles,
                .single_buffer = own.buffers == 1,
                .multicast = own.multicast,
                .reduces = own.spatial_reduction,
                .links = own.neighbour_links,
                .mesh = own.mesh,
                .rows = own.rows,
                .energy = own.energy};
  }
  for (size_t t = 0; t < of_problem.tensors.size(); ++t) {
    const ProblemTensor& given = of_problem.tensors[t];
    TensorPlan& own = tensor[t];
    own.written = given.written;
    own.words = tensor_words(given, of_problem);
    for (size_t i = 0; i < of_architecture.levels.size(); ++i) {
      own.element_words[i] = words_of_element(of_architecture, i, given);
      own.sum_words[i] = words_of_sum(of_architecture, i, given);
      own.sums_differ = own.sums_differ || own.sum_words[i] != own.element_words[i];
    }
    own.ranks = static_cast<int>(given.ranks.size());
    for (size_t r = 0; r < given.ranks.size(); ++r) {
      RankPlan& rank = own.rank[r];
      for (const ProjectionTerm& term : given.ranks[r]) {
        own.dimensions |= 1U << term.dimension;
        rank.dimension[rank.terms] = term.dimension;
        rank.coefficient[rank.terms] = static_cast<double>(term.coefficient);
        rank.full_extent += static_cast<double>(term.coefficient) * (size[term.dimension] - 1);
        ++rank.terms;
      }
    }
  }
}

}  // namespace foretoken
