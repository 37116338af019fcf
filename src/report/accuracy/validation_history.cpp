#include "report/accuracy/validation_history.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/error.h"
#include "base/json_lines.h"
#include "base/text.h"
#include "report/drawing/html_page.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

constexpr size_t most_past_runs = 10'000;
constexpr double noticed_change = 0.05;  // of a mean error, in percentage points

std::vector<PastRun> past_runs(JsonLinesReader& reader) {
  std::vector<PastRun> runs;
  while (const auto document = reader.next()) {
    const JsonView view(*document, fmt::format("{}:{}", reader.source(), reader.line()));
    view.allow_only({"date", "version", "checks"});
    PastRun run{.date = view.at("date").string(), .version = view.at("version").string()};
    for (const JsonView& check : view.at("checks").items()) {
      check.allow_only({"name", "n", "mape", "median_ape", "p90_ape", "bias", "coverage90"});
      CheckedErrors errors{.name = check.at("name").string(),
                           .rows = static_cast<size_t>(check.at("n").integer({.least = 1})),
                           .mape = check.at("mape").number({.least = 0}),
                           .median_ape = check.at("median_ape").number({.least = 0}),
                           .p90_ape = check.at("p90_ape").number({.least = 0}),
                           .bias = check.at("bias").number()};
      if (const auto coverage = check.find("coverage90"))
        errors.coverage90 = coverage->number({.least = 0, .most = 100});
      run.checks.push_back(std::move(errors));
    }
    if (runs.size() == most_past_runs) view.fail(fmt::format("at most {} runs", most_past_runs));
    runs.push_back(std::move(run));
  }
  return runs;
}

Json checked_json(const CheckedErrors& errors) {
  Json json = Json::object({{"name", errors.name},
                            {"n", static_cast<int64_t>(errors.rows)},
                            {"mape", errors.mape},
                            {"median_ape", errors.median_ape},
                            {"p90_ape", errors.p90_ape},
                            {"bias", errors.bias}});
  if (errors.coverage90) json.set("coverage90", *errors.coverage90);
  return json;
}

// Of the same check in the last run that had it.
const CheckedErrors* errors_before(const ValidationRun& run, const std::string& name) {
  for (auto past = run.history.rbegin(); past != run.history.rend(); ++past) {
    for (const CheckedErrors& errors : past->checks) {
      if (errors.name == name) return &errors;
    }
  }
  return nullptr;
}

std::string change_since(const ValidationRun& run, const CheckedErrors& errors) {
  const CheckedErrors* before = errors_before(run, errors.name);
  if (before == nullptr) return run.history.empty() ? "" : "new";
  if (before->rows != errors.rows) return fmt::format("{:.1f} on {}", before->mape, counted(before->rows, "row"));
  const double change = errors.mape - before->mape;
  return std::abs(change) < noticed_change ? "same" : fmt::format("{:+.1f}", change);
}

std::vector<std::string> check_cells(const ValidationRun& run, const ValidationCheck& check) {
  if (!check.skipped.empty()) return {check.errors.name, "-", "-", "-", "-", "-", "-", ""};
  const auto figure = [](double value) { return fmt::format("{:.1f}", value); };
  const CheckedErrors& errors = check.errors;
  return {errors.name,
          fmt::format("{}", errors.rows),
          figure(errors.mape),
          figure(errors.median_ape),
          figure(errors.p90_ape),
          fmt::format("{:+.1f}", errors.bias),
          errors.coverage90 ? figure(*errors.coverage90) : "-",
          change_since(run, errors)};
}

std::string outcome_sentence(const ValidationRun& run) {
  size_t done = 0, worse = 0, better = 0;
  double seconds = 0;
  for (const ValidationCheck& check : run.checks) {
    seconds += check.seconds;
    if (!check.skipped.empty()) continue;
    ++done;
    const CheckedErrors* before = errors_before(run, check.errors.name);
    if (before == nullptr || before->rows != check.errors.rows) continue;
    const double change = check.errors.mape - before->mape;
    worse += change >= noticed_change ? 1 : 0;
    better += change <= -noticed_change ? 1 : 0;
  }
  std::string text = fmt::format("{} of {} checks ran in {}", done, run.checks.size(), duration_text(seconds));
  if (!run.history.empty())
    text += fmt::format("; since {}: {} better, {} worse", run.history.back().date, better, worse);
  return text + ".";
}

}  // namespace

