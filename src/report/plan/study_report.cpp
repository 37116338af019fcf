#include "report/plan/study_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/counted.h"
#include "report/drawing/axis.h"
#include "report/drawing/html_page.h"
#include "report/drawing/svg.h"
#include "report/parts/json_rows_csv.h"
#include "report/parts/table.h"
#include "report/plan/serving_plan_words.h"

namespace foretoken {
namespace {

struct StudyMetric {
  std::string_view name, title;
};
constexpr std::array<StudyMetric, 4> study_metrics = {
    {{"ttft", "TTFT"}, {"tpot", "TPOT"}, {"itl", "ITL"}, {"e2e", "E2E"}}};

const Json& member_of(const Json& json, std::string_view key) {
  static const Json nothing;
  const Json* found = json.find(key);
  return found != nullptr ? *found : nothing;
}

// What became of a case.
constexpr const char *served_status = "serves", *unserved_status = "does not serve", *refused_status = "refused";

Json case_columns(const StudyCase& asked, const char* status) {
  return Json::object({{"model", asked.model},
                       {"hardware", asked.hardware},
                       {"traffic", asked.traffic},
                       {"engines", asked.engines},
                       {"status", status}});
}

// The achieved milliseconds of the first limit on the metric: limits are named ttft<500ms@p99.
Json achieved_ms(const Json& run, std::string_view metric) {
  for (const auto& [key, value] : run.members()) {
    if (key.starts_with(std::string(metric) + "<")) return value;
  }
  return {};
}

// The row of the winner in the table of devices and engines.
const Json& decision_of(const Json& answer, const Json& winner) {
  static const Json none;
  for (const Json& row : member_of(answer, "by_device_and_engine").items()) {
    if (member_of(row, "best").string() == member_of(winner, "key").string()) return row;
  }
  return none;
}

void add_result_columns(Json& row, const Json& answer) {
  const Json& winner = member_of(answer, "winner");
  const Json& run = member_of(winner, "run");
  const Json& decision = decision_of(answer, winner);
  const Json& capacity = member_of(winner, "capacity_requests_per_s");
  const Json& usd = member_of(decision, "usd_per_million_output_tokens");
  row.set("layout", member_of(winner, "layout"));
  row.set("device", member_of(winner, "device"));
  row.set("engine", member_of(winner, "engine"));
  row.set("gpus", member_of(winner, "devices"));
  row.set("rate_requests_per_s", member_of(answer, "rate"));
  row.set("capacity_requests_per_s", member_of(capacity, "value"));
  row.set("capacity_low", member_of(capacity, "low"));
  row.set("capacity_high", member_of(capacity, "high"));
  row.set("headroom", member_of(decision, "headroom"));
  for (const StudyMetric& metric : study_metrics) {
    row.set(fmt::format("{}_ms", metric.name), achieved_ms(run, metric.name));
  }
  row.set("tokens_per_s_per_user", member_of(run, "tokens_per_s_per_user"));
  row.set("tokens_per_s_per_gpu", member_of(run, "tokens_per_s_per_device"));
  row.set("usd_per_hour", member_of(winner, "usd_per_hour"));
  row.set("usd_per_million_output_tokens", member_of(run, "usd_per_million_output_tokens"));
  row.set("usd_low", member_of(usd, "low"));
  row.set("usd_high", member_of(usd, "high"));
  row.set("joules_per_output_token", member_of(member_of(run, "joules_per_output_token"), "value"));
  row.set("rests_on", member_of(decision, "rests_on"));
}

bool is_served(const Json& row) {
  return member_of(row, "status").string() == served_status;
}

std::string number_cell(const Json& row, std::string_view column, const char* form) {
  const Json& value = member_of(row, column);
  const bool is_number = value.kind() == Json::Kind::number || value.kind() == Json::Kind::integer;
  return is_number ? fmt::format(fmt::runtime(form), value.number()) : "-";
}

std::string text_cell(const Json& row, std::string_view column) {
  const Json& value = member_of(row, column);
  if (value.kind() == Json::Kind::integer) return fmt::format("{}", value.integer());
  return value.kind() == Json::Kind::string ? value.string() : "-";
}

std::string latencies_cell(const Json& row) {
  std::string text;
  for (const StudyMetric& metric : study_metrics) {
    const Json& ms = member_of(row, fmt::format("{}_ms", metric.name));
    if (ms.kind() == Json::Kind::null) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", metric.title,
                        ms.number() >= 100 ? fmt::format("{:.0f}", ms.number()) : fmt::format("{:.3g}", ms.number()));
  }
  return text;
}

// The most that a token may cost: infinite where the layout may serve nothing at the bad end of its interval, which
// JSON has no number for. Nothing where there is no interval.
std::optional<double> usd_high(const Json& row) {
  if (member_of(row, "usd_low").kind() == Json::Kind::null) return std::nullopt;
  const Json& high = member_of(row, "usd_high");
  return high.kind() == Json::Kind::null ? std::numeric_limits<double>::infinity() : high.number();
}

std::string usd_cell(const Json& row) {
  const auto text = [&](const char* column) { return number_cell(row, column, "{:.3g}"); };
  const std::string value = text("usd_per_million_output_tokens"), low = text("usd_low"), high = text("usd_high");
  const std::optional<double> most = usd_high(row);
  if (most && std::isinf(*most)) return fmt::format("{} ({} or more)", value, low);
  return low == high ? value : fmt::format("{} ({}-{})", value, low, high);
}

// "20.7 (17.2-24.1)".
std::string capacity_cell(const Json& row) {
  const Json& value = member_of(row, "capacity_requests_per_s");
  if (value.kind() == Json::Kind::null) return "-";
  const Json &low = member_of(row, "capacity_low"), &high = member_of(row, "capacity_high");
  const bool has_interval =
      low.kind() != Json::Kind::null && high.kind() != Json::Kind::null && low.number() < high.number();
  return rate_number(value.number()) +
         (has_interval ? fmt::format(" ({}-{})", rate_number(low.number()), rate_number(high.number())) : "");
}

// What a token costs; nothing where no price is known.
std::optional<double> cost_of(const Json& row) {
  if (!is_served(row)) return std::nullopt;
  const Json& usd = member_of(row, "usd_per_million_output_tokens");
  return usd.kind() == Json::Kind::null ? std::nullopt : std::optional(usd.number());
}

// Requests/s of a GPU: what cases are compared by where a price is not known.
double capacity_of_gpu(const Json& row) {
  const Json &capacity = member_of(row, "capacity_requests_per_s"), &gpus = member_of(row, "gpus");
  if (capacity.kind() == Json::Kind::null || gpus.kind() == Json::Kind::null) return 0;
  return capacity.number() / gpus.number();
}

double number_or(const Json& row, std::string_view column, double otherwise) {
  const Json& value = member_of(row, column);
  return value.kind() == Json::Kind::null ? otherwise : value.number();
}

struct BestCase {
  std::string model, traffic;
  const Json* row = nullptr;      // null = no case serves it
  bool by_cost = true;            // else a price is missing: by requests/s of a GPU
  std::vector<const Json*> rows;  // that serve it
  std::vector<const Json*> tied;  // within prediction error of it, in the order of the cases
};

// At the good end of its interval, the other is as good as the best at the bad end of its own.
bool is_tied(const BestCase& best, const Json& other) {
  if (best.by_cost) {
    const double own = *cost_of(*best.row), theirs = *cost_of(other);
    return number_or(other, "usd_low", theirs) <= usd_high(*best.row).value_or(own);
  }
  const double own = capacity_of_gpu(*best.row), theirs = capacity_of_gpu(other);
  const auto end = [](const Json& row, const char* column, double each) {
    return each * number_or(row, column, 0) / number_or(row, "capacity_requests_per_s", 1);
  };
  const double low = end(*best.row, "capacity_low", own), high = end(other, "capacity_high", theirs);
  return (high > 0 ? high : theirs) >= (low > 0 ? low : own);
}

// Of each model with each traffic, the case with the cheapest tokens; where a price is missing, with most requests/s of
// a GPU.
std::vector<BestCase> best_cases(const StudyReport& report) {
  std::vector<BestCase> best;
  for (const Json& row : report.rows.items()) {
    const std::string model = text_cell(row, "model"), traffic = text_cell(row, "traffic");
    auto place = std::find_if(best.begin(), best.end(),
                              [&](const BestCase& one) { return one.model == model && one.traffic == traffic; });
    if (place == best.end())
      place = best.insert(best.end(), {.model = model, .traffic = traffic, .rows = {}, .tied = {}});
    if (is_served(row)) place->rows.push_back(&row);
  }
  for (BestCase& one : best) {
    if (one.rows.empty()) continue;
    one.by_cost =
        std::all_of(one.rows.begin(), one.rows.end(), [](const Json* row) { return cost_of(*row).has_value(); });
    one.row = *std::min_element(one.rows.begin(), one.rows.end(), [&](const Json* a, const Json* b) {
      return one.by_cost ? *cost_of(*a) < *cost_of(*b) : capacity_of_gpu(*a) > capacity_of_gpu(*b);
    });
    for (const Json* other : one.rows) {
      if (other != one.row && is_tied(one, *other)) one.tied.push_back(other);
    }
  }
  return best;
}

std::string tied_cell(const BestCase& best) {
  std::string text;
  for (const Json* row : best.tied) {
    text += fmt::format("{}{}, {}", text.empty() ? "" : "; ", text_cell(*row, "hardware"), text_cell(*row, "engines"));
  }
  return text;
}

constexpr const char* best_title = "The cheapest output tokens for each model and traffic";
constexpr const char* unpriced_remark =
    "If a device has no price, the best case is the one with the most "
    "requests/s per GPU (marked *).";

bool any_unpriced(const std::vector<BestCase>& best) {
  return std::any_of(best.begin(), best.end(), [](const BestCase& one) { return one.row != nullptr && !one.by_cost; });
}

std::vector<Table::Column> case_columns() {
  constexpr Table::Align left = Table::Align::left;
  return {{.title = "hardware", .align = left, .is_name = true},
          {"traffic", left},
          {"engines", left},
          {"GPUs"},
          {"layout", left},
          {"max req/s (90%)"},
          {"latencies (ms)", left},
          {"$/Mtok (90%)"},
          {"J/tok"}};
}

std::vector<std::string> result_cells(const Json& row) {
  return {text_cell(row, "gpus"), text_cell(row, "layout"),
          capacity_cell(row),     latencies_cell(row),
          usd_cell(row),          number_cell(row, "joules_per_output_token", "{:.2f}")};
}

std::string all_cases_text(const StudyReport& report) {
  std::string text;
  std::string model;
  std::optional<Table> table;
  const auto close = [&] {
    if (table) text += "\n" + model + "\n" + table->text();
  };
  for (const Json& row : report.rows.items()) {
    if (!table || text_cell(row, "model") != model) {
      close();
      model = text_cell(row, "model");
      table.emplace(case_columns());
    }
    std::vector<std::string> cells = {text_cell(row, "hardware"), text_cell(row, "traffic"), text_cell(row, "engines")};
    const std::vector<std::string> result =
        is_served(row) ? result_cells(row) : std::vector<std::string>{"-", "cannot serve it", "-", "", "-", "-"};
    cells.insert(cells.end(), result.begin(), result.end());
    table->add(std::move(cells));
  }
  close();
  return text;
}

std::string name_of_case(const Json& row) {
  return fmt::format("{} on {}, {}, {}", text_cell(row, "model"), text_cell(row, "hardware"), text_cell(row, "traffic"),
                     text_cell(row, "engines"));
}

std::string reasons_text(const StudyReport& report) {
  std::string text;
  for (const Json& row : report.rows.items()) {
    if (is_served(row)) continue;
    text += wrap_lines(fmt::format("  {}: {}\n", name_of_case(row), text_cell(row, "reason")), page_width(), 4);
  }
  return text.empty() ? "" : "\nCases that cannot be served:\n" + text;
}

// Dollars for a million tokens of every case that has a price, with its interval, on one logarithmic axis.
std::string costs_svg(const StudyReport& report) {
  constexpr double width = 960, left = 420, right = 40, row_height = 22, top = 30;
  std::vector<const Json*> priced;
  double least = 0, most = 0;
  for (const Json& row : report.rows.items()) {
    const std::optional<double> usd = cost_of(row);
    if (!usd || *usd <= 0) continue;
    const auto or_value = [&](const char* column) {
      const Json& end = member_of(row, column);
      return end.kind() == Json::Kind::null || end.number() <= 0 ? *usd : end.number();
    };
    least = priced.empty() ? or_value("usd_low") : std::min(least, or_value("usd_low"));
    most = std::max(most, or_value("usd_high"));
    priced.push_back(&row);
  }
  if (priced.empty()) return "";
  const double bottom = top + row_height * static_cast<double>(priced.size());
  Svg svg(width, bottom + 40, "USD for a million output tokens, by case");
  const Axis axis = Axis::logarithmic(least / 1.3, most * 1.3, left, width - right);
  const auto tick = [&](double usd, bool labeled) {
    const double x = axis.position(usd);
    svg.line({x, top}, {x, bottom}, {.stroke = grid_colour});
    if (labeled) svg.text({x, bottom + 16}, fmt::format("${:g}", usd), {.anchor = SvgAnchor::middle});
  };
  for (const double usd : axis.small_ticks()) tick(usd, most < 30 * least);
  for (const double usd : axis.ticks()) tick(usd, true);
  double y = top + row_height / 2;
  for (const Json* row : priced) {
    const double usd = *cost_of(*row);
    svg.text({left - 8, y + 4}, name_of_case(*row), {.size = 11, .anchor = SvgAnchor::end});
    if (const std::optional<double> high = usd_high(*row)) {
      const double end = std::isinf(*high) ? width - right : axis.position(*high);
      svg.line({axis.position(member_of(*row, "usd_low").number()), y}, {end, y}, {.stroke = "#7b8794", .width = 2});
    }
    svg.circle({axis.position(usd), y}, 4.5, {.fill = "#2563eb"},
               fmt::format("{}: ${:.3g} for a million output tokens", name_of_case(*row), usd));
    y += row_height;
  }
  return svg.finish();
}

}  // namespace

