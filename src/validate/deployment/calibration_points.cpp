#include "validate/deployment/calibration_points.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/statistics.h"
#include "library/library.h"
#include "validate/deployment/calibrate_deployment.h"
#include "validate/row_filter.h"
#include "validate/serving/serving_case.h"
#include "validate/serving/serving_specs.h"

namespace foretoken {
namespace {

constexpr size_t fewest_points = 4;

struct Point {
  ServingCase row;
  RunCase measured;
};

// Nothing where the row does not have what a client's summary has.
std::optional<MeasuredSummary> summary_of(const ServingCase& row) {
  MeasuredSummary summary;
  for (const MeasuredValue& value : row.measured) {
    MeasuredLatency* const latency = value.metric == "tpot_ms"   ? &summary.tpot
                                     : value.metric == "ttft_ms" ? &summary.ttft
                                                                 : nullptr;
    if (latency == nullptr) continue;
    if (value.statistic == "mean") latency->mean = 1e-3 * value.value;
    if (value.statistic == "median") latency->percentiles[50] = 1e-3 * value.value;
  }
  if (summary.tpot.is_empty()) return std::nullopt;
  return summary;
}

// Evenly by load: a lab that measured a hundred points of one group says little more than with eight.
std::vector<Point> some_of(std::vector<Point> points, int64_t most) {
  const auto count = static_cast<size_t>(most);
  if (most == 0 || points.size() <= count) return points;
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.row.load.max_concurrency < b.row.load.max_concurrency;
  });
  std::vector<Point> some;
  for (size_t i = 0; i < count; ++i) some.push_back(std::move(points[i * (points.size() - 1) / (count - 1)]));
  return some;
}

// A time per token of a group that was not calibrated on.
struct Scored {
  double measured = 0;
  Headline before, after;  // seconds
};

struct GroupScore {
  std::vector<Scored> tpot, ttft;
  std::vector<SkippedRows> skipped;
};

class PointGroup {
 public:
  PointGroup(std::vector<Point> points, const ServingFacts& facts, const std::string& source)
      : points_(std::move(points)), facts_(facts), source_(source) {}

  GroupScore score() {
    predict_uncalibrated();
    if (points_.size() < fewest_points) return std::move(score_);
    CalibrationRequest request{.cases = {}, .facts = facts_, .leave_one_out = false, .suggest = false, .threads = 1};
    for (const Point& point : points_) request.cases.push_back(point.measured);
    DeploymentCalibrator calibrator(request);
    const size_t medium = medium_load();
    std::vector<bool> used(calibrator.rows());
    for (size_t row = 0; row < calibrator.rows(); ++row) used[row] = calibrator.case_of(row) == medium;
    const CalibratedDeployment deployment = calibrator.fit(used).deployment;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (i == medium) continue;
      const std::vector<RunObservation> observations = observations_of(points_[i].measured.run);
      const std::vector<Headline> after = calibrator.predict(&deployment, i);
      for (size_t k = 0; k < observations.size(); ++k) {
        std::vector<Scored>& into = observations[k].metric == RunMetric::tpot ? score_.tpot : score_.ttft;
        into.push_back({observations[k].measured_s, before_[i][k], after[k]});
      }
    }
    return std::move(score_);
  }

 private:
  // Points that cannot be simulated leave the group.
  void predict_uncalibrated() {
    std::vector<Point> able;
    EngineBuilder builder(facts_);
    for (Point& point : points_) {
      try {
        std::vector<Headline> values =
            predicted_with_bounds(builder, point.measured, *point.measured.load, observations_of(point.measured.run));
        if (values.front().value <= 0) {
          throw InputError({.source = point.row.id, .value = "no request", .expected = "requests that fit the engine"});
        }
        before_.push_back(std::move(values));
        able.push_back(std::move(point));
      } catch (const InputError& error) {
        score_.skipped.push_back({source_, point.row.row, error.sentence()});
      }
    }
    points_ = std::move(able);
  }

  size_t medium_load() const {
    std::vector<size_t> order(points_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return before_[a].front().value < before_[b].front().value; });
    return order[(order.size() - 1) / 2];
  }

  std::vector<Point> points_;
  const ServingFacts& facts_;
  const std::string& source_;
  std::vector<std::vector<Headline>> before_;  // by point, as observations_of()
  GroupScore score_;
};

// Of values with weights.
double weighted_median(std::vector<std::pair<double, double>> values) {
  std::sort(values.begin(), values.end());
  double whole = 0, sum = 0;
  for (const auto& [value, weight] : values) whole += weight;
  for (const auto& [value, weight] : values) {
    sum += weight;
    if (2 * sum >= whole) return value;
  }
  return 0;
}

