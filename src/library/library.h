// The facts that ship with the program: devices, models, fitted coefficients.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/formats/designs.h"
#include "hardware/catalogue.h"
#include "kernel/kernel.h"
#include "kernel/power.h"
#include "library/device_models.h"
#include "model/catalogue.h"
#include "network/calibration/communication_predictor.h"

namespace foretoken {

struct CalibratedDeployment;

class Library {
 public:
  // `program`: the executable or Python module; packed calibrations lie beside it.
  explicit Library(std::filesystem::path data_directory, const std::filesystem::path& program = this_program());

  // Where FORETOKEN_LIBRARY points, or seen from the program's folder or one a few above it: ../data in a build tree,
  // ../share/foretoken/data when installed. InputError when there is none.
  static std::filesystem::path find(const std::filesystem::path& program = this_program());

  // The library of this process: what ships, and the user's own devices.
  static Library open(const std::filesystem::path& program = this_program());
  // Where the user's own devices lie, laid out as what ships (hardware/, kernels/): the folder that FORETOKEN_HOME
  // names, else foretoken/ in XDG_DATA_HOME, else ~/.local/share/foretoken. Empty: nowhere.
  static std::filesystem::path own_folder();
  // The same with the user's devices of that folder, which need not exist.
  Library with_own(std::filesystem::path folder) const;
  // The same with kernel calibrations of that folder alone, as `foretoken fit kernels` writes it. InputError where it
  // holds none.
  Library with_calibrations(std::filesystem::path folder) const;
  // The same with what calibration learned about a deployment (deployment.h): stacks of its engine have its costs.
  Library with_deployment(CalibratedDeployment deployment) const;

  const std::filesystem::path& directory() const { return directory_; }
  const std::filesystem::path& own() const { return own_; }
  const std::shared_ptr<const CalibratedDeployment>& deployment() const { return deployment_; }  // null: none
  HardwareCatalogue hardware() const;
  ModelCatalogue models() const;
  RooflineIntervals roofline_intervals() const;
  SheetDerates sheet_derates() const;
  ErrorCorrelations error_correlations() const;
  // Nothing where the device's sheet does not say enough.
  std::optional<PowerModel> power_model(const Device& device) const;
  MaybeFact<double> rent_usd_per_hour(const Device& device) const;
  KernelPredictor predictor(const std::string& device_name, Tier tier = Tier::best) const;
  KernelPredictor predictor(const Device& device, Tier tier = Tier::best) const;
  // For comparison with measurements, whose weights may be warmer than a model's.
  KernelPredictor benchmark_predictor(const Device& device, Tier tier, const std::filesystem::path& calibrations,
                                      Caches caches) const;
  std::filesystem::path calibrations() const;
  // To fit sweeps on top of.
  CalibrationFolder calibration_folder() const;
  // Of the device's own sweeps and its siblings'; nothing for a device without links. `node`: what it sits in; default
  // the usual one. `laws`: those to read; default all.
  std::optional<CommunicationPredictor> collectives(const Device& device, const std::optional<Node>& node = {},
                                                    std::vector<KnownTime> known = {},
                                                    std::span<const std::string_view> laws = {}) const;
  // What such devices sit in, with the links that were given; nothing = not known. InputError where the node or cluster
  // that was named has other devices.
  std::optional<Node> node_of(const Device& device, const PlacementSpec& placement) const;
  // The machine that such devices sit in, under the ranks of the plan; null for a device without links.
  std::shared_ptr<const RankNetwork> network(const Device& device, const ParallelPlan& plan,
                                             const PlacementSpec& placement = {}) const;
  // Kernels, and where the plan has several ranks the collectives of a step.
  DeviceModels device_models(const std::string& device_name, const ParallelPlan& plan, Tier tier = Tier::best,
                             const PlacementSpec& placement = {}) const;
  DeviceModels device_models(const Device& device, const ParallelPlan& plan, Tier tier = Tier::best,
                             const PlacementSpec& placement = {}) const;
  AcceleratorCatalogue accelerator_designs() const { return AcceleratorCatalogue(directory_ / "accelerators"); }
  std::filesystem::path networks() const { return directory_ / "networks"; }
  // Programs for other machines, beside the data: tools/profile_cuda.py.
  std::filesystem::path tools() const { return directory_.parent_path() / "tools"; }

 private:
  std::filesystem::path own_calibrations() const;
  // Devices whose sweeps may apply: the user's own one itself, then those that ship.
  std::vector<Device> swept(const Device& device, const std::filesystem::path& calibrations) const;
  DeviceModels with_collectives(KernelPredictor kernels, const ParallelPlan& plan,
                                const PlacementSpec& placement) const;
  static std::filesystem::path this_program();
  AcceleratorDesign design_of(const Device& device) const;
  KernelPredictor designed_predictor(const Device& device) const;
  KernelPredictor predictor_of_chip(const Device& device, Tier tier) const;  // its memory only stores
  KernelPredictor with_memory_of(const Device& device, KernelPredictor predictor) const;
  KernelPredictor predictor_with(const Device& device, const std::vector<Device>& swept,
                                 std::function<std::vector<Device>()> more_swept,
                                 const std::filesystem::path& calibrations, Tier tier, Caches caches) const;
  std::filesystem::path directory_;
  std::filesystem::path own_;           // empty: none
  std::filesystem::path calibrations_;  // instead of those that ship and the user's own; empty: none
  std::shared_ptr<const CalibratedDeployment> deployment_;  // shared: libraries are copied
  std::filesystem::path calibration_pack_;                  // beside the program, or ../share/foretoken when installed
};

}  // namespace foretoken
