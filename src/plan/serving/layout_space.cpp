#include "plan/serving/layout_space.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"
#include "compose/device_formats.h"
#include "compose/serving_engine.h"
#include "hardware/software.h"
#include "model/weights.h"
#include "serving/engine/engine_setup.h"
#include "serving/engine/launch_flags.h"
#include "serving/schedulers/list.h"

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
  return device.type_or_fallback(math) == math && multiplies_in(device, *scheme);
}

bool multiplies_own_format(const Model& model, const Device& device) {
  return multiplies_in(device, model.scheme) && multiplies_in(device, model.mixer_scheme()) &&
         (!model.has_experts() || multiplies_in(device, model.expert_scheme));
}

// Nothing where the engine runs the model in the format on the device; else why not.
std::string obstacle(const ServingQuestion& question, const Device& device, const std::string& engine,
                     const std::optional<Scheme>& scheme) {
  const EngineKind& kind = engine_kind(engine);
  if (question.lora && !scheduler_kind(engine_family(engine)).reads.adapters) {
    return "LoRA adapters are simulated with vllm only";
  }
  if (!runs_on(kind, device)) return fmt::format("{} runs on {} only", kind.name, hardware_of_software(kind.family));
  if (scheme) {
    return computes(device, scheme) ? "" : fmt::format("the device does not multiply in {}", facts(*scheme).name);
  }
  const Model& model = question.model;
  if (multiplies_own_format(model, device) || (kind.loads_foreign_formats && loads_on(model, device))) return "";
  const Scheme own = multiplies_in(device, model.scheme) ? model.expert_scheme : model.scheme;
  return fmt::format("{} runs {} weights only on devices that multiply in {}", kind.name, facts(own).name,
                     dtype_name(facts(own).math));
}

bool suits(const Model& model, const ParallelPlan& plan) {
  return plan_complaints(model, plan).empty();
}

// Tensor ranks lie inside a node, or fill several.
bool has_place_for(const HardwareChoice& hardware, int64_t tensor) {
  if (tensor > hardware.most_devices) return false;
  return tensor <= hardware.node_devices || (hardware.node && tensor % hardware.node_devices == 0);
}

// Over two nodes only for a model whose weights one node does not hold: such groups wait for the network.
std::vector<int64_t> tensor_sizes(const ServingQuestion& question, const HardwareChoice& hardware) {
  if (!question.choices.tensor.empty()) return question.choices.tensor;
  std::vector<int64_t> sizes = powers_of_two(std::min(hardware.node_devices, hardware.most_devices));
  const auto& memory = hardware.device.memory;
  const double of_node = memory ? static_cast<double>(hardware.node_devices) * memory->value.value() : 0;
  if (memory && weight_bytes(question.model).value() > of_node) sizes.push_back(2 * hardware.node_devices);
  return sizes;
}

// Numbers of nodes that groups of experts fill beside powers of two: EP24, EP48 and EP72 of eight devices each.
constexpr int64_t usual_nodes[] = {3, 6, 9};

// Copies that make experts divide by the ranks; nothing where that would be more than a quarter of them.
std::optional<int64_t> copies_to_divide(const Model& model, int64_t ranks) {
  const int64_t experts = routed_experts(model);
  const int64_t copies = (ranks - experts % ranks) % ranks;
  return copies <= experts / 4 ? std::optional(copies) : std::nullopt;
}

