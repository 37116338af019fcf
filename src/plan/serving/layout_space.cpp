#include "plan/serving/layout_space.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "compose/serving_engine.h"

namespace foretoken {
namespace {

constexpr int64_t most_stages = 4;

std::vector<int64_t> powers_of_two(int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= most; size *= 2) sizes.push_back(size);
  return sizes;
}

bool computes(const Device& device, const std::optional<Scheme>& scheme) {
  if (!scheme) return true;
  const DType math = facts(*scheme).math;
  return device.type_or_fallback(math) == math;
}

bool suits(const Model& model, const ParallelPlan& plan) {
  return plan_complaints(model, plan).empty();
}

// Ways to cut an engine over devices.
std::vector<EngineChoice> engine_cuts(const ServingQuestion& question, const HardwareChoice& hardware) {
  const LayoutChoices& choices = question.choices;
  const int64_t domain = std::min(hardware.node_devices, hardware.most_devices);
  const auto tensors = choices.tensor.empty() ? powers_of_two(domain) : choices.tensor;
  const auto stages = choices.pipeline.empty() ? powers_of_two(most_stages) : choices.pipeline;
  std::vector<EngineChoice> cuts;
  const auto take = [&](const EngineChoice& cut) {
    if (cut.devices() <= hardware.most_devices && suits(question.model, cut.plan())) cuts.push_back(cut);
  };
  for (const int64_t tensor : tensors) {
    if (tensor > domain) continue;
    for (const int64_t pipeline : stages) {
      EngineChoice cut{.device = hardware.device.name, .tensor = tensor, .pipeline = pipeline};
      take(cut);
      if (!question.model.has_experts()) continue;
      cut.expert_parallel = true;
      if (tensor > 1) take(cut);
      // Ranks in lock step have no stages: no engine has both.
      for (cut.attention_ranks = 2; pipeline == 1 && tensor * cut.attention_ranks <= domain; cut.attention_ranks *= 2) {
        take(cut);
      }
    }
  }
  return cuts;
}

// With every engine and number format.
std::vector<EngineChoice> engine_choices(const ServingQuestion& question, const HardwareChoice& hardware) {
  const LayoutChoices& choices = question.choices;
  std::vector<EngineChoice> all;
  for (const EngineChoice& cut : engine_cuts(question, hardware)) {
    for (const std::string& engine : choices.engines) {
      for (const std::optional<Scheme>& scheme : choices.schemes) {
        if (!computes(hardware.device, scheme)) continue;
        for (const DType kv_dtype : choices.kv_dtypes) {
          EngineChoice choice = cut;
          choice.engine = engine;
          choice.scheme = scheme;
          choice.kv_dtype = kv_dtype;
          all.push_back(choice);
          choice.speculates = true;
          if (question.drafts && cut.pipeline == 1) all.push_back(choice);
        }
      }
    }
  }
  return all;
}

int64_t affordable_devices(const ServingQuestion& question, const HardwareChoice& hardware) {
  if (!question.budget_usd_per_hour || !hardware.usd_per_hour) return hardware.most_devices;
  const double devices = std::floor(*question.budget_usd_per_hour / *hardware.usd_per_hour * (1 + 1e-9));
  return std::min(hardware.most_devices, static_cast<int64_t>(std::min(devices, 1e9)));
}

// Not one device is affordable: a question about nothing.
void check_budget(const ServingQuestion& question) {
  std::optional<double> cheapest;
  for (const HardwareChoice& hardware : question.hardware) {
    if (affordable_devices(question, hardware) > 0) return;
    cheapest = std::min(cheapest.value_or(*hardware.usd_per_hour), *hardware.usd_per_hour);
  }
  if (!cheapest) return;
  throw InputError({.source = "--budget-usd-hour",
                    .value = fmt::format("{:g}", *question.budget_usd_per_hour),
                    .expected = fmt::format("at least {:g}, the price of the cheapest device", *cheapest)});
}

void add_shared_pools(const ServingQuestion& question, const EngineChoice& engine, int64_t devices,
                      std::vector<ServingLayout>& layouts) {
  const int64_t most = devices / engine.devices();
  for (int64_t replicas = question.rate ? 1 : most; replicas >= 1 && replicas <= most; ++replicas) {
    for (const int64_t seqs : question.choices.max_num_seqs) {
      for (const int64_t tokens : question.choices.max_num_batched_tokens) {
        layouts.push_back(
            {.pool = {.engine = engine, .replicas = replicas, .max_num_seqs = seqs, .max_num_batched_tokens = tokens},
             .decode = {}});
      }
    }
  }
}

// Prompts on engines of their own. With all the devices where no rate is asked for: what is left over is too little for
// another engine of either kind.
void add_separate_pools(const ServingQuestion& question, const EngineChoice& prefill, const EngineChoice& decode,
                        int64_t devices, std::vector<ServingLayout>& layouts) {
  const int64_t most = (devices - decode.devices()) / prefill.devices();
  for (int64_t prompts = 1; prompts <= most; ++prompts) {
    const int64_t decodes = (devices - prompts * prefill.devices()) / decode.devices();
    const int64_t unused = devices - prompts * prefill.devices() - decodes * decode.devices();
    if (!question.rate && unused >= std::min(prefill.devices(), decode.devices())) continue;
    for (int64_t count = question.rate ? 1 : decodes; count >= 1 && count <= decodes; ++count) {
      for (const int64_t seqs : question.choices.max_num_seqs) {
        layouts.push_back({.pool = {.engine = prefill, .replicas = prompts},
                           .decode = EnginePool{.engine = decode, .replicas = count, .max_num_seqs = seqs}});
      }
    }
  }
}

// Prompts on other devices than those that decode: as many of both as there are and the budget allows, or any numbers
// where a rate is asked for.
void add_mixed_pools(const ServingQuestion& question, const EngineChoice& prefill, const EngineChoice& decode,
                     std::vector<ServingLayout>& layouts) {
  const auto most_of = [&](const EngineChoice& engine) {
    return affordable_devices(question, question.hardware_of(engine.device)) / engine.devices();
  };
  const auto affordable = [&](const ServingLayout& layout) {
    return !question.budget_usd_per_hour ||
           question.usd_per_hour(layout).value_or(0) <= *question.budget_usd_per_hour * (1 + 1e-9);
  };
  const int64_t most_prompts = most_of(prefill), most_decodes = most_of(decode);
  for (int64_t prompts = question.rate || question.budget_usd_per_hour ? 1 : most_prompts;
       prompts >= 1 && prompts <= most_prompts; ++prompts) {
    for (int64_t count = most_decodes; count >= 1; --count) {
      ServingLayout layout{.pool = {.engine = prefill, .replicas = prompts},
                           .decode = EnginePool{.engine = decode, .replicas = count}};
      if (!affordable(layout)) continue;
      for (const int64_t seqs : question.choices.max_num_seqs) {
        layout.decode->max_num_seqs = seqs;
        layouts.push_back(layout);
      }
      if (!question.rate) break;
    }
  }
}

// Engines that can hand caches over to each other: they differ only in how they are cut.
bool share_caches(const EngineChoice& prefill, const EngineChoice& decode) {
  return prefill.engine == decode.engine && prefill.scheme == decode.scheme && prefill.kv_dtype == decode.kv_dtype &&
         prefill.pipeline == 1 && decode.pipeline == 1 && !prefill.speculates;
}

}  // namespace

std::vector<ServingLayout> serving_layouts(const ServingQuestion& question) {
  std::vector<ServingLayout> layouts;
  check_budget(question);
  std::vector<EngineChoice> all;  // that caches can be sent to and from
  for (const HardwareChoice& hardware : question.hardware) {
    const int64_t devices = affordable_devices(question, hardware);
    const std::vector<EngineChoice> engines = engine_choices(question, hardware);
    if (hardware.node) all.insert(all.end(), engines.begin(), engines.end());
    for (const EngineChoice& engine : engines) add_shared_pools(question, engine, devices, layouts);
    if (!question.choices.separate_pools || !hardware.node) continue;
    for (const EngineChoice& prefill : engines) {
      for (const EngineChoice& decode : engines) {
        if (share_caches(prefill, decode)) add_separate_pools(question, prefill, decode, devices, layouts);
      }
    }
  }
  if (!question.choices.separate_pools || !question.choices.mixed_pools) return layouts;
  for (const EngineChoice& prefill : all) {
    for (const EngineChoice& decode : all) {
      const bool mixed = prefill.device != decode.device && share_caches(prefill, decode);
      if (mixed) add_mixed_pools(question, prefill, decode, layouts);
    }
  }
  return layouts;
}

}  // namespace foretoken
