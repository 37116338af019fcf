// Requests of a run by their time to the first token: which one is at a percentile, and who came close to it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

class TtftRanking : public RunObserver {
 public:
  void request_ended(const RequestRecord& record) override;

  // Completed requests between two percentiles (0 to 100), fastest first: at least the one at `from`; none where none
  // completed. Equal times in the order of ids.
  std::vector<RequestRecord> between(double from, double to) const;
  // The id of the one at the percentile.
  std::optional<int64_t> request_at(double percentile) const;

 private:
  std::vector<RequestRecord> completed_;
};

}  // namespace foretoken