Json study_row(const StudyCase& asked, const Json& answer, const std::string& command) {
  const bool has_winner = member_of(answer, "winner").kind() == Json::Kind::object;
  Json row = case_columns(asked, has_winner ? served_status : unserved_status);
  add_result_columns(row, answer);
  row.set("reason", has_winner ? Json() : member_of(answer, "failure"));
  row.set("command", command);
  return row;
}

Json refused_study_row(const StudyCase& asked, const std::string& reason, const std::string& command) {
  Json row = case_columns(asked, refused_status);
  add_result_columns(row, Json());
  row.set("reason", reason);
  row.set("command", command);
  return row;
}

bool any_case_serves(const StudyReport& report) {
  const auto& rows = report.rows.items();
  return std::any_of(rows.begin(), rows.end(), [](const Json& row) { return is_served(row); });
}

bool is_all_refused(const StudyReport& report) {
  const auto& rows = report.rows.items();
  return std::all_of(rows.begin(), rows.end(),
                     [](const Json& row) { return member_of(row, "status").string() == refused_status; });
}

std::string study_sentence(const StudyReport& report) {
  const auto& rows = report.rows.items();
  const auto served = std::count_if(rows.begin(), rows.end(), [](const Json& row) { return is_served(row); });
  return fmt::format("{}: {} of {} can be served within the limits.", report.study.title, served,
                     counted(rows.size(), "case"));
}

