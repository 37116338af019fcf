#include "plan/accelerator/searchers/list.h"

#include "base/error.h"

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
  std::vector<std::string> names;
  for (const SearcherKind& kind : searcher_kinds) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  throw InputError({.source = "method",
                    .value = printable(name),
                    .expected = "a way to search designs",
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
