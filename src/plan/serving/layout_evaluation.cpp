// One layout by runs: which rates are tried with how much effort, and what is found.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "plan/serving/capacity_search.h"
#include "plan/serving/layout_simulation.h"
#include "plan/serving/layout_trial.h"
#include "plan/serving/pooled_latencies.h"

namespace foretoken {
namespace {

constexpr bool takes_long_runs(Effort effort) {
  return effort == Effort::full || effort == Effort::promised || effort == Effort::long_curve;
}

constexpr bool draws_curve(Effort effort) {
  return effort == Effort::curve || effort == Effort::long_curve;
}

// What an evaluation goes on from.
constexpr std::optional<Effort> effort_before(Effort effort) {
  switch (effort) {
    case Effort::full:
      return Effort::quick;
    case Effort::promised:
      return Effort::full;
    case Effort::curve:
    case Effort::long_curve:
      return Effort::promised;
    case Effort::closed_form:
    case Effort::quick:
    case Effort::ranged:
      break;
  }
  return std::nullopt;
}

// Of the capacity: rates of a curve.
constexpr std::array shares_of_curve = {0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25};

// Stretches of the traffic that capacity is found for one by one, to see how much they differ.
constexpr int64_t compared_stretches = 3;

// A step of some decodes in the middle of their outputs.
Estimate usual_step(const ReadyEngine& engine, const TrafficLengths& lengths) {
  constexpr int64_t usual_batch = 32;
  const int64_t batch = std::min(usual_batch, engine.group.config.options.max_num_seqs);
  const auto context = static_cast<int64_t>(lengths.mean_input + lengths.mean_output / 2);
  return engine.group.times->step_seconds(
      {.decodes = batch, .decode_context_tokens = batch * context, .longest_decode_context = context, .prompts = {}});
}

}  // namespace

TriedRate LayoutSimulator::KeptRuns::added(const TriedRun& tried) {
  if (tried.run) runs.push_back(*tried.run);
  return tried.tells();
}

void LayoutSimulator::KeptRuns::set_capacity(double load) {
  const bool is_closed = !runs.empty() && runs.back().in_flight > 0;
  capacity = is_closed && load > 0 ? runs.back().rate : load;
}

// Of as many such layouts.
LayoutSimulator::KeptRuns LayoutSimulator::KeptRuns::times(double number) const {
  KeptRuns all = *this;
  all.capacity *= number;
  for (PlanRun& run : all.runs) {
    run.rate *= number;
    run.output_tokens_per_s *= number;
    run.goodput *= number;
  }
  return all;
}

const LayoutSimulator::RelativeInterval& LayoutSimulator::interval(const std::string& name,
                                                                   const std::function<RelativeInterval()>& find) {
  constexpr size_t most_kept = 4096;
  if (const auto found = intervals_.find(name); found != intervals_.end()) return found->second;
  if (intervals_.size() >= most_kept) intervals_.clear();
  const RelativeInterval within = find();
  return intervals_[name] = within;
}

// Latencies rise with the load from those of a request alone to the limits, which they reach at capacity.
PlanPoint LayoutSimulator::by_closed_form(PlanPoint point, const LayoutJudgement& judgement,
                                          const Estimate& step) const {
  const double most = judgement.most_requests_per_s;
  const ReachedShare share = usually_reached(point.layout, judgement.shape);
  point.capacity = {.value = most * share.usual, .low = most * share.low, .high = most * share.high};
  const bool at_rate = question_->rate && *question_->rate <= point.capacity.value;
  PlanRun run{.rate = at_rate ? *question_->rate : point.capacity.value, .attained = true, .achieved_ms = {}};
  const double load = run.rate / point.capacity.value;
  double token_ms = step.value * 1e3;
  for (size_t i = 0; i < question_->slos.size(); ++i) {
    const LatencySlo& slo = question_->slos[i];
    const double alone = std::min(judgement.alone_ms[i], slo.limit_ms);
    run.achieved_ms.push_back(alone + (slo.limit_ms - alone) * load * load);
    if (slo.metric == SloMetric::tpot) token_ms = run.achieved_ms.back();
  }
  run.output_tokens_per_s = run.rate * traffic_->lengths().mean_output;
  run.tokens_per_s_of_user = 1e3 / token_ms;
  run.goodput = run.rate;
  point.runs = {run};
  return point;
}

const LayoutSimulator::KeptRuns& LayoutSimulator::kept_runs(const std::string& name, const Trial& trial,
                                                            const CapacitySearch& search) {
  constexpr size_t most_kept = 4096;
  if (const auto found = kept_runs_.find(name); found != kept_runs_.end()) return found->second;
  if (kept_runs_.size() >= most_kept) kept_runs_.clear();
  KeptRuns kept;
  // The slowest tells how near the layout comes to limits that it never keeps.
  kept.set_capacity(
      highest_rate(search, [&](double rate) { return kept.added(trial.tried(rate, rate <= search.lowest)); }));
  return kept_runs_[name] = std::move(kept);
}

// Shares of the capacity, and the rate asked for; of a closed loop, shares of the requests in flight.
std::vector<double> LayoutSimulator::rates_of_curve(double capacity) const {
  std::vector<double> rates;
  if (capacity <= 0) return rates;
  for (const double share : shares_of_curve) {
    const auto in_flight = [&] {
      return std::max(1.0, std::round(share * static_cast<double>(*question_->in_flight)));
    };
    rates.push_back(question_->in_flight ? in_flight() : capacity * share);
  }
  if (const std::optional<double>& asked = question_->rate; asked && *asked <= rates.back()) {
    // One beside it would show nothing but another draw of requests.
    std::erase_if(rates,
                  [&](double rate) { return rate != capacity && std::abs(rate / *asked - 1) <= pooled_tolerance; });
    rates.push_back(*asked);
  }
  std::sort(rates.begin(), rates.end());
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  return rates;
}

// One layout by runs: the rate that it sustains, and the ends of the interval of that.
class LayoutSimulator::Evaluation {
 public:
  // The `point` has its layout and effort, no run yet. `step`: its usual one.
  Evaluation(LayoutSimulator& simulator, const LayoutEngines& engines, const LayoutJudgement& judgement,
             const Estimate& step, const EvaluationHelp& help, PlanPoint point)
      : simulator_(simulator),
        question_(*simulator.question_),
        engines_(engines),
        most_(judgement.most_requests_per_s),
        step_(step),
        help_(help),
        effort_(point.effort),
        key_(point.layout.key()),
        short_part_(part_of(point.layout, 1)),
        short_key_(short_part_.key()),
        long_part_(simulator.long_part(point.layout, in_flight().value_or(most_))),
        simulated_(takes_long_runs(effort_) ? long_part_ : short_part_),
        point_(std::move(point)) {}

