// Ranked schedules of a matrix multiply, and how good the ranking was.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "validate/schedules/validate_schedules.h"

namespace foretoken {

// The first `shown` of them.
std::string schedules_text(const GemmShape& shape, const Device& device, std::span<const RankedSchedule> ranked,
                           size_t shown);
Json schedules_json(const GemmShape& shape, const Device& device, std::span<const RankedSchedule> ranked, size_t shown);

std::string schedule_choices_text(std::span<const ScheduleChoice> choices);
Json schedule_choices_json(std::span<const ScheduleChoice> choices);

}  // namespace foretoken