std::string study_text(const StudyReport& report) {
  std::string text = wrap_lines(study_sentence(report) + "\n", page_width(), 2);
  Table best({{.title = "model", .align = Table::Align::left, .is_name = true},
              {"traffic", Table::Align::left},
              {"best", Table::Align::left},
              {"GPUs"},
              {"max req/s (90%)"},
              {"$/Mtok (90%)"},
              {"tied with", Table::Align::left}});
  const std::vector<BestCase> cases = best_cases(report);
  for (const BestCase& one : cases) {
    if (one.row == nullptr) {
      best.add({one.model, one.traffic, "no case serves it", "-", "-", "-", ""});
      continue;
    }
    best.add({one.model, one.traffic,
              fmt::format("{}{} on {}", one.by_cost ? "" : "* ", text_cell(*one.row, "layout"),
                          text_cell(*one.row, "device")),
              text_cell(*one.row, "gpus"), capacity_cell(*one.row), usd_cell(*one.row), tied_cell(one)});
  }
  text +=
      wrap_lines(fmt::format("\n{} (tied = within prediction error):\n", best_title), page_width(), 2) + best.text();
  if (any_unpriced(cases)) text += wrap_lines(fmt::format("{}\n", unpriced_remark), page_width(), 2);
  return text + all_cases_text(report) + reasons_text(report);
}