// Ways to cut an engine over devices.
std::vector<EngineChoice> engine_cuts(const ServingQuestion& question, const HardwareChoice& hardware) {
  const LayoutChoices& choices = question.choices;
  const int64_t domain = std::min(hardware.node_devices, hardware.most_devices);
  const std::vector<int64_t> tensors = tensor_sizes(question, hardware);
  const auto stages = choices.pipeline.empty() ? powers_of_two(most_stages) : choices.pipeline;
  std::vector<EngineChoice> cuts;
  const auto take = [&](const EngineChoice& cut) {
    const bool fits = cut.devices() <= hardware.most_devices;
    if (fits && suits(with_expert_copies(question.model, cut.expert_copies), cut.plan())) cuts.push_back(cut);
  };
  for (const int64_t tensor : tensors) {
    if (!has_place_for(hardware, tensor)) continue;
    for (const int64_t pipeline : stages) {
      EngineChoice cut{.device = hardware.device.name, .tensor = tensor, .pipeline = pipeline};
      take(cut);
      if (!question.model.has_experts()) continue;
      cut.expert_parallel = true;
      if (tensor > 1) take(cut);
      // Ranks in lock step have no stages: no engine has both. They may lie on several nodes, each filled.
      for (cut.attention_ranks = 2; pipeline == 1 && tensor * cut.attention_ranks <= hardware.most_devices;
           cut.attention_ranks *= 2) {
        const bool fills_nodes = hardware.node && cut.devices() % hardware.node_devices == 0;
        if (cut.devices() <= domain || fills_nodes) take(cut);
      }
      for (const int64_t nodes : usual_nodes) {
        const int64_t devices = nodes * hardware.node_devices;
        const std::optional<int64_t> copies = copies_to_divide(question.model, devices);
        if (pipeline > 1 || !hardware.node || !copies || devices % tensor != 0 || devices == tensor) continue;
        cut.attention_ranks = devices / tensor;
        cut.expert_copies = *copies;
        take(cut);
      }
    }
  }
  return cuts;
}

// Which of DeepEP's kernels may carry tokens between these ranks; nothing = none do. NVLink must join the devices of a
// node.
std::vector<std::optional<ExchangeKernels>> exchanges_of(const ServingQuestion& question,
                                                         const HardwareChoice& hardware, const EngineChoice& choice) {
  std::vector<std::optional<ExchangeKernels>> all = {std::nullopt};
  const EngineKind& kind = engine_kind(choice.engine);
  const bool has_nvlink = hardware.node && hardware.node->fabric.kind == NodeFabricKind::nvswitch;
  if (choice.attention_ranks == 1 || !has_nvlink) return all;
  if (!can_send_tokens(kind, hardware.device, choice.scheme.value_or(question.model.expert_scheme))) return all;
  if (kind.sends_tokens == TokenSending::by_step) {
    all.emplace_back(ExchangeKernels::by_tokens);
  } else if (question.choices.separate_pools) {
    all.emplace_back(ExchangeKernels::normal);
    all.emplace_back(ExchangeKernels::low_latency);
  }
  return all;
}

// Kernels for all steps suit a pool that computes prompts alone, or decodes alone.
bool computes_all(const EngineChoice& engine) {
  return !engine.deepep || *engine.deepep == ExchangeKernels::by_tokens;
}

// With every engine and number format.
std::vector<EngineChoice> engine_choices(const ServingQuestion& question, const HardwareChoice& hardware) {
  const LayoutChoices& choices = question.choices;
  std::vector<EngineChoice> all;
  for (const EngineChoice& cut : engine_cuts(question, hardware)) {
    for (const std::string& engine : choices.engines) {
      if (question.lora && cut.attention_ranks > 1) continue;  // adapters are not simulated on ranks in lock step
      const bool cuts_attention_ranks = cut.tensor > 1 && cut.attention_ranks > 1;
      if (cuts_attention_ranks && attention_ranks_are_whole(engine_kind(engine).launch)) continue;
      for (const std::optional<Scheme>& scheme : choices.schemes) {
        if (!obstacle(question, hardware.device, engine, scheme).empty()) continue;
        for (const DType kv_dtype : choices.kv_dtypes) {
          if (!scheme && !cut_scale_blocks(question.model, cut.plan()).empty()) continue;
          if (kv_dtype != question.model.kv_cache_dtype() && !keeps_cache_in(hardware.device, kv_dtype)) continue;
          EngineChoice choice = cut;
          choice.engine = engine;
          choice.scheme = scheme;
          choice.kv_dtype = kv_dtype;
          for (const std::optional<ExchangeKernels>& kernels : exchanges_of(question, hardware, choice)) {
            if (choice.expert_copies > 0 && !kernels) continue;  // engines place copies where tokens travel
            choice.deepep = kernels;
            choice.speculates = false;
            all.push_back(choice);
            choice.speculates = true;
            if (question.drafts && cut.pipeline == 1) all.push_back(choice);
          }
        }
      }
    }
  }
  return all;
}

