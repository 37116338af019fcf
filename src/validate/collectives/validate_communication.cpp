#include "validate/collectives/validate_communication.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "network/calibration/fit_communication.h"
#include "validate/row_filter.h"

namespace foretoken {
namespace {

std::string collective_of(const CommunicationRow& row) {
  return row.group.substr(row.group.find('/') + 1);
}

std::string group_of(const CommunicationRow& row, const CommunicationTime& predicted, const std::string& group_by) {
  if (group_by == "system") return row.system;
  if (group_by == "collective") return collective_of(row);
  if (group_by == "ranks") return fmt::format("{:6}", row.call.ranks);
  if (group_by == "size") return fmt::format("{:12.0f}", swept_size(row.call));
  if (group_by == "variant") return row.call.variant;
  if (group_by == "tier") return std::string(tier_name(predicted.tier));
  return row.group;
}

// One predictor for each system of the table.
class Predictors {
 public:
  Predictors(const CommunicationRows& rows, const CommunicationValidationRequest& request,
             const std::shared_ptr<const CommunicationLibrary>& library, const SystemLibrary& systems) {
    std::vector<std::string> measured;
    for (const auto& [key, sweep] : library->sweeps) {
      if (measured.empty() || measured.back() != key.first) measured.push_back(key.first);
    }
    std::map<std::string, std::vector<const CommunicationRow*>> by_system;
    for (const CommunicationRow& row : rows.rows) by_system[row.device].push_back(&row);
    for (const auto& [device, own] : by_system) {
      std::vector<KnownTime> known;
      if (request.gives_small_message) {
        if (const auto small = small_message_of(own)) known.push_back(*small);
      }
      known_[device] = known;
      predictors_.emplace(
          device, CommunicationPredictor(library, systems.traits(device), systems.siblings(device, measured), known));
    }
  }

  const CommunicationPredictor& of(const CommunicationRow& row) const { return predictors_.at(row.device); }

  bool is_told(const CommunicationRow& row) const { return is_given(known_.at(row.device), row.call); }

 private:
  std::map<std::string, CommunicationPredictor> predictors_;
  std::map<std::string, std::vector<KnownTime>> known_;
};

}  // namespace

std::vector<std::string> communication_groupings() {
  return {"system", "collective", "ranks", "size", "variant", "tier"};
}

Validation validate_communication(const CommunicationValidationRequest& request,
                                  const std::shared_ptr<const CommunicationLibrary>& library,
                                  const SystemLibrary& systems, const ScoredCommunicationSink& sink) {
  check_grouping(request.group_by, communication_groupings(), "collectives inside a node and expert traffic");
  const auto begin = std::chrono::steady_clock::now();
  CommunicationRows rows = read_communication_rows(request.data, systems);
  const double reading = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double reading_each = reading / static_cast<double>(std::max<size_t>(1, rows.rows.size()));
  const Predictors predictors(rows, request, library, systems);
  Validation validation{.skipped = std::move(rows.skipped), .notes = std::move(rows.notes)};
  ValidationTally tally(long_row_us);
  bool any = false;
  for (const CommunicationRow& row : rows.rows) {
    if (!is_wanted(request.systems, row.system) || !is_wanted(request.collectives, collective_of(row))) continue;
    any = true;
    if (predictors.is_told(row)) {
      validation.skipped.push_back({row.file, row.row, "the latency that the predictions were given"});
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto predicted = predictors.of(row).estimate(row.call, request.tier);
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!predicted) {
      validation.skipped.push_back({row.file, row.row, fmt::format("no calibration of {} in this tier", row.call.law)});
      continue;
    }
    const Estimate& seconds = predicted->seconds;
    tally.add(group_of(row, *predicted, request.group_by),
              {.measured = row.seconds * 1e6,
               .predicted = seconds.value * 1e6,
               .low = seconds.low * 1e6,
               .high = seconds.high * 1e6},
              spent + reading_each);
    if (sink) sink({.row = &row, .predicted = *predicted});
  }
  if (!any && validation.skipped.empty()) {
    throw InputError({.source = request.data.string(),
                      .value = "no rows to validate",
                      .expected = "at least one row that {systems} and {collectives} select"});
  }
  tally.write(validation);
  return validation;
}

}  // namespace foretoken
