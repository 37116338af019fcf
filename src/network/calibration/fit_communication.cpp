#include "network/calibration/fit_communication.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/portable_math.h"
#include "kernel/fit/fit_errors.h"
#include "network/calibration/fit_law.h"

namespace foretoken {
namespace {

using Rows = std::vector<const CommunicationRow*>;

// A figure needs rows that its fit has not seen: every tier is scored by fits of their own.
class LawErrors {
 public:
  LawErrors(const LawKind& kind, Rows rows, const SystemLibrary& systems)
      : kind_(kind), rows_(std::move(rows)), systems_(systems) {
    std::set<std::string> names;
    for (const CommunicationRow* row : rows_) {
      names.insert(row->device);
      devices_of_[fingerprint(*row)].insert(row->device);
    }
    names_.assign(names.begin(), names.end());
  }

  const std::vector<std::string>& names() const { return names_; }

  using SharedLibrary = std::shared_ptr<const CommunicationLibrary>;
  SharedLibrary fit_shared(const std::function<bool(const CommunicationRow&)>& is_kept) const {
    return std::make_shared<const CommunicationLibrary>(fit(is_kept));
  }

  CommunicationLibrary fit(const std::function<bool(const CommunicationRow&)>& is_kept) const {
    Rows kept;
    for (const CommunicationRow* row : rows_) {
      if (is_kept(*row)) kept.push_back(row);
    }
    CommunicationLibrary library;
    if (kept.empty()) return library;
    const std::vector<TimedCall> calls = medians_of(kept);
    const LawCalibration& law = library.laws.emplace(kind_.name, fit_law(kind_, calls, systems_)).first->second;
    for (const std::string& name : law.systems) {
      std::vector<TimedCall> own;
      for (const TimedCall& timed : calls) {
        if (timed.device == name) own.push_back(timed);
      }
      library.sweeps.emplace(std::pair(name, std::string(kind_.name)),
                             fit_sweep(kind_, law, own, systems_.traits(name)));
    }
    return library;
  }

  // Every fourth size held out in turn. By system, the errors of each turn.
  std::map<std::string, std::vector<FitErrors>> score_sizes() const {
    std::map<std::string, std::vector<FitErrors>> errors;
    std::set<double> sizes;
    for (const CommunicationRow* row : rows_) sizes.insert(swept_size(row->call));
    constexpr size_t folds = 4;
    for (const std::string& name : names_) errors[name].resize(folds);
    for (size_t fold = 0; fold < folds; ++fold) {
      const auto is_held_out = [&](const CommunicationRow& row) {
        const auto at = std::distance(sizes.begin(), sizes.find(swept_size(row.call)));
        return static_cast<size_t>(at) % folds == fold;
      };
      const SharedLibrary library = fit_shared([&](const CommunicationRow& row) { return !is_held_out(row); });
      for (const CommunicationRow* row : rows_) {
        if (is_held_out(*row)) score(library, *row, Tier::measured, {}, errors[row->device][fold]);
      }
    }
    return errors;
  }

  // Every number of ranks held out in turn.
  std::map<int64_t, FitErrors> score_ranks() const {
    std::map<int64_t, FitErrors> errors;
    std::map<std::string, std::set<int64_t>> ranks_of_series;
    for (const CommunicationRow* row : rows_) {
      errors[row->call.ranks];
      ranks_of_series[series_of(row->call)].insert(row->call.ranks);
    }
    // Only a series with others left says what interpolating over ranks is worth.
    if (std::none_of(ranks_of_series.begin(), ranks_of_series.end(),
                     [](const auto& entry) { return entry.second.size() >= 3; })) {
      return {};
    }
    for (auto& [ranks, own] : errors) {
      const SharedLibrary library =
          fit_shared([&, r = ranks](const CommunicationRow& row) { return row.call.ranks != r; });
      for (const CommunicationRow* row : rows_) {
        if (row->call.ranks == ranks) score(library, *row, Tier::measured, {}, own);
      }
    }
    return errors;
  }

