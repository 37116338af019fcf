#include "training/fit/fit_training.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/portable_math.h"
#include "base/random.h"
#include "base/rounding.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

// One number in one file: a constant of a stack, everywhere or on one place.
struct FreeConstant {
  size_t stack = 0;
  std::string place;  // empty = everywhere
  TrainingConstant constant = linear_factor;
  double start = 1, value = 1;
};

struct StackFile {
  std::string name, extends;
  Json document;
};

std::string configuration_of(const TrainingRow& r, bool only_model) {
  if (only_model) return r.source + " " + r.model;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", r.source, r.model, r.gpu, r.n_gpus, r.tp, r.cp, r.pp,
                     r.vpp.value_or(0), r.ep, r.zero, r.micro_batch.value_or(0), r.global_batch, r.seq, r.dtype) +
         r.task + r.recompute;
}

// The stacks as numbers, so that one can be changed and seen in all that inherit it.
class StackTable {
 public:
  StackTable(const std::vector<TrainingStack>& stacks, const std::filesystem::path& folder) : stacks_(stacks) {
    for (const TrainingStack& stack : stacks_) {
      StackFile file{.name = stack.name, .document = read_json_file(folder / (stack.name + ".json"))};
      if (const Json* extends = file.document.find("extends")) file.extends = extends->string();
      files_.push_back(std::move(file));
    }
    for (size_t i = 0; i < stacks_.size(); ++i) {
      for (const std::string& name : stacks_[i].fitted) {
        const auto [place, constant] = fitted_constant(name).value();
        // From its usual value: what ships may have seen the runs that a fold leaves out.
        const double usual = training_constant_facts()[constant].usual;
        free_.push_back({.stack = i, .place = place, .constant = constant, .start = usual, .value = usual});
      }
    }
  }

  // All free constants at their values.
  void apply() {
    for (const FreeConstant& one : free_) set(one, one.value, users_of(one));
  }

  std::vector<FreeConstant>& free() { return free_; }
  const std::vector<FreeConstant>& free() const { return free_; }
  const std::vector<StackFile>& files() const { return files_; }

  std::optional<size_t> parent_of(size_t stack) const {
    for (size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].name == files_[stack].extends) return i;
    }
    return std::nullopt;
  }

  // Stacks whose value of the constant is this one.
  std::vector<size_t> users_of(const FreeConstant& wanted) const {
    std::vector<size_t> users;
    for (size_t i = 0; i < stacks_.size(); ++i) {
      std::optional<size_t> at = i;
      while (at && *at != wanted.stack && !says(*at, wanted.place, wanted.constant)) at = parent_of(*at);
      if (at && *at == wanted.stack) users.push_back(i);
    }
    return users;
  }

  void set(const FreeConstant& changed, double value, const std::vector<size_t>& users) {
    for (const size_t user : users) {
      if (changed.place.empty()) {
        stacks_[user].constants[changed.constant] = value;
      } else {
        stacks_[user].on[changed.place][changed.constant] = value;
      }
    }
  }

  const TrainingStack& stack(size_t index) const { return stacks_[index]; }

  double value_of(const FreeConstant& one) const {
    const TrainingStack& stack = stacks_[one.stack];
    return one.place.empty() ? stack.constants[one.constant] : stack.on.at(one.place).at(one.constant);
  }

  // What a constant is taken for until runs say otherwise: on a place what it is elsewhere, in a stack what it is in
  // the one that it extends.
  double expected(const FreeConstant& one) const {
    const double usual = training_constant_facts()[one.constant].usual;
    const std::optional<size_t> parent = one.place.empty() ? parent_of(one.stack) : one.stack;
    const double known = parent ? stacks_[*parent].constants[one.constant] : usual;
    return known > 0 ? known : usual;
  }

 private:
  bool says(size_t stack, const std::string& place, TrainingConstant constant) const {
    for (const FreeConstant& one : free_) {
      if (one.stack == stack && one.place == place && one.constant == constant) return true;
    }
    const Json* holder = files_[stack].document.find(place.empty() ? "constants" : "on");
    if (holder != nullptr && !place.empty()) holder = holder->find(place);
    return holder != nullptr && holder->find(training_constant_facts()[constant].name) != nullptr;
  }

  std::vector<TrainingStack> stacks_;
  std::vector<StackFile> files_;
  std::vector<FreeConstant> free_;
};

// |error|, rounded off near zero: where many runs have a corner, steps along one constant alone get stuck.
double softened(double error) {
  constexpr double corner = 0.02;
  return std::sqrt(error * error + corner * corner) - corner;
}

