#include "network/topology/topology_kind.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {

double TopologyPart::setting(std::string_view name, double otherwise) const {
  for (const auto& [given, value] : settings) {
    if (given == name) return value;
  }
  return otherwise;
}

int64_t TopologyPart::size(size_t index, int64_t otherwise) const {
  return index < sizes.size() ? sizes[index] : otherwise;
}

void check_link_count(const TopologyPart& part, double links) {
  if (links <= most_topology_links) return;
  throw InputError({.source = "topology",
                    .value = part.text,
                    .expected = fmt::format("at most {} links; this would have {}", most_topology_links, links)});
}

int64_t whole_setting(const TopologyPart& part, std::string_view name, int64_t otherwise, int64_t least) {
  const double value = part.setting(name, static_cast<double>(otherwise));
  const std::optional<int64_t> whole = exact_integer(value);
  if (whole && *whole >= least) return *whole;
  throw InputError({.source = "topology",
                    .path = fmt::format("{}, {}", part.text, name),
                    .value = number_text(value),
                    .expected = fmt::format("a whole number of at least {}", least)});
}

}  // namespace foretoken