  // The system held out, predicted with a sibling's sweep.
  FitErrors score_sibling(const std::string& name) const {
    FitErrors errors;
    if (systems_.siblings(name, names_).empty()) return errors;
    const SharedLibrary library = fit_shared([&](const CommunicationRow& row) { return row.device != name; });
    for (const CommunicationRow* row : rows_) {
      if (row->device == name && !is_copied(*row)) score(library, *row, Tier::sibling, {}, errors);
    }
    return errors;
  }

  struct Withheld {
    FitErrors plain, told;  // of calls whose wire the sheet gives
    std::map<std::string, FitErrors> plain_by_system, told_by_system;
  };
  Withheld score_generation(const std::string& generation) const {
    Withheld result;
    const auto is_withheld = [&](const CommunicationRow& row) { return systems_.generation(row.device) == generation; };
    const SharedLibrary library = fit_shared([&](const CommunicationRow& row) { return !is_withheld(row); });
    for (const std::string& name : names_) {
      if (systems_.generation(name) != generation) continue;
      const std::vector<const CommunicationRow*> own = rows_of(name);
      std::vector<KnownTime> known;
      if (const auto small = small_message_of(own)) known.push_back(*small);
      for (const CommunicationRow* row : own) {
        if (!kind_.law->wire_is_known(row->call, systems_.traits(name))) continue;
        score(library, *row, Tier::cross, {}, result.plain_by_system[name]);
        if (known.empty() || is_given(known, row->call)) continue;
        score(library, *row, Tier::cross, known, result.told_by_system[name]);
      }
      append(result.plain_by_system[name], result.plain);
      append(result.told_by_system[name], result.told);
    }
    return result;
  }

  Rows rows_of(const std::string& name) const {
    Rows own;
    for (const CommunicationRow* row : rows_) {
      if (row->device == name) own.push_back(row);
    }
    return own;
  }

 private:
  using Fingerprint = std::tuple<std::string, int64_t, std::string, double, double>;
  static Fingerprint fingerprint(const CommunicationRow& row) {
    return {series_of(row.call), row.call.ranks, row.call.variant, swept_size(row.call), row.seconds};
  }
  // Some tables list one system's times under its sibling's name too: equal to the last digit, they prove nothing.
  bool is_copied(const CommunicationRow& row) const { return devices_of_.at(fingerprint(row)).size() > 1; }

  static void append(const FitErrors& from, FitErrors& to) { to.insert(to.end(), from.begin(), from.end()); }

  void score(const SharedLibrary& library, const CommunicationRow& row, Tier tier, const std::vector<KnownTime>& known,
             FitErrors& errors) const {
    const CommunicationPredictor predictor(library, systems_.traits(row.device), systems_.siblings(row.device, names_),
                                           known);
    const auto time = predictor.estimate(row.call, tier);
    if (!time) return;
    errors.push_back({.predicted = time->seconds.value, .log_error = portable_log(row.seconds / time->seconds.value)});
  }

  const LawKind& kind_;
  Rows rows_;
  const SystemLibrary& systems_;
  std::vector<std::string> names_;
  std::map<Fingerprint, std::set<std::string>> devices_of_;
};

ErrorSummary summary_of(const FitErrors& errors, const HalfWidths& widths) {
  std::vector<PredictedRow> rows;
  for (const FitError& error : errors) {
    const double width = portable_exp(widths.at(error.predicted));
    rows.push_back({.measured = error.measured(),
                    .predicted = error.predicted,
                    .low = error.predicted / width,
                    .high = error.predicted * width});
  }
  return summarize_errors(rows);
}

FitErrors all_of(const std::vector<FitErrors>& groups) {
  FitErrors all;
  for (const FitErrors& group : groups) all.insert(all.end(), group.begin(), group.end());
  return all;
}

class LawReport {
 public:
  LawReport(const LawKind& kind, Rows rows, const SystemLibrary& systems, const CommunicationFitOptions& options)
      : kind_(kind), errors_(kind, std::move(rows), systems), systems_(systems), options_(options) {}

