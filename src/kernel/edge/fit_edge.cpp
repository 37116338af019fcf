#include "kernel/edge/fit_edge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "kernel/calibration_parts.h"
#include "kernel/fit/hierarchical_fit.h"

namespace foretoken {
namespace {

constexpr double wanted_share = 0.9;
// With fewer rows a kind's own quantile says little; it takes that of all kinds where that is wider.
constexpr size_t enough_for_width = 20;

using RowsByKind = std::map<EdgeKernelKind, std::vector<EdgeRow>>;

// Kinds that do little else than move bytes: what an operator without a sweep of its own is priced from.
bool moves_bytes_only(EdgeKernelKind kind) {
  switch (kind) {
    case EdgeKernelKind::add:
    case EdgeKernelKind::add_relu:
    case EdgeKernelKind::channel_scale:
    case EdgeKernelKind::concat:
    case EdgeKernelKind::transpose:
      return true;
    default:
      return false;
  }
}

RowsByKind rows_by_kind(std::span<const EdgeRow> rows) {
  RowsByKind groups;
  for (const EdgeRow& row : rows) {
    groups[row.kernel.kind].push_back(row);
    if (moves_bytes_only(row.kernel.kind)) groups[EdgeKernelKind::traffic].push_back(row);
  }
  return groups;
}

std::string shape_family(const EdgeKernel& kernel) {
  if (const auto* c = std::get_if<ConvolutionSizes>(&kernel.sizes))
    return fmt::format("{} {} {}", c->kernel_height, c->stride, c->out_height);
  if (const auto* p = std::get_if<ProductSizes>(&kernel.sizes)) return fmt::format("{} {}", p->k, p->n);
  if (const auto* t = std::get_if<TensorSizes>(&kernel.sizes)) return fmt::format("{}", t->elements);
  return "";
}

// The fold of each row: families in the order of their first rows, dealt out in turn.
std::vector<int> folds_of(std::span<const EdgeRow> rows, int folds) {
  std::map<std::string, int> fold_of;
  std::vector<int> result;
  for (const EdgeRow& row : rows) {
    const std::string name = fmt::format("{} {}", edge_kind_name(row.kernel.kind), shape_family(row.kernel));
    const int next = static_cast<int>(fold_of.size()) % folds;
    result.push_back(fold_of.emplace(name, next).first->second);
  }
  return result;
}

std::vector<double> amounts_of(const EdgeLaw& law, const EdgeKernel& kernel, const EdgeCore& core) {
  std::vector<double> amounts(law.prices.size());
  law.amounts(kernel, core, amounts);
  return amounts;
}

// The law's starting prices, all but the call's times the factor that makes the sum over all rows right: a slow device
// starts slow, and a price that no row speaks about keeps its proportion to the others.
std::vector<double> start_prices(const EdgeLaw& law, std::span<const EdgeRow> rows,
                                 const std::vector<std::vector<double>>& amounts) {
  std::vector<double> prices;
  for (const EdgePrice& price : law.prices) prices.push_back(price.start_ns);
  double shortest = rows.front().seconds, total = 0;
  for (const EdgeRow& row : rows) {
    shortest = std::min(shortest, row.seconds);
    total += row.seconds;
  }
  // A little below the shortest row, which does some work too.
  const double calls = 0.9 * shortest * static_cast<double>(rows.size());
  prices.front() = 0;
  double work = 0;
  for (const std::vector<double>& own : amounts) work += priced_seconds(own, prices);
  for (double& price : prices) price *= work > 0 ? (total - calls) / work : 1;
  prices.front() = 0.9 * shortest * 1e9;
  return prices;
}

struct FittedPrices {
  std::vector<double> prices_ns;
  double loss = 0;
};

FittedPrices fit_prices(EdgeKernelKind kind, std::span<const EdgeRow> rows, const EdgeCore& core) {
  const EdgeLaw& law = edge_law(kind);
  std::vector<std::vector<double>> amounts;
  for (const EdgeRow& row : rows) amounts.push_back(amounts_of(law, row.kernel, core));
  constexpr double most_steps = 7;  // a price may move by a factor of e^7 either way
  // Strong enough to settle a price that no row speaks about, too weak to be felt elsewhere.
  FitEffect effect{.name = "prices", .strength = 1e-4, .pull_to_start = true};
  HierarchicalFit fit{.constants = law.prices.size(), .rounds = 200};
  for (const double price : start_prices(law, rows, amounts)) {
    const double start = portable_log(price);
    effect.offsets.push_back(start);
    fit.bounds.push_back({.least = start - most_steps, .most = start + most_steps});
  }
  fit.effects = {std::move(effect)};
  fit.groups = {{.effects = {0}, .first_row = 0, .rows = rows.size()}};
  std::vector<double> prices(law.prices.size());
  FittedPrices fitted;
  fitted.loss = solve(fit, [&](size_t row, std::span<const double> log_prices, int& choice) {
    choice = 0;
    for (size_t i = 0; i < prices.size(); ++i) prices[i] = portable_exp(log_prices[i]);
    return portable_log(priced_seconds(amounts[row], prices) / rows[row].seconds);
  });
  for (const double log_price : log_constants(fit, fit.groups.front().effects))
    fitted.prices_ns.push_back(portable_exp(log_price));
  return fitted;
}

// Five digits say more than a sweep knows.
double stored_digits(double value) {
  return std::stod(fmt::format("{:.5g}", value));
}

// The tile and block of the runtime's multiply kernel that explain the products and convolutions best.
EdgeCore best_core(const RowsByKind& groups, const EdgeFitOptions& options) {
  EdgeCore best;
  std::optional<double> least;
  for (const int64_t rows : {4, 6, 8}) {
    for (const int64_t columns : {8, 16}) {
      for (const int64_t block : {128, 256, 512}) {
        const EdgeCore core{.cache_bytes = options.cache_bytes,
                            .last_level_bytes = options.last_level_bytes,
                            .tile_rows = rows,
                            .tile_columns = columns,
                            .depth_block = block};
        double loss = 0;
        for (const EdgeKernelKind kind :
             {EdgeKernelKind::convolution, EdgeKernelKind::linear, EdgeKernelKind::batched_matmul}) {
          const auto found = groups.find(kind);
          if (found == groups.end()) continue;
          loss += fit_prices(kind, found->second, core).loss * static_cast<double>(found->second.size());
        }
        if (least && loss >= *least) continue;
        least = loss;
        best = core;
      }
    }
  }
  return best;
}

// What calls from outside add, as far as the sweep shows it. An operator of a chain costs the runtime what the chain's
// call costs beyond an empty one, shared among its operators. A concatenation copies its elements once, and the caller
// is handed another copy: half its price each.
EdgeCallCosts call_costs(const EdgePredictor& predictor) {
  EdgeCallCosts costs;
  const auto empty_call = predictor.kinds.find(EdgeKernelKind::empty);
  const double empty = empty_call != predictor.kinds.end() ? empty_call->second.prices_ns.front() : 0;
  std::vector<double> per_operator;
  constexpr int chain_length = 5;
  for (const auto& [kind, prices] : predictor.kinds) {
    const int operators = edge_operator_count(kind);
    if (operators >= chain_length) per_operator.push_back((prices.prices_ns.front() - empty) / operators);
  }
  if (!per_operator.empty()) costs.node_ns = stored_digits(std::max(mean(per_operator), 0.0));
  if (const auto concat = predictor.kinds.find(EdgeKernelKind::concat); concat != predictor.kinds.end()) {
    costs.copy_near_ns = stored_digits(concat->second.prices_ns[1] / 2);
    costs.copy_far_ns = stored_digits(concat->second.prices_ns[2] / 2);
  }
  return costs;
}

EdgePredictor fit_all(std::span<const EdgeRow> rows, const EdgeFitOptions& options) {
  const RowsByKind groups = rows_by_kind(rows);
  EdgePredictor predictor{.device = options.device,
                          .runtime = options.runtime,
                          .runtime_version = options.runtime_version,
                          .threads = options.threads,
                          .source = options.source,
                          .fitted_on = options.date,
                          .core = best_core(groups, options)};
  for (const auto& [kind, own] : groups) {
    EdgeKindPrices prices{.rows = own.size()};
    for (const double price : fit_prices(kind, own, predictor.core).prices_ns)
      prices.prices_ns.push_back(stored_digits(price));
    prices.least.assign(prices.prices_ns.size(), 0);
    prices.most = prices.least;
    for (const EdgeRow& row : own) {
      const std::vector<double> amounts = amounts_of(edge_law(kind), row.kernel, predictor.core);
      for (size_t i = 0; i < amounts.size(); ++i) {
        if (amounts[i] > 0 && (prices.least[i] == 0 || amounts[i] < prices.least[i])) prices.least[i] = amounts[i];
        prices.most[i] = std::max(prices.most[i], amounts[i]);
      }
    }
    predictor.kinds[kind] = std::move(prices);
  }
  if (options.whole_calls) predictor.calls = call_costs(predictor);
  return predictor;
}

struct LeftOutRow {
  EdgeKernelKind kind = EdgeKernelKind::empty;
  int fold = 0;
  double measured = 0, predicted = 0;
  double log_error() const { return std::abs(portable_log(measured / predicted)); }
};

// The half width for a kind from the errors of all folds but one (-1: of all).
double half_width(std::span<const LeftOutRow> rows, EdgeKernelKind kind, int without_fold) {
  std::vector<double> own, all;
  for (const LeftOutRow& row : rows) {
    if (row.fold == without_fold) continue;
    all.push_back(row.log_error());
    if (row.kind == kind) own.push_back(row.log_error());
  }
  if (own.size() >= enough_for_width) return quantile(own, wanted_share);
  const double overall = all.empty() ? 1.0 : quantile(all, wanted_share);
  return own.empty() ? overall : std::max(overall, quantile(own, wanted_share));
}

std::vector<LeftOutRow> predict_left_out(std::span<const EdgeRow> rows, const EdgeFitOptions& options) {
  const std::vector<int> fold_of = folds_of(rows, options.folds);
  std::vector<LeftOutRow> result(rows.size());
  for (int fold = 0; fold < options.folds; ++fold) {
    std::vector<EdgeRow> seen;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (fold_of[i] != fold) seen.push_back(rows[i]);
    }
    if (seen.empty() || seen.size() == rows.size()) continue;
    const EdgePredictor predictor = fit_all(seen, options);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (fold_of[i] != fold) continue;
      result[i] = {.kind = rows[i].kernel.kind, .fold = fold, .measured = rows[i].seconds};
      if (predictor.knows(rows[i].kernel)) result[i].predicted = predictor.kernel_seconds(rows[i].kernel).value;
    }
  }
  return result;
}

