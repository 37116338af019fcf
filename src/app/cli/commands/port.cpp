#include "app/cli/commands/list.h"
#include "app/cli/flags/kernel_source_flags.h"
#include "base/error.h"
#include "compose/profile/ported_trace.h"
#include "report/kernel/ported_trace_report.h"

namespace foretoken {
namespace {

class PortCommand : public Command {
 public:
  void declare(Options& options) override {
    options.text("trace", trace_, "PyTorch profiler trace of one rank (Kineto JSON, optionally .gz)", true);
    options.text("--to", to_, "GPU to predict (`foretoken devices` lists them)", true);
    options.text("--device", device_, "GPU that was profiled [the one that the trace names]");
    declare_kernel_source(options, tier_);
    options.footer(
        "Each measured kernel is multiplied by the ratio of its estimates on both GPUs. Kernels without sizes are "
        "scaled by\npeak rates or bandwidths: record the trace with record_shapes=True. Communication keeps its "
        "measured time.\nExamples:\n  foretoken port path/to/trace.json --to h200_sxm\n  foretoken port "
        "path/to/trace.json.gz --device a100_sxm --to b200_sxm --json");
  }

  Answer run(const Library& library) const override {
    const ProfiledStep step = read_profile(trace_);
    const KernelPredictor from = library.predictor(device_of(step), tier_from_name(tier_).value());
    const KernelPredictor to = library.predictor(to_, tier_from_name(tier_).value());
    const PortedTrace ported = port_trace(step, from, to);
    const PortOrigin origin{.source = step.source, .from = from.device(), .to = to.device()};
    return {.text = ported_trace_text(ported, origin), .json = ported_trace_json(ported, origin)};
  }

 private:
  std::string device_of(const ProfiledStep& step) const {
    if (!device_.empty()) return device_;
    if (!step.device.empty()) return step.device;
    throw InputError({.source = step.source,
                      .path = "deviceProperties",
                      .value = "no device name",
                      .expected = "--device, the GPU that was profiled, because this trace does not name it"});
  }

  std::string trace_, to_, device_;
  std::string tier_ = "best";
};

}  // namespace

std::unique_ptr<Command> make_port() {
  return std::make_unique<PortCommand>();
}

}  // namespace foretoken
