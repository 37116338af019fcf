#include "plan/serving/goal_seek.h"

#include <algorithm>

#include <fmt/format.h>

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

// The engine's own limit where the question allows it, else the winner's.
std::vector<int64_t> limit_of(const std::vector<int64_t>& choices, int64_t winners) {
  constexpr int64_t engines_own = 0;
  const bool allows_own = std::find(choices.begin(), choices.end(), engines_own) != choices.end();
  return {allows_own ? engines_own : winners};
}

// The winner's engine, format and pools on as many devices.
ServingQuestion narrowed(const ServingQuestion& question, const ServingLayout& winner) {
  const EngineChoice& engine = winner.pool.engine;
  ServingQuestion narrow = question;
  narrow.rate.reset();
  narrow.budget_usd_per_hour.reset();
  narrow.objective = PlanObjective::cost_per_request;
  narrow.hardware = {question.hardware_of(engine.device)};
  narrow.hardware.front().most_devices = winner.devices();
  narrow.choices = {
      .engines = {engine.engine},
      .schemes = {engine.scheme},
      .kv_dtypes = {engine.kv_dtype},
      .pipeline = {engine.pipeline},
      .max_num_seqs = limit_of(question.choices.max_num_seqs, winner.pool.max_num_seqs),
      .max_num_batched_tokens = limit_of(question.choices.max_num_batched_tokens, winner.pool.max_num_batched_tokens),
      .separate_pools = false,
      .host_gib = {winner.pool.host_gib},
      .max_loras = {winner.pool.max_loras}};
  if (!engine.speculates) narrow.drafts.reset();
  return narrow;
}

// The layer that the model was trained with to predict more tokens; a head for drafts where it has none.
Variant with_drafts(const ServingQuestion& base) {
  const bool has_own_layer = !base.model.draft_layers.empty();
  const int64_t drafts = has_own_layer ? 1 : 3;
  SpeculativeConfig config{.method = &draft_method(has_own_layer ? "mtp" : "eagle3"), .num_speculative_tokens = drafts};
  config.assume_usual(base.texts);
  Variant variant{
      has_own_layer ? "drafts of the model's multi-token prediction layer (1 token)"
                    : fmt::format("EAGLE-3 drafts ({} tokens)", drafts),
      has_own_layer
          ? "the usual draft acceptance of such layers is assumed"
          : "it needs a draft head trained for this model, and accepts as many drafts as such heads usually do",
      base};
  variant.question.drafts = DraftChoice{.config = config, .model = {}, .text = std::string(config.method->name)};
  return variant;
}

// Limits of a step, four times the winner's: of sequences where the traffic fills as many, and of tokens. Engines of
// several pools, stages or ranks in lock step divide theirs in ways of their own.
std::vector<Variant> with_higher_limits(const ServingQuestion& base, const ServingLayout& winner,
                                        const ReadyEngine& engine, const LayoutJudgement& judgement) {
  constexpr int64_t times_as_many = 4;
  const SchedulerOptions& options = engine.group.config.options;
  std::vector<Variant> all;
  if (winner.decode || winner.pool.engine.pipeline > 1 || options.lock_step_ranks > 1) return all;
  if (judgement.reachable.front() >= options.max_num_seqs) {
    const int64_t most = times_as_many * options.max_num_seqs;
    all.push_back({fmt::format("steps of up to {} sequences", most), "", base});
    all.back().question.choices.max_num_seqs = {most};
  }
  const int64_t most = times_as_many * options.max_num_batched_tokens;
  all.push_back({fmt::format("steps of up to {} tokens", most), "", base});
  all.back().question.choices.max_num_batched_tokens = {most};
  return all;
}

