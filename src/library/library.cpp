#include "library/library.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <mutex>
#include <system_error>

#include <fmt/format.h>
#include <sys/auxv.h>

#include "accelerator/device/designed_device.h"
#include "accelerator/formats/mapper_constraints.h"
#include "base/error.h"
#include "base/text.h"
#include "hardware/generation.h"
#include "hardware/rent.h"
#include "hardware/usual_cluster.h"
#include "kernel/calibration_files.h"
#include "kernel/forms/call.h"
#include "library/deployment.h"
#include "network/calibration/stack_collectives.h"
#include "network/calibration/system_library.h"
#include "network/given_links.h"

namespace foretoken {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view expert_laws[] = {"deepep_low_latency", "deepep_normal"};

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

void check_devices(const std::string& field, const Node& node, const Device& device) {
  if (node.device.name == device.name) return;
  throw InputError({.field = field,
                    .value = fmt::format("{}, which has {}", node.name, node.device.name),
                    .expected = fmt::format("a machine with {}, the device you asked for", device.name)});
}

Node unknown_node(const Device& device) {
  Node node{.name = device.name, .title = device.title};
  node.device = device;
  node.device_count = 8;
  if (device.link_bandwidth) {
    node.fabric = {.kind = NodeFabricKind::nvswitch, .bandwidth = *device.link_bandwidth};
  } else if (device.host_bandwidth) {
    node.fabric = {.kind = NodeFabricKind::pcie, .bandwidth = *device.host_bandwidth};
  } else {
    node.fabric = {.kind = NodeFabricKind::pcie, .bandwidth = {.value = pcie_slot_rate(4), .source = "assumed"}};
  }
  return node;
}

std::shared_ptr<const DescribedKernels> kernels_of_design(AcceleratorDesign design) {
  Architecture architecture = design.architecture;
  const ConstraintsFor constraints = [design = std::move(design)](const Problem& problem) {
    return design_constraints(design, problem);
  };
  return mapped_kernels(std::move(architecture), constraints);
}

}  // namespace

fs::path Library::this_program() {
  std::error_code error;
  const fs::path running = fs::read_symlink("/proc/self/exe", error);
  if (!error) return running;
  // A chroot or a container may lack /proc; the kernel also says by what path it was asked to run the program.
  const auto* asked = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return asked == nullptr ? fs::path() : fs::weakly_canonical(asked, error);
}

Library::Library(fs::path data_directory, const fs::path& program)
    : directory_(std::move(data_directory)),
      calibration_pack_(find_near(program, {"calibrations.pack", "../share/foretoken/calibrations.pack"})) {}

fs::path Library::find(const fs::path& program) {
  if (const char* given = std::getenv("FORETOKEN_LIBRARY")) {
    if (std::error_code ignored; fs::is_directory(fs::path(given) / "hardware", ignored)) return given;
    throw InputError({.source = "FORETOKEN_LIBRARY",
                      .value = printable(given),
                      .expected = "a folder with hardware/, models/ and kernels/"});
  }
  const fs::path hardware = find_near(program, {"../data/hardware", "../share/foretoken/data/hardware"});
  if (!hardware.empty()) return hardware.parent_path();
  throw InputError({.source = program.string(),
                    .path = "library of devices and models",
                    .value = "not found next to the program",
                    .expected = "FORETOKEN_LIBRARY set to the folder with hardware/, models/ and kernels/"});
}

fs::path Library::own_folder() {
  if (const char* given = std::getenv("FORETOKEN_HOME")) return given;
  if (const char* given = std::getenv("XDG_DATA_HOME"); given != nullptr && *given != '\0') {
    return fs::path(given) / "foretoken";
  }
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? fs::path() : fs::path(home) / ".local" / "share" / "foretoken";
}

Library Library::open(const fs::path& program) {
  return Library(find(program), program).with_own(own_folder());
}

Library Library::with_own(fs::path folder) const {
  Library changed = *this;
  changed.own_ = std::move(folder);
  return changed;
}

Library Library::with_calibrations(fs::path folder) const {
  const CalibrationFiles found = calibration_files(folder);
  if (found.forms.empty() && found.devices.empty()) {
    throw InputError({.field = "calibration",
                      .value = printable(folder.string()),
                      .expected = "a folder written by `foretoken fit kernels`"});
  }
  Library changed = *this;
  changed.calibrations_ = std::move(folder);
  return changed;
}

fs::path Library::calibrations() const {
  return calibrations_.empty() ? directory_ / "kernels" / "calibrations" : calibrations_;
}

fs::path Library::own_calibrations() const {
  return own_.empty() || !calibrations_.empty() ? fs::path() : own_ / "kernels" / "calibrations";
}

CalibrationFolder Library::calibration_folder() const {
  return {calibrations(), CalibrationPack(calibration_pack_), own_calibrations()};
}

