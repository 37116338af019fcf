// What validations of serving are asked, and one value that they score.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/serving_run.h"

namespace foretoken {

struct ServingValidationRequest {
  std::filesystem::path data;                                       // a table of operating points: serving_case.h
  std::vector<std::string> tiers, devices, models, engines, kinds;  // only these; empty = all. kinds: dense, moe
  std::filesystem::path acceptance;  // acceptance_table.h; empty = rows that draft are left out
  std::filesystem::path traces;      // folder of the request files that rows replay; empty = such rows are left out
  size_t every = 1;                  // only every so many rows of the file
  std::string group_by;              // a column; empty = tier/metric
  int threads = 0;                   // 0 = as many as the machine has cores
};

// One measured value and its prediction. The texts are valid during the call only.
struct ScoredServing {
  std::string_view id, group, device, model, engine, metric;
  size_t row = 0;
  double measured = 0;
  Headline predicted;
};
using ScoredServingSink = std::function<void(const ScoredServing&)>;

}  // namespace foretoken
