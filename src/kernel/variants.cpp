#include "kernel/variants.h"

#include <algorithm>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/forms/call.h"
#include "kernel/forms/list.h"

namespace foretoken {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view layout_in_name = "_heads_first";

// One call for every combination of the family's choices, sizes as in its examples: all number formats it can have.
std::vector<FormCall> calls_of(const KernelFamily& family) {
  constexpr size_t most_combinations = 20'000;
  std::vector<std::vector<std::pair<std::string, std::string>>> combinations = {{}};
  for (const KernelParameter& parameter : family.parameters) {
    std::vector<std::string> texts = {parameter.fallback.value_or(parameter.example)};
    if (parameter.kind == ParameterKind::choice && combinations.size() * parameter.choices.size() <= most_combinations)
      texts = parameter.choices;
    std::vector<std::vector<std::pair<std::string, std::string>>> longer;
    for (const auto& combination : combinations) {
      for (const std::string& text : texts) {
        longer.push_back(combination);
        longer.back().emplace_back(parameter.name, text);
      }
    }
    combinations = std::move(longer);
  }
  std::vector<FormCall> calls;
  for (const auto& combination : combinations) {
    try {
      calls.push_back({.shape = shape_from_texts(family, combination), .variant = {}});
    } catch (const InputError&) {
      continue;  // choices that do not stand together
    }
  }
  return calls;
}

}  // namespace

std::vector<DeviceCalibration> all_sweeps(const fs::path& calibrations, std::string_view form) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(calibrations, error), end; !error && entry != end; entry.increment(error)) {
    folders.push_back(entry->path());
  }
  std::sort(folders.begin(), folders.end());
  std::vector<DeviceCalibration> sweeps;
  for (const fs::path& folder : folders) {
    const fs::path file = device_calibration_path(calibrations, folder.filename().string(), form);
    if (fs::is_regular_file(file, error)) sweeps.push_back(read_device_calibration(file));
  }
  return sweeps;
}

bool has_formats(std::string_view group, const FormCall& call) {
  const std::string formats = call_formats(call);
  return group == formats || group.ends_with(" " + formats);
}

std::string group_variant(std::string_view group, const FormCall& call) {
  const std::string ending = " " + call_formats(call);
  return std::string(group.ends_with(ending) ? group.substr(0, group.size() - ending.size()) : std::string_view());
}

bool names_layout(std::string_view variant) {
  return variant.find(layout_in_name) != std::string_view::npos;
}

std::string without_layout(std::string_view variant) {
  std::string name(variant);
  if (const size_t at = name.find(layout_in_name); at != std::string::npos) name.erase(at, layout_in_name.size());
  return name;
}

std::vector<std::string> known_variants(const KernelFamily& family, const fs::path& calibrations) {
  const FormKind* kind = form_kind_of(family.name);
  if (kind == nullptr) return {};
  std::set<std::string> names;
  for (const std::string_view name : kind->make(Caches::cold)->known_variants()) names.emplace(name);
  for (const KernelParameter& parameter : family.parameters) {
    if (parameter.name == "kernel") names.insert(parameter.choices.begin(), parameter.choices.end());
  }
  names.erase("any");
  // What a framework runs, timed with events; fp32 forms tell it from the kernel alone.
  for (const FormKind& other : form_kinds()) {
    const bool serves = std::find(other.families.begin(), other.families.end(), family.name) != other.families.end();
    if (other.fp32 && serves) names.insert("eager");
  }
  std::set<std::string> formats;
  std::vector<FormCall> calls;
  for (FormCall& call : calls_of(family)) {
    if (formats.insert(call_formats(call)).second) calls.push_back(std::move(call));
  }
  for (const FormKind& other : form_kinds()) {
    if (std::find(other.families.begin(), other.families.end(), family.name) == other.families.end()) continue;
    // A stack's kernels are known by the names its form claims.
    names.insert(other.variants.begin(), other.variants.end());
    if (!other.variants.empty() || other.fp32) continue;
    for (const DeviceCalibration& sweep : all_sweeps(calibrations, other.name)) {
      for (const auto& [group, constants] : sweep.groups) {
        for (const FormCall& call : calls) {
          const std::string variant = group_variant(group, call);
          if (!variant.empty()) names.insert(variant);
        }
      }
    }
  }
  return {names.begin(), names.end()};
}

std::string variant_from_flag(const KernelFamily& family, std::string_view typed, const fs::path& calibrations) {
  for (const KernelParameter& parameter : family.parameters) {
    // "any", or the stage that linear attention means unless told otherwise.
    if (parameter.name == "kernel" && equal_ignoring_case(typed, parameter.fallback.value_or(""))) return {};
  }
  if (typed.empty()) return {};
  if (form_kind_of(family.name) == nullptr) return std::string(typed);
  std::vector<std::string> known = known_variants(family, calibrations);
  for (const std::string& name : known) {
    if (equal_ignoring_case(name, typed)) return std::string(kernel_variant(name));
  }
  known.insert(known.begin(), "any");
  throw InputError(
      {.field = "kernel",
       .value = printable(typed),
       .expected = fmt::format("an implementation of {} that is known: {}", family.name, fmt::join(known, ", ")),
       .suggestion = nearest_name(typed, known).value_or("")});
}

}  // namespace foretoken
