#include "validate/deployment/replay_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/simulated_time.h"
#include "base/statistics.h"
#include "serving/engine/engine_setup.h"

namespace foretoken {
namespace {

constexpr std::string_view source_names[] = {"kernels", "communication", "host", "admission", "prefix hits", "client"};

struct ConstantFact {
  DeploymentConstant constant;
  ErrorSource source;
  const char* words;
};
constexpr ConstantFact constant_facts[] = {
    {DeploymentConstant::host, ErrorSource::host, "the host needs {:.2f} times as long for each step"},
    {DeploymentConstant::level, ErrorSource::kernels, "every kernel takes {:.2f} times as long"},
    {DeploymentConstant::prompt, ErrorSource::kernels, "kernels of steps with prompts take {:.2f} times as long"},
    {DeploymentConstant::attention, ErrorSource::kernels, "attention kernels take {:.2f} times as long"},
    {DeploymentConstant::experts, ErrorSource::kernels, "expert kernels take {:.2f} times as long"},
    {DeploymentConstant::collectives, ErrorSource::communication, "collectives take {:.2f} times as long"},
    {DeploymentConstant::front, ErrorSource::client,
     "the way from the client to the engine takes {:.2f} times as long"}};

// A flag that the deployment may have run with.
struct FlagFact {
  ErrorSource source;
  std::string words;
  std::function<void(EngineSpec&)> change;
};

struct Numbers {
  std::vector<RunObservation> observations;
  std::vector<double> seconds;

  double error(size_t i) const { return seconds[i] > 0 ? portable_log(observations[i].measured_s / seconds[i]) : 0; }
  double misfit() const {
    double sum = 0;
    for (size_t i = 0; i < seconds.size(); ++i) {
      const double deviations = error(i) / observations[i].sd;
      sum += deviations * deviations;
    }
    return sum;
  }
};

double median_of_log_spread(std::vector<double> errors) {
  if (errors.size() < 4) return 0;
  std::sort(errors.begin(), errors.end());
  return (quantile_of_sorted(errors, 0.75) - quantile_of_sorted(errors, 0.25)) / 1.349;  // of a normal
}

class RunComparer {
 public:
  RunComparer(const RunCase& measured, const ServingFacts& facts)
      : measured_(measured), facts_(facts), load_(load_of(measured)) {
    base_.observations = observations_of(measured.run);
    if (base_.observations.empty()) {
      throw InputError({.source = measured.run.name,
                        .value = "no stage without failed requests",
                        .expected = "end-to-end times, or times per token"});
    }
    const auto known = constants();
    if (known) constants_ = *known;
  }

  RunComparison compare() {
    for (const StepBound bound : {StepBound::value, StepBound::low, StepBound::high}) {
      runs_.push_back(simulate(measured_.engine, facts_, bound));
    }
    base_.seconds = predicted(runs_.front(), measured_.run, base_.observations);
    RunComparison result{.run = measured_.run.name,
                         .model = measured_.engine.model.name,
                         .device = measured_.engine.device.name,
                         .numbers = numbers(),
                         .requests = requests(),
                         .over_time = {},
                         .by_batch = {},
                         .by_context = {},
                         .explanations = {},
                         .noise = 0,
                         .measured_hits = {},
                         .predicted_hits = {},
                         .client_lag_ms = {}};
    add_parts(result);
    add_hits(result);
    explain(result);
    return result;
  }

 private:
  ReplayedRun simulate(const EngineSpec& engine, const ServingFacts& facts, StepBound bound = StepBound::value) const {
    EngineBuilder builder(facts);
    return simulate_run(builder, {.run = {.name = {}, .requests = measured_.run.requests}, .engine = engine}, load_,
                        bound);
  }

  std::optional<ConstantPosterior> constants() const {
    if (!facts_.deployment) return std::nullopt;
    const EngineSpec& engine = measured_.engine;
    return facts_.deployment->constants_of(engine_family(engine.flags.engine), engine.device.name, engine.model.name,
                                           engine.plan);
  }

