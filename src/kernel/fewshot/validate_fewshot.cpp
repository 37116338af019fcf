#include "kernel/fewshot/validate_fewshot.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/statistics.h"
#include "kernel/fewshot/adapted_device.h"
#include "kernel/fewshot/failed_rows.h"
#include "kernel/fewshot/fit_prior.h"
#include "kernel/fewshot/measure_next.h"

namespace foretoken {
namespace {

constexpr size_t trimmed_share = 10;        // one in ten at either end
constexpr size_t advised_candidates = 200;  // drawn anew each time: the choice costs their square

// Positions of a device's latencies in the two ranges of the protocol.
struct ProtocolRows {
  std::vector<size_t> fit;      // trimmed
  std::vector<size_t> queries;  // by latency: the trimmed ones lie between
  size_t cut = 0;               // how many lie outside at either end
};

ProtocolRows protocol_rows(const ArchitectureSpace& space, const DeviceLatencies& latencies,
                           const std::vector<size_t>& usable) {
  ProtocolRows rows;
  for (const size_t position : usable) {
    if (space.fit.contains(latencies.ids[position])) rows.fit.push_back(position);
    if (space.query.contains(latencies.ids[position])) rows.queries.push_back(position);
  }
  const auto faster = [&](size_t a, size_t b) { return latencies.milliseconds[a] < latencies.milliseconds[b]; };
  std::stable_sort(rows.fit.begin(), rows.fit.end(), faster);
  std::stable_sort(rows.queries.begin(), rows.queries.end(), faster);
  const auto fit_cut = static_cast<std::ptrdiff_t>(rows.fit.size() / trimmed_share);
  rows.fit = std::vector<size_t>(rows.fit.begin() + fit_cut, rows.fit.end() - fit_cut);
  rows.cut = rows.queries.size() / trimmed_share;
  return rows;
}

void add_share(FewshotErrors& sum, const FewshotErrors& errors, double share) {
  sum.spearman += share * errors.spearman;
  sum.mape += share * errors.mape;
  sum.coverage90 += share * errors.coverage90;
}

void add_share(FewshotErrors& sum, const ErrorSummary& errors, double share) {
  add_share(sum, FewshotErrors{.spearman = errors.spearman, .mape = errors.mape, .coverage90 = errors.coverage90},
            share);
}

class DeviceTrial {
 public:
  DeviceTrial(const LatencyTable& table, const DeviceLatencies& latencies, const LatencyPrior& prior,
              const FewshotRequest& request)
      : table_(table), latencies_(latencies), prior_(prior), request_(request) {}

  void run(const ProtocolRows& rows, FewshotGroup& group) const {
    const double share = 1 / static_cast<double>(request_.draws);
    for (size_t draw = 0; draw < request_.draws; ++draw) {
      std::vector<Timing> timings;
      RandomStream stream(draw, "timings of " + latencies_.device);
      for (const size_t position : choose_timings(rows.fit, stream))
        timings.push_back(timing_at(table_, latencies_, position));
      const AdaptedDevice device(prior_, timings);
      std::vector<PredictedRow> predicted;
      for (const size_t position : rows.queries) {
        const Estimate estimate = device.milliseconds(table_.architectures.features[latencies_.rows[position]]);
        predicted.push_back({.measured = latencies_.milliseconds[position],
                             .predicted = estimate.value,
                             .low = estimate.low,
                             .high = estimate.high});
      }
      add_share(group.untrimmed, summarize_errors(predicted), share);
      const std::span<const PredictedRow> all(predicted);
      add_share(group.trimmed, summarize_errors(all.subspan(rows.cut, all.size() - 2 * rows.cut)), share);
    }
  }

 private:
  std::vector<size_t> choose_timings(const std::vector<size_t>& from, RandomStream& stream) const {
    if (request_.choice == FewshotRequest::Choice::random) return draw_some(from, request_.timings, stream);
    const std::vector<size_t> candidates = draw_some(from, advised_candidates, stream);
    std::vector<std::vector<double>> features;
    for (const size_t position : candidates)
      features.push_back(table_.architectures.features[latencies_.rows[position]]);
    std::vector<size_t> chosen;
    for (const size_t c : measure_first(prior_, features, request_.timings)) chosen.push_back(candidates[c]);
    return chosen;
  }

  const LatencyTable& table_;
  const DeviceLatencies& latencies_;
  const LatencyPrior& prior_;
  const FewshotRequest& request_;
};

FewshotGroup mean_group(const std::vector<FewshotGroup>& groups, bool sums, std::string name) {
  FewshotGroup result{.device = std::move(name), .sum_of_blocks = sums};
  const auto count = std::count_if(groups.begin(), groups.end(),
                                   [&](const FewshotGroup& group) { return group.sum_of_blocks == sums; });
  for (const FewshotGroup& group : groups) {
    if (group.sum_of_blocks != sums) continue;
    result.failed_rows += group.failed_rows;
    result.queries += group.queries;
    add_share(result.trimmed, group.trimmed, 1 / static_cast<double>(count));
    add_share(result.untrimmed, group.untrimmed, 1 / static_cast<double>(count));
  }
  return result;
}

}  // namespace

FewshotValidation validate_fewshot(const ArchitectureSpace& space, const LatencyTable& table,
                                   const FewshotRequest& request, const LatencyPrior* shipped) {
  PriorFitOptions options;
  if (request.architectures == FewshotRequest::Architectures::new_to_all) options.rows = space.fit;
  const PriorFit fit = fit_devices(space, table, options);
  FewshotValidation result;
  for (const DeviceLatencies& latencies : table.devices) {
    const UsableRows usable = usable_rows(space, table.architectures, latencies);
    const ProtocolRows rows = protocol_rows(space, latencies, usable.positions);
    if (rows.fit.size() < request.timings || rows.queries.size() < 2 * trimmed_share) {
      result.skipped.push_back(fmt::format("{}: {} latencies to draw from and {} to predict", latencies.device,
                                           rows.fit.size(), rows.queries.size()));
      continue;
    }
    FewshotGroup group{.device = latencies.device,
                       .sum_of_blocks = usable.sum_of_blocks,
                       .failed_rows = usable.failed,
                       .queries = rows.queries.size()};
    const std::string family = device_family(latencies.device);
    const bool is_new = shipped != nullptr && !shipped->knows_family(family);
    LatencyPrior prior = is_new ? *shipped : without_devices(fit.prior, [&](const KnownDevice& known) {
      return request.withheld == FewshotRequest::Withheld::family ? known.family == family
                                                                  : known.name == latencies.device;
    });
    if (prior.devices.empty()) {
      result.skipped.push_back(fmt::format("{}: no other device to learn from", latencies.device));
      continue;
    }
    if (!is_new) learn_odds(prior, fit, table);
    DeviceTrial(table, latencies, prior, request).run(rows, group);
    result.groups.push_back(std::move(group));
  }
  result.measured = mean_group(result.groups, false, "measured devices");
  result.sums = mean_group(result.groups, true, "sums of blocks");
  return result;
}

}  // namespace foretoken