// How far off the price of bytes is for a kind of operator that it was not fitted on: each kind that moves bytes only,
// by the prices of the others.
std::vector<LeftOutRow> predict_unseen_kinds(const RowsByKind& groups, const EdgeCore& core) {
  std::vector<LeftOutRow> result;
  const auto traffic = groups.find(EdgeKernelKind::traffic);
  if (traffic == groups.end()) return result;
  for (const auto& [kind, own] : groups) {
    if (!moves_bytes_only(kind)) continue;
    std::vector<EdgeRow> others;
    for (const EdgeRow& row : traffic->second) {
      if (row.kernel.kind != kind) others.push_back(row);
    }
    if (others.empty()) continue;
    const std::vector<double> prices = fit_prices(EdgeKernelKind::traffic, others, core).prices_ns;
    for (const EdgeRow& row : own) {
      const std::vector<double> amounts = amounts_of(edge_law(EdgeKernelKind::traffic), row.kernel, core);
      result.push_back(
          {.kind = EdgeKernelKind::traffic, .measured = row.seconds, .predicted = priced_seconds(amounts, prices)});
    }
  }
  return result;
}

void add_errors(EdgeKindPrices& prices, double width, std::span<const PredictedRow> left_out) {
  const ErrorSummary summary = summarize_errors(left_out);
  prices.half_width = stored_digits(width);
  prices.cross_validated_mape = rounded_percent(summary.mape);
  prices.cross_validated_coverage = rounded_percent(summary.coverage90);
}

