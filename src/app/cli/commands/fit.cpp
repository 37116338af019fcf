#include <fmt/format.h>

#include "app/cli/commands/list.h"
#include "base/file.h"
#include "kernel/validate.h"

namespace foretoken {
namespace {

class FitCommand : public Command {
 public:
  void declare(Options& options) override {
    Options& roofline = options.subcommand(
        "roofline", "How far measured kernels lie from the roofline: 90% factors by family and size");
    roofline.list("--data", data_, "Folders of <device>/<family>.csv[.gz] (comma-separated)", true);
    roofline.list("--devices", devices_, "Only these devices");
    roofline.text("--out", out_, "The JSON file to write", true);
    roofline.text("--source", source_, "Where the measurements come from; kept in the file", true);
    roofline.text("--date", date_, "Date of the fit; kept in the file", true);
    roofline.footer(
        "Example:\n  foretoken fit roofline --data measurements/ --source 'our lab' --date 2026-11-15 --out "
        "intervals.json");
  }

  Answer run(const Library& library) const override {
    std::vector<KernelValidationRequest> requests;
    for (const std::string& folder : data_) requests.push_back({.data = folder, .devices = devices_});
    RooflineIntervals intervals = fit_roofline_intervals(requests, library.hardware());
    intervals.source = source_;
    intervals.fitted_on = date_;
    write_file(out_, roofline_intervals_json(intervals));
    return {.text = fmt::format("wrote factors of {} families from {} devices to {}\n", intervals.families.size(),
                                intervals.devices.size(), out_),
            .json = Json::object(
                {{"families", intervals.families.size()}, {"devices", intervals.devices.size()}, {"out", out_}})};
  }

 private:
  std::vector<std::string> data_, devices_;
  std::string out_, source_, date_;
};

}  // namespace

std::unique_ptr<Command> make_fit() {
  return std::make_unique<FitCommand>();
}

}  // namespace foretoken
