#include "compose/edge/quantized_operators.h"

#include <algorithm>
#include <optional>

#include "model/onnx/node_view.h"

namespace foretoken {
namespace {

bool is_standard_or_microsoft(const OnnxNode& node) {
  return node.domain.empty() || node.domain == "com.microsoft";
}

bool dequantizes(const OnnxNode& node) {
  return node.operation == "DequantizeLinear" && is_standard_or_microsoft(node);
}

bool quantizes(const OnnxNode& node) {
  return node.operation == "QuantizeLinear" && is_standard_or_microsoft(node);
}

bool has_8_bits(OnnxType type) {
  return type == OnnxType::int8 || type == OnnxType::uint8;
}

const OnnxNode* producer_of(const OnnxGraph& graph, int64_t tensor) {
  const int64_t producer = tensor < 0 ? -1 : graph.tensor(tensor).producer;
  return producer < 0 ? nullptr : &graph.nodes[static_cast<size_t>(producer)];
}

// The DequantizeLinear that makes it, with a scale for the tensor or a channel that is known beforehand.
const OnnxNode* dequantizer_of(const OnnxGraph& graph, int64_t tensor) {
  const OnnxNode* made_by = producer_of(graph, tensor);
  if (made_by == nullptr || !dequantizes(*made_by)) return nullptr;
  const OnnxNodeView view(graph, *made_by);
  return view.input(1).is_constant && view.attribute("block_size", 0) == 0 ? made_by : nullptr;
}

// Whether 8 bits mean the same before and after, as ONNX Runtime sees it (qdq_util.cc, IsQDQPairSupported): a zero
// point that is left out is not taken for one of 0.
bool same_quantization(const OnnxNodeView& dequantizer, const OnnxNodeView& quantizer) {
  const auto same = [&](size_t input) {
    const OnnxValues *before = dequantizer.values(input), *after = quantizer.values(input);
    return before != nullptr && after != nullptr && *before == *after;
  };
  constexpr size_t scale = 1, zero_point = 2;
  return same(scale) && same(zero_point) && dequantizer.type(zero_point) == quantizer.type(zero_point);
}

class QuantizedMatcher {
 public:
  explicit QuantizedMatcher(const OnnxGraph& graph)
      : graph_(graph), readers_(tensor_readers(graph)), is_output_(graph.tensors.size(), false) {
    for (const int64_t output : graph.outputs) is_output_[static_cast<size_t>(output)] = true;
  }

  std::optional<QuantizedMatch> match(int64_t index, const QuantizedRule& rule) const {
    const OnnxNode& node = graph_.nodes[static_cast<size_t>(index)];
    if (!node.domain.empty() || node.outputs.empty() || dequantizes(node) || quantizes(node)) return std::nullopt;
    if (std::find(rule.operations.begin(), rule.operations.end(), node.operation) == rule.operations.end())
      return std::nullopt;
    QuantizedMatch match{.rule = &rule, .node = index};
    const OnnxNode* first = nullptr;
    bool any_runs = false;  // with constants alone nothing is 8 bits wide
    for (size_t i = 0; i < node.inputs.size() && (rule.inputs == 0 || i < rule.inputs); ++i) {
      if (node.inputs[i] < 0) continue;
      const OnnxNode* made_by = dequantizer_of(graph_, node.inputs[i]);
      if (made_by == nullptr) return std::nullopt;
      const OnnxTensor& narrow = OnnxNodeView(graph_, *made_by).input(0);
      const bool is_bias = i == 2 && narrow.type == OnnxType::int32;
      if (!has_8_bits(narrow.type) && !is_bias) return std::nullopt;
      if (first == nullptr) first = made_by;
      if (!narrow.is_constant) match.read_bytes += narrow.bytes();
      any_runs = any_runs || !made_by->is_folded;
    }
    if (!any_runs || !add_result(match, rule, *first)) return std::nullopt;
    return match;
  }

  // Those that every reader takes in 8 bits.
  void add_dequantizers(std::vector<QuantizedMatch>& matches) const {
    std::vector<bool> matched(graph_.nodes.size(), false), taken(graph_.nodes.size(), false);
    for (const QuantizedMatch& match : matches) matched[static_cast<size_t>(match.node)] = true;
    for (QuantizedMatch& match : matches) {
      const OnnxNode& node = graph_.nodes[static_cast<size_t>(match.node)];
      for (const int64_t input : node.inputs) {
        const OnnxNode* made_by = producer_of(graph_, input);
        if (made_by == nullptr || !dequantizes(*made_by) || made_by->is_folded || made_by->region != node.region)
          continue;
        const std::vector<int64_t>& readers = readers_[static_cast<size_t>(input)];
        const bool vanishes = !is_output_[static_cast<size_t>(input)] &&
                              std::all_of(readers.begin(), readers.end(),
                                          [&](int64_t reader) { return matched[static_cast<size_t>(reader)]; });
        const auto index = made_by - graph_.nodes.data();
        if (!vanishes || taken[static_cast<size_t>(index)]) continue;
        taken[static_cast<size_t>(index)] = true;
        match.around.push_back(index);
      }
    }
  }

