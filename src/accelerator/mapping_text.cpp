#include "accelerator/mapping_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "accelerator/element_width.h"
#include "accelerator/flat_nest.h"
#include "accelerator/tile.h"

namespace foretoken {
namespace {

std::string tensor_list(uint32_t kept, const Problem& problem) {
  std::string text;
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if ((kept >> t & 1) == 0) continue;
    text += (text.empty() ? "" : ", ") + problem.tensors[t].name;
  }
  return text;
}

void add_loop_faults(const Mapping& mapping, const Architecture& architecture, const Problem& problem,
                     std::vector<std::string>& faults) {
  const int compute = static_cast<int>(architecture.levels.size()) - 1;
  int before = 0;
  int repeating = 0;
  for (const Loop& loop : mapping.loops) {
    if (loop.level < 0 || loop.level >= compute) {
      faults.push_back("a loop stands at a level that does not hold loops");
      return;
    }
    if (loop.dimension < 0 || loop.dimension >= static_cast<int>(problem.dimensions.size())) {
      faults.push_back("a loop runs over a dimension that does not exist");
      return;
    }
    if (loop.level < before) faults.push_back("loops are not in the order of their levels");
    before = loop.level;
    if (loop.bound < 1 || loop.last < 1 || loop.last > loop.bound) {
      faults.push_back(fmt::format("a loop over {} runs {} times, {} at the end",
                                   problem.dimensions[loop.dimension].name, loop.bound, loop.last));
    }
    if (loop.bound > 1) ++repeating;
  }
  if (repeating > max_flat_loops) {
    faults.push_back(fmt::format("{} loops run more than once; at most {}", repeating, max_flat_loops));
  }
}

void add_factor_faults(const Mapping& mapping, const Problem& problem, std::vector<std::string>& faults) {
  for (size_t d = 0; d < problem.dimensions.size(); ++d) {
    const auto& [name, size] = problem.dimensions[d];
    bool any = false;
    double covered = 1;  // as the remainders have it
    double full = 1;
    for (auto loop = mapping.loops.rbegin(); loop != mapping.loops.rend(); ++loop) {
      if (loop->dimension != static_cast<int>(d)) continue;
      any = true;
      covered += static_cast<double>(loop->last - 1) * full;
      full *= static_cast<double>(loop->bound);
    }
    if (!any && size > 1) {
      faults.push_back(fmt::format("dimension {} of size {} has no loop", name, size));
    } else if (covered != static_cast<double>(size)) {
      faults.push_back(fmt::format("the loops over {} cover {} of {}", name, covered, size));
    }
  }
}

void add_fanout_faults(const Mapping& mapping, const Architecture& architecture, std::vector<std::string>& faults) {
  for (size_t i = 0; i + 1 < architecture.levels.size(); ++i) {
    double across = 1, down = 1;
    for (const Loop& loop : mapping.loops) {
      if (loop.level != static_cast<int>(i)) continue;
      if (loop.kind == LoopKind::spatial_x) across *= static_cast<double>(loop.bound);
      if (loop.kind == LoopKind::spatial_y) down *= static_cast<double>(loop.bound);
    }
    const int64_t x = fanout_x(architecture, i), y = fanout_y(architecture, i);
    if (across > static_cast<double>(x) || down > static_cast<double>(y)) {
      faults.push_back(fmt::format("level {} spreads work over {} x {} instances but has {} x {} below it",
                                   architecture.levels[i].name, across, down, x, y));
    }
  }
}

void add_storage_faults(const Mapping& mapping, const Architecture& architecture, const Problem& problem,
                        std::vector<std::string>& faults) {
  uint32_t kept_somewhere = 0;
  for (size_t i = 0; i + 1 < architecture.levels.size(); ++i) {
    const AcceleratorLevel& level = architecture.levels[i];
    const uint32_t kept = mapping.kept[i];
    kept_somewhere |= kept;
    if (level.kind == LevelKind::network && kept != 0) {
      faults.push_back(fmt::format("level {} is a network and cannot keep {}", level.name, tensor_list(kept, problem)));
      continue;
    }
    if (words_held(level) == 0) continue;
    const TileSizes tile = tile_at(mapping, problem, static_cast<int>(i));
    double words = 0;
    std::string parts;
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      if ((kept >> t & 1) == 0) continue;
      const double own = tile_words(problem.tensors[t], tile) * words_of_element(architecture, i, problem.tensors[t]);
      words += own;
      parts += fmt::format("{}{} of {}", parts.empty() ? "" : ", ", own, problem.tensors[t].name);
    }
    if (words > static_cast<double>(words_held(level))) {
      faults.push_back(fmt::format("the tiles at {} need {} words ({}) but it holds {}{}", level.name, words, parts,
                                   words_held(level),
                                   level.buffers > 1 ? fmt::format(" in each of {} buffers", level.buffers) : ""));
    }
  }
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    if ((kept_somewhere >> t & 1) == 0) {
      faults.push_back(fmt::format("no level keeps {}", problem.tensors[t].name));
      continue;
    }
    int home = 0;
    while ((mapping.kept[home] >> t & 1) == 0) ++home;
    for (const Loop& loop : mapping.loops) {
      if (loop.level >= home || loop.bound == 1 || !uses_dimension(problem.tensors[t], loop.dimension)) continue;
      faults.push_back(fmt::format(
          "{} comes from nowhere: a loop over {} outside {} moves it, and no level there keeps it",
          problem.tensors[t].name, problem.dimensions[loop.dimension].name, architecture.levels[home].name));
      break;
    }
  }
}

}  // namespace

