// Once-for-All MobileNetV3: five stages of two to four inverted bottlenecks with kernel 3, 5 or 7 and expansion 3, 4 or
// 6, any input size. H. Cai et al., "Once-for-All: Train One Network and Specialize it for Efficient Deployment", ICLR
// 2020, section 4.1; widths and strides of its published MobileNetV3 supernet.
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "kernel/fewshot/feature_list.h"
#include "kernel/fewshot/spaces/list.h"

namespace foretoken {
namespace {

constexpr size_t stage_count = 5, stage_blocks = 4, all_blocks = stage_count * stage_blocks;
constexpr std::array<double, stage_count> stage_channels = {24, 40, 80, 112, 160}, stage_strides = {2, 2, 2, 1, 2};
constexpr double stage_input = 16;
constexpr double smallest_side = 32, largest_side = 1024;
constexpr std::string_view subnet_columns[] = {"ks", "expand", "res"};

struct Subnet {
  std::array<double, all_blocks> kernel{}, expansion{};  // 0 where the block is absent
  double side = 224;
};

void parse_digits(std::string_view text, std::string_view allowed, std::array<double, all_blocks>& values, size_t cell,
                  const CellComplaint& complain) {
  bool right = text.size() == all_blocks;
  for (size_t b = 0; right && b < all_blocks; ++b) {
    right = allowed.find(text[b]) != std::string_view::npos;
    values[b] = text[b] - '0';
  }
  if (!right) complain(cell, fmt::format("20 digits of {} (5 stages of 4 blocks; 0 = block absent)", allowed));
}

Subnet parse_subnet(std::span<const std::string_view> cells, const CellComplaint& complain) {
  Subnet net;
  parse_digits(cells[0], "0357", net.kernel, 0, complain);
  parse_digits(cells[1], "0346", net.expansion, 1, complain);
  for (size_t b = 0; b < all_blocks; ++b) {
    if ((net.kernel[b] == 0) != (net.expansion[b] == 0)) complain(1, "0 exactly where ks has a 0: the block is absent");
  }
  int side = 0;
  const auto [end, error] = std::from_chars(cells[2].data(), cells[2].data() + cells[2].size(), side);
  if (error != std::errc() || end != cells[2].data() + cells[2].size() || side < smallest_side || side > largest_side)
    complain(2, fmt::format("an input size between {} and {} pixels", smallest_side, largest_side));
  net.side = side;
  return net;
}

FeatureList describe_subnet(const Subnet& net) {
  FeatureList list, by_block;
  const double area = net.side * net.side / (224.0 * 224.0);
  double side = net.side / 2, in = stage_input;
  double flops = 3.5e7 * area, depthwise = 2e6 * area, traffic = 1.2e6 * area + 2e6, calls = 12;  // stem, head
  list.add("area", area);
  list.add("area_squared", area * area);
  for (size_t s = 0; s < stage_count; ++s) {
    double stage_flops = 0, stage_traffic = 0, stage_depthwise = 0, used = 0;
    for (size_t b = 0; b < stage_blocks; ++b) {
      const size_t block = s * stage_blocks + b;
      const double kernel = net.kernel[block], expansion = net.expansion[block];
      const bool present = kernel > 0;
      const std::string name = fmt::format("block{}", block);
      by_block.add(name + "_present", present ? 1 : 0);
      for (const double k : {5.0, 7.0}) {
        by_block.add(fmt::format("{}_k{}", name, k), kernel == k ? 1 : 0);
        by_block.add(fmt::format("{}_k{}_area", name, k), kernel == k ? area : 0);
      }
      for (const double e : {4.0, 6.0}) {
        by_block.add(fmt::format("{}_e{}", name, e), expansion == e ? 1 : 0);
        by_block.add(fmt::format("{}_e{}_area", name, e), expansion == e ? area : 0);
      }
      if (!present) continue;
      const double stride = b == 0 ? stage_strides[s] : 1;
      const double wide = in * expansion, map = side * side, out_map = map / (stride * stride);
      stage_flops += in * wide * map + wide * stage_channels[s] * out_map;
      stage_depthwise += kernel * kernel * wide * out_map;
      stage_traffic += map * (in + 2 * wide) + out_map * (2 * wide + stage_channels[s]);
      used += 1;
      side /= stride;
      in = stage_channels[s];
    }
    list.add(fmt::format("stage{}_flops", s), stage_flops * 1e-7);
    list.add(fmt::format("stage{}_depthwise", s), stage_depthwise * 1e-6);
    list.add(fmt::format("stage{}_traffic", s), stage_traffic * 1e-6);
    list.add(fmt::format("stage{}_blocks", s), used);
    list.add(fmt::format("stage{}_blocks_area", s), used * area);
    flops += stage_flops;
    depthwise += stage_depthwise;
    traffic += stage_traffic;
    calls += used * 10;
  }
  list.add_log("flops", flops + depthwise);
  list.add_log("depthwise_flops", depthwise);
  list.add_log("traffic", traffic);
  list.add_log("calls", calls);
  const double log_flops = portable_log((flops + depthwise) / 2.3e8), log_traffic = portable_log(traffic / 1.5e7);
  const double log_calls = portable_log(calls / 162);
  list.add("flops_curve", log_flops * log_flops);
  list.add("traffic_curve", log_traffic * log_traffic);
  list.add("calls_curve", log_calls * log_calls);
  list.add("traffic_calls", log_traffic * log_calls);
  list.add("traffic_cube", log_traffic * log_traffic * log_traffic);
  for (size_t f = 0; f < by_block.names.size(); ++f) list.add(by_block.names[f], by_block.values[f]);
  return list;
}

std::vector<std::string> ofa_names() {
  return describe_subnet({}).names;
}

std::vector<double> ofa_features(std::span<const std::string_view> cells, const CellComplaint& complain) {
  return describe_subnet(parse_subnet(cells, complain)).values;
}

std::vector<std::string> draw_ofa(RandomStream& stream) {
  std::string kernels, expansions;
  for (size_t s = 0; s < stage_count; ++s) {
    const size_t depth = 2 + stream.below(3);
    for (size_t b = 0; b < stage_blocks; ++b) {
      kernels += b < depth ? "357"[stream.below(3)] : '0';
      expansions += b < depth ? "346"[stream.below(3)] : '0';
    }
  }
  return {kernels, expansions, std::to_string(128 + 4 * stream.below(25))};
}

}  // namespace

ArchitectureSpace ofa_space() {
  return {.name = "ofa",
          .summary = "subnets of the Once-for-All MobileNetV3, 128 to 224 pixels",
          .columns = subnet_columns,
          .feature_names = ofa_names,
          .features = ofa_features,
          .draw = draw_ofa,
          .fit = {.first = 0, .count = 4000},
          .query = {.first = 4000, .count = 1000}};
}

}  // namespace foretoken
