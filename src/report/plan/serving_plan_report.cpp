#include "report/plan/serving_plan_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/text.h"
#include "plan/serving/launch_command.h"
#include "report/parts/json_rows_csv.h"
#include "report/parts/model_notes.h"
#include "report/parts/table.h"
#include "report/plan/day_report.h"
#include "report/plan/goal_seek_report.h"
#include "report/plan/serving_plan_notes.h"
#include "report/plan/serving_plan_words.h"
#include "report/plan/tried_engines.h"
#include "report/plan/unmet_plan.h"
#include "report/serving/run_explanation_report.h"

namespace foretoken {
namespace {

constexpr size_t most_plan_rows = 12;
constexpr std::pair<FrontierMeasure, const char*> frontier_measure_names[] = {
    {FrontierMeasure::work, "work"}, {FrontierMeasure::cost, "cost"}, {FrontierMeasure::energy, "energy"}};

std::string usd_text(const std::optional<double>& usd) {
  return usd ? fmt::format("{:.2f}", *usd) : "-";
}

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

std::string cost_text(const ServingQuestion& question, const PlanPoint& point) {
  const std::optional<double> usd = question.usd_per_hour(point.layout);
  const PlanRun* run = shown_run(question, point);
  if (!usd || run == nullptr) return "";
  const std::optional<double>& budget = question.budget_usd_per_hour;
  return fmt::format(", for ${:.2f} an hour{} (${:.2f} per million output tokens{})", *usd,
                     budget ? fmt::format(" within the budget of ${:.2f}", *budget) : "",
                     usd_per_million_tokens(question, point.layout, *run).value_or(0),
                     question.rate ? fmt::format(" at {} requests/s", asked_rate_number(*question.rate)) : "");
}

std::string joules_text(const PlanRun& run) {
  return run.joules_per_token.value > 0 ? fmt::format("{:.2f}", run.joules_per_token.value) : "-";
}

std::string energy_text(const ServingQuestion& question, const PlanPoint& point) {
  const PlanRun* run = shown_run(question, point);
  if (run == nullptr || run->joules_per_token.value <= 0) return "";
  const Headline& each = run->joules_per_token;
  return fmt::format(", and {:.2f} J ({:.2f} to {:.2f}) of facility energy per output token", each.value, each.low,
                     each.high);
}

std::string names_of_limits(const ServingQuestion& question) {
  std::string names;
  for (const LatencySlo& slo : question.slos) {
    const std::string text = slo_text(slo);
    names += fmt::format("{}{}", names.empty() ? "" : "/", text.substr(0, text.find(' ')));
  }
  return names;
}

std::string milliseconds_of(const PlanRun& run) {
  std::string text;
  for (const double ms : run.achieved_ms) {
    text +=
        fmt::format("{}{}", text.empty() ? "" : "/", ms >= 100 ? fmt::format("{:.0f}", ms) : fmt::format("{:.3g}", ms));
  }
  return text;
}

std::string usd_interval_text(const ServingQuestion& question, const PlanPoint& point, const PlanRun& run) {
  const auto digits = [](double usd) { return usd >= 9.995 ? fmt::format("{:.3g}", usd) : fmt::format("{:.2f}", usd); };
  const std::optional<Headline> interval = usd_per_million_interval(question, point);
  if (interval && std::isinf(interval->high)) {
    return fmt::format("{} ({} or more)", digits(interval->value), digits(interval->low));
  }
  if (interval) {
    return fmt::format("{} ({}-{})", digits(interval->value), digits(interval->low), digits(interval->high));
  }
  const std::optional<double> usd = usd_per_million_tokens(question, point.layout, run);
  return usd ? digits(*usd) : "-";
}

// Capacities are compared as far as they were found alike: only the winner's is promised, and by shorter simulations
// it sustains more.
std::string tie_words(const PlanPoint& winner, const PlanPoint& second) {
  const bool is_fair = winner.effort == second.effort || winner.lengthy_capacity <= 0 || second.lengthy_capacity <= 0;
  if (is_fair) {
    return fmt::format("the second sustains {}, and the difference is smaller than the prediction error",
                       capacity_interval(second.capacity));
  }
  return fmt::format(
      "in simulations of the same length they sustain {} and {} requests/s, and the difference is smaller than the "
      "prediction error",
      rate_number(winner.lengthy_capacity), rate_number(second.lengthy_capacity));
}

// What a layout sustains; of a closed loop, what comes of the requests in flight.
std::string sustained_words(const ServingQuestion& question, const PlanPoint& point) {
  const PlanRun* run = point.at_capacity();
  if (!question.in_flight || run == nullptr || run->in_flight == 0) {
    return fmt::format("it sustains {} with {}", capacity_interval(point.capacity), slos_text(question));
  }
  return fmt::format("it serves {} ({:.0f} output tokens/s) {} and keeps {} ({})", capacity_interval(point.capacity),
                     run->output_tokens_per_s, in_flight_words(*question.in_flight), slos_text(question),
                     achieved_text(question, *run));
}

// The layout whose capacity is promised, whether it serves the rate asked for or not.
const PlanPoint* promised_point(const ServingPlanReport& report) {
  const PlanPoint* best = report.result.winner();
  if (best == nullptr && report.result.without_rate) best = report.result.without_rate->winner();
  return best != nullptr && best->effort == Effort::promised ? best : nullptr;
}

std::string estimate_words(const ServingPlanReport& report) {
  if (report.result.by_closed_form) return "by closed form";
  const PlanPoint* promised = promised_point(report);
  if (promised == nullptr || rate_number(promised->lengthy_capacity) == rate_number(promised->capacity.value)) {
    return "from shorter simulations";
  }
  return fmt::format("from shorter simulations, in which {} sustains {} requests/s",
                     report.result.winner() != nullptr ? "the best layout" : "the layout of the first row",
                     rate_number(promised->lengthy_capacity));
}

size_t simulated_layouts(const ServingPlanReport& report, const TriedEngine& tried) {
  std::set<std::string> keys;
  const auto add = [&](const std::vector<PlanPoint>& points) {
    for (const PlanPoint& point : points) {
      if (is_of(point.layout, tried)) keys.insert(point.layout.key());
    }
  };
  add(report.result.points);
  if (report.result.without_rate) add(report.result.without_rate->points);
  return keys.size();
}

// A row for every device with every engine; what serves nothing is listed below with its reason.
std::string decision_text(const ServingPlanReport& report) {
  const ServingQuestion& question = report.question;
  std::vector<Table::Column> columns = {{"layout", Table::Align::left},
                                        {.title = "device", .align = Table::Align::left, .is_name = true},
                                        {"GPUs"},
                                        {question.in_flight ? "req/s" : "max req/s"}};
  if (question.rate) columns.push_back({"headroom"});
  columns.insert(columns.end(),
                 {{names_of_limits(question)}, {"$/Mtok (90%)"}, {"J/tok"}, {"based on", Table::Align::left}});
  Table table(std::move(columns));
  std::string reasons;
  bool is_empty = true;
  for (const DecisionRow& row : decision_rows(report)) {
    const std::string engine = row.tried != nullptr ? fmt::format("{} on {}", row.tried->engine, row.tried->device)
                                                    : fmt::format("{} on {}", row.point->layout.pool.engine.engine,
                                                                  devices_text(row.point->layout));
    if (!row.reason.empty()) reasons += wrap_lines(fmt::format("  {}: {}.\n", engine, row.reason), page_width(), 4);
    if (row.point == nullptr) continue;
    const PlanPoint& point = *row.point;
    const PlanRun* run = row.serves ? shown_run(question, point) : point.at_capacity();
    const std::string mark = row.is_best ? "best: " : row.is_tied ? "tied: " : row.serves ? "" : "below rate: ";
    std::vector<std::string> cells = {
        mark + layout_text(point.layout), devices_text(point.layout), fmt::format("{}", point.layout.devices()),
        (point.effort == Effort::promised ? "" : "~") + rate_number(point.capacity.value)};
    if (question.rate) cells.push_back(fmt::format("{:+.0f}%", 100 * (point.capacity.value / *question.rate - 1)));
    cells.push_back(run != nullptr ? milliseconds_of(*run) : "-");
    cells.push_back(run != nullptr ? usd_interval_text(question, point, *run) : "-");
    cells.push_back(run != nullptr ? joules_text(*run) : "-");
    cells.push_back(rests_on_text(question, point.layout));
    table.add(std::move(cells));
    is_empty = false;
    if (point.effort == Effort::closed_form && !report.result.by_closed_form) {
      reasons += wrap_lines(
          fmt::format("  {} was not simulated before the search was stopped: its row is by closed form.\n", engine),
          page_width(), 4);
    }
    if (const bool is_short = point.effort == Effort::quick || point.effort == Effort::ranged;
        is_short && row.tried != nullptr) {
      reasons +=
          wrap_lines(fmt::format("  {} was rated by short simulations of {} of its {}: another layout may do better.\n",
                                 engine, simulated_layouts(report, *row.tried), counted(row.tried->layouts, "layout")),
                     page_width(), 4);
    }
    if (run != nullptr && point.capacity.low <= 0) {
      reasons +=
          wrap_lines(fmt::format("  {} {} at the slow end of its step times: its cost has no upper end.\n", engine,
                                 question.in_flight ? "does not keep the limits" : "keeps the limits at no rate"),
                     page_width(), 4);
    }
    const double ranked = ranked_capacity(question, report.result, point);
    if (question.is_judged_by_slow_end(point.layout) && ranked < point.capacity.value) {
      reasons += wrap_lines(
          fmt::format("  {} is ranked by the slow end of its interval: {} requests/s.\n", engine, rate_number(ranked)),
          page_width(), 4);
    }
  }
  const std::string at = question.rate        ? fmt::format("at {} requests/s", asked_rate_number(*question.rate))
                         : question.in_flight ? in_flight_words(*question.in_flight)
                                              : "at the most requests/s that it sustains";
  std::string text = wrap_lines(
      fmt::format("The best layout of each device and engine {} (latencies in ms at the percentiles asked for{}; ~ {}; "
                  "tied = within prediction error of the best{}):\n",
                  at,
                  report.result.by_closed_form ? ", estimated, not simulated: latency is assumed to rise from that of "
                                                 "a single request to the limit at capacity"
                                               : "",
                  estimate_words(report),
                  question.rate ? "; below rate = sustains less than was asked for, shown at its own maximum" : ""),
      page_width(), 2);
  text = is_empty ? "" : text + table.text();
  if (reasons.empty()) return text;
  return text + (is_empty ? "Why no device and engine serves this:\n" : "Notes on these rows:\n") + reasons;
}

// What a run of the frontier is best in: "throughput $ J".
std::string best_in_text(const FrontierRun& one) {
  constexpr std::array<std::string_view, frontier_measures> names = {"throughput", "$", "J"};
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (one.best_in[i]) text += (text.empty() ? "" : " ") + std::string(names[i]);
  }
  return text;
}

// Of a run that does not keep its limits: several stretches may keep them together, and leave a doubt for others.
std::string broken_words(const ServingQuestion& question, const PlanRun& run) {
  for (size_t i = 0; i < question.slos.size(); ++i) {
    if (!(run.achieved_ms[i] <= question.slos[i].limit_ms)) return "exceeds the limits";
  }
  return question.joint_percent || run.failed_share > 0 ? "exceeds the limits"
                                                        : "may exceed the limits with other requests";
}

// Latencies of the winner from a light load to more than it sustains.
std::string curve_text(const ServingPlanReport& report) {
  const ServingQuestion& question = report.question;
  const bool is_closed = question.in_flight.has_value();
  const PlanRun* knee = is_closed ? nullptr : knee_of(report.result.curve);
  std::vector<Table::Column> columns = {
      {"req/s"}, {names_of_limits(question)}, {"tok/s/user"}, {"tok/s/GPU"}, {"", Table::Align::left}};
  if (is_closed) columns.insert(columns.begin(), {"in flight"});
  Table table(std::move(columns));
  const auto devices = static_cast<double>(report.result.winner()->layout.devices());
  const double capacity = report.result.winner()->capacity.value;
  for (const PlanRun& run : report.result.curve) {
    std::string remark = !run.attained                       ? broken_words(question, run)
                         : !is_closed && run.rate > capacity ? "above the capacity"
                         : &run == knee                      ? "knee"
                                                             : "";
    if (question.rate && run.rate == *question.rate) remark += remark.empty() ? "asked for" : ", asked for";
    if (is_closed && run.in_flight == *question.in_flight) remark += remark.empty() ? "asked for" : ", asked for";
    std::vector<std::string> cells = {rate_number(run.rate), milliseconds_of(run),
                                      fmt::format("{:.1f}", run.tokens_per_s_of_user),
                                      fmt::format("{:.0f}", run.output_tokens_per_s / devices), remark};
    if (is_closed) cells.insert(cells.begin(), fmt::format("{}", run.in_flight));
    table.add(std::move(cells));
  }
  if (is_closed) {
    return wrap_lines(
               "Latency of the best layout against the number of requests in flight (ms at the percentiles asked "
               "for; other numbers from one simulation each):\n",
               page_width(), 2) +
           table.text();
  }
  std::string text = wrap_lines(
      fmt::format("Latency of the best layout against request rate, from a tenth of its capacity of {} requests/s to "
                  "25% above it (ms at the percentiles asked for, {}):\n",
                  rate_number(capacity),
                  "from short simulations; at the capacity, and where short simulations contradict it, from the long "
                  "ones that the capacity is judged by"),
      page_width(), 2);
  text += table.text();
  if (knee == nullptr) return text;
  return text + wrap_lines(fmt::format("The knee is at {} requests/s: beyond it, the speed for each user falls faster "
                                       "than throughput grows.\n",
                                       rate_number(knee->rate)),
                           page_width(), 2);
}

std::string explanation_text(const LayoutExplanation& explanation) {
  const std::string load = explanation.in_flight > 0 ? in_flight_words(explanation.in_flight)
                                                     : fmt::format("at {} requests/s", rate_number(explanation.rate));
  return fmt::format("In one simulation {}, {}\n", load, run_explanation_words(explanation.run));
}

Json explanation_json(const LayoutExplanation& explanation) {
  Json json = Json::object({{"rate", explanation.rate}});
  if (explanation.in_flight > 0) json.set("in_flight", explanation.in_flight);
  set_run_explanation(json, explanation.run);
  return json;
}

std::string frontier_table(const ServingPlanReport& report) {
  Table table({{"tok/s/user"},
               {"tok/s/GPU"},
               {"req/s"},
               {"$/Mtok"},
               {"J/tok"},
               {"best in", Table::Align::left},
               {"layout", Table::Align::left}});
  const std::vector<FrontierRun>& frontier = report.result.frontier;
  const size_t step = std::max<size_t>(1, (frontier.size() + most_plan_rows - 1) / most_plan_rows);
  for (size_t i = 0; i < frontier.size(); i += step) {
    const PlanPoint& point = report.result.points[frontier[i].point];
    const PlanRun& run = point.runs[frontier[i].run];
    table.add({fmt::format("{:.1f}", frontier[i].tokens_per_s_of_user),
               fmt::format("{:.0f}", frontier[i].tokens_per_s_of_device), rate_number(run.rate),
               usd_text(usd_per_million_tokens(report.question, point.layout, run)), joules_text(run),
               best_in_text(frontier[i]), layout_text(point.layout) + " on " + devices_text(point.layout)});
  }
  return table.text();
}

// The rate that was asked for; without one, the search looks for the most that a layout sustains.
std::string asked_rate_words(const ServingPlanReport& report) {
  const std::optional<double>& rate = report.question.rate;
  if (report.question.in_flight) {
    return fmt::format("; {} requests are always in flight (a new request starts when one ends)",
                       *report.question.in_flight);
  }
  if (!rate) return "";
  const Traffic& traffic = report.traffic;
  const std::string conversations =
      traffic.has_conversations()
          ? fmt::format(" ({} conversations/s of {} each)", asked_rate_number(*rate / traffic.requests_each()),
                        requests_each_text(traffic))
          : "";
  return fmt::format(" and arrive at {} requests/s{}", asked_rate_number(*rate), conversations);
}

// Tokens that engines are set up for, and how many requests have more.
std::string longest_request_words(const ServingPlanReport& report) {
  const std::vector<int64_t>& totals = report.traffic.lengths().totals;
  const int64_t most = planned_model_len(report.question, report.traffic);
  const auto longer = totals.end() - std::upper_bound(totals.begin(), totals.end(), most);
  if (longer == 0) return "Engines are set up for the longest request.";
  return fmt::format(
      "Engines are set up for {} tokens, {}: {:.2g}% of the requests are longer (up to {} tokens). Engines refuse "
      "them, "
      "and they count as failed.",
      most, report.question.max_model_len > 0 ? "as asked" : "the most that the model supports",
      100 * static_cast<double>(longer) / static_cast<double>(totals.size()), totals.back());
}

// What a conversation rate of this capacity is, and how its requests reach several engines.
std::string conversations_text(const Traffic& traffic, const PlanPoint& point) {
  if (!traffic.has_conversations()) return "";
  const double each = traffic.requests_each();
  std::string text = fmt::format(
      " That is {:.4g} conversations/s ({:.3g} to {:.3g}) of {} each, the {{request_rate}} of `foretoken serve`.",
      point.capacity.value / each, point.capacity.low / each, point.capacity.high / each, requests_each_text(traffic));
  if (point.layout.pool.replicas > 1) {
    text +=
        fmt::format(" The router must keep each conversation on one engine ({{router}} {}).", router_of_conversations);
  }
  return text;
}

void set_conversations(Json& json, const Traffic& traffic, const char* name, double requests_per_s) {
  if (traffic.has_conversations()) json.set(name, requests_per_s / traffic.requests_each());
}

std::string search_text(const ServingSearchResult& result) {
  const auto line = [](auto count, const std::string& what) { return fmt::format("  {} {}\n", count, what); };
  std::string text = fmt::format("Of {}:\n", counted(result.layouts, "layout")) +
                     line(result.points.size(), result.by_closed_form ? "shown, by closed form" : "simulated");
  if (result.merged > 0)
    text += line(result.merged, "the same as another: they differ only in limits that no run reaches");
  for (size_t i = 0; i < prune_reasons; ++i) {
    if (result.pruned[i] == 0) continue;
    text += line(result.pruned[i], fmt::format("ruled out: {}", prune_reason_text(static_cast<PruneReason>(i))));
  }
  if (result.beaten > 0)
    text += line(result.beaten, "skipped: they cannot be expected to beat the best of their device");
  if (result.unexplored > 0) {
    text += line(result.unexplored, result.stopped
                                        ? "not tried, because the search was stopped, although some might be better"
                                        : "not tried, although some might be better (raise {most_simulated})");
  }
  if (result.without_rate && !result.without_rate->points.empty()) {
    text += line(result.without_rate->points.size(), fmt::format("{} for their own maximum, on devices below the rate",
                                                                 result.by_closed_form ? "judged" : "simulated"));
  }
  if (result.largest_gap > 0) {
    text += fmt::format(
        "There are too many layouts to judge every number of replicas: the numbers tried are up to {:.2g}% apart.\n",
        100 * result.largest_gap);
  }
  return text;
}

Json plan_run_json(const ServingPlanReport& report, const PlanPoint& point, const PlanRun& run) {
  const ServingQuestion& question = report.question;
  Json json = Json::object(
      {{"rate", run.rate},
       {"requests", run.requests},
       {"attained", run.attained},
       {"output_tokens_per_s", run.output_tokens_per_s},
       {"tokens_per_s_per_device", run.output_tokens_per_s / static_cast<double>(point.layout.devices())},
       {"tokens_per_s_per_user", run.tokens_per_s_of_user},
       {"goodput", run.goodput},
       {"failed_share", run.failed_share},
       {"usd_per_million_output_tokens", number_or_null(usd_per_million_tokens(question, point.layout, run))}});
  const Headline& joules = run.joules_per_token;
  json.set(
      "joules_per_output_token",
      joules.value > 0 ? Json::object({{"value", joules.value}, {"low", joules.low}, {"high", joules.high}}) : Json());
  for (size_t i = 0; i < question.slos.size(); ++i) json.set(slo_key(question.slos[i]), run.achieved_ms[i]);
  set_conversations(json, report.traffic, "conversations_per_s", run.rate);
  if (run.in_flight > 0) json.set("in_flight", run.in_flight);
  return json;
}

Json point_json(const ServingPlanReport& report, const PlanPoint& point) {
  const ServingQuestion& question = report.question;
  Json json = Json::object(
      {{"key", point.layout.key()},
       {"layout", layout_text(point.layout)},
       {"device", devices_text(point.layout)},
       {"engine", point.layout.pool.engine.engine},
       {"devices", point.layout.devices()},
       {"usd_per_hour", number_or_null(question.usd_per_hour(point.layout))},
       {"effort", effort_name(point.effort)},
       {"capacity_requests_per_s",
        Json::object({{"value", point.capacity.value}, {"low", point.capacity.low}, {"high", point.capacity.high}})},
       {"kv_tokens", point.kv_tokens}});
  set_conversations(json, report.traffic, "capacity_conversations_per_s", point.capacity.value);
  const PlanRun* run = shown_run(question, point);
  json.set("run", run != nullptr ? plan_run_json(report, point, *run) : Json());
  return json;
}

// An entry for each device and engine, in the question's order.
Json decision_json(const ServingPlanReport& report) {
  const std::vector<DecisionRow> rows = decision_rows(report);
  Json list = Json::array();
  for (const TriedEngine& tried : report.result.tried) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const DecisionRow& one) { return one.tried == &tried; });
    ensure(row != rows.end(), "every engine on every device has a row");
    const PlanPoint* point = row->point;
    const std::optional<Headline> usd =
        point != nullptr && row->serves ? usd_per_million_interval(report.question, *point) : std::nullopt;
    const bool has_headroom = point != nullptr && report.question.rate;
    list.push(Json::object(
        {{"device", tried.device},
         {"engine", tried.engine},
         {"layouts", tried.layouts},
         {"simulated", tried.simulated},
         {"sheet_only", report.question.hardware_of(tried.device).sheet_only},
         {"sheet_share", report.question.hardware_of(tried.device).sheet_share},
         {"serves", row->serves},
         {"place", point != nullptr && row->serves ? Json(static_cast<int64_t>(row - rows.begin()) + 1) : Json()},
         {"tied_with_best", row->is_tied},
         {"best", point != nullptr ? Json(point->layout.key()) : Json()},
         {"answer", point != nullptr ? point_json(report, *point) : Json()},
         {"headroom", has_headroom ? Json(point->capacity.value / *report.question.rate - 1) : Json()},
         {"usd_per_million_output_tokens",
          usd ? Json::object({{"value", usd->value}, {"low", usd->low}, {"high", usd->high}}) : Json()},
         {"rests_on", point != nullptr ? Json(rests_on_text(report.question, point->layout)) : Json()},
         {"reason", row->reason.empty() ? Json() : Json(row->reason)}}));
  }
  return list;
}