PredictedRow with_interval(const LeftOutRow& row, double half_width) {
  const double factor = portable_exp(half_width);
  return {.measured = row.measured,
          .predicted = row.predicted,
          .low = row.predicted / factor,
          .high = row.predicted * factor};
}

}  // namespace

EdgeFit fit_edge(std::span<const EdgeRow> rows, const EdgeFitOptions& options) {
  ensure(options.folds >= 2, "cross-validation has at least two folds");
  const auto is_empty = [](const EdgeRow& row) { return row.kernel.kind == EdgeKernelKind::empty; };
  if (std::find_if(rows.begin(), rows.end(), is_empty) == rows.end()) {
    throw InputError({.source = "the sweep",
                      .value = fmt::format("{} rows, none of kind null", rows.size()),
                      .expected = "kernels of several kinds, and empty calls that say what calling the runtime costs"});
  }
  EdgeFit fit{.predictor = fit_all(rows, options)};
  std::vector<LeftOutRow> judged;
  for (const LeftOutRow& row : predict_left_out(rows, options)) {
    if (row.predicted > 0) judged.push_back(row);
  }
  std::map<EdgeKernelKind, std::vector<PredictedRow>> by_kind;
  for (const LeftOutRow& row : judged) {
    fit.left_out.push_back(with_interval(row, half_width(judged, row.kind, row.fold)));
    by_kind[row.kind].push_back(fit.left_out.back());
  }
  for (auto& [kind, prices] : fit.predictor.kinds) add_errors(prices, half_width(judged, kind, -1), by_kind[kind]);
  const std::vector<LeftOutRow> unseen = predict_unseen_kinds(rows_by_kind(rows), fit.predictor.core);
  if (!unseen.empty()) {
    const double width = half_width(unseen, EdgeKernelKind::traffic, -1);
    std::vector<PredictedRow> predicted;
    for (const LeftOutRow& row : unseen) predicted.push_back(with_interval(row, width));
    add_errors(fit.predictor.kinds.at(EdgeKernelKind::traffic), width, predicted);
  }
  const ErrorSummary summary = summarize_errors(fit.left_out);
  fit.predictor.cross_validated_mape = rounded_percent(summary.mape);
  fit.predictor.cross_validated_coverage = rounded_percent(summary.coverage90);
  return fit;
}

}  // namespace foretoken
