#include "app/cli/flags/kernel_source_flags.h"

#include "kernel/kernel.h"

namespace foretoken {

void declare_tier(Options& options, std::string& tier) {
  options.choice("--tier", tier, tier_names(),
                 "Source of kernel times: measured (a sweep of this GPU), sibling (a GPU of the same generation), "
                 "cross (other GPUs) or roofline. best picks the first one available for each kernel");
}

void declare_calibration(Options& options) {
  options.text("--calibration", options.calibration(),
               "Folder of kernel calibrations written by `foretoken fit kernels` [the built-in ones and those of your "
               "own devices]");
}

void declare_deployment(Options& options) {
  options.text("--deployment", options.deployment(),
               "Deployment file written by `foretoken calibrate`: apply its constants and intervals to engines of that "
               "kind on that GPU");
}

void declare_kernel_source(Options& options, std::string& tier) {
  declare_tier(options, tier);
  declare_calibration(options);
}

}  // namespace foretoken
