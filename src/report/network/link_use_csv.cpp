#include "report/network/link_use_csv.h"

#include <iterator>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/simulated_time.h"

namespace foretoken {

std::string link_use_csv(const Topology& topology, std::span<const LinkUse> use) {
  std::string text = "time_s,link,from,to,bytes_per_s,share\n";
  for (const LinkUse& one : use) {
    const Link& link = topology.link(one.link);
    fmt::format_to(std::back_inserter(text), "{:.12f},{},{},{},{:.10g},{:.6g}\n", to_seconds(one.time).value(),
                   one.link, csv_cell(topology.name(link.from)), csv_cell(topology.name(link.to)), one.rate.value(),
                   one.rate.value() / link.bandwidth.value());
  }
  return text;
}

}  // namespace foretoken
