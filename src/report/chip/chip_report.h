// Networks on chips as they were built, for people and for programs: what each layer takes and what bounds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accelerator/nvdla.h"
#include "accelerator/row_stationary/estimate.h"
#include "base/json.h"

namespace foretoken {

struct RowStationaryReport {
  RowStationaryChip chip;
  struct Row {
    ConvLayer layer;
    int64_t count = 1;
    std::optional<RowStationaryResult> result;
    std::string why_not;  // where there is no result
  };
  std::vector<Row> rows;
};

std::string row_stationary_text(const RowStationaryReport& report);
Json row_stationary_json(const RowStationaryReport& report);

struct NvdlaReport {
  NvdlaConfiguration configuration;
  struct Row {
    NvdlaLayer layer;
    NvdlaTime time;  // of one repeat
  };
  std::vector<Row> rows;
};

std::string nvdla_text(const NvdlaReport& report);
Json nvdla_json(const NvdlaReport& report);

}  // namespace foretoken
