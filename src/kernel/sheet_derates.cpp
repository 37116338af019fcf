#include "kernel/sheet_derates.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/portable_math.h"
#include "base/statistics.h"

namespace foretoken {
namespace {

// Kernels that no_device measured in the sources but that are built like others.
constexpr std::pair<std::string_view, std::string_view> relatives[] = {
    {"attention_mixed", "attention_prefill"},
    {"attention_backward", "attention_prefill"},
    {"conv", "gemm"},
    {"linattn_mamba2", "linattn_gdn"},
    {"linattn_mamba2_decode", "linattn_gdn_decode"},
    {"linattn_lightning", "linattn_gdn"},
    {"linattn_lightning_decode", "linattn_gdn_decode"}};

constexpr size_t most_rows_of_a_device = 2'000;  // of a family; more change nothing and take longer
constexpr double least_derate = 0.1, least_floor_us = 0.5, most_floor_us = 400;
constexpr double most_widening = 2.5;
constexpr double share_of_each_end = 0.95;
constexpr double least_gain = 0.001;  // of that share, for widening an end by another 5%

using DerateLogs = std::array<double, 3>;                // logarithms of seconds of the floor, and of 1/share
constexpr DerateLogs first_guess = {-12.7, 0.35, 0.35};  // 3 us, 70%

struct DerateRow {
  double measured, compute, memory, weight;
  size_t device;
};

// The constants themselves, for many rows.
struct DerateTerms {
  double floor, compute, memory;