  PlanPoint evaluated() {
    if (draws_curve(effort_)) {
      run_curve();
    } else if (is_promised()) {
      find_promise();
      run_at_asked_rate();
    } else {
      find_capacity();
      run_at_asked_rate();
      const bool by_slow_end = question_.is_judged_by_slow_end(point_.layout) && !question_.pessimistic;
      const bool wants_interval = effort_ != Effort::quick || by_slow_end;
      if (wants_interval && capacity() > 0 && short_capacity() > 0) find_interval();
    }
    point_.short_part_capacity = short_part_capacity_;
    point_.usual_capacity = usual_capacity_;
    if (is_promised()) point_.lengthy_capacity = help_.known->lengthy_capacity;
    if (effort_ == Effort::full) point_.lengthy_capacity = capacity();
    return std::move(point_);
  }

 private:
  // A search for a capacity, rate by rate.
  struct RatesOfTrial {
    RatesOfTrial(const Trial& of, const CapacitySearch& search)
        : trial(of), rates(search), lowest(search.lowest), now(of, rates.next(), is_lowest()) {}

    void go_on() {
      if (is_found() || !now.decision()) return;
      if (const std::optional<double> found = rates.after(kept.added(*now.decision()))) {
        kept.set_capacity(*found);
        return;
      }
      now = RateTrial(trial, rates.next(), is_lowest());
    }
    bool is_found() const { return kept.capacity >= 0; }
    // That one tells how near the layout comes to limits that it never keeps.
    bool is_lowest() const { return rates.next() <= lowest; }

