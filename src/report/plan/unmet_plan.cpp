#include "report/plan/unmet_plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/text.h"
#include "model/weights.h"
#include "plan/serving/layout_space.h"
#include "report/plan/serving_plan_words.h"
#include "report/plan/tried_engines.h"

namespace foretoken {
namespace {

std::string on_hardware(const ServingQuestion& question, const ServingLayout& layout) {
  return fmt::format("{} on {}", layout_text(layout), hardware_text(question, layout));
}

// "ttft<0.5" is half a millisecond; whoever writes that for a first token is likely to have meant seconds.
std::string meant_seconds(const ServingQuestion& question, const LatencySlo& slo, double fastest_ms) {
  constexpr double shortest_meant_ms = 10;
  const bool is_of_a_request = slo.metric == SloMetric::ttft || slo.metric == SloMetric::e2el;
  if (!is_of_a_request || slo.limit_ms >= shortest_meant_ms || 1000 * slo.limit_ms < fastest_ms) return "";
  const std::string key = slo_key(slo), limit = number_text(slo.limit_ms);
  return fmt::format(" If {} s was meant, write {}{}s{}.", limit, key.substr(0, key.find('<') + 1), limit,
                     question.joint_percent ? "" : fmt::format("@p{}", number_text(slo.percentile)));
}

// Latencies that no layout reaches, even for a request that runs alone.
std::string out_of_reach(const ServingPlanReport& report) {
  std::string text;
  const std::vector<FastestAlone>& fastest = report.result.fastest_alone;
  for (size_t i = 0; i < fastest.size(); ++i) {
    const LatencySlo& slo = report.question.slos[i];
    if (fastest[i].ms <= slo.limit_ms) continue;
    text += fmt::format(" {} is out of reach: even a request alone takes at least {}, with {}.", slo_text(slo),
                        duration_above(slo, fastest[i].ms), on_hardware(report.question, fastest[i].layout));
    text += meant_seconds(report.question, slo, fastest[i].ms);
  }
  return text;
}

// Where the budget and not the offer is what limits the devices.
std::string limited_by_budget(const ServingQuestion& question) {
  std::string text;
  for (const HardwareChoice& choice : question.hardware) {
    const int64_t devices = affordable_devices(question, choice);
    if (devices == choice.most_devices) continue;
    text += fmt::format(" The budget of ${:.2f} an hour pays for {} of {} x {} (${:.2f} each).",
                        question.budget_usd_per_hour.value_or(0), devices, choice.most_devices, choice.device.name,
                        choice.usd_per_hour.value_or(0));
  }
  return text;
}

std::string too_little_memory(const ServingPlanReport& report) {
  const double weights = weight_bytes(report.question.model).value();
  std::string offered;
  for (const HardwareChoice& choice : report.question.hardware) {
    const MaybeFact<Bytes>& memory = choice.device.memory;
    offered += fmt::format("{}{} x {} of {}", offered.empty() ? "" : ", ", affordable_devices(report.question, choice),
                           memory ? fmt::format("{:.0f} GB", memory->value.value() / 1e9) : "unknown memory",
                           choice.device.name);
  }
  std::string nodes;
  for (const HardwareChoice& choice : report.question.hardware) {
    if (choice.most_devices <= choice.node_devices) continue;
    nodes += fmt::format(" Tensor-parallel and expert-parallel ranks stay inside a node, which has {} of {}.",
                         choice.node_devices, choice.device.name);
  }
  return fmt::format(
             " No engine has room for the weights ({:.0f} GB in the model's own format) and the longest "
             "request on {}. Give more devices, or a narrower format ({{quantizations}}).",
             weights / 1e9, offered) +
         nodes;
}

// Why not one engine starts.
std::string does_not_start(const ServingPlanReport& report) {
  const ServingQuestion& question = report.question;
  const int64_t longest = report.traffic.lengths().totals.back();
  if (report.result.layouts == 0) {
    std::string text;
    for (const HardwareChoice& choice : question.hardware) {
      text += fmt::format(" No layout is possible on {}: {}.", choice.device.name,
                          why_no_layouts(question, choice, question.choices.engines.front()));
    }
    return text;
  }
  if (question.model.max_positions > 0 && longest > question.model.max_positions) {
    return fmt::format(" Its longest request has {} tokens, more than the {} positions of the model.", longest,
                       question.model.max_positions);
  }
  if (question.max_model_len > 0 && longest > question.max_model_len) {
    return fmt::format(" Its longest request has {} tokens, more than {{max_model_len}} {}.", longest,
                       question.max_model_len);
  }
  return too_little_memory(report) + limited_by_budget(question);
}

}  // namespace

std::string unmet_plan_text(const ServingPlanReport& report) {
  const ServingQuestion& question = report.question;
  const ServingSearchResult& result = report.result;
  std::string text =
      fmt::format("{} {}",
                  result.layouts == 1 ? "The only layout does not serve"
                                      : fmt::format("None of {} layouts serves", result.layouts - result.unexplored),
                  question.model.served_name());
  if (question.rate) text += fmt::format(" at {} requests/s", asked_rate_number(*question.rate));
  if (question.in_flight) text += " " + in_flight_words(*question.in_flight);
  text += fmt::format("{} {}.", question.in_flight ? " and" : " with", slos_text(question));
  if (result.fastest_alone.empty()) return text + does_not_start(report) + "\n";
  if (result.unexplored > 0) {
    text += fmt::format(" {} not tried and might succeed ({}).",
                        result.unexplored == 1 ? "1 layout was" : counted(result.unexplored, "layout") + " were",
                        result.stopped ? "the search was stopped" : "raise {most_simulated}");
  }
  const PlanPoint* best = most_capable(report.result);
  if (question.in_flight && best != nullptr && best->effort != Effort::promised && best->at_capacity() != nullptr) {
    return text + fmt::format(
                      " In shorter simulations, {} keeps the limits ({} at {} requests/s); the layouts that were "
                      "simulated at length do not. Plan for fewer requests in flight: {{find_max_concurrency}} "
                      "finds the most.\n",
                      on_hardware(question, best->layout), achieved_text(question, *best->at_capacity()),
                      rate_number(best->at_capacity()->rate));
  }
  if (best != nullptr) {
    text += fmt::format(" The best layout sustains {}: {}.", capacity_interval(best->capacity),
                        on_hardware(question, best->layout));
    if (question.rate && result.by_closed_form && best->capacity.high >= *question.rate) {
      text += " The rate lies within that interval: a search without {quick} may find a layout that serves it.";
    }
    if (question.rate) {
      const int64_t devices = devices_for_rate(*question.rate, *best);
      text += fmt::format(" {} requests/s would need about {} of these devices", asked_rate_number(*question.rate),
                          devices);
      if (const std::optional<double> usd = question.usd_per_hour(best->layout)) {
        text += fmt::format(" (${:.2f} an hour)",
                            *usd * static_cast<double>(devices) / static_cast<double>(best->layout.devices()));
      }
      text += ".";
      if (question.budget_usd_per_hour) {
        text += fmt::format(" The budget is ${:.2f} an hour.", *question.budget_usd_per_hour);
      }
    }
    return text + "\n";
  }
  const std::string unreachable = out_of_reach(report);
  if (!unreachable.empty()) return text + unreachable + limited_by_budget(question) + "\n";
  const NearRun nearest = nearest_run(report);
  if (nearest.run != nullptr) {
    text += fmt::format(" The nearest is {}: {} at {} requests/s.", on_hardware(question, nearest.point->layout),
                        achieved_text(question, *nearest.run), rate_number(nearest.run->rate));
    if (is_within_limits(question, *nearest.run)) {
      text += " That run keeps the limits, but so narrowly that other requests of the same traffic may not.";
    } else if (nearest.run->failed_share > 0) {
      text += fmt::format(" {:.2g}% of its requests failed.", 100 * nearest.run->failed_share);
    } else if (question.joint_percent) {
      text +=
          fmt::format(" Fewer than {}% of its requests keep all limits at once.", number_text(*question.joint_percent));
    }
  }
  return text + "\n";
}

Json reachable_json(const ServingPlanReport& report) {
  Json alone = Json::array();
  for (size_t i = 0; i < report.result.fastest_alone.size(); ++i) {
    const FastestAlone& one = report.result.fastest_alone[i];
    alone.push(
        Json::object({{"slo", slo_key(report.question.slos[i])}, {"least_ms", one.ms}, {"key", one.layout.key()}}));
  }
  Json json =
      Json::object({{"alone", std::move(alone)}, {"most_requests_per_s", Json()}, {"devices_for_rate", Json()}});
  if (const PlanPoint* best = most_capable(report.result)) {
    json.set("most_requests_per_s", best->capacity.value);
    json.set("key", best->layout.key());
    if (report.question.rate) json.set("devices_for_rate", devices_for_rate(*report.question.rate, *best));
  }
  return json;
}

}  // namespace foretoken