std::vector<Device> Library::swept(const Device& device, const fs::path& calibrations) const {
  std::vector<Device> devices = swept_devices(device, hardware(), calibrations);
  std::error_code error;
  const fs::path own = own_calibrations();
  if (!own.empty() && fs::is_directory(own / device.name, error)) devices.insert(devices.begin(), device);
  return devices;
}

Library Library::with_deployment(CalibratedDeployment deployment) const {
  Library changed = *this;
  changed.deployment_ = std::make_shared<const CalibratedDeployment>(std::move(deployment));
  return changed;
}

HardwareCatalogue Library::hardware() const {
  return HardwareCatalogue(directory_ / "hardware", own_.empty() ? fs::path() : own_ / "hardware");
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
  if (!device.accelerator.empty()) {
    const AcceleratorDesign design = design_of(device);
    const PowerCalibration own =
        design_power(design.architecture, [&](const Problem& problem) { return design_constraints(design, problem); });
    return PowerModel::make(device, std::span(&own, 1));
  }
  std::error_code error;
  const fs::path own = own_ / "kernels" / "power" / (device.name + ".json");
  if (!own_.empty() && fs::exists(own, error)) return PowerModel::make(device, read_power_calibrations(own));
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
  // Sweeps over NVLink say nothing of PCIe, nor the other way round.
  std::erase_if(siblings, [&](const SystemTraits& other) { return other.is_host_link != own.is_host_link; });
  std::vector<std::string> names = {own.name};
  for (const SystemTraits& sibling : siblings) names.push_back(sibling.name);
  return CommunicationPredictor(
      std::make_shared<const CommunicationLibrary>(read_communication_library(networks(), names, laws)), own,
      std::move(siblings), std::move(known));
}

std::optional<Node> Library::node_of(const Device& device, const PlacementSpec& placement) const {
  if (!placement.node.empty() && !placement.cluster.empty()) {
    throw InputError({.field = "node", .value = "and {cluster}", .expected = "only one of the two"});
  }
  const HardwareCatalogue catalogue = hardware();
  std::optional<Node> node;
  if (!placement.cluster.empty()) {
    node = catalogue.cluster(placement.cluster).node;
    check_devices("cluster", *node, device);
  } else if (!placement.node.empty()) {
    node = catalogue.node(placement.node);
    check_devices("node", *node, device);
  } else {
    node = catalogue.node_with(device);
  }
  if (!node && placement.link.is_given()) node = unknown_node(device);
  if (node) set_links(*node, placement.link);
  return node;
}

std::shared_ptr<const RankNetwork> Library::network(const Device& device, const ParallelPlan& plan,
                                                    const PlacementSpec& placement) const {
  const HardwareCatalogue catalogue = hardware();
  const LinkSpec& link = placement.link;
  auto facts = std::make_shared<NetworkFacts>(
      NetworkFacts{.device = device, .node = node_of(device, placement), .link = link, .order = placement.order});
  if (!device.link_bandwidth && !device.host_bandwidth && !facts->node) return nullptr;
  if (!placement.cluster.empty()) {
    facts->cluster = catalogue.cluster(placement.cluster);
    set_links(*facts->cluster, link);
  }
  facts->has_sweep_of_node = !placement.node.empty() && facts->node->fabric.is_swept && link.pcie_generation == 0;
  std::optional<Node> linked = facts->node;
  if (linked && linked->fabric.bridge) {  // what pairs of them do
    linked->device_count = 2;
    linked->fabric.kind = NodeFabricKind::nvlink_mesh;
  }
  if (auto found = collectives(device, linked, {}, step_laws)) {
    facts->measured = std::make_shared<const CommunicationPredictor>(std::move(*found));
  }
  // Asked for one node alone, and again for every plan: that of `facts`.
  facts->usual_cluster = [catalogue, once = std::make_shared<std::once_flag>(),
                          cluster = std::make_shared<Cluster>()](const Node& node) {
    std::call_once(*once, [&] { *cluster = usual_cluster(catalogue, node); });
    return *cluster;
  };
  // Searches ask for every plan, from all their threads.
  struct ReadKernels {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<const CommunicationPredictor>> by_node;
  };
  facts->expert_kernels = [library = *this, device, read = std::make_shared<ReadKernels>()](const Node& node) {
    const std::lock_guard lock(read->mutex);
    const auto [place, is_new] =
        read->by_node.try_emplace(node.name + " " + number_text(node.fabric.bandwidth.value.value()));
    if (is_new) {
      auto found = library.collectives(device, node, {}, expert_laws);
      if (found) place->second = std::make_shared<const CommunicationPredictor>(std::move(*found));
    }
    return place->second;
  };
  return std::make_shared<const RankNetwork>(std::move(facts), plan);
}

DeviceModels Library::device_models(const std::string& device_name, const ParallelPlan& plan, Tier tier,
                                    const PlacementSpec& placement) const {
  return with_collectives(predictor(device_name, tier), plan, placement);
}

