// Priors as JSON: data/edge/priors/<space>.json.
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/rounding.h"
#include "kernel/fewshot/latency_prior.h"

namespace foretoken {
namespace {

constexpr int prior_version = 1;
constexpr double largest_number = 1e12;
constexpr std::string_view centre_kind_names[centre_kinds] = {"average", "device", "cost"};

// Five digits say more than the fit knows, and keep the files small.
double five_digits(double value) {
  return rounded_to_digits(value, 5);
}

Json numbers_json(std::span<const double> values) {
  Json list = Json::array();
  for (const double value : values) list.push(five_digits(value));
  return list;
}

std::vector<double> read_numbers(const JsonView& view, size_t count) {
  const std::vector<JsonView> items = view.items();
  if (items.size() != count) view.fail(fmt::format("{} numbers", count));
  std::vector<double> result;
  for (const JsonView& item : items) result.push_back(item.number({-largest_number, largest_number}));
  return result;
}

// Odds are above zero and add up to one.
template <size_t count>
std::array<double, count> read_odds(const JsonView& view) {
  const std::vector<double> values = read_numbers(view, count);
  std::array<double, count> odds{};
  for (size_t i = 0; i < count; ++i) {
    if (!(values[i] > 0 && values[i] <= 1)) view.fail("odds above 0 and up to 1");
    odds[i] = values[i];
  }
  return odds;
}

// The names of the features in one number: weights mean nothing for other features.
std::string features_digest(const ArchitectureSpace& space) {
  std::string names;
  for (const std::string& name : space.feature_names()) names += name + "\n";
  return fmt::format("{:016x}", fnv1a(names));
}

// Architectures whose latency on each known device a reader must find again.
std::vector<std::vector<double>> check_values(const LatencyPrior& prior) {
  constexpr size_t checks = 3;
  const PriorBasis basis(prior);
  RandomStream stream(1, "prior check");
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < checks; ++i) {
    values.push_back(basis.project(drawn_features(*prior.space, prior.space->draw(stream))).centres);
    values.back().resize(1 + prior.devices.size());  // the average and the devices; costs are not in the file
  }
  return values;
}

Json odds_json(const PriorOdds& odds) {
  Json centre = Json::object();
  for (size_t kind = 0; kind < centre_kinds; ++kind) {
    centre.set(std::string(centre_kind_names[kind]), numbers_json(odds.centre[kind]));
  }
  return Json::object(
      {{"noise", numbers_json(odds.noise)}, {"residual", numbers_json(odds.residual)}, {"centre", std::move(centre)}});
}

PriorOdds parse_odds(const JsonView& view) {
  view.allow_only({"noise", "residual", "centre"});
  PriorOdds odds{.noise = read_odds<noise_levels.size()>(view.at("noise")),
                 .residual = read_odds<residual_levels.size()>(view.at("residual"))};
  for (size_t kind = 0; kind < centre_kinds; ++kind) {
    odds.centre[kind] = read_odds<spread_levels.size()>(view.at("centre").at(centre_kind_names[kind]));
  }
  return odds;
}

KnownDevice read_known_device(const JsonView& view, size_t features) {
  view.allow_only({"name", "family", "rows", "failed_rows", "sum_of_blocks", "noise", "weights"});
  constexpr Range<int64_t> counts = {.least = 0, .most = 1'000'000'000};
  return {.name = view.at("name").string(),
          .family = view.at("family").string(),
          .weights = read_numbers(view.at("weights"), features),
          .noise = view.at("noise").number({0, 100}),
          .rows = static_cast<size_t>(view.at("rows").integer(counts)),
          .failed_rows = static_cast<size_t>(view.at("failed_rows").integer(counts)),
          .sum_of_blocks = view.at("sum_of_blocks").boolean()};
}

// A file that was edited or damaged gives other values than its writer had.
void verify_checks(const LatencyPrior& prior, const JsonView& view) {
  constexpr double tolerance = 1e-4;
  const std::vector<std::vector<double>> expected = check_values(prior);
  const std::vector<JsonView> rows = view.items();
  if (rows.size() != expected.size()) view.fail(fmt::format("{} checks", expected.size()));
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<double> values = read_numbers(rows[r], expected[r].size());
    for (size_t v = 0; v < values.size(); ++v) {
      if (std::abs(values[v] - expected[r][v]) > tolerance * (1 + std::abs(expected[r][v])))
        rows[r].fail(fmt::format("{:.5g} at {}: the file does not reproduce its own check", expected[r][v], v));
    }
  }
}

}  // namespace

