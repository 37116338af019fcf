#include "kernel/fit/fit_calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
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
constexpr size_t scored_rows_per_device = 4000;
constexpr size_t refit_rows_per_group = 1500;

struct Row {
  const MeasuredCall* measured = nullptr;
  size_t device = 0;
};

using Groups = std::map<std::pair<size_t, std::string>, std::vector<Row>>;  // by device and call group

template <class Item>
void shuffle(std::vector<Item>& rows, RandomStream& random) {
  for (size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random.below(i)]);
}

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
      result.push_back({.predicted = seconds, .log_error = portable_log(row.measured->seconds / seconds)});
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

// A device with more call groups than this was swept over kernels of many kinds (frameworks' own ones beside an
// engine's): what they share says little about each.
constexpr size_t few_groups = 8;

// How much wider or narrower than the rest a group's errors lie: the 90% quantile of |log error| over the half-width at
// that time. Groups with few rows keep the common width.
std::map<std::string, double, std::less<>> width_factors_from(const FitErrors& errors,
                                                              const std::vector<std::string>& group_of_error,
                                                              const HalfWidths& widths) {
  constexpr size_t enough = 15;
  std::map<std::string, std::vector<double>> ratios;
  for (size_t i = 0; i < errors.size(); ++i) {
    const auto& [seconds, log_error] = errors[i];
    ratios[group_of_error[i]].push_back(std::abs(log_error) / std::max(widths.at(seconds), 1e-6));
  }
  std::map<std::string, double, std::less<>> factors;
  for (const auto& [group, values] : ratios) {
    if (ratios.size() > 1 && values.size() >= enough) factors[group] = std::clamp(quantile(values, 0.9), 0.2, 5.0);
  }
  return factors;
}

BoostSettings tree_settings(size_t rows, size_t groups) {
  // Few rows: shallow trees that hardly shrink; many: deep ones. Chosen on random sweeps and 80/20 splits.
  if (rows <= 5000 && groups > few_groups)
    return {.trees = 600, .depth = 7, .learning_rate = 0.1, .min_leaf_rows = 2, .bins = 64};
  if (rows <= 1500) return {.trees = 200, .depth = 5, .learning_rate = 0.1, .min_leaf_rows = 2, .bins = 64};
  if (rows <= 10000) return {.trees = 400, .depth = 7, .learning_rate = 0.12, .min_leaf_rows = 3, .bins = 128};
  return {.trees = 320, .depth = 8, .learning_rate = 0.25, .min_leaf_rows = 3, .bins = 255};
}

// What the constants of a device's groups have in common beside their priors. An offset is the sum of a shared one and
// of the group's own, all of them pulled to zero alike: so the shared one is the sum over groups / (groups + 1).
std::vector<double> shared_offsets(const std::vector<std::vector<double>>& priors,
                                   const decltype(DeviceCalibration::groups)& groups) {
  std::vector<double> shared(priors.front().size(), 0.0);
  size_t index = 0;
  for (const auto& [name, logs] : groups) {
    for (size_t k = 0; k < shared.size(); ++k) shared[k] += logs[k] - priors[index][k];
    ++index;
  }
  for (double& offset : shared) offset /= static_cast<double>(groups.size() + 1);
  return shared;
}

// Fits the measured tier on some rows of a device.
class DeviceFitter {
 public:
  DeviceFitter(const FormKind& kind, const FormCalibration& cross, const Device& device, bool is_probe)
      : cross_(cross),
        device_(device),
        traits_(traits_of(device).traits),
        form_(kind.make(Caches::benchmark)),
        is_probe_(is_probe),
        gives_small_groups_trees_(kind.amd) {}

  // Of a device that nobody has measured.
  double cross_seconds(const FormCall& call) const {
    const std::vector<double> logs = cross_log_constants(*form_, cross_, call, traits_, "");
    return form_seconds_with_residual(*form_, call, traits_, logs, cross_.residual, cross_.residual_strength,
                                      std::nullopt);
  }

