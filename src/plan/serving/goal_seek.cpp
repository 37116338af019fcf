#include "plan/serving/goal_seek.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "compose/device_formats.h"
#include "plan/serving/layout_space.h"
#include "serving/speculation/draft_method.h"

namespace foretoken {
namespace {

constexpr double least_gain = 1.1;
constexpr const char* other_numbers = "it changes the model's numbers: check the quality of answers first";

struct Variant {
  std::string change, caution;
  ServingQuestion question;
};

// The winner's engine, format and pools on as many devices; limits are the engine's own.
ServingQuestion narrowed(const ServingQuestion& question, const ServingLayout& winner) {
  const EngineChoice& engine = winner.pool.engine;
  ServingQuestion narrow = question;
  narrow.rate.reset();
  narrow.budget_usd_per_hour.reset();
  narrow.objective = PlanObjective::cost_per_request;
  narrow.hardware = {question.hardware_of(engine.device)};
  narrow.hardware.front().most_devices = winner.devices();
  narrow.choices = {.engines = {engine.engine},
                    .schemes = {engine.scheme},
                    .kv_dtypes = {engine.kv_dtype},
                    .pipeline = {engine.pipeline},
                    .separate_pools = false};
  narrow.drafts.reset();
  return narrow;
}

std::vector<Variant> variants_of(const ServingQuestion& question, const ServingLayout& winner,
                                 const std::vector<HardwareChoice>& others) {
  std::vector<Variant> all;
  const ServingQuestion base = narrowed(question, winner);
  const EngineChoice& engine = winner.pool.engine;
  const Model& model = question.model;
  // Nobody quantizes a checkpoint once more that is published quantized.
  const bool is_free = !model.is_quantized() && !model.named_scheme;
  for (const Scheme scheme : {Scheme::fp8, Scheme::int4_wo}) {
    if (!is_free || engine.scheme == scheme || !multiplies_in(base.hardware.front().device, scheme)) continue;
    Variant variant{fmt::format("weights in {}", facts(scheme).name), other_numbers, base};
    variant.question.choices.schemes = {scheme};
    all.push_back(std::move(variant));
  }
  if (engine.kv_dtype != DType::fp8) {
    Variant variant{"the KV cache in fp8", other_numbers, base};
    variant.question.choices.kv_dtypes = {DType::fp8};
    all.push_back(std::move(variant));
  }
  if (!engine.speculates && engine.pipeline == 1 && !winner.decode) {
    constexpr int64_t drafts = 3;
    SpeculativeConfig config{.method = &draft_method("eagle3"), .num_speculative_tokens = drafts};
    config.assume(usual_acceptance(*config.method, drafts));
    Variant variant{fmt::format("EAGLE-3 drafts ({} tokens)", drafts),
                    "it needs a draft head trained for this model, and accepts as many drafts as such heads usually do",
                    base};
    variant.question.drafts = DraftChoice{.config = std::move(config), .model = {}, .text = "eagle3"};
    all.push_back(std::move(variant));
  }
  for (size_t i = 0; i < question.slos.size(); ++i) {
    Variant variant{"", "users wait longer", base};
    LatencySlo& slo = variant.question.slos[i];
    slo.limit_ms *= 2;
    const std::string limit = limit_text(slo);  // "TTFT < 500 ms"
    const size_t sign = limit.find(" < ");
    variant.change = fmt::format("a {} limit of {}", limit.substr(0, sign), limit.substr(sign + 3));
    all.push_back(std::move(variant));
  }
  for (const HardwareChoice& other : others) {
    Variant variant{fmt::format("{} x {}", winner.devices(), other.device.name), "", base};
    variant.question.hardware = {other};
    variant.question.hardware.front().most_devices = winner.devices();
    all.push_back(std::move(variant));
  }
  return all;
}

double cost_of_request(const ServingQuestion& question, const ServingLayout& layout, double requests_per_s) {
  return question.usd_per_hour(layout).value_or(0) / requests_per_s;
}

// By closed form: the layout that costs least for a request, with what it is taken to sustain; nothing where none does.
std::optional<std::pair<ServingLayout, double>> best_by_closed_form(const ServingQuestion& question,
                                                                    LayoutSimulator& simulator) {
  std::optional<std::pair<ServingLayout, double>> best;
  std::optional<LayoutScore> score;
  const LayoutSpace space = layout_space(question);
  for (const ServingLayout& layout : space.layouts) {
    if (question.drafts && !layout.pool.engine.speculates) continue;
    const LayoutJudgement judgement = simulator.judge(layout);
    if (judgement.pruned) continue;
    const double sustained = judgement.most_requests_per_s * usually_reached(layout).usual;
    const std::optional<LayoutScore> own = layout_score(question, layout, sustained);
    if (own <= score) continue;
    score = own;
    best = {layout, sustained};
  }
  return best;
}

}  // namespace

std::vector<SoughtChange> seek_goals(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
                                     const PlanPoint& winner, const std::vector<HardwareChoice>& others) {
  const ServingLayout& layout = winner.layout;
  double known = 0;  // of the winner by closed form
  {
    EngineShelf shelf(question, facts, traffic);
    known = LayoutSimulator(question, traffic, shelf).judge(layout).most_requests_per_s * usually_reached(layout).usual;
  }
  if (known <= 0) return {};
  const double cost = cost_of_request(question, layout, winner.capacity.value);
  std::vector<Variant> variants = variants_of(question, layout, others);
  std::vector<SoughtChange> changes;
  std::vector<size_t> of_variant;
  const auto settle = [&](SoughtChange& one, const ServingQuestion& own, double requests_per_s) {
    one.requests_per_s = requests_per_s;
    one.capacity_ratio = requests_per_s / winner.capacity.value;
    one.cost_ratio = cost > 0 ? cost_of_request(own, one.layout, requests_per_s) / cost : 0;
  };
  for (size_t i = 0; i < variants.size(); ++i) {
    const ServingQuestion& own = variants[i].question;
    EngineShelf shelf(own, facts, traffic);
    LayoutSimulator simulator(own, traffic, shelf);
    const auto best = best_by_closed_form(own, simulator);
    if (!best) continue;
    SoughtChange one{.change = variants[i].change, .caution = variants[i].caution, .layout = best->first};
    settle(one, own, winner.capacity.value * best->second / known);
    changes.push_back(std::move(one));
    of_variant.push_back(i);
  }
  const auto gain = [](const SoughtChange& one) {
    return std::max(one.capacity_ratio, one.cost_ratio > 0 ? 1 / one.cost_ratio : 0);
  };
  const auto simulate = [&](auto better) {
    size_t best = changes.size();
    for (size_t i = 0; i < changes.size(); ++i) {
      if (best == changes.size() || better(changes[i], changes[best])) best = i;
    }
    if (best == changes.size() || changes[best].is_simulated) return;
    const ServingQuestion& own = variants[of_variant[best]].question;
    EngineShelf shelf(own, facts, traffic);
    const PlanPoint point = LayoutSimulator(own, traffic, shelf).evaluate(changes[best].layout, Effort::quick);
    settle(changes[best], own, point.capacity.value);
    changes[best].is_simulated = true;
  };
  simulate([](const SoughtChange& a, const SoughtChange& b) { return a.capacity_ratio > b.capacity_ratio; });
  simulate([](const SoughtChange& a, const SoughtChange& b) {
    return a.cost_ratio > 0 && (b.cost_ratio == 0 || a.cost_ratio < b.cost_ratio);
  });
  std::erase_if(changes, [&](const SoughtChange& one) { return gain(one) < least_gain; });
  std::stable_sort(changes.begin(), changes.end(),
                   [&](const SoughtChange& a, const SoughtChange& b) { return gain(a) > gain(b); });
  return changes;
}

}  // namespace foretoken