  ServingFacts with(const ConstantVector& values) const {
    ServingFacts facts = facts_;
    auto trial = std::make_shared<CalibratedDeployment>();
    trial->engine = engine_family(measured_.engine.flags.engine);
    trial->device = measured_.engine.device.name;
    trial->others.mean = values;
    facts.deployment = std::move(trial);
    return facts;
  }

  Headline bounds_of(const std::function<double(const ReplayedRun&)>& number) const {
    Headline headline;
    headline.value = headline.low = headline.high = number(runs_.front());
    for (const ReplayedRun& run : runs_) {
      headline.low = std::min(headline.low, number(run));
      headline.high = std::max(headline.high, number(run));
    }
    return headline;
  }

  bool has_times() const {
    return std::any_of(measured_.run.requests.begin(), measured_.run.requests.end(),
                       [](const MeasuredRequest& request) { return request.has_times(); });
  }

  std::vector<ReplayedNumber> numbers() const {
    std::vector<ReplayedNumber> all;
    const MeasuredSummary summary = has_times() ? summarize(measured_.run) : measured_.run.summary;
    struct Metric {
      const char* name;
      const MeasuredLatency* latency;
      double (*of)(const RequestRecord&);
      const LatencySummary ServingMetrics::*whole;
    };
    const Metric metrics[] = {
        {"ttft_ms", &summary.ttft, [](const RequestRecord& r) { return to_seconds(r.ttft()).value(); },
         &ServingMetrics::ttft},
        {"tpot_ms", &summary.tpot, [](const RequestRecord& r) { return to_seconds(r.tpot()).value(); },
         &ServingMetrics::tpot},
        {"e2e_ms", &summary.e2e, [](const RequestRecord& r) { return to_seconds(r.e2el()).value(); },
         &ServingMetrics::e2el}};
    for (const Metric& metric : metrics) {
      const auto times = [&](const ReplayedRun& run) {
        std::vector<double> values;
        for (size_t id = 0; id < measured_.run.requests.size() && id < run.by_id.size(); ++id) {
          const RequestRecord& record = run.by_id[id];
          if (record.outcome != RequestOutcome::completed || record.output_tokens == 0) continue;
          if (metric.whole == &ServingMetrics::tpot && record.output_tokens < 2) continue;
          values.push_back(metric.of(record));
        }
        return values;
      };
      const auto add = [&](const std::string& statistic, double seconds,
                           const std::function<double(const ReplayedRun&)>& number) {
        Headline predicted = bounds_of(number);
        for (double* value : {&predicted.value, &predicted.low, &predicted.high}) *value *= 1e3;
        all.push_back({metric.name, statistic, 1e3 * seconds, predicted});
      };
      const auto mean_of = [&](const ReplayedRun& run) {
        const std::vector<double> values = times(run);
        return values.empty() ? 1e-3 * (run.answer.run.metrics.*metric.whole).mean_ms : mean(values);
      };
      if (metric.latency->mean) add("mean", *metric.latency->mean, mean_of);
      for (const auto& [percentile, seconds] : metric.latency->percentiles) {
        if (runs_.front().by_id.empty() && percentile != 50) continue;
        add(fmt::format("p{:g}", percentile), seconds, [&, &percentile = percentile](const ReplayedRun& run) {
          std::vector<double> values = times(run);
          return values.empty() ? 1e-3 * (run.answer.run.metrics.*metric.whole).median_ms
                                : quantile(std::move(values), percentile / 100);
        });
      }
    }
    return all;
  }

  std::vector<ReplayedRequest> requests() const {
    std::vector<ReplayedRequest> all;
    for (size_t id = 0; id < measured_.run.requests.size(); ++id) {
      const MeasuredRequest& request = measured_.run.requests[id];
      if (!request.has_times() || id >= runs_.front().by_id.size()) continue;
      const RequestRecord& record = runs_.front().by_id[id];
      ReplayedRequest one{.id = id,
                          .sent_s = request.sent(),
                          .input_tokens = request.input_tokens,
                          .output_tokens = request.output_tokens,
                          .ttft_ms = 1e3 * *request.ttft_s,
                          .e2e_ms = 1e3 * *request.e2e_s};
      if (record.outcome == RequestOutcome::completed && record.output_tokens > 0) {
        one.predicted_ttft_ms = 1e3 * to_seconds(record.ttft()).value();
        one.predicted_e2e_ms = 1e3 * to_seconds(record.e2el()).value();
      }
      all.push_back(one);
    }
    return all;
  }