// The runs of a fit, each with what its layers cost.
class TrainingFitter {
 public:
  TrainingFitter(const TrainingFitRequest& request, StackTable table, std::vector<TrainingCase>& cases)
      : request_(request), table_(std::move(table)), cases_(cases) {
    for (const TrainingCase& one : cases_) {
      models_.emplace_back(one.spec.job, table_.stack(one.stack), one.machine->machine());
      errors_.push_back(0);
      corrections_.push_back(0);
    }
  }

  double predicted_seconds(size_t i) {
    use_constants(i);
    return models_[i].seconds(cases_[i].spec.plan);
  }

  // Log of predicted over measured.
  double error_of(size_t i) { return portable_log(predicted_seconds(i) / *cases_[i].row.iter_time_s); }

  // The step with the errors of its kernels and collectives alone. After predicted_seconds(i).
  Estimate composed(size_t i) { return models_[i].estimate(cases_[i].spec.plan).composed; }

  void fit(const std::vector<bool>& seen) {
    seen_ = seen;
    weigh();
    const std::vector<FreeConstant>& free = table_.free();
    users_.clear();
    for (const FreeConstant& one : free) users_.push_back(table_.users_of(one));
    // Walks end in different places where constants trade off against each other: the mean of a few is steadier.
    std::vector<double> logs(free.size(), 0);
    for (uint64_t walk = 1; walk <= walks; ++walk) {
      descend(walk);
      for (size_t i = 0; i < free.size(); ++i) logs[i] += portable_log(free[i].value) / static_cast<double>(walks);
    }
    for (size_t i = 0; i < free.size(); ++i) table_.free()[i].value = portable_exp(logs[i]);
    table_.apply();
  }

  StackTable& table() { return table_; }

 private:
  static constexpr uint64_t walks = 4;

  // From the start values.
  void descend(uint64_t walk) {
    const std::vector<FreeConstant>& free = table_.free();
    for (FreeConstant& one : table_.free()) one.value = one.start;
    table_.apply();
    // A stream for each stack: what is fitted in one does not change the walk of another.
    std::vector<RandomStream> streams;
    for (const StackFile& file : table_.files()) streams.emplace_back(walk, "training fit of " + file.name);
    for (const double step : {0.25, 0.08, 0.025, 0.01}) {
      for (int round = 0; round < 6; ++round) {
        correct_pipelines();
        bool better = false;
        for (size_t i = 0; i < free.size(); ++i) {
          // Without runs, towards what it is taken for.
          better |= improve({.constants = {i}, .directions = {1}, .rows = rows_of(users_[i])}, step);
        }
        // Constants of one stack trade off against each other: also along random mixtures of two.
        for (size_t first = 0; first < free.size(); ++first) {
          std::vector<size_t> others;
          for (size_t i = 0; i < free.size(); ++i) {
            if (i != first && free[i].stack == free[first].stack) others.push_back(i);
          }
          if (others.empty()) continue;
          RandomStream& random = streams[free[first].stack];
          const size_t second = others[random.below(others.size())];
          std::vector<size_t> rows = rows_of(users_[first]);
          if (rows.empty()) continue;
          for (const size_t row : rows_of(users_[second])) {
            if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
          }
          // Drawn one after the other: compilers choose the order of operands as they like.
          const double length = 2 * random.uniform();
          const double sign = random.uniform() < 0.5 ? -1 : 1;
          better |=
              improve({.constants = {first, second}, .directions = {1, length * sign}, .rows = std::move(rows)}, step);
        }
        if (!better) break;
      }
    }
  }

  void use_constants(size_t i) {
    const TrainingCase& one = cases_[i];
    models_[i].use_constants(table_.stack(one.stack).constants_on(one.machine->device()));
  }

  // error_of(i) with the pipeline by formula: nearly all of the time of a fit would go to running pipelines.
  double quick_error_of(size_t i) {
    use_constants(i);
    return portable_log(models_[i].quick_seconds(cases_[i].spec.plan) / *cases_[i].row.iter_time_s) + corrections_[i];
  }

