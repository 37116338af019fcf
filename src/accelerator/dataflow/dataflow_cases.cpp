#include "accelerator/dataflow/dataflow_cases.h"

#include <algorithm>

#include "accelerator/dataflow/dataflow_file.h"
#include "base/error.h"
#include "base/json.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> dataflow_case_size{1, 1'000'000'000};

DataflowHardware case_hardware(const JsonView& hardware) {
  hardware.allow_only({"num_pes", "l1_size", "l2_size", "noc_bw_elements_per_cycle", "offchip_bw"});
  return {.num_pes = hardware.at("num_pes").integer(dataflow_case_size),
          .l1_bytes = hardware.at("l1_size").integer(dataflow_case_size),
          .l2_bytes = hardware.at("l2_size").integer(dataflow_case_size),
          .noc_bandwidth = hardware.at("noc_bw_elements_per_cycle").integer(dataflow_case_size),
          .offchip_bandwidth = hardware.at("offchip_bw").integer(dataflow_case_size)};
}

// The parts of a case are the text of a mapping file, piece by piece; that file's reader takes them together.
MappedLayer case_layer(const JsonView& view) {
  std::string text = "Network case {\nLayer " + view.at("layer").string() + " {\nType: " + view.at("type").string();
  text += "\nStride { " + view.at("stride").string() + " }\nDimensions {";
  for (const auto& [name, size] : view.at("dims").members()) {
    text += " " + name + ": " + std::to_string(size.integer(dataflow_case_size));
  }
  text += " }\nDataflow {\n";
  for (const JsonView& directive : view.at("dataflow").items()) text += directive.string() + ";\n";
  text += "}\n}\n}\n";
  MappedNetwork network = parse_mapped_network(text, view.source() + ": " + view.at("id").string());
  if (network.layers.size() != 1) view.fail("the description of one layer");
  return std::move(network.layers.front());
}

std::optional<double> table_energy_nanojoules(const DataflowCase& one, const DataflowCost& cost) {
  const bool has_clusters = std::ranges::any_of(
      one.dataflow, [](const Directive& directive) { return directive.kind == DirectiveKind::cluster; });
  if (has_clusters) return std::nullopt;
  DataflowCost charged = cost;
  charged.macs = 0;
  charged.output.l2_read = 0;
  return dataflow_energy_nanojoules(charged);
}

}  // namespace

DataflowCaseFile read_dataflow_cases(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  const JsonView root(document, path.string());
  DataflowCaseFile file{.hardware = case_hardware(root.at("hardware"))};
  for (const JsonView& view : root.at("cases").items()) {
    MappedLayer mapped = case_layer(view);
    DataflowCase one{.id = view.at("id").string(),
                     .dataflow_name = view.at("dataflow_name").string(),
                     .layer = std::move(mapped.layer),
                     .dataflow = std::move(mapped.dataflow)};
    for (const auto& [name, value] : view.at("expected").members()) one.expected.emplace_back(name, value.number());
    file.cases.push_back(std::move(one));
  }
  return file;
}

std::optional<double> dataflow_figure(const DataflowCase& one, const DataflowCost& cost, std::string_view name) {
  if (name == "energy_nJ") return table_energy_nanojoules(one, cost);
  const auto reuse = [](const TensorAccesses& tensor) {
    return static_cast<double>(tensor.l1_read) / static_cast<double>(tensor.l1_write);
  };
  const std::pair<std::string_view, double> figures[] = {
      {"runtime_cycles", static_cast<double>(cost.runtime_cycles)},
      {"macs_per_cycle", cost.macs_per_cycle()},
      {"macs", static_cast<double>(cost.macs)},
      {"noc_bw_req", static_cast<double>(cost.noc_bandwidth_needed)},
      {"offchip_bw_req", static_cast<double>(cost.offchip_bandwidth_needed)},
      {"l2_bytes", static_cast<double>(cost.l2_bytes)},
      {"l1_bytes", static_cast<double>(cost.l1_bytes)},
      {"avg_pes", cost.average_pes},
      {"input_l1_read", static_cast<double>(cost.input.l1_read)},
      {"input_l1_write", static_cast<double>(cost.input.l1_write)},
      {"input_l2_read", static_cast<double>(cost.input.l2_read)},
      {"input_l2_write", static_cast<double>(cost.input.l2_write)},
      {"filter_l1_read", static_cast<double>(cost.filter.l1_read)},
      {"filter_l1_write", static_cast<double>(cost.filter.l1_write)},
      {"filter_l2_read", static_cast<double>(cost.filter.l2_read)},
      {"filter_l2_write", static_cast<double>(cost.filter.l2_write)},
      {"output_l1_read", static_cast<double>(cost.output.l1_read)},
      {"output_l1_write", static_cast<double>(cost.output.l1_write)},
      {"output_l2_read", static_cast<double>(cost.output.l2_read)},
      {"output_l2_write", static_cast<double>(cost.output.l2_write)},
      {"input_reuse_factor", reuse(cost.input)},
      {"filter_reuse_factor", reuse(cost.filter)},
  };
  for (const auto& [known, value] : figures) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace foretoken