// Host memory is tried below caches that grow with a sequence, of engines without stages and ranks in lock step.
std::vector<int64_t> host_sizes(const ServingQuestion& question, const EngineChoice& engine) {
  const LayoutChoices& choices = question.choices;
  const Device& device = question.hardware_of(engine.device).device;
  const bool can = device.host_bandwidth && engine.pipeline == 1 && engine.attention_ranks == 1 && !question.lora &&
                   kv_bytes_per_token(question.model, engine.kv_dtype).value() > 0;
  std::vector<int64_t> sizes;
  for (const int64_t gib : choices.host_gib) {
    if (gib == 0 || can) sizes.push_back(gib);
  }
  if (choices.host_as_gpu && can && device.memory) {
    sizes.push_back(static_cast<int64_t>(device.memory->value.value() / gibi));
  }
  return sizes;
}

// Some engines divide their limit of tokens among ranks in lock step, and their formula for memory grows with the
// number of ranks. With DeepEP, whose buffers hold a rank's own tokens, each rank gets the whole limit; with it or on
// several nodes, the memory is what the engine's guides set.
EnginePool pool_with(const ServingQuestion& question, EnginePool pool) {
  const HardwareChoice& hardware = question.hardware_of(pool.engine.device);
  const EngineKind& kind = engine_kind(pool.engine.engine);
  const int64_t ranks = pool.engine.attention_ranks;
  const bool leaves_node = pool.engine.devices() > hardware.node_devices;
  if (ranks == 1 || (!pool.engine.deepep && !leaves_node)) return pool;
  if (pool.engine.deepep && kind.limits_of_all_ranks && pool.max_num_batched_tokens == 0) {
    const double memory_gib = allocatable_bytes(hardware.device).value / gibi;
    pool.max_num_batched_tokens = ranks * kind.limits(memory_gib, hardware.device, pool.engine.plan()).tokens;
  }
  if (question.memory_fraction == 0) pool.memory_fraction = kind.wide_memory_fraction;
  return pool;
}

// One engine with every limit, host memory and number of slots for adapters. Host memory that nobody asked for comes
// with the first limits alone: such runs take long.
std::vector<EnginePool> pools_of_engine(const ServingQuestion& question, const EngineChoice& engine) {
  const LayoutChoices& choices = question.choices;
  std::vector<EnginePool> pools;
  if (!computes_all(engine)) return pools;
  const auto is_asked_for = [&](int64_t host) {
    return std::find(choices.host_gib.begin(), choices.host_gib.end(), host) != choices.host_gib.end();
  };
  for (const int64_t host : host_sizes(question, engine)) {
    for (const int64_t loras : choices.max_loras) {
      for (const int64_t seqs : choices.max_num_seqs) {
        for (const int64_t tokens : choices.max_num_batched_tokens) {
          const bool is_first =
              seqs == choices.max_num_seqs.front() && tokens == choices.max_num_batched_tokens.front();
          if (!is_first && !is_asked_for(host)) continue;
          pools.push_back(pool_with(question, {.engine = engine,
                                               .max_num_seqs = seqs,
                                               .max_num_batched_tokens = tokens,
                                               .host_gib = host,
                                               .max_loras = loras}));
        }
      }
    }
  }
  return pools;
}

// Most layouts with one pool, and with two: judging takes memory and time for each of them.
constexpr int64_t most_shared = 150'000, most_separate = 250'000;
constexpr int64_t most_at_all = 2'000'000;