  DeviceCalibration fit(const std::vector<const MeasuredCall*>& rows) const {
    DeviceCalibration result;
    result.form = cross_.form;
    result.device = device_.name;
    result.constants = cross_.constants;
    result.rows = rows.size();
    std::map<std::string, std::vector<const MeasuredCall*>> groups;
    for (const MeasuredCall* row : rows) groups[call_group(row->call)].push_back(row);
    for (const auto& [name, members] : groups) result.ranges[name] = ranges_of(members);
    if (is_probe_) {
      fit_levels(groups, rows, result);
      return result;
    }
    fit_constants(groups, rows.size(), result);

    std::vector<float> features, targets;
    size_t width = 0;
    for (const MeasuredCall* row : rows) {
      const auto [number, logs] = group_of(result, row->call);
      const double seconds = form_seconds_with_residual(*form_, row->call, traits_, *logs, {}, 0, number);
      const std::vector<float> values = residual_features(*form_, row->call, traits_, *logs, number);
      width = values.size();
      features.insert(features.end(), values.begin(), values.end());
      targets.push_back(static_cast<float>(portable_log(row->seconds / seconds)));
    }
    result.residual = fit_boosted_trees(features, width, targets, tree_settings(rows.size(), groups.size()));
    if (gives_small_groups_trees_) add_trees_of_small_groups(rows, features, targets, result);
    return result;
  }

  // Rows of groups that the calibration does not know are left out, in both.
  static std::vector<std::string> groups_of_errors(const DeviceCalibration& calibration,
                                                   const std::vector<const MeasuredCall*>& rows) {
    std::vector<std::string> groups;
    for (const MeasuredCall* row : rows) {
      std::string group = call_group(row->call);
      if (calibration.groups.contains(group)) groups.push_back(std::move(group));
    }
    return groups;
  }
  FitErrors errors(const DeviceCalibration& calibration, const std::vector<const MeasuredCall*>& rows) const {
    FitErrors result;
    for (const MeasuredCall* row : rows) {
      if (!calibration.groups.contains(call_group(row->call))) continue;
      const auto [number, logs] = group_of(calibration, row->call);
      const double seconds =
          form_seconds_with_residual(*form_, row->call, traits_, *logs, calibration.residual, 1, number);
      result.push_back({.predicted = seconds, .log_error = portable_log(row->seconds / seconds)});
    }
    return result;
  }

 private:
  static std::pair<float, const std::vector<double>*> group_of(const DeviceCalibration& calibration,
                                                               const FormCall& call) {
    const auto found = calibration.groups.find(call_group(call));
    return {static_cast<float>(std::distance(calibration.groups.begin(), found)), &found->second};
  }

  static std::vector<std::pair<float, float>> ranges_of(const std::vector<const MeasuredCall*>& rows) {
    std::vector<std::pair<float, float>> ranges;
    for (const MeasuredCall* row : rows) {
      const auto raw = raw_features(row->call);
      if (ranges.empty()) {
        for (const float value : raw) ranges.emplace_back(value, value);
      }
      for (size_t i = 0; i < raw.size(); ++i) {
        ranges[i] = {std::min(ranges[i].first, raw[i]), std::max(ranges[i].second, raw[i])};
      }
    }
    return ranges;
  }

