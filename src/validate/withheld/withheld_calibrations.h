// Predictions of GPUs by calibrations that have never seen their generation: from the spec sheet alone, and with a
// sweep.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/validation.h"
#include "library/library.h"

namespace foretoken {

// Kernel calibrations of a folder that the user gave, or of one that lives as long as this.
class WithheldCalibrations {
 public:
  WithheldCalibrations(std::filesystem::path folder, std::string generation, bool is_temporary)
      : folder_(std::move(folder)), generation_(std::move(generation)), is_temporary_(is_temporary) {}
  ~WithheldCalibrations();
  WithheldCalibrations(const WithheldCalibrations&) = delete;
  WithheldCalibrations& operator=(const WithheldCalibrations&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& generation() const { return generation_; }

 private:
  std::filesystem::path folder_;
  std::string generation_;
  bool is_temporary_;
};

struct WithheldRequest {
  std::string without;                   // the generation, or one of its devices
  std::string calibration = {};          // the folder to read; empty = fit one
  std::vector<std::string> kernel_data;  // folders of measurements to fit
  std::vector<std::string> families;     // of kernels; empty = all
  std::function<void(const std::string&)> tell = {};
};

// InputError for a folder that has seen the generation, or where there is nothing to read and nothing to fit.
std::unique_ptr<WithheldCalibrations> withheld_calibrations(const WithheldRequest& request, const Library& library);

// How a table spells devices of the generation, among those in `asked` (empty = all). InputError where there are none.
std::vector<std::string> devices_of_generation(const std::string& generation, const std::filesystem::path& table,
                                               std::string_view column, const std::vector<std::string>& asked,
                                               const HardwareCatalogue& hardware);

struct WithheldValidation {
  std::string layer, generation;
  Validation cross, measured;  // of the same rows
};

// Both tiers by one function.
WithheldValidation validate_withheld(const std::string& layer, const std::string& generation,
                                     const std::function<Validation(Tier tier)>& validate,
                                     const std::function<void(const std::string&)>& tell = {});

}  // namespace foretoken