  void run(CommunicationFit& result) {
    tell("all systems");
    CommunicationLibrary library = errors_.fit([](const CommunicationRow&) { return true; });
    LawCalibration& law = library.laws.find(kind_.name)->second;
    law.source = options_.source;
    law.fitted_on = options_.date;
    score_generations(law);
    score_siblings(law);
    score_ranks(law);
    tell("sizes held out");
    const std::map<std::string, std::vector<FitErrors>> by_system = errors_.score_sizes();
    for (const std::string& name : errors_.names()) {
      SweepCalibration& sweep = library.sweeps.find({name, std::string(kind_.name)})->second;
      const std::vector<FitErrors>& turns = by_system.at(name);
      const FitErrors held_out = all_of(turns);
      std::vector<double> shares;
      sweep.source = options_.source;
      sweep.fitted_on = options_.date;
      sweep.half_widths = half_widths_across(turns, shares);
      sweep.held_out_mape = mean_percentage_error(held_out);
      sweep.held_out_coverage = mean(shares);
      CommunicationFitSummary::Entry& entry = entries_[name];
      entry.rows = errors_.rows_of(name).size();
      entry.held_out = summary_of(held_out, sweep.half_widths);
      entry.held_out.coverage90 = sweep.held_out_coverage;
    }
    for (auto& [name, entry] : entries_) {
      entry.law = kind_.name;
      entry.system = name;
      result.summary.entries.push_back(entry);
    }
    result.library.laws.merge(library.laws);
    result.library.sweeps.merge(library.sweeps);
  }

 private:
  void tell(const std::string& what) const {
    if (options_.progress) options_.progress(fmt::format("{}: {}", kind_.name, what));
  }

  void score_generations(LawCalibration& law) {
    std::set<std::string> generations;
    for (const std::string& name : errors_.names()) generations.insert(systems_.generation(name));
    law.half_widths = half_widths_from({});
    if (generations.size() < 2) return;
    std::vector<FitErrors> plain, told;
    std::vector<std::string> plain_names, told_names;
    std::vector<LawErrors::Withheld> all;
    for (const std::string& generation : generations) {
      tell(fmt::format("{} withheld", generation));
      all.push_back(errors_.score_generation(generation));
      if (!all.back().plain.empty()) plain.push_back(all.back().plain), plain_names.push_back(generation);
      if (!all.back().told.empty()) told.push_back(all.back().told), told_names.push_back(generation);
    }
    WidthsWithout plain_without, told_without;
    law.half_widths = score_groups(plain, plain_names, law.withheld_mape, law.withheld_coverage, &plain_without);
    if (!told.empty())
      law.told_half_widths = score_groups(told, told_names, law.told_mape, law.told_coverage, &told_without);
    for (const LawErrors::Withheld& withheld : all) {
      for (const auto& [name, errors] : withheld.plain_by_system)
        entries_[name].withheld = unseen_summary(errors, plain_without, systems_.generation(name));
      for (const auto& [name, errors] : withheld.told_by_system)
        entries_[name].told = unseen_summary(errors, told_without, systems_.generation(name));
    }
  }

  using WidthsWithout = std::map<std::string, HalfWidths>;  // intervals made without a group, by its name

  // Of one system, in the intervals that its generation had no part in; with a single generation there are none.
  static ErrorSummary unseen_summary(const FitErrors& errors, const WidthsWithout& without,
                                     const std::string& generation) {
    const auto widths = without.find(generation);
    if (widths != without.end()) return summary_of(errors, widths->second);
    ErrorSummary summary = summary_of(errors, half_widths_from({}));
    summary.coverage90 = 0;
    return summary;
  }

  void score_ranks(LawCalibration& law) {
    tell("ranks held out");
    std::map<int64_t, FitErrors> held_out_ranks = errors_.score_ranks();
    std::vector<FitErrors> by_ranks;
    std::vector<std::string> rank_names;
    for (auto& [ranks, errors] : held_out_ranks) {
      if (errors.empty()) continue;
      by_ranks.push_back(std::move(errors));
      rank_names.push_back(fmt::format("{}", ranks));
    }
    std::map<std::string, double> covered;
    if (!by_ranks.empty())
      law.other_ranks_half_widths = score_groups(by_ranks, rank_names, law.other_ranks_mape, covered);
  }

