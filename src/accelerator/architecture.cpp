#include "accelerator/architecture.h"

#include <fmt/format.h>

#include <set>

namespace foretoken {

std::string architecture_fault(const Architecture& architecture) {
  const auto& levels = architecture.levels;
  if (levels.size() < 2) return "an accelerator needs a storage level and a compute level";
  if (levels.size() > max_accelerator_levels) {
    return fmt::format("{} levels; at most {}", levels.size(), max_accelerator_levels);
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < levels.size(); ++i) {
    const AcceleratorLevel& level = levels[i];
    if (!seen.insert(level.name).second) return fmt::format("two levels are named {}", level.name);
    const bool last = i + 1 == levels.size();
    if (last != (level.kind == LevelKind::compute)) {
      return last ? fmt::format("the innermost level, {}, must compute", level.name)
                  : fmt::format("level {} computes but is not the innermost", level.name);
    }
    if (level.instances_x < 1 || level.instances_y < 1) return fmt::format("level {} has no instances", level.name);
    if (level.words_per_access < 1) return fmt::format("level {}: less than a word per access", level.name);
    if (level.buffers < 1) return fmt::format("level {}: fewer than one buffer", level.name);
    if (level.depth > 0 && words_held(level) == 0) {
      return fmt::format("level {}: {} buffers leave no word for each", level.name, level.buffers);
    }
    if (i == 0) continue;
    const AcceleratorLevel& outer = levels[i - 1];
    if (level.instances_x % outer.instances_x != 0 || level.instances_y % outer.instances_y != 0) {
      return fmt::format("{} x {} instances of {} do not divide evenly below {} x {} of {}", level.instances_x,
                         level.instances_y, level.name, outer.instances_x, outer.instances_y, outer.name);
    }
  }
  return "";
}

int64_t instances(const AcceleratorLevel& level) {
  return level.instances_x * level.instances_y;
}

int64_t words_held(const AcceleratorLevel& level) {
  return level.depth * level.words_per_access / level.buffers;
}

int64_t fanout_x(const Architecture& architecture, size_t level) {
  return architecture.levels[level + 1].instances_x / architecture.levels[level].instances_x;
}

int64_t fanout_y(const Architecture& architecture, size_t level) {
  return architecture.levels[level + 1].instances_y / architecture.levels[level].instances_y;
}

int find_level(const Architecture& architecture, std::string_view name) {
  for (size_t i = 0; i < architecture.levels.size(); ++i) {
    if (architecture.levels[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::vector<std::string> level_names(const Architecture& architecture) {
  std::vector<std::string> names;
  for (const AcceleratorLevel& level : architecture.levels) names.push_back(level.name);
  return names;
}

double area_um2(const Architecture& architecture) {
  double area = 0;
  for (const AcceleratorLevel& level : architecture.levels)
    area += level.area_um2 * static_cast<double>(instances(level));
  return area;
}

double operations_per_cycle(const Architecture& architecture) {
  const AcceleratorLevel& multipliers = architecture.levels.back();
  return static_cast<double>(instances(multipliers)) / multipliers.operation_cycles;
}

double vector_operations_per_cycle(const Architecture& architecture) {
  const double stated = architecture.vector.operations_per_cycle;
  return stated > 0 ? stated : static_cast<double>(architecture.levels.back().instances_x);
}

}  // namespace foretoken
