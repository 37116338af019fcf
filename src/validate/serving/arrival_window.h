// What an open load gets through while requests still arrive: a run that was shortened ends with a longer share of
// emptying engines than the one it stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

class ArrivalWindow : public RunObserver {
 public:
  struct Rates {
    double requests = 0, output_tokens = 0;  // per second
  };

  void request_ended(const RequestRecord& record) override;

  // What has ended by the last arrival, over the time in which it could: without the mean time from a request's first
  // step to its last, weighed by tokens for tokens. Neither filling nor emptying engines then count, and a queue that
  // grows shows what the engines get through. Never more than arrives: few requests scatter. Nothing where that leaves
  // less than half of the arrivals' time.
  std::optional<Rates> rates() const;

 private:
  struct Ended {
    Picoseconds when = 0;
    double output_tokens = 0;
  };
  std::vector<Ended> ended_;
  std::optional<Picoseconds> first_arrival_;
  Picoseconds last_arrival_ = 0;
  double served_seconds_ = 0, served_token_seconds_ = 0, tokens_ = 0;  // of all
};

}  // namespace foretoken
