// How long a matrix multiply takes under each way of cutting it into tiles, as tile languages (Triton) let users
// choose. An analytic model for ranking schedules before any of them is compiled; kernels of vendors are priced by
// forms/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hardware/device.h"
#include "model/shapes.h"

namespace foretoken {

struct GemmSchedule {
  int64_t bm = 128, bn = 128, bk = 64;  // tile of the result, and the slice of k that one turn of the loop multiplies
  int64_t stages = 3;                   // slices on their way at once
  int64_t warps = 4;
  int64_t group = 8;  // rows of tiles that are walked together, so that the cache holds their operands
  bool operator==(const GemmSchedule&) const = default;
};

struct ScheduleTime {
  double seconds = 0;
  int64_t tiles = 0, tiles_per_processor = 1;  // at once
  std::string bound;                           // multiply, shared memory, cache, latency or memory
};

struct RankedSchedule {
  GemmSchedule schedule;
  ScheduleTime time;
};

// InputError where the device is not of the generation that was measured (Hopper), lacks a fact that the model needs,
// or the product is not in a 16-bit format.
void check_schedules_known(const GemmShape& shape, const Device& device);

// Nothing where its slices do not fit the shared memory of a processor.
std::optional<ScheduleTime> schedule_time(const GemmShape& shape, const GemmSchedule& schedule, const Device& device);

// The schedules that Triton programs usually try.
std::vector<GemmSchedule> usual_schedules();

// Shorter time first; of equal ones the larger group, which can only help the cache.
bool ranks_before(const RankedSchedule& a, const RankedSchedule& b);

// Fastest first; those that do not fit are left out.
std::vector<RankedSchedule> rank_schedules(const GemmShape& shape, std::span<const GemmSchedule> schedules,
                                           const Device& device);

}  // namespace foretoken
