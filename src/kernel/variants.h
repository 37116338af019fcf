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

// Sorted; empty for a family whose implementations are not told apart.
std::vector<std::string> known_variants(const KernelFamily& family, const std::filesystem::path& calibrations);

// InputError that names the nearest where `variant` is none of these; empty is fine.
void check_variant(const KernelFamily& family, std::string_view variant, const std::filesystem::path& calibrations);

}  // namespace foretoken
