#include "kernel/edge/fusion_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "model/onnx/builder.h"
#include "model/onnx/graph.h"
#include "model/onnx/read_graph.h"

namespace foretoken {
namespace {

constexpr int64_t opset = 17;
constexpr int64_t channels = 64, side = 56, rows = 256, width = 512;

// A pointwise convolution of few channels: about as long as one pass over its result.
std::string pointwise(OnnxBuilder& b, const std::string& x, int64_t from = 8) {
  return b.node("Conv", {x, b.filled_weight({channels, from, 1, 1}), b.filled_weight({channels})},
                {with("kernel_shape", {1, 1})});
}
std::string picture(OnnxBuilder& b, const std::string& name = "x", int64_t depth = channels) {
  return b.input(name, {1, depth, side, side});
}
std::string conv(OnnxBuilder& b) {
  return pointwise(b, picture(b, "x", 8));
}
std::string depthwise(OnnxBuilder& b) {
  return b.node("Conv", {picture(b), b.filled_weight({channels, 1, 3, 3}), b.filled_weight({channels})},
                {with("kernel_shape", {3, 3}), with("pads", {1, 1, 1, 1}), with("group", channels)});
}
std::string batch_norm(OnnxBuilder& b, const std::string& x) {
  std::vector<std::string> inputs = {x};
  for (int i = 0; i < 4; ++i) inputs.push_back(b.filled_weight({channels}));
  return b.node("BatchNormalization", std::move(inputs));
}
std::string clip(OnnxBuilder& b, const std::string& x) {
  return b.node("Clip", {x, b.real(0), b.real(6)});
}
std::string sequence(OnnxBuilder& b, const std::string& name = "x", int64_t features = width) {
  return b.input(name, {1, rows, features});
}
std::string matmul(OnnxBuilder& b) {
  return b.node("MatMul", {sequence(b, "x", 16), b.filled_weight({16, width})});
}
std::string with_bias(OnnxBuilder& b, const std::string& x) {
  return b.node("Add", {x, b.filled_weight({width})});
}
std::string gemm(OnnxBuilder& b) {
  return b.node("Gemm", {b.input("x", {rows, 16}), b.filled_weight({16, width}), b.filled_weight({width})});
}
std::string scores(OnnxBuilder& b) {
  return b.node("MatMul", {b.input("query", {4, rows, 16}), b.input("key", {4, 16, rows})});
}

// The chains of exporters for opsets that have no such operator.
std::string gelu(OnnxBuilder& b, const std::string& x) {
  constexpr double root_of_two = 1.4142135623730951;
  const std::string erf = b.node("Erf", {b.node("Div", {x, b.real(root_of_two)})});
  return b.node("Mul", {b.node("Mul", {x, b.node("Add", {erf, b.real(1)})}), b.real(0.5)});
}
std::string tanh_gelu(OnnxBuilder& b, const std::string& x) {
  const std::string cube = b.node("Mul", {b.node("Pow", {x, b.real(3)}), b.real(0.044715)});
  const std::string inner = b.node("Mul", {b.node("Add", {x, cube}), b.real(0.7978845608028654)});
  const std::string shifted = b.node("Add", {b.node("Tanh", {inner}), b.real(1)});
  return b.node("Mul", {b.node("Mul", {x, b.real(0.5)}), shifted});
}
std::string layer_norm(OnnxBuilder& b, const std::string& x) {
  const auto mean = [&](const std::string& of) {
    return b.node("ReduceMean", {of}, {with("axes", std::vector<int64_t>{-1}), with("keepdims", 1)});
  };
  const std::string centred = b.node("Sub", {x, mean(x)});
  const std::string variance = mean(b.node("Pow", {centred, b.real(2)}));
  const std::string deviation = b.node("Sqrt", {b.node("Add", {variance, b.real(1e-5)})});
  const std::string scaled = b.node("Mul", {b.node("Div", {centred, deviation}), b.filled_weight({width})});
  return b.node("Add", {scaled, b.filled_weight({width})});
}
std::string hard_swish(OnnxBuilder& b, const std::string& x) {
  const std::string gate = clip(b, b.node("Add", {x, b.real(3)}));
  return b.node("Div", {b.node("Mul", {x, gate}), b.real(6)});
}

struct ProbeKind {
  const char* name;
  std::vector<size_t> parts;  // operators of each; empty: every operator is one
  std::string (*build)(OnnxBuilder&);
};

// Add your line here. A part is cut off where the question is whether it joins what stands before it.
std::vector<ProbeKind> probe_kinds() {
  using B = OnnxBuilder;
  return {
      {"conv_bn", {1, 1}, [](B& b) { return batch_norm(b, conv(b)); }},
      {"conv_relu", {1, 1}, [](B& b) { return b.node("Relu", {conv(b)}); }},
      {"conv_clip", {1, 1}, [](B& b) { return clip(b, conv(b)); }},
      {"conv_sigmoid", {1, 1}, [](B& b) { return b.node("Sigmoid", {conv(b)}); }},
      {"conv_leaky_relu", {1, 1}, [](B& b) { return b.node("LeakyRelu", {conv(b)}); }},
      {"conv_hard_sigmoid", {1, 1}, [](B& b) { return b.node("HardSigmoid", {conv(b)}); }},
      {"conv_hard_swish", {1, 1}, [](B& b) { return b.node("HardSwish", {conv(b)}); }},
      {"conv_hard_swish_chain", {1, 4}, [](B& b) { return hard_swish(b, conv(b)); }},
      {"conv_swish",
       {1, 2},
       [](B& b) {
         const std::string x = conv(b);
         return b.node("Mul", {x, b.node("Sigmoid", {x})});
       }},
      {"conv_add",
       {1, 1},
       [](B& b) {
         return b.node("Add", {conv(b), picture(b, "residual")});
       }},
      {"conv_add_relu",
       {2, 1},
       [](B& b) {
         return b.node("Relu", {b.node("Add", {conv(b), picture(b, "residual")})});
       }},
      {"conv_scale",
       {1, 1},
       [](B& b) {
         return b.node("Mul", {conv(b), b.filled_weight({1, channels, 1, 1})});
       }},
      {"conv_shift",
       {1, 1},
       [](B& b) {
         return b.node("Add", {conv(b), b.filled_weight({1, channels, 1, 1})});
       }},
      {"conv_max_pool",
       {1, 1},
       [](B& b) {
         return b.node("MaxPool", {conv(b)}, {with("kernel_shape", {2, 2}), with("strides", {2, 2})});
       }},
      {"conv_conv", {1, 1}, [](B& b) { return pointwise(b, conv(b), channels); }},
      {"pad_conv",
       {1, 1},
       [](B& b) {
         return pointwise(b, b.node("Pad", {picture(b), b.integers({0, 0, 1, 1, 0, 0, 1, 1})}), channels);
       }},
      {"depthwise_bn_clip", {2, 1}, [](B& b) { return clip(b, batch_norm(b, depthwise(b))); }},
      {"depthwise_relu", {1, 1}, [](B& b) { return b.node("Relu", {depthwise(b)}); }},
      {"bn_relu", {1, 1}, [](B& b) { return b.node("Relu", {batch_norm(b, picture(b))}); }},
      {"add_relu",
       {1, 1},
       [](B& b) {
         return b.node("Relu", {b.node("Add", {picture(b), picture(b, "y")})});
       }},
      {"max_pool_relu",
       {1, 1},
       [](B& b) {
         return b.node("Relu", {b.node("MaxPool", {picture(b)}, {with("kernel_shape", {2, 2})})});
       }},
      {"concat_relu",
       {1, 1},
       [](B& b) {
         return b.node("Relu", {b.node("Concat", {picture(b), picture(b, "y")}, {with("axis", 1)})});
       }},
      {"sigmoid_mul",
       {1, 1},
       [](B& b) {
         const std::string x = picture(b);
         return b.node("Mul", {x, b.node("Sigmoid", {x})});
       }},
      {"hard_swish_chain", {}, [](B& b) { return hard_swish(b, picture(b)); }},
      {"matmul_bias", {1, 1}, [](B& b) { return with_bias(b, matmul(b)); }},
      {"matmul_bias_relu", {2, 1}, [](B& b) { return b.node("Relu", {with_bias(b, matmul(b))}); }},
      {"matmul_bias_gelu", {2, 5}, [](B& b) { return gelu(b, with_bias(b, matmul(b))); }},
      {"matmul_add",
       {1, 1},
       [](B& b) {
         return b.node("Add", {matmul(b), sequence(b, "residual")});
       }},
      {"gemm_relu", {1, 1}, [](B& b) { return b.node("Relu", {gemm(b)}); }},
      {"gemm_sigmoid", {1, 1}, [](B& b) { return b.node("Sigmoid", {gemm(b)}); }},
      {"bias_gelu", {1, 5}, [](B& b) { return gelu(b, with_bias(b, sequence(b))); }},
      {"gelu_chain", {}, [](B& b) { return gelu(b, sequence(b)); }},
      {"tanh_gelu_chain", {}, [](B& b) { return tanh_gelu(b, sequence(b)); }},
      {"layer_norm_chain", {}, [](B& b) { return layer_norm(b, sequence(b)); }},
      {"add_layer_norm",
       {1, 1},
       [](B& b) {
         const std::string sum = b.node("Add", {sequence(b), sequence(b, "residual")});
         return b.node("LayerNormalization", {sum, b.filled_weight({width}), b.filled_weight({width})});
       }},
      {"transpose_matmul",
       {1, 1},
       [](B& b) {
         const std::string key = b.node("Transpose", {b.input("key", {4, rows, 16})}, {with("perm", {0, 2, 1})});
         return b.node("MatMul", {b.input("query", {4, 8, 16}), key});
       }},
      {"matmul_scale",
       {1, 1},
       [](B& b) {
         return b.node("Mul", {scores(b), b.real(0.25)});
       }},
      {"matmul_divide",
       {1, 1},
       [](B& b) {
         return b.node("Div", {scores(b), b.real(4)});
       }},
      {"scale_softmax",
       {1, 1},
       [](B& b) {
         return b.node("Softmax", {b.node("Mul", {sequence(b), b.real(0.25)})}, {with("axis", -1)});
       }},
      {"transpose_transpose",
       {1, 1},
       [](B& b) {
         const std::string turned = b.node("Transpose", {sequence(b)}, {with("perm", {0, 2, 1})});
         return b.node("Transpose", {turned}, {with("perm", {0, 2, 1})});
       }},
  };
}

const OnnxTensor& tensor_called(const OnnxGraph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.tensors, name, &OnnxTensor::name);
  ensure(found != graph.tensors.end(), "a chain's tensors keep their names");
  return *found;
}

OnnxDims flat(const OnnxDims& dims) {
  return {*onnx_elements(dims)};
}

std::string reshaped(OnnxBuilder& b, const std::string& tensor, const OnnxDims& dims) {
  return b.node("Reshape", {tensor, b.integers(dims)});
}

std::string first_element(OnnxBuilder& b, const std::string& tensor, size_t rank) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  const std::string first = b.integers(std::vector<int64_t>(rank, 0)), end = b.integers(std::vector<int64_t>(rank, 1));
  return b.node("Slice", {tensor, first, end, b.integers(std::move(axes))});
}