// Numbers of replicas: every one, or, where that would be too many layouts, those of a few leading binary digits. The
// most there can be is always among them.
class ReplicaCounts {
 public:
  static constexpr int every = 62, finest = 12, coarsest = 2;
  explicit ReplicaCounts(int digits) : digits_(digits) {}

  std::vector<int64_t> up_to(int64_t most) const {
    std::vector<int64_t> counts;
    for (int64_t count = 1; count < most; count += step(count)) counts.push_back(count);
    if (most >= 1) counts.push_back(most);
    return counts;
  }
  // From one number to the next, as a share of it; 0 = none is left out.
  double largest_gap() const { return digits_ == every ? 0 : std::ldexp(1.0, 1 - digits_); }

 private:
  int64_t step(int64_t count) const {
    const int length = static_cast<int>(std::bit_width(static_cast<uint64_t>(count)));
    return int64_t{1} << std::max(0, length - digits_);
  }
  int digits_;
};

// Calls `visit(replicas)` until it returns false; whether it never did.
template <class Visit>
bool for_shared_pools(const ServingQuestion& question, const EngineChoice& engine, int64_t devices,
                      const ReplicaCounts& counts, const Visit& visit) {
  const int64_t most = devices / engine.devices();
  if (!question.has_demand()) return most < 1 || visit(most);
  const std::vector<int64_t> all = counts.up_to(most);
  return std::all_of(all.begin(), all.end(), visit);
}

// Prompts on engines of their own. With all the devices where no rate is asked for: what is left over is too little for
// another engine of either kind. Calls `visit(prompts, decodes)` until it returns false; whether it never did.
template <class Visit>
bool for_separate_pools(const ServingQuestion& question, const EngineChoice& prefill, const EngineChoice& decode,
                        int64_t devices, const ReplicaCounts& counts, const Visit& visit) {
  for (const int64_t prompts : counts.up_to((devices - decode.devices()) / prefill.devices())) {
    const int64_t decodes = (devices - prompts * prefill.devices()) / decode.devices();
    const int64_t unused = devices - prompts * prefill.devices() - decodes * decode.devices();
    if (!question.has_demand() && unused >= std::min(prefill.devices(), decode.devices())) continue;
    const std::vector<int64_t> all = question.has_demand() ? counts.up_to(decodes) : std::vector<int64_t>{decodes};
    for (const int64_t count : all) {
      if (count >= 1 && !visit(prompts, count)) return false;
    }
  }
  return true;
}

// Prompts on other devices than those that decode: as many of both as there are and the budget allows, or any numbers
// where a rate is asked for. Calls `visit(prompts, decodes)` as above.
template <class Visit>
bool for_mixed_pools(const ServingQuestion& question, const EngineChoice& prefill, const EngineChoice& decode,
                     const ReplicaCounts& counts, const Visit& visit) {
  const auto most_of = [&](const EngineChoice& engine) {
    return affordable_devices(question, question.hardware_of(engine.device)) / engine.devices();
  };
  const auto affordable = [&](const ServingLayout& layout) {
    return !question.budget_usd_per_hour ||
           question.usd_per_hour(layout).value_or(0) <= *question.budget_usd_per_hour * (1 + 1e-9);
  };
  const int64_t most_prompts = most_of(prefill);
  const std::vector<int64_t> decodes = counts.up_to(most_of(decode));
  ServingLayout layout{.pool = {.engine = prefill}, .decode = EnginePool{.engine = decode}};
  const bool any_number = question.has_demand() || question.budget_usd_per_hour;
  for (const int64_t prompts :
       any_number || most_prompts < 1 ? counts.up_to(most_prompts) : std::vector{most_prompts}) {
    for (size_t i = decodes.size(); i-- > 0;) {
      layout.pool.replicas = prompts;
      layout.decode->replicas = decodes[i];
      if (!affordable(layout)) continue;
      if (!visit(prompts, decodes[i])) return false;
      if (!question.has_demand()) break;
    }
  }
  return true;
}

