#include "report/serving_plan_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "compose/device_formats.h"
#include "plan/serving/launch_command.h"
#include "plan/serving/layout_space.h"
#include "report/json_rows_csv.h"
#include "report/serving_plan_words.h"
#include "report/table.h"
#include "report/tried_engines.h"
#include "report/unmet_plan.h"

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
  return fmt::format(", for ${:.2f} an hour (${:.2f} per million output tokens{})", *usd,
                     usd_per_million_tokens(question, point.layout, *run).value_or(0),
                     question.rate ? fmt::format(" at {} requests/s", number_text(*question.rate)) : "");
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

// The points to show, best first: those simulated at length in their order, then by capacity.
std::vector<size_t> shown_order(const ServingPlanReport& report) {
  const ServingSearchResult& result = report.result;
  std::vector<size_t> order = result.ranking, others;
  for (size_t i = 0; i < result.points.size(); ++i) {
    const bool ranked = std::find(order.begin(), order.end(), i) != order.end();
    if (!ranked && result.points[i].capacity.value > 0) others.push_back(i);
  }
  const auto score = [&](size_t i) {
    const PlanPoint& point = result.points[i];
    const auto own = layout_score(report.question, point.layout, ranked_capacity(report.question, result, point));
    return own.value_or(LayoutScore{.first = -1e300, .second = point.capacity.value});
  };
  std::stable_sort(others.begin(), others.end(), [&](size_t a, size_t b) { return score(a) > score(b); });
  order.insert(order.end(), others.begin(), others.end());
  return order;
}

Table layouts_table() {
  return Table({{"layout", Table::Align::left},
                {"device", Table::Align::left},
                {"GPUs"},
                {"max req/s"},
                {"tok/s/GPU"},
                {"tok/s/user"},
                {"$/h"},
                {"$/Mtok"},
                {"J/tok"}});
}

void add_layout(Table& table, const ServingQuestion& question, const PlanPoint& point, const PlanRun* run) {
  const auto devices = static_cast<double>(point.layout.devices());
  const std::string about = point.effort == Effort::quick ? "~" : "";
  const bool serves = !question.rate || point.capacity.value >= *question.rate;
  table.add({layout_text(point.layout), devices_text(point.layout), fmt::format("{}", point.layout.devices()),
             about + rate_number(point.capacity.value) + (serves ? "" : "!"),
             run != nullptr ? fmt::format("{:.0f}", run->output_tokens_per_s / devices) : "-",
             run != nullptr ? fmt::format("{:.1f}", run->tokens_per_s_of_user) : "-",
             usd_text(question.usd_per_hour(point.layout)),
             run != nullptr ? usd_text(usd_per_million_tokens(question, point.layout, *run)) : "-",
             run != nullptr ? joules_text(*run) : "-"});
}

// The best layout by what tells kinds of layouts apart. Every device with every engine has a row, be it a reason.
std::string best_of_each(const ServingPlanReport& report) {
  std::map<std::string, bool> seen;
  Table table = layouts_table();
  std::string reasons;
  size_t rows = 0;
  for (const size_t i : shown_order(report)) {
    const PlanPoint& point = report.result.points[i];
    const EngineChoice& engine = point.layout.pool.engine;
    const std::string kind =
        fmt::format("{}/{}/{}", devices_text(point.layout), engine.engine, point.layout.decode.has_value());
    const bool is_first = !std::exchange(seen[fmt::format("{}/{}", devices_text(point.layout), engine.engine)], true);
    if (seen[kind] || (rows >= most_plan_rows && !is_first)) continue;
    seen[kind] = true;
    add_layout(table, report.question, point, shown_run(report.question, point));
    ++rows;
    if (report.result.ranked_by_slow_end && report.question.is_judged_by_slow_end(point.layout)) {
      reasons += wrap_lines(
          fmt::format("{} on {} is ranked by the slow end of its interval: {} requests/s.\n", layout_text(point.layout),
                      devices_text(point.layout), rate_number(point.capacity.low)),
          page_width, 2);
    }
  }
  for (const UnshownEngine& one : unshown_engines(report)) {
    const std::string most = one.most_requests_per_s ? "<" + rate_number(*one.most_requests_per_s) : "-";
    table.add({fmt::format("{} (see below)", one.engine), one.device, "-", most, "-", "-", "-", "-", "-"});
    reasons += wrap_lines(fmt::format("{} on {}: {}.\n", one.engine, one.device, one.reason), page_width, 2);
  }
  return table.text() + reasons;
}

