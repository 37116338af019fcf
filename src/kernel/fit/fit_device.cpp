#include "kernel/fit/fit_device.h"

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
#include "kernel/fit/fit_smooth_residual.h"
#include "kernel/fit/hierarchical_fit.h"
#include "kernel/forms/call.h"

namespace foretoken {
namespace {

constexpr size_t refit_rows_per_group = 1500;

// A device with more call groups than this was swept over kernels of many kinds (frameworks' own ones beside an
// engine's): what they share says little about each.
constexpr size_t few_groups = 8;

// Fitting it takes the cube of the rows, asking it takes each of them.
constexpr size_t most_rows_of_smooth_residual = 400;

using WidthFactors = decltype(DeviceCalibration::width_factors);

struct GroupedErrors {
  FitErrors errors;
  std::vector<std::string> groups;  // of each error

  void append(const GroupedErrors& more) {
    errors.insert(errors.end(), more.errors.begin(), more.errors.end());
    groups.insert(groups.end(), more.groups.begin(), more.groups.end());
  }
  GroupedErrors part(size_t first, size_t last) const {
    const auto begin = static_cast<std::ptrdiff_t>(first), end = static_cast<std::ptrdiff_t>(last);
    return {.errors = {errors.begin() + begin, errors.begin() + end},
            .groups = {groups.begin() + begin, groups.begin() + end}};
  }
};

// How much wider or narrower than the rest a group's errors lie: the 90% quantile of |log error| over the half-width at
// that time. Groups with few rows keep the common width.
WidthFactors width_factors_from(const GroupedErrors& unseen, const HalfWidths& widths) {
  constexpr size_t enough = 15;
  std::map<std::string, std::vector<double>> ratios;
  for (size_t i = 0; i < unseen.errors.size(); ++i) {
    const FitError& error = unseen.errors[i];
    ratios[unseen.groups[i]].push_back(std::abs(error.log_error) / std::max(widths.at(error.predicted), 1e-6));
  }
  WidthFactors factors;
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

  // Decided once by the rows of the whole sweep: fits on a part of it, which tell its errors, are of the same kind.
  void smooth_sweep_of(size_t rows) { is_smooth_ = rows <= most_rows_of_smooth_residual; }

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
    if (is_smooth_) result.smooth = fit_smooth_residual(features, width, form_->feature_count(), targets);
    if (gives_small_groups_trees_) add_trees_of_small_groups(rows, features, targets, result);
    return result;
  }