// Prompts travel with normal kernels and decodes with low-latency ones; where both pools have ranks in lock step, both
// use DeepEP or neither does.
bool exchange_alike(const EngineChoice& prefill, const EngineChoice& decode) {
  if (prefill.deepep == ExchangeKernels::low_latency || decode.deepep == ExchangeKernels::normal) return false;
  const bool both_in_lock_step = prefill.attention_ranks > 1 && decode.attention_ranks > 1;
  return !both_in_lock_step || prefill.deepep.has_value() == decode.deepep.has_value();
}

// Engines that can hand caches over to each other: they differ only in how they are cut.
bool share_caches(const EngineChoice& prefill, const EngineChoice& decode) {
  return prefill.engine == decode.engine && prefill.scheme == decode.scheme && prefill.kv_dtype == decode.kv_dtype &&
         prefill.pipeline == 1 && decode.pipeline == 1 && !prefill.speculates && exchange_alike(prefill, decode);
}

// Engines of one kind of hardware, and how many devices they may use.
struct Engines {
  std::vector<EngineChoice> all;
  int64_t devices = 0;
  bool send_caches = false;  // a link for them is known
};

// Calls `visit(prefill, decode, prompts, decodes)` for all layouts with two pools of these devices, until it returns
// false; whether it never did.
template <class Visit>
bool for_two_pools(const ServingQuestion& question, const Engines& engines, const ReplicaCounts& counts,
                   const Visit& visit) {
  if (!question.choices.separate_pools || !engines.send_caches || question.lora) return true;
  for (const EngineChoice& prefill : engines.all) {
    for (const EngineChoice& decode : engines.all) {
      if (!share_caches(prefill, decode)) continue;
      const auto of_pair = [&](int64_t prompts, int64_t decodes) { return visit(prefill, decode, prompts, decodes); };
      if (!for_separate_pools(question, prefill, decode, engines.devices, counts, of_pair)) return false;
    }
  }
  return true;
}

// The same for two pools of different devices.
template <class Visit>
bool for_two_devices(const ServingQuestion& question, const std::vector<Engines>& engines, const ReplicaCounts& counts,
                     const Visit& visit) {
  if (!question.choices.separate_pools || !question.choices.mixed_pools || question.lora) return true;
  std::vector<const EngineChoice*> all;
  for (const Engines& of : engines) {
    for (const EngineChoice& engine : of.all) {
      if (of.send_caches) all.push_back(&engine);
    }
  }
  for (const EngineChoice* prefill : all) {
    for (const EngineChoice* decode : all) {
      if (prefill->device == decode->device || !share_caches(*prefill, *decode)) continue;
      const auto of_pair = [&](int64_t prompts, int64_t decodes) { return visit(*prefill, *decode, prompts, decodes); };
      if (!for_mixed_pools(question, *prefill, *decode, counts, of_pair)) return false;
    }
  }
  return true;
}

// The finest numbers of replicas that `count(counts, most)` layouts, counted up to `most` + 1, allow.
template <class Count>
ReplicaCounts finest_counts(int64_t most, const Count& count) {
  const ReplicaCounts every(ReplicaCounts::every);
  if (count(every, most) <= most) return every;
  for (int digits = ReplicaCounts::finest; digits > ReplicaCounts::coarsest; --digits) {
    if (count(ReplicaCounts(digits), most) <= most) return ReplicaCounts(digits);
  }
  const ReplicaCounts coarsest(ReplicaCounts::coarsest);
  if (count(coarsest, most_at_all) > most_at_all) {
    throw InputError({.source = "layouts",
                      .value = fmt::format("more than {}", most_at_all),
                      .expected = "fewer: give fewer devices, engines, quantizations, sizes or limits to search over"});
  }
  return coarsest;
}

