#include "training/memory/chunks_in_flight.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"

namespace foretoken {
namespace {

struct InFlightStage {
  int64_t stages, virtual_stages, micro_batches, stage;
};

int64_t all_in_flight(const InFlightStage& at) {
  return at.micro_batches * at.virtual_stages;
}

// One chunk beyond the warm-up.
int64_t alternating_in_flight(const InFlightStage& at) {
  const int64_t behind = at.stages - at.stage - 1;
  const int64_t warm_up = at.virtual_stages == 1 ? behind : 2 * behind + (at.virtual_stages - 1) * at.stages;
  return std::min(warm_up + 1, all_in_flight(at));
}

int64_t zb_h1_in_flight(const InFlightStage& at) {
  return std::min(at.stages, at.micro_batches);
}

int64_t zb_h2_in_flight(const InFlightStage& at) {
  return std::min(2 * at.stages - 1, at.micro_batches);
}

int64_t zb_v_in_flight(const InFlightStage& at) {
  return 2 * zb_h1_in_flight(at);
}

int64_t dualpipe_in_flight(const InFlightStage& at) {
  return std::min(at.stages + 1, at.micro_batches);
}

struct InFlightForm {
  std::string_view schedule;
  int64_t (*count)(const InFlightStage&);
};

constexpr InFlightForm in_flight_forms[] = {
    {"gpipe", all_in_flight},         {"1f1b", alternating_in_flight}, {"interleaved", alternating_in_flight},
    {"zb-h1", zb_h1_in_flight},       {"zb-h2", zb_h2_in_flight},      {"zb-v", zb_v_in_flight},
    {"dualpipe", dualpipe_in_flight},
};

}  // namespace

int64_t chunks_in_flight(std::string_view schedule, int64_t stages, int64_t virtual_stages, int64_t micro_batches,
                         int64_t stage) {
  for (const InFlightForm& form : in_flight_forms) {
    if (form.schedule == schedule) return form.count({stages, virtual_stages, micro_batches, stage});
  }
  std::vector<std::string> names;
  for (const InFlightForm& form : in_flight_forms) names.emplace_back(form.schedule);
  throw InputError({.source = "pipeline schedule",
                    .value = std::string(schedule),
                    .expected = "a pipeline schedule",
                    .suggestion = nearest_name(schedule, names).value_or("")});
}

}  // namespace foretoken
