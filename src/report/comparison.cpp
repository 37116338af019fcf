#include "report/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/kinds.h"
#include "base/text.h"
#include "report/drawing/html_page.h"
#include "report/drawing/line_chart.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

// A number of a command's document.
struct HeadlineKey {
  std::string_view path, name, unit;
};
// Words of it, or what a switch says.
struct OutcomeKey {
  std::string_view path, name;
};
using Parts = std::map<std::string, double>;

constexpr HeadlineKey step_keys[] = {{"seconds.value", "step", "s"},
                                     {"tokens_per_second", "tokens", "/s"},
                                     {"mfu", "model FLOP utilization", ""},
                                     {"sources.measured", "share measured on the device", ""},
                                     {"serving_memory.tokens.value", "room in the KV cache", "tokens"}};
constexpr std::string_view fits_words = "fits in memory";
constexpr OutcomeKey step_words[] = {{"fits_in_memory", fits_words}};
constexpr HeadlineKey train_keys[] = {{"seconds.value", "iteration", "s"},
                                      {"tokens_per_second_per_device", "tokens of a device", "/s"},
                                      {"flops.mfu", "model FLOP utilization", ""}};
constexpr OutcomeKey train_words[] = {{"fits", fits_words}};
constexpr HeadlineKey serve_keys[] = {
    {"median_ttft_ms", "median TTFT", "ms"}, {"p99_ttft_ms", "p99 TTFT", "ms"},
    {"mean_tpot_ms", "mean TPOT", "ms"},     {"median_tpot_ms", "median TPOT", "ms"},
    {"p99_tpot_ms", "p99 TPOT", "ms"},       {"request_throughput", "requests", "/s"},
    {"request_goodput", "goodput", "/s"},    {"output_throughput", "output tokens", "/s"}};
// Of a search: what its winner costs and can do.
constexpr HeadlineKey plan_serve_keys[] = {
    {"winner.run.usd_per_million_output_tokens", "a million output tokens", "USD"},
    {"winner.usd_per_hour", "rent", "USD/h"},
    {"winner.devices", "devices", ""},
    {"winner.capacity_requests_per_s.value", "capacity", "requests/s"},
    {"winner.run.tokens_per_s_per_device", "output tokens of a device", "/s"},
    {"winner.run.tokens_per_s_per_user", "output tokens for a user", "/s"},
    {"winner.run.joules_per_output_token.value", "energy of an output token", "J"}};
constexpr OutcomeKey plan_serve_words[] = {{"winner.layout", "layout"}, {"winner.device", "device"}};

std::optional<JsonView> value_at(const Json& document, std::string_view path) {
  JsonView view(document, "the answer");
  for (const std::string_view key : split(path, ".")) {
    const auto next = view.is(Json::Kind::object) ? view.find(key) : std::nullopt;
    if (!next) return std::nullopt;
    view = *next;
  }
  return view;
}

std::optional<double> number_at(const Json& document, std::string_view path) {
  const auto view = value_at(document, path);
  return view && view->is_number() ? std::optional(view->number()) : std::nullopt;
}

// An estimate has its bounds beside its value; latencies have theirs under `intervals`.
std::optional<Range<double>> interval_at(const Json& document, std::string_view path) {
  const std::string estimate =
      path.ends_with(".value") ? std::string(path.substr(0, path.rfind('.'))) : fmt::format("intervals.{}", path);
  const auto low = number_at(document, estimate + ".low"), high = number_at(document, estimate + ".high");
  return low && high ? std::optional(Range<double>{.least = *low, .most = *high}) : std::nullopt;
}

std::optional<std::string> words_at(const Json& document, std::string_view path) {
  const auto view = value_at(document, path);
  if (!view) return std::nullopt;
  if (view->is(Json::Kind::boolean)) return view->boolean() ? "yes" : "no";
  return view->is(Json::Kind::string) ? std::optional(view->string()) : std::nullopt;
}

Parts step_parts(const Json& document) {
  Parts parts;
  const JsonView view(document, "the answer");
  for (const JsonView& stage : view.at("stages").items()) {
    for (const JsonView& own : stage.at("operators").items()) {
      parts[own.at("name").string()] += own.at("seconds").at("value").number();
    }
  }
  for (const char* gap : {"launch_gap_seconds", "host_stall_seconds"}) {
    parts["host and gaps"] += number_at(document, fmt::format("gap.{}", gap)).value_or(0);
  }
  // What runs beside other work: with it, the parts add up to the step.
  double rest = view.at("seconds").at("value").number();
  for (const auto& [name, seconds] : parts) rest -= seconds;
  parts["overlap"] = rest;
  return parts;
}

