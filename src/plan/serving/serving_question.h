// What is asked of a search over serving layouts, and the facts it may use.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hardware/node.h"
#include "model/model.h"
#include "plan/serving/latency_slo.h"
#include "plan/serving/serving_layout.h"
#include "plan/serving/traffic.h"
#include "serving/lora/lora_engine.h"
#include "serving/speculation/speculative_config.h"

namespace foretoken {

struct HardwareChoice {
  Device device;
  int64_t most_devices = 8;
  int64_t node_devices = 8;            // that share a fast fabric: the ranks of a tensor group stay inside
  std::optional<Node> node;            // nothing = no link for caches is known, so prompts are not computed apart
  std::optional<double> usd_per_hour;  // of one device
  bool is_bound = false;               // its kernel times are roofline bounds, because those were asked for
  // What was assumed of the links inside a node, by the number of devices that talk to each other.
  std::map<int64_t, std::vector<std::string>> link_notes = {};
  bool sheet_only = false;  // no kernel of it was measured: KernelPredictor::is_known_by_sheet_only()
  bool is_swept = false;    // its own multiplications were measured
  double sheet_share = 0;   // of the time of a typical step that comes from its spec sheet

  int64_t host_devices() const;  // that one operating system sees: at most node_devices

  // Too much to let it win by what nobody knows.
  bool rests_on_sheet() const { return sheet_only || sheet_share > 1.0 / 3; }
};

// What layouts are made of. Limits of 0 are the engine's own.
struct LayoutChoices {
  std::vector<std::string> engines = {"vllm"};
  std::vector<std::optional<Scheme>> schemes = {std::nullopt};  // a device without the arithmetic is left out
  std::vector<DType> kv_dtypes = {DType::bf16};
  std::vector<int64_t> tensor, pipeline;  // empty = all that suit
  std::vector<int64_t> max_num_seqs = {0}, max_num_batched_tokens = {0};
  bool separate_pools = true;  // also with prompts computed apart
  bool mixed_pools = false;    // also on other devices than those that decode
  // Host memory below the KV cache, in GiB for each device.
  std::vector<int64_t> host_gib = {0};
  bool host_as_gpu = false;  // also as much as the device has itself
  bool tries_host_memory() const;
  std::vector<int64_t> max_loras = {0};  // slots for adapters; 0 where none are served
};

enum class PlanObjective : uint8_t {
  capacity,         // most requests/s
  cost,             // least USD/hour that serves the rate asked
  cost_per_request  // at capacity
};

// Drafts that layouts may use.
struct DraftChoice {
  SpeculativeConfig config;
  std::optional<Model> model;
  std::string text = {};  // the config as it was given
};

int64_t routed_experts(const Model& model);  // of a layer; 0 = none
// With more copies of experts, spread over the ranks.
Model with_expert_copies(Model model, int64_t copies);

struct ServingQuestion {
  Model model;
  std::vector<LatencySlo> slos;
  // Percent of the requests that must each meet all limits; the limits' percentiles are the same then, since fewer
  // cannot do. Nothing = each limit is kept at its own percentile.
  std::optional<double> joint_percent = {};
  std::optional<double> rate;  // requests/s to serve; nothing = as many as can be
  // In place of a rate, so many requests are always in flight: the next is sent when one ends (a closed loop). A layout
  // is judged by that alone, and its capacity is the requests/s that come of it.
  std::optional<int64_t> in_flight = {};
  bool has_conversations = false;  // their turns go where the KV cache of their conversation is
  bool pessimistic = false;        // steps are as slow as their interval allows
  std::optional<double> budget_usd_per_hour;
  PlanObjective objective = PlanObjective::capacity;
  std::vector<HardwareChoice> hardware;
  LayoutChoices choices;
  std::optional<DraftChoice> drafts;
  PromptTexts texts = PromptTexts::natural;   // as in LoadSpec: how often drafts are accepted
  std::optional<LoraSettings> lora = {};      // adapters that requests ask for; slots are those of each layout
  int64_t max_model_len = 0;                  // 0 = what the traffic needs
  double memory_fraction = 0;                 // 0 = the engine's own
  std::vector<std::string> assumptions = {};  // what was not asked for but taken, a sentence each

  bool has_demand() const { return rate || in_flight; }
  const HardwareChoice& hardware_of(const std::string& device) const;
  // Its devices with their numbers, those of prompts first where they are others.
  std::vector<std::pair<const HardwareChoice*, int64_t>> hardware_of(const ServingLayout& layout) const;
  // USD/hour; nothing where the price is not known.
  std::optional<double> usd_per_hour(const ServingLayout& layout) const;
  // Layouts are ranked by what they cost, or limited by it: one without a price is compared with no other.
  bool money_decides() const { return objective != PlanObjective::capacity || budget_usd_per_hour; }
  // Of layouts that are compared with each other: USD/hour, or devices where a price is not known.
  double compared_cost(const ServingLayout& layout) const;
  bool all_have_prices() const;
  // More than a third of the time on one of its devices comes from a spec sheet: it is judged by the slow end of its
  // interval, so that it does not win by what nobody knows. The same whatever else is on offer.
  bool is_judged_by_slow_end(const ServingLayout& layout) const;
  // As the choice's engine runs it: in the scheme that is tried, or in its own format as the device can.
  Model model_of(const EngineChoice& choice) const;
  // All that an answer about one layout depends on, besides the layout: for results that are kept.
  std::string key(const Traffic& traffic) const;
};

}  // namespace foretoken
