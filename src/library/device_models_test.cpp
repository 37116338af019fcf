#include "library/device_models.h"

#include <set>

#include <gtest/gtest.h>

namespace foretoken::device_models_test {

TEST(DeviceModelsKey, tells_apart_all_that_models_are_made_from) {
  std::set<std::string> keys;
  const std::vector<ParallelPlan> plans = {{},
                                           {.tensor = 2},
                                           {.pipeline = 2},
                                           {.data = 2},
                                           {.expert = 2},
                                           {.context = 2},
                                           {.sequence = true},
                                           {.exchange = ExpertExchange::all_gather},
                                           {.exchange_kernels = ExchangeKernels::low_latency}};
  for (const ParallelPlan& plan : plans) keys.insert(device_models_key("h100_sxm", plan, {}));
  keys.insert(device_models_key("a100_sxm", {}, {}));
  keys.insert(device_models_key("h100_sxm", {}, {.cluster = "h100_ib_rail"}));
  EXPECT_EQ(keys.size(), plans.size() + 2);
}

}  // namespace foretoken::device_models_test
