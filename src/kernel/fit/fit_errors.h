// How far off predictions of unseen rows are, and the intervals that follow.
#pragma once

#include <vector>

#include "kernel/calibration.h"

namespace foretoken {

// One prediction of a row that the fit has not seen.
struct FitError {
  double predicted = 0;  // seconds
  double log_error = 0;  // log(measured / predicted)
  // Of a kernel that the fit has never seen: what its interval has in quadrature beside the usual width.
  double unseen_half_width = 0;
  double measured() const;
};
using FitErrors = std::vector<FitError>;

// Percent; of the rows measured to take at least `least_seconds`. No rows: 0.
double mean_percentage_error(const FitErrors& errors, double least_seconds = 0);

// Where launch overhead no longer dominates; errors of such rows are reported on their own.
inline constexpr double long_kernel_seconds = 20e-6;

// The 90% quantile of |log error| by predicted time. A bin with few rows takes the quantile over all.
HalfWidths half_widths_from(const FitErrors& errors);
HalfWidths scaled(const HalfWidths& widths, double factor);

// Share of the measurements inside the intervals, in percent.
double coverage(const FitErrors& errors, const HalfWidths& widths);

// Intervals for a member of a new group (a GPU generation), from the errors of groups that were each unseen. Rows of a
// group are wrong together, so the quantile over all rows is too sure of a group to come: it is widened until, on
// average over groups, intervals made without a group hold nine tenths of it, and four fifths of each unless that takes
// more than twice the width. `coverage_of` gets the share held of each group by the intervals that were made without
// it, `without_each` those intervals (none for a single group).
HalfWidths half_widths_across(const std::vector<FitErrors>& groups, std::vector<double>& coverage_of,
                              std::vector<HalfWidths>* without_each = nullptr);

}  // namespace foretoken