// A command that a shell reads as one line, though it is broken before flags.
std::string shell_lines(const std::string& command) {
  const size_t most = page_width() - 4;  // the indent, and what follows a line
  std::string text;
  size_t width = 0;
  for (const std::string_view word : split(command, " ")) {
    if (width > 0 && width + 1 + word.size() > most) {
      text += " \\\n    ";
      width = 4;
    } else if (width > 0) {
      text += ' ';
    }
    text += word;
    width += 1 + word.size();
  }
  return text;
}

// Null where nothing was simulated, or nothing wins.
Json curve_json(const ServingPlanReport& report) {
  if (report.result.curve.empty()) return {};
  Json runs = Json::array();
  for (const PlanRun& run : report.result.curve) {
    runs.push(plan_run_json(report, *report.result.winner(), run));
  }
  const PlanRun* knee = knee_of(report.result.curve);
  return Json::object(
      {{"runs", std::move(runs)}, {"knee_requests_per_s", knee != nullptr ? Json(knee->rate) : Json()}});
}

}  // namespace

std::string serving_plan_sentence(const ServingPlanReport& report) {
  const ServingQuestion& question = report.question;
  const PlanPoint* winner = report.result.winner();
  if (winner == nullptr) return unmet_plan_text(report);
  std::string text =
      fmt::format("Serve {} on {} as {}: {}", question.model.served_name(), hardware_text(question, winner->layout),
                  layout_text(winner->layout), sustained_words(question, *winner));
  text += cost_text(question, *winner) + energy_text(question, *winner) + ".";
  text += conversations_text(report.traffic, *winner);
  if (question.rate) {
    if (const PlanRun* run = winner->at_rate(*question.rate)) {
      text += fmt::format(" At {} requests/s: {}.", asked_rate_number(*question.rate), achieved_text(question, *run));
    }
    if (winner->capacity.low < *question.rate) {
      const std::string slow = winner->capacity.low > 0
                                   ? fmt::format("sustains only {} requests/s", rate_number(winner->capacity.low))
                                   : "cannot meet the limits at any rate";
      text += fmt::format(" At the slow end of the interval it {} ({{pessimistic}} plans for that case).", slow);
    }
  }
  constexpr double least_share = 0.33;
  if (question.in_flight && !report.result.by_closed_form && winner->capacity.low <= 0) {
    text += " At the slow end of the interval it does not keep the limits ({pessimistic} plans for that case).";
  } else if (winner->capacity.low < least_share * winner->capacity.value) {
    text += report.result.by_closed_form ? " That interval is wide because nothing was simulated."
            : question.is_judged_by_slow_end(winner->layout)
                ? " That interval is too wide to rely on: little was measured on this device."
                : " That interval is too wide to rely on: a small error in step times decides whether the limits are "
                  "kept.";
  }
  const std::vector<size_t> alike = indistinguishable(question, report.result);
  if (!alike.empty()) {
    const PlanPoint& second = report.result.points[alike.front()];
    const std::string others = alike.size() > 1 ? " and " + counted(alike.size() - 1, "other") : "";
    text += fmt::format(" The winner and {} on {}{} are too close to call: {}.", layout_text(second.layout),
                        hardware_text(question, second.layout), others, tie_words(*winner, second));
  }
  return text + "\n";
}

