#include "model/onnx/graph_json.h"

#include <fmt/format.h>

namespace foretoken {
namespace {

constexpr Range<int64_t> tensor_sizes{.least = 0, .most = most_onnx_elements};

OnnxType read_element_type(const JsonView& view) {
  const std::string name = view.string();
  const std::optional<OnnxType> type = onnx_type_from_name(name);
  if (!type) view.fail("an element type such as float, float16, bfloat16, int64 or bool");
  return *type;
}

// A size, or the name of one: [1, 3, "height", "width"].
OnnxValueInfo read_tensor_info(const JsonView& view) {
  OnnxValueInfo info{.name = view.at("name").string()};
  if (const auto type = view.find("type")) info.type = read_element_type(*type);
  const auto shape = view.find("shape");
  if (!shape) return info;
  info.has_shape = true;
  for (const JsonView& side : shape->items()) {
    if (side.is(Json::Kind::string)) {
      info.dims.push_back({.symbol = side.string()});
    } else {
      info.dims.push_back({.size = side.integer(tensor_sizes)});
    }
  }
  if (info.dims.size() > most_onnx_rank) shape->fail("at most 64 dimensions");
  return info;
}

OnnxTensorData read_constant(const JsonView& view) {
  view.allow_only({"name", "type", "shape", "values"});
  const OnnxValueInfo info = read_tensor_info(view);
  OnnxTensorData tensor{.name = info.name, .type = info.type};
  for (const OnnxDimension& side : info.dims) {
    if (side.size < 0) view.at("shape").fail("numbers: a constant has no dimension to bind");
    tensor.dims.push_back(side.size);
  }
  const std::optional<int64_t> elements = onnx_elements(tensor.dims);
  if (!elements) view.fail("a tensor of at most 2^46 elements");
  const auto values = view.find("values");
  if (!values) return tensor;
  tensor.values.emplace();
  for (const JsonView& item : values->items()) {
    if (is_real(tensor.type)) {
      tensor.values->reals.push_back(item.number());
    } else {
      tensor.values->integers.push_back(item.is(Json::Kind::boolean) ? static_cast<int64_t>(item.boolean())
                                                                     : item.integer());
    }
  }
  const size_t count = tensor.values->reals.size() + tensor.values->integers.size();
  if (static_cast<int64_t>(count) != *elements) values->fail(fmt::format("{} values, as the shape says", *elements));
  if (*elements > most_onnx_values) tensor.values.reset();
  return tensor;
}

OnnxAttribute read_attribute(const std::string& name, const JsonView& view) {
  OnnxAttribute attribute{.name = name};
  switch (view.value().kind()) {
    case Json::Kind::boolean:
      attribute.value = static_cast<int64_t>(view.boolean());
      break;
    case Json::Kind::integer:
      attribute.value = view.integer();
      break;
    case Json::Kind::number:
      attribute.value = view.number();
      break;
    case Json::Kind::string:
      attribute.value = view.string();
      break;
    case Json::Kind::array: {
      std::vector<int64_t> integers;
      std::vector<double> reals;
      bool whole = true;
      for (const JsonView& item : view.items()) {
        whole = whole && item.is(Json::Kind::integer);
        reals.push_back(item.number());
        if (whole) integers.push_back(item.integer());
      }
      if (whole) {
        attribute.value = std::move(integers);
      } else {
        attribute.value = std::move(reals);
      }
      break;
    }
    default:
      view.fail("a number, a text, true, false or a list of numbers");
  }
  return attribute;
}

OnnxFileNode read_graph_node(const JsonView& view, std::vector<OnnxValueInfo>& infos) {
  view.allow_only({"name", "op", "domain", "inputs", "outputs", "attributes"});
  OnnxFileNode node{.operation = view.at("op").string()};
  if (const auto name = view.find("name")) node.name = name->string();
  if (const auto domain = view.find("domain")) node.domain = domain->string();
  for (const JsonView& input : view.at("inputs").items()) node.inputs.push_back(input.string());
  for (const JsonView& output : view.at("outputs").items()) {
    output.allow_only({"name", "type", "shape"});
    infos.push_back(read_tensor_info(output));
    node.outputs.push_back(infos.back().name);
  }
  if (const auto attributes = view.find("attributes")) {
    for (const auto& [name, value] : attributes->members()) node.attributes.push_back(read_attribute(name, value));
  }
  return node;
}

}  // namespace

OnnxFile parse_graph_json(const JsonView& document) {
  document.allow_only({"format", "version", "name", "producer", "opset", "inputs", "constants", "nodes", "outputs"});
  if (document.at("format").string() != "foretoken-graph") document.at("format").fail("\"foretoken-graph\"");
  document.at("version").integer({.least = 1, .most = 1});
  OnnxFile file{.source = document.source()};
  if (const auto producer = document.find("producer")) file.producer = producer->string();
  const auto opset = document.find("opset");
  file.opsets.push_back({"", opset ? opset->integer({.least = 9, .most = 25}) : 20});
  if (const auto name = document.find("name")) file.body.name = name->string();
  for (const JsonView& input : document.at("inputs").items()) {
    input.allow_only({"name", "type", "shape"});
    file.body.inputs.push_back(read_tensor_info(input));
  }
  if (const auto constants = document.find("constants")) {
    for (const JsonView& constant : constants->items()) file.body.initializers.push_back(read_constant(constant));
  }
  for (const JsonView& node : document.at("nodes").items()) {
    file.body.nodes.push_back(read_graph_node(node, file.body.between));
  }
  for (const JsonView& output : document.at("outputs").items()) file.body.outputs.push_back({.name = output.string()});
  return file;
}

}  // namespace foretoken
