// One entry of a Timeloop mapping or of its constraints: what a level's loops are, or must be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/problem.h"
#include "base/json.h"

namespace foretoken {

struct TimeloopFactor {
  enum class Relation { equal, at_most };

  std::string dimension;
  Relation relation = Relation::equal;
  int64_t bound = 1;            // 0 = whatever the other levels leave
  std::optional<int64_t> last;  // the remainder of `N=8,4`
};

struct TimeloopDirective {
  enum class Kind { temporal, spatial, dataspace, utilization };

  std::string target;
  Kind kind = Kind::temporal;
  std::vector<TimeloopFactor> factors;
  std::vector<std::string> permutation;  // innermost first; dimensions that are not named come further out
  std::optional<int> split;              // of a spatial one: how many dimensions of the permutation run across X
  std::vector<std::string> keep, bypass;
  std::optional<double> min_utilization;
  std::string source, path;  // for complaints that come later
  int line = 0;
};

// Of a mapping or of constraints that name their target and type. A key nobody here obeys is an error: a constraint is
// never dropped in silence.
TimeloopDirective read_timeloop_directive(const JsonView& view);
// Of constraints inside a node of an architecture, where both are known.
TimeloopDirective read_timeloop_directive(const JsonView& view, const std::string& target,
                                          TimeloopDirective::Kind kind);

// `R=3 P=16`, `R3 P16`, `N=8,4`, `C<=4`, with spaces or commas between, as text, list or map.
std::vector<TimeloopFactor> read_timeloop_factors(const JsonView& view);

// A permutation as it was written; text without separators stands in one piece until dimensions are known.
std::vector<std::string> read_timeloop_permutation(const JsonView& view);

// What a directive names, in indices. InputError with the nearest name.
int directive_level(const TimeloopDirective& directive, const Architecture& architecture);
int directive_tensor(const TimeloopDirective& directive, const std::string& name, const Problem& problem);
int directive_dimension(const TimeloopDirective& directive, const std::string& name, const Problem& problem);
// Its permutation: `RPC` is three dimensions unless one has that name.
std::vector<int> directive_permutation(const TimeloopDirective& directive, const Problem& problem);

[[noreturn]] void fail_directive(const TimeloopDirective& directive, std::string value, std::string expected,
                                 std::string suggestion = "");

}  // namespace foretoken