std::vector<std::string> mapping_faults(const Mapping& mapping, const Architecture& architecture,
                                        const Problem& problem) {
  std::vector<std::string> faults;
  if (mapping.kept.size() + 1 != architecture.levels.size()) {
    faults.push_back(fmt::format("the mapping is for {} levels; the architecture has {}", mapping.kept.size() + 1,
                                 architecture.levels.size()));
    return faults;
  }
  add_loop_faults(mapping, architecture, problem, faults);
  if (!faults.empty()) return faults;
  add_factor_faults(mapping, problem, faults);
  add_fanout_faults(mapping, architecture, faults);
  add_storage_faults(mapping, architecture, problem, faults);
  return faults;
}

std::string loop_nest_text(const Mapping& mapping, const Architecture& architecture, const Problem& problem) {
  std::string text;
  size_t indent = 0;
  auto next = mapping.loops.begin();
  for (size_t i = 0; i + 1 < architecture.levels.size(); ++i) {
    const std::string kept = tensor_list(mapping.kept[i], problem);
    const TileSizes tile = tile_at(mapping, problem, static_cast<int>(i));
    text += fmt::format("{}{}{}", text.empty() ? "" : "\n", architecture.levels[i].name, kept.empty() ? "" : " keeps");
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
      if ((mapping.kept[i] >> t & 1) == 0) continue;
      text += fmt::format(" {}:{:.0f}", problem.tensors[t].name, tile_words(problem.tensors[t], tile));
    }
    text += "\n";
    for (; next != mapping.loops.end() && next->level == static_cast<int>(i); ++next) {
      if (next->bound == 1) continue;
      const std::string& name = problem.dimensions[next->dimension].name;
      const std::string remainder = next->last == next->bound ? "" : fmt::format(" (last {})", next->last);
      const std::string_view kind = next->kind == LoopKind::temporal    ? "for"
                                    : next->kind == LoopKind::spatial_x ? "spread across X"
                                                                        : "spread across Y";
      ++indent;
      text += fmt::format("{}{} {} in [0:{}){}\n", std::string(2 * indent, ' '), kind, name, next->bound, remainder);
    }
  }
  return text + std::string(2 * (indent + 1), ' ') + architecture.levels.back().name + "\n";
}

}  // namespace foretoken
