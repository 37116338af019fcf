// NAS-Bench-201: a cell of four nodes and six edges, each with one of five operations, stacked 5 times in three stages
// of 16, 32 and 64 channels. X. Dong, Y. Yang, "NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture
// Search", ICLR 2020, section 2.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "kernel/fewshot/feature_list.h"
#include "kernel/fewshot/spaces/list.h"

namespace foretoken {
namespace {

constexpr size_t edges = 6, operations = 5;
constexpr std::array<size_t, edges> edge_from = {0, 0, 1, 0, 1, 2};
constexpr std::array<size_t, edges> edge_to = {1, 2, 2, 3, 3, 3};
constexpr std::array<const char*, operations> operation_names = {"none", "skip", "conv1", "conv3", "pool"};
constexpr std::string_view cell_columns[] = {"ops"};

using Cell = std::array<size_t, edges>;  // operation of each edge

Cell parse_cell(std::string_view text, const CellComplaint& complain) {
  Cell cell{};
  bool right = text.size() == edges;
  for (size_t e = 0; right && e < edges; ++e) {
    right = text[e] >= '0' && text[e] < static_cast<char>('0' + operations);
    if (right) cell[e] = static_cast<size_t>(text[e] - '0');
  }
  if (!right)
    complain(0, "six digits from 0 to 4: none, skip, conv 1x1, conv 3x3, pool for (0>1)(0>2)(1>2)(0>3)(1>3)(2>3)");
  return cell;
}

// Edges on a way from the input to the output: runtimes that compile the graph drop the others.
std::array<bool, edges> live_edges(const Cell& cell) {
  std::array<bool, 4> reached = {true, false, false, false}, used = {false, false, false, true};
  for (size_t e = 0; e < edges; ++e) {  // edges are in the order of the node they end in
    if (cell[e] != 0 && reached[edge_from[e]]) reached[edge_to[e]] = true;
  }
  for (size_t e = edges; e-- > 0;) {
    if (cell[e] != 0 && used[edge_to[e]]) used[edge_from[e]] = true;
  }
  std::array<bool, edges> live{};
  for (size_t e = 0; e < edges; ++e) live[e] = cell[e] != 0 && reached[edge_from[e]] && used[edge_to[e]];
  return live;
}

// The most of `weight` that any way from the input collects: the critical path.
double longest_path(const std::array<double, edges>& weight, const Cell& cell) {
  std::array<double, 4> longest{};
  for (size_t e = 0; e < edges; ++e) {
    if (cell[e] != 0) longest[edge_to[e]] = std::max(longest[edge_to[e]], longest[edge_from[e]] + weight[e]);
  }
  return longest[3];
}

// Costs of the whole network relative to what all networks share (stem, two residual blocks, classifier).
void add_costs(FeatureList& list, const std::string& which, const std::array<double, operations>& count) {
  // A conv of C channels on a map of HW does C*C*HW multiplications per tap, 2^18 in each of the three stages; the rest
  // of the network does 2.1e7. Activations are 28,672 values over the three stages.
  constexpr double taps = 5 * 3 * 262'144.0, shared_taps = 2.1e7;
  constexpr double values = 5 * 28'672.0, shared_values = 4.2e5;
  list.add_log(which + "_flops", shared_taps + taps * (count[2] + 9 * count[3]));
  list.add_log(which + "_traffic", shared_values + values * (2 * count[1] + 6 * (count[2] + count[3]) + 2 * count[4]));
  list.add_log(which + "_calls", 1 + count[1] * 0.3 + 3 * (count[2] + count[3]) + 1.5 * count[4]);
  list.add_log(which + "_convs", 1 + count[2] + count[3]);
}

FeatureList describe_cell(const Cell& cell) {
  FeatureList list;
  const std::array<bool, edges> live = live_edges(cell);
  std::array<double, operations> count{}, live_count{};
  std::array<double, edges> calls{}, work{};
  for (size_t e = 0; e < edges; ++e) {
    count[cell[e]] += 1;
    if (live[e]) live_count[cell[e]] += 1;
    calls[e] = cell[e] == 2 || cell[e] == 3 ? 3 : cell[e] == 4 ? 1 : 0;
    work[e] = cell[e] == 2 ? 1 : cell[e] == 3 ? 9 : 0;
  }
  for (size_t e = 0; e < edges; ++e) {
    for (size_t o = 1; o < operations; ++o) {
      list.add(fmt::format("edge{}_{}", e, operation_names[o]), cell[e] == o ? 1 : 0);
      list.add(fmt::format("live_edge{}_{}", e, operation_names[o]), live[e] && cell[e] == o ? 1 : 0);
    }
  }
  for (size_t o = 1; o < operations; ++o) {
    list.add(fmt::format("count_{}", operation_names[o]), count[o]);
    list.add(fmt::format("count_{}_squared", operation_names[o]), count[o] * count[o]);
    list.add(fmt::format("live_{}", operation_names[o]), live_count[o]);
    list.add(fmt::format("live_{}_squared", operation_names[o]), live_count[o] * live_count[o]);
    for (size_t other = o + 1; other < operations; ++other) {
      list.add(fmt::format("live_{}_{}", operation_names[o], operation_names[other]),
               live_count[o] * live_count[other]);
    }
  }
  list.add("disconnected", std::none_of(live.begin(), live.end(), [](bool is) { return is; }) ? 1 : 0);
  list.add("path_calls", longest_path(calls, cell));
  list.add("path_work", longest_path(work, cell));
  add_costs(list, "total", count);
  add_costs(list, "live", live_count);
  for (size_t a = 0; a < edges; ++a) {
    for (size_t b = a + 1; b < edges; ++b) {
      for (size_t o = 1; o < operations; ++o) {
        for (size_t p = 1; p < operations; ++p) {
          list.add(fmt::format("pair{}_{}_{}_{}", a, operation_names[o], b, operation_names[p]),
                   cell[a] == o && cell[b] == p ? 1 : 0);
        }
      }
    }
  }
  return list;
}

std::vector<std::string> nasbench201_names() {
  return describe_cell({}).names;
}

std::vector<double> nasbench201_features(std::span<const std::string_view> cells, const CellComplaint& complain) {
  return describe_cell(parse_cell(cells[0], complain)).values;
}

std::vector<std::string> draw_nasbench201(RandomStream& stream) {
  std::string text;
  for (size_t e = 0; e < edges; ++e) text += static_cast<char>('0' + stream.below(operations));
  return {text};
}

}  // namespace

ArchitectureSpace nasbench201_space() {
  return {.name = "nasbench201",
          .summary = "cells of six edges with five operations (NAS-Bench-201), 32x32 pictures",
          .columns = cell_columns,
          .feature_names = nasbench201_names,
          .features = nasbench201_features,
          .draw = draw_nasbench201,
          .block_prefix = "edge",
          .fit = {.first = 0, .count = 900},
          .query = {.first = 900, .count = 1000}};
}

}  // namespace foretoken