  // Trees that all groups share ask what splits most rows. Groups that are a small part of the sweep get some of their
  // own on what is left over: behind two questions that only their number passes.
  void add_trees_of_small_groups(const std::vector<const MeasuredCall*>& rows, std::span<const float> features,
                                 std::span<const float> targets, DeviceCalibration& result) const {
    constexpr double small_share = 0.3;
    constexpr BoostSettings settings{.trees = 150, .depth = 5, .learning_rate = 0.1, .min_leaf_rows = 3, .bins = 64};
    const size_t width = features.size() / rows.size();
    std::map<float, std::vector<size_t>> members;
    for (size_t i = 0; i < rows.size(); ++i) members[group_of(result, rows[i]->call).first].push_back(i);
    SymmetricTrees trees = result.residual.trees();
    for (const auto& [number, own] : members) {
      if (static_cast<double>(own.size()) > small_share * static_cast<double>(rows.size())) continue;
      if (trees.levels.size() + settings.trees > SymmetricTrees::most_trees) break;
      std::vector<float> own_features, left_over;
      for (const size_t i : own) {
        const std::span<const float> values = features.subspan(i * width, width);
        own_features.insert(own_features.end(), values.begin(), values.end());
        left_over.push_back(targets[i] - static_cast<float>(result.residual.predict(values)));
      }
      append_for_group(fit_boosted_trees(own_features, width, left_over, settings).trees(), number, trees);
    }
    result.residual = BoostedTrees(width, std::move(trees));
  }

  void append_for_group(const SymmetricTrees& more, float number, SymmetricTrees& trees) const {
    size_t question = 0, leaf = 0;
    for (const uint8_t levels : more.levels) {
      trees.levels.push_back(static_cast<uint8_t>(levels + 2));
      for (int level = 0; level < levels; ++level, ++question) {
        trees.features.push_back(more.features[question]);
        trees.thresholds.push_back(more.thresholds[question]);
      }
      for (const float edge : {number - 0.5F, number + 0.5F}) {
        trees.features.push_back(static_cast<uint8_t>(form_->feature_count()));
        trees.thresholds.push_back(edge);
      }
      // Above the number before this group's, and not above its own.
      const size_t count = size_t{1} << levels;
      trees.leaves.insert(trees.leaves.end(), count, 0);
      const auto first = more.leaves.begin() + static_cast<std::ptrdiff_t>(leaf);
      trees.leaves.insert(trees.leaves.end(), first, first + static_cast<std::ptrdiff_t>(count));
      trees.leaves.insert(trees.leaves.end(), 2 * count, 0);
      leaf += count;
    }
  }

  // A probe says too little to move constants. What other generations taught stays, trees and all; on top come a level
  // of each group and trees for its drift with size.
  void fit_levels(const std::map<std::string, std::vector<const MeasuredCall*>>& groups,
                  const std::vector<const MeasuredCall*>& rows, DeviceCalibration& result) const {
    result.shared.assign(cross_.constants.size(), 0.0);
    for (const auto& [name, members] : groups)
      result.groups[name] = cross_log_constants(*form_, cross_, members.front()->call, traits_, device_.name);
    const size_t width = form_->feature_count() + 1 + raw_feature_count;
    SymmetricTrees trees = cross_.residual.trees();
    for (int16_t& leaf : trees.leaves)
      leaf = static_cast<int16_t>(std::lround(cross_.residual_strength * static_cast<double>(leaf)));
    const auto add_trees = [&](const SymmetricTrees& more) {
      trees.levels.insert(trees.levels.end(), more.levels.begin(), more.levels.end());
      trees.features.insert(trees.features.end(), more.features.begin(), more.features.end());
      trees.thresholds.insert(trees.thresholds.end(), more.thresholds.begin(), more.thresholds.end());
      trees.leaves.insert(trees.leaves.end(), more.leaves.begin(), more.leaves.end());
    };
    const auto left_over = [&](const MeasuredCall& row, const BoostedTrees& known) {
      const auto [number, logs] = group_of(result, row.call);
      return portable_log(row.seconds / form_seconds_with_residual(*form_, row.call, traits_, *logs, known, 1, number));
    };
    const BoostedTrees without_levels(width, trees);
    constexpr double doubt_rows = 2, most_level = 3;
    SymmetricTrees levels;
    float number = 0;
    for (const auto& [name, members] : groups) {
      std::vector<double> errors;
      for (const MeasuredCall* row : members) errors.push_back(left_over(*row, without_levels));
      const auto count = static_cast<double>(errors.size());
      const double level = std::clamp(quantile(errors, 0.5) * count / (count + doubt_rows), -most_level, most_level);
      // Above the number before this group's, and not above its own.
      levels.levels.push_back(2);
      for (const float edge : {number - 0.5F, number + 0.5F}) {
        levels.features.push_back(static_cast<uint8_t>(form_->feature_count()));
        levels.thresholds.push_back(edge);
      }
      levels.leaves.insert(levels.leaves.end(),
                           {0, static_cast<int16_t>(std::lround(level / BoostedTrees::leaf_step)), 0, 0});
      number += 1;
    }
    add_trees(levels);
    const BoostedTrees with_levels(width, trees);
    std::vector<float> features, targets;
    for (const MeasuredCall* row : rows) {
      const auto [group, logs] = group_of(result, row->call);
      const std::vector<float> values = residual_features(*form_, row->call, traits_, *logs, group);
      features.insert(features.end(), values.begin(), values.end());
      targets.push_back(static_cast<float>(left_over(*row, with_levels)));
    }
    constexpr BoostSettings drift{.trees = 80, .depth = 3, .learning_rate = 0.1, .min_leaf_rows = 6, .bins = 32};
    add_trees(fit_boosted_trees(features, width, targets, drift).trees());
    result.residual = BoostedTrees(width, std::move(trees));
  }

