// Compares ranked schedules of matrix multiplies with what each of them took.
#pragma once

#include <filesystem>
#include <vector>

#include "base/validation.h"
#include "hardware/catalogue.h"
#include "kernel/schedules/gemm_schedule.h"

namespace foretoken {

// What a user would lose who compiled the schedule ranked first and no other.
struct ScheduleChoice {
  GemmShape shape;
  GemmSchedule chosen, best;
  double chosen_us = 0, best_of_five_us = 0, best_us = 0;  // measured; the five that rank first
  double rank_correlation = 0;                             // between predicted and measured times of all schedules
};

struct ScheduleValidation {
  Validation errors;  // of the predicted times, by product
  std::vector<ScheduleChoice> choices;
};

// Columns: device, m, n, k, bm, bn, bk, stages, warps, group, us; rows of one product stand together.
ScheduleValidation validate_schedules(const std::filesystem::path& data, const HardwareCatalogue& hardware);

}  // namespace foretoken
