#include "network/astra_compatible/conformance.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::pair<std::string_view, AstraTopology> topologies[] = {{"Ring", AstraTopology::ring},
                                                                     {"FullyConnected", AstraTopology::fully_connected},
                                                                     {"Switch", AstraTopology::network_switch}};
constexpr std::pair<std::string_view, AstraAlgorithm> algorithms[] = {
    {"ring", AstraAlgorithm::ring},
    {"direct", AstraAlgorithm::direct},
    {"halvingDoubling", AstraAlgorithm::halving_doubling},
    {"doubleBinaryTree", AstraAlgorithm::double_binary_tree}};
constexpr std::pair<std::string_view, CollectiveKind> collectives[] = {{"AR", CollectiveKind::all_reduce},
                                                                       {"AG", CollectiveKind::all_gather},
                                                                       {"RS", CollectiveKind::reduce_scatter},
                                                                       {"A2A", CollectiveKind::all_to_all}};

template <class Value, size_t count>
Value named(const std::pair<std::string_view, Value> (&names)[count], std::string_view text, const std::string& source,
            const std::string& path) {
  std::vector<std::string> known;
  for (const auto& [name, value] : names) {
    if (equal_ignoring_case(name, text)) return value;
    known.emplace_back(name);
  }
  throw InputError({.source = source,
                    .path = path,
                    .value = printable(text),
                    .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                    .suggestion = nearest_name(text, known).value_or("")});
}

double parse_part(std::string_view text, const std::string& source, const std::string& path) {
  if (const std::optional<double> value = parse_number(text)) return *value;
  throw InputError({.source = source, .path = path, .value = printable(text), .expected = "a number"});
}

// "splits=4;active=2"
int64_t chunking_part(const CsvReader& csv, size_t column, std::string_view name) {
  for (const std::string_view part : split(csv.cell(column), ";")) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos || part.substr(0, equals) != name) continue;
    const std::optional<int64_t> value = parse_integer(part.substr(equals + 1));
    if (value && *value >= 1) return *value;
  }
  csv.fail(column, fmt::format("{}= and a whole number of at least 1", name));
}

}  // namespace

bool is_astra_table(const CsvReader& csv) {
  return csv.find_column("dims") && csv.find_column("chunking") && csv.find_column("cycles");
}

std::vector<AstraDimension> parse_astra_dimensions(const AstraRunText& text, const std::string& source) {
  const std::vector<std::string_view> kinds = split(text.topology, "_"), sizes = split(text.dims, "x"),
                                      rates = split(text.bandwidth, "_"), latencies = split(text.latency, "_"),
                                      steps = split(text.algorithm, "_");
  const auto check_count = [&](std::string_view path, const std::string& value, size_t count) {
    if (count == kinds.size()) return;
    throw InputError(
        {.source = source,
         .path = std::string(path),
         .value = printable(value),
         .expected = fmt::format("{} of them, one for each dimension of {}", kinds.size(), printable(text.topology))});
  };
  check_count("dims", text.dims, sizes.size());
  check_count("bandwidth", text.bandwidth, rates.size());
  check_count("latency", text.latency, latencies.size());
  check_count("algorithm", text.algorithm, steps.size());
  std::vector<AstraDimension> dimensions;
  for (size_t d = 0; d < kinds.size(); ++d) {
    const std::optional<int64_t> npus = parse_integer(sizes[d]);
    if (!npus) {
      throw InputError({.source = source,
                        .path = "dims",
                        .value = printable(text.dims),
                        .expected = "whole numbers with x between them, such as 8x4"});
    }
    dimensions.push_back({.topology = named(topologies, kinds[d], source, "topology"),
                          .algorithm = named(algorithms, steps[d], source, "algorithm"),
                          .npus = *npus,
                          .bandwidth_gib_per_s = parse_part(rates[d], source, "bandwidth"),
                          .latency_ns = parse_part(latencies[d], source, "latency")});
  }
  return dimensions;
}

AstraRowReader::AstraRowReader(const CsvReader& csv)
    : topology_(csv.column("topology")),
      dims_(csv.column("dims")),
      bandwidth_(csv.column("bandwidth")),
      latency_(csv.column("latency")),
      collective_(csv.column("collective")),
      algorithm_(csv.column("algorithm")),
      bytes_(csv.column("bytes")),
      chunking_(csv.column("chunking")),
      backend_(csv.column("backend")),
      queues_(csv.column("queues_per_dim")),
      endpoint_(csv.column("endpoint_delay")),
      memory_(csv.column("local_mem_bw")),
      cycles_(csv.column("cycles")) {}

AstraRun AstraRowReader::read(const CsvReader& csv) const {
  const std::string source = fmt::format("{}:{}", csv.source(), csv.line());
  const std::string_view backend = csv.cell(backend_);
  if (backend != "aware" && backend != "unaware") csv.fail(backend_, "aware or unaware (of congestion)");
  return {.kind = named(collectives, csv.cell(collective_), source, "collective"),
          .dimensions = parse_astra_dimensions({.topology = std::string(csv.cell(topology_)),
                                                .dims = std::string(csv.cell(dims_)),
                                                .bandwidth = std::string(csv.cell(bandwidth_)),
                                                .latency = std::string(csv.cell(latency_)),
                                                .algorithm = std::string(csv.cell(algorithm_))},
                                               source),
          .bytes = csv.integer(bytes_),
          .splits = chunking_part(csv, chunking_, "splits"),
          .active = chunking_part(csv, chunking_, "active"),
          .queues = csv.integer(queues_, {.least = 1}),
          .endpoint_ns = csv.integer(endpoint_),
          .local_memory_gb_per_s = csv.number(memory_),
          .congestion_aware = backend == "aware"};
}

}  // namespace foretoken