// "TP16 is more than ...": why no tensor group of that size is tried.
std::string too_many_ranks(const HardwareChoice& hardware, int64_t tensor) {
  const std::string& name = hardware.device.name;
  if (tensor > hardware.most_devices)
    return fmt::format("{{hardware}} offers only {} x {}", hardware.most_devices, name);
  if (!hardware.node) return fmt::format("tensor parallelism stays inside a node, and no node of {} is known", name);
  return fmt::format("tensor parallelism across nodes must use whole nodes, and nodes of {} have {} GPUs", name,
                     hardware.node_devices);
}

}  // namespace

int64_t affordable_devices(const ServingQuestion& question, const HardwareChoice& hardware) {
  if (!question.budget_usd_per_hour || !hardware.usd_per_hour) return hardware.most_devices;
  const double devices = std::floor(*question.budget_usd_per_hour / *hardware.usd_per_hour * (1 + 1e-9));
  return std::min(hardware.most_devices, static_cast<int64_t>(std::min(devices, 1e9)));
}

void check_budget(const ServingQuestion& question) {
  std::optional<double> cheapest;
  for (const HardwareChoice& hardware : question.hardware) {
    if (affordable_devices(question, hardware) > 0) return;
    cheapest = std::min(cheapest.value_or(*hardware.usd_per_hour), *hardware.usd_per_hour);
  }
  if (!cheapest) return;
  throw InputError({.field = "budget",
                    .value = fmt::format("${:.4g} an hour", *question.budget_usd_per_hour),
                    .expected = fmt::format("at least ${:.4g} an hour, the price of the cheapest device", *cheapest)});
}

std::string why_no_layouts(const ServingQuestion& question, const HardwareChoice& hardware, const std::string& engine) {
  const LayoutChoices& choices = question.choices;
  const std::string& name = hardware.device.name;
  if (affordable_devices(question, hardware) < 1) return fmt::format("one {} costs more than the budget", name);
  std::vector<std::string> obstacles;
  for (const std::optional<Scheme>& scheme : choices.schemes) {
    obstacles.push_back(obstacle(question, hardware.device, engine, scheme));
  }
  if (std::none_of(obstacles.begin(), obstacles.end(), [](const std::string& why) { return why.empty(); })) {
    return obstacles.front();
  }
  if (std::none_of(choices.kv_dtypes.begin(), choices.kv_dtypes.end(), [&](DType type) {
        return type == question.model.kv_cache_dtype() || keeps_cache_in(hardware.device, type);
      })) {
    return fmt::format("engines do not keep a KV cache in {} on this device", dtype_name(choices.kv_dtypes.front()));
  }
  const auto beyond = [&](int64_t tensor) { return !has_place_for(hardware, tensor); };
  if (!choices.tensor.empty() && std::all_of(choices.tensor.begin(), choices.tensor.end(), beyond)) {
    return fmt::format("TP{}: {}", choices.tensor.front(), too_many_ranks(hardware, choices.tensor.front()));
  }
  const auto cuts = engine_cuts(question, hardware);
  for (const EngineChoice& cut : cuts) {
    const std::string why = cut_scale_blocks(question.model, cut.plan());
    if (!why.empty()) return why;
  }
  return "the model's heads, experts or layers are not divisible by the given -tp and -pp sizes, or these sizes need "
         "more devices than {hardware} offers";
}

std::vector<std::string> tensor_sizes_left_out(const ServingQuestion& question) {
  std::vector<std::string> sentences;
  for (const int64_t tensor : question.choices.tensor) {
    for (const HardwareChoice& hardware : question.hardware) {
      if (has_place_for(hardware, tensor)) continue;
      sentences.push_back(
          fmt::format("TP{} was not tried on {}: {}.", tensor, hardware.device.name, too_many_ranks(hardware, tensor)));
    }
  }
  return sentences;
}