  static HalfWidths score_groups(const std::vector<FitErrors>& groups, const std::vector<std::string>& names,
                                 std::map<std::string, double>& mape, std::map<std::string, double>& covered,
                                 WidthsWithout* without = nullptr) {
    std::vector<double> shares;
    std::vector<HalfWidths> without_each;
    const HalfWidths widths = half_widths_across(groups, shares, &without_each);
    for (size_t g = 0; g < groups.size(); ++g) {
      mape[names[g]] = mean_percentage_error(groups[g]);
      covered[names[g]] = shares[g];
    }
    for (size_t g = 0; without != nullptr && g < without_each.size(); ++g) without->emplace(names[g], without_each[g]);
    return widths;
  }

  void score_siblings(LawCalibration& law) {
    std::vector<FitErrors> groups;
    std::vector<std::string> names;
    for (const std::string& name : errors_.names()) {
      FitErrors errors = errors_.score_sibling(name);
      if (errors.empty()) continue;
      tell(fmt::format("{} from a sibling", name));
      groups.push_back(std::move(errors));
      names.push_back(name);
    }
    if (groups.empty()) return;
    std::map<std::string, double> covered;
    law.sibling_half_widths = score_groups(groups, names, law.sibling_mape, covered);
    for (size_t g = 0; g < groups.size(); ++g) {
      entries_[names[g]].sibling = summary_of(groups[g], *law.sibling_half_widths);
      entries_[names[g]].sibling.coverage90 = covered[names[g]];
    }
  }

  const LawKind& kind_;
  LawErrors errors_;
  const SystemLibrary& systems_;
  const CommunicationFitOptions& options_;
  std::map<std::string, CommunicationFitSummary::Entry> entries_;
};

bool is_left_out(const CommunicationRow& row, const SystemLibrary& systems, const CommunicationFitOptions& options) {
  for (const std::string& name : options.without) {
    if (systems.generation(row.device) == systems.generation(name)) return true;
  }
  const auto names = [](const std::vector<double>& list, double value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  return names(options.without_sizes, swept_size(row.call)) ||
         names(options.without_ranks, static_cast<double>(row.call.ranks));
}

}  // namespace

std::optional<KnownTime> small_message_of(const std::vector<const CommunicationRow*>& rows) {
  constexpr double wanted_bytes = 4096, wanted_ranks = 4;
  std::map<std::pair<double, double>, std::vector<const CommunicationRow*>> by_distance;
  for (const CommunicationRow* row : rows) {
    if (row->call.operation != "all_reduce" || row->call.bytes > 65536) continue;
    const double ranks_off = std::abs(doublings(static_cast<double>(row->call.ranks) / wanted_ranks));
    by_distance[{ranks_off, std::abs(doublings(row->call.bytes / wanted_bytes))}].push_back(row);
  }
  if (by_distance.empty()) return std::nullopt;
  const std::vector<const CommunicationRow*>& nearest = by_distance.begin()->second;
  std::vector<double> times;
  for (const CommunicationRow* row : nearest) times.push_back(row->seconds);
  return KnownTime{.call = nearest.front()->call, .seconds = quantile(times, 0.5)};
}

CommunicationFit fit_communication(const CommunicationRows& rows, const SystemLibrary& systems,
                                   const CommunicationFitOptions& options) {
  CommunicationFit result;
  for (const LawKind& kind : all_laws()) {
    Rows own;
    for (const CommunicationRow& row : rows.rows) {
      if (row.call.law == kind.name && !row.is_check_only && !is_left_out(row, systems, options)) own.push_back(&row);
    }
    if (!own.empty()) LawReport(kind, std::move(own), systems, options).run(result);
  }
  if (result.library.laws.empty())
    throw InputError({.field = "data", .value = "no row left", .expected = "measured collectives to fit"});
  return result;
}

size_t write_communication_library(const CommunicationLibrary& library, const std::filesystem::path& folder) {
  for (const auto& [name, law] : library.laws) {
    std::filesystem::create_directories(folder);
    write_file(law_calibration_path(folder, name), calibration_json(law));
  }
  for (const auto& [key, sweep] : library.sweeps) {
    std::filesystem::create_directories(folder / key.first);
    write_file(sweep_calibration_path(folder, key.first, key.second), calibration_json(sweep));
  }
  return library.laws.size() + library.sweeps.size();
}

}  // namespace foretoken