  // An offset shared by the device's groups and one of each group's own, pulled towards the cross constants.
  void fit_constants(const std::map<std::string, std::vector<const MeasuredCall*>>& groups, size_t rows,
                     DeviceCalibration& result) const {
    const std::span<const FormConstant> constants = form_->constants();
    HierarchicalFit fit{.constants = constants.size(), .huber_scale = 0.1, .rounds = 25};
    for (const FormConstant& constant : constants)
      fit.bounds.push_back({portable_log(constant.least), portable_log(constant.most)});
    const bool many_kinds = groups.size() > few_groups;
    const double pull = many_kinds ? 0.003 : 0.03;
    const std::vector<double> zeros(constants.size(), 0.0);
    fit.effects.push_back({.name = "shared", .strength = pull, .offsets = zeros});
    std::vector<const MeasuredCall*> used;
    for (const auto& [name, members] : groups) {
      FitGroup group{.first_row = used.size(), .rows = std::min(members.size(), refit_rows_per_group)};
      group.weight = many_kinds ? 1 / static_cast<double>(groups.size())
                                : static_cast<double>(members.size()) / static_cast<double>(rows);
      fit.effects.push_back(
          {.name = "prior " + name,
           .fixed = true,
           .offsets = cross_log_constants(*form_, cross_, members.front()->call, traits_, device_.name)});
      fit.effects.push_back({.name = name, .strength = pull, .offsets = zeros});
      group.effects = {0, fit.effects.size() - 2, fit.effects.size() - 1};
      for (size_t i = 0; i < group.rows; ++i) used.push_back(members[i]);
      fit.groups.push_back(std::move(group));
    }
    std::vector<double> natural(constants.size());
    solve(fit, [&](size_t row, std::span<const double> logs, int& choice) {
      for (size_t k = 0; k < natural.size(); ++k) natural[k] = portable_exp(logs[k]);
      return portable_log(form_->seconds(used[row]->call, traits_, natural, choice) / used[row]->seconds);
    });
    size_t index = 0;
    std::vector<std::vector<double>> priors;
    for (const auto& [name, members] : groups) {
      priors.push_back(fit.effects[fit.groups[index].effects[1]].offsets);
      result.groups[name] = log_constants(fit, fit.groups[index++].effects);
    }
    result.shared = shared_offsets(priors, result.groups);
  }

  const FormCalibration& cross_;
  const Device& device_;
  DeviceTraits traits_;
  std::unique_ptr<Form> form_;
  bool is_probe_;
  bool gives_small_groups_trees_;  // AMD's tables hold one format for the most part
};

