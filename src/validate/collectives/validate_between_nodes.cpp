#include "validate/collectives/validate_between_nodes.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <system_error>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "library/collective_machine.h"
#include "library/library.h"
#include "validate/row_filter.h"

namespace foretoken {
namespace {

constexpr std::string_view columns[] = {"source",     "cluster", "nodes",      "gpus_per_node",
                                        "collective", "bytes",   "latency_us", "role"};

BetweenNodesRow read_row(const CsvReader& csv) {
  const auto text = [&](std::string_view column) { return std::string(csv.cell(csv.column(column))); };
  const auto count = [&](std::string_view column, int64_t most) {
    return csv.integer(csv.column(column), {.least = 1, .most = most});
  };
  return {.row = csv.row(),
          .source = text("source"),
          .cluster = text("cluster"),
          .collective = text("collective"),
          .role = text("role"),
          .nodes = count("nodes", 100'000),
          .gpus_per_node = count("gpus_per_node", 1024),
          .bytes = csv.number(csv.column("bytes"), {0, 1e15}),
          .measured_seconds = csv.number(csv.column("latency_us"), {1e-3, 1e12}) * 1e-6};
}

std::string group_of(const BetweenNodesRow& row, const std::string& group_by) {
  if (group_by == "source") return row.source;
  if (group_by == "cluster") return row.cluster;
  if (group_by == "collective") return row.collective;
  if (group_by == "ranks") return fmt::format("{:6}", row.nodes * row.gpus_per_node);
  if (group_by == "size") return fmt::format("{:12.0f}", row.bytes);
  return row.role;
}

}  // namespace

std::vector<std::string> between_nodes_groupings() {
  return {"source", "cluster", "collective", "ranks", "size", "role"};
}

bool is_between_nodes_table(const std::filesystem::path& data) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(data, error)) return false;
  const CsvReader csv(data);
  return std::all_of(std::begin(columns), std::end(columns),
                     [&](std::string_view column) { return csv.find_column(column).has_value(); });
}

Validation validate_between_nodes(const BetweenNodesRequest& request, const Library& library,
                                  const ScoredBetweenNodesSink& sink) {
  check_grouping(request.group_by, between_nodes_groupings(), "collectives between nodes");
  CsvReader csv(request.data);
  std::map<std::pair<std::string, int64_t>, CollectiveMachine> machines;  // by cluster and number of nodes
  Validation validation;
  ValidationTally tally(long_row_us);
  bool any = false;
  while (csv.next()) {
    const BetweenNodesRow row = read_row(csv);
    if (!is_wanted(request.collectives, row.collective)) continue;
    any = true;
    const auto start = std::chrono::steady_clock::now();
    auto machine = machines.find({row.cluster, row.nodes});
    if (machine == machines.end()) {
      Cluster cluster = cluster_with_nodes(library.hardware().cluster(row.cluster), static_cast<int>(row.nodes));
      machine =
          machines.emplace(std::pair(row.cluster, row.nodes), collective_machine(library, std::move(cluster))).first;
    }
    const CollectiveModel& model = machine->second.model;
    const std::optional<CollectiveKind> kind = collective_kind_from_name(row.collective);
    const int64_t devices_of_node = model.device_count() / row.nodes;
    if (!kind || row.gpus_per_node > devices_of_node || devices_of_node % row.gpus_per_node != 0) {
      validation.skipped.push_back(
          {csv.source(), csv.row(),
           kind ? fmt::format("gpus_per_node is {}, which does not divide the {} GPUs of a node", row.gpus_per_node,
                              devices_of_node)
                : "unknown collective"});
      continue;
    }
    const CollectiveEstimate estimate = model.estimate(
        {.kind = *kind,
         .bytes = row.bytes,
         .group = ProcessGroup::strided(0, row.nodes * row.gpus_per_node, devices_of_node / row.gpus_per_node)});
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    tally.add(group_of(row, request.group_by),
              {.measured = row.measured_seconds * 1e6,
               .predicted = estimate.seconds.value * 1e6,
               .low = estimate.seconds.low * 1e6,
               .high = estimate.seconds.high * 1e6},
              spent);
    if (sink) sink({.row = &row, .predicted = &estimate});
  }
  if (!any) {
    throw InputError({.source = request.data.string(),
                      .value = "no rows to validate",
                      .expected = "at least one row that {collectives} selects"});
  }
  tally.write(validation);
  return validation;
}

}  // namespace foretoken
