#include "compose/edge/adapt_network.h"

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "compose/edge/edge_lowering.h"
#include "model/onnx/read_graph.h"

namespace foretoken {
namespace {

constexpr Range<double> timing_range{.least = 1e-6, .most = 1e9};  // milliseconds

EdgeFamilySeconds lowered_seconds(const EdgeLowering& lowering, const EdgePredictor& known, const std::string& source) {
  EdgeFamilySeconds sum{};
  add_call_seconds(sum, known);
  for (const EdgeStep& step : lowering.steps) {
    for (const EdgeCall& call : step.calls) {
      if (call.scheme != Scheme::fp32) {
        throw InputError({.source = source,
                          .value = fmt::format("a product or convolution in {}", facts(call.scheme).name),
                          .expected = "a network in fp32; adapt to narrower formats needs a sweep (profile cpu)"});
      }
      add_family_seconds(sum, known, call.kernel, static_cast<double>(call.count));
    }
  }
  return sum;
}

EdgeKnownTime known_kernel_time(const EdgeKernel& kernel, const EdgePredictor& known) {
  EdgeKnownTime time;
  add_call_seconds(time.joined, known);
  add_family_seconds(time.joined, known, kernel, 1);
  time.apart = time.joined;
  return time;
}

}  // namespace

EdgeKnownTime known_network_time(const OnnxGraph& graph, const FusionRules& rules, const EdgePredictor& known,
                                 const std::string& source) {
  const FusionRules none{.runtime = rules.runtime};
  return {.joined = lowered_seconds(lower_edge(graph, rules), known, source),
          .apart = lowered_seconds(lower_edge(graph, none), known, source)};
}

std::vector<NetworkRow> read_network_rows(const std::filesystem::path& path, const NetworkTableContext& context,
                                          bool timed) {
  CsvReader csv(path);
  const std::optional<size_t> network = csv.find_column("network"), kind = csv.find_column("kind");
  if (!network && !kind) csv.column("network");  // says what is missing
  const std::optional<size_t> parameters = kind ? std::optional(csv.column("params")) : std::nullopt;
  const std::optional<size_t> milliseconds = timed ? std::optional(csv.column("ms")) : std::nullopt;
  std::vector<NetworkRow> rows;
  while (csv.next()) {
    NetworkRow row;
    if (network && !csv.cell(*network).empty()) {
      row.name = std::string(csv.cell(*network));
      const std::filesystem::path file = path.parent_path() / row.name;
      row.timing.known =
          known_network_time(read_onnx(file, context.graph), context.rules, context.known, file.string());
    } else if (kind && !csv.cell(*kind).empty()) {
      row.name = fmt::format("{} {}", csv.cell(*kind), csv.cell(*parameters));
      row.timing.known = known_kernel_time(
          parse_edge_kernel(csv.cell(*kind), csv.cell(*parameters), csv.source(), csv.line()), context.known);
    } else {
      csv.fail(network ? *network : *kind, "an ONNX file, or the kind and params of a kernel");
    }
    if (milliseconds) row.timing.seconds = csv.number(*milliseconds, timing_range) * 1e-3;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace foretoken