  // Rows of groups that the calibration does not know are left out.
  GroupedErrors errors(const DeviceCalibration& calibration, const std::vector<const MeasuredCall*>& rows) const {
    GroupedErrors result;
    for (const MeasuredCall* row : rows) {
      std::string group = call_group(row->call);
      if (!calibration.groups.contains(group)) continue;
      const auto [number, logs] = group_of(calibration, row->call);
      ResidualFeatures features;
      const double seconds =
          swept_seconds(*form_, row->call, traits_, natural_constants(*logs), calibration, 1, number, features);
      result.errors.push_back({.predicted = seconds, .log_error = portable_log(row->seconds / seconds)});
      result.groups.push_back(std::move(group));
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
  bool is_smooth_ = false;
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
    const FitErrors own = fitter.errors(fitter.fit(seen), unseen).errors;
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
    const auto [errors, groups] = fitter.errors(fitter.fit(seen), unseen);
    for (size_t i = 0; i < errors.size(); ++i) {
      const double width = result.half_widths.at(errors[i].predicted) * result.width_factor(groups[i]);
      ratios.push_back(std::abs(errors[i].log_error) / std::max(width, 1e-6));
    }
  }
  for (const auto& [layer, fold] : layers) result.layers.push_back(layer);
  result.unseen_layer_factor = std::clamp(quantile(ratios, 0.9), 1.0, 20.0);
}

// Each fifth predicted by a fit on the others; with many rows of few kinds one fifth says enough. `rows` are shuffled.
GroupedErrors errors_on_unseen_rows(const DeviceFitter& fitter, const std::vector<const MeasuredCall*>& rows) {
  constexpr size_t folds = 5, few = 1500;
  std::set<std::string> groups;
  for (const MeasuredCall* row : rows) groups.insert(call_group(row->call));
  const bool all_folds = rows.size() <= few || (rows.size() <= 5 * few && groups.size() > few_groups);
  GroupedErrors result;
  for (size_t fold = 0; fold < (all_folds ? folds : 1); ++fold) {
    std::vector<const MeasuredCall*> seen, unseen;
    for (size_t i = 0; i < rows.size(); ++i) (i % folds == fold ? unseen : seen).push_back(rows[i]);
    result.append(fitter.errors(fitter.fit(seen), unseen));
  }
  return result;
}

void set_widths(const DeviceFitter& fitter, const std::vector<const MeasuredCall*>& rows, const GroupedErrors& unseen,
                DeviceCalibration& result) {
  result.half_widths = half_widths_from(unseen.errors);
  result.width_factors = width_factors_from(unseen, result.half_widths);
  // The next call is likely to be another model's.
  if (const FitErrors unseen_models = errors_on_unseen_models(fitter, rows); !unseen_models.empty()) {
    result.half_widths = half_widths_from(unseen_models);
    result.width_factors.clear();
  }
  widen_for_unseen_layers(fitter, rows, result);
}

FitErrors over_factors(const GroupedErrors& unseen, const WidthFactors& factors) {
  FitErrors scaled = unseen.errors;
  for (size_t i = 0; i < scaled.size(); ++i) {
    const auto factor = factors.find(unseen.groups[i]);
    if (factor != factors.end()) scaled[i].log_error /= factor->second;
  }
  return scaled;
}

// Half of the errors make the intervals that the other half is held to.
double coverage_of_second_half(const GroupedErrors& unseen) {
  const size_t middle = unseen.errors.size() / 2;
  const GroupedErrors first = unseen.part(0, middle), second = unseen.part(middle, unseen.errors.size());
  const HalfWidths widths = half_widths_from(first.errors);
  return coverage(over_factors(second, width_factors_from(first, widths)), widths);
}

void set_held_out_errors(const FitErrors& errors, DeviceCalibration& result) {
  result.held_out_mape = mean_percentage_error(errors);
  result.held_out_mape_20us = mean_percentage_error(errors, long_kernel_seconds);
}

}  // namespace

DeviceCalibration fit_device(const FormKind& kind, const FormCalibration& cross, const MeasuredDevice& measured,
                             const FitOptions& options) {
  if (options.progress) options.progress(fmt::format("{}: measured tier of {}", kind.name, measured.device.name));
  std::vector<const MeasuredCall*> rows;
  for (const MeasuredCall& row : measured.rows) rows.push_back(&row);
  RandomStream random(options.seed, fmt::format("sweep of {} {}", kind.name, measured.device.name));
  shuffle(rows, random);
  DeviceFitter fitter(kind, cross, measured.device, options.probe_rows > 0);
  size_t used = options.sweep_size > 0 ? std::min(rows.size(), options.sweep_size) : rows.size();
  if (options.probe_rows > 0) used = probed_first(fitter, options.probe_rows, rows);
  const std::vector<const MeasuredCall*> outside(rows.begin() + static_cast<std::ptrdiff_t>(used), rows.end());
  rows.resize(used);
  fitter.smooth_sweep_of(used);

  const GroupedErrors unseen = errors_on_unseen_rows(fitter, rows);
  DeviceCalibration result = fitter.fit(rows);
  set_widths(fitter, rows, unseen, result);
  if (outside.empty()) {
    result.held_out_coverage = coverage_of_second_half(unseen);
    set_held_out_errors(unseen.errors, result);
  } else {
    const GroupedErrors beyond = fitter.errors(result, outside);
    result.held_out_coverage = coverage(over_factors(beyond, result.width_factors), result.half_widths);
    set_held_out_errors(beyond.errors, result);
  }
  result.source = options.source;
  result.fitted_on = options.date;
  return result;
}

bool rebase_sweep(const FormKind& kind, const FormCalibration& cross, const MeasuredDevice& measured,
                  DeviceCalibration& sweep) {
  // A probe has moved no constants: what its kernels differ by from new ones is not the device's doing.
  if (std::all_of(sweep.shared.begin(), sweep.shared.end(), [](double offset) { return offset == 0; })) return false;
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
    ResidualFeatures features;
    const double seconds =
        swept_seconds(*form, row.call, traits, natural_constants(group->second), sweep, 1, number, features);
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
        const double here = swept_seconds(*form, call, from, constants, sweep->second,
                                          carried_residual(*form, call, from, constants), number, features);
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