class GroupScores {
 public:
  void add(const std::string& name, const std::vector<Scored>& scored) {
    std::vector<double> before, after;
    const double weight = 1 / static_cast<double>(scored.size());
    for (const Scored& one : scored) {
      before.push_back(percent_error(one.before.value, one.measured));
      after.push_back(percent_error(one.after.value, one.measured));
      before_.emplace_back(before.back(), weight);
      after_.emplace_back(after.back(), weight);
    }
    const double change = quantile(after, 0.5) - quantile(before, 0.5);
    ++groups_;
    better_ += change < 0 ? 1 : 0;
    if (groups_ == 1 || change > worst_) {
      worst_ = change;
      worst_name_ = name;
    }
  }

  void write(const char* metric, Validation& result) const {
    if (groups_ == 0) return;
    result.notes.push_back(
        fmt::format("{} groups, each calibrated on its point of medium load: median {} error of the other points "
                    "{:.1f}% before, {:.1f}% after (groups weigh alike)",
                    groups_, metric, weighted_median(before_), weighted_median(after_)));
    result.notes.push_back(fmt::format("{}: {} of {} groups better; the worst changed by {:+.1f} points ({})", metric,
                                       better_, groups_, worst_, worst_name_));
  }

 private:
  size_t groups_ = 0, better_ = 0;
  double worst_ = 0;
  std::string worst_name_;
  std::vector<std::pair<double, double>> before_, after_;
};

std::map<std::string, std::vector<Point>> read_groups(const CalibrationValidationRequest& request,
                                                      const Library& library, Validation& result) {
  const HardwareCatalogue hardware = library.hardware();
  ServingCaseReader rows(request.data, hardware, read_public_facts(library.directory()));
  ServingSpecMaker maker(library, std::nullopt, {});
  std::map<std::string, std::vector<Point>> groups;
  while (rows.next()) {
    if (!is_wanted(request.devices, rows.text("gpu")) || !is_wanted(request.models, rows.text("model"))) continue;
    std::string why;
    try {
      std::optional<ServingCase> row = rows.read(why);
      if (row && (row->prefill || row->drafts > 0 || row->trace)) {
        why = "separate prompt workers, drafts and traces are not calibrated on here";
      } else if (row) {
        if (const std::optional<MeasuredSummary> summary = summary_of(*row)) {
          maker.open(*row);
          ServingSpecs specs = maker.specs(*row);
          RunCase measured{.run = {.name = row->id, .engine = row->engine, .model = row->model, .device = row->gpu},
                           .engine = std::move(specs.engine),
                           .load = std::move(specs.load),
                           .deployment = std::move(specs.deployment)};
          measured.run.summary = *summary;
          const std::string key =
              fmt::format("{} {} {} {} {} {}", rows.text("source"), rows.text("engine"), rows.text("engine_version"),
                          rows.text("gpu"), rows.text("model"), rows.text("weight_dtype"));
          groups[key].push_back({std::move(*row), std::move(measured)});
          continue;
        }
        why = "no mean or median time per token";
      }
    } catch (const InputError& error) {
      why = error.sentence();
    }
    result.skipped.push_back({request.data.string(), rows.csv().row(), why});
  }
  std::erase_if(groups, [](const auto& group) { return group.second.size() < fewest_points; });
  return groups;
}

}  // namespace

void score_points(const CalibrationValidationRequest& request, const Library& library, const ServingFacts& facts,
                  ValidationTally& tally, Validation& result) {
  std::map<std::string, std::vector<Point>> read = read_groups(request, library, result);
  std::vector<std::pair<const std::string*, std::vector<Point>>> groups;
  for (auto& [name, points] : read) groups.emplace_back(&name, some_of(std::move(points), request.points_per_group));
  std::vector<GroupScore> scores(groups.size());
  const std::string source = request.data.string();
  std::mutex telling;
  size_t done = 0;
  for_each_on_threads(threads_to_use(request.threads), groups.size(), [&](size_t i) {
    scores[i] = PointGroup(std::move(groups[i].second), facts, source).score();
    const std::lock_guard lock(telling);
    if (request.tell) request.tell(fmt::format("{} of {} groups", ++done, groups.size()));
  });
  GroupScores tpot, ttft;
  for (size_t i = 0; i < groups.size(); ++i) {
    const GroupScore& score = scores[i];
    result.skipped.insert(result.skipped.end(), score.skipped.begin(), score.skipped.end());
    if (score.tpot.empty()) continue;
    tpot.add(*groups[i].first, score.tpot);
    if (!score.ttft.empty()) ttft.add(*groups[i].first, score.ttft);
    for (const auto& [metric, scored] : {std::pair("tpot_ms", &score.tpot), std::pair("ttft_ms", &score.ttft)}) {
      for (const Scored& one : *scored) {
        const auto add = [&, &metric = metric](const char* how, const Headline& seconds) {
          tally.add(fmt::format("{}/{}", how, metric),
                    {1e3 * one.measured, 1e3 * seconds.value, 1e3 * seconds.low, 1e3 * seconds.high}, 0);
        };
        add("not calibrated", one.before);
        add("1 point", one.after);
      }
    }
  }
  tpot.write("tpot_ms", result);
  ttft.write("ttft_ms", result);
}

}  // namespace foretoken
