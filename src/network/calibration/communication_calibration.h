// What was learned about communication: a law's constants and curves, which port between systems, and sweeps of one
// system. Versioned JSON with where it came from and how far off it was; verified when it is read.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/calibration_parts.h"
#include "network/calibration/law.h"

namespace foretoken {

// The cross-system tier of a law.
struct LawCalibration {
  std::string law;
  std::string source, fitted_on;
  std::vector<std::string> systems;
  std::vector<std::string> constants;  // names, in the order of the offsets
  std::map<std::string, std::vector<double>, std::less<>>
      effects;  // log offsets: "common", "operation X", "system Y", ...
  LawCurves curves;
  HalfWidths half_widths;                         // of systems whose generation was withheld
  std::optional<HalfWidths> told_half_widths;     // the same with one small-message latency given
  std::optional<HalfWidths> sibling_half_widths;  // of systems predicted with a sweep of their generation's other one
  std::optional<HalfWidths> other_ranks_half_widths;  // of numbers of ranks that the system's own sweep lacks
  std::map<std::string, double> other_ranks_mape;     // percent, by number of ranks held out
  std::map<std::string, double> withheld_mape, withheld_coverage, told_mape, told_coverage;  // percent, by generation
  std::map<std::string, double> sibling_mape;                                                // percent, by system
};

// What a system's measurements leave over of the law: ln(measured / law) over log2(size).
struct SweepSeries {
  Curve common;                                        // of all variants together; empty where each has its own
  std::map<std::string, Curve, std::less<>> variants;  // on top of that
};

// The measured tier of a law on one system.
struct SweepCalibration {
  std::string law, system;
  std::string source, fitted_on;
  size_t rows = 0;
  std::map<std::pair<std::string, int64_t>, SweepSeries> series;  // by series_of() and ranks
  HalfWidths half_widths;                                         // of sizes held out of the fit
  double held_out_mape = 0, held_out_coverage = 0;                // percent
};

// The effects whose offsets add up to a call's log constants. `system` empty: one that nobody measured.
std::vector<std::string> effects_of(std::string_view operation, std::string_view system);
std::vector<double> law_constants(const CommunicationLaw& law, const LawCalibration& calibration,
                                  std::string_view operation, std::string_view system);

// ln(measured / law) of a call; nothing where its series was not swept. At other numbers of ranks: between the swept
// ones, beyond them the nearest. Of an unknown version: the nearest one with the same number format.
struct Leftover {
  double log_factor = 0;
  bool inside = false;  // ranks, variant and size lie within the sweep
  bool at_swept_ranks = false;
};
std::optional<Leftover> leftover_of(const SweepCalibration& sweep, const CommunicationCall& call);

// The text of `known` that is nearest: itself, else the nearest version among those with the same words (library,
// number format), else among all. Empty when nothing is known.
std::string nearest_variant(std::string_view variant, std::span<const std::string> known);

std::string calibration_json(const LawCalibration& calibration);
std::string calibration_json(const SweepCalibration& calibration);
// InputError for a newer version, missing keys, unknown laws, or contents that fail the file's own check.
LawCalibration parse_law_calibration(std::string_view text, const std::string& source);
SweepCalibration parse_sweep_calibration(std::string_view text, const std::string& source);
LawCalibration read_law_calibration(const std::filesystem::path& path);
SweepCalibration read_sweep_calibration(const std::filesystem::path& path);

// <folder>/<law>.json and <folder>/<system>/<law>.json.gz.
std::filesystem::path law_calibration_path(const std::filesystem::path& folder, std::string_view law);
std::filesystem::path sweep_calibration_path(const std::filesystem::path& folder, std::string_view system,
                                             std::string_view law);

}  // namespace foretoken