std::string launch_text(const ServingPlanReport& report, const ServingLayout& layout,
                        const std::optional<HostPlace>& shared) {
  std::string text;
  for (const LaunchCommand& command :
       launch_commands(report.question, layout, planned_model_len(report.question, report.traffic), shared)) {
    if (command.count > 1 && command.hosts == 1 && !command.is_of_further_host) {
      text += fmt::format("  # {} {}servers, each on devices of its own\n", command.count,
                          command.role.empty() ? "" : command.role + " ");
    }
    if (!command.line.empty()) text += "  " + shell_lines(command.line) + "\n";
    if (!command.note.empty()) text += "  # " + command.note + "\n";
  }
  return text;
}

Json launch_json(const ServingPlanReport& report, const ServingLayout& layout, const std::optional<HostPlace>& shared) {
  Json list = Json::array();
  for (const LaunchCommand& command :
       launch_commands(report.question, layout, planned_model_len(report.question, report.traffic), shared)) {
    list.push(Json::object(
        {{"count", command.count}, {"role", command.role}, {"line", command.line}, {"note", command.note}}));
  }
  return list;
}

std::string serving_plan_text(const ServingPlanReport& report) {
  const std::vector<std::string> notes = serving_plan_notes(report);
  std::string text = model_warnings_text(notes) + wrap_lines(serving_plan_sentence(report), page_width(), 2);
  if (const PlanPoint* winner = report.result.winner()) {
    text += "\nTo start it:\n" + launch_text(report, winner->layout);
  }
  text += notes_text(notes);
  if (!report.result.tried.empty()) text += "\n" + decision_text(report);
  if (report.explanation != nullptr) {
    text += "\n" + wrap_lines(explanation_text(*report.explanation), page_width(), 2);
  }
  if (report.day != nullptr) text += "\n" + day_plan_text(*report.day);
  if (report.sought != nullptr) text += "\n" + goal_seek_text(report);
  if (!report.result.curve.empty()) text += "\n" + curve_text(report);
  if (!report.result.frontier.empty()) {
    text +=
        "\n" +
        wrap_lines(
            fmt::format("Trade-off between speed for each user (tok/s/user) and throughput, cost and energy. No {} "
                        "that is at least as fast for a user has more tokens/s per GPU (best in: throughput), a lower "
                        "cost ($) or less facility energy (J):\n",
                        report.result.by_closed_form ? "layout shown" : "simulated run"),
            page_width(), 2) +
        frontier_table(report);
  }
  const TrafficLengths& lengths = report.traffic.lengths();
  text +=
      "\n" +
      wrap_lines(search_text(report.result) +
                     fmt::format("Requests average {:.0f} prompt and {:.0f} output tokens{}. {} Intervals cover {}.\n",
                                 lengths.mean_input, lengths.mean_output, asked_rate_words(report),
                                 longest_request_words(report),
                                 report.result.by_closed_form
                                     ? "the range of shares of the bound that simulated layouts reached"
                                     : "the error of step times and the variation between samples of such requests"),
                 page_width(), 0);
  return text + device_notes_text(plan_device_notes(report));
}