  DerateTerms(double floor_seconds, double compute_factor, double memory_factor)
      : floor(floor_seconds), compute(compute_factor), memory(memory_factor) {}
  static DerateTerms at_once() { return {0, 0, 0}; }
  static DerateTerms never() { return {1e300, 0, 0}; }
  explicit DerateTerms(const DerateLogs& logs)
      : floor(portable_exp(logs[0])), compute(portable_exp(logs[1])), memory(portable_exp(logs[2])) {}
  double seconds(const DerateRow& row) const { return floor + row.compute * compute + row.memory * memory; }
};

DerateLogs within_limits(DerateLogs constants) {
  constants[0] = std::clamp(constants[0], portable_log(least_floor_us * 1e-6), portable_log(most_floor_us * 1e-6));
  for (size_t i = 1; i < constants.size(); ++i)
    constants[i] = std::clamp(constants[i], 0.0, -portable_log(least_derate));
  return constants;
}

// Pinball loss: its minimum is the quantile. A breath of ridge decides what the rows do not.
double pinball_loss(std::span<const DerateRow> rows, size_t left_out, const DerateLogs& constants, double quantile) {
  const DerateTerms terms(constants);
  double sum = 0, weights = 0;
  for (const DerateRow& row : rows) {
    if (row.device == left_out) continue;
    const double error = portable_log(row.measured / terms.seconds(row));
    sum += row.weight * (error > 0 ? quantile * error : (quantile - 1) * error);
    weights += row.weight;
  }
  double ridge = 0;
  for (size_t i = 0; i < constants.size(); ++i)
    ridge += (constants[i] - first_guess[i]) * (constants[i] - first_guess[i]);
  return sum / weights + 1e-4 * ridge;
}

DerateLogs fitted_quantile(std::span<const DerateRow> rows, size_t left_out, double quantile, DerateLogs from) {
  double best = pinball_loss(rows, left_out, from, quantile);
  for (double step = 0.8; step > 0.01; step *= 0.5) {
    for (bool improved = true; improved;) {
      improved = false;
      for (size_t i = 0; i < from.size(); ++i) {
        for (const double sign : {1.0, -1.0}) {
          DerateLogs moved = from;
          moved[i] += sign * step;
          moved = within_limits(moved);
          const double now = pinball_loss(rows, left_out, moved, quantile);
          if (now >= best - 1e-7) continue;
          best = now;
          from = moved;
          improved = true;
        }
      }
    }
  }
  return from;
}

struct ThreeFits {
  DerateLogs fast, middle, slow;
};

ThreeFits three_fits(std::span<const DerateRow> rows, size_t left_out) {
  ThreeFits fits{.fast = {}, .middle = fitted_quantile(rows, left_out, 0.5, first_guess), .slow = {}};
  fits.fast = fitted_quantile(rows, left_out, 0.05, fits.middle);
  fits.slow = fitted_quantile(rows, left_out, 0.95, fits.middle);
  for (size_t i = 0; i < fits.middle.size(); ++i) {
    fits.fast[i] = std::min(fits.fast[i], fits.middle[i]);
    fits.slow[i] = std::max(fits.slow[i], fits.middle[i]);
  }
  return fits;
}

// An end so many times as far away from the middle.
DerateLogs widened_end(const ThreeFits& fits, const DerateLogs& end, double factor) {
  DerateLogs wide = end;
  for (size_t i = 0; i < end.size(); ++i) wide[i] = fits.middle[i] + factor * (end[i] - fits.middle[i]);
  return within_limits(wide);
}

// Share of the device's weight between two ends.
double share_inside(std::span<const DerateRow> rows, size_t device, const DerateTerms& fast, const DerateTerms& slow) {
  double inside = 0, all = 0;
  for (const DerateRow& row : rows) {
    if (row.device != device) continue;
    all += row.weight;
    if (row.measured >= fast.seconds(row) && row.measured <= slow.seconds(row)) inside += row.weight;
  }
  return inside / all;
}

double four_digits_of(double value) {
  return std::round(value * 1e4) / 1e4;
}

SheetDerate derate_of(const DerateLogs& constants) {
  return {.floor_us = four_digits_of(portable_exp(constants[0]) * 1e6),
          .compute_share = four_digits_of(portable_exp(-constants[1])),
          .memory_share = four_digits_of(portable_exp(-constants[2]))};
}

// Equal weights for vendors, for devices of a vendor, and for decades of roofline time of a device; at most so many
// rows of each.
std::vector<DerateRow> weighted_rows(std::span<const DerateSample> samples,
                                     const std::vector<std::string_view>& devices) {
  std::vector<DerateRow> rows;
  std::map<std::string_view, std::set<std::string_view>> vendors;
  for (const DerateSample& sample : samples) vendors[sample.vendor].insert(sample.device);
  for (size_t device = 0; device < devices.size(); ++device) {
    std::vector<const DerateSample*> own;
    for (const DerateSample& sample : samples) {
      if (sample.device == devices[device]) own.push_back(&sample);
    }
    const size_t stride = (own.size() + most_rows_of_a_device - 1) / most_rows_of_a_device;
    std::map<int, double> decades;
    const auto decade = [](const DerateSample& sample) {
      const double us = std::max(sample.compute_seconds, sample.memory_seconds) * 1e6;
      return us < 1 ? 0 : us < 10 ? 1 : us < 100 ? 2 : us < 1000 ? 3 : 4;
    };
    for (size_t i = 0; i < own.size(); i += stride) decades[decade(*own[i])] += 1;
    for (size_t i = 0; i < own.size(); i += stride) {
      const DerateSample& sample = *own[i];
      rows.push_back({.measured = sample.measured_seconds,
                      .compute = sample.compute_seconds,
                      .memory = sample.memory_seconds,
                      .weight = 1 / decades[decade(sample)] / static_cast<double>(vendors[sample.vendor].size()),
                      .device = device});
    }
  }
  return rows;
}

constexpr size_t no_device = static_cast<size_t>(-1);

SheetDerate slowed(const SheetDerate& one, double factor) {
  return {.floor_us = four_digits_of(std::min(one.floor_us * factor, most_floor_us)),
          .compute_share = four_digits_of(std::clamp(one.compute_share / factor, least_derate, 1.0)),
          .memory_share = four_digits_of(std::clamp(one.memory_share / factor, least_derate, 1.0))};
}

Json to_json(const FamilyDerates& family) {
  const auto three = [&](double SheetDerate::*member) {
    Json list = Json::array();
    for (const SheetDerate* one : {&family.fast, &family.middle, &family.slow}) list.push(one->*member);
    return list;
  };
  Json json = Json::object({{"rows", family.rows},
                            {"floor_us", three(&SheetDerate::floor_us)},
                            {"compute_share", three(&SheetDerate::compute_share)},
                            {"memory_share", three(&SheetDerate::memory_share)}});
  const auto add = [&](const char* key, const std::map<std::string, double>& by_device) {
    if (by_device.empty()) return;
    Json object = Json::object();
    for (const auto& [device, percent] : by_device) object.set(device, std::round(percent * 10) / 10);
    json.set(key, std::move(object));
  };
  add("left_out_coverage", family.left_out_coverage);
  add("left_out_bias", family.left_out_bias);
  return json;
}

FamilyDerates read_derates_of(const JsonView& view) {
  view.allow_only({"rows", "floor_us", "compute_share", "memory_share", "left_out_coverage", "left_out_bias"});
  FamilyDerates family;
  family.rows = view.at("rows").number({0, 1e15});
  const auto read = [&](const char* key, double SheetDerate::*member, double least, double most) {
    const std::vector<JsonView> three = view.at(key).items();
    if (three.size() != 3) view.at(key).fail("three numbers: the fast end, the middle and the slow end");
    SheetDerate* const ends[] = {&family.fast, &family.middle, &family.slow};
    for (size_t i = 0; i < three.size(); ++i) ends[i]->*member = three[i].number({least, most});
  };
  read("floor_us", &SheetDerate::floor_us, 0, 1e6);
  read("compute_share", &SheetDerate::compute_share, 1e-6, 1);
  read("memory_share", &SheetDerate::memory_share, 1e-6, 1);
  const auto in_order = [&](double fast, double middle, double slow) { return fast <= middle && middle <= slow; };
  const bool ordered = in_order(family.fast.floor_us, family.middle.floor_us, family.slow.floor_us) &&
                       in_order(family.slow.compute_share, family.middle.compute_share, family.fast.compute_share) &&
                       in_order(family.slow.memory_share, family.middle.memory_share, family.fast.memory_share);
  if (!ordered) view.fail("the fast end first, then the middle, then the slow end");
  const auto read_devices = [&](const char* key, std::map<std::string, double>& by_device, double least, double most) {
    const std::optional<JsonView> found = view.find(key);
    if (!found) return;
    for (const auto& [device, percent] : found->members()) by_device[device] = percent.number({least, most});
  };
  read_devices("left_out_coverage", family.left_out_coverage, 0, 100);
  read_devices("left_out_bias", family.left_out_bias, -100, 1e6);
  return family;
}

}  // namespace

std::string derate_group(const KernelShape& shape) {
  std::string group(family_name(shape));
  const auto* mixer = std::get_if<LinearAttentionShape>(&shape);
  if (mixer == nullptr) return group;
  if (mixer->decode) group += "_decode";
  if (mixer->stage == LinearAttentionStage::convolution) group += "_convolution";
  return group;
}

const FamilyDerates& SheetDerates::of(std::string_view family) const {
  auto found = families.find(family);
  for (const auto& [name, relative] : relatives) {
    if (found == families.end() && name == family) found = families.find(relative);
  }
  return found == families.end() ? other : found->second;
}

Estimate SheetDerates::seconds(std::string_view family, double compute_seconds, double memory_seconds) const {
  const FamilyDerates& derates = of(family);
  return {.value = derates.middle.seconds(compute_seconds, memory_seconds),
          .low = derates.fast.seconds(compute_seconds, memory_seconds),
          .high = derates.slow.seconds(compute_seconds, memory_seconds),
          .kind = Confidence::roofline};
}

FamilyDerates fit_family_derates(std::span<const DerateSample> samples) {
  std::set<std::string_view> names;
  for (const DerateSample& sample : samples) {
    ensure(sample.measured_seconds > 0 && sample.memory_seconds + sample.compute_seconds > 0,
           "a share of the sheet needs a time and a roofline");
    names.insert(sample.device);
  }
  const std::vector<std::string_view> devices(names.begin(), names.end());
  const std::vector<DerateRow> rows = weighted_rows(samples, devices);
  ThreeFits fits = three_fits(rows, no_device);
  FamilyDerates result{.rows = static_cast<double>(samples.size())};
  if (devices.size() > 1) {
    std::vector<ThreeFits> without;
    for (size_t device = 0; device < devices.size(); ++device) without.push_back(three_fits(rows, device));
    // Each end until 95% of the rows of devices that were left out lie on its side; nothing beats the roofline.
    const auto widening_of = [&](DerateLogs ThreeFits::*end) {
      const bool is_fast = end == &ThreeFits::fast;
      const auto share_on_its_side = [&](double factor) {
        double sum = 0;
        for (size_t device = 0; device < devices.size(); ++device) {
          const DerateTerms wide(widened_end(without[device], without[device].*end, factor));
          sum += is_fast ? share_inside(rows, device, wide, DerateTerms::never())
                         : share_inside(rows, device, DerateTerms::at_once(), wide);
        }
        return sum / static_cast<double>(devices.size());
      };
      double factor = 1, share = share_on_its_side(1);
      while (share < share_of_each_end && factor < most_widening) {
        const double next = share_on_its_side(factor + 0.05);
        if (next < share + least_gain) break;
        factor += 0.05;
        share = next;
      }
      return factor;
    };
    const double faster = widening_of(&ThreeFits::fast), slower = widening_of(&ThreeFits::slow);
    fits.fast = widened_end(fits, fits.fast, faster);
    fits.slow = widened_end(fits, fits.slow, slower);
    for (size_t device = 0; device < devices.size(); ++device) {
      std::vector<double> errors;
      const DerateTerms middle(without[device].middle);
      for (const DerateRow& row : rows) {
        if (row.device != device) continue;
        errors.push_back(middle.seconds(row) / row.measured - 1);
      }
      const std::string name(devices[device]);
      result.left_out_coverage[name] =
          100 * share_inside(rows, device, DerateTerms(widened_end(without[device], without[device].fast, faster)),
                             DerateTerms(widened_end(without[device], without[device].slow, slower)));
      result.left_out_bias[name] = 100 * quantile(std::move(errors), 0.5);
    }
  }
  result.fast = derate_of(fits.fast);
  result.middle = derate_of(fits.middle);
  result.slow = derate_of(fits.slow);
  return result;
}

void complete_derates(SheetDerates& derates) {
  // Of families that several devices were measured for: the middle one of their factors between devices.
  std::vector<double> doubts;
  for (const auto& [name, family] : derates.families) {
    std::vector<double> biases;
    for (const auto& [device, percent] : family.left_out_bias)
      biases.push_back(std::abs(portable_log(1 + percent / 100)));
    if (!biases.empty()) doubts.push_back(*std::max_element(biases.begin(), biases.end()));
  }
  if (!doubts.empty()) {
    const double factor = portable_exp(quantile(std::move(doubts), 0.5));
    for (auto& [name, family] : derates.families) {
      if (!family.left_out_bias.empty()) continue;
      family.fast = slowed(family.fast, 1 / factor);
      family.slow = slowed(family.slow, factor);
    }
  }
  const auto middle_of = [&](SheetDerate FamilyDerates::*end, double q) {
    std::vector<double> floors, compute, memory;
    for (const auto& [name, family] : derates.families) {
      floors.push_back((family.*end).floor_us);
      compute.push_back((family.*end).compute_share);
      memory.push_back((family.*end).memory_share);
    }
    return SheetDerate{.floor_us = four_digits_of(quantile(std::move(floors), q)),
                       .compute_share = four_digits_of(quantile(std::move(compute), 1 - q)),
                       .memory_share = four_digits_of(quantile(std::move(memory), 1 - q))};
  };
  if (derates.families.empty()) return;
  derates.other = {.fast = middle_of(&FamilyDerates::fast, 0.15),
                   .middle = middle_of(&FamilyDerates::middle, 0.5),
                   .slow = middle_of(&FamilyDerates::slow, 0.85)};
}

SheetDerates read_sheet_derates(const std::filesystem::path& path) {
  const Json document = read_json_file(path);
  const JsonView view(document, path.string());
  view.allow_only({"about", "source", "fitted_on", "devices", "families", "other"});
  SheetDerates derates;
  derates.source = view.at("source").string();
  derates.fitted_on = view.at("fitted_on").string();
  for (const JsonView& device : view.at("devices").items()) derates.devices.push_back(device.string());
  for (const auto& [name, family] : view.at("families").members())
    derates.families.emplace(name, read_derates_of(family));
  derates.other = read_derates_of(view.at("other"));
  return derates;
}

std::string sheet_derates_json(const SheetDerates& derates) {
  Json devices = Json::array(), families = Json::object();
  for (const std::string& device : derates.devices) devices.push(device);
  for (const auto& [name, family] : derates.families) families.set(name, to_json(family));
  return Json::object(
             {{"about",
               "What measured kernels reach of a spec sheet, by family: time = floor_us + compute / compute_share + "
               "memory / memory_share, with the compute and memory times of the roofline. Three numbers each: the fast "
               "end of the 90% interval, the middle, the slow end. `other` holds for families without measurements. "
               "left_out_coverage and left_out_bias: % of a device's rows inside, and median % of error, with "
               "constants fitted without that device."},
              {"source", derates.source},
              {"fitted_on", derates.fitted_on},
              {"devices", std::move(devices)},
              {"other", to_json(derates.other)},
              {"families", std::move(families)}})
             .dump() +
         "\n";
}

}  // namespace foretoken