Json study_json(const StudyReport& report) {
  Json best = Json::array();
  for (const BestCase& one : best_cases(report)) {
    Json tied = Json::array();
    for (const Json* row : one.tied) tied.push(name_of_case(*row));
    best.push(Json::object({{"model", one.model},
                            {"traffic", one.traffic},
                            {"by", one.by_cost ? "usd_per_million_output_tokens" : "requests_per_s_per_gpu"},
                            {"case", one.row != nullptr ? *one.row : Json()},
                            {"tied", std::move(tied)}}));
  }
  return Json::object({{"title", report.study.title},
                       {"sentence", study_sentence(report)},
                       {"best", std::move(best)},
                       {"cases", report.rows}});
}

std::string study_csv(const StudyReport& report) {
  return json_rows_csv(report.rows);
}

std::string study_html(const StudyReport& report, const std::string& command) {
  HtmlPage page(report.study.title);
  page.sentence(study_sentence(report));
  std::vector<std::vector<std::string>> rows;
  for (const BestCase& one : best_cases(report)) {
    std::vector<std::string> cells = {one.model, one.traffic};
    const std::vector<std::string> result = one.row != nullptr
                                                ? result_cells(*one.row)
                                                : std::vector<std::string>{"-", "no case serves it", "-", "", "-", "-"};
    cells.push_back(one.row != nullptr ? text_cell(*one.row, "device") : "-");
    cells.insert(cells.end(), result.begin(), result.end());
    cells.push_back(tied_cell(one));
    rows.push_back(std::move(cells));
  }
  page.heading(best_title);
  page.table({"model", "traffic", "device", "GPUs", "layout", "max req/s (90%)", "latencies (ms)", "$/Mtok (90%)",
              "J/tok", "tied with"},
             rows);
  if (any_unpriced(best_cases(report))) page.paragraph(unpriced_remark);
  if (const std::string costs = costs_svg(report); !costs.empty()) {
    page.heading("Cost of output tokens");
    page.figure(costs,
                "USD for a million output tokens of every case, with the 90% interval; further left is cheaper.");
  }
  page.heading("All cases");
  rows.clear();
  for (const Json& row : report.rows.items()) {
    std::vector<std::string> cells = {text_cell(row, "model"), text_cell(row, "hardware"), text_cell(row, "traffic"),
                                      text_cell(row, "engines")};
    const std::vector<std::string> result =
        is_served(row) ? result_cells(row) : std::vector<std::string>{"-", text_cell(row, "reason"), "-", "", "-", "-"};
    cells.insert(cells.end(), result.begin(), result.end());
    rows.push_back(std::move(cells));
  }
  std::vector<std::string> titles = {"model"};
  for (const Table::Column& column : case_columns()) titles.push_back(column.title);
  page.table(titles, rows);
  page.heading("Ask one case alone");
  std::string commands;
  for (const Json& row : report.rows.items()) commands += text_cell(row, "command") + "\n";
  page.preformatted(commands);
  page.heading("Repeat it");
  page.preformatted(command);
  return page.finish();
}

std::string study_list_text(const Study& study, const std::vector<std::string>& commands) {
  std::string text = fmt::format("{}: {}\n", study.title, counted(study.cases.size(), "case"));
  for (const std::string& command : commands) text += "  " + command + "\n";
  return text;
}

}  // namespace foretoken
