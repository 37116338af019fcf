// Calls of one communication kernel over sizes or tokens, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "network/calibration/communication_predictor.h"

namespace foretoken {

struct KernelCallRow {
  CommunicationCall call;  // the main one, where a kernel makes several
  Estimate seconds;
  std::string source;  // tier
  std::string basis;   // what value and interval rest on, in words
};

struct KernelCallReport {
  std::string machine, operation, kernel;
  std::string note;  // what else was asked for: "eager", "hidden 7168, top 8 of 256 experts, fp8"
  int64_t ranks = 1, nodes = 1;
  std::vector<KernelCallRow> rows;
};

std::string kernel_call_text(const KernelCallReport& report);
Json kernel_call_json(const KernelCallReport& report);

}  // namespace foretoken
