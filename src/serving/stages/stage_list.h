// The stages of a run, with what says how long they take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serving/stages/stage.h"

namespace foretoken {

class StageList {
 public:
  void add(const std::string& name, int64_t servers, int64_t max_batch, std::unique_ptr<StageTimes> times) {
    configs_.push_back({.name = name, .servers = servers, .max_batch = max_batch, .times = times.get()});
    times_.push_back(std::move(times));
  }

  // Must not outlive the list.
  const std::vector<StageConfig>& configs() const { return configs_; }

 private:
  std::vector<StageConfig> configs_;
  std::vector<std::unique_ptr<StageTimes>> times_;
};

}  // namespace foretoken
