#include "plan/accelerator/searchers/list.h"

#include "base/error.h"
#include "base/kinds.h"

namespace foretoken {
namespace {

// Add your line here; the name is what users type.
constexpr SearcherKind searcher_kinds[] = {
    {"random", "any design, each equally likely", make_random_searcher},
    {"genetic", "crosses and mutates the best so far", make_genetic_searcher},
    {"bayesian", "where a Gaussian process expects most improvement", make_bayesian_searcher},
    {"exhaustive", "all designs, of a small space", make_exhaustive_searcher},
};

}  // namespace

std::span<const SearcherKind> all_searchers() {
  return searcher_kinds;
}

const SearcherKind& searcher_named(std::string_view name) {
  return kind_named(searcher_kinds, name, {.source = "method", .expected = "a way to search designs"});
}

}  // namespace foretoken
