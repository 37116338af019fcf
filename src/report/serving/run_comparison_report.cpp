#include "report/serving/run_comparison_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/drawing/html_page.h"
#include "report/drawing/line_chart.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

std::string percent_off_text(double predicted, double measured) {
  return measured > 0 && predicted > 0 ? fmt::format("{:+.1f}%", 100 * (predicted / measured - 1)) : "-";
}

std::vector<std::vector<std::string>> number_rows(const RunComparison& comparison) {
  std::vector<std::vector<std::string>> rows;
  for (const ReplayedNumber& one : comparison.numbers) {
    rows.push_back({one.metric + " " + one.statistic, fmt::format("{:.1f}", one.measured_ms),
                    fmt::format("{:.1f}", one.predicted_ms.value),
                    fmt::format("{:.1f} to {:.1f}", one.predicted_ms.low, one.predicted_ms.high),
                    percent_off_text(one.predicted_ms.value, one.measured_ms)});
  }
  return rows;
}
const std::vector<std::string> number_titles = {"metric", "measured ms", "predicted ms", "90% interval", "error"};

std::vector<std::vector<std::string>> part_rows_of(const std::vector<ReplayedPart>& parts) {
  std::vector<std::vector<std::string>> rows;
  for (const ReplayedPart& one : parts) {
    rows.push_back({one.name, fmt::format("{}", one.requests), fmt::format("{:.1f}", one.ttft_ms),
                    percent_off_text(one.predicted_ttft_ms, one.ttft_ms), fmt::format("{:.2f}", one.tpot_ms),
                    percent_off_text(one.predicted_tpot_ms, one.tpot_ms), fmt::format("{:.1f}", one.e2e_ms),
                    percent_off_text(one.predicted_e2e_ms, one.e2e_ms)});
  }
  return rows;
}
const std::vector<std::string> part_titles = {"requests of", "requests", "TTFT ms", "error",
                                              "TPOT ms",     "error",    "E2E ms",  "error"};

std::string table_text(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows) {
  std::vector<Table::Column> columns;
  for (const std::string& title : titles)
    columns.push_back({title, columns.empty() ? Table::Align::left : Table::Align::right});
  Table table(columns);
  for (const std::vector<std::string>& row : rows) table.add(row);
  return table.text();
}

std::string verdict_of(const RunComparison& comparison) {
  if (comparison.agrees) return "The prediction agrees with the run within its usual error.";
  if (comparison.explanations.empty())
    return "The prediction differs from the run, and none of the facts that were tried explains it.";
  const Explanation& best = comparison.explanations.front();
  return fmt::format("The prediction differs from the run. One fact explains most of it ({:.0f}%): {} ({}).",
                     100 * best.explains, best.fact, error_source_name(best.source));
}

std::vector<std::string> facts_of(const RunComparison& comparison) {
  std::vector<std::string> facts;
  if (comparison.measured_hits) {
    facts.push_back(fmt::format("prefix cache: {:.1f}% of prompt tokens found, predicted {:.1f}%",
                                100 * *comparison.measured_hits, 100 * *comparison.predicted_hits));
  }
  if (comparison.client_lag_ms) {
    facts.push_back(fmt::format("client: requests were sent {:.1f} ms late on average", *comparison.client_lag_ms));
  }
  if (!comparison.requests.empty()) {
    facts.push_back(
        fmt::format("noise: individual requests vary by {:.1f}% around the prediction with the best explanation",
                    100 * comparison.noise));
  }
  return facts;
}

constexpr size_t most_explanations_shown = 6;

}  // namespace

std::string run_comparison_text(const RunComparison& comparison) {
  std::string text = wrap_lines(
      fmt::format("{}: {} on {}\n{}\n\n", comparison.run, comparison.model, comparison.device, verdict_of(comparison)),
      page_width(), 2);
  text += table_text(number_titles, number_rows(comparison));
  for (const auto& [title, parts] : {std::pair("Over time", &comparison.over_time),
                                     {"By requests in flight", &comparison.by_batch},
                                     {"By context", &comparison.by_context}}) {
    if (!parts->empty()) text += fmt::format("\n{}\n{}", title, table_text(part_titles, part_rows_of(*parts)));
  }
  if (!comparison.explanations.empty()) {
    Table table({{"explains"}, {"kind of error", Table::Align::left}, {"fact", Table::Align::left}});
    for (size_t i = 0; i < comparison.explanations.size() && i < most_explanations_shown; ++i) {
      const Explanation& one = comparison.explanations[i];
      table.add({fmt::format("{:.0f}%", 100 * one.explains), std::string(error_source_name(one.source)), one.fact});
    }
    text += "\nShare of the squared error that each fact explains on its own\n" + table.text();
  }
  const std::vector<std::string> facts = facts_of(comparison);
  if (!facts.empty()) text += "\n";
  for (const std::string& fact : facts) text += fact + "\n";
  return text;
}

