#include "kernel/fit/fit_form.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/random.h"
#include "base/statistics.h"
#include "kernel/evaluate.h"
#include "kernel/fit/fit_errors.h"
#include "kernel/fit/hierarchical_fit.h"
#include "kernel/forms/call.h"

namespace foretoken {
namespace {

constexpr size_t rows_per_group = 300;        // constants settle well before
constexpr size_t tree_rows_per_group = 1500;  // for the trees across devices

struct Row {
  const MeasuredCall* measured = nullptr;
  size_t device = 0;
};

using Groups = std::map<std::pair<size_t, std::string>, std::vector<Row>>;  // by device and call group

double strength_of(const EffectStrengths& strengths, std::string_view effect) {
  if (effect == "common") return strengths.common;
  if (effect == "asynchronous" || effect == "stacked memory" || effect == "amd") return strengths.trait;
  return effect.starts_with("family") ? strengths.family : strengths.kernel;
}

// Everything a form's fit needs to hand around.
class FormFitter {
 public:
  FormFitter(const FormKind& kind, const std::vector<MeasuredDevice>& devices, const FitOptions& options)
      : kind_(kind), devices_(devices), options_(options), form_(kind.make(Caches::benchmark)) {
    RandomStream random(options.seed, fmt::format("rows of {}", kind.name));
    for (size_t d = 0; d < devices.size(); ++d) {
      traits_.push_back(powered_traits(traits_of(devices[d].device).traits));
      for (const MeasuredCall& row : devices[d].rows) groups_[{d, call_group(row.call)}].push_back({&row, d});
      for (const MeasuredCall& row : devices[d].lent) groups_[{d, "lent " + call_group(row.call)}].push_back({&row, d});
    }
    for (auto& [key, rows] : groups_) shuffle(rows, random);
  }

  const Form& form() const { return *form_; }

  // Constants and trees from all devices but those of the generation `withheld` (empty = none).
  FormCalibration fit(const std::string& withheld) const {
    FormCalibration result;
    result.form = kind_.name;
    for (const FormConstant& constant : form_->constants()) result.constants.emplace_back(constant.name);
    fit_effects(withheld, result);
    result.residual_strength = kind_.residual_strength;
    if (kind_.residual_strength > 0) result.residual = fit_residual(withheld, result);
    return result;
  }

  std::set<std::string> generations() const {
    std::set<std::string> names;
    for (const MeasuredDevice& device : devices_) names.insert(generation_of(device.device));
    return names;
  }

  // Up to some thousand rows of a device under a calibration that has not seen it.
  FitErrors errors(const FormCalibration& calibration, size_t device) const {
    std::vector<Row> rows;
    for (const auto& [key, members] : groups_) {
      if (key.first != device || devices_[device].impossible_groups.contains(key.second)) continue;
      if (key.second.starts_with("lent ")) continue;
      rows.insert(rows.end(), members.begin(), members.end());
    }
    RandomStream random(options_.seed, fmt::format("score {} {}", kind_.name, devices_[device].device.name));
    shuffle(rows, random);
    rows.resize(std::min(rows.size(), scored_rows_per_device));
    FitErrors result;
    for (const Row& row : rows) {
      const FormCall& call = row.measured->call;
      const std::vector<double> logs = cross_log_constants(*form_, calibration, call, traits_[device], "");
      const double seconds = form_seconds_with_residual(*form_, call, traits_[device], logs, calibration.residual,
                                                        calibration.residual_strength, std::nullopt);
      result.push_back({.predicted = seconds,
                        .log_error = portable_log(row.measured->seconds / seconds),
                        .unseen_half_width = unseen_kernel_half_width(*form_, calibration, call, traits_[device])});
    }
    return result;
  }

 private:
  bool is_withheld(size_t device, const std::string& generation) const {
    return generation_of(devices_[device].device) == generation;
  }

  // A kernel that is broken on one device says nothing about others.
  bool is_fitted(const Groups::key_type& key, const std::string& withheld) const {
    return !is_withheld(key.first, withheld) && !devices_[key.first].pathological_groups.contains(key.second) &&
           !devices_[key.first].impossible_groups.contains(key.second);
  }

