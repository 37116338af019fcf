#include "kernel/fit/fit_campaign.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/forms/eager_form.h"

namespace foretoken {

CampaignFit fit_campaign(const KernelValidationRequest& request, const HardwareCatalogue& hardware,
                         const PredictorMaker& make_predictor, size_t points) {
  ensure(points > 0, "a campaign is fitted on points");
  std::map<std::pair<std::string, std::string>, std::vector<CampaignPoint>> rows;
  std::map<std::string, KernelPredictor> predictors;
  validate_kernels(request, hardware, make_predictor, [&](const ScoredKernel& row) {
    const std::string device(row.device);
    const auto predictor =
        predictors.try_emplace(device, make_predictor(hardware.device(device), Caches::benchmark)).first;
    rows[{device, std::string(row.variant)}].push_back(
        {.kernel_seconds = predictor->second.estimate(*row.shape, framework_kernel).seconds.value,
         .measured_seconds = row.measured_us * 1e-6});
  });
  CampaignFit result;
  std::vector<PredictedRow> all;
  for (const auto& [key, members] : rows) {
    std::vector<CampaignPoint> seen;
    std::vector<bool> is_seen(members.size(), false);
    for (const size_t index : spread_points(members, points)) {
      seen.push_back(members[index]);
      is_seen[index] = true;
    }
    CampaignFit::Entry entry{.device = key.first, .operation = key.second, .effect = fit_campaign_effect(seen)};
    std::vector<PredictedRow> unseen;
    for (size_t i = 0; i < members.size(); ++i) {
      if (is_seen[i]) continue;
      const Estimate predicted =
          campaign_estimate(entry.effect, {.value = members[i].kernel_seconds, .low = 0, .high = 0});
      unseen.push_back({.measured = members[i].measured_seconds,
                        .predicted = predicted.value,
                        .low = predicted.low,
                        .high = predicted.high});
    }
    entry.errors = summarize_errors(unseen);
    all.insert(all.end(), unseen.begin(), unseen.end());
    result.campaign.effects.emplace(key, entry.effect);
    result.entries.push_back(std::move(entry));
  }
  result.overall = summarize_errors(all);
  return result;
}

}  // namespace foretoken
