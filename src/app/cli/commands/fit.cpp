#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "app/cli/progress.h"
#include "base/file.h"
#include "kernel/family.h"
#include "kernel/fit/fit_calibrations.h"
#include "kernel/validate.h"
#include "report/calibration_report.h"

namespace foretoken {
namespace {

class FitCommand : public Command {
 public:
  void declare(Options& options) override {
    roofline_ = &options.subcommand("roofline",
                                    "How far measured kernels lie from the roofline: 90% factors by family and size");
    declare_common(*roofline_, "The JSON file to write");
    roofline_->footer(
        "Example:\n  foretoken fit roofline --data measurements/ --source 'our lab' --date 2026-11-15 --out "
        "intervals.json");

    kernels_ = &options.subcommand("kernels",
                                   "The learned tiers: constants that port between devices, and corrections "
                                   "for each measured one");
    declare_common(*kernels_, "The folder to write calibrations to");
    kernels_->list(
        "--without", without_,
        "Devices the cross tier must not see, with their whole generation; with --sweep-size they get a measured tier");
    kernels_->list("--families", families_, "Only forms of these kernel families");
    kernels_->integer("--sweep-size", sweep_size_, {.least = 0, .most = 100'000'000},
                      "Rows of each device that its measured tier may see; 0 = all");
    kernels_->integer("--seed", seed_, {.least = 0, .most = 1'000'000'000}, "Of the random choice of rows");
    kernels_->flag("--cross-only", cross_only_, "Leave the measured tiers out");
    kernels_->footer(
        "Example:\n  foretoken fit kernels --data measurements/ --source 'our lab' --date 2026-11-15 --out "
        "calibrations");
  }

  Answer run(const Library& library) const override {
    return roofline_->was_chosen() ? fit_roofline(library) : fit_kernels(library);
  }

 private:
  void declare_common(Options& options, const std::string& out_help) {
    options.list("--data", data_, "Folders of <device>/<family>.csv[.gz] (comma-separated)", true);
    options.list("--devices", devices_, "Only these devices");
    options.list("--where", where_, "Only rows with COLUMN=VALUE, as split=train");
    options.text("--out", out_, out_help, true);
    options.text("--source", source_, "Where the measurements come from; kept in the file", true);
    options.text("--date", date_, "Date of the fit; kept in the file", true);
  }

  std::vector<KernelValidationRequest> requests() const {
    std::vector<KernelValidationRequest> list;
    for (const std::string& folder : data_) list.push_back({.data = folder, .devices = devices_, .where = where_});
    return list;
  }

  Answer fit_roofline(const Library& library) const {
    RooflineIntervals intervals = fit_roofline_intervals(requests(), library.hardware());
    intervals.source = source_;
    intervals.fitted_on = date_;
    write_file(out_, roofline_intervals_json(intervals));
    return {.text = fmt::format("wrote factors of {} families from {} devices to {}\n", intervals.families.size(),
                                intervals.devices.size(), out_),
            .json = Json::object(
                {{"families", intervals.families.size()}, {"devices", intervals.devices.size()}, {"out", out_}})};
  }

  Answer fit_kernels(const Library& library) const {
    for (const std::string& family : families_) kernel_family(family, "--families");
    FitOptions options{.seed = static_cast<uint64_t>(seed_),
                       .source = source_,
                       .date = date_,
                       .without = without_,
                       .families = families_,
                       .sweep_size = static_cast<size_t>(sweep_size_),
                       .progress = show_progress};
    const CalibrationSummary summary = fit_calibrations(requests(), library.hardware(), options, !cross_only_, out_);
    return {.text = calibration_summary_text(summary) + fmt::format("wrote {} files to {}\n", summary.files, out_),
            .json = calibration_summary_json(summary)};
  }

  Options* roofline_ = nullptr;
  Options* kernels_ = nullptr;
  std::vector<std::string> data_, devices_, where_, without_, families_;
  std::string out_, source_, date_;
  int64_t sweep_size_ = 0, seed_ = 1;
  bool cross_only_ = false;
};

}  // namespace

std::unique_ptr<Command> make_fit() {
  return std::make_unique<FitCommand>();
}

}  // namespace foretoken
