#include "app/cli/library.h"

#include <cstdlib>
#include <system_error>

#include "base/error.h"

namespace foretoken {
namespace fs = std::filesystem;

Library::Library(fs::path data_directory) : directory_(std::move(data_directory)) {}

fs::path Library::find() {
  if (const char* given = std::getenv("FORETOKEN_LIBRARY")) {
    if (fs::is_directory(fs::path(given) / "hardware")) return given;
    throw InputError({.source = "FORETOKEN_LIBRARY",
                      .value = given,
                      .expected = "a folder that holds hardware/, models/ and kernels/"});
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& candidate :
       {program.parent_path() / "../data", program.parent_path() / "../share/foretoken/data"}) {
    if (fs::is_directory(candidate / "hardware", error)) return candidate.lexically_normal();
  }
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

KernelPredictor Library::predictor(const std::string& device_name, Tier tier) const {
  const Device device = hardware().device(device_name);
  return KernelPredictor(device, roofline_intervals(),
                         std::make_shared<LearnedKernels>(device, calibrations(), Caches::cold), tier);
}

KernelPredictor Library::benchmark_predictor(const Device& device, Tier tier, const fs::path& calibrations) const {
  return KernelPredictor(device, roofline_intervals(),
                         std::make_shared<LearnedKernels>(device, calibrations, Caches::benchmark), tier);
}

}  // namespace foretoken
