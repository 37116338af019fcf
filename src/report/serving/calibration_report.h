// What a fit reached, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "compose/fit_correlation.h"
#include "kernel/fit/fit_calibrations.h"
#include "kernel/fit/fit_campaign.h"

namespace foretoken {

std::string calibration_summary_text(const CalibrationSummary& summary);
Json calibration_summary_json(const CalibrationSummary& summary);

std::string campaign_fit_text(const CampaignFit& fit);
Json campaign_fit_json(const CampaignFit& fit);

std::string correlation_fit_text(const CorrelationFit& fit);
Json correlation_fit_json(const CorrelationFit& fit);

}  // namespace foretoken