CheckedErrors checked_errors(const std::string& name, const Json& document) {
  const JsonView overall = JsonView(document, name).at("overall");
  CheckedErrors errors{.name = name, .rows = static_cast<size_t>(overall.at("n").integer({.least = 1}))};
  errors.mape = overall.at("mape").number();
  errors.median_ape = overall.at("median_ape").number();
  errors.p90_ape = overall.at("p90_ape").number();
  errors.bias = overall.at("bias").number();
  const auto coverage = overall.find("coverage90");
  if (coverage && coverage->is_number()) errors.coverage90 = coverage->number();
  return errors;
}

std::vector<PastRun> read_validation_history(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  JsonLinesReader reader(path);
  return past_runs(reader);
}

std::vector<PastRun> parse_validation_history(std::string text, const std::string& source) {
  JsonLinesReader reader = JsonLinesReader::from_text(std::move(text), source);
  return past_runs(reader);
}

std::string validation_history_line(const ValidationRun& run) {
  Json checks = Json::array();
  for (const ValidationCheck& check : run.checks) {
    if (check.skipped.empty()) checks.push(checked_json(check.errors));
  }
  return Json::object({{"date", run.date}, {"version", run.version}, {"checks", std::move(checks)}}).dump(0) + "\n";
}

std::string validation_run_text(const ValidationRun& run) {
  Table table({{.title = "check", .align = Table::Align::left},
               {.title = "n"},
               {.title = "mape %"},
               {.title = "median"},
               {.title = "p90 %"},
               {.title = "bias %"},
               {.title = "cover90"},
               {.title = "since last"}});
  std::map<std::string, std::vector<std::string>> skipped;  // checks by the reason
  for (const ValidationCheck& check : run.checks) {
    if (check.skipped.empty()) {
      table.add(check_cells(run, check));
    } else {
      skipped[check.skipped].push_back(check.errors.name);
    }
  }
  std::string reasons;
  for (const auto& [reason, names] : skipped) {
    reasons += wrap_lines(fmt::format("Not run ({}): {}.\n", reason, fmt::join(names, "; ")), page_width(), 2);
  }
  return table.text() + "\n" + outcome_sentence(run) + "\n" + reasons;
}

Json validation_run_json(const ValidationRun& run) {
  Json checks = Json::array();
  for (const ValidationCheck& check : run.checks) {
    Json json = check.skipped.empty() ? checked_json(check.errors)
                                      : Json::object({{"name", check.errors.name}, {"skipped", check.skipped}});
    if (!check.command.empty()) json.set("command", check.command);
    if (const CheckedErrors* before = errors_before(run, check.errors.name)) json.set("mape_before", before->mape);
    checks.push(std::move(json));
  }
  return Json::object({{"version", run.version},
                       {"checks", std::move(checks)},
                       {"past_runs", static_cast<int64_t>(run.history.size())}});
}

std::string validation_run_html(const ValidationRun& run) {
  HtmlPage page("Predictions against measurements");
  page.sentence(outcome_sentence(run));
  page.paragraph(fmt::format("foretoken {}, {}. Errors in percent of what was measured.", run.version, run.date));
  std::vector<std::vector<std::string>> rows, past, commands;
  for (const ValidationCheck& check : run.checks) {
    rows.push_back(check_cells(run, check));
    commands.push_back(
        {check.errors.name, check.skipped.empty() ? duration_text(check.seconds) : check.skipped, check.command});
  }
  page.table({"check", "rows", "mean error", "median", "90th percentile", "bias", "inside 90% intervals", "since last"},
             rows);
  if (!run.history.empty()) {
    page.heading("Earlier runs: mean error of each check");
    std::vector<std::string> titles = {"date", "version"};
    for (const ValidationCheck& check : run.checks) titles.push_back(check.errors.name);
    for (auto one = run.history.rbegin(); one != run.history.rend(); ++one) {
      std::vector<std::string> cells = {one->date, one->version};
      for (const ValidationCheck& check : run.checks) {
        const auto found = std::find_if(one->checks.begin(), one->checks.end(),
                                        [&](const CheckedErrors& errors) { return errors.name == check.errors.name; });
        cells.push_back(found == one->checks.end() ? "" : fmt::format("{:.1f}", found->mape));
      }
      past.push_back(std::move(cells));
    }
    page.table(titles, past);
  }
  page.heading("Commands");
  page.table({"check", "time", "command"}, commands);
  return page.finish();
}

}  // namespace foretoken
