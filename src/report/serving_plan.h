// A search over serving layouts, as every part of its report is given it.
#pragma once

#include "plan/serving/serving_search.h"

namespace foretoken {

struct ServingPlanReport {
  const ServingQuestion& question;
  const Traffic& traffic;
  const ServingSearchResult& result;
};

}  // namespace foretoken
