#include "training/fit/fit_training.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

// One number in one file: a constant of a stack, everywhere or on one place.
struct FreeConstant {
  size_t stack = 0;
  std::string place;  // empty = everywhere
  TrainingConstant constant = linear_factor;
  double value = 1;
};

struct StackFile {
  std::string name, extends;
  Json document;
};

// "on.sm_90.attention_factor" or "attention_factor".
std::optional<std::pair<std::string, TrainingConstant>> parse_fitted_name(std::string_view text) {
  std::string place;
  if (text.starts_with("on.")) {
    const size_t dot = text.rfind('.');
    if (dot <= 3) return std::nullopt;
    place = text.substr(3, dot - 3);
    text.remove_prefix(dot + 1);
  }
  const auto constant = training_constant_from_name(text);
  if (!constant) return std::nullopt;
  return std::pair(place, *constant);
}

std::string configuration_of(const TrainingRow& r) {
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
        const auto parsed = parse_fitted_name(name);
        if (!parsed) {
          throw InputError({.source = (folder / (stacks_[i].name + ".json")).string(),
                            .path = "fitted",
                            .value = printable(name),
                            .expected = "names of constants, or on.PLACE.NAME"});
        }
        const auto& [place, constant] = *parsed;
        free_.push_back({.stack = i, .place = place, .constant = constant});
        free_.back().value = current(i, place, constant);
      }
    }
  }

  std::vector<FreeConstant>& free() { return free_; }
  const std::vector<StackFile>& files() const { return files_; }

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

 private:
  double current(size_t stack, const std::string& place, TrainingConstant constant) const {
    const auto on = stacks_[stack].on.find(place);
    if (!place.empty() && on != stacks_[stack].on.end() && on->second.contains(constant))
      return on->second.at(constant);
    return stacks_[stack].constants[constant];
  }
  bool says(size_t stack, const std::string& place, TrainingConstant constant) const {
    for (const FreeConstant& one : free_) {
      if (one.stack == stack && one.place == place && one.constant == constant) return true;
    }
    const Json* holder = files_[stack].document.find(place.empty() ? "constants" : "on");
    if (holder != nullptr && !place.empty()) holder = holder->find(place);
    return holder != nullptr && holder->find(training_constant_facts()[constant].name) != nullptr;
  }
  std::optional<size_t> parent_of(size_t stack) const {
    for (size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].name == files_[stack].extends) return i;
    }
    return std::nullopt;
  }

  std::vector<TrainingStack> stacks_;
  std::vector<StackFile> files_;
  std::vector<FreeConstant> free_;
};

// The runs of a fit, each with what its layers cost.
class TrainingFitter {
 public:
  TrainingFitter(const TrainingFitRequest& request, StackTable table, std::vector<TrainingCase>& cases)
      : request_(request), table_(std::move(table)), cases_(cases) {
    for (const TrainingCase& one : cases_) {
      models_.emplace_back(one.job, table_.stack(one.stack), one.machine->machine());
      errors_.push_back(0);
    }
    seen_.assign(cases_.size(), true);
  }

  // Log of predicted over measured.
  double error_of(size_t i) {
    const TrainingCase& one = cases_[i];
    models_[i].use_constants(table_.stack(one.stack).constants_on(one.machine->device()));
    return std::log(models_[i].estimate(one.plan).seconds.value / *one.row.iter_time_s);
  }
  IterationEstimate estimate_of(size_t i) {
    error_of(i);
    return models_[i].estimate(cases_[i].plan);
  }

  void fit(const std::vector<bool>& seen) {
    seen_ = seen;
    weigh();
    std::vector<FreeConstant>& free = table_.free();
    std::vector<std::vector<size_t>> users, rows;
    for (const FreeConstant& one : free) {
      users.push_back(table_.users_of(one));
      rows.push_back(rows_of(users.back()));
    }
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (weights_[i] > 0) errors_[i] = error_of(i);
    }
    for (const double step : {0.25, 0.08, 0.025, 0.01}) {
      for (int round = 0; round < 4; ++round) {
        bool better = false;
        for (size_t i = 0; i < free.size(); ++i) better |= improve(free[i], step, users[i], rows[i]);
        if (!better) break;
      }
    }
  }

  StackTable& table() { return table_; }

 private:
  // A source counts by the root of its runs: many alike say less than many different ones.
  void weigh() {
    std::map<std::string, std::vector<size_t>> by_source;
    for (size_t i = 0; i < cases_.size(); ++i) {
      if (seen_[i]) by_source[cases_[i].row.source].push_back(i);
    }
    weights_.assign(cases_.size(), 0);
    double sum = 0;
    for (const auto& [source, rows] : by_source) {
      const size_t stride = std::max<size_t>(1, rows.size() / static_cast<size_t>(request_.most_rows_of_source));
      const size_t used = (rows.size() + stride - 1) / stride;
      const double weight = std::sqrt(static_cast<double>(std::min<size_t>(used, 50)));
      sum += weight;
      for (size_t i = 0; i < rows.size(); i += stride) weights_[rows[i]] = weight / static_cast<double>(used);
    }
    for (double& weight : weights_) weight /= sum;
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

  double distance(const FreeConstant& one, double value) const {
    const TrainingConstantFacts& facts = training_constant_facts()[one.constant];
    const double log = std::log(value / facts.usual);
    return request_.prior * log * log;
  }

  bool improve(FreeConstant& one, double step, const std::vector<size_t>& users, const std::vector<size_t>& rows) {
    const TrainingConstantFacts& facts = training_constant_facts()[one.constant];
    double best = distance(one, one.value);
    for (const size_t row : rows) best += weights_[row] * std::abs(errors_[row]);
    bool better = false;
    std::vector<double> tried(rows.size());
    for (const double factor : {std::exp(step), std::exp(-step)}) {
      while (true) {
        const double value = one.value * factor;
        if (value < facts.least || value > facts.most) break;
        table_.set(one, value, users);
        double sum = distance(one, value);
        for (size_t i = 0; i < rows.size(); ++i) {
          tried[i] = error_of(rows[i]);
          sum += weights_[rows[i]] * std::abs(tried[i]);
        }
        if (sum > best - 1e-9) break;
        best = sum;
        one.value = value;
        for (size_t i = 0; i < rows.size(); ++i) errors_[rows[i]] = tried[i];
        better = true;
      }
      table_.set(one, one.value, users);
    }
    return better;
  }

  const TrainingFitRequest& request_;
  StackTable table_;
  std::vector<TrainingCase>& cases_;
  std::vector<IterationModel> models_;
  std::vector<double> errors_, weights_;
  std::vector<bool> seen_;
};