    Trial trial;
    RateSearch rates;
    double lowest;
    RateTrial now;
    KeptRuns kept{.capacity = -1};
  };

  double capacity() const { return point_.capacity.value; }
  bool is_promised() const { return effort_ == Effort::promised; }
  // Of a closed loop, which is judged at no other load.
  std::optional<double> in_flight() const {
    return question_.in_flight ? std::optional(static_cast<double>(*question_.in_flight)) : std::nullopt;
  }
  static CapacitySearch only_at(double load) { return {.start = load, .lowest = load, .highest = load}; }

  Trial trial_of(const ServingLayout& part, const Judging& judging) const {
    return trial_of(point_.layout, part, judging);
  }
  Trial trial_of(const ServingLayout& layout, const ServingLayout& part, const Judging& judging) const {
    return {.simulator = &simulator_,
            .layout = &layout,
            .part = &part,
            .engines = &engines_,
            .judging = judging,
            .bound = question_.pessimistic ? StepBound::high : StepBound::value,
            .metered = true};
  }
  Trial trial_of(const ServingLayout& part, RunLength length) const {
    return trial_of(part, {.length = length, .stretches = 1, .surely = false});
  }
  // Of which only the capacity is asked.
  Trial unmetered(const ServingLayout& part, RunLength length) const {
    Trial trial = trial_of(part, length);
    trial.metered = false;
    return trial;
  }
  // Short runs are those of the smallest part as a layout of its own: the same for any number of such parts.
  Trial short_trial() const {
    return trial_of(short_part_, short_part_, {.length = RunLength::brief, .stretches = 1, .surely = false});
  }
  double short_capacity() const { return short_part_capacity_ * parts(); }
  double parts() const {
    return static_cast<double>(point_.layout.devices()) / static_cast<double>(short_part_.devices());
  }

  CapacitySearch near(double start, double tolerance) const {
    return in_flight() ? only_at(*in_flight()) : near(start, tolerance, most_);
  }
  static CapacitySearch near(double start, double tolerance, double most) {
    return {.start = start > 0 ? start : most * 0.1,
            .lowest = most / 100,
            .highest = most * 2,
            .tolerance = tolerance,
            .first_step = 1 + 1.5 * tolerance};
  }

  // Rates of several trials, by whoever helps: each of their stretches may be run by another.
  void run_together(std::vector<RateTrial*> trials) const {
    std::erase_if(trials, [](const RateTrial* one) { return one->decision().has_value(); });
    if (!help_.run_stretches) {
      for (RateTrial* one : trials) one->run_here();
      return;
    }
    std::vector<StretchTask> tasks;
    std::vector<RateTrial*> owners;
    for (RateTrial* one : trials) {
      for (StretchTask& task : one->next(help_.workers)) {
        tasks.push_back(std::move(task));
        owners.push_back(one);
      }
    }
    std::vector<StretchOutcome> outcomes = help_.run_stretches(tasks);
    for (size_t i = 0; i < tasks.size(); ++i) owners[i]->put(std::move(outcomes[i]));
  }
  void search_together(std::vector<RatesOfTrial>& searches) const {
    while (true) {
      std::vector<RateTrial*> open;
      for (RatesOfTrial& one : searches) {
        if (!one.is_found()) open.push_back(&one.now);
      }
      if (open.empty()) return;
      run_together(open);
      for (RatesOfTrial& one : searches) one.go_on();
    }
  }
  void run_to_their_ends(std::vector<RateTrial>& trials) const {
    std::vector<RateTrial*> all;
    for (RateTrial& one : trials) all.push_back(&one);
    while (std::any_of(trials.begin(), trials.end(), [](const RateTrial& one) { return !one.decision(); })) {
      run_together(all);
    }
  }

