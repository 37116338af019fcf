#include "network/calibration/communication_calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/kinds.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

constexpr size_t most_points = 10'000;
constexpr Range<double> any_log{.least = -60, .most = 60};

Json numbers(const std::vector<double>& values, double digits) {
  Json list = Json::array();
  for (const double value : values) list.push(std::round(value * digits) / digits);
  return list;
}

std::vector<double> numbers_of(const JsonView& view, size_t most) {
  std::vector<double> values;
  for (const JsonView& item : view.items()) values.push_back(item.number(any_log));
  if (values.size() > most) view.fail(fmt::format("at most {} numbers", most));
  return values;
}

// Sizes to a thousandth of a doubling, logarithms to a hundredth of a percent.
Json curve_json(const Curve& curve) {
  return Json::object({{"x", numbers(curve.x, 1e3)}, {"y", numbers(curve.y, 1e4)}});
}

Curve curve_of(const JsonView& view) {
  view.allow_only({"x", "y"});
  Curve curve{.x = numbers_of(view.at("x"), most_points), .y = numbers_of(view.at("y"), most_points)};
  if (curve.x.empty() || curve.x.size() != curve.y.size()) view.fail("as many y as x, at least one");
  if (std::adjacent_find(curve.x.begin(), curve.x.end(), std::greater_equal<>()) != curve.x.end())
    view.at("x").fail("increasing numbers");
  return curve;
}

const LawKind& law_of(const JsonView& view) {
  return kind_in(view, all_laws());
}

std::vector<double> offsets_of(const JsonView& view, size_t count) {
  std::vector<double> values = numbers_of(view, count);
  if (values.size() != count) view.fail(fmt::format("{} numbers, one per constant", count));
  return values;
}

// The file's own check: what one curve says, as it was when the file was written, and a digest of the rest.
constexpr double check_at = 12.5;
double check_value(const LawCalibration& calibration) {
  if (calibration.curves.empty() || calibration.curves.begin()->second.empty()) return 0;
  return linear_value(calibration.curves.begin()->second.begin()->second, check_at, 1);
}
double check_value(const SweepCalibration& calibration) {
  if (calibration.series.empty()) return 0;
  const SweepSeries& series = calibration.series.begin()->second;
  const double own = series.variants.empty() ? 0 : smooth_value(series.variants.begin()->second, check_at);
  return own + smooth_value(series.common, check_at);
}

template <class Calibration>
std::string with_check(Json file, const Calibration& calibration) {
  file.set("self_check", Json::object({{"at", check_at},
                                       {"curve", std::round(check_value(calibration) * 1e3) / 1e3},
                                       {"digest", digest_of(file)}}));
  return file.dump(1) + "\n";
}

template <class Calibration>
void verify(const JsonView& view, const Calibration& calibration) {
  const JsonView expected = view.at("self_check").at("curve");
  const double found = check_value(calibration);
  if (!(std::abs(found - expected.number()) < 2e-3))
    expected.fail(fmt::format("{:.4f}, which the first curve says: the file is damaged", found));
  verify_digest(view);
}

LawCalibration law_calibration_from(const JsonView& view) {
  check_calibration_header(view, "communication law");
  LawCalibration result;
  const LawKind& kind = law_of(view.at("law"));
  result.law = kind.name;
  result.source = view.at("source").string();
  result.fitted_on = view.at("fitted_on").string();
  result.systems = texts_of(view.at("systems"));
  result.withheld_mape = percentages_of(view, "withheld_mape");
  result.withheld_coverage = percentages_of(view, "withheld_coverage");
  result.told_mape = percentages_of(view, "told_mape");
  result.told_coverage = percentages_of(view, "told_coverage");
  result.sibling_mape = percentages_of(view, "sibling_mape");
  result.half_widths = half_widths_of(view.at("half_widths"));
  if (const auto widths = view.find("told_half_widths")) result.told_half_widths = half_widths_of(*widths);
  if (const auto widths = view.find("sibling_half_widths")) result.sibling_half_widths = half_widths_of(*widths);
  if (const auto widths = view.find("other_ranks_half_widths"))
    result.other_ranks_half_widths = half_widths_of(*widths);
  result.other_ranks_mape = percentages_of(view, "other_ranks_mape");
  result.constants = texts_of(view.at("constants"));
  std::vector<std::string> expected;
  for (const LawConstant& constant : kind.law->constants()) expected.emplace_back(constant.name);
  if (result.constants != expected) view.at("constants").fail(fmt::format("{}", fmt::join(expected, ", ")));
  for (const auto& [name, offsets] : view.at("effects").members())
    result.effects[name] = offsets_of(offsets, expected.size());
  if (!result.effects.contains("common")) view.at("effects").fail("an effect `common`");
  for (const JsonView& item : view.at("curves").items()) {
    item.allow_only({"name", "ranks", "curve"});
    result.curves[item.at("name").string()][item.at("ranks").integer({1, 1'000'000})] = curve_of(item.at("curve"));
  }
  verify(view, result);
  return result;
}