std::vector<std::string> left_out(const ServingQuestion& question) {
  std::vector<std::string> sentences;
  for (const HardwareChoice& hardware : question.hardware) {
    for (const std::string& engine : question.choices.engines) {
      for (const std::optional<Scheme>& scheme : question.choices.schemes) {
        // A device without the arithmetic of a format to try is no news: the model's own format is tried on it.
        const bool is_extra = scheme && runs_on(engine_kind(engine), hardware.device);
        const std::string why = is_extra ? "" : obstacle(question, hardware.device, engine, scheme);
        if (why.empty()) continue;
        std::string sentence = fmt::format("{} was not tried on {}: {}.", engine, hardware.device.name, why);
        if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end()) {
          sentences.push_back(std::move(sentence));
        }
      }
    }
  }
  return sentences;
}

LayoutSpace layout_space(const ServingQuestion& question, const std::function<void()>& check_wanted) {
  int64_t visits = 0;
  const auto check_now_and_then = [&] {
    constexpr int64_t between_checks = 1024;
    if (check_wanted && ++visits % between_checks == 0) check_wanted();
  };
  const LayoutChoices& choices = question.choices;
  std::vector<Engines> engines;
  for (const HardwareChoice& hardware : question.hardware) {
    engines.push_back({.all = engine_choices(question, hardware),
                       .devices = affordable_devices(question, hardware),
                       .send_caches = hardware.node.has_value()});
  }
  const ReplicaCounts shared = finest_counts(most_shared, [&](const ReplicaCounts& counts, int64_t most) {
    int64_t found = 0;
    for (const Engines& of : engines) {
      for (const EngineChoice& engine : of.all) {
        const auto limits = static_cast<int64_t>(pools_of_engine(question, engine).size());
        const auto visit = [&](int64_t /*replicas*/) {
          check_now_and_then();
          return (found += limits) <= most;
        };
        if (!for_shared_pools(question, engine, of.devices, counts, visit)) return found;
      }
    }
    return found;
  });
  const auto decode_limits = static_cast<int64_t>(choices.max_num_seqs.size());
  const ReplicaCounts separate = finest_counts(most_separate, [&](const ReplicaCounts& counts, int64_t most) {
    int64_t found = 0;
    const auto visit = [&](const EngineChoice&, const EngineChoice&, int64_t, int64_t) {
      check_now_and_then();
      return (found += decode_limits) <= most;
    };
    for (const Engines& of : engines) {
      if (!for_two_pools(question, of, counts, visit)) return found;
    }
    for_two_devices(question, engines, counts, visit);
    return found;
  });

  LayoutSpace space{.layouts = {}, .largest_gap = std::max(shared.largest_gap(), separate.largest_gap())};
  const auto add_shared = [&](const std::vector<EnginePool>& pools, int64_t replicas) {
    check_now_and_then();
    for (const EnginePool& pool : pools) {
      space.layouts.push_back({.pool = pool, .decode = {}});
      space.layouts.back().pool.replicas = replicas;
    }
    return true;
  };
  const auto add_separate = [&](const EngineChoice& prefill, const EngineChoice& decode, int64_t prompts,
                                int64_t decodes) {
    check_now_and_then();
    for (const int64_t seqs : choices.max_num_seqs) {
      space.layouts.push_back(
          {.pool = pool_with(question, {.engine = prefill, .replicas = prompts}),
           .decode = pool_with(question, {.engine = decode, .replicas = decodes, .max_num_seqs = seqs})});
    }
    return true;
  };
  for (const Engines& of : engines) {
    for (const EngineChoice& engine : of.all) {
      const std::vector<EnginePool> pools = pools_of_engine(question, engine);
      for_shared_pools(question, engine, of.devices, shared,
                       [&](int64_t replicas) { return add_shared(pools, replicas); });
    }
    for_two_pools(question, of, separate, add_separate);
  }
  for_two_devices(question, engines, separate, add_separate);
  return space;
}

}  // namespace foretoken