// What a run of the frontier is best in: "work $ J".
std::string best_in_text(const FrontierRun& one) {
  constexpr std::array<std::string_view, frontier_measures> names = {"work", "$", "J"};
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (one.best_in[i]) text += (text.empty() ? "" : " ") + std::string(names[i]);
  }
  return text;
}

// What the reader should know of the model, and of engines that were not tried.
std::vector<std::string> notes_of(const ServingPlanReport& report) {
  std::vector<std::string> notes = report.question.model.notes;
  if (const PlanPoint* winner = report.result.winner(); winner != nullptr && !winner->layout.pool.engine.scheme) {
    notes = run_on(report.question.model, report.question.hardware_of(winner->layout.pool.engine.device).device).notes;
  }
  for (std::string& sentence : left_out(report.question)) notes.push_back(std::move(sentence));
  return notes;
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
std::string asked_rate_words(const ServingQuestion& question) {
  return question.rate ? fmt::format(" and arrive at {} requests/s", number_text(*question.rate)) : "";
}

std::string search_text(const ServingSearchResult& result) {
  const auto line = [](auto count, const std::string& what) { return fmt::format("  {} {}\n", count, what); };
  std::string text = fmt::format("Of {} layouts:\n", result.layouts) + line(result.points.size(), "simulated");
  for (size_t i = 0; i < prune_reasons; ++i) {
    if (result.pruned[i] == 0) continue;
    text += line(result.pruned[i], fmt::format("ruled out: {}", prune_reason_text(static_cast<PruneReason>(i))));
  }
  if (result.beaten > 0) text += line(result.beaten, "skipped: even their best case is worse than the winner");
  if (result.unexplored > 0) {
    text += line(result.unexplored, "not tried, although some might be better (raise {most_simulated})");
  }
  if (result.without_rate) {
    text += line(result.without_rate->points.size(), "also simulated without the rate, to show what is possible");
  }
  if (result.largest_gap > 0) {
    text += fmt::format(
        "There are too many layouts to judge every number of replicas: the numbers tried are up to {:.2g}% apart.\n",
        100 * result.largest_gap);
  }
  return text;
}

Json plan_run_json(const ServingQuestion& question, const PlanPoint& point, const PlanRun& run) {
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
  const PlanRun* run = shown_run(question, point);
  json.set("run", run != nullptr ? plan_run_json(question, point, *run) : Json());
  return json;
}

// A command that a shell reads as one line, though it is broken before flags.
std::string shell_lines(const std::string& command) {
  constexpr size_t most = page_width - 4;  // the indent, and what follows a line
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

}  // namespace

std::string serving_plan_sentence(const ServingPlanReport& report) {
  const ServingQuestion& question = report.question;
  const PlanPoint* winner = report.result.winner();
  if (winner == nullptr) return unmet_plan_text(report);
  std::string text = fmt::format("Serve {} on {} as {}: it sustains {} with {}", question.model.served_name(),
                                 hardware_text(question, winner->layout), layout_text(winner->layout),
                                 capacity_interval(winner->capacity), slos_text(question));
  text += cost_text(question, *winner) + energy_text(question, *winner) + ".";
  if (question.rate) {
    if (const PlanRun* run = winner->at_rate(*question.rate)) {
      text += fmt::format(" At {} requests/s: {}.", number_text(*question.rate), achieved_text(question, *run));
    }
    if (winner->capacity.low < *question.rate) {
      text += fmt::format(
          " At the slow end of the interval it sustains only {} requests/s ({{pessimistic}} plans for that case).",
          rate_number(winner->capacity.low));
    }
  }
  constexpr double least_share = 0.33;
  if (winner->capacity.low < least_share * winner->capacity.value) {
    text +=
        " That interval is too wide to rely on: few measurements on this device, or too few requests in the sample.";
  }
  const std::vector<size_t> alike = indistinguishable(question, report.result);
  if (!alike.empty()) {
    const PlanPoint& second = report.result.points[alike.front()];
    const std::string others =
        alike.size() > 1 ? fmt::format(" and {} other{}", alike.size() - 1, alike.size() == 2 ? "" : "s") : "";
    text += fmt::format(" Tied, within prediction error, with {} on {} ({} requests/s, {} to {}){}.",
                        layout_text(second.layout), hardware_text(question, second.layout),
                        rate_number(second.capacity.value), rate_number(second.capacity.low),
                        rate_number(second.capacity.high), others);
  }
  return text + "\n";
}

std::string launch_text(const ServingPlanReport& report, const ServingLayout& layout,
                        const std::optional<HostPlace>& shared) {
  std::string text;
  for (const LaunchCommand& command :
       launch_commands(report.question, layout, planned_model_len(report.question, report.traffic), shared)) {
    if (command.count > 1) {
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
  std::string text = wrap_lines(serving_plan_sentence(report), page_width, 2);
  if (const PlanPoint* winner = report.result.winner()) {
    text += "\nTo start it:\n" + launch_text(report, winner->layout);
  }
  for (const std::string& note : notes_of(report)) text += wrap_lines(fmt::format("note: {}\n", note), page_width, 2);
  if (!report.result.tried.empty()) {
    text +=
        "\n" +
        wrap_lines(fmt::format("Best layout of each device, engine and kind of pools (~ from short simulations{}):\n",
                               report.question.rate ? fmt::format("; ! below the rate; the rest at {} requests/s",
                                                                  number_text(*report.question.rate))
                                                    : ""),
                   page_width, 2) +
        best_of_each(report);
  }
  if (!report.result.frontier.empty()) {
    text += "\nTrade-off between speed per user, throughput per GPU (tok/s/GPU), cost and facility energy:\n" +
            frontier_table(report);
  }
  const TrafficLengths& lengths = report.traffic.lengths();
  text += "\n" +
          wrap_lines(
              search_text(report.result) +
                  fmt::format("Requests average {:.0f} prompt and {:.0f} output tokens{}. Engines are set up for the "
                              "longest request. Intervals cover the error of step times and the variation between "
                              "samples of such requests.\n",
                              lengths.mean_input, lengths.mean_output, asked_rate_words(report.question)),
              page_width, 0);
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
    Json row = plan_run_json(question, point, point.runs[one.run]);
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
  for (const std::string& note : notes_of(report)) notes.push(note);
  Json alike = Json::array();
  for (const size_t i : indistinguishable(question, result)) alike.push(result.points[i].layout.key());
  Json json = Json::object({{"sentence", serving_plan_sentence(report)},
                            {"model", question.model.served_name()},
                            {"slos", std::move(slos)},
                            {"attainment_percent", number_or_null(question.joint_percent)},
                            {"rate", number_or_null(question.rate)},
                            {"layouts", result.layouts},
                            {"pruned", std::move(pruned)},
                            {"beaten", result.beaten},
                            {"unexplored", result.unexplored}});
  if (result.largest_gap > 0) json.set("largest_gap_of_replicas", result.largest_gap);
  const PlanPoint* winner = result.winner();
  json.set("winner", winner != nullptr ? point_json(report, *winner) : Json());
  json.set("commands", winner != nullptr ? launch_json(report, winner->layout) : Json::array());
  json.set("notes", std::move(notes));
  json.set("not_distinguishable", std::move(alike));
  json.set("ranking", std::move(ranking));
  json.set("frontier", std::move(frontier));
  json.set("points", std::move(points));
  json.set("by_device_and_engine", tried_engines_json(report));
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
      const Json run_columns = plan_run_json(report.question, point, run);
      for (const Json::Member& member : run_columns.members()) row.set(member.first, member.second);
      rows.push(std::move(row));
    }
  }
  return json_rows_csv(rows);
}

}  // namespace foretoken