// Moves `count` rows of each call group, spread evenly over predicted times, to the front and says how many they are.
// The order among them is the one that they had.
size_t probed_first(const DeviceFitter& fitter, size_t count, std::vector<const MeasuredCall*>& rows) {
  std::map<std::string, std::vector<std::pair<double, size_t>>> groups;
  for (size_t i = 0; i < rows.size(); ++i)
    groups[call_group(rows[i]->call)].emplace_back(fitter.cross_seconds(rows[i]->call), i);
  std::vector<bool> is_probed(rows.size(), false);
  for (auto& [name, members] : groups) {
    std::sort(members.begin(), members.end());
    const size_t wanted = std::min(count, members.size());
    for (size_t i = 0; i < wanted; ++i) is_probed[members[(2 * i + 1) * members.size() / (2 * wanted)].second] = true;
  }
  std::vector<const MeasuredCall*> probed, rest;
  for (size_t i = 0; i < rows.size(); ++i) (is_probed[i] ? probed : rest).push_back(rows[i]);
  rows = probed;
  rows.insert(rows.end(), rest.begin(), rest.end());
  return probed.size();
}

// Where rows come from a few models, each model's predicted by a fit on the others; else nothing. `rows` are shuffled.
FitErrors errors_on_unseen_models(const DeviceFitter& fitter, const std::vector<const MeasuredCall*>& rows) {
  constexpr size_t fewest_models = 3, most_models = 12, most_rows = 20000;
  std::map<std::string, size_t> models;
  for (const MeasuredCall* row : rows) ++models[call_model(row->call)];
  FitErrors errors;
  if (models.size() < fewest_models || models.size() > most_models) return errors;
  for (const auto& [model, count] : models) {
    std::vector<const MeasuredCall*> seen, unseen;
    for (size_t i = 0; i < std::min(rows.size(), most_rows); ++i)
      (call_model(rows[i]->call) == model ? unseen : seen).push_back(rows[i]);
    const FitErrors own = fitter.errors(fitter.fit(seen), unseen);
    errors.insert(errors.end(), own.begin(), own.end());
  }
  return errors;
}

// Where a sweep has many rows of each layer: its layers, and how much wider than for rows of those an interval must be
// for another. Each fifth of the layers is predicted by a fit on the others. `rows` are shuffled.
void widen_for_unseen_layers(const DeviceFitter& fitter, const std::vector<const MeasuredCall*>& rows,
                             DeviceCalibration& result) {
  constexpr size_t folds = 5, fewest_layers = 3, fewest_rows = 8, most_rows = 20000;
  std::map<std::string, size_t> layers;  // with the fifth each belongs to
  for (const MeasuredCall* row : rows) {
    const std::string layer = call_layer(row->call);
    if (!layer.empty()) layers.emplace(swept_layer(call_group(row->call), layer), 0);
  }
  if (layers.size() < fewest_layers || rows.size() < fewest_rows * layers.size()) return;
  size_t next = 0;
  for (auto& [layer, fold] : layers) fold = next++ % folds;
  std::vector<double> ratios;
  for (size_t fold = 0; fold < folds; ++fold) {
    std::vector<const MeasuredCall*> seen, unseen;
    for (size_t i = 0; i < std::min(rows.size(), most_rows); ++i) {
      const FormCall& call = rows[i]->call;
      (layers.at(swept_layer(call_group(call), call_layer(call))) == fold ? unseen : seen).push_back(rows[i]);
    }
    const DeviceCalibration trial = fitter.fit(seen);
    const FitErrors errors = fitter.errors(trial, unseen);
    const std::vector<std::string> groups = fitter.groups_of_errors(trial, unseen);
    for (size_t i = 0; i < errors.size(); ++i) {
      const double width = result.half_widths.at(errors[i].predicted) * result.width_factor(groups[i]);
      ratios.push_back(std::abs(errors[i].log_error) / std::max(width, 1e-6));
    }
  }
  for (const auto& [layer, fold] : layers) result.layers.push_back(layer);
  result.unseen_layer_factor = std::clamp(quantile(ratios, 0.9), 1.0, 20.0);
}

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