  void find_capacity() {
    if (!takes_long_runs(effort_)) {
      set_capacity(quick_runs());
      short_part_capacity_ = short_runs().capacity;
      return;
    }
    ensure(help_.known != nullptr, "long runs begin at an estimate");
    short_part_capacity_ = help_.known->short_part_capacity;
    set_capacity(by_long_runs());
  }

  void set_capacity(KeptRuns found) {
    point_.runs = std::move(found.runs);
    point_.capacity = {.value = found.capacity, .low = found.capacity, .high = found.capacity};
  }

  // Shares of the requests in flight are rounded up to whole ones.
  KeptRuns quick_closed_runs() const {
    KeptRuns found = short_runs().times(parts());
    for (PlanRun& run : found.runs) run.in_flight = *question_.in_flight;
    return found;
  }

  // Of the smallest part under its load, where that is not searched for.
  std::string short_name() const {
    return in_flight() ? fmt::format("{} {} in flight", short_key_, *in_flight() / parts()) : short_key_;
  }

  KeptRuns quick_runs() const { return in_flight() ? quick_closed_runs() : short_runs().times(parts()); }

  // Of the smallest part.
  const KeptRuns& short_runs() const {
    if (in_flight())
      return simulator_.kept_runs("brief " + short_name(), short_trial(), only_at(*in_flight() / parts()));
    const LayoutJudgement part = simulator_.judge(short_part_);
    const double most = part.most_requests_per_s;
    const CapacitySearch search{.start = most * usually_reached(short_part_, part.shape).usual,
                                .lowest = most / 100,
                                .highest = most * 2,
                                .tolerance = settings_of(RunLength::brief).tolerance};
    return simulator_.kept_runs("brief " + short_name(), short_trial(), search);
  }

  KeptRuns by_long_runs() {
    if (!is_lengthy_as_usual()) {
      find_usual_capacity();
      return by_lengthy_runs(usual_capacity_);
    }
    const KeptRuns& found = by_lengthy_runs(short_capacity());
    usual_capacity_ = found.capacity;
    return found;
  }

  // At rates as high as that, runs of the usual length have as many requests as lengthy ones.
  bool is_lengthy_as_usual() const {
    constexpr double well_below = 0.7;
    const Trial lengthy = trial_of(long_part_, RunLength::lengthy), usual = trial_of(long_part_, RunLength::usual);
    const double rate = in_flight().value_or(short_capacity() * well_below);
    return lengthy.requests_at(rate) == usual.requests_at(rate);
  }

  // As few of the runs as possible are lengthy: those of the usual length tell where to begin.
  void find_usual_capacity() {
    usual_capacity_ = simulator_
                          .kept_runs("usual " + key_, trial_of(long_part_, RunLength::usual),
                                     near(short_capacity(), settings_of(RunLength::usual).tolerance))
                          .capacity;
  }

  const KeptRuns& by_lengthy_runs(double start) const {
    return simulator_.kept_runs("full " + key_, trial_of(long_part_, judging_of(Effort::full)),
                                near(start, pooled_tolerance));
  }

  // The rate that is promised, and what changes it, at the same time.
  void find_promise() {
    ensure(help_.known != nullptr, "a promise begins at an estimate");
    short_part_capacity_ = help_.known->short_part_capacity;
    usual_capacity_ = help_.known->usual_capacity;
    std::vector<RatesOfTrial> searches;
    searches.emplace_back(trial_of(long_part_, judging_of(effort_)),
                          near(help_.known->capacity.value * usually_promised, pooled_tolerance));
    const bool has_interval = usual_capacity_ > 0 && short_capacity() > 0;
    Changes changes;
    if (has_interval) changes = added_changes(searches);
    search_together(searches);
    set_capacity(searches.front().kept);
    if (!has_interval || capacity() <= 0) return;
    const RelativeInterval within = interval_of(searches, changes);
    point_.capacity.low = capacity() * within.low;
    point_.capacity.high = capacity() * within.high;
  }

