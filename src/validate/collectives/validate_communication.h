// Predicts measured collectives and says how far off the predictions are.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/validation.h"
#include "network/calibration/communication_predictor.h"
#include "network/calibration/communication_rows.h"

namespace foretoken {

struct CommunicationValidationRequest {
  std::filesystem::path data;  // read_communication_rows()
  std::vector<std::string> systems,
      collectives;       // only these; empty = all. A collective is what follows the system in a group
  std::string group_by;  // system, collective, ranks, size, variant or tier; empty = system/collective
  Tier tier = Tier::best;
  // The cross tier may know one small-message latency of each system, taken from the table; that call is not scored.
  bool gives_small_message = false;
};

struct ScoredCommunication {
  const CommunicationRow* row = nullptr;
  CommunicationTime predicted;
};
using ScoredCommunicationSink = std::function<void(const ScoredCommunication&)>;

// InputError when there is nothing to read, a filter leaves nothing, or for a grouping nobody knows.
Validation validate_communication(const CommunicationValidationRequest& request,
                                  const std::shared_ptr<const CommunicationLibrary>& library,
                                  const SystemLibrary& systems, const ScoredCommunicationSink& sink = {});

// The groupings of the request.
std::vector<std::string> communication_groupings();

}  // namespace foretoken
