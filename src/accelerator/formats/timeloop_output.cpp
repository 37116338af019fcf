#include "accelerator/formats/timeloop_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "accelerator/tile.h"
#include "base/error.h"

namespace foretoken {
namespace {

constexpr double pj_per_uj = 1e6;

struct LevelLoops {
  std::vector<Loop> temporal, across, down;  // outermost first
};

LevelLoops loops_at(const Mapping& mapping, int level) {
  LevelLoops own;
  for (const Loop& loop : mapping.loops) {
    if (loop.level != level || loop.bound == 1) continue;
    auto& list = loop.kind == LoopKind::temporal    ? own.temporal
                 : loop.kind == LoopKind::spatial_x ? own.across
                                                    : own.down;
    list.push_back(loop);
  }
  return own;
}

// Neighbours over one dimension as one loop. A dimension has one factor in a directive, so loops over it with others
// between them cannot be written.
std::vector<Loop> joined_loops(const std::vector<Loop>& outermost_first, const Problem& problem) {
  std::vector<Loop> joined;
  for (const Loop& loop : outermost_first) {
    const auto same = [&](const Loop& other) { return other.dimension == loop.dimension; };
    if (!joined.empty() && same(joined.back())) {
      Loop& outer = joined.back();
      outer.last = (outer.last - 1) * loop.bound + loop.last;
      outer.bound *= loop.bound;
      continue;
    }
    if (std::any_of(joined.begin(), joined.end(), same)) {
      throw InputError(
          {.value = problem.dimensions[loop.dimension].name,
           .expected = "one loop over a dimension at each level, which is all that Timeloop's form can say"});
    }
    joined.push_back(loop);
  }
  return joined;
}

std::string directive_yaml(const std::string& level, std::string_view type, const std::vector<Loop>& outermost_first,
                           const Problem& problem, const std::string& extra) {
  std::string factors, permutation;
  for (auto loop = outermost_first.rbegin(); loop != outermost_first.rend(); ++loop) {
    const std::string& name = problem.dimensions[loop->dimension].name;
    const std::string last = loop->last == loop->bound ? "" : fmt::format(",{}", loop->last);
    factors += fmt::format("{}{}={}{}", factors.empty() ? "" : " ", name, loop->bound, last);
    permutation += (permutation.empty() ? "" : " ") + name;
  }
  return fmt::format("- target: {}\n  type: {}\n  factors: \"{}\"\n  permutation: \"{}\"\n{}", level, type, factors,
                     permutation, extra);
}

std::string tensor_names_yaml(uint32_t bits, const Problem& problem) {
  std::vector<std::string> names;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if ((bits >> t & 1) != 0) names.push_back(problem.tensors[t].name);
  }
  return fmt::format("[{}]", fmt::join(names, ", "));
}

std::string kept_text(uint32_t kept, const TileSizes& tile, const Problem& problem) {
  std::string text;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if ((kept >> t & 1) == 0) continue;
    const double words = tile_words(problem.tensors[t], tile);
    text += fmt::format(" {}:{:.0f} ({:.0f})", problem.tensors[t].name, words, words);
  }
  return text;
}

void add_level_stats(const Evaluation& evaluation, const AcceleratorLevel& level, int index, const Problem& problem,
                     std::string& text) {
  const LevelUse& use = evaluation.levels[index];
  text += fmt::format("Level {}\n-------\n=== {} ===\n\n    SPECS\n    -----\n", index, level.name);
  text += fmt::format("        Word bits                    : {}\n", level.word_bits);
  text += fmt::format("        Block size                   : {}\n", level.words_per_access);
  text += fmt::format("        Size                         : {}\n",
                      level.depth == 0 ? "-" : std::to_string(level.depth * level.words_per_access));
  text += fmt::format("        Instances                    : {} ({}*{})\n", instances(level), level.instances_x,
                      level.instances_y);
  text += "\n    STATS\n    -----\n";
  text += fmt::format("    Cycles               : {:.0f}\n", use.cycles);
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const TensorTraffic& own = traffic_at(evaluation, problem, static_cast<size_t>(index), t);
    if (!own.kept) continue;
    const double words = (own.reads + own.fills + own.updates) * own.instances;
    text += fmt::format("    {}:\n", problem.tensors[t].name);
    const auto line = [&](std::string_view name, const std::string& value) {
      text += fmt::format("        {:<41}: {}\n", name, value);
    };
    line("Utilized capacity", fmt::format("{:.0f}", own.tile_words));
    line("Utilized instances (max)", fmt::format("{:.0f}", own.instances));
    line("Scalar reads (per-instance)", fmt::format("{:.0f}", own.reads));
    line("Scalar fills (per-instance)", fmt::format("{:.0f}", own.fills));
    line("Scalar updates (per-instance)", fmt::format("{:.0f}", own.updates));
    line("Energy (per-scalar-access)", fmt::format("{:.6f} pJ", words > 0 ? own.energy_pj / words : 0));
    line("Energy (per-instance)", fmt::format("{:.2f} pJ", own.energy_pj / std::max(own.instances, 1.0)));
    line("Energy (total)", fmt::format("{:.2f} pJ", own.energy_pj));
  }
  text += "\n";
}

}  // namespace

