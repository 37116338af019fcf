#include "accelerator/workload/vector_work.h"

#include <algorithm>

#include "accelerator/workload/operator_problems.h"
#include "model/work.h"

namespace foretoken {

std::vector<VectorWork> vector_work(std::span<const Operator> operators) {
  std::vector<VectorWork> all;
  const auto add = [&](std::string_view family, double count, double operations) {
    auto found = std::find_if(all.begin(), all.end(), [&](const VectorWork& own) { return own.family == family; });
    if (found == all.end()) found = all.insert(all.end(), {.family = std::string(family)});
    found->count += count;
    found->operations += operations;
  };
  for (const Operator& own : operators) {
    if (std::holds_alternative<CollectiveShape>(own.shape)) continue;
    const auto count = static_cast<double>(own.count);
    const std::vector<CountedProblem> problems = operator_problems(own.shape);
    if (problems.empty()) {
      add(family_name(own.shape), count, count * count_work(own.shape).flops.value());
    } else if (const double scores = attention_scores(own.shape, problems); scores > 0) {
      add("softmax", count, count * softmax_operations * scores);
    }
  }
  return all;
}

}  // namespace foretoken