// Flat first: a runtime may move a transposition behind the slice, but not behind this.
void end_in_one_element(OnnxBuilder& b, const std::string& result, const OnnxDims& dims) {
  b.output(first_element(b, reshaped(b, result, flat(dims)), 1), OnnxType::float32);
}

// The same two operators when there is nothing before them, so that neither has anything to do.
void end_at_once(OnnxBuilder& b, const std::string& tensor, size_t rank) {
  b.output(reshaped(b, first_element(b, tensor, rank), {1}), OnnxType::float32);
}

// The nodes [from, to) of a chain.
struct Stretch {
  size_t from = 0, to = 0;
};

// What a stretch reads of the nodes before it.
std::vector<std::string> tensors_from_before(const std::vector<OnnxFileNode>& chain, Stretch stretch) {
  std::set<std::string> used;
  for (size_t i = stretch.from; i < stretch.to; ++i) used.insert(chain[i].inputs.begin(), chain[i].inputs.end());
  std::vector<std::string> found;
  for (size_t i = 0; i < stretch.from; ++i) {
    if (used.contains(chain[i].outputs.front())) found.push_back(chain[i].outputs.front());
  }
  return found;
}

void check_one_result(const std::vector<OnnxFileNode>& chain, Stretch stretch) {
  std::set<std::string> inner;
  for (size_t i = stretch.from; i + 1 < stretch.to; ++i) inner.insert(chain[i].outputs.front());
  for (size_t i = stretch.to; i < chain.size(); ++i) {
    for (const std::string& input : chain[i].inputs) ensure(!inner.contains(input), "a part of a chain has one result");
  }
}

