// `validate --without GENERATION`: predictions of GPUs by calibrations that have never seen their generation.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/grammar/command.h"
#include "library/library.h"
#include "report/accuracy/withheld_report.h"

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

class WithheldFit {
 public:
  // Beside --tier and --calibration of the command. `has_kernels`: its --data are kernels, which are fitted as well.
  void declare(Options& options, bool has_kernels);
  bool is_wanted() const { return !without_.empty(); }

  // Reads `calibration`, or fits the measurements: `data` of kernels, else those of --kernel-data. InputError for a
  // folder that has seen the generation.
  std::unique_ptr<WithheldCalibrations> calibrations(const Library& library, const std::string& calibration,
                                                     std::vector<std::string> data,
                                                     const std::vector<std::string>& families) const;

  // How a table spells devices of the generation, among those in `asked` (empty = all). InputError where there are
  // none.
  static std::vector<std::string> devices_in(const std::filesystem::path& table, std::string_view column,
                                             const std::vector<std::string>& asked, const HardwareCatalogue& hardware,
                                             const std::string& generation);

 private:
  std::string without_;
  std::vector<std::string> kernel_data_;
};

// The two tiers by one function.
Answer withheld_answer(const std::string& layer, const std::string& generation,
                       const std::function<Validation(Tier tier)>& validate);

}  // namespace foretoken
