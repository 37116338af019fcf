#include "training/memory/chunks_in_flight.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"

namespace foretoken {
namespace {

int64_t all_in_flight(const PipelineWork& work, int64_t /*stage*/) {
  return work.micro_batches * work.virtual_stages;
}

// One chunk beyond the warm-up.
int64_t alternating_in_flight(const PipelineWork& work, int64_t stage) {
  const int64_t behind = work.stages - stage - 1;
  const int64_t group = work.micro_batch_group > 0 ? work.micro_batch_group : work.stages;
  const int64_t warm_up = work.virtual_stages == 1 ? behind : 2 * behind + (work.virtual_stages - 1) * group;
  return std::min(warm_up + 1, all_in_flight(work, stage));
}

int64_t zb_h1_in_flight(const PipelineWork& work, int64_t /*stage*/) {
  return std::min(work.stages, work.micro_batches);
}

int64_t zb_h2_in_flight(const PipelineWork& work, int64_t /*stage*/) {
  return std::min(2 * work.stages - 1, work.micro_batches);
}

int64_t zb_v_in_flight(const PipelineWork& work, int64_t /*stage*/) {
  return std::min(2 * work.stages, 2 * work.micro_batches);
}

int64_t dualpipe_in_flight(const PipelineWork& work, int64_t /*stage*/) {
  return std::min(work.stages + 1, work.micro_batches);
}

struct InFlightForm {
  std::string_view schedule;
  int64_t (*count)(const PipelineWork& work, int64_t stage);
};

constexpr InFlightForm in_flight_forms[] = {
    {"gpipe", all_in_flight},         {"1f1b", alternating_in_flight}, {"interleaved", alternating_in_flight},
    {"zb-h1", zb_h1_in_flight},       {"zb-h2", zb_h2_in_flight},      {"zb-v", zb_v_in_flight},
    {"dualpipe", dualpipe_in_flight},
};

}  // namespace

int64_t chunks_in_flight(std::string_view schedule, const PipelineWork& work, int64_t stage) {
  for (const InFlightForm& form : in_flight_forms) {
    if (form.schedule == schedule) return form.count(work, stage);
  }
  std::vector<std::string> names;
  for (const InFlightForm& form : in_flight_forms) names.emplace_back(form.schedule);
  throw InputError({.source = "pipeline schedule",
                    .value = std::string(schedule),
                    .expected = "a pipeline schedule",
                    .suggestion = nearest_name(schedule, names).value_or("")});
}

}  // namespace foretoken