std::string entry_name(const std::string& tensor) {
  return tensor + ".in";
}

OnnxFile cut_out(const OnnxBuilder& chain, const OnnxGraph& graph, Stretch stretch) {
  const std::vector<OnnxFileNode>& nodes = chain.file().body.nodes;
  check_one_result(nodes, stretch);
  OnnxBuilder part = chain;  // keeps the numbering, so that new names are new
  OnnxBody& body = part.file().body;
  body.nodes.clear();
  std::map<std::string, std::string> renamed;
  for (const std::string& tensor : tensors_from_before(nodes, stretch)) {
    const OnnxDims& dims = tensor_called(graph, tensor).dims;
    renamed[tensor] = reshaped(part, part.input(entry_name(tensor), flat(dims)), dims);
  }
  std::set<std::string> used;
  for (size_t i = stretch.from; i < stretch.to; ++i) {
    OnnxFileNode node = nodes[i];
    for (std::string& input : node.inputs) {
      if (const auto other = renamed.find(input); other != renamed.end()) input = other->second;
    }
    used.insert(node.inputs.begin(), node.inputs.end());
    body.nodes.push_back(std::move(node));
  }
  const std::string& result = nodes[stretch.to - 1].outputs.front();
  end_in_one_element(part, result, tensor_called(graph, result).dims);
  for (const OnnxFileNode& node : body.nodes) used.insert(node.inputs.begin(), node.inputs.end());
  std::erase_if(body.initializers, [&](const OnnxTensorData& tensor) { return !used.contains(tensor.name); });
  std::erase_if(body.inputs, [&](const OnnxValueInfo& info) { return !used.contains(info.name); });
  return part.file();
}

