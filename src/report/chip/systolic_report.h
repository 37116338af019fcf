// Layers on systolic arrays, for people and for programs: on one array, over several cores, or on a whole chip.
#pragma once

#include <string>
#include <vector>

#include "accelerator/systolic/chip_layers.h"
#include "accelerator/systolic/systolic_network.h"
#include "base/json.h"

namespace foretoken {

struct SystolicReport {
  SystolicArray array;
  struct Row {
    RepeatedSystolicLayer layer;
    SystolicLayerRun run;
  };
  std::vector<Row> rows;
};

std::string systolic_text(const SystolicReport& report);
Json systolic_json(const SystolicReport& report);

struct CoresReport {
  SystolicArray core;
  int64_t cores = 1;
  struct Row {
    RepeatedSystolicLayer layer;
    CoresRun run;
  };
  std::vector<Row> rows;
};

std::string cores_text(const CoresReport& report);
Json cores_json(const CoresReport& report);

std::string systolic_chip_text(const SystolicChip& chip, const ChipNetworkRun& run);
Json systolic_chip_json(const SystolicChip& chip, const ChipNetworkRun& run);

}  // namespace foretoken