std::string timeloop_map_yaml(const Mapping& mapping, const Architecture& architecture, const Problem& problem) {
  std::string text = "mapping:\n";
  const uint32_t all = (1U << problem.tensors.size()) - 1;
  for (int i = 0; i + 1 < static_cast<int>(architecture.levels.size()); ++i) {
    const std::string& name = architecture.levels[i].name;
    const LevelLoops own = loops_at(mapping, i);
    if (architecture.levels[i].kind == LevelKind::storage) {
      text +=
          fmt::format("- target: {}\n  type: dataspace\n  keep: {}\n  bypass: {}\n", name,
                      tensor_names_yaml(mapping.kept[i], problem), tensor_names_yaml(all & ~mapping.kept[i], problem));
    }
    text += directive_yaml(name, "temporal", joined_loops(own.temporal, problem), problem, "");
    if (own.across.empty() && own.down.empty()) continue;
    // X inside Y: the split counts the dimensions that run across X.
    const std::vector<Loop> across = joined_loops(own.across, problem);
    std::vector<Loop> spatial = joined_loops(own.down, problem);
    spatial.insert(spatial.end(), across.begin(), across.end());
    for (const Loop& one : own.down) {
      const bool twice = std::any_of(across.begin(), across.end(), [&](const Loop& other) {
        return other.dimension == one.dimension && other.bound > 1 && one.bound > 1;
      });
      if (!twice) continue;
      throw InputError({.source = "mapping",
                        .path = name,
                        .value = fmt::format("{} both across and down", problem.dimensions[one.dimension].name),
                        .expected = "a dimension in one direction: Timeloop's files cannot say both; our JSON can"});
    }
    text += directive_yaml(name, "spatial", spatial, problem, fmt::format("  split: {}\n", across.size()));
  }
  return text;
}

std::string timeloop_map_text(const Mapping& mapping, const Architecture& architecture, const Problem& problem) {
  std::string text;
  size_t indent = 0;
  for (int i = 0; i + 1 < static_cast<int>(architecture.levels.size()); ++i) {
    const TileSizes tile = tile_at(mapping, problem, i);
    const std::string head =
        fmt::format("{} [{} ]", architecture.levels[i].name, kept_text(mapping.kept[i], tile, problem));
    text += fmt::format("{}{}\n{}\n", i == 0 ? "" : "\n", head, std::string(head.size(), '-'));
    for (const Loop& loop : mapping.loops) {
      if (loop.level != i || loop.bound == 1) continue;
      const std::string remainder = loop.last == loop.bound ? "" : fmt::format(",{}", loop.last);
      const std::string_view spatial = loop.kind == LoopKind::temporal    ? ""
                                       : loop.kind == LoopKind::spatial_x ? " (Spatial-X)"
                                                                          : " (Spatial-Y)";
      text += fmt::format("| {}for {} in [0:{}{}){}\n", std::string(2 * indent, ' '),
                          problem.dimensions[loop.dimension].name, loop.bound, remainder, spatial);
      ++indent;
    }
  }
  return text;
}

std::string timeloop_stats_text(const Evaluation& evaluation, const Mapping& mapping, const Architecture& architecture,
                                const Problem& problem) {
  std::string text = timeloop_map_text(mapping, architecture, problem) + "\n";
  const int levels = static_cast<int>(architecture.levels.size()) - 1;
  // Timeloop counts levels from the multipliers outwards; the order of printing is its.
  text += fmt::format("Level compute\n-------\n=== {} ===\n\n    STATS\n    -----\n", architecture.levels[levels].name);
  text += fmt::format("    Utilized instances      : {:.0f}\n", evaluation.levels[levels].instances);
  text += fmt::format("    Computes (total)        : {:.0f}\n", evaluation.operations);
  text += fmt::format("    Cycles                  : {:.0f}\n", evaluation.compute_cycles);
  text += fmt::format("    Energy (total)          : {:.2f} pJ\n\n", evaluation.compute_pj);
  for (int i = levels - 1; i >= 0; --i) {
    if (architecture.levels[i].kind == LevelKind::network) continue;
    add_level_stats(evaluation, architecture.levels[i], i, problem, text);
  }
  const double per_operation = evaluation.energy_pj / evaluation.operations;
  text += "Summary Stats\n-------------\n";
  text += fmt::format("Utilization: {:.2f}%\n", 100 * utilization(evaluation, architecture));
  text += fmt::format("Cycles: {:.0f}\n", evaluation.cycles);
  text += fmt::format("Energy: {:.2f} uJ\n", evaluation.energy_pj / pj_per_uj);
  text += fmt::format("EDP(J*cycle): {:.2e}\n", evaluation.energy_pj * 1e-12 * evaluation.cycles);
  text += fmt::format("Area: {:.2f} mm^2\n\n", area_um2(architecture) / 1e6);
  text += fmt::format("Computes = {:.0f}\npJ/Compute\n", evaluation.operations);
  const auto part = [&](const std::string& name, double energy) {
    text += fmt::format("    {:<41} = {:.3f}\n", name, energy / evaluation.operations);
  };
  part(architecture.levels[levels].name, evaluation.compute_pj + evaluation.levels[levels].leakage_pj);
  for (int i = levels - 1; i >= 0; --i) {
    part(architecture.levels[i].name, evaluation.levels[i].access_pj + evaluation.levels[i].leakage_pj);
    const double network_pj = evaluation.levels[i].network_pj;
    if (network_pj > 0) part(architecture.levels[i].name + " <==> below", network_pj);
  }
  return text + fmt::format("    {:<41} = {:.3f}\n", "Total", per_operation);
}

}  // namespace foretoken