  static void add_part(std::vector<ReplayedPart>& parts, std::string name, const std::vector<ReplayedRequest>& some) {
    ReplayedPart part{.name = std::move(name)};
    double decoded = 0;
    for (const ReplayedRequest& one : some) {
      if (one.predicted_e2e_ms <= 0) continue;
      ++part.requests;
      part.ttft_ms += one.ttft_ms;
      part.e2e_ms += one.e2e_ms;
      part.predicted_ttft_ms += one.predicted_ttft_ms;
      part.predicted_e2e_ms += one.predicted_e2e_ms;
      if (one.output_tokens < 2) continue;
      const auto gaps = static_cast<double>(one.output_tokens - 1);
      ++decoded;
      part.tpot_ms += (one.e2e_ms - one.ttft_ms) / gaps;
      part.predicted_tpot_ms += (one.predicted_e2e_ms - one.predicted_ttft_ms) / gaps;
    }
    if (part.requests == 0) return;
    const auto count = static_cast<double>(part.requests);
    for (double ReplayedPart::*sum : {&ReplayedPart::ttft_ms, &ReplayedPart::e2e_ms, &ReplayedPart::predicted_ttft_ms,
                                      &ReplayedPart::predicted_e2e_ms}) {
      part.*sum /= count;
    }
    if (decoded > 0) {
      part.tpot_ms /= decoded;
      part.predicted_tpot_ms /= decoded;
    }
    parts.push_back(std::move(part));
  }

  // Requests in about equal numbers, by their keys; those with the same key are together. `digits`: of a key.
  static void add_groups(std::vector<ReplayedPart>& parts, std::vector<std::pair<double, ReplayedRequest>> keyed,
                         size_t groups, int digits, const char* unit) {
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    groups = std::min(groups, keyed.size());
    size_t first = 0;
    for (size_t i = 0; i < groups; ++i) {
      size_t last = std::max(first, (i + 1) * keyed.size() / groups);
      while (last > first && last < keyed.size() && keyed[last].first == keyed[last - 1].first) ++last;
      if (last == first) continue;
      std::vector<ReplayedRequest> some;
      for (size_t k = first; k < last; ++k) some.push_back(keyed[k].second);
      const std::string least = fmt::format("{:.{}f}", keyed[first].first, digits),
                        most = fmt::format("{:.{}f}", keyed[last - 1].first, digits);
      add_part(parts, fmt::format("{}{} {}", least, least == most ? "" : " to " + most, unit), some);
      first = last;
    }
  }