 private:
  // The only node that reads what a node makes; -1 where there are others, or it leaves the graph.
  int64_t only_reader(const OnnxNode& node) const {
    const int64_t made = node.outputs.front();
    if (made < 0 || is_output_[static_cast<size_t>(made)]) return -1;
    const std::vector<int64_t>& readers = readers_[static_cast<size_t>(made)];
    if (readers.size() != 1) return -1;
    const OnnxNode& reader = graph_.nodes[static_cast<size_t>(readers.front())];
    return reader.region == node.region && graph_.is_counted(reader) ? readers.front() : -1;
  }

  bool add_result(QuantizedMatch& match, const QuantizedRule& rule, const OnnxNode& dequantizer) const {
    const OnnxNode& node = graph_.nodes[static_cast<size_t>(match.node)];
    std::vector<int64_t> after;
    int64_t next = only_reader(node);
    if (next >= 0) {
      const OnnxNode& reader = graph_.nodes[static_cast<size_t>(next)];
      if (std::find(rule.activations.begin(), rule.activations.end(), reader.operation) != rule.activations.end() &&
          reader.inputs.front() == node.outputs.front()) {
        after.push_back(next);
        next = only_reader(reader);
      }
    }
    const bool quantized = next >= 0 && quantizes(graph_.nodes[static_cast<size_t>(next)]);
    if (!quantized) {
      if (rule.needs_quantize || node.outputs.front() < 0) return false;
      match.written_bytes = graph_.tensor(node.outputs.front()).bytes();
      return true;
    }
    const OnnxNodeView quantizer(graph_, graph_.nodes[static_cast<size_t>(next)]);
    if (!quantizer.wants(0)) return false;
    const OnnxTensor& narrow = graph_.tensor(quantizer.node().outputs[0]);
    // Also for a product that may stay wide: ONNX Runtime (MatMulNodeGroupSelector) then has no operator in 8 bits.
    if (!has_8_bits(narrow.type)) return false;
    if (rule.same_scale && !same_quantization(OnnxNodeView(graph_, dequantizer), quantizer)) return false;
    match.around = std::move(after);
    match.around.push_back(next);
    match.written_bytes = narrow.bytes();
    return true;
  }

  const OnnxGraph& graph_;
  std::vector<std::vector<int64_t>> readers_;
  std::vector<bool> is_output_;
};

}  // namespace

std::vector<QuantizedMatch> quantized_matches(const OnnxGraph& graph, const FusionRules& rules) {
  std::vector<QuantizedMatch> matches;
  if (rules.quantized.empty()) return matches;
  const QuantizedMatcher matcher(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const OnnxNode& node = graph.nodes[i];
    if (node.is_folded || node.control != OnnxControl::none || !graph.is_counted(node)) continue;
    for (const QuantizedRule& rule : rules.quantized) {
      std::optional<QuantizedMatch> match = matcher.match(static_cast<int64_t>(i), rule);
      if (!match) continue;
      matches.push_back(std::move(*match));
      break;
    }
  }
  matcher.add_dequantizers(matches);
  return matches;
}

bool reads_dequantized(const OnnxGraph& graph, const OnnxNode& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int64_t input) {
    const OnnxNode* made_by = producer_of(graph, input);
    return made_by != nullptr && dequantizes(*made_by);
  });
}

Work weight_dequantization(const OnnxGraph& graph, const OnnxNode& node) {
  Work work;
  for (const int64_t input : node.inputs) {
    const OnnxNode* made_by = producer_of(graph, input);
    if (made_by == nullptr || !dequantizes(*made_by) || !made_by->is_folded) continue;
    // ONNX Runtime joins products and weights with scales for blocks.
    if (OnnxNodeView(graph, *made_by).attribute("block_size", 0) > 0) continue;
    work.weights_read += Bytes(OnnxNodeView(graph, *made_by).input(0).bytes());
    work.written += Bytes(graph.tensor(input).bytes());
  }
  return work;
}

}  // namespace foretoken
