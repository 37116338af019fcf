#include "app/cli/flags/colocation_flags.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "serving/colocation/composed_demands.h"
#include "serving/colocation/model_requests.h"
#include "serving/tiers/host_link.h"

namespace foretoken {
namespace {

constexpr const char* colocate_flag = "--colocate";
constexpr const char* sharing_heading = "Several models on one device";

MigSlices mig_slices(const Device& device) {
  if (device.mig) return *device.mig;
  throw InputError({.source = "--gpu-sharing mig",
                    .value = device.name,
                    .expected = "a GPU with MIG, whose device file lists the profiles under mig"});
}

// The profile of that name among those of the engine's device.
MigProfile mig_profile(const std::string& name, const MigSlices& slices) {
  std::vector<std::string> names;
  for (const MigProfile& profile : slices.profiles) {
    if (profile.name == name) return profile;
    names.push_back(profile.name);
  }
  throw InputError({.source = colocate_flag,
                    .path = "mig",
                    .value = printable(name),
                    .expected = fmt::format("one of {}, with --gpu-sharing mig", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name, names).value_or("")});
}

DeviceShare mig_share(const MigProfile& profile, const MigSlices& slices) {
  return {.processors = static_cast<double>(profile.processors) / slices.processors,
          .bandwidth = static_cast<double>(profile.memory) / slices.memory};
}

// Of engines that all ask for a part of the same device.
void set_mig_shares(std::vector<ColocatedEngineFlags>& engines, const HardwareCatalogue& hardware) {
  const MigSlices slices = mig_slices(hardware.device(engines.front().replica.model.device));
  int processors = 0, memory = 0;
  for (ColocatedEngineFlags& engine : engines) {
    const MigProfile profile = mig_profile(engine.mig, slices);
    engine.mig_share = mig_share(profile, slices);
    processors += profile.processors;
    memory += profile.memory;
  }
  if (processors > slices.processors || memory > slices.memory) {
    throw InputError({.source = colocate_flag,
                      .path = "mig",
                      .value = fmt::format("{}/{} of the processors, {}/{} of the memory", processors,
                                           slices.processors, memory, slices.memory),
                      .expected = "parts that fit on one GPU together"});
  }
}

// Of an engine that does not say: its usual share of the part that it gets of the memory.
void divide_memory(std::vector<ColocatedEngineFlags>& engines, Sharing sharing) {
  for (ColocatedEngineFlags& engine : engines) {
    EngineFlags& flags = engine.replica.engine.engine;
    const EngineKind& kind = engine_kind(flags.engine);
    const double part = sharing == Sharing::mig ? engine.mig_share.bandwidth : 1 / static_cast<double>(engines.size());
    if (kind.budget != MemoryBudget::of_total) {
      if (flags.memory_fraction == 0) {
        throw InputError(
            {.source = colocate_flag,
             .path = std::string(kind.fraction_name),
             .expected = fmt::format("a value for each engine, because {} takes its share of whatever memory is free",
                                     kind.name)});
      }
      continue;
    }
    if (flags.memory_fraction == 0) {
      flags.memory_fraction = kind.memory_fraction * part;
    } else if (sharing == Sharing::mig) {
      flags.memory_fraction *= part;
    }
  }
}

// What all engines have in place together. Memory fractions of some engines are of what others leave free; here each
// counts as if it came first.
void check_memory(const std::vector<ReplicaGroup>& groups) {
  double used = 0;
  for (const ReplicaGroup& group : groups) used += group.memory.total.value - group.memory.unused.value;
  const double total = groups.front().memory.total.value;
  if (used <= total) return;
  throw InputError(
      {.source = colocate_flag,
       .path = "gpu-memory-utilization",
       .value = fmt::format("{} of {} together", bytes_text(used), bytes_text(total)),
       .expected = "engines that fit in memory together, or --gpu-sharing swap, which keeps one in memory at a time"});
}

void check_same_device(const std::vector<ReplicaGroup>& groups) {
  for (const ReplicaGroup& group : groups) {
    const ReplicaSummary own = summary_of(group), first = summary_of(groups.front());
    if (own.device == first.device && own.devices_each == first.devices_each && group.count == 1) continue;
    throw InputError({.source = colocate_flag,
                      .value = fmt::format("{} x {}, {} of them", own.devices_each, own.device, group.count),
                      .expected = fmt::format("all engines on the same {} x {}", first.devices_each, first.device)});
  }
}

}  // namespace

void ColocationFlags::declare(Options& options) {
  options.heading(sharing_heading);
  options.settings(colocate_flag, engines,
                   "One engine on the shared GPUs; repeat the flag for each, for example "
                   "model=Llama-3.1-8B,load-share=0.7. Takes flags without dashes as in --replica, plus load-share "
                   "(share of requests), mps-percentage (share of SMs) and mig (MIG profile, for example 3g)");
  options.choice("--gpu-sharing", sharing, sharing_names(),
                 "How engines share the GPUs. time_slicing = one step at a time, in turn; mps = concurrently, slowing "
                 "each other down; mig = fixed partitions; swap = one model in memory at a time (vLLM's sleep mode)");
  options.number("--switch-time", switch_us, {.least = 0, .most = 1e9},
                 "With --gpu-sharing time_slicing: time to switch between engines, in microseconds");
  options.number("--swap-after", longest_wait_s, {.least = 0, .most = 1e6},
                 "With --gpu-sharing swap: seconds that the first request of a sleeping model waits before a busy "
                 "model is swapped out");
  options.integer("--sleep-level", sleep_level, {.least = 1, .most = 2},
                  "With --gpu-sharing swap: where sleeping weights stay, 1 = host memory, 2 = disk");
  options.number("--weights-disk-bandwidth", disk_gb_s, {.least = 1e-3, .most = 1e4},
                 "With --sleep-level 2: bandwidth for reading the weights of each GPU from disk, in GB/s");
}

void ColocationFlags::check_use(const Options& options) const {
  if (!given()) {
    options.refuse_without("--colocate", {}, {sharing_heading});
    return;
  }
  options.refuse({"--replica", "--replicas", "--router"}, {}, colocate_flag);
  const std::string shared = "--gpu-sharing " + sharing;
  if (sharing != "time_slicing") options.refuse({"--switch-time"}, {}, shared);
  if (sharing != "swap") options.refuse({"--swap-after", "--sleep-level", "--weights-disk-bandwidth"}, {}, shared);
  if (sleep_level != 2) options.refuse({"--weights-disk-bandwidth"}, {}, "--sleep-level 1");
}

std::vector<ColocatedEngineFlags> ColocationFlags::read(const ReplicaFlags& common,
                                                        const HardwareCatalogue& hardware) const {
  const Sharing how = sharing_from_name(sharing);
  std::vector<ColocatedEngineFlags> result;
  double load = 0;
  for (const std::string& settings : engines) {
    ColocatedEngineFlags engine;
    engine.replica = common.with(colocate_flag, settings, [&](Options& options) {
      options.number("--load-share", engine.load_share, {.least = 0, .most = 1e12}, "Share of requests");
      options.number("--mps-percentage", engine.mps_percentage, {.least = 1, .most = 100}, "Percentage of SMs");
      options.text("--mig", engine.mig, "MIG profile");
    });
    load += engine.load_share;
    if (how != Sharing::mig && !engine.mig.empty()) {
      throw InputError({.source = colocate_flag, .path = "mig", .expected = "--gpu-sharing mig"});
    }
    if (how != Sharing::mps && engine.mps_percentage != 100) {
      throw InputError({.source = colocate_flag, .path = "mps-percentage", .expected = "--gpu-sharing mps"});
    }
    result.push_back(std::move(engine));
  }
  if (given() && load <= 0) {
    throw InputError({.source = colocate_flag,
                      .path = "load-share",
                      .value = "0",
                      .expected = "a load-share above 0 for at least one engine"});
  }
  if (how == Sharing::mig && !result.empty()) set_mig_shares(result, hardware);
  if (how != Sharing::swap) divide_memory(result, how);
  return result;
}

SharedDevice ColocationFlags::device(const std::vector<ColocatedEngineFlags>& flags,
                                     const std::vector<ReplicaGroup>& groups) const {
  check_same_device(groups);
  if (sharing != "swap") check_memory(groups);
  SharedDevice result;
  Colocation& colocation = result.colocation;
  colocation.sharing = sharing_from_name(sharing);
  colocation.switch_time = Seconds(switch_us * 1e-6);
  colocation.longest_wait = Seconds(longest_wait_s);
  for (size_t i = 0; i < groups.size(); ++i) {
    const ReplicaGroup& group = groups[i];
    ColocatedEngine engine;
    if (colocation.sharing == Sharing::swap) {
      const Bytes weights(group.memory.weights.value);
      const Seconds link = weights / host_copy_bandwidth(group.models.kernels.device(), "gpu_sharing");
      const bool keeps = sleep_level == 1;
      engine.bytes_in = weights;
      engine.wake = keeps ? link : weights / BytesPerSecond(disk_gb_s * 1e9);
      if (keeps) engine.bytes_out = weights;
      if (keeps) engine.sleep = link;
    } else if (colocation.sharing != Sharing::time_slicing) {
      if (!flags[i].replica.op_tables.empty() || !flags[i].replica.vidur_tables.empty()) {
        throw InputError(
            {.source = "--gpu-sharing " + sharing,
             .expected = "step times from foretoken's own kernels: measured tables do not say what limits a step"});
      }
      result.demands.push_back(composed_demands(group.composed()));
      engine.demands = result.demands.back().get();
      engine.share = colocation.sharing == Sharing::mig ? flags[i].mig_share
                                                        : DeviceShare{.processors = flags[i].mps_percentage / 100};
    }
    colocation.engines.push_back(engine);
  }
  return result;
}

LoadMaker ColocationFlags::load(LoadMaker inner, const std::vector<ColocatedEngineFlags>& flags) const {
  std::vector<double> shares;
  for (const ColocatedEngineFlags& engine : flags) shares.push_back(engine.load_share);
  return [inner = std::move(inner), shares](uint64_t seed) { return with_models(inner(seed), shares, seed); };
}

}  // namespace foretoken