Json serving_plan_json(const ServingPlanReport& report) {
  const ServingQuestion& question = report.question;
  const ServingSearchResult& result = report.result;
  Json slos = Json::array(), ranking = Json::array(), frontier = Json::array(), points = Json::array();
  for (const LatencySlo& slo : question.slos) slos.push(slo_key(slo));
  for (const size_t i : result.ranking) ranking.push(point_json(report, result.points[i]));
  for (const PlanPoint& point : result.points) points.push(point_json(report, point));
  for (const FrontierRun& one : result.frontier) {
    const PlanPoint& point = result.points[one.point];
    Json row = plan_run_json(report, point, point.runs[one.run]);
    row.set("key", point.layout.key());
    Json best_in = Json::array();
    for (const auto& [measure, name] : frontier_measure_names) {
      if (one.best_in[static_cast<size_t>(measure)]) best_in.push(name);
    }
    row.set("best_in", std::move(best_in));
    frontier.push(std::move(row));
  }
  Json pruned = Json::object();
  for (size_t i = 0; i < prune_reasons; ++i) {
    pruned.set(std::string(prune_reason_text(static_cast<PruneReason>(i))), result.pruned[i]);
  }
  Json notes = Json::array();
  for (const std::string& note : serving_plan_notes(report)) notes.push(note);
  Json alike = Json::array();
  for (const size_t i : indistinguishable(question, result)) alike.push(result.points[i].layout.key());
  Json json = Json::object({{"sentence", serving_plan_sentence(report)},
                            {"model", question.model.served_name()},
                            {"slos", std::move(slos)},
                            {"attainment_percent", number_or_null(question.joint_percent)},
                            {"rate", number_or_null(question.rate)},
                            {"in_flight", question.in_flight ? Json(*question.in_flight) : Json()},
                            {"layouts", result.layouts},
                            {"pruned", std::move(pruned)},
                            {"merged", result.merged},
                            {"beaten", result.beaten},
                            {"unexplored", result.unexplored},
                            {"stopped", result.stopped}});
  if (report.traffic.has_conversations()) json.set("requests_per_conversation", report.traffic.requests_each());
  if (result.largest_gap > 0) json.set("largest_gap_of_replicas", result.largest_gap);
  const PlanPoint* winner = result.winner();
  json.set("winner", winner != nullptr ? point_json(report, *winner) : Json());
  json.set("commands", winner != nullptr ? launch_json(report, winner->layout) : Json::array());
  json.set("notes", std::move(notes));
  json.set("not_distinguishable", std::move(alike));
  json.set("ranking", std::move(ranking));
  if (report.sought != nullptr) {
    json.set("goal_seek", goal_seek_json(report));
    json.set("goal_seek_stopped", report.sought->stopped);
  }
  if (report.day != nullptr) json.set("day", day_plan_json(*report.day));
  json.set("explanation", report.explanation != nullptr ? explanation_json(*report.explanation) : Json());
  json.set("curve", curve_json(report));
  json.set("frontier", std::move(frontier));
  json.set("points", std::move(points));
  json.set("by_device_and_engine", decision_json(report));
  json.set("ranked_by_slow_end", result.ranked_by_slow_end);
  set_device_notes(json, plan_device_notes(report));
  json.set("reachable", winner == nullptr ? reachable_json(report) : Json());
  return json;
}

std::string serving_plan_csv(const ServingPlanReport& report) {
  Json rows = Json::array();
  for (const PlanPoint& point : report.result.points) {
    for (const PlanRun& run : point.runs) {
      Json row = Json::object({{"key", point.layout.key()},
                               {"devices", point.layout.devices()},
                               {"usd_per_hour", number_or_null(report.question.usd_per_hour(point.layout))},
                               {"effort", effort_name(point.effort)},
                               {"capacity", point.capacity.value}});
      const Json run_columns = plan_run_json(report, point, run);
      for (const Json::Member& member : run_columns.members()) row.set(member.first, member.second);
      rows.push(std::move(row));
    }
  }
  return json_rows_csv(rows);
}

}  // namespace foretoken
