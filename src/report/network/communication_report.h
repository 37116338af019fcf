// A fit of collectives, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "network/astra_compatible/validate_astra.h"
#include "network/calibration/fit_communication.h"
#include "validate/collectives/validate_between_nodes.h"
#include "validate/collectives/validate_communication.h"

namespace foretoken {

std::string communication_fit_text(const CommunicationFitSummary& summary);
Json communication_fit_json(const CommunicationFitSummary& summary);

// Header and rows of `validate collectives --out F.csv`.
std::string scored_communication_header();
std::string scored_communication_row(const ScoredCommunication& scored);
std::string scored_between_nodes_header();
std::string scored_between_nodes_row(const ScoredBetweenNodes& scored);
std::string scored_astra_header();
std::string scored_astra_row(const ScoredAstraRun& scored);

}  // namespace foretoken