Json run_comparison_json(const RunComparison& comparison, bool with_requests) {
  Json numbers = Json::array(), explanations = Json::array();
  for (const ReplayedNumber& one : comparison.numbers) {
    numbers.push(Json::object({{"metric", one.metric},
                               {"statistic", one.statistic},
                               {"measured_ms", one.measured_ms},
                               {"predicted_ms", one.predicted_ms.value},
                               {"low_ms", one.predicted_ms.low},
                               {"high_ms", one.predicted_ms.high}}));
  }
  for (const Explanation& one : comparison.explanations) {
    explanations.push(
        Json::object({{"kind", error_source_name(one.source)}, {"fact", one.fact}, {"explains", one.explains}}));
  }
  const auto parts_json = [](const std::vector<ReplayedPart>& parts) {
    Json list = Json::array();
    for (const ReplayedPart& one : parts) {
      list.push(Json::object({{"name", one.name},
                              {"requests", one.requests},
                              {"ttft_ms", one.ttft_ms},
                              {"predicted_ttft_ms", one.predicted_ttft_ms},
                              {"tpot_ms", one.tpot_ms},
                              {"predicted_tpot_ms", one.predicted_tpot_ms},
                              {"e2e_ms", one.e2e_ms},
                              {"predicted_e2e_ms", one.predicted_e2e_ms}}));
    }
    return list;
  };
  Json json = Json::object({{"run", comparison.run},
                            {"model", comparison.model},
                            {"device", comparison.device},
                            {"agrees", comparison.agrees},
                            {"numbers", std::move(numbers)},
                            {"over_time", parts_json(comparison.over_time)},
                            {"by_batch", parts_json(comparison.by_batch)},
                            {"by_context", parts_json(comparison.by_context)},
                            {"explanations", std::move(explanations)},
                            {"noise", comparison.noise}});
  if (comparison.measured_hits) {
    json.set("measured_prefix_hits", *comparison.measured_hits);
    json.set("predicted_prefix_hits", *comparison.predicted_hits);
  }
  if (comparison.client_lag_ms) json.set("client_lag_ms", *comparison.client_lag_ms);
  if (with_requests) {
    Json requests = Json::array();
    for (const ReplayedRequest& one : comparison.requests) {
      requests.push(Json::object({{"id", one.id},
                                  {"sent_s", one.sent_s},
                                  {"input_tokens", one.input_tokens},
                                  {"output_tokens", one.output_tokens},
                                  {"ttft_ms", one.ttft_ms},
                                  {"predicted_ttft_ms", one.predicted_ttft_ms},
                                  {"e2e_ms", one.e2e_ms},
                                  {"predicted_e2e_ms", one.predicted_e2e_ms}}));
    }
    json.set("requests", std::move(requests));
  }
  return json;
}

std::string run_comparison_csv(const RunComparison& comparison) {
  std::string text = "id,sent_s,input_tokens,output_tokens,ttft_ms,predicted_ttft_ms,e2e_ms,predicted_e2e_ms\n";
  for (const ReplayedRequest& one : comparison.requests) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", one.id, number_text(one.sent_s), one.input_tokens,
                        one.output_tokens, number_text(one.ttft_ms), number_text(one.predicted_ttft_ms),
                        number_text(one.e2e_ms), number_text(one.predicted_e2e_ms));
  }
  return text;
}

std::string run_comparison_html(const RunComparison& comparison, const std::string& command) {
  HtmlPage page("foretoken: a measured run and its prediction");
  page.sentence(verdict_of(comparison));
  page.paragraph(fmt::format("{}: {} on {}", comparison.run, comparison.model, comparison.device));
  page.table(number_titles, number_rows(comparison));
  struct Drawn {
    const char* title;
    double ReplayedRequest::*measured;
    double ReplayedRequest::*predicted;
  };
  constexpr Drawn drawn[] = {{"Time to first token", &ReplayedRequest::ttft_ms, &ReplayedRequest::predicted_ttft_ms},
                             {"End-to-end time", &ReplayedRequest::e2e_ms, &ReplayedRequest::predicted_e2e_ms}};
  constexpr size_t most_points = 1000;
  for (const Drawn& one : drawn) {
    if (comparison.requests.empty()) break;
    ChartLine measured{.name = "measured"}, predicted{.name = "predicted", .is_dashed = true};
    const size_t each = comparison.requests.size() / most_points + 1;
    for (size_t i = 0; i < comparison.requests.size(); i += each) {
      const ReplayedRequest& request = comparison.requests[i];
      if (request.predicted_e2e_ms <= 0) continue;
      measured.points.emplace_back(request.sent_s, request.*one.measured);
      predicted.points.emplace_back(request.sent_s, request.*one.predicted);
    }
    page.figure(
        line_chart_svg(
            {.title = one.title, .x_label = "request sent, s", .y_label = "ms", .lines = {measured, predicted}}),
        fmt::format("{} of each request, measured and predicted", one.title));
  }
  if (!comparison.over_time.empty()) {
    page.heading("Over time, by load and by context");
    for (const auto* parts : {&comparison.over_time, &comparison.by_batch, &comparison.by_context}) {
      page.table(part_titles, part_rows_of(*parts));
    }
  }
  if (!comparison.explanations.empty()) {
    page.heading("What would explain the difference");
    std::vector<std::vector<std::string>> rows;
    for (const Explanation& one : comparison.explanations) {
      rows.push_back(
          {one.fact, std::string(error_source_name(one.source)), fmt::format("{:.0f}%", 100 * one.explains)});
    }
    page.table({"fact", "kind of error", "share of the squared error that it explains alone"}, rows);
  }
  for (const std::string& fact : facts_of(comparison)) page.paragraph(fact);
  page.heading("To reproduce");
  page.preformatted(command);
  return page.finish();
}

}  // namespace foretoken