DeviceCalibration fit_device(const FormKind& kind, const FormCalibration& cross, const MeasuredDevice& measured,
                             const FitOptions& options) {
  if (options.progress) options.progress(fmt::format("{}: measured tier of {}", kind.name, measured.device.name));
  std::vector<const MeasuredCall*> rows;
  for (const MeasuredCall& row : measured.rows) rows.push_back(&row);
  RandomStream random(options.seed, fmt::format("sweep of {} {}", kind.name, measured.device.name));
  shuffle(rows, random);
  const DeviceFitter fitter(kind, cross, measured.device, options.probe_rows > 0);
  size_t used = options.sweep_size > 0 ? std::min(rows.size(), options.sweep_size) : rows.size();
  if (options.probe_rows > 0) used = probed_first(fitter, options.probe_rows, rows);
  const std::vector<const MeasuredCall*> outside(rows.begin() + static_cast<std::ptrdiff_t>(used), rows.end());
  rows.resize(used);

  // Each fifth predicted by a fit on the others; with many rows of few kinds one fifth says enough.
  constexpr size_t folds = 5, few = 1500;
  std::set<std::string> groups;
  for (const MeasuredCall* row : rows) groups.insert(call_group(row->call));
  const bool all_folds = rows.size() <= few || (rows.size() <= 5 * few && groups.size() > few_groups);
  FitErrors errors;
  std::vector<std::string> group_of_error;
  for (size_t fold = 0; fold < (all_folds ? folds : 1); ++fold) {
    std::vector<const MeasuredCall*> seen, unseen;
    for (size_t i = 0; i < rows.size(); ++i) (i % folds == fold ? unseen : seen).push_back(rows[i]);
    const DeviceCalibration trial = fitter.fit(seen);
    const FitErrors own = fitter.errors(trial, unseen);
    errors.insert(errors.end(), own.begin(), own.end());
    const std::vector<std::string> own_groups = fitter.groups_of_errors(trial, unseen);
    group_of_error.insert(group_of_error.end(), own_groups.begin(), own_groups.end());
  }
  ensure(group_of_error.size() == errors.size(), "every error has its group");

  DeviceCalibration result = fitter.fit(rows);
  result.half_widths = half_widths_from(errors);
  result.width_factors = width_factors_from(errors, group_of_error, result.half_widths);
  // The next call is likely to be another model's.
  if (const FitErrors unseen_models = errors_on_unseen_models(fitter, rows); !unseen_models.empty()) {
    result.half_widths = half_widths_from(unseen_models);
    result.width_factors.clear();
  }
  widen_for_unseen_layers(fitter, rows, result);
  const auto over_factors = [](FitErrors scaled_errors, const std::vector<std::string>& names,
                               const std::map<std::string, double, std::less<>>& factors) {
    for (size_t i = 0; i < scaled_errors.size(); ++i) {
      const auto factor = factors.find(names[i]);
      if (factor != factors.end()) scaled_errors[i].log_error /= factor->second;
    }
    return scaled_errors;
  };
  if (outside.empty()) {
    // Half of the errors make the intervals that the other half is held to.
    const auto middle = static_cast<std::ptrdiff_t>(errors.size() / 2);
    const FitErrors first(errors.begin(), errors.begin() + middle), second(errors.begin() + middle, errors.end());
    const HalfWidths widths = half_widths_from(first);
    const auto factors = width_factors_from(first, group_of_error, widths);
    const std::vector<std::string> names(group_of_error.begin() + middle, group_of_error.end());
    result.held_out_coverage = coverage(over_factors(second, names, factors), widths);
  } else {
    errors = fitter.errors(result, outside);
    group_of_error = fitter.groups_of_errors(result, outside);
    result.held_out_coverage = coverage(over_factors(errors, group_of_error, result.width_factors), result.half_widths);
  }
  result.held_out_mape = mean_percentage_error(errors);
  result.held_out_mape_20us = mean_percentage_error(errors, long_kernel_seconds);
  result.source = options.source;
  result.fitted_on = options.date;
  return result;
}

