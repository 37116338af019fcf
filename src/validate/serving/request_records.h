// The requests of a simulated run, by their numbers in the list that was asked for.
#pragma once

#include <cstddef>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

class RequestRecords : public RunObserver {
 public:
  explicit RequestRecords(size_t requests) : by_id(requests) {}
  void request_ended(const RequestRecord& record) override { by_id[static_cast<size_t>(record.id)] = record; }

  std::vector<RequestRecord> by_id;
};

}  // namespace foretoken
