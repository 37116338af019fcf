// What all calibration files have in common: header, digest, intervals, percentages.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

inline constexpr int calibration_version = 1;

// Half-width of the 90% interval as a logarithm, by predicted time: small kernels scatter more.
struct HalfWidths {
  static constexpr double of_no_rows = 1;  // a factor of e: where nothing was measured
  static constexpr double edges_us[] = {0, 10, 20, 100, 1000};
  double by_time[std::size(edges_us)] = {};
  static size_t bin(double seconds);
  double at(double seconds) const { return by_time[bin(seconds)]; }
};

Json half_widths_json(const HalfWidths& widths);
HalfWidths half_widths_of(const JsonView& view);

// `kind` and the version; the check is an InputError for another kind or a newer version.
Json calibration_header(const char* kind);
void check_calibration_header(const JsonView& view, std::string_view kind);

// FNV-1a of everything but `self_check`.
std::string digest_of(const Json& file);
// InputError when `self_check.digest` is another one. A file without a digest is taken at its word.
void verify_digest(const JsonView& file);

double rounded_percent(double percent);
Json percentages(const std::map<std::string, double>& values);
// Nothing where the key is absent: older files do not have them all.
std::map<std::string, double> percentages_of(const JsonView& view, const char* key);

Json list_of(const std::vector<std::string>& texts);
std::vector<std::string> texts_of(const JsonView& view);

}  // namespace foretoken
