// The page of `serve --html`.
#pragma once

#include <optional>
#include <vector>

#include "app/cli/commands/serve/serve_watch.h"
#include "app/cli/grammar/command.h"
#include "report/parts/energy_report.h"
#include "report/serving/serving_report.h"

namespace foretoken {

struct ServedRun {
  const ReplicaFlags& replica;
  std::vector<ReplicaGroup>& groups;
  const ServeWatch& watch;
  const ServingReport& report;
  std::optional<EnergyReport> energy;  // where it was asked for
};

// Says so in the answer, which is part of the page.
void write_serving_page(const ServeFlags& flags, ServedRun served, Answer& answer, const Library& library);

}  // namespace foretoken