std::vector<Variant> variants_of(const ServingQuestion& question, const ServingLayout& winner,
                                 const std::vector<HardwareChoice>& others) {
  std::vector<Variant> all;
  const ServingQuestion base = narrowed(question, winner);
  const EngineChoice& engine = winner.pool.engine;
  const Model& model = question.model;
  // Nobody quantizes a checkpoint once more that is published quantized.
  const bool is_free = !model.is_quantized() && !model.named_scheme;
  const Scheme four_bits = multiplies_in(base.hardware.front().device, Scheme::nvfp4) ? Scheme::nvfp4 : Scheme::mxfp4;
  for (const Scheme scheme : {Scheme::fp8, four_bits, Scheme::int4_wo}) {
    if (!is_free || engine.scheme == scheme || !multiplies_in(base.hardware.front().device, scheme)) continue;
    Variant variant{fmt::format("weights in {}", facts(scheme).name), other_numbers, base};
    variant.question.choices.schemes = {scheme};
    all.push_back(std::move(variant));
  }
  if (engine.kv_dtype != DType::fp8 && keeps_cache_in(base.hardware.front().device, DType::fp8)) {
    Variant variant{"the KV cache in fp8", other_numbers, base};
    variant.question.choices.kv_dtypes = {DType::fp8};
    all.push_back(std::move(variant));
  }
  if (!engine.speculates && engine.pipeline == 1 && !winner.decode) {
    all.push_back(with_drafts(base));
  }
  for (size_t i = 0; i < question.slos.size(); ++i) {
    Variant variant{"", "users wait longer", base};
    LatencySlo& slo = variant.question.slos[i];
    slo.limit_ms *= 2;
    variant.change = fmt::format("a {} limit of {}", metric_title(slo.metric), limit_text(slo));
    all.push_back(std::move(variant));
  }
  for (const HardwareChoice& other : others) {
    Variant variant{question.rate ? fmt::format("on {}", other.device.name)
                                  : fmt::format("{} x {}", winner.devices(), other.device.name),
                    "", base};
    variant.question.hardware = {other};
    variant.question.hardware.front().most_devices = winner.devices();
    all.push_back(std::move(variant));
  }
  return all;
}

double cost_of_request(const ServingQuestion& question, const ServingLayout& layout, double requests_per_s) {
  return question.usd_per_hour(layout).value_or(0) / requests_per_s;
}

// USD for an hour against the winner's; devices where prices are not known; 0 = they are not of one kind.
double hourly_cost_ratio(const ServingQuestion& changed, const ServingLayout& layout, const ServingQuestion& question,
                         const ServingLayout& winner) {
  const std::optional<double> usd = changed.usd_per_hour(layout), before = question.usd_per_hour(winner);
  if (usd && before) return *usd / *before;
  const bool is_same_kind = devices_text(layout) == devices_text(winner);
  return is_same_kind ? static_cast<double>(layout.devices()) / static_cast<double>(winner.devices()) : 0;
}

// The same change for the rate asked for: other devices may be more than the winner's.
ServingQuestion for_rate(const Variant& variant, const ServingQuestion& asked, const ServingLayout& winner) {
  constexpr int64_t times_as_many = 4;
  ServingQuestion question = variant.question;
  question.rate = asked.rate;
  question.objective = PlanObjective::cost;
  HardwareChoice& hardware = question.hardware.front();
  const bool is_offered = hardware.device.name == winner.pool.engine.device;
  hardware.most_devices =
      is_offered ? asked.hardware_of(hardware.device.name).most_devices : times_as_many * winner.devices();
  return question;
}

struct JudgedLayout {
  ServingLayout layout;
  double requests_per_s = 0;
};

// By closed form: the best layout, with what it is taken to sustain; nothing where none does. `scale`: what simulations
// reach of the closed form.
std::optional<JudgedLayout> best_by_closed_form(const ServingQuestion& question, LayoutSimulator& simulator,
                                                double scale, const std::function<void()>& check_wanted) {
  std::optional<JudgedLayout> best;
  std::optional<LayoutScore> score;
  const LayoutSpace space = layout_space(question, check_wanted);
  for (const ServingLayout& layout : space.layouts) {
    if (question.drafts && !layout.pool.engine.speculates) continue;
    const LayoutJudgement judgement = simulator.judge(layout);
    if (judgement.pruned) continue;
    const double sustained = judgement.most_requests_per_s * usually_reached(layout, judgement.shape).usual * scale;
    const std::optional<LayoutScore> own = layout_score(question, layout, sustained);
    if (own <= score) continue;
    score = own;
    best = {.layout = layout, .requests_per_s = sustained};
  }
  return best;
}

