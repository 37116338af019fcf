#include "accelerator/dataflow/iteration_case.h"

#include <algorithm>

namespace foretoken {
namespace {

std::vector<DimStep> temporal_steps(const MapDirective& map, int64_t size) {
  std::vector<DimStep> steps{{.holds_all = size <= map.size, .is_partial = size < map.size}};
  if (size <= map.size) return steps;
  const int64_t steady = (size - map.size) / map.offset;
  if (steady > 0) steps.push_back({.position = StepPosition::steady, .steps = steady});
  if (steady * map.offset + map.size < size) steps.push_back({.position = StepPosition::last, .is_partial = true});
  return steps;
}

// Whether units, each a whole tile, leave a rest of `size` to one more.
bool leaves_rest(const MapDirective& map, int64_t size) {
  const int64_t whole_units = size < map.size ? 1 : (size - map.size) / map.offset + 1;
  return (whole_units - 1) * map.offset + map.size < size;
}

std::vector<DimStep> spatial_steps(const MapDirective& map, int64_t size, int64_t units, DataflowReading reading) {
  const int64_t one_round = map.size + map.offset * (units - 1);
  if (size <= one_round) {
    const bool some_idle = size < one_round;
    // To MAESTRO the last unit then has less to do, whether or not it has.
    const bool has_rest = reading == DataflowReading::maestro || size < map.size || leaves_rest(map, size);
    return {{.holds_all = true, .is_partial = some_idle, .last_unit_partial = some_idle && has_rest}};
  }
  std::vector<DimStep> steps{DimStep{}};
  const int64_t round_offset = map.offset * units;
  const int64_t steady = ((size - map.size) / map.offset + 1) / units - 1;
  if (steady > 0) steps.push_back({.position = StepPosition::steady, .steps = steady});
  if ((steady + 1) * round_offset + one_round > size && steady * round_offset + one_round != size) {
    const int64_t left = size - (steady + 1) * round_offset;
    steps.push_back({.position = StepPosition::last, .is_partial = true, .last_unit_partial = leaves_rest(map, left)});
  }
  return steps;
}

}  // namespace

bool IterationCase::is_first_step() const {
  return std::ranges::all_of(along.values, [](const DimStep& step) { return step.position == StepPosition::first; });
}

std::vector<IterationCase> iteration_cases(const ClusterLevel& level, const DimSizes& sizes, DataflowReading reading) {
  std::vector<std::vector<DimStep>> choices;
  size_t count = 1;
  for (const MapDirective& map : level.maps) {
    choices.push_back(map.is_spatial ? spatial_steps(map, sizes[map.dim], level.units, reading)
                                     : temporal_steps(map, sizes[map.dim]));
    count *= choices.back().size();
  }
  std::vector<IterationCase> cases(count);
  for (size_t index = 0; index < count; ++index) {
    size_t inner_cases = count;
    for (size_t map = 0; map < choices.size(); ++map) {
      inner_cases /= choices[map].size();
      const size_t choice = (index + inner_cases - 1) / inner_cases % choices[map].size();
      const DimStep& step = choices[map][choice];
      cases[index].along[level.maps[map].dim] = step;
      cases[index].steps *= step.steps;
    }
  }
  return cases;
}

}  // namespace foretoken
