// Several models on the same devices, each with engines of its own.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "plan/serving/serving_search.h"

namespace foretoken {

struct SharedPlan {
  std::vector<ServingQuestion> questions;    // of each model, with the devices that the others leave it
  std::vector<ServingSearchResult> results;  // in the same order
  bool fits = false;                         // all are served together, with the devices and the money there are

  std::optional<double> usd_per_hour() const;  // of all winners; nothing where a price is not known
};

// Each question has a rate, the same hardware and the same budget. Each model is planned as if it were alone; where the
// winners need more than there is, again one after the other, the largest first, with what is left. So a plan that fits
// at once is the cheapest; one that does not may be beaten by another order.
SharedPlan share_devices(
    std::vector<ServingQuestion> questions,
    const std::function<ServingSearchResult(size_t model, const ServingQuestion& question)>& search);

}  // namespace foretoken
