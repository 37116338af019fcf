#include "validate/serving/validate_serving.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "library/library.h"
#include "validate/row_filter.h"
#include "validate/serving/load_stages.h"
#include "validate/serving/serving_specs.h"

namespace foretoken {
namespace {

// InputError for a value of a filter that no row has.
void check_filters(const ServingValidationRequest& request) {
  struct Filter {
    const char *field, *column;
    const std::vector<std::string>& values;
    std::set<std::string> known;
  };
  Filter filters[] = {{"kinds", nullptr, request.kinds, {"dense", "moe"}},
                      {"tiers", "tier", request.tiers, {}},
                      {"devices", "gpu", request.devices, {}},
                      {"models", "model", request.models, {}},
                      {"engines", "engine", request.engines, {}}};
  CsvReader rows(request.data);
  while (rows.next()) {
    for (Filter& filter : filters) {
      const auto column = filter.column != nullptr ? rows.find_column(filter.column) : std::nullopt;
      if (filter.column != nullptr) filter.known.emplace(column ? rows.cell(*column) : std::string_view());
    }
  }
  for (const Filter& filter : filters) {
    for (const std::string& value : filter.values) {
      if (filter.known.contains(value)) continue;
      const std::vector<std::string> known(filter.known.begin(), filter.known.end());
      throw InputError({.field = filter.field,
                        .value = printable(value),
                        .expected = fmt::format("one of {}", fmt::join(known, ", ")),
                        .suggestion = nearest_name(value, known).value_or("")});
    }
  }
}

struct Answered {
  std::vector<Headline> values;  // as ServingCase::measured
  std::string why;               // where there are none
  double seconds = 0;
};

// Simulates rows in groups, keeps the answers in the order of rows.
class ServingValidator {
 public:
  ServingValidator(ServingSpecMaker& maker, const ServingFacts& facts) : maker_(maker), facts_(facts) {}

  // InputError where the row names something unknown.
  void add(ServingCase point) {
    maker_.open(point);
    families_[maker_.family_of(point)].push_back(points_.size());
    points_.push_back(std::move(point));
  }

  std::vector<Answered> answer(unsigned threads) const {
    std::vector<Answered> answers(points_.size());
    std::vector<const std::vector<size_t>*> work;
    for (const auto& [key, rows] : families_) work.push_back(&rows);
    for_each_on_threads(threads, work.size(), [&](size_t index) { answer_family(*work[index], answers); });
    return answers;
  }

  const std::vector<ServingCase>& points() const { return points_; }

 private:
  void answer_family(const std::vector<size_t>& rows, std::vector<Answered>& answers) const {
    EngineBuilder builder(facts_);
    for (const size_t row : rows) {
      const auto begin = std::chrono::steady_clock::now();
      try {
        const ServingSpecs specs = maker_.specs(points_[row]);
        answers[row].values = predicted_values(points_[row], specs, simulate_point(builder, specs));
      } catch (const InputError& error) {
        answers[row].why = error.sentence();
      }
      answers[row].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
  }

  ServingSpecMaker& maker_;
  const ServingFacts& facts_;
  std::vector<ServingCase> points_;
  std::map<std::string, std::vector<size_t>> families_;
};

}  // namespace

Validation validate_serving(const ServingValidationRequest& request, const Library& library, const ServingFacts& facts,
                            const ScoredServingSink& sink) {
  if (has_load_stages(CsvReader(request.data))) return validate_load_stages(request, library, facts, sink);
  const HardwareCatalogue hardware = library.hardware();
  check_filters(request);
  ServingCaseReader rows(request.data, hardware, read_public_facts(library.directory()));
  if (!request.group_by.empty()) rows.csv().column(request.group_by);
  std::optional<AcceptanceTable> acceptance;
  if (!request.acceptance.empty()) acceptance.emplace(request.acceptance);
  ServingSpecMaker maker(library, std::move(acceptance), request.traces);
  ServingValidator validator(maker, facts);
  Validation result;
  std::vector<std::string> groups;  // of the points, where a column says them
  if (request.every > 1) result.notes.push_back(fmt::format("a sample: every {}th row", request.every));
  while (rows.next()) {
    if (rows.csv().row() % request.every != 0) continue;
    if (!is_wanted(request.tiers, rows.text("tier")) || !is_wanted(request.devices, rows.text("gpu")) ||
        !is_wanted(request.models, rows.text("model")) || !is_wanted(request.engines, rows.text("engine"))) {
      continue;
    }
    std::string why;
    try {
      if (!request.kinds.empty() &&
          !is_wanted(request.kinds, maker.has_experts(std::string(rows.text("model"))) ? "moe" : "dense")) {
        continue;
      }
      if (std::optional<ServingCase> point = rows.read(why)) {
        validator.add(std::move(*point));
        groups.emplace_back(request.group_by.empty() ? "" : rows.text(request.group_by));
        continue;
      }
    } catch (const InputError& error) {
      why = error.sentence();
    }
    result.skipped.push_back({request.data.string(), rows.csv().row(), why});
  }

  if (validator.points().empty() && result.skipped.empty()) {
    throw InputError({.source = request.data.string(),
                      .field = request.kinds.empty() ? "" : "kinds",
                      .value = "no row",
                      .expected = "filters that leave at least one"});
  }
  const std::vector<Answered> answers = validator.answer(threads_to_use(request.threads));
  ErrorTable errors;
  std::map<std::string, std::pair<double, double>> effort;  // rows and seconds by group
  double seconds = 0, values = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const ServingCase& point = validator.points()[i];
    if (answers[i].values.empty()) {
      result.skipped.push_back({request.data.string(), point.row, answers[i].why});
      continue;
    }
    const auto count = static_cast<double>(point.measured.size());
    for (size_t k = 0; k < point.measured.size(); ++k) {
      const MeasuredValue& measured = point.measured[k];
      const Headline& predicted = answers[i].values[k];
      const std::string group = groups[i].empty() ? fmt::format("{}/{}", point.tier, measured.metric)
                                                  : fmt::format("{}/{}", groups[i], measured.metric);
      errors.add(
          group,
          {.measured = measured.value, .predicted = predicted.value, .low = predicted.low, .high = predicted.high});
      effort[group].first += 1;
      effort[group].second += answers[i].seconds / count;
      if (sink) {
        sink({.id = point.id,
              .group = group,
              .device = point.gpu,
              .model = point.model,
              .engine = point.engine,
              .metric = measured.metric,
              .row = point.row,
              .measured = measured.value,
              .predicted = predicted});
      }
    }
    seconds += answers[i].seconds;
    values += count;
  }
  std::sort(result.skipped.begin(), result.skipped.end(),
            [](const SkippedRows& a, const SkippedRows& b) { return a.row < b.row; });
  result.overall = errors.overall();
  for (const auto& [name, summary] : errors.groups()) {
    const auto& [count, spent] = effort.at(name);
    result.groups.push_back({.name = name, .errors = summary, .seconds_per_1000_rows = spent / count * 1000});
  }
  if (values > 0) result.seconds_per_1000_rows = seconds / values * 1000;
  return result;
}

}  // namespace foretoken