  // What slower steps, faster steps and other stretches change, each by runs of the usual length: places among
  // searches.
  struct Changes {
    std::optional<size_t> slow_steps;  // nothing where all steps are slow
    size_t fast_steps = 0;
    std::vector<size_t> acceptances;  // low and high; empty where there is nothing to know
    std::vector<size_t> other_stretches;
    std::optional<size_t> usual_steps;  // of the part with other steps, where it is another one
  };
  Changes added_changes(std::vector<RatesOfTrial>& searches) const {
    const auto add = [&](const ServingLayout& part, std::optional<StepBound> bound, int64_t stretch, double start,
                         std::optional<size_t> acceptance_end = {}) {
      Trial trial = unmetered(part, RunLength::usual);
      if (bound) trial.bound = *bound;
      trial.acceptance_end = acceptance_end;
      trial.first_stretch = stretch;
      searches.emplace_back(trial, near(start, settings_of(RunLength::usual).tolerance));
      return searches.size() - 1;
    };
    const ServingLayout& other = part_with_other_steps();
    Changes changes;
    if (!question_.pessimistic) {
      changes.slow_steps = add(other, StepBound::high, 0, usual_capacity_ * step_.value / step_.high);
    }
    changes.fast_steps = add(other, StepBound::low, 0, usual_capacity_ * gain_of_fast_steps());
    for (const size_t end : unknown_acceptances()) {
      changes.acceptances.push_back(add(other, std::nullopt, 0, usual_capacity_ * gain_of_acceptance(end), end));
    }
    for (int64_t stretch = 1; stretch < compared_stretches; ++stretch) {
      changes.other_stretches.push_back(add(long_part_, std::nullopt, stretch, usual_capacity_));
    }
    if (other != long_part_) changes.usual_steps = add(other, std::nullopt, 0, usual_capacity_);
    return changes;
  }
  // One of many replicas tells as well what slower and faster steps change.
  const ServingLayout& part_with_other_steps() const {
    constexpr int64_t few = 2;
    return long_part_.devices() > few * short_part_.devices() ? short_part_ : long_part_;
  }
  // Ends of the acceptance of drafts, where nobody knows it.
  std::vector<size_t> unknown_acceptances() const {
    return speculation().unknown_acceptance.empty() ? std::vector<size_t>{} : std::vector<size_t>{0, 1};
  }
  const Speculation& speculation() const {
    return (engines_.decode != nullptr ? engines_.decode : engines_.pool)->group.config.options.speculation;
  }
  // Steps of decodes are as many fewer as more tokens come out of each.
  double gain_of_acceptance(size_t end) const {
    const int64_t drafts = speculation().draft_tokens;
    return speculation().unknown_acceptance[end].expected_tokens(drafts) /
           speculation().acceptance.expected_tokens(drafts);
  }
  double gain_of_fast_steps() const { return step_.low > 0 ? std::min(step_.value / step_.low, 2.0) : 1.15; }

  RelativeInterval interval_of(const std::vector<RatesOfTrial>& searches, const Changes& changes) const {
    const auto found = [&](size_t change) { return searches[change].kept.capacity; };
    const double usual = changes.usual_steps ? found(*changes.usual_steps) : usual_capacity_;
    RelativeInterval within;
    if (usual > 0) {
      if (changes.slow_steps) within.low = std::min(1.0, found(*changes.slow_steps) / usual);
      within.high = std::max(1.0, found(changes.fast_steps) / usual);
      std::vector<double> ends;
      for (const size_t change : changes.acceptances) ends.push_back(found(change) / usual);
      within = with_acceptances(within, ends);
    }
    std::vector<double> capacities = {usual_capacity_};
    for (const size_t change : changes.other_stretches) capacities.push_back(found(change));
    // The changed runs were searched that finely, the promise itself more finely.
    return widened(within, spread_among(capacities), settings_of(RunLength::usual).tolerance);
  }

