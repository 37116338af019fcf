// Which implementations of a family have a name: those that its form tells apart, and those that some device measured.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/calibration.h"
#include "kernel/family.h"
#include "kernel/forms/form.h"

namespace foretoken {

// The sweeps of one form below `calibrations`, by device name. A folder without any gives none.
std::vector<DeviceCalibration> all_sweeps(const std::filesystem::path& calibrations, std::string_view form);

// Whether a group (call_group) has the number formats of the call; and the variant in its name, empty if none.
bool has_formats(std::string_view group, const FormCall& call);
std::string group_variant(std::string_view group, const FormCall& call);

// "sdpa_flash_heads_first" runs sdpa_flash on keys and values that lie as [batch, heads, tokens, dim]. The name without
// the layout is for sweeps that did not measure it.
bool names_layout(std::string_view variant);
std::string without_layout(std::string_view variant);

// Sorted. Empty for a family without a form: the roofline is the same for all implementations.
std::vector<std::string> known_variants(const KernelFamily& family, const std::filesystem::path& calibrations);

// The known name that was typed, whatever its case; "any" (the flag's default) becomes empty: what engines usually run.
// InputError that suggests the nearest for a name nobody knows; a family without a form takes every name.
std::string variant_from_flag(const KernelFamily& family, std::string_view typed,
                              const std::filesystem::path& calibrations);

}  // namespace foretoken
