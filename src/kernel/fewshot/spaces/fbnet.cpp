// FBNet: 22 searchable layers, each one of eight inverted bottlenecks or a skip. B. Wu et al., "FBNet: Hardware-Aware
// Efficient ConvNet Design via Differentiable Neural Architecture Search", CVPR 2019, tables 1 and 2; at 32x32 pixels,
// as HW-NAS-Bench (ICLR 2021) and the tables of HELP have it: the stem and the second stage keep the size.
#include <array>

#include <fmt/format.h>

#include "kernel/fewshot/feature_list.h"
#include "kernel/fewshot/spaces/list.h"

namespace foretoken {
namespace {

struct Block {
  double kernel, expansion, groups;
};
constexpr size_t skip = 8;
constexpr std::array<Block, skip> blocks = {
    {{3, 1, 1}, {3, 1, 2}, {3, 3, 1}, {3, 6, 1}, {5, 1, 1}, {5, 1, 2}, {5, 3, 1}, {5, 6, 1}}};

struct Stage {
  double channels, stride;
  size_t layers;
};
constexpr std::array<Stage, 7> stages = {
    {{16, 1, 1}, {24, 1, 4}, {32, 2, 4}, {64, 2, 4}, {112, 1, 4}, {184, 2, 4}, {352, 1, 1}}};
constexpr size_t layers = 22;
constexpr double first_side = 32, first_channels = 16;  // after the stem
constexpr std::string_view layer_columns[] = {"ops"};

using Layers = std::array<size_t, layers>;  // choice of each

Layers parse_layers(std::string_view text, const CellComplaint& complain) {
  Layers choices{};
  bool right = text.size() == layers;
  for (size_t l = 0; right && l < layers; ++l) {
    right = text[l] >= '0' && text[l] <= '8';
    if (right) choices[l] = static_cast<size_t>(text[l] - '0');
  }
  if (!right) complain(0, "22 digits from 0 to 8: k3_e1, k3_e1_g2, k3_e3, k3_e6, k5_e1, k5_e1_g2, k5_e3, k5_e6, skip");
  return choices;
}

struct BlockCost {
  double pointwise = 0, depthwise = 0;  // multiplications
  double traffic = 0, parameters = 0;   // values
};

BlockCost block_cost(const Block& block, double in, double out, double side, double stride) {
  const double wide = in * block.expansion, map = side * side, out_map = map / (stride * stride);
  BlockCost cost;
  cost.pointwise = (in * wide * map + wide * out * out_map) / block.groups;
  cost.depthwise = block.kernel * block.kernel * wide * out_map;
  cost.traffic = map * (in + 2 * wide) + out_map * (2 * wide + out);
  cost.parameters = wide * (in + out) / block.groups + block.kernel * block.kernel * wide;
  return cost;
}

FeatureList describe_layers(const Layers& choices) {
  FeatureList list;
  BlockCost total{.pointwise = 3e7, .depthwise = 0, .traffic = 1e5, .parameters = 7e5};  // stem, head and classifier
  std::array<double, skip + 1> count{};
  double side = first_side, in = first_channels;
  size_t layer = 0;
  FeatureList one_hot;
  for (size_t s = 0; s < stages.size(); ++s) {
    BlockCost stage;
    double used = 0;
    for (size_t l = 0; l < stages[s].layers; ++l, ++layer) {
      const size_t choice = choices[layer];
      const double stride = l == 0 ? stages[s].stride : 1;
      count[choice] += 1;
      for (size_t o = 0; o < skip; ++o) one_hot.add(fmt::format("layer{}_{}", layer, o), choice == o ? 1 : 0);
      if (choice != skip) {
        const BlockCost cost = block_cost(blocks[choice], in, stages[s].channels, side, stride);
        stage.pointwise += cost.pointwise;
        stage.depthwise += cost.depthwise;
        stage.traffic += cost.traffic;
        stage.parameters += cost.parameters;
        used += 1;
      }
      side /= stride;
      in = stages[s].channels;
    }
    list.add(fmt::format("stage{}_pointwise", s), stage.pointwise * 1e-7);
    list.add(fmt::format("stage{}_depthwise", s), stage.depthwise * 1e-6);
    list.add(fmt::format("stage{}_traffic", s), stage.traffic * 1e-6);
    list.add(fmt::format("stage{}_blocks", s), used);
    total.pointwise += stage.pointwise;
    total.depthwise += stage.depthwise;
    total.traffic += stage.traffic;
    total.parameters += stage.parameters;
  }
  for (size_t o = 0; o < skip; ++o) list.add(fmt::format("count_{}", o), count[o]);
  list.add_log("flops", total.pointwise + total.depthwise);
  list.add_log("depthwise_flops", total.depthwise);
  list.add_log("traffic", total.traffic);
  list.add_log("parameters", total.parameters);
  list.add_log("calls", 2 + static_cast<double>(layers) - count[skip]);
  for (size_t f = 0; f < one_hot.names.size(); ++f) list.add(one_hot.names[f], one_hot.values[f]);
  return list;
}

std::vector<std::string> fbnet_names() {
  return describe_layers({}).names;
}

std::vector<double> fbnet_features(std::span<const std::string_view> cells, const CellComplaint& complain) {
  return describe_layers(parse_layers(cells[0], complain)).values;
}

std::vector<std::string> draw_fbnet(RandomStream& stream) {
  std::string text;
  for (size_t l = 0; l < layers; ++l) text += static_cast<char>('0' + stream.below(skip + 1));
  return {text};
}

}  // namespace

ArchitectureSpace fbnet_space() {
  return {.name = "fbnet",
          .summary = "22 layers of inverted bottlenecks or skips (FBNet)",
          .columns = layer_columns,
          .feature_names = fbnet_names,
          .features = fbnet_features,
          .draw = draw_fbnet,
          .block_prefix = "layer",
          .fit = {.first = 0, .count = 4000},
          .query = {.first = 4000, .count = 1000}};
}

}  // namespace foretoken