  // How often drafts are accepted is independent of the step times. `ends`: of the capacity, what is left or gained.
  static RelativeInterval with_acceptances(const RelativeInterval& within, const std::vector<double>& ends) {
    double below = 0, above = 0;
    for (const double end : ends) {
      below = std::max(below, 1 - end);
      above = std::max(above, end - 1);
    }
    return {.low = std::max(0.0, 1 - portable_hypot(1 - within.low, below)),
            .high = 1 + portable_hypot(within.high - 1, above)};
  }

  // Which requests come, and where between two rates the capacity lies, are independent of the step times.
  static RelativeInterval widened(const RelativeInterval& within, double spread, double tolerance) {
    return {.low = std::max(0.0, 1 - portable_hypot(1 - within.low, spread, tolerance)),
            .high = 1 + portable_hypot(within.high - 1, spread, tolerance)};
  }

  // 90% of the requests that might come, as far as a few stretches tell.
  static double spread_among(const std::vector<double>& capacities) {
    const auto number = static_cast<double>(capacities.size());
    const double mean = std::accumulate(capacities.begin(), capacities.end(), 0.0) / number;
    if (mean <= 0) return 0;
    double squares = 0;
    for (const double one : capacities) squares += (one / mean - 1) * (one / mean - 1);
    return student_95(capacities.size()) * std::sqrt(squares / (number - 1));
  }

  // Around what is promised. Runs at capacity and at the rate asked for are those of the promise, so that everything
  // shown of them is the same.
  void run_curve() {
    ensure(help_.known != nullptr, "a curve is drawn around a capacity");
    short_part_capacity_ = help_.known->short_part_capacity;
    usual_capacity_ = help_.known->usual_capacity;
    point_.capacity = {
        .value = help_.known->capacity.value, .low = help_.known->capacity.value, .high = help_.known->capacity.value};
    // Below the capacity few requests wait: fewer of them tell as much.
    constexpr double below = 0.95;
    const Trial brief = trial_of(short_part_, RunLength::brief), usual = trial_of(long_part_, RunLength::usual),
                lengthy = trial_of(long_part_, RunLength::lengthy);
    std::vector<RateTrial> trials;
    for (const double rate : simulator_.rates_of_curve(capacity())) {
      const Trial& trial = !takes_long_runs(effort_)                         ? brief
                           : rate < in_flight().value_or(capacity()) * below ? usual
                                                                             : lengthy;
      const bool is_shown = rate == in_flight().value_or(capacity()) || rate == question_.rate;
      const auto shown = [&] { return in_flight() ? help_.known->at_capacity() : help_.known->at_rate(rate); };
      if (const PlanRun* known = is_shown ? shown() : nullptr) {
        point_.runs.push_back(*known);
      } else {
        trials.emplace_back(trial, rate, true);
      }
    }
    run_to_their_ends(trials);
    std::vector<RateTrial> again;
    for (const RateTrial& one : trials) {
      const PlanRun& run = *one.decision()->run;
      if (!in_flight() && run.attained != (run.rate <= capacity())) {
        again.emplace_back(trial_of(long_part_, judging_of(Effort::promised)), run.rate, true);
      } else {
        point_.runs.push_back(run);
      }
    }
    // What contradicts the promise is judged as it was.
    run_to_their_ends(again);
    for (const RateTrial& one : again) point_.runs.push_back(*one.decision()->run);
    sort_runs();
  }

  void run_at_asked_rate() {
    const std::optional<double>& rate = question_.rate;
    if (rate && capacity() >= *rate && point_.at_rate(*rate) == nullptr) {
      std::vector<RateTrial> trials = {RateTrial(trial_of(simulated_, judging_of(effort_)), *rate, true)};
      run_to_their_ends(trials);
      point_.runs.push_back(*trials.front().decision()->run);
    }
    sort_runs();
  }
  void sort_runs() {
    std::sort(point_.runs.begin(), point_.runs.end(), [](const PlanRun& a, const PlanRun& b) {
      return std::pair(a.in_flight, a.rate) < std::pair(b.in_flight, b.rate);
    });
  }

  void find_interval() {
    const std::string_view kind = effort_ == Effort::quick ? "slow end " : "short ";
    const RelativeInterval& within =
        simulator_.interval(std::string(kind) + short_name(), [&] { return relative_interval(); });
    point_.capacity.low = capacity() * within.low;
    point_.capacity.high = capacity() * within.high;
  }