// A stretch without its operators: what comes from before it is copied all the same.
OnnxFile emptied(const OnnxGraph& graph, const std::vector<std::string>& from_before) {
  OnnxBuilder b("foretoken", opset);
  for (const std::string& tensor : from_before) {
    const OnnxDims& dims = tensor_called(graph, tensor).dims;
    end_at_once(b, reshaped(b, b.input(entry_name(tensor), flat(dims)), dims), dims.size());
  }
  return b.file();
}

OnnxFile empty_model() {
  OnnxBuilder b("foretoken", opset);
  end_at_once(b, picture(b), 4);
  return b.file();
}

void add_model(FusionPlan& plan, const std::string& name, OnnxFile file) {
  file.source = name;
  plan.models.push_back({name, std::move(file)});
}

constexpr const char* empty_name = "empty";

FusionPart add_part(FusionPlan& plan, const std::string& name, const OnnxBuilder& chain, const OnnxGraph& graph,
                    Stretch stretch) {
  FusionPart part{.model = name, .empty_model = empty_name};
  add_model(plan, name, cut_out(chain, graph, stretch));
  const std::vector<std::string> from_before = tensors_from_before(chain.file().body.nodes, stretch);
  if (!from_before.empty()) {
    part.empty_model = name + ".empty";
    add_model(plan, part.empty_model, emptied(graph, from_before));
  }
  return part;
}

void add_probe(FusionPlan& plan, const ProbeKind& kind) {
  OnnxBuilder chain("foretoken", opset);
  kind.build(chain);
  const OnnxGraph graph = import_onnx(chain.file(), {});
  const std::vector<OnnxFileNode>& nodes = chain.file().body.nodes;
  FusionProbe probe{.name = kind.name};
  for (const OnnxFileNode& node : nodes) probe.chain.push_back(node.operation);
  probe.whole = add_part(plan, kind.name, chain, graph, {0, nodes.size()});
  const std::vector<size_t> lengths = kind.parts.empty() ? std::vector<size_t>(nodes.size(), 1) : kind.parts;
  size_t from = 0;
  for (const size_t length : lengths) {
    const Stretch stretch{from, from + length};
    ensure(stretch.to <= nodes.size(), "the parts of a chain are no longer than it");
    const std::string name = fmt::format("{}.part{}", kind.name, probe.parts.size() + 1);
    probe.parts.push_back(add_part(plan, name, chain, graph, stretch));
    from = stretch.to;
  }
  ensure(from == nodes.size(), "the parts of a chain are as long as it");
  plan.probes.push_back(std::move(probe));
}

}  // namespace

FusionPlan fusion_plan() {
  FusionPlan plan;
  add_model(plan, empty_name, empty_model());
  for (const ProbeKind& kind : probe_kinds()) add_probe(plan, kind);
  return plan;
}

}  // namespace foretoken