Parts train_parts(const Json& document) {
  Parts parts;
  const JsonView view(document, "the answer");
  for (const auto& [name, seconds] : view.at("parts_seconds").members()) parts[name] = seconds.number();
  return parts;
}

// What an output token after the first waits for: the operators of its step, whatever else runs in the step. Together
// with the time between steps they make up the mean TPOT. (Time of steps for each output token would mix in the batch:
// a slower device decodes more sequences together.)
Parts serve_parts(const Json& document) {
  Parts parts;
  const JsonView view(document, "the answer");
  const auto breakdown = view.find("breakdown");
  const std::optional<double> tpot_ms = number_at(document, "mean_tpot_ms");
  const double tokens =
      number_at(document, "total_output_tokens").value_or(0) - number_at(document, "completed").value_or(0);
  if (!breakdown || !tpot_ms || tokens <= 0) return parts;
  double in_steps = 0;
  for (const JsonView& own : breakdown->at("operators").items()) {
    const double seconds = own.at("decode_wait_seconds").number() / tokens;
    parts[own.at("operator").string()] = seconds;
    in_steps += seconds;
  }
  parts["between steps"] = *tpot_ms * 1e-3 - in_steps;
  return parts;
}

// A serving run in which no request ended has zeros in place of latencies.
bool served_something(const Json& document) {
  return number_at(document, "completed").value_or(1) > 0;
}

std::string failure_of(const Json& document) {
  return words_at(document, "failure").value_or("");
}

// What a search finds is a layout, whose steps are not in its document.
Parts no_parts(const Json& /*document*/) {
  return {};
}

struct ComparableCommand {
  std::string_view name;
  std::span<const HeadlineKey> headlines;
  std::span<const OutcomeKey> outcomes;
  std::string_view parts_of;
  Parts (*parts)(const Json& document);
  std::string_view own_key;  // that no other command's document has
};
constexpr ComparableCommand comparable[] = {
    {"step", step_keys, step_words, "step", step_parts, "stages"},
    {"train", train_keys, train_words, "iteration", train_parts, "parts_seconds"},
    {"serve", serve_keys, {}, "mean TPOT", serve_parts, "mean_ttft_ms"},
    {"plan serve", plan_serve_keys, plan_serve_words, "", no_parts, "by_device_and_engine"}};

// What an answer says about its devices (device_notes.h).
void add_notes(const Json& document, std::vector<std::string>& notes) {
  const auto found = value_at(document, "device_notes");
  if (!found) return;
  for (const JsonView& note : found->items()) {
    if (std::find(notes.begin(), notes.end(), note.string()) == notes.end()) notes.push_back(note.string());
  }
}

std::string change_text(const ComparedNumber& number) {
  return number.first == 0 ? "" : fmt::format("{:+.1f}%", 100 * (number.second / number.first - 1));
}

std::string figure_text(double value, const std::string& unit) {
  return unit == "s" ? duration_text(value) : fmt::format("{:.4g} {}", value, unit);
}

bool intervals_overlap(const ComparedNumber& number) {
  const auto& a = number.first_interval;
  const auto& b = number.second_interval;
  return a && b && a->least <= b->most && b->least <= a->most;
}

std::string headline_text(const ComparedNumber& head) {
  std::string text = fmt::format("{}: {} becomes {} ({})", head.name, figure_text(head.first, head.unit),
                                 figure_text(head.second, head.unit), change_text(head));
  if (intervals_overlap(head) && head.first != head.second) text += ", though their 90% intervals overlap";
  return text;
}

std::string parts_sentence(const Comparison& comparison) {
  const double all = comparison.parts_difference();
  const ComparedNumber& most = comparison.parts.front();
  const double own = most.second - most.first;
  if (own == 0) return "; no part of it changed";
  const auto difference = [](double seconds) {
    return fmt::format("{}{}", seconds < 0 ? "-" : "+", duration_text(std::abs(seconds)));
  };
  return fmt::format(". In the {} ({} in all), {} changes most: {}", comparison.parts_of, difference(all), most.name,
                     difference(own));
}

std::string sentence(const Comparison& comparison) {
  std::string text = comparison.failure();
  if (!text.empty()) {
    if (comparison.headlines.empty()) return text;
    text += " With enough memory: ";
  }
  text += comparison.headlines.empty() ? "the two answers have no figure in common"
                                       : headline_text(comparison.headlines.front());
  if (!comparison.parts.empty()) text += parts_sentence(comparison);
  for (const ComparedText& outcome : comparison.outcomes) {
    const bool is_said = !comparison.failure().empty() && outcome.name == fits_words;
    if (outcome.first == outcome.second || is_said) continue;
    text += fmt::format(". {}: {} becomes {}", outcome.name, outcome.first, outcome.second);
  }
  return text + ".";
}

constexpr size_t most_compared_parts = 12;