// Central 90% of measured over predicted, a little beyond the sample's own for few runs.
std::pair<double, double> interval_of(std::vector<double> ratios) {
  if (ratios.size() < 5) return {0.8, 1.25};
  std::sort(ratios.begin(), ratios.end());
  const double tail = 0.05 * static_cast<double>(ratios.size() - 1);
  const auto at = [&](double place) {
    const auto below = static_cast<size_t>(std::max(0.0, std::floor(place)));
    const size_t above = std::min(below + 1, ratios.size() - 1);
    return ratios[below] + (place - std::floor(place)) * (ratios[above] - ratios[below]);
  };
  const double spread = 1 + 2 / static_cast<double>(ratios.size());
  const double low = std::min(0.99, at(tail)), high = std::max(1.01, at(static_cast<double>(ratios.size() - 1) - tail));
  return {std::clamp(std::pow(low, spread), 0.1, 0.99), std::clamp(std::pow(high, spread), 1.01, 10.0)};
}

double rounded(double value) {
  const double scale = std::pow(10, 3 - std::ceil(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
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

}  // namespace

TrainingFit fit_training(const TrainingFitRequest& request, const TrainingCaseLibrary& library,
                         std::vector<TrainingCase> cases, const FitProgress& progress) {
  std::erase_if(cases, [](const TrainingCase& one) { return !one.row.iter_time_s.has_value(); });
  const StackTable start(library.stacks(), request.stacks);
  std::map<std::string, int64_t> folds;
  for (const TrainingCase& one : cases) folds.emplace(configuration_of(one.row), 0);
  int64_t next = 0;
  for (auto& [configuration, fold] : folds) fold = next++ % request.folds;

  TrainingFit result;
  TrainingFitter fitter(request, start, cases);
  const auto score = [&](size_t i, ValidationTally& tally, std::map<size_t, std::vector<double>>* ratios) {
    const double predicted = std::exp(fitter.error_of(i)) * *cases[i].row.iter_time_s;
    tally.add(cases[i].row.source,
              {.measured = *cases[i].row.iter_time_s, .predicted = predicted, .low = predicted, .high = predicted}, 0);
    if (ratios != nullptr) (*ratios)[cases[i].stack].push_back(*cases[i].row.iter_time_s / predicted);
  };

  ValidationTally unseen(0);
  std::map<size_t, std::vector<double>> ratios;
  for (int64_t fold = 0; fold < request.folds; ++fold) {
    if (progress) progress(fmt::format("fold {} of {}", fold + 1, request.folds));
    fitter.table() = start;
    std::vector<bool> seen(cases.size());
    for (size_t i = 0; i < cases.size(); ++i) seen[i] = folds[configuration_of(cases[i].row)] != fold;
    fitter.fit(seen);
    for (size_t i = 0; i < cases.size(); ++i) {
      if (!seen[i]) score(i, unseen, &ratios);
    }
  }
  unseen.write(result.unseen);
  result.unseen.has_intervals = false;

  if (progress) progress("all runs");
  fitter.table() = start;
  fitter.fit(std::vector<bool>(cases.size(), true));
  ValidationTally all(0);
  for (size_t i = 0; i < cases.size(); ++i) score(i, all, nullptr);
  all.write(result.seen);
  result.seen.has_intervals = false;

  result.constants = fitter.table().free().size();
  for (size_t i = 0; i < library.stacks().size(); ++i) {
    FittedStack stack{.name = library.stacks()[i].name, .file = fitter.table().files()[i].document};
    for (const FreeConstant& one : fitter.table().free()) {
      if (one.stack == i) set_constant(stack.file, one);
    }
    stack.runs = ratios[i].size();
    std::tie(stack.low, stack.high) = interval_of(ratios[i]);
    stack.file.set("interval", Json::object({{"low", rounded(stack.low)},
                                             {"high", rounded(stack.high)},
                                             {"basis", fmt::format("{} runs, each left out of its fit", stack.runs)}}));
    result.stacks.push_back(std::move(stack));
  }
  return result;
}

}  // namespace foretoken
