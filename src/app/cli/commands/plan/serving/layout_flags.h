// The layouts to try: engines, formats, sizes of groups, limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/flags/lora_flags.h"
#include "app/cli/flags/placement_flags.h"
#include "app/cli/flags/speculation_flags.h"
#include "app/cli/grammar/options.h"
#include "plan/serving/serving_planner.h"

namespace foretoken {

struct LayoutFlags {
  std::vector<std::string> engines, schemes, kv_dtypes, tensor, pipeline, seqs, tokens, offloading, slots;
  bool separate_pools = true, mixed_pools = false;
  int64_t max_model_len = 0;
  double memory_fraction = 0;
  SpeculationFlags speculation;
  LoraFlags lora;
  PlacementFlags placement;
  double host_factor = 1;

  void declare(Options& options);
  // `closed_form`: which does not tell limits apart.
  LayoutChoices choices(const Model& model, bool closed_form) const;
  // InputError where no engine runs on any device offered, or none has a format that was asked for.
  void check_runs_somewhere(const ServingQuestion& asked) const;
  void choose_host_memory(ServingPlanner& planner) const;
  void choose_slots(ServingPlanner& planner) const;

 private:
  std::vector<std::optional<Scheme>> weight_formats(const Model& model) const;
};

}  // namespace foretoken
