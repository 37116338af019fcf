// Jobs on several kinds of GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/flags/training_flags.h"
#include "training/pools/mixed_pools.h"

namespace foretoken {

struct PoolRequest {
  std::vector<TrainingPool> pools;
  TrainingRequest first;  // the question of the first pool, with the notes and choices of all
};

class TrainingPoolFlags {
 public:
  void declare(Options& options);
  bool are_several() const { return pools_.size() > 1; }
  // One pool is the job's machine, like a device with its number.
  std::optional<PoolMachine> only() const;
  PoolRequest request(const Library& library, const TrainingFlags& flags, TrainingFlags::Use use, Tier tier,
                      const RequestContext& context = {}) const;

 private:
  void refuse_other_machines() const;

  const Options* options_ = nullptr;
  std::vector<std::string> pools_;
};

}  // namespace foretoken