  // By short runs.
  RelativeInterval relative_interval() const {
    const double tolerance = settings_of(RunLength::brief).tolerance;
    const double most = simulator_.judge(short_part_).most_requests_per_s;
    const auto capacity_with = [&](StepBound bound, double start, std::optional<size_t> acceptance_end = {}) {
      Trial trial = short_trial();
      trial.metered = false;
      trial.bound = bound;
      trial.acceptance_end = acceptance_end;
      if (in_flight()) {
        const PlanRun run = *trial.tried(*in_flight() / parts(), true).run;
        return run.attained ? run.rate : 0;
      }
      return highest_rate(near(start, tolerance, most), [&](double rate) { return trial.tried(rate).tells(); });
    };
    RelativeInterval within;
    const double usual = short_part_capacity_;
    if (!question_.pessimistic) {
      within.low = std::min(1.0, capacity_with(StepBound::high, usual * step_.value / step_.high) / usual);
    }
    const bool low_end_only = effort_ == Effort::quick;
    std::vector<double> ends;
    for (const size_t end : unknown_acceptances()) {
      if (end > 0 && low_end_only) continue;
      ends.push_back(capacity_with(short_trial().bound, usual * gain_of_acceptance(end), end) / usual);
    }
    if (!low_end_only) {
      within.high = std::max(1.0, capacity_with(StepBound::low, usual * gain_of_fast_steps()) / usual);
    }
    within = with_acceptances(within, ends);
    return low_end_only ? within : widened(within, 0, tolerance);
  }

  LayoutSimulator& simulator_;
  const ServingQuestion& question_;
  const LayoutEngines& engines_;
  double most_;  // requests/s, by closed form: a bound
  Estimate step_;
  const EvaluationHelp& help_;
  Effort effort_;
  std::string key_;
  ServingLayout short_part_;
  std::string short_key_;
  ServingLayout long_part_, simulated_;
  PlanPoint point_;
  double short_part_capacity_ = 0, usual_capacity_ = 0;  // by runs of these lengths
};

PlanPoint LayoutSimulator::evaluate(const ServingLayout& layout, Effort effort, const EvaluationHelp& help) {
  PlanPoint point{.layout = layout, .effort = effort, .capacity = {}, .runs = {}};
  const LayoutEngines engines = shelf_->engines(layout);
  const LayoutJudgement judgement = judge(layout);
  const bool is_sure_to_fail = !engines.start() || judgement.most_requests_per_s <= 0;
  if (is_sure_to_fail || (judgement.pruned && shortcuts_ == Shortcuts::taken)) return point;
  const ReadyEngine& decodes = engines.decode != nullptr ? *engines.decode : *engines.pool;
  const SchedulerOptions& options = decodes.group.config.options;
  point.kv_tokens = options.num_gpu_blocks * options.block_size;
  const Estimate step = usual_step(decodes, traffic_->lengths());
  if (effort == Effort::closed_form) return by_closed_form(std::move(point), judgement, step);
  const auto with = [&](const EvaluationHelp& by) {
    return Evaluation(*this, engines, judgement, step, by, point).evaluated();
  };
  const std::optional<Effort> before = effort_before(effort);
  if (!before) return with({.known = nullptr, .run_stretches = help.run_stretches, .workers = help.workers});
  const std::string key = layout.key();
  if (effort == Effort::promised && promised_.contains(key)) return promised_.at(key);
  PlanPoint known;
  if (help.known != nullptr && help.known->effort == *before) {
    known = *help.known;
  } else {
    known = evaluate(layout, *before, help);
  }
  PlanPoint found = with({.known = &known, .run_stretches = help.run_stretches, .workers = help.workers});
  if (effort == Effort::promised) {
    constexpr size_t most_kept = 4096;
    if (promised_.size() >= most_kept) promised_.clear();
    promised_.emplace(key, found);
  }
  return found;
}

}  // namespace foretoken