  // What the formula misses hardly changes with the constants: found anew for each round.
  void correct_pipelines() {
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (weights_[i] <= 0) continue;
      errors_[i] = error_of(i);
      corrections_[i] = 0;
      corrections_[i] = errors_[i] - quick_error_of(i);
    }
  }

  // A source counts by the root of its runs: many alike say less than many different ones.
  void weigh() {
    std::map<std::string, std::vector<size_t>> by_source;
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (seen_[i]) by_source[cases_[i].row.source].push_back(i);
    }
    weights_.assign(cases_.size(), 0);
    for (const auto& [source, rows] : by_source) {
      const size_t stride = std::max<size_t>(1, rows.size() / static_cast<size_t>(request_.most_rows_of_source));
      const size_t used = (rows.size() + stride - 1) / stride;
      const double weight = std::sqrt(static_cast<double>(std::min<size_t>(used, 50)));
      for (size_t i = 0; i < rows.size(); i += stride) weights_[rows[i]] = weight / static_cast<double>(used);
    }
  }

  std::vector<size_t> rows_of(const std::vector<size_t>& stacks) const {
    std::vector<size_t> rows;
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (weights_[i] > 0 && std::find(stacks.begin(), stacks.end(), cases_[i].stack) != stacks.end()) {
        rows.push_back(i);
      }
    }
    return rows;
  }

  // Of all constants as the table has them: one that moves is what others are expected to be.
  double prior_cost() const {
    double sum = 0;
    for (const FreeConstant& one : table_.free()) {
      const double log = portable_log(table_.value_of(one) / table_.expected(one));
      sum += log * log;
    }
    return request_.prior * sum;
  }

  // Constants that are changed together, and the runs that see it.
  struct Move {
    std::vector<size_t> constants;
    std::vector<double> directions;  // of their logarithms
    std::vector<size_t> rows;
  };

  // With the table as the move left it.
  double cost_of(const Move& move, const std::vector<double>& errors) const {
    double sum = prior_cost();
    for (const size_t row : move.rows) sum += weights_[row] * softened(errors[row]);
    return sum;
  }

  void set_values(const Move& move, const std::vector<double>& values) {
    for (size_t i = 0; i < move.constants.size(); ++i) {
      table_.set(table_.free()[move.constants[i]], values[i], users_[move.constants[i]]);
    }
  }

  // Goes along the move, either way, as long as the cost falls.
  bool improve(const Move& move, double step) {
    std::vector<FreeConstant>& free = table_.free();
    std::vector<double> values, tried_errors = errors_;
    for (const size_t i : move.constants) values.push_back(free[i].value);
    double best = cost_of(move, errors_);
    bool better = false;
    for (const double way : {step, -step}) {
      while (true) {
        std::vector<double> tried = values;
        bool inside = true;
        for (size_t i = 0; i < tried.size(); ++i) {
          const TrainingConstantFacts& facts = training_constant_facts()[free[move.constants[i]].constant];
          tried[i] *= portable_exp(way * move.directions[i]);
          inside = inside && tried[i] >= facts.least && tried[i] <= facts.most;
        }
        if (!inside) break;
        set_values(move, tried);
        for (const size_t row : move.rows) tried_errors[row] = quick_error_of(row);
        const double cost = cost_of(move, tried_errors);
        if (cost > best - 1e-9) break;
        best = cost;
        values = tried;
        for (const size_t row : move.rows) errors_[row] = tried_errors[row];
        better = true;
      }
    }
    set_values(move, values);
    for (size_t i = 0; i < values.size(); ++i) free[move.constants[i]].value = values[i];
    return better;
  }

  const TrainingFitRequest& request_;
  StackTable table_;
  std::vector<TrainingCase>& cases_;
  std::vector<IterationModel> models_;
  std::vector<double> errors_, weights_;
  std::vector<double> corrections_;  // of quick_error_of()
  std::vector<bool> seen_;
  std::vector<std::vector<size_t>> users_;  // stacks of each free constant
};

constexpr size_t least_runs = 5;  // that tell an interval

// Of a run: measured over predicted, and how far its kernels may be off.
struct RunRatio {
  double measured = 1, kernels_low = 1, kernels_high = 1;
};
// Runs that differ from predictions by unlike amounts: whole models, those with routed experts, fine-tuning.
enum class RunClass : uint8_t { dense, experts, tuning };
struct RunClassFacts {
  RunClass runs;
  const char* key;  // of its interval in a stack's file
  std::optional<RunInterval> FittedStack::*interval;
};
constexpr RunClassFacts run_classes[] = {{RunClass::dense, "interval", &FittedStack::interval},
                                         {RunClass::experts, "experts_interval", &FittedStack::experts_interval},
                                         {RunClass::tuning, "tuning_interval", &FittedStack::tuning_interval}};

RunClass class_of(const TrainingCase& run) {
  if (run.row.experts > 0) return RunClass::experts;
  return is_tuning(run.spec.job) ? RunClass::tuning : RunClass::dense;
}

