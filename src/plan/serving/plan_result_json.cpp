#include "plan/serving/plan_result_json.h"

#include <limits>

namespace foretoken {
namespace {

// JSON has no NaN: null stands for it.
double number_or_nan(const JsonView& json) {
  return json.is(Json::Kind::null) ? std::numeric_limits<double>::quiet_NaN() : json.number();
}

Json headline_json(const Headline& headline) {
  return Json::object({{"value", headline.value}, {"low", headline.low}, {"high", headline.high}});
}

Headline read_headline(const JsonView& json) {
  return {.value = json.at("value").number(), .low = json.at("low").number(), .high = json.at("high").number()};
}

Json run_json(const PlanRun& run) {
  Json achieved = Json::array();
  for (const double each : run.achieved_ms) achieved.push(each);
  return Json::object({{"rate", run.rate},
                       {"in_flight", run.in_flight},
                       {"requests", run.requests},
                       {"attained", run.attained},
                       {"achieved_ms", std::move(achieved)},
                       {"output_tokens_per_s", run.output_tokens_per_s},
                       {"tokens_per_s_of_user", run.tokens_per_s_of_user},
                       {"goodput", run.goodput},
                       {"failed_share", run.failed_share},
                       {"computed_again", run.computed_again},
                       {"joules_per_token", headline_json(run.joules_per_token)}});
}

PlanRun read_run(const JsonView& json) {
  PlanRun run{.rate = json.at("rate").number(),
              .in_flight = json.at("in_flight").integer({.least = 0}),
              .requests = json.at("requests").integer(),
              .attained = json.at("attained").boolean(),
              .achieved_ms = {},
              .output_tokens_per_s = number_or_nan(json.at("output_tokens_per_s")),
              .tokens_per_s_of_user = number_or_nan(json.at("tokens_per_s_of_user")),
              .goodput = number_or_nan(json.at("goodput")),
              .failed_share = number_or_nan(json.at("failed_share")),
              .joules_per_token = read_headline(json.at("joules_per_token"))};
  if (const auto again = json.find("computed_again")) run.computed_again = again->number();
  for (const JsonView& each : json.at("achieved_ms").items()) run.achieved_ms.push_back(number_or_nan(each));
  return run;
}

// Those of one metric: places without one, and places and picoseconds of those that are not 0.
Json latencies_json(const LatencyLog& log, SloMetric metric) {
  Json without = Json::array();
  Json kept = Json::array();
  for (size_t i = 0; i < log.requests().size(); ++i) {
    const Picoseconds took = log.requests()[i].of(metric);
    if (took == LatencyLog::none) without.push(static_cast<int64_t>(i));
    if (took > 0) kept.push(static_cast<int64_t>(i)).push(took);
  }
  return Json::object(
      {{"metric", static_cast<int64_t>(metric)}, {"without", std::move(without)}, {"kept", std::move(kept)}});
}

void read_latencies(const JsonView& json, LatencyLog& log) {
  const auto requests = static_cast<int64_t>(log.requests().size());
  const auto metric = static_cast<SloMetric>(json.at("metric").integer());
  const auto place = [&](const JsonView& of) {
    return static_cast<size_t>(of.integer({.least = 0, .most = requests - 1}));
  };
  for (size_t i = 0; i < log.requests().size(); ++i) log.set(i, metric, 0);
  for (const JsonView& each : json.at("without").items()) log.set(place(each), metric, LatencyLog::none);
  const std::vector<JsonView> kept = json.at("kept").items();
  if (kept.size() % 2 != 0) json.fail("a place and a time of each");
  for (size_t i = 0; i < kept.size(); i += 2) log.set(place(kept[i]), metric, kept[i + 1].integer());
}

}  // namespace

Json judgement_json(const LayoutJudgement& judgement) {
  Json alone = Json::array();
  Json reachable = Json::array();
  Json filled = Json::array();
  for (const double each : judgement.alone_ms) alone.push(each);
  for (const int64_t each : judgement.reachable) reachable.push(each);
  for (const int64_t each : judgement.filled_blocks) filled.push(each);
  return Json::object({{"pruned", judgement.pruned ? Json(static_cast<int64_t>(*judgement.pruned)) : Json()},
                       {"most_requests_per_s", judgement.most_requests_per_s},
                       {"prompt_share", judgement.shape.prompt_share},
                       {"ttft_slack", judgement.shape.ttft_slack},
                       {"fresh_share", judgement.shape.fresh_share},
                       {"alone_share", judgement.shape.alone_share},
                       {"alone_ms", std::move(alone)},
                       {"reachable", std::move(reachable)},
                       {"filled_blocks", std::move(filled)}});
}

LayoutJudgement read_judgement(const JsonView& json) {
  LayoutJudgement judgement{.pruned = {},
                            .most_requests_per_s = json.at("most_requests_per_s").number(),
                            .shape = {.prompt_share = json.at("prompt_share").number(),
                                      .ttft_slack = json.at("ttft_slack").number(),
                                      .fresh_share = json.at("fresh_share").number(),
                                      .alone_share = json.at("alone_share").number()},
                            .alone_ms = {},
                            .reachable = {},
                            .filled_blocks = {}};
  for (const JsonView& each : json.at("filled_blocks").items()) judgement.filled_blocks.push_back(each.integer());
  for (const JsonView& each : json.at("reachable").items()) judgement.reachable.push_back(each.integer());
  for (const JsonView& each : json.at("alone_ms").items()) judgement.alone_ms.push_back(each.number());
  if (const auto pruned = json.find("pruned")) {
    judgement.pruned = static_cast<PruneReason>(pruned->integer({.least = 0, .most = prune_reasons - 1}));
  }
  return judgement;
}

Json point_json(const PlanPoint& point) {
  Json runs = Json::array();
  for (const PlanRun& run : point.runs) runs.push(run_json(run));
  return Json::object({{"capacity", headline_json(point.capacity)},
                       {"kv_tokens", point.kv_tokens},
                       {"short_part_capacity", point.short_part_capacity},
                       {"usual_capacity", point.usual_capacity},
                       {"lengthy_capacity", point.lengthy_capacity},
                       {"runs", std::move(runs)}});
}

Json outcome_json(const StretchOutcome& outcome, const StretchTask& task, std::span<const LatencySlo> limits) {
  Json latencies = Json::array();
  const bool is_judged_alone = !outcome.run || task.judged_together == 1;
  if (!is_judged_alone) {
    const LatencyLog thin = outcome.latencies.thinned(limits, task.judged_together);
    for (const LatencySlo& slo : limits) {
      if (slo.metric != SloMetric::itl) latencies.push(latencies_json(thin, slo.metric));
    }
  }
  const size_t requests = is_judged_alone ? 0 : outcome.latencies.requests().size();
  return Json::object({{"run", outcome.run ? run_json(*outcome.run) : Json()},
                       {"keeps_up", outcome.keeps_up},
                       {"ended_share", outcome.ended_share},
                       {"requests", static_cast<int64_t>(requests)},
                       {"latencies", std::move(latencies)}});
}

StretchOutcome read_outcome(const JsonView& json) {
  StretchOutcome outcome{.run = {},
                         .keeps_up = json.at("keeps_up").boolean(),
                         .ended_share = json.at("ended_share").number(),
                         .latencies = LatencyLog(json.at("requests").integer({.least = 0}))};
  if (const auto run = json.find("run")) outcome.run = read_run(*run);
  for (const JsonView& each : json.at("latencies").items()) read_latencies(each, outcome.latencies);
  return outcome;
}

PlanPoint read_point(const JsonView& json, const ServingLayout& layout, Effort effort) {
  PlanPoint point{.layout = layout,
                  .effort = effort,
                  .capacity = read_headline(json.at("capacity")),
                  .runs = {},
                  .kv_tokens = json.at("kv_tokens").integer(),
                  .short_part_capacity = json.at("short_part_capacity").number(),
                  .usual_capacity = json.at("usual_capacity").number()};
  if (const auto lengthy = json.find("lengthy_capacity")) point.lengthy_capacity = lengthy->number();
  for (const JsonView& run : json.at("runs").items()) point.runs.push_back(read_run(run));
  return point;
}

}  // namespace foretoken
