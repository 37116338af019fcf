// How a search chooses the designs to evaluate next. The kinds are in searchers/, their list in searchers/list.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/accelerator/choice_grid.h"

namespace foretoken {

// A point with the logarithms of what is to be made small, one or two.
struct JudgedPoint {
  DesignPoint point;
  std::vector<double> logs;  // empty = it cannot be used. Of a design that was ruled out: of its bound
};

// Asked and told in turn. What it asks for depends on the seed and on what it was told, nothing else.
class DesignSearcher {
 public:
  virtual ~DesignSearcher() = default;
  // New points that the grid allows, never one it was told about or asked for before; fewer, or none, at the end.
  virtual std::vector<DesignPoint> ask(size_t count) = 0;
  virtual void tell(std::span<const JudgedPoint> judged) = 0;
};

struct SearcherKind {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<DesignSearcher> (*make)(const ChoiceGrid& grid, uint64_t seed);  // the grid outlives it
};

std::span<const SearcherKind> all_searchers();
const SearcherKind& searcher_named(std::string_view name);  // InputError with the nearest name

// One number for each point, lower is better, infinity for those that cannot be used. Of two objectives: the larger of
// the two, each by the range seen so far and weighted `weight` and 1 - weight, and a little of their sum, so that
// changing weights lead along the frontier. (ParEGO: Knowles, IEEE Trans. Evolutionary Computation 10(1), 2006.)
std::vector<double> single_scores(std::span<const JudgedPoint> judged, double weight);

}  // namespace foretoken