using RunRatios = std::map<std::pair<size_t, RunClass>, std::vector<RunRatio>>;

// Central 90% of measured over predicted, beyond the sample's own for few runs, and never less than what the same job
// measured twice may differ by (a few percent: NeMo's readings of one month).
RunInterval interval_of(const std::vector<RunRatio>& runs) {
  if (runs.size() < least_runs) return {};
  const auto sorted = [&](double RunRatio::*what) {
    std::vector<double> values;
    for (const RunRatio& run : runs) values.push_back(run.*what);
    std::sort(values.begin(), values.end());
    return values;
  };
  const auto at = [&](const std::vector<double>& values, double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  const std::vector<double> ratios = sorted(&RunRatio::measured);
  const double spread = 1 + 4 / static_cast<double>(ratios.size());
  const double low = portable_pow(std::min(0.96, at(ratios, 0.05)), spread);
  const double high = portable_pow(std::max(1.04, at(ratios, 0.95)), spread);
  return {.low = std::max(low, 0.1),
          .high = std::min(high, 10.0),
          .kernels_low = std::clamp(at(sorted(&RunRatio::kernels_low), 0.1), 0.1, 1.0),
          .kernels_high = std::clamp(at(sorted(&RunRatio::kernels_high), 0.9), 1.0, 10.0)};
}

// Few runs say little about the ends of a distribution: those of the stacks that it extends are added to them.
std::vector<RunRatio> with_parents(std::vector<RunRatio> own, size_t stack, RunClass runs, const StackTable& table,
                                   const RunRatios& ratios) {
  constexpr size_t enough = 12;
  for (auto parent = table.parent_of(stack); own.size() < enough && parent; parent = table.parent_of(*parent)) {
    const auto found = ratios.find({*parent, runs});
    if (found != ratios.end()) own.insert(own.end(), found->second.begin(), found->second.end());
  }
  return own;
}

std::string basis_of(size_t own, size_t pooled) {
  if (pooled < least_runs) return fmt::format("assumed: {} runs are too few", pooled);
  if (pooled == own) return fmt::format("{} runs, each left out of its fit", own);
  return fmt::format("{} runs of its own and {} of the stacks it extends, each left out of its fit", own, pooled - own);
}

struct FoldResult {
  std::vector<double> predicted;  // of every run
  std::vector<Estimate> composed;
  std::optional<StackTable> table;
};

double rounded(double value) {
  return rounded_to_digits(value, 3);
}

void set_constant(Json& document, const FreeConstant& one) {
  const std::string name(training_constant_facts()[one.constant].name);
  const auto with = [&](const Json* old) {
    Json object = old != nullptr ? *old : Json::object();
    object.set(name, rounded(one.value));
    return object;
  };
  if (one.place.empty()) {
    document.set("constants", with(document.find("constants")));
    return;
  }
  const Json* old = document.find("on");
  Json on = old != nullptr ? *old : Json::object();
  on.set(one.place, with(on.find(one.place)));
  document.set("on", std::move(on));
}

// What the runs of a stack cover; nothing where it has none.
std::optional<Json> coverage_of(const std::vector<TrainingCase>& cases, size_t stack) {
  std::set<std::string> devices, generations;
  bool experts = false, adapters = false;
  int64_t most = 0, longest = 0;
  for (const TrainingCase& one : cases) {
    if (one.stack != stack) continue;
    devices.insert(one.machine->device().name);
    generations.insert(std::string(generation_of(one.machine->device())));
    experts = experts || one.row.experts > 0;
    adapters = adapters || one.spec.job.lora.rank > 0;
    most = std::max(most, one.row.n_gpus);
    longest = std::max(longest, one.spec.job.sequence_length);
  }
  if (devices.empty()) return std::nullopt;
  Json names = Json::array(), kinds = Json::array();
  for (const std::string& name : devices) names.push(name);
  for (const std::string& kind : generations) kinds.push(kind);
  return Json::object({{"devices", std::move(names)},
                       {"generations", std::move(kinds)},
                       {"experts", experts},
                       {"adapters", adapters},
                       {"most_devices", most},
                       {"longest_sequence", longest}});
}

}  // namespace

