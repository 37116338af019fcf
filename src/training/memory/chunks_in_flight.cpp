#include "training/memory/chunks_in_flight.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"

namespace foretoken {
namespace {

struct StageLoad {
  int64_t stages, virtual_stages, micro_batches, stage;
};

int64_t all_in_flight(const StageLoad& load) {
  return load.micro_batches * load.virtual_stages;
}

// One chunk beyond the warm-up.
int64_t alternating_in_flight(const StageLoad& load) {
  const int64_t behind = load.stages - load.stage - 1;
  const int64_t warm_up = load.virtual_stages == 1 ? behind : 2 * behind + (load.virtual_stages - 1) * load.stages;
  return std::min(warm_up + 1, all_in_flight(load));
}

int64_t zb_h1_in_flight(const StageLoad& load) {
  return std::min(load.stages, load.micro_batches);
}

int64_t zb_h2_in_flight(const StageLoad& load) {
  return std::min(2 * load.stages - 1, load.micro_batches);
}

int64_t zb_v_in_flight(const StageLoad& load) {
  return 2 * zb_h1_in_flight(load);
}

int64_t dualpipe_in_flight(const StageLoad& load) {
  return std::min(load.stages + 1, load.micro_batches);
}

struct InFlightForm {
  std::string_view schedule;
  int64_t (*count)(const StageLoad&);
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