std::vector<std::vector<std::string>> part_rows(const Comparison& comparison) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < std::min(most_compared_parts, comparison.parts.size()); ++i) {
    const ComparedNumber& part = comparison.parts[i];
    const double difference = part.second - part.first;
    rows.push_back({part.name, duration_text(part.first), duration_text(part.second),
                    fmt::format("{}{}", difference < 0 ? "-" : "+", duration_text(std::abs(difference))),
                    change_text(part)});
  }
  return rows;
}

std::vector<std::vector<std::string>> headline_rows(const Comparison& comparison) {
  std::vector<std::vector<std::string>> rows;
  for (const ComparedNumber& number : comparison.headlines) {
    rows.push_back({number.name, figure_text(number.first, number.unit), figure_text(number.second, number.unit),
                    change_text(number)});
  }
  return rows;
}

std::vector<std::vector<std::string>> text_rows(const std::vector<ComparedText>& texts) {
  std::vector<std::vector<std::string>> rows;
  for (const ComparedText& text : texts) rows.push_back({text.name, text.first, text.second});
  return rows;
}

std::string table_of(std::vector<std::string> titles, std::vector<std::vector<std::string>> rows) {
  std::vector<Table::Column> columns;
  for (std::string& title : titles) {
    columns.push_back({.title = std::move(title), .align = columns.empty() ? Table::Align::left : Table::Align::right});
  }
  Table table(std::move(columns));
  for (std::vector<std::string>& row : rows) table.add(std::move(row));
  return table.text();
}

Json numbers_json(const std::vector<ComparedNumber>& numbers) {
  Json list = Json::array();
  for (const ComparedNumber& number : numbers) {
    Json one = Json::object(
        {{"name", number.name}, {"unit", number.unit}, {"first", number.first}, {"second", number.second}});
    const auto set_interval = [&](const char* key, const std::optional<Range<double>>& interval) {
      if (interval) one.set(key, Json::object({{"low", interval->least}, {"high", interval->most}}));
    };
    set_interval("first_interval", number.first_interval);
    set_interval("second_interval", number.second_interval);
    list.push(std::move(one));
  }
  return list;
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json texts_json(const std::vector<ComparedText>& texts) {
  Json list = Json::array();
  for (const ComparedText& text : texts) {
    list.push(Json::object({{"name", text.name}, {"first", text.first}, {"second", text.second}}));
  }
  return list;
}

}  // namespace

double Comparison::parts_difference() const {
  double sum = 0;
  for (const ComparedNumber& part : parts) sum += part.second - part.first;
  return sum;
}

std::vector<std::string> comparable_commands() {
  return kind_names(comparable);
}

std::string Comparison::failure() const {
  std::string text;
  for (const auto& [side, why] : {std::pair{"first", &first_failure}, std::pair{"second", &second_failure}}) {
    if (!why->empty()) text += fmt::format("{}The {} command fails: {}", text.empty() ? "" : " ", side, *why);
  }
  return text;
}

std::optional<std::string> command_of_answer(const Json& document) {
  if (document.kind() != Json::Kind::object) return std::nullopt;
  for (const ComparableCommand& one : comparable) {
    if (document.find(one.own_key) != nullptr) return std::string(one.name);
  }
  return std::nullopt;
}

Comparison compare_answers(const std::string& command, const Json& first, const Json& second) {
  const auto* kind = std::find_if(std::begin(comparable), std::end(comparable),
                                  [&](const ComparableCommand& one) { return one.name == command; });
  ensure(kind != std::end(comparable), "the command can be compared");
  Comparison result{.first_failure = failure_of(first),
                    .second_failure = failure_of(second),
                    .parts_of = std::string(kind->parts_of)};
  // Of a run without requests there are no latencies; a plan that does not fit still has its time.
  const bool has_figures = served_something(first) && served_something(second);
  for (const HeadlineKey& key : kind->headlines) {
    if (!has_figures) break;
    const auto a = number_at(first, key.path), b = number_at(second, key.path);
    if (!a || !b) continue;
    result.headlines.push_back({.name = std::string(key.name),
                                .unit = std::string(key.unit),
                                .first = *a,
                                .second = *b,
                                .first_interval = interval_at(first, key.path),
                                .second_interval = interval_at(second, key.path)});
  }
  for (const OutcomeKey& key : kind->outcomes) {
    result.outcomes.push_back({std::string(key.name), words_at(first, key.path).value_or("none"),
                               words_at(second, key.path).value_or("none")});
  }
  ensure(!result.headlines.empty() || !result.outcomes.empty() || !has_figures,
         "every document says something to compare");
  for (const Json* document : {&first, &second}) add_notes(*document, result.notes);
  if (!has_figures) return result;
  const Parts before = kind->parts(first), after = kind->parts(second);
  Parts names = before;
  names.insert(after.begin(), after.end());
  const auto of = [](const Parts& parts, const std::string& name) {
    const auto found = parts.find(name);
    return found == parts.end() ? 0.0 : found->second;
  };
  double whole = 0;
  for (const Parts* parts : {&before, &after}) {
    for (const auto& [name, seconds] : *parts) whole = std::max(whole, seconds);
  }
  // Differences of equal sums leave a rest of rounding.
  const auto rounded = [&](double seconds) { return std::abs(seconds) < 1e-6 * whole ? 0.0 : seconds; };
  for (const auto& [name, unused] : names) {
    const double one = rounded(of(before, name)), other = rounded(of(after, name));
    if (one != 0 || other != 0) result.parts.push_back({.name = name, .unit = "s", .first = one, .second = other});
  }
  std::stable_sort(result.parts.begin(), result.parts.end(), [](const ComparedNumber& a, const ComparedNumber& b) {
    return std::abs(a.second - a.first) > std::abs(b.second - b.first);
  });
  return result;
}

