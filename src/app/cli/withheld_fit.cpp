#include "app/cli/withheld_fit.h"

#include <stdlib.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "app/cli/grammar/options.h"
#include "app/cli/output/progress.h"
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
    throw InputError({.source = "--calibration",
                      .value = printable(folder.string()),
                      .expected = why + ": a folder written by `foretoken fit kernels --without GENERATION "
                                        "--sweep-withheld` for the same generation"});
  };
  bool any = false;
  for (const FormKind& kind : form_kinds()) {
    const std::filesystem::path path = form_calibration_path(folder, kind.name);
    if (!std::filesystem::exists(path)) continue;
    any = true;
    for (const std::string& device : read_form_calibration(path).devices) {
      if (generation_of(hardware.device(device)) == generation)
        complain(fmt::format("a calibration that has not seen {} ({})", device, path.filename().string()));
    }
  }
  if (!any) complain("calibrations");
}

std::filesystem::path temporary_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "foretoken-without-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw InputError({.source = "--without",
                      .value = printable(name),
                      .expected = "a writable folder for temporary files (TMPDIR)"});
  }
  return name;
}

}  // namespace

WithheldCalibrations::~WithheldCalibrations() {
  std::error_code ignored;
  if (is_temporary_) std::filesystem::remove_all(folder_, ignored);
}

void WithheldFit::declare(Options& options, bool has_kernels) {
  options.text("--without", without_,
               "Score GPUs of this generation (hopper, sm_90, or one of its devices) with calibrations that have never "
               "seen it: from the spec sheet alone, and with a sweep");
  if (has_kernels) return;
  options.list(
      "--kernel-data", kernel_data_,
      "With --without: kernel measurements to fit from if no --calibration is given (folders, comma-separated)");
}

std::unique_ptr<WithheldCalibrations> WithheldFit::calibrations(const Library& library, const std::string& calibration,
                                                                std::vector<std::string> data,
                                                                const std::vector<std::string>& families) const {
  const HardwareCatalogue hardware = library.hardware();
  const std::string generation = generation_named(without_, hardware);
  if (!calibration.empty()) {
    check_unseen(calibration, generation, hardware);
    return std::make_unique<WithheldCalibrations>(calibration, generation, false);
  }
  if (data.empty()) data = kernel_data_;
  if (data.empty()) {
    throw InputError({.source = "--without",
                      .value = printable(without_),
                      .expected = "--kernel-data FOLDER together with it, or --calibration FOLDER written by "
                                  "`foretoken fit kernels --without " +
                                  without_ + " --sweep-withheld`"});
  }
  auto result = std::make_unique<WithheldCalibrations>(temporary_folder(), generation, true);
  const ModelCatalogue models = library.models();
  std::vector<KernelValidationRequest> requests;
  for (const std::string& folder : data) requests.push_back({.data = folder, .models = &models});
  fit_calibrations(requests, hardware,
                   {.source = "validate --without",
                    .date = "not kept",
                    .without = {without_},
                    .families = families,
                    .progress = show_progress},
                   Sweeps::withheld, result->folder());
  check_unseen(result->folder(), generation, hardware);
  return result;
}

std::vector<std::string> WithheldFit::devices_in(const std::filesystem::path& table, std::string_view column,
                                                 const std::vector<std::string>& asked,
                                                 const HardwareCatalogue& hardware, const std::string& generation) {
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
      if (generation_of(hardware.device(text)) == generation) wanted.push_back(text);
    } catch (const InputError&) {
      // A device that nobody knows is of no known generation.
    }
  }
  if (wanted.empty()) {
    throw InputError({.source = "--without",
                      .value = printable(generation),
                      .expected = fmt::format("a generation with rows in {}", table.string())});
  }
  return wanted;
}

Answer withheld_answer(const std::string& layer, const std::string& generation,
                       const std::function<Validation(Tier tier)>& validate) {
  WithheldValidation table{.layer = layer, .generation = generation};
  show_progress(fmt::format("{}: from spec sheets", layer));
  table.cross = validate(Tier::cross);
  show_progress(fmt::format("{}: with a sweep", layer));
  table.measured = validate(Tier::best);
  return {.text = withheld_text(table),
          .json = withheld_json(table),
          .failure = table.cross.overall.n > 0 ? "" : "No row was scored."};
}

}  // namespace foretoken
