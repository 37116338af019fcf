#include "validate/withheld/withheld_calibrations.h"

#include <stdlib.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "hardware/generation.h"
#include "kernel/calibration.h"
#include "kernel/fit/fit_calibrations.h"

namespace foretoken {
namespace {

// That no form of the folder has seen the generation, and that there are any.
void check_unseen(const std::filesystem::path& folder, const std::string& generation,
                  const HardwareCatalogue& hardware) {
  const auto complain = [&](const std::string& why) {
    throw InputError({.field = "calibration",
                      .value = printable(folder.string()),
                      .expected = why + ": a folder written by `foretoken fit kernels {without} GENERATION "
                                        "{sweep_withheld}` for the same generation"});
  };
  bool any = false;
  for (const FormKind& kind : form_kinds()) {
    const std::filesystem::path path = form_calibration_path(folder, kind.name);
    if (!std::filesystem::exists(path)) continue;
    any = true;
    for (const std::string& device : read_form_calibration(path).devices) {
      if (generation_of(hardware.find_device(device)) == generation)
        complain(fmt::format("a calibration that has not seen {} ({})", device, path.filename().string()));
    }
  }
  if (!any) complain("calibrations");
}

std::filesystem::path temporary_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "foretoken-without-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw InputError(
        {.field = "without", .value = printable(name), .expected = "a writable folder for temporary files (TMPDIR)"});
  }
  return name;
}

}  // namespace

WithheldCalibrations::~WithheldCalibrations() {
  std::error_code ignored;
  if (is_temporary_) std::filesystem::remove_all(folder_, ignored);
}

std::unique_ptr<WithheldCalibrations> withheld_calibrations(const WithheldRequest& request, const Library& library) {
  const HardwareCatalogue hardware = library.hardware();
  const std::string generation = generation_named(request.without, hardware);
  if (!request.calibration.empty()) {
    check_unseen(request.calibration, generation, hardware);
    return std::make_unique<WithheldCalibrations>(request.calibration, generation, false);
  }
  if (request.kernel_data.empty()) {
    throw InputError({.field = "without",
                      .value = printable(request.without),
                      .expected = fmt::format("{{kernel_data}} FOLDER as well, or {{calibration}} FOLDER "
                                              "written by `foretoken fit kernels {{without}} {} {{sweep_withheld}}`",
                                              request.without)});
  }
  auto result = std::make_unique<WithheldCalibrations>(temporary_folder(), generation, true);
  const ModelCatalogue models = library.models();
  std::vector<KernelValidationRequest> measurements;
  for (const std::string& folder : request.kernel_data) measurements.push_back({.data = folder, .models = &models});
  fit_calibrations(measurements, hardware,
                   {.source = "validate without " + generation,
                    .date = "not kept",
                    .without = {request.without},
                    .families = request.families,
                    .progress = request.tell},
                   Sweeps::withheld, result->folder());
  check_unseen(result->folder(), generation, hardware);
  return result;
}

std::vector<std::string> devices_of_generation(const std::string& generation, const std::filesystem::path& table,
                                               std::string_view column, const std::vector<std::string>& asked,
                                               const HardwareCatalogue& hardware) {
  CsvReader rows(table);
  const size_t cell = rows.column(column);
  std::set<std::string> texts;
  while (rows.next()) texts.emplace(rows.cell(cell));
  std::vector<std::string> wanted;
  for (const std::string& text : texts) {
    const bool is_asked = asked.empty() || std::any_of(asked.begin(), asked.end(), [&](const std::string& name) {
                            return comparable_name(name) == comparable_name(text);
                          });
    if (!is_asked) continue;
    try {
      if (generation_of(hardware.find_device(text)) == generation) wanted.push_back(text);
    } catch (const InputError&) {
      // A device that nobody knows is of no known generation.
    }
  }
  if (wanted.empty()) {
    throw InputError({.field = "without",
                      .value = printable(generation),
                      .expected = fmt::format("a generation with rows in {}", table.string())});
  }
  return wanted;
}

WithheldValidation validate_withheld(const std::string& layer, const std::string& generation,
                                     const std::function<Validation(Tier tier)>& validate,
                                     const std::function<void(const std::string&)>& tell) {
  const auto validated = [&](Tier tier, const char* how) {
    if (tell) tell(fmt::format("{}: {}", layer, how));
    return validate(tier);
  };
  WithheldValidation table{.layer = layer, .generation = generation};
  table.cross = validated(Tier::cross, "from spec sheets");
  table.measured = validated(Tier::best, "with a sweep");
  return table;
}

}  // namespace foretoken