std::string comparison_text(const Comparison& comparison) {
  std::string text = wrap_lines(sentence(comparison) + "\n\n", page_width(), 2);
  text += wrap_lines("first:  " + comparison.first_command + "\n", page_width(), 8);
  text += wrap_lines("second: " + comparison.second_command + "\n\n", page_width(), 8);
  const auto texts = [&](const char* title, const std::vector<ComparedText>& of) {
    if (!of.empty()) text += table_of({title, "first", "second"}, text_rows(of)) + "\n";
  };
  texts("flag", comparison.settings);
  texts("", comparison.outcomes);
  if (!comparison.headlines.empty()) {
    text += table_of({"", "first", "second", "change"}, headline_rows(comparison));
  }
  std::string notes;
  for (const std::string& note : comparison.notes) notes += wrap_lines("note: " + note + "\n", page_width(), 2);
  if (comparison.parts.empty()) return text + notes;
  return text + fmt::format("\nWhat the {} is made of, largest difference first:\n", comparison.parts_of) +
         table_of({"", "first", "second", "difference", "change"}, part_rows(comparison)) + notes;
}

Json comparison_json(const Comparison& comparison) {
  Json notes = Json::array();
  for (const std::string& note : comparison.notes) notes.push(note);
  return Json::object({{"first", comparison.first_command},
                       {"second", comparison.second_command},
                       {"sentence", sentence(comparison)},
                       {"failures", Json::object({{"first", text_or_null(comparison.first_failure)},
                                                  {"second", text_or_null(comparison.second_failure)}})},
                       {"settings", texts_json(comparison.settings)},
                       {"outcomes", texts_json(comparison.outcomes)},
                       {"device_notes", std::move(notes)},
                       {"headlines", numbers_json(comparison.headlines)},
                       {"parts_of", comparison.parts_of},
                       {"parts", numbers_json(comparison.parts)},
                       {"parts_difference_seconds", comparison.parts_difference()}});
}

std::string comparison_html(const Comparison& comparison) {
  HtmlPage page("foretoken: two answers compared");
  page.sentence(sentence(comparison));
  if (!comparison.settings.empty()) page.table({"flag", "first", "second"}, text_rows(comparison.settings));
  if (!comparison.outcomes.empty()) page.table({"", "first", "second"}, text_rows(comparison.outcomes));
  if (!comparison.headlines.empty()) {
    page.table({"", "first", "second", "change"}, headline_rows(comparison));
  }
  for (const std::string& note : comparison.notes) page.paragraph(note);
  if (!comparison.parts.empty()) {
    page.heading(fmt::format("What the {} is made of", comparison.parts_of));
    // One scale for both bars, and parts in the same order, so that colours mean the same.
    double longest = 0;
    for (const bool is_second : {false, true}) {
      double sum = 0;
      for (const ComparedNumber& part : comparison.parts) sum += is_second ? part.second : part.first;
      longest = std::max(longest, sum);
    }
    for (const bool is_second : {false, true}) {
      std::vector<BarPart> bar;
      for (const ComparedNumber& part : comparison.parts) {
        const double seconds = is_second ? part.second : part.first;
        bar.push_back({part.name, seconds, duration_text(seconds)});
      }
      page.figure(parts_bar_svg(is_second ? "second" : "first", bar, longest),
                  fmt::format("Parts of the {} of the {} command, both bars on one scale", comparison.parts_of,
                              is_second ? "second" : "first"));
    }
    page.table({"", "first", "second", "difference", "change"}, part_rows(comparison));
  }
  page.heading("To reproduce");
  page.preformatted(comparison.first_command + "\n" + comparison.second_command);
  return page.finish();
}

}  // namespace foretoken
