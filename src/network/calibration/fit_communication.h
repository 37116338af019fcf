// Measured communication -> calibrations of every law and system there are rows for.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "network/calibration/communication_predictor.h"
#include "network/calibration/communication_rows.h"

namespace foretoken {

struct CommunicationFitOptions {
  std::string source, date;
  std::vector<std::string> without;   // systems to leave out, with their whole generation
  std::vector<double> without_sizes;  // bytes or tokens to leave out
  std::vector<double> without_ranks;  // numbers of ranks to leave out
  std::function<void(const std::string&)> progress = {};
};

// How far off a law's tiers are on rows that the fit behind each figure has not seen.
struct CommunicationFitSummary {
  struct Entry {
    std::string law, system;
    size_t rows = 0;
    ErrorSummary held_out;  // own sweep, every fourth size held out in turn
    ErrorSummary sibling;   // the system held out, a sibling's sweep
    ErrorSummary withheld;  // its generation held out
    ErrorSummary told;      // the same, with one small-message latency given
  };
  std::vector<Entry> entries;  // by law and system
};

struct CommunicationFit {
  CommunicationLibrary library;
  CommunicationFitSummary summary;
};

// InputError when nothing is left to fit.
CommunicationFit fit_communication(const CommunicationRows& rows, const SystemLibrary& systems,
                                   const CommunicationFitOptions& options);

// <folder>/<law>.json, <folder>/<system>/<law>.json.gz. Returns the number of files.
size_t write_communication_library(const CommunicationLibrary& library, const std::filesystem::path& folder);

// The latency that stands for "one small message": the all-reduce of 4 KiB among four devices, or the nearest to that
// which was measured; nothing without a small all-reduce.
std::optional<KnownTime> small_message_of(const std::vector<const CommunicationRow*>& rows);

}  // namespace foretoken