DeviceModels Library::device_models(const Device& device, const ParallelPlan& plan, Tier tier,
                                    const PlacementSpec& placement) const {
  return with_collectives(predictor(device, tier), plan, placement);
}

DeviceModels Library::with_collectives(KernelPredictor kernels, const ParallelPlan& plan,
                                       const PlacementSpec& placement) const {
  DeviceModels models{.kernels = std::move(kernels), .collectives = nullptr};
  if (rank_count(plan) == 1) return models;  // reading collectives takes longer than the step of a single rank
  models.collectives = network(models.kernels.device(), plan, placement);
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
  const std::vector<Device> siblings = swept_devices(device, catalogue, calibrations());
  if (!siblings.empty()) device.name = is_content ? device.name + "_changed" : device_name;
  KernelPredictor chip = predictor_with(device, siblings, {}, calibrations(), tier, Caches::cold);
  return tier == Tier::roofline ? chip : with_memory_of(device, std::move(chip));
}

KernelPredictor Library::predictor(const Device& device, Tier tier) const {
  KernelPredictor chip = predictor_of_chip(device, tier);
  return tier == Tier::roofline ? chip : with_memory_of(device, std::move(chip));
}

namespace {

// Those of a generation that are not the device itself, which may have been measured too.
std::vector<Device> other_devices(std::vector<Device> of_generation, const Device& device) {
  std::erase_if(of_generation, [&](const Device& other) { return other.name == device.name; });
  if (!of_generation.empty()) return of_generation;
  throw InputError(
      {.field = "tier",
       .value = "sibling",
       .expected = fmt::format("best or cross: no other GPU of the generation of {} has been measured", device.title)});
}

}  // namespace

KernelPredictor Library::predictor_of_chip(const Device& device, Tier tier) const {
  if (!device.accelerator.empty()) return designed_predictor(device);
  const HardwareCatalogue catalogue = hardware();
  const auto siblings = [catalogue, device, folder = calibrations()] {
    return swept_devices(device, catalogue, folder);
  };
  if (tier == Tier::sibling) {
    return predictor_with(device, other_devices(siblings(), device), {}, calibrations(), tier, Caches::cold);
  }
  const std::vector<std::string>& names = catalogue.device_names();
  if (std::find(names.begin(), names.end(), device.name) == names.end()) {
    // A user's own, from a node file.
    return predictor_with(device, siblings(), {}, calibrations(), tier, Caches::cold);
  }
  // Its own sweep comes first; the files of siblings are read only where it has none.
  std::error_code error;
  const fs::path own = own_calibrations();
  const bool is_swept = fs::is_directory(calibrations() / device.name, error) ||
                        (!own.empty() && fs::is_directory(own / device.name, error));
  return predictor_with(device, is_swept ? std::vector<Device>{device} : std::vector<Device>{}, siblings,
                        calibrations(), tier, Caches::cold);
}

AcceleratorDesign Library::design_of(const Device& device) const {
  const Json document = parse_json(device.accelerator, device.name);
  return accelerator_designs().design_in(JsonView(document, device.name)).design;
}

KernelPredictor Library::designed_predictor(const Device& device) const {
  AcceleratorDesign design = design_of(device);
  check_sheet(device, design.architecture);
  return KernelPredictor(device, kernels_of_design(std::move(design)));
}

KernelPredictor Library::with_memory_of(const Device& device, KernelPredictor predictor) const {
  if (!device.computing_memory) return predictor;
  const Json document = parse_json(device.computing_memory->design, device.name);
  AcceleratorDesign design = accelerator_designs().design_in(JsonView(document, device.name)).design;
  return predictor.with_computing_memory(kernels_of_design(std::move(design)));
}

KernelPredictor Library::benchmark_predictor(const Device& device, Tier tier, const fs::path& calibrations,
                                             Caches caches) const {
  return predictor_with(device, swept(device, calibrations), {}, calibrations, tier, caches);
}

KernelPredictor Library::predictor_with(const Device& device, const std::vector<Device>& swept,
                                        std::function<std::vector<Device>()> more_swept, const fs::path& calibrations,
                                        Tier tier, Caches caches) const {
  // Own sweeps were fitted on top of the library's calibrations and belong to them.
  const CalibrationFolder folder(calibrations, CalibrationPack(calibration_pack_),
                                 calibrations == this->calibrations() ? own_calibrations() : fs::path());
  auto learned = std::make_shared<LearnedKernels>(device, folder, caches, swept, std::move(more_swept));
  KernelPredictor predictor(device, roofline_intervals(), std::move(learned), tier, caches, error_correlations());
  if (predictor.is_known_by_sheet_only()) return predictor.with_description(derated_sheet(device, sheet_derates()));
  // Nobody has measured every family everywhere: attention on AMD, some recurrences on NVIDIA.
  return predictor.with_description(derated_sheet_of_measured(device, sheet_derates()));
}

}  // namespace foretoken
