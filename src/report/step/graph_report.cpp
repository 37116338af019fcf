#include "report/step/graph_report.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "model/onnx/node_view.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr size_t most_shown_notes = 10;

std::string tensor_text(const OnnxTensor& tensor) {
  return fmt::format("{} {} {}", printable(tensor.name), onnx_type_name(tensor.type), dims_text(tensor.dims));
}

std::string tensors_text(const char* title, const OnnxGraph& graph, const std::vector<int64_t>& tensors) {
  std::string text;
  for (const int64_t tensor : tensors) text += fmt::format("  {:<13} {}\n", title, tensor_text(graph.tensor(tensor)));
  return text;
}

Json tensors_json(const OnnxGraph& graph, const std::vector<int64_t>& tensors) {
  Json list = Json::array();
  for (const int64_t index : tensors) {
    const OnnxTensor& tensor = graph.tensor(index);
    Json shape = Json::array();
    for (const int64_t size : tensor.dims) shape.push(size);
    list.push(Json::object({{"name", tensor.name}, {"type", onnx_type_name(tensor.type)}, {"shape", shape}}));
  }
  return list;
}

Json texts_json(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

std::string opsets_text(const OnnxGraph& graph) {
  std::string text;
  for (const auto& [domain, version] : graph.opsets) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", domain.empty() ? "ai.onnx" : printable(domain), version);
  }
  return text;
}

}  // namespace

std::string graph_text(const OnnxGraph& graph, const OnnxSummary& summary) {
  std::string text = fmt::format("{} ({})\n", printable(graph.name.empty() ? graph.source : graph.name),
                                 graph.producer.empty() ? "producer not given" : printable(graph.producer));
  text += fmt::format("  opsets        {}\n", opsets_text(graph));
  text += tensors_text("input", graph, graph.inputs) + tensors_text("output", graph, graph.outputs);
  text += fmt::format("  nodes         {}, {} of them constant\n", summary.nodes, summary.folded);
  text += fmt::format("  parameters    {}, {}\n", count_text(summary.parameters), bytes_text(summary.weights.value()));
  text += fmt::format("  work          {} FLOPs, {} read and written\n", count_text(summary.flops.value()),
                      bytes_text(summary.bytes.value()));
  text += fmt::format("  activations   {} at most, at {}\n", bytes_text(summary.peak_activations.value()),
                      printable(summary.peak_node));
  for (const std::string& node : summary.control_flow) text += fmt::format("  control flow  {}\n", printable(node));
  if (!summary.unknown.empty()) {
    text += fmt::format("  unknown       {}: counted as memory traffic\n", fmt::join(summary.unknown, ", "));
  }
  for (size_t i = 0; i < graph.notes.size() && i < most_shown_notes; ++i) {
    text += fmt::format("  note          {}\n", graph.notes[i]);
  }
  if (graph.notes.size() > most_shown_notes) {
    text += fmt::format("  note          and {} more: {{json}} has all\n", graph.notes.size() - most_shown_notes);
  }
  text = wrap_lines(text, page_width(), 16) + "\n";

  Table table({{"operator", Table::Align::left}, {"nodes"}, {"FLOPs"}, {"share"}, {"bytes"}, {"share"}});
  const auto share = [](double part, double whole) {
    return whole > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : "";
  };
  for (const OnnxOperatorSummary& own : summary.operators) {
    table.add({own.operation + (own.is_known ? "" : " (unknown)"), fmt::format("{}", own.nodes),
               count_text(own.flops.value()), share(own.flops.value(), summary.flops.value()),
               bytes_text(own.bytes.value()), share(own.bytes.value(), summary.bytes.value())});
  }
  return text + table.text();
}

Json graph_json(const OnnxGraph& graph, const OnnxSummary& summary) {
  Json operators = Json::array();
  for (const OnnxOperatorSummary& own : summary.operators) {
    operators.push(Json::object({{"operator", own.operation},
                                 {"known", own.is_known},
                                 {"nodes", own.nodes},
                                 {"flops", own.flops.value()},
                                 {"bytes", own.bytes.value()}}));
  }
  Json opsets = Json::object();
  for (const auto& [domain, version] : graph.opsets) opsets.set(domain.empty() ? "ai.onnx" : domain, version);
  return Json::object({{"name", graph.name},
                       {"producer", graph.producer},
                       {"opsets", opsets},
                       {"inputs", tensors_json(graph, graph.inputs)},
                       {"outputs", tensors_json(graph, graph.outputs)},
                       {"nodes", summary.nodes},
                       {"folded_nodes", summary.folded},
                       {"parameters", summary.parameters},
                       {"weight_bytes", summary.weights.value()},
                       {"flops", summary.flops.value()},
                       {"bytes", summary.bytes.value()},
                       {"peak_activation_bytes", summary.peak_activations.value()},
                       {"peak_node", summary.peak_node},
                       {"operators", operators},
                       {"unknown_operators", texts_json(summary.unknown)},
                       {"control_flow", texts_json(summary.control_flow)},
                       {"assumed_shapes", summary.assumed_shapes},
                       {"bounded_shapes", summary.bounded_shapes},
                       {"notes", texts_json(graph.notes)}});
}

}  // namespace foretoken
