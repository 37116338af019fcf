// A file of measurements and a handful of its points for each operator -> the campaign's effects, and the error on the
// rest.
#pragma once

#include "kernel/campaign.h"
#include "kernel/validate.h"

namespace foretoken {

struct CampaignFit {
  struct Entry {
    std::string device, operation;
    CampaignEffect effect;
    ErrorSummary errors;  // on the rows that the fit has not seen
  };
  Campaign campaign;
  std::vector<Entry> entries;  // by device and operator
  ErrorSummary overall;        // on all of them
};

// `points` rows of each device and operator are used. The operator is the variant of a row.
CampaignFit fit_campaign(const KernelValidationRequest& request, const HardwareCatalogue& hardware,
                         const PredictorMaker& make_predictor, size_t points);

}  // namespace foretoken