bool rebase_sweep(const FormKind& kind, const FormCalibration& cross, const MeasuredDevice& measured,
                  DeviceCalibration& sweep) {
  const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
  const DeviceTraits traits = traits_of(measured.device).traits;
  std::map<std::string, const FormCall*> calls;
  for (const MeasuredCall& row : measured.rows) calls.emplace(call_group(row.call), &row.call);
  std::vector<std::vector<double>> priors;
  for (const auto& [name, logs] : sweep.groups) {
    const auto call = calls.find(name);
    if (call == calls.end()) return false;
    priors.push_back(cross_log_constants(*form, cross, *call->second, traits, measured.device.name));
  }
  if (priors.empty() || sweep.constants != cross.constants) return false;
  std::vector<double> shared = shared_offsets(priors, sweep.groups);
  constexpr double rounded = 1e-5;  // files keep fewer digits than a fit has
  const bool same = std::equal(shared.begin(), shared.end(), sweep.shared.begin(), sweep.shared.end(),
                               [](double a, double b) { return std::abs(a - b) <= rounded; });
  if (!same) sweep.shared = std::move(shared);
  return !same;
}

std::map<std::string, UnseenErrors> errors_of_sweep(const FormKind& kind, const DeviceCalibration& sweep,
                                                    const Device& device, const std::vector<MeasuredCall>& rows) {
  const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
  const DeviceTraits traits = traits_of(device).traits;
  std::map<std::string, UnseenErrors> by_group;
  for (const MeasuredCall& row : rows) {
    const auto group = sweep.groups.find(call_group(row.call));
    if (group == sweep.groups.end()) continue;
    const auto number = static_cast<float>(std::distance(sweep.groups.begin(), group));
    const double seconds =
        form_seconds_with_residual(*form, row.call, traits, group->second, sweep.residual, 1, number);
    const double log_error = portable_log(row.seconds / seconds);
    UnseenErrors& own = by_group[group->first];
    own.errors.push_back({.predicted = seconds, .log_error = log_error});
    const double half_width = sweep.half_widths.at(seconds) * sweep.width_factor(group->first) *
                              sweep.layer_factor(group->first, call_layer(row.call));
    if (std::abs(log_error) <= half_width) ++own.inside;
  }
  return by_group;
}

std::optional<HalfWidths> sibling_half_widths(const FormKind& kind, const std::vector<MeasuredDevice>& devices,
                                              const std::map<std::string, DeviceCalibration>& sweeps) {
  const std::unique_ptr<Form> form = kind.make(Caches::benchmark);
  FitErrors errors;
  for (const MeasuredDevice& swept : devices) {
    const auto sweep = sweeps.find(swept.device.name);
    if (sweep == sweeps.end()) continue;
    for (const MeasuredDevice& other : devices) {
      if (&other == &swept || generation_of(other.device) != generation_of(swept.device)) continue;
      const DeviceTraits from = traits_of(swept.device).traits, to = traits_of(other.device).traits;
      const size_t stride = std::max<size_t>(1, other.rows.size() / scored_rows_per_device);
      for (size_t i = 0; i < other.rows.size(); i += stride) {
        const FormCall& call = other.rows[i].call;
        const auto group = sweep->second.groups.find(call_group(call));
        if (group == sweep->second.groups.end()) continue;
        const auto number = static_cast<float>(std::distance(sweep->second.groups.begin(), group));
        const std::vector<double> constants = natural_constants(group->second);
        ResidualFeatures features;
        const double here =
            seconds_with_residual(*form, call, from, constants, sweep->second.residual, 1, number, features);
        const CarriedTime carried = carried_to_sibling(*form, call, from, to, constants, here, true);
        const double error = portable_log(other.rows[i].seconds / carried.seconds);
        const double beside = std::sqrt(std::max(0.0, error * error - carried.half_width * carried.half_width));
        errors.push_back({.predicted = carried.seconds, .log_error = beside});
      }
    }
  }
  if (errors.empty()) return std::nullopt;
  return half_widths_from(errors);
}

}  // namespace foretoken
