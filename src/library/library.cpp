#include "library/library.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <system_error>

#include "accelerator/device/designed_device.h"
#include "accelerator/formats/mapper_constraints.h"
#include "base/error.h"
#include "hardware/rent.h"
#include "kernel/forms/call.h"
#include "network/calibration/stack_collectives.h"
#include "network/calibration/system_library.h"

namespace foretoken {
namespace fs = std::filesystem;
namespace {

// The first of these names that exists, seen from the program's folder, then from those above it: a Python module lies
// a few folders deeper than an executable (build/python/foretoken, lib/python3/dist-packages/foretoken). Empty: none.
fs::path find_near(const fs::path& program, std::initializer_list<const char*> names) {
  constexpr int most_folders = 4;
  fs::path folder = program.parent_path();
  for (int i = 0; i < most_folders; ++i, folder = folder.parent_path()) {
    for (const char* name : names) {
      std::error_code error;
      if (fs::exists(folder / name, error)) return (folder / name).lexically_normal();
    }
  }
  return {};
}

}  // namespace

fs::path Library::this_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

Library::Library(fs::path data_directory, const fs::path& program)
    : directory_(std::move(data_directory)),
      calibration_pack_(find_near(program, {"calibrations.pack", "../share/foretoken/calibrations.pack"})) {}

fs::path Library::find(const fs::path& program) {
  if (const char* given = std::getenv("FORETOKEN_LIBRARY")) {
    if (std::error_code ignored; fs::is_directory(fs::path(given) / "hardware", ignored)) return given;
    throw InputError({.source = "FORETOKEN_LIBRARY",
                      .value = printable(given),
                      .expected = "a folder that holds hardware/, models/ and kernels/"});
  }
  const fs::path hardware = find_near(program, {"../data/hardware", "../share/foretoken/data/hardware"});
  if (!hardware.empty()) return hardware.parent_path();
  throw InputError({.source = program.string(),
                    .path = "library of devices and models",
                    .value = "not found beside the program",
                    .expected = "FORETOKEN_LIBRARY to name the folder that holds hardware/, models/ and kernels/"});
}

HardwareCatalogue Library::hardware() const {
  return HardwareCatalogue(directory_ / "hardware");
}
ModelCatalogue Library::models() const {
  return ModelCatalogue(directory_ / "models");
}

RooflineIntervals Library::roofline_intervals() const {
  return read_roofline_intervals(directory_ / "kernels" / "roofline_intervals.json");
}

SheetDerates Library::sheet_derates() const {
  return read_sheet_derates(directory_ / "kernels" / "sheet_derates.json");
}

ErrorCorrelations Library::error_correlations() const {
  return read_error_correlations(directory_ / "kernels" / "error_correlations.json");
}

std::optional<PowerModel> Library::power_model(const Device& device) const {
  return PowerModel::make(device, read_power_calibrations(directory_ / "kernels" / "power.json"));
}

std::optional<CommunicationPredictor> Library::collectives(const Device& device, const std::optional<Node>& node,
                                                           std::vector<KnownTime> known,
                                                           std::span<const std::string_view> laws) const {
  if (!device.link_bandwidth && !device.host_bandwidth) return std::nullopt;
  const HardwareCatalogue catalogue = hardware();
  const SystemLibrary systems(catalogue);
  const SystemTraits own = system_traits(device, node ? node : catalogue.node_with(device));
  std::vector<SystemTraits> siblings = systems.siblings_of(own, generation_of(device), swept_systems(networks()));
  std::vector<std::string> names = {own.name};
  for (const SystemTraits& sibling : siblings) names.push_back(sibling.name);
  return CommunicationPredictor(
      std::make_shared<const CommunicationLibrary>(read_communication_library(networks(), names, laws)), own,
      std::move(siblings), std::move(known));
}

DeviceModels Library::device_models(const std::string& device_name, const ParallelPlan& plan, Tier tier) const {
  return with_collectives(predictor(device_name, tier), plan);
}

DeviceModels Library::device_models(const Device& device, const ParallelPlan& plan, Tier tier) const {
  return with_collectives(predictor(device, tier), plan);
}

DeviceModels Library::with_collectives(KernelPredictor kernels, const ParallelPlan& plan) const {
  DeviceModels models{.kernels = std::move(kernels), .collectives = nullptr};
  if (rank_count(plan) == 1) return models;  // reading collectives takes longer than the step of a single rank
  if (auto found = collectives(models.kernels.device(), {}, {}, step_laws)) {
    models.collectives = std::make_shared<const CommunicationPredictor>(std::move(*found));
  }
  return models;
}

MaybeFact<double> Library::rent_usd_per_hour(const Device& device) const {
  return find_rent(read_rents(directory_ / "prices" / "rent.json"), device.name);
}

KernelPredictor Library::predictor(const std::string& device_name, Tier tier) const {
  const HardwareCatalogue catalogue = hardware();
  Device device = catalogue.device(device_name);
  const bool is_content = device_name.starts_with('{');  // and so no name of ours either
  const bool is_own = is_content || HardwareCatalogue::is_path(device_name);
  if (!is_own || !device.accelerator.empty()) return predictor(device, tier);
  // A user's own file may keep the name of the device it was copied from; its sweep is a sibling's at best.
  const std::vector<Device> swept = swept_devices(device, catalogue, calibrations());
  if (!swept.empty()) device.name = is_content ? device.name + "_changed" : device_name;
  return predictor_with(device, swept, {}, calibrations(), tier, Caches::cold);
}

KernelPredictor Library::predictor(const Device& device, Tier tier) const {
  if (!device.accelerator.empty()) return designed_predictor(device);
  const HardwareCatalogue catalogue = hardware();
  const auto siblings = [catalogue, device, folder = calibrations()] {
    return swept_devices(device, catalogue, folder);
  };
  const std::vector<std::string>& names = catalogue.device_names();
  if (std::find(names.begin(), names.end(), device.name) == names.end()) {
    // A user's own, from a node file.
    return predictor_with(device, siblings(), {}, calibrations(), tier, Caches::cold);
  }
  // Its own sweep comes first; the files of siblings are read only where it has none.
  std::error_code error;
  const bool is_swept = fs::is_directory(calibrations() / device.name, error);
  return predictor_with(device, is_swept ? std::vector<Device>{device} : std::vector<Device>{}, siblings,
                        calibrations(), tier, Caches::cold);
}

KernelPredictor Library::designed_predictor(const Device& device) const {
  const Json document = parse_json(device.accelerator, device.name);
  AcceleratorDesign design = accelerator_designs().design_in(JsonView(document, device.name)).design;
  Architecture architecture = design.architecture;
  check_sheet(device, architecture);
  const ConstraintsFor constraints = [design = std::move(design)](const Problem& problem) {
    return design_constraints(design, problem);
  };
  return KernelPredictor(device, mapped_kernels(std::move(architecture), constraints));
}

KernelPredictor Library::benchmark_predictor(const Device& device, Tier tier, const fs::path& calibrations,
                                             Caches caches) const {
  return predictor_with(device, swept_devices(device, hardware(), calibrations), {}, calibrations, tier, caches);
}

KernelPredictor Library::predictor_with(const Device& device, const std::vector<Device>& swept,
                                        std::function<std::vector<Device>()> more_swept, const fs::path& calibrations,
                                        Tier tier, Caches caches) const {
  auto learned =
      std::make_shared<LearnedKernels>(device, CalibrationFolder(calibrations, CalibrationPack(calibration_pack_)),
                                       caches, swept, std::move(more_swept));
  KernelPredictor predictor(device, roofline_intervals(), std::move(learned), tier, caches, error_correlations());
  if (!predictor.is_known_by_sheet_only()) return predictor;
  return predictor.with_description(derated_sheet(device, sheet_derates()));
}

}  // namespace foretoken