class GoalSeeker {
 public:
  GoalSeeker(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
             const PlanPoint& winner, const std::function<void()>& check_wanted)
      : question_(question),
        traffic_(traffic),
        facts_(facts),
        winner_(winner),
        check_wanted_(check_wanted),
        base_{.layout = winner.layout, .requests_per_s = winner.capacity.value} {}

  SoughtGoals seek(const std::vector<HardwareChoice>& others) {
    SoughtGoals goals;
    try {
      variants_ = variants_of(question_, winner_.layout, others);
      judge_winner();
      find_base();
      judge_all();
      simulate_best();
    } catch (const SearchStopped&) {
      goals.stopped = true;
    }
    goals.base = base_;
    for (Judged& one : judged_) {
      if (gain(one.change) >= least_gain) goals.changes.push_back(std::move(one.change));
    }
    std::stable_sort(goals.changes.begin(), goals.changes.end(),
                     [&](const SoughtChange& a, const SoughtChange& b) { return gain(a) > gain(b); });
    return goals;
  }

 private:
  struct Judged {
    SoughtChange change;
    const Variant* variant = nullptr;
    double scale = 1;  // what simulations reach of the closed form
  };

  // What simulations reach of the closed form of the winner, and the limits that it could raise.
  void judge_winner() {
    EngineShelf shelf(question_, facts_, traffic_);
    LayoutSimulator simulator(question_, traffic_, shelf, check_wanted_);
    const LayoutJudgement judgement = simulator.judge(winner_.layout);
    const double known = judgement.most_requests_per_s * usually_reached(winner_.layout, judgement.shape).usual;
    if (known <= 0) return;
    winners_scale_ = winner_.capacity.value / known;
    for (Variant& one : with_higher_limits(narrowed(question_, winner_.layout), winner_.layout,
                                           *shelf.engines(winner_.layout).pool, judgement)) {
      variants_.push_back(std::move(one));
    }
  }

  // The search of the winner may have ended before it came to layouts that the search for changes finds.
  void find_base() {
    if (winners_scale_ <= 0) return;
    const Variant unchanged{"", "", narrowed(question_, winner_.layout)};
    EngineShelf shelf(unchanged.question, facts_, traffic_);
    LayoutSimulator simulator(unchanged.question, traffic_, shelf, check_wanted_);
    const auto sustained = [&](const ServingLayout& layout) {
      return simulator.evaluate(layout, Effort::quick).capacity.value;
    };
    const auto best = best_by_closed_form(unchanged.question, simulator, winners_scale_, check_wanted_);
    if (best && best->requests_per_s > base_.requests_per_s && best->layout != winner_.layout) {
      const double found = sustained(best->layout);
      const double cost = cost_of_request(question_, best->layout, found);
      const bool is_better =
          found > base_.requests_per_s && cost <= cost_of_request(question_, winner_.layout, base_.requests_per_s);
      if (is_better) base_ = {.layout = best->layout, .requests_per_s = found, .is_winner = false};
    }
    if (!question_.rate) return;
    const ServingQuestion asked = for_rate(unchanged, question_, winner_.layout);
    const auto cheapest = best_by_closed_form(asked, simulator, winners_scale_, check_wanted_);
    if (!cheapest) return;
    const double ratio = hourly_cost_ratio(asked, cheapest->layout, question_, winner_.layout);
    if (ratio > 0 && ratio < 1 && sustained(cheapest->layout) >= *question_.rate) base_.at_rate = cheapest->layout;
  }

  void judge_all() {
    if (winners_scale_ <= 0) return;
    for (const Variant& variant : variants_) {
      EngineShelf shelf(variant.question, facts_, traffic_);
      LayoutSimulator simulator(variant.question, traffic_, shelf, check_wanted_);
      const auto best = best_by_closed_form(variant.question, simulator, winners_scale_, check_wanted_);
      if (!best) continue;
      Judged one{
          .change = {.change = variant.change, .caution = variant.caution, .layout = best->layout, .at_rate = {}},
          .variant = &variant,
          .scale = winners_scale_};
      settle(one, best->requests_per_s);
      judge_at_rate(one, simulator);
      judged_.push_back(std::move(one));
    }
  }