SweepCalibration sweep_calibration_from(const JsonView& view) {
  check_calibration_header(view, "communication sweep");
  SweepCalibration result;
  result.law = law_of(view.at("law")).name;
  result.system = view.at("system").string();
  result.source = view.at("source").string();
  result.fitted_on = view.at("fitted_on").string();
  result.rows = static_cast<size_t>(view.at("rows").integer({.least = 1}));
  result.held_out_mape = view.at("held_out_mape").number({.least = 0});
  result.held_out_coverage = view.at("held_out_coverage").number({.least = 0, .most = 100});
  result.half_widths = half_widths_of(view.at("half_widths"));
  for (const JsonView& item : view.at("series").items()) {
    item.allow_only({"name", "ranks", "common", "variants"});
    SweepSeries& series = result.series[{item.at("name").string(), item.at("ranks").integer({1, 1'000'000})}];
    if (const auto common = item.find("common")) series.common = curve_of(*common);
    for (const auto& [name, curve] : item.at("variants").members()) series.variants[name] = curve_of(curve);
  }
  verify(view, result);
  return result;
}

// "vllm 0.5.10 half" -> {"vllm half", 0.005010}: words, and the version as one number.
struct Version {
  std::string words;
  std::optional<double> number;
};

Version version_of(std::string_view variant) {
  Version version;
  for (size_t start = 0; start < variant.size();) {
    const size_t end = std::min(variant.find(' ', start), variant.size());
    const std::string word(variant.substr(start, end - start));
    start = end + 1;
    if (word.empty()) continue;
    if (word.front() < '0' || word.front() > '9') {
      version.words += version.words.empty() ? word : " " + word;
      continue;
    }
    double unit = 1, run = 0, number = 0;
    for (const char c : word + ".") {
      if (c >= '0' && c <= '9') {
        run = 10 * run + (c - '0');
      } else {
        number += unit * run;
        unit /= 1000;
        run = 0;
      }
    }
    version.number = number;
  }
  return version;
}

// The one asked for, or any version of it where none was asked for.
bool is_same_variant(std::string_view asked, std::string_view found) {
  if (asked == found) return true;
  const Version version = version_of(asked);
  return !version.number && version.words == version_of(found).words;
}

Leftover series_leftover(const SweepSeries& series, const CommunicationCall& call, bool at_swept_ranks) {
  const double x = doublings(swept_size(call));
  auto own = series.variants.find(call.variant);
  if (own == series.variants.end()) {
    std::vector<std::string> names;
    for (const auto& [name, curve] : series.variants) names.push_back(name);
    own = series.variants.find(nearest_variant(call.variant, names));
  }
  const bool has_own = own != series.variants.end();
  double log_factor = smooth_value(series.common, x);
  if (has_own) log_factor += smooth_value(own->second, x);
  const Curve* walked = !series.common.x.empty() ? &series.common : has_own ? &own->second : nullptr;
  const bool within = walked != nullptr && x >= walked->x.front() - 1e-3 && x <= walked->x.back() + 1e-3;
  return {.log_factor = log_factor,
          .inside = at_swept_ranks && within && (!has_own || is_same_variant(call.variant, own->first)),
          .at_swept_ranks = at_swept_ranks};
}

}  // namespace

std::vector<std::string> effects_of(std::string_view operation, std::string_view system) {
  std::vector<std::string> names = {"common", fmt::format("operation {}", operation)};
  if (!system.empty()) {
    names.push_back(fmt::format("system {}", system));
    names.push_back(fmt::format("system {} operation {}", system, operation));
  }
  return names;
}

std::vector<double> law_constants(const CommunicationLaw& law, const LawCalibration& calibration,
                                  std::string_view operation, std::string_view system) {
  const std::span<const LawConstant> constants = law.constants();
  std::vector<double> values(constants.size(), 0.0);
  for (const std::string& name : effects_of(operation, system)) {
    const auto found = calibration.effects.find(name);
    if (found == calibration.effects.end()) continue;
    for (size_t k = 0; k < values.size(); ++k) values[k] += found->second[k];
  }
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = std::clamp(portable_exp(values[k]), constants[k].least, constants[k].most);
  return values;
}

std::string nearest_variant(std::string_view variant, std::span<const std::string> known) {
  const Version wanted = version_of(variant);
  std::string_view nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : known) {
    if (name == variant) return name;
    const Version version = version_of(name);
    constexpr double other_words = 1e9, newest = 1e6, newer = 1e-12;
    const double number = version.number.value_or(0);
    double distance = wanted.number ? std::abs(number - *wanted.number) : newest - number;
    if (version.words != wanted.words) distance += other_words;
    if (wanted.number && number > *wanted.number) distance += newer;
    if (distance < least) least = distance, nearest = name;
  }
  return std::string(nearest);
}

