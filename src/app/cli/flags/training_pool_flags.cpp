#include "app/cli/flags/training_pool_flags.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {
namespace {

PoolMachine pool_named(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) {
    throw InputError({.source = "--pool",
                      .value = printable(text),
                      .expected = "a device, node or cluster, a colon and the number of GPUs, such as h100_sxm:8"});
  }
  const int64_t devices = parse_size("--pool", text.substr(colon + 1), {.least = 1, .most = 1 << 20});
  return {.name = text.substr(0, colon), .devices = devices, .of_job = devices};
}

}  // namespace

void TrainingPoolFlags::declare(Options& options) {
  options_ = &options;
  options.list(
      "--pool", pools_,
      "Device, node or cluster and its number of GPUs, for example --pool h100_sxm:8 --pool a100_sxm:8. Repeat "
      "for each kind of GPU, instead of --cluster. Faster GPUs get more work");
}

void TrainingPoolFlags::refuse_other_machines() const {
  options_->refuse({"--cluster", "--device", "--devices", "--nodes"}, {}, "--pool");
}

std::optional<PoolMachine> TrainingPoolFlags::only() const {
  if (pools_.empty()) return std::nullopt;
  refuse_other_machines();
  return pool_named(pools_.front());
}

PoolRequest TrainingPoolFlags::request(const Library& library, const TrainingFlags& flags, TrainingFlags::Use use,
                                       Tier tier, const RequestContext& context) const {
  refuse_other_machines();
  std::vector<PoolMachine> machines;
  int64_t devices = 0;
  for (const std::string& text : pools_) {
    machines.push_back(pool_named(text));
    devices += machines.back().devices;
  }
  PoolRequest result;
  for (const PoolMachine& pool : machines) {
    RequestContext of_pool = context;
    of_pool.pool = PoolMachine{.name = pool.name, .devices = pool.devices, .of_job = devices};
    TrainingRequest request = flags.request(library, use, of_pool);
    auto machine = machine_of(library, request.question.cluster, tier);
    result.pools.push_back({.question = request.question, .machine = std::move(machine), .devices = pool.devices});
    if (result.pools.size() == 1) {
      result.first = std::move(request);
      continue;
    }
    std::vector<std::string>& notes = result.first.notes;
    for (std::string& note : request.notes) {
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
    }
  }
  return result;
}

}  // namespace foretoken