  static void add_parts(RunComparison& result) {
    constexpr size_t spans = 8, kinds = 3;
    std::vector<std::pair<double, ReplayedRequest>> by_time, by_batch, by_context;
    std::vector<double> begins, ends;
    for (const ReplayedRequest& one : result.requests) {
      begins.push_back(one.sent_s);
      ends.push_back(one.sent_s + 1e-3 * one.e2e_ms);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    for (const ReplayedRequest& one : result.requests) {
      // Requests in flight halfway through this one's output.
      const double middle = one.sent_s + 0.5e-3 * (one.ttft_ms + one.e2e_ms);
      const auto begun = std::upper_bound(begins.begin(), begins.end(), middle) - begins.begin();
      const auto ended = std::lower_bound(ends.begin(), ends.end(), middle) - ends.begin();
      const auto beside = static_cast<double>(begun - ended);
      by_time.emplace_back(one.sent_s, one);
      by_batch.emplace_back(beside, one);
      by_context.emplace_back(static_cast<double>(one.input_tokens) + 0.5 * static_cast<double>(one.output_tokens),
                              one);
    }
    add_groups(result.over_time, std::move(by_time), spans, 1, "s");
    add_groups(result.by_batch, std::move(by_batch), kinds, 0, "in flight");
    add_groups(result.by_context, std::move(by_context), kinds, 0, "tokens of context");
  }

  void add_hits(RunComparison& result) const {
    double cached = 0, prompts = 0, predicted_cached = 0, late = 0, sent = 0;
    for (size_t id = 0; id < measured_.run.requests.size() && id < runs_.front().by_id.size(); ++id) {
      const MeasuredRequest& request = measured_.run.requests[id];
      if (request.sent_s) {
        late += *request.sent_s - request.arrival_s;
        ++sent;
      }
      if (!request.cached_tokens) continue;
      cached += static_cast<double>(*request.cached_tokens);
      prompts += static_cast<double>(request.input_tokens);
      predicted_cached += static_cast<double>(runs_.front().by_id[id].cached_tokens);
    }
    if (sent > 0) result.client_lag_ms = 1e3 * late / sent;
    if (prompts > 0) {
      result.measured_hits = cached / prompts;
      result.predicted_hits = predicted_cached / prompts;
      return;
    }
    const std::vector<MetricsSample>& samples = measured_.run.samples;
    if (samples.size() < 2 || !samples.front().prefix_queries || !samples.back().prefix_queries ||
        !samples.front().prefix_hits || !samples.back().prefix_hits) {
      return;
    }
    const double queries = *samples.back().prefix_queries - *samples.front().prefix_queries;
    if (queries <= 0) return;
    result.measured_hits = (*samples.back().prefix_hits - *samples.front().prefix_hits) / queries;
    const ServingMetrics& metrics = runs_.front().answer.run.metrics;
    result.predicted_hits =
        static_cast<double>(metrics.cached_tokens) / static_cast<double>(std::max<int64_t>(1, metrics.input_tokens));
  }

  std::vector<FlagFact> flags() const {
    const EngineSpec& engine = measured_.engine;
    const SchedulerOptions& options = runs_.front().answer.groups.front().config.options;
    std::vector<FlagFact> facts;
    const auto toggle = [&](ErrorSource source, const char* flag, bool now, auto set) {
      facts.push_back({source, fmt::format("{{{}}} {}", flag, now ? "off" : "on"),
                       [set, now](EngineSpec& spec) { set(spec) = !now; }});
    };
    toggle(ErrorSource::prefix_hits, "enable_prefix_caching", engine.scheduling.enable_prefix_caching,
           [](EngineSpec& spec) -> bool& { return spec.scheduling.enable_prefix_caching; });
    facts.push_back(
        {ErrorSource::host, fmt::format("{{async_scheduling}} {}", options.async_scheduling ? "off" : "on"),
         [ahead = options.async_scheduling](EngineSpec& spec) { spec.scheduling.async_scheduling = !ahead; }});
    toggle(ErrorSource::host, "enforce_eager", engine.flags.enforce_eager,
           [](EngineSpec& spec) -> bool& { return spec.flags.enforce_eager; });
    for (const int64_t tokens : {options.max_num_batched_tokens / 4, options.max_num_batched_tokens * 4}) {
      if (tokens < 256) continue;
      facts.push_back({ErrorSource::admission, fmt::format("{{max_num_batched_tokens}} {}", tokens),
                       [tokens](EngineSpec& spec) { spec.flags.max_num_batched_tokens = tokens; }});
    }
    double most = 0;
    for (const MetricsSample& sample : measured_.run.samples) most = std::max(most, sample.running.value_or(0));
    std::vector<int64_t> sequences = {options.max_num_seqs / 4, options.max_num_seqs * 4};
    if (most > 0) sequences.push_back(static_cast<int64_t>(most));
    for (const int64_t count : sequences) {
      if (count < 1 || count == options.max_num_seqs) continue;
      facts.push_back({ErrorSource::admission, fmt::format("{{max_num_seqs}} {}", count),
                       [count](EngineSpec& spec) { spec.flags.max_num_seqs = count; }});
    }
    if (options.num_gpu_blocks > 0) {
      const int64_t blocks = options.num_gpu_blocks / 2;
      facts.push_back({ErrorSource::admission, fmt::format("{{num_gpu_blocks_override}} {} (half as many)", blocks),
                       [blocks](EngineSpec& spec) { spec.flags.num_gpu_blocks_override = blocks; }});
    }
    return facts;
  }

  void explain(RunComparison& result) {
    const double before = base_.misfit();
    // As far off as numbers with such errors are anyway.
    result.agrees = before <= 2 * static_cast<double>(base_.observations.size());
    const ReplayedRun* best = &runs_.front();
    std::vector<ReplayedRun> kept;
    kept.reserve(std::size(constant_facts) + 16);
    double least = before;
    const auto try_out = [&](ErrorSource source, std::string words, const EngineSpec& engine,
                             const ServingFacts& facts) {
      Numbers there{.observations = base_.observations, .seconds = {}};
      try {
        kept.push_back(simulate(engine, facts));
      } catch (const InputError&) {
        return;  // such an engine would not start
      }
      there.seconds = predicted(kept.back(), measured_.run, base_.observations);
      const double misfit = there.misfit();
      if (misfit >= before) return;
      result.explanations.push_back({source, std::move(words), before > 0 ? 1 - misfit / before : 0});
      if (misfit < least) {
        least = misfit;
        best = &kept.back();
      }
    };
    if (!measured_.engine.steps.is_measured()) {
      for (const ConstantFact& fact : constant_facts) {
        const bool sends = rank_count(measured_.engine.plan) > 1 || measured_.engine.plan.expert > 1;
        if (fact.constant == DeploymentConstant::collectives && !sends) continue;
        if (fact.constant == DeploymentConstant::experts && !measured_.engine.model.has_experts()) continue;
        const double best_value = best_constant(fact.constant);
        if (best_value == at(constants_.mean, fact.constant)) continue;
        ConstantVector values = constants_.mean;
        at(values, fact.constant) = best_value;
        try_out(fact.source,
                fmt::format(fmt::runtime(fact.words), portable_exp(best_value - at(constants_.mean, fact.constant))),
                measured_.engine, with(values));
      }
    }
    for (const FlagFact& fact : flags()) {
      EngineSpec changed = measured_.engine;
      fact.change(changed);
      try_out(fact.source, fact.words, changed, facts_);
    }
    std::stable_sort(result.explanations.begin(), result.explanations.end(),
                     [](const Explanation& a, const Explanation& b) { return a.explains > b.explains; });
    std::vector<double> errors;
    for (const ReplayedRequest& one : result.requests) {
      const RequestRecord& record = best->by_id[one.id];
      if (record.outcome != RequestOutcome::completed || record.output_tokens == 0) continue;
      errors.push_back(portable_log(one.e2e_ms / (1e3 * to_seconds(record.e2el()).value())));
    }
    result.noise = median_of_log_spread(std::move(errors));
  }

  // Which brings the numbers nearest, by a straight line.
  double best_constant(DeploymentConstant constant) const {
    const DeploymentConstantKind& kind = deployment_constant_kinds()[static_cast<size_t>(constant)];
    const double here = at(constants_.mean, constant);
    ConstantVector moved = constants_.mean;
    at(moved, constant) = std::min(kind.most, here + kind.difference);
    const double step = at(moved, constant) - here;
    if (step <= 0) return here;
    const std::vector<double> there =
        predicted(simulate(measured_.engine, with(moved)), measured_.run, base_.observations);
    double pull = 0, stiffness = 0;
    for (size_t i = 0; i < there.size(); ++i) {
      if (there[i] <= 0 || base_.seconds[i] <= 0) continue;
      const double slope = portable_log(there[i] / base_.seconds[i]) / step, sd = base_.observations[i].sd;
      pull += slope * base_.error(i) / (sd * sd);
      stiffness += slope * slope / (sd * sd);
    }
    if (stiffness <= 0) return here;
    return std::clamp(here + pull / stiffness, kind.least, kind.most);
  }

  const RunCase& measured_;
  const ServingFacts& facts_;
  LoadSpec load_;
  Numbers base_;
  ConstantPosterior constants_;    // that the prediction is made with
  std::vector<ReplayedRun> runs_;  // value, low, high
};

}  // namespace

std::string_view error_source_name(ErrorSource source) {
  return source_names[static_cast<size_t>(source)];
}

RunComparison compare_run(const RunCase& measured, const ServingFacts& facts) {
  return RunComparer(measured, facts).compare();
}

}  // namespace foretoken