  void fit_effects(const std::string& withheld, FormCalibration& result) const {
    const std::span<const FormConstant> constants = form_->constants();
    HierarchicalFit fit{.constants = constants.size(), .huber_scale = kind_.huber_scale, .rounds = 40};
    for (const FormConstant& constant : constants)
      fit.bounds.push_back({portable_log(constant.least), portable_log(constant.most)});
    std::map<std::string, size_t> index;
    const auto effect = [&](const std::string& name, double strength) {
      const auto [found, is_new] = index.emplace(name, fit.effects.size());
      if (is_new) {
        FitEffect added{.name = name, .strength = strength, .offsets = std::vector<double>(constants.size(), 0.0)};
        if (name == "common") {
          added.pull_to_start = true;
          for (size_t k = 0; k < constants.size(); ++k) added.offsets[k] = portable_log(constants[k].start);
        }
        fit.effects.push_back(std::move(added));
      }
      return found->second;
    };

    // Every device counts the same, however many rows it has; within a device, a group by the root of its rows.
    std::map<size_t, double> weight_of_device;
    for (const auto& [key, rows] : groups_) {
      if (is_fitted(key, withheld)) weight_of_device[key.first] += std::sqrt(static_cast<double>(rows.size()));
    }
    std::vector<const Row*> used;
    for (const auto& [key, rows] : groups_) {
      const auto& [device, group_name] = key;
      if (!is_fitted(key, withheld)) continue;
      FitGroup group{.first_row = used.size(), .rows = std::min(rows.size(), rows_per_group)};
      group.weight = std::sqrt(static_cast<double>(rows.size())) / weight_of_device[device] /
                     static_cast<double>(weight_of_device.size());
      for (const std::string& name : form_->effects(rows.front().measured->call, traits_[device])) {
        group.effects.push_back(effect(name, strength_of(kind_.strengths, name)));
      }
      const std::string& device_name = devices_[device].device.name;
      if (kind_.strengths.device > 0) group.effects.push_back(effect("device " + device_name, kind_.strengths.device));
      if (kind_.strengths.group > 0) {
        group.effects.push_back(effect(fmt::format("group {} {}", device_name, group_name), kind_.strengths.group));
      }
      for (size_t i = 0; i < group.rows; ++i) used.push_back(&rows[i]);
      fit.groups.push_back(std::move(group));
    }
    ensure(!fit.groups.empty(), "a fit has rows");
    std::vector<double> natural(constants.size());
    solve(fit, [&](size_t row, std::span<const double> logs, int& choice) {
      for (size_t k = 0; k < natural.size(); ++k) natural[k] = portable_exp(logs[k]);
      const Row& used_row = *used[row];
      return portable_log(form_->seconds(used_row.measured->call, traits_[used_row.device], natural, choice) /
                          used_row.measured->seconds);
    });
    for (const FitEffect& fitted : fit.effects) result.effects[fitted.name] = fitted.offsets;
  }

  // Trees on what the form leaves over, centred per device and group: levels do not port, shapes of curves do.
  BoostedTrees fit_residual(const std::string& withheld, const FormCalibration& calibration) const {
    std::vector<float> features, targets;
    for (const auto& [key, rows] : groups_) {
      const size_t device = key.first;
      if (!is_fitted(key, withheld)) continue;
      const size_t count = std::min(rows.size(), tree_rows_per_group);
      std::vector<double> left_over;
      for (size_t i = 0; i < count; ++i) {
        const FormCall& call = rows[i].measured->call;
        const std::vector<double> logs =
            cross_log_constants(*form_, calibration, call, traits_[device], devices_[device].device.name);
        const double seconds = form_seconds_with_residual(*form_, call, traits_[device], logs, {}, 0, std::nullopt);
        left_over.push_back(portable_log(rows[i].measured->seconds / seconds));
        const std::vector<float> row = residual_features(*form_, call, traits_[device], logs, std::nullopt);
        features.insert(features.end(), row.begin(), row.end());
      }
      const double middle = quantile(left_over, 0.5);
      for (const double value : left_over) targets.push_back(static_cast<float>(value - middle));
    }
    return fit_boosted_trees(features, form_->feature_count(), targets,
                             {.trees = 150, .depth = 4, .min_leaf_rows = 60});
  }

  const FormKind& kind_;
  const std::vector<MeasuredDevice>& devices_;
  const FitOptions& options_;
  std::unique_ptr<Form> form_;
  std::vector<DeviceTraits> traits_;
  Groups groups_;
};

}  // namespace

FormCalibration fit_form(const FormKind& kind, const std::vector<MeasuredDevice>& devices, const FitOptions& options) {
  const FormFitter fitter(kind, devices, options);
  const auto say = [&](const std::string& text) {
    if (options.progress) options.progress(text);
  };
  say(fmt::format("{}: fitting {} devices", kind.name, devices.size()));
  FormCalibration result = fitter.fit("");
  result.source = options.source;
  result.fitted_on = options.date;
  for (const MeasuredDevice& device : devices) result.devices.push_back(device.device.name);

  std::vector<FitErrors> by_generation;
  std::vector<std::string> scored;
  const std::set<std::string> generations = fitter.generations();
  for (const std::string& generation : generations) {
    if (generations.size() < 2) break;  // nothing left to learn from
    say(fmt::format("{}: withholding {}", kind.name, generation));
    const FormCalibration withheld = fitter.fit(generation);
    FitErrors errors;
    for (size_t d = 0; d < devices.size(); ++d) {
      if (generation_of(devices[d].device) != generation || devices[d].rows.empty()) continue;
      const FitErrors own = fitter.errors(withheld, d);
      const std::string& name = devices[d].device.name;
      result.withheld_mape[name] = mean_percentage_error(own);
      result.withheld_mape_20us[name] = mean_percentage_error(own, long_kernel_seconds);
      errors.insert(errors.end(), own.begin(), own.end());
    }
    if (errors.empty()) continue;
    scored.push_back(generation);
    by_generation.push_back(std::move(errors));
  }
  std::vector<double> coverage_of;
  result.half_widths = half_widths_across(by_generation, coverage_of);
  for (size_t g = 0; g < scored.size(); ++g) result.withheld_coverage[scored[g]] = coverage_of[g];
  return result;
}

}  // namespace foretoken