  void settle(Judged& one, double requests_per_s) const {
    const double cost = cost_of_request(question_, base_.layout, base_.requests_per_s);
    one.change.requests_per_s = requests_per_s;
    one.change.capacity_ratio = requests_per_s / base_.requests_per_s;
    one.change.cost_ratio = cost > 0 && requests_per_s > 0
                                ? cost_of_request(one.variant->question, one.change.layout, requests_per_s) / cost
                                : 0;
  }

  // Bounds do not depend on the rate: `simulator` is that of the variant.
  void judge_at_rate(Judged& one, LayoutSimulator& simulator) const {
    one.change.at_rate.reset();
    if (!question_.rate) return;
    const ServingQuestion asked = for_rate(*one.variant, question_, winner_.layout);
    const auto best = best_by_closed_form(asked, simulator, one.scale, check_wanted_);
    if (!best) return;
    one.change.at_rate = ChangeAtRate{
        .layout = best->layout,
        .requests_per_s = best->requests_per_s,
        .cost_ratio = hourly_cost_ratio(asked, best->layout, question_, base_.at_rate.value_or(winner_.layout))};
  }

  Judged* best_by(const std::function<double(const SoughtChange&)>& goodness) {
    Judged* best = nullptr;
    for (Judged& one : judged_) {
      if (best == nullptr || goodness(one.change) > goodness(best->change)) best = &one;
    }
    return best;
  }

  void simulate_best() {
    simulate(best_by([](const SoughtChange& one) { return one.capacity_ratio; }));
    const auto cheapness = [&](const SoughtChange& one) {
      const double cost = one.asked_cost_ratio(question_.rate.has_value());
      return cost > 0 ? 1 / cost : 0;
    };
    if (!question_.rate) return simulate(best_by(cheapness));
    // What was cheapest by closed form may need more devices.
    constexpr int most_rounds = 4;
    for (int round = 0; round < most_rounds; ++round) {
      Judged* cheapest = best_by(cheapness);
      if (cheapest == nullptr || !cheapest->change.at_rate || cheapest->change.at_rate->is_simulated) return;
      simulate_at_rate(*cheapest);
    }
  }

  void simulate(Judged* one) const {
    if (one == nullptr || one->change.is_simulated) return;
    EngineShelf shelf(one->variant->question, facts_, traffic_);
    LayoutSimulator simulator(one->variant->question, traffic_, shelf, check_wanted_);
    settle(*one, simulator.evaluate(one->change.layout, Effort::quick).capacity.value);
    one->change.is_simulated = true;
  }

  void simulate_at_rate(Judged& one) const {
    const ChangeAtRate closed = *one.change.at_rate;
    EngineShelf shelf(one.variant->question, facts_, traffic_);
    LayoutSimulator simulator(one.variant->question, traffic_, shelf, check_wanted_);
    const double sustained = simulator.evaluate(closed.layout, Effort::quick).capacity.value;
    if (sustained >= *question_.rate) {
      one.change.at_rate->requests_per_s = sustained;
      one.change.at_rate->is_simulated = true;
      return;
    }
    one.scale *= sustained / closed.requests_per_s;
    judge_at_rate(one, simulator);
  }

  double gain(const SoughtChange& one) const {
    const double cost = one.asked_cost_ratio(question_.rate.has_value());
    return std::max(one.capacity_ratio, cost > 0 ? 1 / cost : 0);
  }

  const ServingQuestion& question_;
  const Traffic& traffic_;
  const ServingFacts& facts_;
  const PlanPoint& winner_;
  const std::function<void()>& check_wanted_;
  double winners_scale_ = 0;  // what simulations reach of the winner's closed form; 0 = not known
  SoughtBase base_;
  std::vector<Variant> variants_;
  std::vector<Judged> judged_;
};

}  // namespace

SoughtGoals seek_goals(const ServingQuestion& question, const Traffic& traffic, const ServingFacts& facts,
                       const PlanPoint& winner, const std::vector<HardwareChoice>& others,
                       const std::function<void()>& check_wanted) {
  return GoalSeeker(question, traffic, facts, winner, check_wanted).seek(others);
}

}  // namespace foretoken