TrainingFit fit_training(const TrainingFitRequest& request, const TrainingCaseLibrary& library,
                         std::vector<TrainingCase> cases, const FitProgress& progress) {
  std::erase_if(cases, [&](const TrainingCase& one) {
    const std::string& stack = library.stacks()[one.stack].name;
    const bool wanted =
        request.only.empty() || std::find(request.only.begin(), request.only.end(), stack) != request.only.end();
    return !wanted || !one.row.iter_time_s.has_value();
  });
  // As validators and `train` ask about the run: with its optimizer, and what is kept in 16 bits.
  for (TrainingCase& one : cases) one.spec.job = library.question_of(one).job;
  const StackTable start(library.stacks(), request.stacks);
  const auto fold_key = [&](const TrainingRow& row) { return configuration_of(row, request.folds_by_model); };
  std::map<std::string, int64_t> folds;
  for (const TrainingCase& one : cases) folds.emplace(fold_key(one.row), 0);
  int64_t next = 0;
  for (auto& [configuration, fold] : folds) fold = next++ % request.folds;

  // Every fold and, last, the fit to all runs: each on its own, so that the order does not matter.
  std::vector<FoldResult> results(static_cast<size_t>(request.folds) + 1);
  std::mutex telling;
  for_each_on_threads(threads_to_use(request.threads), results.size(), [&](size_t fold) {
    if (progress) {
      const std::lock_guard lock(telling);
      progress(fmt::format("fit {} of {}", fold + 1, results.size()));
    }
    std::vector<bool> seen(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) seen[i] = folds.at(fold_key(cases[i].row)) != static_cast<int64_t>(fold);
    TrainingFitter fitter(request, start, cases);
    fitter.fit(seen);
    FoldResult& done = results[fold];
    for (size_t i = 0; i < cases.size(); ++i) {
      done.predicted.push_back(fitter.predicted_seconds(i));
      if (fold + 1 == results.size()) done.composed.push_back(fitter.composed(i));
    }
    done.table = std::move(fitter.table());
  });

  TrainingFit result;
  ValidationTally seen_tally(0), unseen_tally(0);
  RunRatios ratios;
  const FoldResult& all = results.back();
  for (size_t i = 0; i < cases.size(); ++i) {
    const double measured = *cases[i].row.iter_time_s;
    const auto add = [&](ValidationTally& tally, double predicted) {
      tally.add(cases[i].row.source,
                {.measured = measured, .predicted = predicted, .low = predicted, .high = predicted}, 0);
    };
    add(seen_tally, all.predicted[i]);
    const double unseen = results[static_cast<size_t>(folds.at(fold_key(cases[i].row)))].predicted[i];
    add(unseen_tally, unseen);
    const Estimate& composed = all.composed[i];
    ratios[{cases[i].stack, class_of(cases[i])}].push_back({.measured = measured / unseen,
                                                            .kernels_low = composed.low / composed.value,
                                                            .kernels_high = composed.high / composed.value});
    result.runs.push_back({.id = cases[i].row.id,
                           .source = cases[i].row.source,
                           .stack = library.stacks()[cases[i].stack].name,
                           .measured_s = measured,
                           .seen_s = all.predicted[i],
                           .unseen_s = unseen});
  }
  seen_tally.write(result.seen);
  unseen_tally.write(result.unseen);
  result.seen.has_intervals = result.unseen.has_intervals = false;

  result.constants = all.table->free().size();
  for (size_t i = 0; i < library.stacks().size(); ++i) {
    FittedStack stack{.name = library.stacks()[i].name, .file = all.table->files()[i].document};
    for (const FreeConstant& one : all.table->free()) {
      if (one.stack == i) set_constant(stack.file, one);
    }
    if (const std::optional<Json> coverage = coverage_of(cases, i)) stack.file.set("coverage", *coverage);
    for (const RunClassFacts& kind : run_classes) {
      const std::vector<RunRatio>& own = ratios[{i, kind.runs}];
      stack.runs += own.size();
      if (own.empty()) continue;
      const std::vector<RunRatio> pooled = with_parents(own, i, kind.runs, *all.table, ratios);
      RunInterval interval = interval_of(pooled);
      if (kind.runs == RunClass::tuning && stack.interval) {
        // Few runs: no surer than of the same software's pre-training.
        interval.low = std::min(interval.low, stack.interval->low);
        interval.high = std::max(interval.high, stack.interval->high);
      }
      stack.*kind.interval = interval;
      stack.file.set(kind.key, Json::object({{"low", rounded(interval.low)},
                                             {"high", rounded(interval.high)},
                                             {"kernels_low", rounded(interval.kernels_low)},
                                             {"kernels_high", rounded(interval.kernels_high)},
                                             {"basis", basis_of(own.size(), pooled.size())}}));
    }
    if (stack.runs > 0 && !request.date.empty()) stack.file.set("fitted_on", request.date);
    result.stacks.push_back(std::move(stack));
  }
  return result;
}

}  // namespace foretoken