std::string latency_prior_json(const LatencyPrior& prior) {
  LatencyPrior stored = prior;
  for (double& value : stored.feature_means) value = five_digits(value);
  for (double& value : stored.feature_scales) value = five_digits(value);
  Json devices = Json::array();
  for (KnownDevice& known : stored.devices) {
    for (double& weight : known.weights) weight = five_digits(weight);
    devices.push(Json::object({{"name", known.name},
                               {"family", known.family},
                               {"rows", known.rows},
                               {"failed_rows", known.failed_rows},
                               {"sum_of_blocks", known.sum_of_blocks},
                               {"noise", five_digits(known.noise)},
                               {"weights", numbers_json(known.weights)}}));
  }
  Json checks = Json::array();
  for (const std::vector<double>& values : check_values(stored)) checks.push(numbers_json(values));
  return Json::object({{"version", prior_version},
                       {"about", "Latency of architectures on known devices; docs/edge_adaptation.md has the formula."},
                       {"space", prior.space->name},
                       {"features", features_digest(*prior.space)},
                       {"source", prior.source},
                       {"fitted_on", prior.fitted_on},
                       {"interval_factor", five_digits(prior.interval_factor)},
                       {"odds", odds_json(prior.odds)},
                       {"feature_means", numbers_json(stored.feature_means)},
                       {"feature_scales", numbers_json(stored.feature_scales)},
                       {"devices", std::move(devices)},
                       {"checks", std::move(checks)}})
             .dump(0) +
         "\n";
}

LatencyPrior parse_latency_prior(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  const JsonView view(document, source);
  if (view.at("version").integer({.least = 1, .most = 1'000'000}) > prior_version)
    view.at("version").fail(fmt::format("up to {}: a newer foretoken wrote this file", prior_version));
  view.allow_only({"version", "about", "space", "features", "source", "fitted_on", "interval_factor", "odds",
                   "feature_means", "feature_scales", "devices", "checks"});
  LatencyPrior prior;
  for (const ArchitectureSpace& space : architecture_spaces()) {
    if (space.name == view.at("space").string()) prior.space = &space;
  }
  if (prior.space == nullptr) view.at("space").fail("a space of architectures that this foretoken has");
  if (view.at("features").string() != features_digest(*prior.space))
    view.at("features").fail("the features of this foretoken: fit the prior anew");
  const size_t features = prior.space->feature_names().size();
  prior.source = view.at("source").string();
  prior.fitted_on = view.at("fitted_on").string();
  prior.interval_factor = view.at("interval_factor").number({0.1, 100});
  prior.odds = parse_odds(view.at("odds"));
  prior.feature_means = read_numbers(view.at("feature_means"), features);
  prior.feature_scales = read_numbers(view.at("feature_scales"), features);
  for (const JsonView& device : view.at("devices").items())
    prior.devices.push_back(read_known_device(device, features));
  if (prior.devices.empty()) view.at("devices").fail("at least one device");
  verify_checks(prior, view.at("checks"));
  return prior;
}

LatencyPrior read_latency_prior(const std::filesystem::path& path) {
  constexpr size_t largest = size_t{16} << 20;
  return parse_latency_prior(read_file(path, largest), path.string());
}

}  // namespace foretoken