std::optional<Leftover> leftover_of(const SweepCalibration& sweep, const CommunicationCall& call) {
  const auto has_series = [&](const std::string& name) {
    const auto found = sweep.series.lower_bound({name, 0});
    return found != sweep.series.end() && found->first.first == name;
  };
  // A system whose kernel does not change with the size has one series of it.
  const std::string name = has_series(series_of(call)) ? series_of(call) : series_without_shots(call);
  const auto at_or_above = sweep.series.lower_bound({name, call.ranks});
  const bool has_above = at_or_above != sweep.series.end() && at_or_above->first.first == name;
  if (has_above && at_or_above->first.second == call.ranks) return series_leftover(at_or_above->second, call, true);
  const bool has_below = at_or_above != sweep.series.begin() && std::prev(at_or_above)->first.first == name;
  if (!has_above && !has_below) return std::nullopt;
  if (!has_below) return series_leftover(at_or_above->second, call, false);
  const auto& [key_below, below] = *std::prev(at_or_above);
  if (!has_above) return series_leftover(below, call, false);
  const auto ranks_below = static_cast<double>(key_below.second);
  const double share = doublings(static_cast<double>(call.ranks) / ranks_below) /
                       doublings(static_cast<double>(at_or_above->first.second) / ranks_below);
  return Leftover{.log_factor = (1 - share) * series_leftover(below, call, false).log_factor +
                                share * series_leftover(at_or_above->second, call, false).log_factor};
}

std::string calibration_json(const LawCalibration& calibration) {
  Json effects = Json::object();
  for (const auto& [name, offsets] : calibration.effects) effects.set(name, numbers(offsets, 1e6));
  Json curves = Json::array();
  for (const auto& [name, by_ranks] : calibration.curves) {
    for (const auto& [ranks, curve] : by_ranks)
      curves.push(Json::object({{"name", name}, {"ranks", ranks}, {"curve", curve_json(curve)}}));
  }
  Json file = calibration_header("communication law");
  file.set("law", calibration.law)
      .set("source", calibration.source)
      .set("fitted_on", calibration.fitted_on)
      .set("systems", list_of(calibration.systems))
      .set("withheld_mape", percentages(calibration.withheld_mape))
      .set("withheld_coverage", percentages(calibration.withheld_coverage))
      .set("told_mape", percentages(calibration.told_mape))
      .set("told_coverage", percentages(calibration.told_coverage))
      .set("sibling_mape", percentages(calibration.sibling_mape))
      .set("half_widths", half_widths_json(calibration.half_widths));
  if (calibration.told_half_widths) file.set("told_half_widths", half_widths_json(*calibration.told_half_widths));
  if (calibration.sibling_half_widths)
    file.set("sibling_half_widths", half_widths_json(*calibration.sibling_half_widths));
  if (calibration.other_ranks_half_widths) {
    file.set("other_ranks_half_widths", half_widths_json(*calibration.other_ranks_half_widths))
        .set("other_ranks_mape", percentages(calibration.other_ranks_mape));
  }
  file.set("constants", list_of(calibration.constants))
      .set("effects", std::move(effects))
      .set("curves", std::move(curves));
  return with_check(std::move(file), calibration);
}

std::string calibration_json(const SweepCalibration& calibration) {
  Json list = Json::array();
  for (const auto& [key, series] : calibration.series) {
    Json variants = Json::object();
    for (const auto& [name, curve] : series.variants) variants.set(name, curve_json(curve));
    Json item = Json::object({{"name", key.first}, {"ranks", key.second}});
    if (!series.common.x.empty()) item.set("common", curve_json(series.common));
    item.set("variants", std::move(variants));
    list.push(std::move(item));
  }
  Json file = calibration_header("communication sweep");
  file.set("law", calibration.law)
      .set("system", calibration.system)
      .set("source", calibration.source)
      .set("fitted_on", calibration.fitted_on)
      .set("rows", calibration.rows)
      .set("held_out_mape", rounded_percent(calibration.held_out_mape))
      .set("held_out_coverage", rounded_percent(calibration.held_out_coverage))
      .set("half_widths", half_widths_json(calibration.half_widths))
      .set("series", std::move(list));
  return with_check(std::move(file), calibration);
}

LawCalibration parse_law_calibration(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  return law_calibration_from(JsonView(document, source));
}

SweepCalibration parse_sweep_calibration(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  return sweep_calibration_from(JsonView(document, source));
}

LawCalibration read_law_calibration(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  return law_calibration_from(JsonView(document, path.string()));
}

SweepCalibration read_sweep_calibration(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  return sweep_calibration_from(JsonView(document, path.string()));
}

std::filesystem::path law_calibration_path(const std::filesystem::path& folder, std::string_view law) {
  return folder / fmt::format("{}.json", law);
}

std::filesystem::path sweep_calibration_path(const std::filesystem::path& folder, std::string_view system,
                                             std::string_view law) {
  return folder / system / fmt::format("{}.json.gz", law);
}

}  // namespace foretoken
